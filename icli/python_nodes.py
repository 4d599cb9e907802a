"""Parts of an expression as Python writes it, by what they are: whole numbers, slices, names, functions."""

from __future__ import annotations

import ast
from collections.abc import Container, Sequence

from ilang.icli.array_functions import Array, MismatchError, NoSpellingError, UnknownNameError

MODULES = (
    "np",
    "numpy",
    "torch",
    "math",
    "jnp",
    "jax",
    "tf",
    "scipy",
    "F",
    "nn",
    "einx",
    "einops",
    "xp",
    "cp",
)
"""Names that are no arrays in an expression of Python."""


def range_taken(part: ast.Slice, extent: int) -> range:
    """The positions that a slice takes. Raises: NoSpellingError (its ends are no whole numbers)."""
    ends = [
        None if each is None else whole_number(each) for each in (part.lower, part.upper, part.step)
    ]
    if (part.lower, part.upper, part.step).count(None) != ends.count(None) or ends[2] == 0:
        raise NoSpellingError
    return range(*slice(*ends).indices(extent))


def sliced(part: ast.Slice, letter: str, extent: int) -> tuple[str, int]:
    """The index that walks what a slice takes of an axis, ``1+2j:3`` without parentheses, and how many these are.

    Raises:
        NoSpellingError: Its ends are no whole numbers.
        MismatchError: It takes nothing.
    """
    taken = range_taken(part, extent)
    if not taken:
        message = f"`{ast.unparse(part)}` takes none of {extent} positions"
        raise MismatchError(message, f"the first is 0, the last {extent - 1}")
    step = abs(taken.step)
    sign = "-" if taken.step < 0 else "+"
    start = f"{taken.start}{sign}" if taken.start or sign == "-" else ""
    return f"{start}{step if 1 < step else ''}{letter}:{len(taken)}", len(taken)


def is_whole(part: ast.expr) -> bool:
    """Whether a part of an index is ``:``, all of an axis."""
    return isinstance(part, ast.Slice) and not (part.lower or part.upper or part.step)


def number_text(node: ast.Constant) -> str:
    """A number as a program writes it. Raises: NoSpellingError (it is no number)."""
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise NoSpellingError
    return repr(node.value)


def whole_numbers(nodes: Sequence[ast.expr]) -> list[int]:
    """The sizes that arguments are, one by one or in one tuple. Raises: NoSpellingError."""
    parts = [
        part
        for each in nodes
        for part in (each.elts if isinstance(each, ast.Tuple | ast.List) else [each])
    ]
    sizes = [whole_number(part) for part in parts]
    if None in sizes:
        raise NoSpellingError
    return [size for size in sizes if size is not None]


def places_listed(node: ast.List, array: Array, axis: int) -> Array:
    """The places that a list names along an axis, those below 0 counted from its end.

    Raises: NoSpellingError, MismatchError (there is no such place).
    """
    extent = array.shape[axis]
    for n in (given := whole_numbers([node])):
        if not -extent <= n < extent:
            raise no_place(array, axis, n)
    places = [n + extent if n < 0 else n for n in given]
    return Array(str(places), (len(places),))


def no_place(array: Array, axis: int, at: int) -> MismatchError:
    """The error for a place beyond the ends of an axis."""
    extent = array.shape[axis]
    message = f"{array.named()} has {extent} positions along axis {axis}, and {at} is none of them"
    return MismatchError(message, f"the first is 0, the last {extent - 1}, or -1")


def whole_number(node: ast.expr) -> int | None:
    """The whole number that a node is, with a sign or without; None for another one."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return sign * number
        case _:
            return None


def called(node: ast.Call, arrays: Container[str]) -> tuple[str, list[ast.expr]]:
    """The name of a function and its arguments: the array of a method is the first."""
    match node.func:
        case ast.Name(name):
            return name, node.args
        case ast.Attribute(owner, name):
            return name, node.args if _is_module(owner, arrays) else [owner, *node.args]
        case _:
            raise NoSpellingError


def _is_module(node: ast.expr, arrays: Container[str]) -> bool:
    """Whether this is ``np`` or a part of one. Raises: UnknownNameError (it names nothing)."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name) or node.id in arrays:
        return False
    if node.id not in MODULES:
        raise UnknownNameError(node.id)
    return True


def expression_of(text: str) -> ast.expr | None:
    """A text as an expression of Python; None where it is none."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def value_names(tree: ast.expr) -> list[str]:
    """The names in an expression that are neither functions that it calls nor modules, in order."""
    nodes = [*ast.walk(tree)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in called]
    in_order = sorted(names, key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(node.id for node in in_order if node.id not in MODULES))


def is_number(node: ast.expr) -> bool:
    """Whether this is a number that is written out, with a sign or without."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    is_named = isinstance(node, ast.Name) and node.id in ("nan", "inf")
    return is_named or isinstance(node, ast.Constant)
