"""Counts of the house: lines, modules, record types, hands on the terms of expressions; ``make counts`` prints them.

Some of them must not grow back: ``tests/unit/test_counts.py`` holds each of those to a ceiling.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("core", "codegen", "icli", "ilang")
WHOLE_NUMBERS = frozenset(
    ["Affine", "Extent", "Within", "Derivation", "Reach", "Derived", "Known", "Looked"]
)
"""Names of records that say a whole number, or a condition on one, over loops and sizes."""
HOLDING = (ast.stmt, ast.match_case, ast.ExceptHandler)
"""Nodes in which imports may stand."""


def modules() -> Iterator[tuple[Path, str]]:
    """Every module of the product with its text; the links in ``ilang`` to the other layers are not followed."""
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                yield path.relative_to(ROOT), path.read_text("utf-8")


@cache
def parsed(text: str) -> ast.Module:
    """The tree of a module, of which several counts are taken."""
    return ast.parse(text)


def records(text: str) -> Iterator[str]:
    """The names of the record types that a module declares."""
    if "@record" not in text and "@entity" not in text:
        return  # most modules, which need not be parsed
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.ClassDef):
            marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
            if marks & {"record", "entity"}:
                yield node.name


def methods(text: str) -> Iterator[tuple[int, str]]:
    """How many methods each class of a module has, those that it inherits not counted, and its name."""
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.ClassDef):
            yield sum(isinstance(each, ast.FunctionDef) for each in node.body), node.name


def opens_terms(text: str) -> bool:
    """Whether a module reads the terms of an affine expression, rather than asking the expression.

    Terms of other things are told apart by what they belong to: tiles and units of a machine, nests of products, a
    class of its own (``self``).
    """
    apart = {"tiles", "unit", "block", "products", "loops", "nest", "statement", "machine", "self"}
    return ".terms" in text and any(
        isinstance(node, ast.Attribute) and node.attr == "terms" and _owner(node.value) not in apart
        for node in ast.walk(parsed(text))
    )


def _owner(value: ast.expr) -> str:
    """The last name of what an attribute is taken of."""
    if isinstance(value, ast.Attribute):
        return value.attr
    return value.id if isinstance(value, ast.Name) else ""


def imports(text: str) -> Iterator[str]:
    """What a module imports, at its top and inside functions, but not for types alone: modules, and names in them."""
    todo: list[ast.AST] = [parsed(text)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif not isinstance(node, ast.If) or ast.unparse(node.test) != "TYPE_CHECKING":
            todo += (each for each in ast.iter_child_nodes(node) if isinstance(each, HOLDING))


def rings(every: Mapping[str, Collection[str]]) -> Iterator[list[str]]:
    """The modules that import each other, in a ring or several that meet; of each module what it imports."""
    reached: dict[str, set[str]] = {}
    for name in every:
        todo, reached[name] = [name], set[str]()
        while todo:
            new = every.keys() & set(every[todo.pop()]) - reached[name]
            reached[name] |= new
            todo += new
    for name in sorted(every):
        ring = [each for each in sorted(reached[name]) if name in reached[each]]
        if ring[:1] == [name] and 1 < len(ring):
            yield ring


def module_name(path: Path) -> str:
    """The name by which a module is imported."""
    parts = path.with_suffix("").parts
    name = ".".join(parts if parts[0] == "ilang" else ("ilang", *parts))
    return name.removesuffix(".__init__")


@cache
def counts() -> dict[str, int]:
    """Every count by what it says."""
    every = list(modules())
    names = [name for _, text in every for name in records(text)]
    core = "core/calculus/"
    syntax = (
        "core/notation/",
        "core/build/routines.py",
        "core/ir/syntax.py",
        "core/passes/expressions.py",
    )
    imported = {module_name(path): set(imports(text)) - {module_name(path)} for path, text in every}
    return {
        "lines": sum(text.count("\n") for _, text in every),
        "modules": len(every),
        "record types": len(names),
        "record types for whole numbers": sum(name in WHOLE_NUMBERS for name in names),
        "methods of the longest class": max(each for _, text in every for each in methods(text))[0],
        "modules that open terms outside core/calculus": sum(
            opens_terms(text)
            for path, text in every
            if not path.as_posix().startswith((core, *syntax))
        ),
        "modules in rings of imports": sum(map(len, rings(imported))),
    }


if __name__ == "__main__":
    for title, number in counts().items():
        print(f"{number:7,}  {title}")
