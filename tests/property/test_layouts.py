"""Programs laid out otherwise in memory mean the same, whatever they are; kernels walk arrays as they lie there."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

from ilang import DataError, Error, elementwise, i
from ilang.core import pipeline
from ilang.core.check.shaped import verify
from ilang.core.ir.shaped import Input
from ilang.core.reference import evaluate
from ilang.core.transform.layouts import laid_out
from tests.property import mixed

pytestmark = pytest.mark.usefixtures("compiled_quickly")  # right values are asked for


def test_random_graphs() -> None:
    """Whatever a graph has, views, look-ups and parts of concatenations among it."""
    moved = 0
    for seed in range(250):
        drawn = mixed.generate(seed)
        arrays = drawn.runs[0 if drawn.fixed is None else drawn.fixed]
        shapes = None if drawn.fixed is None else [array.shape for array in arrays]
        ranks = [array.ndim for array in arrays]
        shaped = pipeline.infer(drawn.graph, [drawn.dtype] * len(arrays), ranks, shapes)
        chance = random.Random(seed)
        wanted = [tuple(chance.sample(range(rank), rank)) for rank in ranks]
        orders = taken(shaped, wanted)
        other = laid_out(shaped, orders)
        verify(other)
        given = [array.transpose(order) for array, order in zip(arrays, orders, strict=True)]
        extents = pipeline.fit(other, [array.shape for array in given])
        assert extents == pipeline.fit(shaped, [array.shape for array in arrays])
        before = evaluate(shaped, arrays, extents)
        for value, one, two in zip(
            other.outputs, before, evaluate(other, given, extents), strict=True
        ):
            order = other.tensors[value].order
            moved += bool(order)
            np.testing.assert_array_equal(one.transpose(order) if order else one, two)
    assert moved > 10


def taken(shaped: object, wanted: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Orders of inputs, but for those that only stand as they are written."""
    from ilang.core.ir.shaped import Shaped

    assert isinstance(shaped, Shaped)
    found = laid_out(shaped, wanted)
    orders = list(wanted)
    for value, node in enumerate(found.nodes):
        if isinstance(node, Input):
            rank = len(found.tensors[value].dims)
            orders[node.number] = found.tensors[value].order or tuple(range(rank))
    return orders


def strides(array: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[int]:
    """The dimensions of an array, the outermost in memory first."""
    return sorted(range(array.ndim), key=lambda dim: -array.strides[dim])


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_results_lie_as_what_they_are_made_of(order: tuple[int, ...], target: str) -> None:
    f = elementwise("f", ["x0 * x1", "sum: x0 + x1", "max 2: x0"])
    rng = np.random.default_rng(3)
    x = rng.random([(3, 4, 5)[dim] for dim in order]).transpose(np.argsort(order))
    y = rng.random(5)
    product, total, most = f(x, y, target=target)
    np.testing.assert_allclose(product, x * y)
    np.testing.assert_allclose(total, x.sum((0, 1)) + y)
    np.testing.assert_allclose(most, x.max(0))
    assert strides(product) == list(order)
    assert strides(most) == [dim - 1 for dim in order if dim]
    out = np.empty(x.shape), np.empty(5), np.empty((4, 5))
    assert f(x, y, out=out, target=target) is out
    np.testing.assert_array_equal(out[0], product)


def test_arrays_that_lie_differently() -> None:
    """Where inputs of all dimensions differ results are C's; sliced and repeated arrays are copied as they lie."""
    f = elementwise("f", ["x0 + x1"])
    x, y = np.arange(12.0).reshape(3, 4), np.asfortranarray(np.ones((3, 4)))
    assert f(x, y, target="numpy").flags.c_contiguous
    assert f(y, y, target="numpy").flags.f_contiguous
    wide = np.arange(48.0).reshape(4, 12).T[::4]
    assert f(wide, wide, target="numpy").flags.f_contiguous
    repeated = np.broadcast_to(np.arange(4.0), (3, 4))
    np.testing.assert_array_equal(f(repeated, y, target="c"), repeated + y)


def test_refusals_speak_of_dimensions_as_written() -> None:
    f = elementwise("f", ["x0 + x1"])
    with pytest.raises(Error) as caught:
        f(np.asfortranarray(np.ones((3, 5))), np.ones(4), target="numpy")
    assert "5 in x0 (dimension 1)" in caught.value.message


def test_layouts_that_are_said() -> None:
    f = elementwise("f", ["x0 * x1", "sum: x0"])
    stored = f.ranked(2, 1, layouts=("F", "C"))
    loops = stored.loops()
    assert "out0[j,i] = in0[j,i] * in1[j]" in loops
    assert loops.count("for j in") == 1  # both outputs are of one nest
    assert "in0  f32[j,i]  j i, stored by dimensions 1 0" in str(stored.explain())
    assert stored.shapes((2, 3), (3,)) == ((2, 3), (3,))
    x, y = np.ones((2, 3)), np.arange(3.0)
    for component in (stored, pickle.loads(pickle.dumps(stored))):
        np.testing.assert_array_equal(component(x, y, target="numpy")[0], x * y)
    for layouts in (("F",), ("F", "C", "C")):
        with pytest.raises(DataError, match="E0701"):
            f.ranked(2, 1, layouts=layouts)
    for layout in ("f", (0, 0), (0,), 3):
        with pytest.raises(DataError, match="E0716"):
            f.ranked(2, 1, layouts=(layout, "C"))


def test_layouts_in_the_schedule() -> None:
    shaped = pipeline.infer(i("ij*j~ij").graph(), ranks=[2, 1])
    program = laid_out(shaped, [(1, 0), (0,)])
    text = pipeline.shapes_text(program)
    assert "in0  f32[j, i]  input, stored by dimensions 1 0" in text
    assert "out  f32[j, i]  ij*j~ij, stored by dimensions 1 0" in text
