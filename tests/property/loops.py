"""What a random program means, a third time: plain loops over plain Python numbers, for tiny extents.

Nothing here is shared with NumPy but the arrays that come in and go out: the oracle and ``meaning.py`` both rest on
NumPy, and this file is what would notice if they misread it in the same way.
"""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.property.programs import (
    ARGUMENTS,
    COMPARISONS,
    COPIES,
    FLOATS,
    INTEGERS,
    LOGIC,
    Conversion,
    Expression,
    Input,
    Lookup,
    Number,
    Program,
    axis_extents,
    holds,
    index_of,
    operand_type,
)

Scalar = float | int | bool
Table = dict[tuple[int, ...], Scalar]
BITS = {"i32": 32, "i64": 64}
INFINITY = math.inf
POWERS: dict[float, Callable[[float, str], Scalar]] = {
    0.5: lambda x, t: rounded(root(x), t),
    2.0: lambda x, t: rounded(x * x, t),
    -1.0: lambda x, t: rounded(divided(1.0, x), t),
}


def evaluate(program: Program, arrays: Sequence[npt.NDArray[Any]]) -> list[tuple[Table, str]]:
    """The outputs of a program: their elements by index, and their types."""
    given = dict(zip(program.inputs, arrays, strict=True))
    dtypes = program.dtypes()
    tables: list[Table] = []
    shapes: list[tuple[int, ...]] = []
    table: Table = {}
    shape: tuple[int, ...] = ()
    for number, node in enumerate(program.nodes):
        match node:
            case Input():
                shape = given[number].shape
                table = {at: given[number][at].item() for at in np.ndindex(shape)}
            case Number():
                table, shape = {(): float(node.text)}, ()
            case Conversion():
                table = {at: converted(x, node.dtype) for at, x in tables[node.read].items()}
                shape = shapes[node.read]
            case Expression():
                table, shape = _expression(program, node, tables, shapes)
            case Lookup():
                table, shape = _lookup(program, node, tables, shapes)
        tables.append(table)
        shapes.append(shape)
    return [
        ({at: converted(x, dtypes[n] or "f32") for at, x in tables[n].items()}, dtypes[n] or "f32")
        for n in program.outputs
    ]


def _expression(
    program: Program, node: Expression, tables: list[Table], shapes: list[tuple[int, ...]]
) -> tuple[Table, tuple[int, ...]]:
    extents = axis_extents(node, [shapes[read] for read in node.reads])
    assert extents is not None
    letters = node.letters()
    kept = tuple(extents[letter] for letter in node.output)
    if node.op in ARGUMENTS:
        return _argument(node, tables[node.reads[0]], extents), kept
    compute = _compute(program, node)
    table: Table = {}
    if node.reduces():
        start = identity(node.op or "+", program.dtypes()[len(tables)] or "f32")
        table = dict.fromkeys(itertools.product(*map(range, kept)), start)
    for point in itertools.product(*(range(extents[letter]) for letter in letters)):
        where = dict(zip(letters, point, strict=True))
        operands = [
            tables[read].get(at) if holds(guard, where) else None
            for at, read, guard in zip(
                _indices(node, where),
                node.reads,
                node.guards or ("",) * len(node.reads),
                strict=True,
            )
        ]
        if None in operands and node.reduces():
            continue
        operands = [0 if x is None else x for x in operands]
        if node.at.startswith(":"):
            operands.append(extents[node.at[1:]])
        elif node.at:
            index = index_of(node.at)
            operands.append(sum(c * where[x] for c, x, _ in index.terms) + index.offset)
        at = tuple(where[letter] for letter in node.output)
        table[at] = compute(table[at], operands[0]) if node.reduces() else compute(*operands)
    if node.reduces():
        given = program.dtypes()[len(tables)] or "f32"
        table = {at: converted(x, given) for at, x in table.items()}
    return table, kept


def _lookup(
    program: Program, node: Lookup, tables: list[Table], shapes: list[tuple[int, ...]]
) -> tuple[Table, tuple[int, ...]]:
    """An ordinary expression of what is looked up, point by point; of a scatter without the points of other indices."""
    place, given = (tables[read] for read in node.reads)
    extents = axis_extents(node, [shapes[read] for read in node.reads])
    assert extents is not None
    plain = node.expression(node.reads[1])
    letters = plain.patterns[0]
    extents = {**dict.fromkeys(letters, 1), **extents}
    kept = tuple(extents[letter] for letter in node.output)
    compute = _compute(program, plain)
    table: Table = {}
    dtype = program.dtypes()[len(tables)] or "f32"
    if plain.reduces():
        start = identity(node.op or "+", dtype)
        table = dict.fromkeys(itertools.product(*map(range, kept)), start)
    for point in itertools.product(*(range(extents[letter]) for letter in letters)):
        where = dict(zip(letters, point, strict=True))
        index = int(place[tuple(where[letter] for letter in node.place)])
        if where.setdefault(node.axis, index) != index:
            continue
        x = given[tuple(where[letter] for letter in node.table)]
        at = tuple(where[letter] for letter in node.output)
        table[at] = compute(table[at], x) if plain.reduces() else compute(x)
    return {at: converted(x, dtype) for at, x in table.items()}, kept


def _argument(node: Expression, table: Table, extents: Mapping[str, int]) -> Table:
    """The first position of an extreme element, or of a NaN."""
    (reduced,) = set(node.letters()) - set(node.output)
    best: Table = {}
    found: Table = {}
    for point in itertools.product(*(range(extents[letter]) for letter in node.letters())):
        where = dict(zip(node.letters(), point, strict=True))
        at = tuple(where[letter] for letter in node.output)
        x = table[tuple(where[letter] for letter in node.patterns[0])]
        held = best.get(at, x)
        better = held < x if node.op == ">@" else x < held
        if at not in best or better or (math.isnan(x) and not math.isnan(held)):
            best[at], found[at] = x, where[reduced]
    return found


def _indices(node: Expression, where: dict[str, int]) -> list[tuple[int, ...]]:
    """Where each operand is read at a point; perhaps outside."""
    found = [tuple(where[letter] for letter in pattern) for pattern in node.patterns]
    if node.left:
        indices = [index_of(text) for text in node.left]
        found[0] = tuple(sum(c * where[x] for c, x, _ in i.terms) + i.offset for i in indices)
    return found


def _compute(program: Program, node: Expression) -> Callable[..., Scalar]:
    """The scalar function of an expression; of a reduction, how it takes in one more element."""
    dtypes = program.dtypes()
    met = operand_type(node, dtypes)
    if node.op in LOGIC or node.op == "!!":
        return _logic(node)
    if node.reduces():
        kind = "f32" if met == "bool" else met
        wide = "f64" if kind in FLOATS else kind  # a sum of floats is only rounded at its end
        return lambda total, x: ARITHMETIC[node.op or "+"](
            converted(total, wide), converted(x, wide), wide
        )
    alone = len(node.reads) == 1 and not node.at
    if alone and node.op in COPIES:
        return lambda x: x
    if node.op in COMPARISONS:
        test = COMPARED[node.op]
        return lambda x, y=0: bool(test(converted(x, met), converted(y, met)))
    kind = "f32" if met == "bool" else met
    if alone:
        one = UNARY[node.op]
        return lambda x: one(converted(x, kind), kind)
    two = ARITHMETIC[node.op]
    power = literal(program, node.reads[1]) if node.op == "^" and not node.at else None
    if power in POWERS:
        return lambda x, _: POWERS[power](float(converted(x, kind)), kind)
    return lambda x, y: two(converted(x, kind), converted(y, kind), kind)


def literal(program: Program, value: int) -> float | None:
    """The number that a value is, if the text says so."""
    node = program.nodes[value]
    if isinstance(node, Number):
        return float(node.text)
    inner = literal(program, node.read) if isinstance(node, Conversion) else None
    if inner is None or not isinstance(node, Conversion):
        return None
    return float(converted(inner, "f64" if node.dtype in FLOATS else node.dtype))


def _logic(node: Expression) -> Callable[..., Scalar]:
    if node.op == "!!":
        return lambda x: not bool(x)
    if len(node.reads) == 1 and not node.at and not node.reduces():
        return bool
    test: Callable[[bool, bool], bool] = {
        "&&": operator.and_,
        "||": operator.or_,
        "^^": operator.xor,
    }[node.op]
    return lambda x, y: test(bool(x), bool(y))


def identity(op: str, dtype: str) -> Scalar:
    """What an empty reduction gives."""
    if op in LOGIC:
        return op == "&&"
    if op in (">", "<") and dtype in INTEGERS:
        end: int = 2 ** (BITS[dtype] - 1)
        return -end if op == ">" else end - 1
    return {"+": 0, "*": 1, ">": -INFINITY, "<": INFINITY}[op]


# Scalars


def rounded(x: float, dtype: str) -> float:
    """A number as the nearest of a float type."""
    if dtype == "f64" or math.isnan(x) or math.isinf(x):
        return x
    try:
        return float(struct.unpack("f", struct.pack("f", x))[0])
    except OverflowError:
        return math.copysign(INFINITY, x)


def wrapped(x: int, dtype: str) -> int:
    """A whole number as an integer type holds it."""
    half: int = 2 ** (BITS[dtype] - 1)
    return (x + half) % (2 * half) - half


def converted(x: Scalar, dtype: str) -> Scalar:
    """A number in a type; a float becomes an integer towards zero, what does not fit the smallest."""
    if dtype == "bool":
        return bool(x)
    if dtype in FLOATS:
        return rounded(float(x), dtype)
    if isinstance(x, float):
        half = 2 ** (BITS[dtype] - 1)
        return int(x) if math.isfinite(x) and -half <= x < half else -half
    return wrapped(int(x), dtype)


def fitted(x: Scalar, dtype: str) -> Scalar:
    """An arithmetic result in its type."""
    return wrapped(int(x), dtype) if dtype in INTEGERS else rounded(float(x), dtype)


def divided(x: float, y: float) -> float:
    """A quotient as IEEE 754 says."""
    if y != 0:
        return x / y
    if x == 0 or math.isnan(x) or math.isnan(y):
        return math.nan
    return math.copysign(INFINITY, x) * math.copysign(1.0, y)


def root(x: float) -> float:
    """A square root; NaN below zero."""
    return math.nan if x < 0 else math.sqrt(x)


def logarithm(x: float) -> float:
    """A natural logarithm; NaN below zero."""
    if x == 0:
        return -INFINITY
    return math.nan if x < 0 else math.log(x)


def exponential(x: float) -> float:
    """A power of e."""
    try:
        return math.exp(x)
    except OverflowError:
        return INFINITY


def power(x: float, y: float) -> float:
    """A power as C says."""
    odd = math.isfinite(y) and y == int(y) and int(y) % 2 == 1
    try:
        return math.pow(x, y)
    except OverflowError:
        return -INFINITY if x < 0 and odd else INFINITY
    except ValueError:
        if x == 0:
            return math.copysign(INFINITY, x) if odd else INFINITY
        return math.nan


def extreme(x: Scalar, y: Scalar, larger: bool) -> Scalar:
    """The larger or smaller of two, to which -0 is smaller than 0; NaN if one is."""
    if math.isnan(x) or math.isnan(y):
        return math.nan
    return (max if larger else min)((x, math.copysign(1, x)), (y, math.copysign(1, y)))[0]


ARITHMETIC: dict[str, Callable[[Any, Any, str], Scalar]] = {
    "+": lambda x, y, t: fitted(x + y, t),
    "*": lambda x, y, t: fitted(x * y, t),
    "-": lambda x, y, t: fitted(x - y, t),
    "/": lambda x, y, t: rounded(divided(x, y), t),
    ">": lambda x, y, _: extreme(x, y, True),
    "<": lambda x, y, _: extreme(x, y, False),
    "^": lambda x, y, t: rounded(power(x, y), t),
    "$": lambda x, y, t: rounded(divided(logarithm(y), logarithm(x)), t),
}
UNARY: dict[str, Callable[[Any, str], Scalar]] = {
    "-": lambda x, t: fitted(-x, t),
    "/": lambda x, t: rounded(divided(1.0, x), t),
    ">": lambda x, t: extreme(converted(0, t), x, True),
    "<": lambda x, t: extreme(converted(0, t), x, False),
    "^": lambda x, t: rounded(exponential(x), t),
    "$": lambda x, t: rounded(logarithm(x), t),
}
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    ">>": operator.gt,
    ">=": operator.ge,
    "<<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
