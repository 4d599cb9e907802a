"""The oracle: what a shaped program means, in NumPy. Slow, and obviously right.

Every assignment is evaluated over its whole domain at once: each operand becomes an array over the axes, the scalar
is applied to those, the reduced axes are folded with the operator's own ufunc. Nothing is fused, reordered or kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang.core.calculus.affine import Affine, Within
from ilang.core.diagnostic import DataError
from ilang.core.dtype import FLOATS, INTEGER_ENDS
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Position, Scalar
from ilang.core.ir.shaped import Assignment, Shaped, View
from ilang.core.ops import OPS, PRIMITIVES, Primitive

Array = npt.NDArray[Any]

NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}


class Extreme:
    """A maximum or minimum to which -0 is smaller than 0; NumPy gives one of them, which depends on the processor."""

    def __init__(self, ufunc: Any, winner: float) -> None:
        """``winner`` is the zero that wins over the other one."""
        self._ufunc, self._winner = ufunc, winner

    def __call__(self, x: Any, y: Any) -> Any:
        """The extreme of two arrays, element by element."""
        return self._signed(self._ufunc(x, y), self._wins(x) | self._wins(y))

    def reduce(self, x: Any, initial: Any, dtype: Any, **over: Any) -> Any:
        """The extreme of elements and ``initial``, ``over`` such axes and places as NumPy's ``reduce`` takes."""
        result = self._ufunc.reduce(x, initial=initial, dtype=dtype, **over)
        wins = np.logical_or.reduce(self._wins(x), initial=self._wins(initial), **over)
        return self._signed(result, wins)

    def at(self, result: Any, places: Any, x: Any) -> None:
        """Replace each element by the extreme of it and of what meets it."""
        wins = self._wins(result)
        np.logical_or.at(wins, places, self._wins(x))
        self._ufunc.at(result, places, x)
        result[...] = self._signed(result, wins)

    def _wins(self, x: Any) -> Any:
        return np.equal(x, 0) & (np.signbit(x) == np.signbit(self._winner))

    def _signed(self, result: Any, wins: Any) -> Any:
        zero = np.where(wins, self._winner, -self._winner).astype(result.dtype)
        return np.where(np.equal(result, 0), zero, result)


MOST_DIMENSIONS = 64
"""Dimensions of an array of NumPy at most."""
ERF = np.frompyfunc(math.erf, 1, 1)
"""The error function of the C library: NumPy has none."""
SPECIAL: dict[str, Callable[..., Any]] = {
    "max": Extreme(np.maximum, 0.0),
    "min": Extreme(np.minimum, -0.0),
    "tf32": lambda x: _rounded(x, 11),
    "bf16": lambda x: _rounded(x, 8, to_even=True),
    "truth": lambda x: np.not_equal(x, 0),
    "erf": lambda x: np.asarray(ERF(x), getattr(x, "dtype", None)),
}
"""Primitives of which NumPy has no function, or another one."""


def _meaning(primitive: Primitive) -> Callable[..., Any]:
    if primitive.expansion is not None:
        return partial(primitive.expansion, lambda name, *arrays: MEANING[name](*arrays))
    return SPECIAL.get(primitive.name) or getattr(np, primitive.notation.numpy)


MEANING = {primitive.name: _meaning(primitive) for primitive in PRIMITIVES.values()}
"""Every primitive as a function of arrays."""


def _rounded(x: Array, bits: int, *, to_even: bool = False) -> Array:
    """A float with so many significant bits, the nearest one; of two the one further from zero, or that which is even.

    NaN becomes a quiet one, which has no further bits either.
    """
    integer: Any = np.uint32 if x.dtype == np.float32 else np.uint64
    explicit = np.finfo(x.dtype).nmant
    unit, quiet = integer(1 << explicit + 1 - bits), integer(1 << explicit - 1)
    pattern: Any = np.asarray(x).view(integer)
    half = unit // integer(2) - integer(to_even) * (integer(1) - pattern // unit % integer(2))
    nearest = np.where(np.isnan(x), pattern | quiet, pattern + half)
    return np.asarray((nearest & ~(unit - integer(1))).view(x.dtype))


def evaluate(
    shaped: Shaped, arrays: Sequence[Array], extents: Sequence[int], exact: bool = False
) -> list[Array]:
    """The outputs of a program.

    Args:
        shaped: the program.
        arrays: its inputs, of the types and shapes that ``shaped`` and ``extents`` say.
        extents: one per size of the program.
        exact: compute every float in float64, whatever its type.
    """
    values = values_of(shaped, arrays, extents, exact)
    return [values[number] for number in shaped.outputs]


def values_of(
    shaped: Shaped, arrays: Sequence[Array], extents: Sequence[int], exact: bool = False
) -> list[Array]:
    """The value of every node of a program, as ``evaluate`` computes it."""
    check_ranks(shaped)
    values: list[Array] = []
    types = _types(exact)
    with np.errstate(all="ignore"):
        for number, node in enumerate(shaped.nodes):
            dtype = types[shaped.tensors[number].dtype]
            if isinstance(node, Assignment):
                _check_lookups(shaped, node, values, extents)
                dims = tuple(extents[size] for size in shaped.tensors[number].dims)
                values.append(_assign(node, values, dims, extents, types).astype(dtype))
            elif isinstance(node, View):
                dims = tuple(extents[size] for size in shaped.tensors[number].dims)
                values.append(values[node.value].reshape(dims))
            else:
                values.append(np.asarray(arrays[node.number]).astype(dtype))
    return values


def check_ranks(shaped: Shaped) -> None:
    """Refuse a program of more dimensions than an array of NumPy has.

    Raises:
        DataError: E0769.
    """
    for node, tensor in zip(shaped.nodes, shaped.tensors, strict=True):
        subject, rank = f"{tensor.name} has", len(tensor.dims)
        if isinstance(node, Assignment) and rank < len(node.sizes):
            subject, rank = f"`{node.text}` walks", len(node.sizes)
        if MOST_DIMENSIONS < rank:
            message = f"{subject} {rank} axes, and arrays of NumPy have {MOST_DIMENSIONS} at most"
            raise DataError("E0769", message, node.span, "compose some axes to one: `(a b)`")


def _check_lookups(
    shaped: Shaped, node: Assignment, values: Sequence[Array], extents: Sequence[int]
) -> None:
    """Refuse what is looked up where an element of it is no index.

    Raises:
        DataError: E0746.
    """
    for each in node.lookups():
        places, extent = values[each.source], extents[each.size]
        outside = np.argwhere((places < 0) | (extent <= places))
        if not len(outside):
            continue
        first, owner = tuple(outside[0]), shaped.owner(ValueId(each.source))
        at = np.ravel_multi_index(first, places.shape) if first else 0
        position = np.unravel_index(at, values[owner].shape)
        name, size = shaped.tensors[owner].name, shaped.sizes[each.size].name
        element = f"{name}[{','.join(map(str, position))}]" if position else name
        message = (
            f"{element} is {places[first]}, which is no index of axis {size} of extent {extent}"
        )
        help_line = (
            f"an index is at least 0 and below {extent}" if extent else "no index is in range"
        )
        error = DataError("E0746", message, node.span, help_line)
        error.element = name, tuple(map(int, position))
        raise error


def _types(exact: bool) -> dict[str, np.dtype[Any]]:
    if not exact:
        return NUMPY_TYPES
    return {**NUMPY_TYPES, **dict.fromkeys(FLOATS, NUMPY_TYPES["f64"])}


def _assign(
    node: Assignment,
    values: list[Array],
    dims: tuple[int, ...],
    extents: Sequence[int],
    types: dict[str, np.dtype[Any]],
) -> Array:
    domain = tuple(extents[size] for size in node.sizes)
    if 0 in domain:  # before the positions along its other axes take memory
        return _of_nothing(node, values, dims, types)
    indices = _Indices(domain, values, extents)
    operands = _operands(node, values, indices)
    counted = indices.holds(node.guards)
    full = np.broadcast_to(_scalar(node.scalar, operands, types, indices), domain)
    if node.base is not None:
        at = [np.broadcast_to(indices(part), domain) for part in node.target]
        return _onto(node, values[node.base], full, at, np.broadcast_to(counted, domain))
    if node.acc is not None:
        full = _fold(
            node, full.astype(types[node.acc_dtype()]), np.broadcast_to(counted, domain), types
        )
    return _arranged(node, full).reshape(dims)


def _operands(node: Assignment, values: Sequence[Array], indices: _Indices) -> list[Array]:
    """The operands of an assignment over its domain, one for each read."""
    operands: list[Array] = []
    for read in node.reads:
        element = _read(values[read.value], [indices(part) for part in read.index])
        holds = indices.holds(read.guards)
        operands.append(np.where(holds, element, element.dtype.type(0)))
    return operands


def operands_at(
    node: Assignment, values: Sequence[Array], extents: Sequence[int], place: int
) -> list[Array]:
    """The elements of each read that one element of the result is computed from; none for a node with a base.

    Args:
        node: the assignment.
        values: that of every node.
        extents: one per size of the program.
        place: the number of the element in the memory of the result.
    """
    domain = tuple(extents[size] for size in node.sizes)
    if node.base is not None or 0 in domain:
        return []
    kept = node.output_axes()
    at = dict(zip(kept, np.unravel_index(place, [domain[axis] for axis in kept]), strict=True))
    index = tuple(at.get(axis, slice(None)) for axis in range(len(domain)))
    operands = _operands(node, values, _Indices(domain, values, extents))
    return [np.asarray(np.broadcast_to(each, domain)[index]) for each in operands]


def _of_nothing(
    node: Assignment, values: list[Array], dims: tuple[int, ...], types: dict[str, np.dtype[Any]]
) -> Array:
    """The result of an assignment without iterations: its base, or what a fold of nothing gives."""
    if node.base is not None:
        return values[node.base]
    if node.acc is None:
        return np.zeros(dims)
    return np.full(dims, _identity(node, types))


def _identity(node: Assignment, types: dict[str, np.dtype[Any]]) -> Any:
    """The value of an accumulator before anything is folded, which is that of a fold of nothing."""
    op = OPS[node.acc or ""]
    assert op.identity is not None
    start: float | int = op.identity
    if node.acc_dtype() in INTEGER_ENDS and abs(op.identity) == float("inf"):
        start = INTEGER_ENDS[node.acc_dtype()][op.identity > 0]
    return types[node.acc_dtype()].type(start)


def _onto(node: Assignment, base: Array, full: Array, index: list[Array], counted: Array) -> Array:
    """A copy of the base with elements stored, or accumulated into, where that counts."""
    result = np.array(base)
    at = tuple(part[counted] for part in index)
    if node.acc is None:
        result[at] = full[counted]
        return result
    primitive = OPS[node.acc].binary
    assert primitive is not None
    ufunc: Any = MEANING[primitive]
    if at:
        ufunc.at(result, at, full[counted].astype(result.dtype))
    else:  # several iterations, and the one element of a scalar
        result = ufunc.reduce(full[counted], initial=result, dtype=result.dtype)
    return np.asarray(result)


class _Indices:
    """Indices over the domain of an assignment, and where conditions on them hold."""

    def __init__(
        self, domain: tuple[int, ...], values: Sequence[Array], extents: Sequence[int]
    ) -> None:
        self.positions = [_along(axis, extent, len(domain)) for axis, extent in enumerate(domain)]
        self.values = values
        self.extents = extents

    def __call__(self, part: Affine) -> Any:
        """An index as an array over the domain."""
        offset = part.offset + sum(c * self.extents[size] for c, size in part.sizes)
        position = sum(
            (c * self.positions[axis] for c, axis in part.steps()), start=np.asarray(offset)
        )
        for c, each in part.looked:
            index = [self(inner) for inner in each.index]
            position = position + c * _read(self.values[each.source], index).astype(np.int64)
        return position

    def holds(self, guards: Sequence[Within]) -> Array:
        """A mask of the elements of the domain where every guard holds."""
        holds = np.asarray(True)
        for guard in guards:
            index = self(guard.index)
            holds = holds & (index >= 0)
            if guard.size is not None:
                holds = holds & (index < self.extents[guard.size])
        return holds


def _along(axis: int, extent: int, rank: int) -> Array:
    return np.arange(extent).reshape([-1 if n == axis else 1 for n in range(rank)])


def _read(value: Array, index: list[Any]) -> Array:
    """The elements at an index over the domain; anything where it is outside, which guards leave out.

    One index over all elements, since NumPy takes fewer arrays as indices than arrays have dimensions.
    """
    place = np.asarray(0)
    for part, extent in zip(index, value.shape, strict=True):
        place = place * extent + np.clip(part, 0, max(0, extent - 1))
    if value.size == 0:
        return np.zeros(place.shape, value.dtype)
    return np.asarray(value.reshape(-1)[place])


def _scalar(
    scalar: Scalar,
    operands: list[Array],
    types: dict[str, np.dtype[Any]],
    at: Callable[[Affine], Any],
) -> Any:
    """A scalar over the domain; ``at`` gives the values of an index."""
    assert scalar.dtype is not None
    match scalar:
        case Operand():
            return operands[scalar.number]
        case Constant():
            return np.asarray(scalar.value, dtype=types[scalar.dtype])
        case Position():
            return np.asarray(at(scalar.index), dtype=types["i64"])
        case Convert():
            return _converted(_scalar(scalar.argument, operands, types, at), scalar.dtype, types)
        case Apply():
            return MEANING[scalar.primitive](
                *(_scalar(a, operands, types, at) for a in scalar.arguments)
            )
        case _:
            raise AssertionError(f"not a scalar of a shaped graph: {scalar}")


def _converted(array: Any, dtype: str, types: dict[str, np.dtype[Any]]) -> Any:
    """A value in another type. A float becomes an integer towards zero; what does not fit gives the smallest value."""
    if dtype not in INTEGER_ENDS or array.dtype.kind != "f":
        return array.astype(types[dtype])
    low, high = INTEGER_ENDS[dtype]
    fits = (array >= float(low)) & (array < float(high + 1))
    return np.where(fits, np.where(fits, array, 0).astype(types[dtype]), types[dtype].type(low))


def _fold(node: Assignment, full: Array, counted: Array, types: dict[str, np.dtype[Any]]) -> Array:
    """Fold the reduced axes where they count, keeping them with extent 1."""
    assert node.acc is not None
    op = OPS[node.acc]
    assert op.binary is not None
    dtype, start = types[node.acc_dtype()], _identity(node, types)
    ufunc: Any = MEANING[op.binary]
    over = {"axis": node.reduced_axes(), "keepdims": True, "where": counted}
    return np.asarray(ufunc.reduce(full, initial=start, dtype=dtype, **over))


def _arranged(node: Assignment, full: Array) -> Array:
    kept = node.output_axes()
    index = [slice(None) if axis in kept else 0 for axis in range(full.ndim)]
    present = [axis for axis in range(full.ndim) if axis in kept]
    return np.transpose(full[tuple(index)], [present.index(axis) for axis in kept])
