"""The number of expressions that a definition is, written out: a call is those of what it calls, and of its own once.

Example:
    in:   op f(x) = x + x;  op g(x) = f(f(x));  op h(x) = repeat(y = x; n in 10) { g(y) }
    out:  f: 1, g: 4, h: 50
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ilang.core.ir import functions as ast
from ilang.core.walks import parts_first

OPERATIONS = ast.Unary, ast.Binary, ast.EinsumTerm, ast.Sliced, ast.Called
Definition = ast.Function | ast.Routine


def least_expressions(
    functions: Iterable[ast.Function], routines: Iterable[ast.Routine], *names: str
) -> dict[str, int]:
    """The number of expressions of each definition, at least: of a count that no number writes one turn is counted.

    With ``names``, those of these definitions and of what they call. Nothing is written out. What stands under a
    condition is not counted.
    """
    definitions: dict[str, Definition] = {each.head.name: each for each in functions}
    definitions |= {each.head.name: each for each in routines}
    counted: dict[str, int] = {}
    operations: dict[str, list[tuple[str, int]]] = {}

    def called(name: str) -> list[str]:
        operations[name] = [(_called(e) or "", n) for e, n in _operations(definitions[name])]
        return [each for each, _ in operations[name] if each in definitions]

    for name in parts_first(names or definitions, called):
        counted[name] = sum(n * (1 + counted.get(each, 0)) for each, n in operations[name])
    return counted


def _called(node: object) -> str | None:
    if isinstance(node, ast.Called) and isinstance(node.component, ast.Reference):
        return node.component.name
    return None


def _operations(definition: Definition) -> Iterator[tuple[object, int]]:
    """The operations and calls of a definition, and how often each is evaluated."""
    parts = definition.body if isinstance(definition, ast.Function) else definition.statements
    todo: list[tuple[object, int]] = [(parts, 1)]
    while todo:
        node, times = todo.pop()
        if isinstance(node, tuple):
            todo += [(each, times) for each in node]
        elif type(node).__module__ == ast.__name__ and not isinstance(node, ast.Condition):
            if isinstance(node, OPERATIONS):
                yield node, times
            turns = times
            if isinstance(node, ast.Repeated) and isinstance(node.over, ast.Number):
                turns = times * max(0, int(node.over.value))
            for name, part in vars(node).items():
                if not name.endswith("span"):
                    todo.append((part, turns if name == "body" else times))
