"""Stored results of self-tests: inputs that repeat short tables, and what the reference evaluator gives for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang.codegen.targets.session import ExportedFunction
from ilang.core.diagnostic import DataError
from ilang.core.dtype import FLOATS
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Apply, scalars_within
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.record import record
from ilang.core.reference import NUMPY_TYPES, check_ranks, evaluate

Array = npt.NDArray[Any]

TABLE = 61
"""Values of the table that an input repeats: a prime, so that rows of an array differ."""
STRIDE, SHIFT = 17, 5
"""Distances in a table: between the beginnings of inputs of a function, and of two attempts at the same input."""
ATTEMPTS = 4

STORED = 1024
"""Elements of an output that are stored one by one; of a larger one, about ``SAMPLES`` at equal distances."""
SAMPLES = 1000

OUT_OF_RANGE = 4
"""The status of a function that is given an index that is none."""

EPSILON = {"f32": 2.0**-23, "f64": 2.0**-52}
SLACK = 16
"""Roundings that a result may differ by, one more for each term of its sums."""
MOST_TERMS = 1024
MOST_NOISE = 16
"""A factor over what roundings move a result in the evaluator, where hardly anything else moves it."""
NUDGE = 2.0**-20
LARGEST_SCALE = 1024.0


@record
class StoredOutput:
    """Stored results of one output: every ``step``-th element, and how far a float may be from them."""

    values: Any
    step: int
    relative: float
    scale: float


@record
class Case:
    """A function at some extents: where each input begins in its table, and each output.

    ``below`` is what the indices in an input are less than, None of other inputs. Without outputs the function must
    refuse what is no index of its axis.
    """

    extents: tuple[int, ...]
    starts: tuple[int, ...]
    below: tuple[int | None, ...]
    outputs: tuple[StoredOutput, ...] | None

    def status(self) -> int:
        """The status that the function returns."""
        return OUT_OF_RANGE if self.outputs is None else 0


def table(dtype: str, positive: bool) -> Array:
    """Small values, different enough; floats are sixteenths, so that short sums of products are exact."""
    state, values = 1, []
    for _ in range(TABLE):
        state = state * 48271 % 2147483647
        if dtype == "bool":
            values.append(float(state % 2))
        elif dtype in FLOATS:
            k = state % 24
            values.append(
                (k + 8 + (8 <= k)) / 16 if positive else (k + 1) / 16 * (1 - state // 24 % 2 * 2)
            )
        else:
            values.append(float(state % 8 + 2 if positive else state % 13 - 5))
    return np.array(values, NUMPY_TYPES[dtype])


def is_positive(shaped: Shaped) -> bool:
    """Whether a program takes logarithms, powers or roots, which want positive inputs (none of them 1)."""
    return any(
        isinstance(part, Apply) and part.primitive in ("ln", "log", "pow", "sqrt")
        for node in shaped.nodes
        if isinstance(node, Assignment)
        for part in scalars_within(node.scalar)
    )


def inputs_of(
    shaped: Shaped, extents: Sequence[int], starts: Sequence[int], below: Sequence[int | None]
) -> list[Array]:
    """The inputs of a case. Raises DataError E0769: NumPy has no arrays of as many dimensions."""
    check_ranks(shaped)
    arrays, positive = [], is_positive(shaped)
    for value, start, limit in zip(shaped.inputs, starts, below, strict=True):
        tensor = shaped.tensors[value]
        shape = tuple(extents[size] for size in tensor.dims)
        arrays.append(input_of(tensor.dtype, shape, start, limit, positive))
    return arrays


def input_of(
    dtype: str, shape: Sequence[int], start: int, limit: int | None, positive: bool
) -> Array:
    """An input that repeats the table of its type from a place on, or has indices below a limit."""
    places = (start + np.arange(math.prod(shape))) % TABLE
    if limit:
        return (places % limit).astype(NUMPY_TYPES[dtype]).reshape(shape)
    return table(dtype, positive)[places].reshape(shape)


def limits_of(shaped: Shaped, extents: Sequence[int], more: int = 0) -> tuple[int | None, ...]:
    """The limit that elements of each input are below if they are indices; ``more`` than they may have."""
    limits: dict[int, int] = {}
    for node in shaped.nodes:
        for each in node.lookups() if isinstance(node, Assignment) else ():
            extent = extents[each.size] + more
            source = shaped.owner(ValueId(each.source))
            limits[source] = min(extent, limits.get(source, extent))
    return tuple(limits.get(value) for value in shaped.inputs)


def starts_of(shaped: Shaped, attempt: int) -> tuple[int, ...]:
    """The beginning of each input in its table."""
    return tuple((n * STRIDE + attempt * SHIFT) % TABLE for n in range(len(shaped.inputs)))


def case_of(function: ExportedFunction, extents: tuple[int, ...]) -> Case:
    """Results at some extents, for inputs that leave none to the luck of a rounding if there are such."""
    shaped, below = function.shaped, limits_of(function.shaped, extents)
    cases: list[tuple[int, int, Case]] = []

    def exactly(moved: Sequence[Array]) -> list[Array]:
        return evaluate(shaped, moved, extents, exact=True)

    for attempt in range(ATTEMPTS):
        starts = starts_of(shaped, attempt)
        arrays = inputs_of(shaped, extents, starts, below)
        if _is_outside(shaped, arrays, extents):
            return Case(extents, starts, below, None)
        plain = evaluate(shaped, arrays, extents)
        exact = exactly(arrays)
        relative = relative_of(shaped, extents)
        scales = scales_of(exactly, arrays, exact)
        outputs, doubtful = [], 0
        for a, b, moved in zip(plain, exact, scales, strict=True):
            result, unlike = result_of(a, b, relative, moved)
            doubtful += unlike
            scale = max(moved, _noise(a, b, relative, moved))
            samples = result.size if result.size <= STORED else SAMPLES
            outputs.append(sampled(result, samples, relative, scale))
        cases.append((doubtful, attempt, Case(extents, starts, below, tuple(outputs))))
        if not doubtful:
            break
    return min(cases, key=lambda one: one[:2])[2]


def refused_cases(function: ExportedFunction, extents: tuple[int, ...]) -> Iterator[Case]:
    """A case in which an index is out of range, if there is one."""
    shaped = function.shaped
    below = limits_of(shaped, extents, more=1)
    starts = tuple(m - 1 if m else n for n, m in zip(starts_of(shaped, 0), below, strict=True))
    if any(below) and _is_outside(shaped, inputs_of(shaped, extents, starts, below), extents):
        yield Case(extents, starts, below, None)


def _is_outside(shaped: Shaped, arrays: Sequence[Array], extents: Sequence[int]) -> bool:
    """Whether an element that is looked up is no index of its axis."""
    if not any(isinstance(node, Assignment) and node.lookups() for node in shaped.nodes):
        return False
    try:
        evaluate(shaped, arrays, extents)
    except DataError:
        return True
    return False


def result_of(plain: Array, exact: Array, relative: float, scale: float) -> tuple[Array, int]:
    """The result to store, and the number of elements that depend on roundings along the way.

    The exact result is stored where both agree: unlike the other it is the same on every machine, since no two
    libraries round e^x alike.
    """
    if plain.dtype.kind != "f":
        return plain, int(np.count_nonzero(plain != exact))
    with np.errstate(all="ignore"):
        rounded = exact.astype(plain.dtype)
        near = np.abs(exact - plain) <= relative * (np.abs(exact) + scale)
    same = near | (plain == rounded) | (np.isnan(plain) & np.isnan(exact))
    return np.where(near & np.isfinite(rounded), rounded, plain), int(np.count_nonzero(~same))


def sampled(values: Array, most: int, relative: float, scale: float) -> StoredOutput:
    """About so many elements of an array at most, at equal distances, and how far a float may be from them."""
    step = 1 if values.size <= most else -(-values.size // most) | 1
    bounds = (relative, scale) if values.dtype.kind == "f" else (0.0, 0.0)
    return StoredOutput(values.reshape(-1)[::step], step, *bounds)


def power_above(number: float) -> float:
    """The least power of two that is no less than a number."""
    return 2.0 ** math.ceil(math.log2(number))


def _noise(plain: Array, exact: Array, relative: float, scale: float) -> float:
    """The scale at which roundings may move each element by ``MOST_NOISE`` times what they move it in the evaluator.

    Where large terms cancel, as in the gradient of a softmax with one weight of nearly 1, roundings of these terms move
    a result further than any change of the inputs does. Elements that depend on a comparison are left out.
    """
    if plain.dtype.kind != "f":
        return 0.0
    with np.errstate(all="ignore"):
        noise, size = np.abs(exact - plain), np.abs(exact)
        near = noise <= relative * (size + scale)
        most = _largest(np.where(near, MOST_NOISE * noise / relative - size, 0.0))
    return power_above(most) if most > 0 else 0.0


def relative_of(shaped: Shaped, extents: Sequence[int]) -> float:
    """The relative error of a result: so many roundings of its coarsest type, more where sums are long."""
    types = {tensor.dtype for tensor in shaped.tensors}
    terms = sum(
        math.prod(extents[node.sizes[axis]] for axis in node.reduced_axes())
        for node in shaped.nodes
        if isinstance(node, Assignment) and node.acc is not None
    )
    return EPSILON["f32" if "f32" in types else "f64"] * (SLACK + min(terms, MOST_TERMS))


def scales_of(
    run: Callable[[Sequence[Array]], list[Array]], arrays: Sequence[Array], exact: Sequence[Array]
) -> list[float]:
    """The scale on which each output moves with its inputs: roundings move it as such changes of inputs would.

    A power of two, and bounded: a comparison that flips would otherwise excuse anything.
    """
    scales = [0.0] * len(exact)
    for period in (1, 2):
        nudged = []
        for array in arrays:
            signs = 1.0 - np.arange(array.size).reshape(array.shape) // period % 2 * 2
            nudged.append(array * (1.0 + NUDGE * signs) if array.dtype.kind == "f" else array)
        moved = run(nudged)
        for n, (before, after) in enumerate(zip(exact, moved, strict=True)):
            with np.errstate(all="ignore"):
                change = np.abs(after.astype(np.float64) - before) / NUDGE
            scales[n] = max(scales[n], _largest(change))
    bounds = [LARGEST_SCALE * (1.0 + _largest(np.abs(array.astype(np.float64)))) for array in exact]
    return [power_above(min(s, b)) if s else 0.0 for s, b in zip(scales, bounds, strict=True)]


def _largest(array: Array) -> float:
    """The largest finite element, 0 if there is none."""
    finite = array[np.isfinite(array)]
    return float(finite.max()) if finite.size else 0.0
