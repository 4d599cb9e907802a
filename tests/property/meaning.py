"""What a random program means: values in NumPy, each with how far another right answer may be from it.

An answer is exact where every order of computing it gives the same bits; ``error`` is None or 0 there. Library
functions and sums of inexact terms open a gap, and every operation carries it on. Where a gap decides something (a
comparison, the sign under a root, an overflow) the error is infinite: any answer is accepted there.

``error`` bounds the difference of two right answers, not that of one from the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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

Array = npt.NDArray[Any]

TYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}
UNIT = {"f32": 2.0**-24, "f64": 2.0**-53}
"""Largest relative error of one rounding; two answers may be rounded to either side."""
DIGITS = {"f32": 2.0**24, "f64": 2.0**53}
LARGEST = {"f32": 3.4e38, "f64": 1.79e308}
SMALLEST = {"f32": 1.2e-38, "f64": 2.3e-308}
TINY = {"f32": 1e-44, "f64": 5e-323}
LIBRARY = 16
"""Units in the last place by which two mathematical libraries may differ."""
SUM_BOUND = 1e-5
"""A float32 sum is within this of the sum of magnitudes (docs/language.md section 5)."""
INFINITY = float("inf")


@dataclass(frozen=True)
class Known:
    """A value, its error (None: exact everywhere), and whether the sign of its zeros is open."""

    value: Array
    error: Array | None = None
    zeros: bool = False


def evaluate(program: Program, arrays: Sequence[Array]) -> list[Known]:
    """The outputs of a program; ``arrays`` are its inputs in its order."""
    given = dict(zip(program.inputs, arrays, strict=True))
    dtypes = program.dtypes()
    values: list[Known] = []
    with np.errstate(all="ignore"):
        for number, node in enumerate(program.nodes):
            match node:
                case Input():
                    values.append(Known(given[number]))
                case Number():
                    values.append(Known(np.asarray(float(node.text))))
                case Conversion():
                    values.append(convert(values[node.read], dtypes[node.read], node.dtype))
                case Expression():
                    values.append(_expression(program, node, values, dtypes))
                case Lookup():
                    met = _met(node, values, dtypes[node.reads[1]])
                    plain, known = node.expression(len(values)), [*values, met]
                    types = [*dtypes[:number], dtypes[node.reads[1]]]
                    values.append(_expression(program, plain, known, types))
    return [_typed(values[n], dtypes[n]) for n in program.outputs]


def _typed(known: Known, dtype: str | None) -> Known:
    return convert(known, None, "f32") if dtype is None else known


def literal(program: Program, value: int) -> float | None:
    """The number a value is, if it is a written constant, perhaps converted."""
    node = program.nodes[value]
    if isinstance(node, Conversion):
        inner = literal(program, node.read)
        if inner is None or node.dtype in FLOATS:
            return inner
        return float(int(inner)) if node.dtype in INTEGERS else float(inner != 0)
    return float(node.text) if isinstance(node, Number) else None


def _expression(
    program: Program, node: Expression, values: list[Known], dtypes: Sequence[str | None]
) -> Known:
    met = operand_type(node, dtypes)
    letters = node.letters()
    types = [dtypes[read] for read in node.reads]
    given = original = [values[read] for read in node.reads]
    if node.reduces():
        given, met = [_typed(given[0], types[0])], "f32" if met == "bool" else met
        given = [truth(given[0]) if node.op in LOGIC else convert(given[0], types[0], met)]
    outside = identity((node.op or "+").removesuffix("@"), met) if node.reduces() else 0
    operands = _placed(node, given, original, outside)
    types += ["i64"] if node.at else []
    if node.op in ARGUMENTS:
        return _argument(node, operands[0], letters)
    if node.reduces():
        result = _reduction(node, operands[0], met, letters)
        return _unrounded(program, node, values, operands[0], result)
    if node.op in LOGIC or node.op == "!!":
        return _logic(node.op, [truth(_typed(o, t)) for o, t in zip(operands, types, strict=True)])
    if len(operands) == 1 and node.op in COPIES:
        return _typed(operands[0], types[0])
    brought = [convert(known, t, met) for known, t in zip(operands, types, strict=True)]
    if met == "bool" and node.op not in COMPARISONS:
        met = "f32"
        brought = [convert(known, "bool", "f32") for known in brought]
    if node.op in COMPARISONS:
        return _compared(node.op, brought, met)
    if len(brought) == 1:
        return _unary(node.op, brought[0], met)
    if node.op == "-" and literal(program, node.reads[0]) == 0:
        # GCC 12 takes `0.0f - (float)n` for `-(float)n`, without any optimisation: -0 in place of 0.
        return replace(POINTWISE["-"](met, brought), zeros=True)
    power = literal(program, node.reads[1]) if node.op == "^" and not node.at else None
    if power in POWERS:
        return POINTWISE[POWERS[power]](met, [brought[0]])
    return POINTWISE[node.op](met, brought)


def _met(node: Lookup, values: Sequence[Known], dtype: str | None) -> Known:
    """What is looked up, over the letters that are counted, and of a scatter over its axis.

    There it is what the operator starts from where an index is another one.
    """
    place, known = values[node.reads[0]].value, values[node.reads[1]]
    extents = axis_extents(node, [place.shape, known.value.shape])
    assert extents is not None
    letters = node.expression(0).patterns[0]
    extents = {**dict.fromkeys(letters, 1), **extents}
    grid = np.meshgrid(*(np.arange(extents[letter]) for letter in letters), indexing="ij")
    where = dict(zip(letters, grid, strict=True))
    shape = tuple(extents[letter] for letter in letters)
    index = np.broadcast_to(place[tuple(where[letter] for letter in node.place)], shape)
    if not node.extent:
        where[node.axis] = index
    chosen = tuple(where[letter] for letter in node.table)
    value = np.broadcast_to(known.value[chosen], shape)
    error = None if known.error is None else np.broadcast_to(known.error[chosen], shape)
    if node.extent:
        start = identity(node.op or "+", dtype or "f32")
        same = index == where[node.axis]
        value = np.where(same, value, value.dtype.type(start))
        error = None if error is None else np.where(same, error, 0.0)
    return replace(known, value=value, error=error)


def _unrounded(
    program: Program, node: Expression, values: Sequence[Known], known: Known, result: Known
) -> Known:
    """A sum of products, of which a machine may round each or add it unrounded.

    A sum that takes them unrounded is not exact where a product was rounded, and finite where one alone overflows.
    """
    terms, letters = program.nodes[node.reads[0]], node.letters()
    if not isinstance(terms, Expression) or terms.op != "*" or terms.reduces():
        return result
    if (node.op or "+") != "+" or result.value.dtype.kind != "f":
        return result
    factors = [values[read] for read in terms.reads]
    reduced = tuple(at for at, letter in enumerate(letters) if letter not in node.output)
    dtype = "f32" if result.value.dtype == TYPES["f32"] else "f64"
    if not _fine(factors, dtype):
        magnitude = np.where(np.isfinite(known.value), abs(_wide(known)), 0.0).sum(axis=reduced)
        gap = UNIT[dtype] * (np.asarray(magnitude) + 2 * abs(_wide(result)))
        gap = np.where(np.isfinite(result.value), np.maximum(gap, _error(result)), _error(result))
        result = replace(result, error=gap if gap.any() else None)
    finite = [np.isfinite(each.value) for each in _placed(terms, factors, factors, 0)]
    both = Known(np.logical_and.reduce(np.broadcast_arrays(*finite)))
    (placed,) = _placed(node, [both], [both], False)
    overflows = placed.value & np.isinf(known.value)
    met = np.isnan(result.value) & ~np.isnan(np.where(overflows, 0, known.value).sum(axis=reduced))
    return replace(result, error=np.where(met, INFINITY, _error(result))) if met.any() else result


def _fine(factors: Sequence[Known], dtype: str) -> bool:
    """Whether no product of these is rounded in a type: multiples of a 256th, and few digits hold any product."""
    largest = 1.0
    for known in factors:
        finite = _wide(known)[np.isfinite(known.value)] * 256
        if (finite != np.round(finite)).any():
            return False
        largest *= float(np.max(abs(finite), initial=0.0))
    return largest < DIGITS[dtype]


def _argument(node: Expression, known: Known, letters: str) -> Known:
    """The position of an extreme element; anything where an element may be another one."""
    (axis,) = (at for at, letter in enumerate(letters) if letter not in node.output)
    if not known.value.shape[axis]:  # refused
        known = Known(np.zeros([n or 1 for n in known.value.shape]))
    find = np.argmax if node.op == ">@" else np.argmin
    value = np.asarray(find(known.value, axis=axis), np.int64)
    error = None
    if known.error is not None:
        open_ = np.any(np.broadcast_to(known.error, known.value.shape) != 0, axis=axis)
        error = np.where(open_, INFINITY, 0.0)
    left = [letter for letter in letters if letter in node.output]
    order = [left.index(letter) for letter in node.output]
    return Known(np.transpose(value, order), None if error is None else np.transpose(error, order))


def _placed(
    node: Expression, given: Sequence[Known], original: Sequence[Known], outside: float
) -> list[Known]:
    """The operands along all axes, ``outside`` where an index or a guard does not hold, and a position."""
    letters = node.letters()
    if node.left:
        given = [gathered(node, given, outside), *given[1:]]
    operands = [
        laid_out(known, pattern, letters)
        for known, pattern in zip(given, node.patterns, strict=True)
    ]
    if not node.guards and not node.at:
        return operands
    found = axis_extents(node, [known.value.shape for known in original])
    assert found is not None
    extents = {letter: found[letter] for letter in letters}
    guards = node.guards or ("",) * len(operands)
    operands = [
        guarded(known, guard, extents, outside)
        for known, guard in zip(operands, guards, strict=True)
    ]
    return [*operands, positions(node.at, extents)] if node.at else operands


POWERS = {0.5: "sqrt", 2.0: "square", -1.0: "recip"}


def identity(op: str, dtype: str) -> float:
    """What a reduction starts from."""
    if op in LOGIC:
        return op == "&&"
    if op in (">", "<") and dtype in INTEGERS:
        ends = np.iinfo(TYPES[dtype])
        return int(ends.min if op == ">" else ends.max)
    return {"+": 0, "*": 1, ">": -INFINITY, "<": INFINITY}[op]


def gathered(node: Expression, given: Sequence[Known], outside: float) -> Known:
    """The first operand of an expression with affine indices, a dimension per letter of them."""
    extents = axis_extents(node, [known.value.shape for known in given])
    assert extents is not None
    known, pattern = given[0], node.patterns[0]
    shape = tuple(extents[letter] for letter in pattern)
    inside = np.ones(shape, dtype=bool)
    places, at = [], 0
    for text, extent in zip(node.left, known.value.shape, strict=True):
        index = index_of(text)
        place = np.full(shape, index.offset)
        for coefficient, letter, _ in index.terms:
            along = np.arange(extents[letter]).reshape(
                [-1 if n == at else 1 for n in range(len(shape))]
            )
            place, at = place + coefficient * along, at + 1
        inside &= (place >= 0) & (place < extent)
        places.append(place)
    chosen = tuple(place[inside] for place in places)
    value = np.full(shape, known.value.dtype.type(outside))
    value[inside] = known.value[chosen]
    if known.error is None:
        return replace(known, value=value)
    error = np.zeros(shape)
    error[inside] = known.error[chosen]
    return replace(known, value=value, error=error)


def guarded(known: Known, guards: str, extents: dict[str, int], outside: float) -> Known:
    """An operand along all axes, ``outside`` where a guard does not hold."""
    if not guards:
        return known
    grid = np.meshgrid(*map(np.arange, extents.values()), indexing="ij", sparse=True)
    inside = np.broadcast_to(
        holds(guards, dict(zip(extents, grid, strict=True)), np.asarray(True)),
        tuple(extents.values()),
    )
    value = np.where(inside, known.value, known.value.dtype.type(outside))
    error = None if known.error is None else np.where(inside, known.error, 0.0)
    return replace(known, value=value, error=error)


def positions(text: str, extents: dict[str, int]) -> Known:
    """The value of a sum of axes, along all of them, or the extent of one."""
    if text.startswith(":"):
        return Known(np.full(tuple(extents.values()), extents[text[1:]], np.int64))
    grid = np.meshgrid(*map(np.arange, extents.values()), indexing="ij")
    along = dict(zip(extents, grid, strict=True))
    index = index_of(text)
    value = sum((c * along[letter] for c, letter, _ in index.terms), start=np.asarray(index.offset))
    return Known(np.asarray(value, np.int64))


def laid_out(known: Known, pattern: str, letters: str) -> Known:
    """A value along the axes ``letters``: diagonals taken, dimensions in order, 1 where a letter is missing."""

    def lay(array: Array) -> Array:
        for letter in dict.fromkeys(pattern):
            places = [at for at, other in enumerate(now[0]) if other == letter]
            while len(places) > 1:
                array = np.diagonal(array, axis1=places[0], axis2=places[-1])
                left = [c for at, c in enumerate(now[0]) if at not in (places[0], places[-1])]
                now[0] = "".join(left) + letter
                places = [at for at, other in enumerate(now[0]) if other == letter]
        present = [letter for letter in letters if letter in now[0]]
        array = np.transpose(array, [now[0].index(letter) for letter in present])
        lengths = dict(zip(present, array.shape, strict=True))
        return array.reshape([lengths.get(letter, 1) for letter in letters])

    now = [pattern]
    value = lay(known.value)
    now = [pattern]
    return replace(known, value=value, error=None if known.error is None else lay(known.error))


# Errors


def _error(known: Known) -> Array:
    return np.zeros(known.value.shape) if known.error is None else known.error


def _wide(known: Known) -> Array:
    return np.asarray(known.value, dtype=np.float64)


def _opened(dtype: str, result: Array, gap: Any, operands: Sequence[Known], zeros: bool) -> Known:
    """A result whose operands have errors: ``gap`` where one has, rounding added; infinite where it is not finite."""
    touched = np.zeros(result.shape, dtype=bool)
    for known in operands:
        if known.error is not None:
            touched = touched | (known.error != 0)
    wide = np.asarray(result, dtype=np.float64)
    error = np.where(touched, gap + 2 * UNIT[dtype] * abs(wide) + TINY[dtype], 0.0)
    risky = ~(abs(wide) + error < LARGEST[dtype]) | np.isnan(error)
    error = np.where(touched & risky, INFINITY, error)
    return Known(result, error if error.any() else None, zeros)


def _exact(operands: Sequence[Known]) -> bool:
    return all(known.error is None for known in operands)


def _unsettled(known: Known) -> Known:
    """A value of integers or truths is exact or open, nothing between."""
    if known.error is None:
        return known
    error = np.where(known.error != 0, INFINITY, 0.0)
    return replace(known, error=error if error.any() else None)


def _either(operands: Sequence[Known], shape: tuple[int, ...]) -> Array:
    error = np.zeros(shape)
    for known in operands:
        if known.error is not None:
            error = np.maximum(error, known.error)
    return error


# Pointwise arithmetic


def _simple(
    function: Callable[..., Array], gap: Callable[..., Array]
) -> Callable[[str, list[Known]], Known]:
    """An operation that every machine rounds alike: exact if its operands are."""

    def apply(dtype: str, operands: list[Known]) -> Known:
        result = np.asarray(function(*(known.value for known in operands)))
        zeros = any(known.zeros for known in operands)
        if _exact(operands):
            return Known(result, None, zeros)
        if dtype in INTEGERS:
            return _unsettled(Known(result, _either(operands, result.shape)))
        values = [_wide(known) for known in operands]
        errors = [_error(known) for known in operands]
        return _opened(dtype, result, gap(*values, *errors), operands, zeros)

    return apply


def _larger(one: Array, other: Array) -> Array:
    """The maximum, to which -0 is smaller than 0."""
    return np.where((one == 0) & (other == 0), one + other, np.maximum(one, other))


def _smaller(one: Array, other: Array) -> Array:
    """The minimum, to which -0 is smaller than 0."""
    return np.where((one == 0) & (other == 0), -(-one - other), np.minimum(one, other))


def _divide(dtype: str, operands: list[Known]) -> Known:
    over, under = operands
    result = np.asarray(np.divide(over.value, under.value))
    zeros = over.zeros or under.zeros
    a, b, e, f = _wide(over), abs(_wide(under)), _error(over), _error(under)
    room = b - f
    gap = np.where(room > 0, (e + abs(a / b) * f) / np.where(room > 0, room, 1.0), INFINITY)
    open_sign = np.broadcast_to((b == 0) & under.zeros, result.shape)
    known = (
        Known(result, None, zeros)
        if _exact(operands)
        else _opened(dtype, result, gap, operands, zeros)
    )
    return _open_where(known, open_sign)


def _open_where(known: Known, where: Array) -> Known:
    if not where.any():
        return known
    return replace(known, error=np.where(where, INFINITY, _error(known)))


def _recip(dtype: str, operands: list[Known]) -> Known:
    one = Known(np.ones((), dtype=TYPES[dtype]))
    return _divide(dtype, [one, operands[0]])


def _sqrt(dtype: str, operands: list[Known]) -> Known:
    known = operands[0]
    result = np.asarray(np.sqrt(known.value))
    if known.error is None:
        return Known(result, None, known.zeros)
    room = _wide(known) - known.error
    gap = np.where(room > 0, known.error / np.sqrt(np.where(room > 0, room, 1.0)), INFINITY)
    return _opened(dtype, result, gap, operands, known.zeros)


def _library(dtype: str, result: Array, carried: Any, operands: Sequence[Known]) -> Known:
    """The result of a library function: off by some units in the last place even if its operands are exact."""
    wide = np.asarray(result, dtype=np.float64)
    own = np.where(np.isfinite(wide), LIBRARY * UNIT[dtype] * abs(wide), 0.0)
    own = own + np.where((wide != 0) & (abs(wide) < 2 * SMALLEST[dtype]), TINY[dtype], 0.0)
    if _exact(operands):
        return Known(result, own if own.any() else None)
    return Known(result, _error(_opened(dtype, result, carried, operands, False)) + own)


def _exp(dtype: str, operands: list[Known]) -> Known:
    result = np.asarray(np.exp(operands[0].value))
    known = _library(dtype, result, abs(result) * np.expm1(_error(operands[0])), operands)
    vanished = (result == 0) & (np.isfinite(operands[0].value))
    return replace(known, error=_error(known) + TINY[dtype]) if vanished.any() else known


def _ln(dtype: str, operands: list[Known]) -> Known:
    known = operands[0]
    result = np.asarray(np.log(known.value))
    error = _error(known)
    room = _wide(known) - error
    gap = np.where(room > 0, error / np.where(room > 0, room, 1.0), INFINITY)
    return _library(dtype, result, gap, operands)


def _log(dtype: str, operands: list[Known]) -> Known:
    base, argument = (_ln(dtype, [known]) for known in operands)
    return _divide(dtype, [argument, base])


def _pow(dtype: str, operands: list[Known]) -> Known:
    base, power = operands
    result = np.asarray(np.power(base.value, power.value))
    a, b, e, f = abs(_wide(base)), _wide(power), _error(base), _error(power)
    room = np.where(a - e > 0, a - e, 1.0)
    change = abs(b) * e / room + abs(np.log(np.where(a > 0, a, 1.0))) * f
    sure = (a - e > 0) & (change < 0.1) & ((_wide(base) > 0) | (f == 0))
    known = _library(dtype, result, np.where(sure, 2 * abs(result) * change, INFINITY), operands)
    known = replace(known, zeros=True)
    # Which neighbour of a subnormal or of the largest number a power is differs between libraries.
    edge = abs(np.asarray(result, np.float64))
    near = (edge < 2 * SMALLEST[dtype]) & (a != 0) & np.isfinite(a) & np.isfinite(b)
    return _open_where(
        known, (near & (edge != 0)) | np.broadcast_to((a == 0) & base.zeros, result.shape)
    )


POINTWISE: dict[str, Callable[[str, list[Known]], Known]] = {
    "+": _simple(np.add, lambda _a, _b, e, f: e + f),
    "-": _simple(np.subtract, lambda _a, _b, e, f: e + f),
    "*": _simple(np.multiply, lambda a, b, e, f: abs(a) * f + abs(b) * e + e * f),
    "neg": _simple(np.negative, lambda _a, e: e),
    "square": _simple(np.square, lambda a, e: 2 * abs(a) * e + e * e),
    ">": _simple(_larger, lambda _a, _b, e, f: np.maximum(e, f)),
    "<": _simple(_smaller, lambda _a, _b, e, f: np.maximum(e, f)),
    "/": _divide,
    "recip": _recip,
    "sqrt": _sqrt,
    "exp": _exp,
    "ln": _ln,
    "$": _log,
    "^": _pow,
}


def _unary(op: str, known: Known, dtype: str) -> Known:
    if op in (">", "<"):
        return POINTWISE[op](dtype, [Known(np.zeros((), TYPES[dtype])), known])
    return POINTWISE[{"-": "neg", "/": "recip", "^": "exp", "$": "ln"}[op]](dtype, [known])


# Comparisons, logic, conversions

COMPARED = {
    ">>": np.greater,
    ">=": np.greater_equal,
    "<<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def _compared(op: str, operands: list[Known], dtype: str) -> Known:
    if len(operands) == 1:
        operands = [operands[0], Known(np.zeros((), TYPES[dtype]))]
    one, other = operands
    result = np.asarray(COMPARED[op](one.value, other.value))
    if _exact(operands):
        return Known(result)
    if dtype not in FLOATS:
        return _unsettled(Known(result, _either(operands, result.shape)))
    total = _error(one) + _error(other)
    apart = abs(_wide(one) - _wide(other))
    unsure = (total > 0) & ~(apart > total)
    return Known(result, np.where(unsure, INFINITY, 0.0) if unsure.any() else None)


def truth(known: Known) -> Known:
    """Whether values differ from 0; NaN does."""
    result = np.asarray(known.value != 0)
    if known.error is None:
        return Known(result)
    if known.value.dtype.kind != "f":
        return _unsettled(Known(result, known.error))
    unsure = (known.error > 0) & ~(abs(_wide(known)) > known.error)
    return Known(result, np.where(unsure, INFINITY, 0.0) if unsure.any() else None)


def _logic(op: str, operands: list[Known]) -> Known:
    values = [known.value for known in operands]
    if op == "!!":
        return replace(operands[0], value=np.logical_not(values[0]))
    if len(operands) == 1:
        return operands[0]
    function = {"&&": np.logical_and, "||": np.logical_or, "^^": np.logical_xor}[op]
    result = np.asarray(function(*values))
    if _exact(operands):
        return Known(result)
    error = _either(operands, result.shape)
    if op != "^^":
        decides = op == "||"
        for known in operands:
            error = np.where((known.value == decides) & (_error(known) == 0), 0.0, error)
    return Known(result, error if error.any() else None)


def convert(known: Known, source: str | None, target: str) -> Known:
    """A value in another type (``source`` None: a constant, which takes the type as it is)."""
    if source == target:
        return known
    value = known.value
    if target == "bool":
        return truth(known)
    if target in INTEGERS and value.dtype.kind == "f":
        return _cut(known, target)
    result = value.astype(TYPES[target])
    if known.error is None:
        return Known(result, None, known.zeros)
    if target in INTEGERS or value.dtype.kind != "f":
        return _unsettled(Known(result, known.error))
    return _opened(target, result, known.error, [known], known.zeros)


def _cut(known: Known, target: str) -> Known:
    """Floats as integers: towards zero; what does not fit gives the smallest.

    With -fno-trapping-math GCC 12 takes ``(float)(int)x`` for ``truncf(x)``, which keeps the sign of -0.5: a zero cut
    from a float may become either zero when it is a float again.
    """
    wide = _wide(known)
    lowest, highest = np.iinfo(TYPES[target]).min, np.iinfo(TYPES[target]).max
    end = float(2 ** (31 if target == "i32" else 63))
    inside = (wide >= -end) & (wide < end)
    result = np.where(inside, np.trunc(np.where(inside, wide, 0.0)), lowest)
    exact = np.where(inside, result, 0.0).astype(TYPES[target])
    exact = np.where(inside, exact, TYPES[target].type(lowest))
    if known.error is None:
        return Known(exact, None, True)
    sure = np.trunc(wide - known.error) == np.trunc(wide + known.error)
    sure = sure & (abs(result) < highest / 2)
    error = np.where((known.error > 0) & ~sure, INFINITY, 0.0)
    return Known(exact, error if error.any() else None, True)


# Reductions


def _reduction(node: Expression, known: Known, dtype: str, letters: str) -> Known:
    axes = tuple(n for n, letter in enumerate(letters) if letter not in node.output)
    op = node.op or "+"
    if op in LOGIC:
        return _logic_reduced(op, known, axes)
    if op in (">", "<"):
        return _extreme(op, known, dtype, axes)
    if dtype in INTEGERS:
        function = np.add if op == "+" else np.multiply
        result = function.reduce(known.value, axis=axes, dtype=TYPES[dtype])
        return _unsettled(Known(np.asarray(result), _most(known.error, axes)))
    return (_sum if op == "+" else _product)(known, dtype, axes)


def _most(error: Array | None, axes: tuple[int, ...]) -> Array | None:
    return None if error is None else np.asarray(np.max(error, axis=axes, initial=0.0))


def _logic_reduced(op: str, known: Known, axes: tuple[int, ...]) -> Known:
    function = {"&&": np.logical_and, "||": np.logical_or, "^^": np.logical_xor}[op]
    result = np.asarray(function.reduce(known.value, axis=axes))
    if known.error is None:
        return Known(result)
    error = np.asarray(_most(known.error, axes))
    if op != "^^":
        decides = (known.value == (op == "||")) & (known.error == 0)
        error = np.where(np.any(decides, axis=axes), 0.0, error)
    return Known(result, error if error.any() else None)


def _extreme(op: str, known: Known, dtype: str, axes: tuple[int, ...]) -> Known:
    function = np.maximum if op == ">" else np.minimum
    result = np.asarray(function.reduce(known.value, axis=axes, initial=identity(op, dtype)))
    if dtype in FLOATS:  # one zero of the sign that wins decides
        wins = (known.value == 0) & (np.signbit(known.value) == (op == "<"))
        zero = np.where(np.any(wins, axis=axes) == (op == ">"), 0.0, -0.0)
        result = np.where(result == 0, zero, result).astype(result.dtype)
    if known.error is None:
        return Known(result, None, known.zeros)
    if dtype in INTEGERS:
        return _unsettled(Known(result, _most(known.error, axes)))
    error = np.asarray(_most(known.error, axes))
    sure = np.any(np.isnan(known.value) & (known.error == 0), axis=axes)
    error = np.where(sure, 0.0, np.where(np.isfinite(result) | (error == 0), error, INFINITY))
    return Known(result, error if error.any() else None, known.zeros)


def _sum(known: Known, dtype: str, axes: tuple[int, ...]) -> Known:
    """A sum is exact if no order of it rounds: its terms are multiples of one power of 2, and few digits hold it."""
    wide = _wide(known)
    result = np.add.reduce(wide if dtype == "f32" else known.value, axis=axes)
    result = np.asarray(result).astype(TYPES[dtype])
    count = int(np.prod([wide.shape[axis] for axis in axes]))
    finite = np.where(np.isfinite(wide), wide, 0.0)
    magnitude = np.asarray(np.sum(abs(finite), axis=axes))
    fineness = np.select(
        [finite == np.round(finite), finite * 256 == np.round(finite * 256)], [1.0, 256.0], INFINITY
    )
    exact = magnitude * np.max(fineness, axis=axes, initial=1.0) < DIGITS[dtype]
    bound = 4 * count * UNIT[dtype]
    rounding = (min(bound, SUM_BOUND) if dtype == "f32" else bound) * magnitude
    rounding = (
        rounding + 2 * UNIT[dtype] * abs(np.where(np.isfinite(result), result, 0)) + TINY[dtype]
    )
    error = np.where(exact, 0.0, rounding)
    if known.error is not None:
        carried = np.asarray(np.sum(known.error, axis=axes))
        error = np.where(carried > 0, rounding + carried, error)
        error = np.where((carried > 0) & ~np.isfinite(result), INFINITY, error)
    else:
        error = np.where(np.isfinite(result), error, 0.0)
    error = np.where(magnitude > LARGEST[dtype] / 4, INFINITY, error)
    return Known(result, error if error.any() else None, known.zeros)


def _product(known: Known, dtype: str, axes: tuple[int, ...]) -> Known:
    """A product is exact if all terms are whole and few digits hold that of their magnitudes."""
    wide = _wide(known)
    result = np.asarray(np.multiply.reduce(known.value, axis=axes, dtype=TYPES[dtype]))
    count = int(np.prod([wide.shape[axis] for axis in axes]))
    size = abs(wide)
    solid = np.where(np.isfinite(size) & (size > 0), size, 1.0)
    above = np.asarray(np.prod(np.maximum(solid, 1.0), axis=axes))
    below = np.asarray(np.prod(np.minimum(solid, 1.0), axis=axes))
    whole = np.all(~np.isfinite(wide) | (wide == np.round(wide)), axis=axes)
    steady = (above < LARGEST[dtype] / 4) & (below > 4 * SMALLEST[dtype])
    exact = whole & (above < DIGITS[dtype])
    rounding = 2 * count * UNIT[dtype] * abs(np.asarray(result, np.float64))
    error = np.where(exact, 0.0, np.where(np.isfinite(result), rounding, 0.0))
    if known.error is not None:
        relative = known.error / np.where(size > 0, size, 1.0)
        relative = np.where((size == 0) & (known.error > 0), INFINITY, relative)
        grown = np.asarray(np.prod(1 + relative, axis=axes)) - 1
        gap = np.where(grown > 0, abs(np.asarray(result, np.float64)) * grown + rounding, error)
        lost = (grown > 0) & (~np.isfinite(result) | ~np.isfinite(grown))
        error = np.where(lost, INFINITY, gap)
    error = np.where(steady | (exact & np.isfinite(result)), error, INFINITY)
    return Known(result, error if error.any() else None, known.zeros)


# Comparing


def difference(got: Array, want: Known) -> str | None:
    """The first element where an answer is wrong, in words; None if there is none."""
    value, error = want.value, np.broadcast_to(_error(want), want.value.shape)
    if got.shape != value.shape or got.dtype != value.dtype:
        return f"{got.dtype}{list(got.shape)} in place of {value.dtype}{list(value.shape)}"
    with np.errstate(all="ignore"):
        good = got == value
        if value.dtype.kind == "f":
            good = good | (np.isnan(got) & np.isnan(value))
            apart = abs(np.asarray(got, np.float64) - np.asarray(value, np.float64))
            good = good | (apart <= error)
            if not want.zeros:
                good = good & ((np.signbit(got) == np.signbit(value)) | (value != 0) | (error > 0))
        good = good | (error == INFINITY)
    if good.all():
        return None
    at = tuple(int(n) for n in np.argwhere(~good)[0])
    count = int(np.size(good) - np.count_nonzero(good))
    return (
        f"{got[at]!r} in place of {value[at]!r} (error {error[at]:.3g}) at {list(at)}, {count} such"
    )
