"""Graphs that mix index expressions, specifications and operations between tensors: one inference for all of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import ShapeError
from ilang.codegen.call.specialization import Specialization
from ilang.core import pipeline
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Slice, Stack
from ilang.core.ir.shaped import Shaped
from tests.mixing import Mixing

Array = npt.NDArray[Any]


def results(shaped: Shaped, arrays: Sequence[Array]) -> list[Array]:
    """What C and NumPy compute, which agree."""
    program = Specialization(shaped)
    extents = pipeline.fit(shaped, [array.shape for array in arrays])
    found = program.plan(extents).fresh(list(arrays))
    oracle = program.evaluate(arrays, extents, None)
    many = isinstance(found, tuple)
    for one, other in zip(found if many else [found], oracle if many else [oracle], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    return list(found) if many else [found]


def arange(*shape: int) -> Array:
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


def checked(graph: Graph, *runs: Sequence[Array]) -> list[list[Array]]:
    """The results for several sets of arrays by one program, which are those of programs of fixed extents."""
    ranks = [array.ndim for array in runs[0]]
    shaped = pipeline.infer(graph, ranks=ranks)
    found = []
    for arrays in runs:
        found.append(results(shaped, arrays))
        fixed = pipeline.infer(graph, shapes=[array.shape for array in arrays])
        for one, other in zip(found[-1], results(fixed, arrays), strict=True):
            np.testing.assert_array_equal(one, other)
    return found


def fitted(
    graph: Graph, shapes: Sequence[tuple[int, ...]], known: Sequence[tuple[int, ...]] | None
) -> tuple[int, ...]:
    """The extents of arrays of these shapes, known to the inference or not."""
    shaped = pipeline.infer(graph, ranks=[len(shape) for shape in shapes], shapes=known)
    return pipeline.fit(shaped, shapes)


def refused(graph: Graph, *shapes: tuple[int, ...]) -> str:
    """The code of the refusal of these shapes: the same, whether the extents are known before or not."""
    codes = []
    for known in (None, shapes):
        with pytest.raises(ShapeError) as caught:
            fitted(graph, shapes, known)
        codes.append(caught.value.code)
    assert codes[0] == codes[1], codes
    return codes[0]


def test_operations_stand_between_index_expressions() -> None:
    m = Mixing(2)
    both = m.operation("pointwise", m.index("i+i~i", 0, 0), 1)
    graph = m.graph(both, m.index("+i~.", both))
    assert [size.fixed for size in pipeline.infer(graph, ranks=[1, 1]).sizes] == [None]
    sets = [(arange(extent), arange(extent) + 1) for extent in (3, 7)]
    for (x, y), (sums, total) in zip(sets, checked(graph, *sets), strict=True):
        np.testing.assert_allclose(sums, 2 * x + y)
        np.testing.assert_allclose(total, (2 * x + y).sum())
    assert refused(graph, (3,), (4,)) == "E0505"


def test_sums_of_sizes_are_eliminated() -> None:
    """A window's positions are known, and are also the sum of what a later window divides them into."""
    m = Mixing(2)
    leaf = m.leaf((), (), (3,))
    both = m.operation("pointwise", leaf, 1)
    part = m.index("(i+u)*u~iu >> +iu~i", both, 0)
    graph = m.graph(m.einsum("o<+k; k => o", both, part))
    for extent in (1, 2, 3):
        x, y, data = arange(extent), arange(3), arange(3) + 1
        ((found,),) = checked(graph, (x, y, data))
        whole = y + data
        inner = np.convolve(whole, x[::-1], "valid")
        np.testing.assert_allclose(found, np.convolve(whole, inner[::-1], "valid"))
    m = Mixing()
    leaf = m.leaf((), (), (3,))
    first = m.index("(i+u)*u~iu >> +iu~i", leaf, leaf)
    second = m.index("(i+u)*u~iu >> +iu~i", first, leaf)
    with pytest.raises(ShapeError) as caught:
        fitted(m.graph(m.einsum("o<+k; k => o", first, second)), [(3,)], None)
    assert caught.value.code == "E0518"


def test_a_result_repeats_operands_that_lack_axes() -> None:
    m = Mixing(2)
    graph = m.graph(m.operation("pointwise", 0, 1))
    (found,), _ = checked(graph, (arange(3, 2), arange(2)), (arange(4, 5), arange(5)))
    np.testing.assert_allclose(found, arange(3, 2) + arange(2))


def test_a_parameter_takes_a_size_that_comes_at_run_time() -> None:
    m = Mixing(1)
    w = m.leaf((), None, (4,), kind="parameter")
    graph = m.graph(m.index(">i~i", m.operation("compose", w, 0)))
    for extent in (2, 5):
        x, weights = arange(extent), arange(4, extent) - 3
        ((found,),) = checked(graph, (x, weights))
        np.testing.assert_allclose(found, np.maximum(weights @ x, 0))
    assert refused(graph, (3,), (4, 2)) == "E0505"


def test_sizes_of_operations_follow_at_run_time() -> None:
    m = Mixing(2)
    one, other = (m.index("ij~ij", n) for n in range(2))
    stacked = m.operation(Stack(2), one, other)
    woven = m.operation("interleave", one, other)
    row = m.operation(Slice(1, None), m.operation(Stack(0), one, other))
    turned = m.operation("transpose", one)
    graph = m.graph(stacked, woven, row, turned, m.einsum("...i => i...", woven))
    for shape in ((2, 3), (4, 1)):
        x, y = arange(*shape), arange(*shape) + 50
        ((a, b, c, d, e),) = checked(graph, (x, y))
        np.testing.assert_allclose(a, np.stack([x, y]))
        np.testing.assert_allclose(b, np.stack([x, y], -1).reshape(shape[0], -1))
        np.testing.assert_allclose(c, y)
        np.testing.assert_allclose(d, x)
        np.testing.assert_allclose(e, b.T)


def test_windows_and_concatenations_give_sizes_at_run_time() -> None:
    m = Mixing(2)
    leaf = m.leaf((), (), (2,))
    valid = m.einsum("o<+k; k => o", m.index("i~i", 0), 1)
    joined = m.einsum("a; b => a^b", valid, leaf)
    positions = m.index("(y+u-1)*u~yu >> +yu~y", joined, 1)
    k, two = arange(3) + 1, arange(2) + 9
    for extent in (7, 9):
        x = arange(extent)
        ((both, windows),) = checked(m.graph(joined, positions), (x, k, two))
        np.testing.assert_allclose(both, np.concatenate([np.convolve(x, k[::-1], "valid"), two]))
        np.testing.assert_allclose(windows, np.convolve(np.pad(both, 1), k[::-1], "valid"))
    assert refused(m.graph(joined), (2,), (4,), (2,)) == "E0518"


def test_rows_are_read_by_dimensions() -> None:
    m = Mixing(0)
    leaf = m.leaf((2,), (3,), (4,))
    graph = m.graph(m.index("boi~oib", leaf), m.einsum("a|b->c => cb|a", leaf))
    x = arange(2, 4, 3)
    ((one, other),) = checked(graph, (x,))
    np.testing.assert_allclose(one, x.transpose(1, 2, 0))
    np.testing.assert_allclose(other, x.transpose(1, 2, 0))
    m = Mixing(0)
    assert refused(m.graph(m.index("ij~ji", m.leaf((2,), (3,), (4,)))), (2, 4, 3)) == "E0501"


def test_a_fixed_index_reaches_at_run_time() -> None:
    m = Mixing(1)
    leaf = m.leaf((), (), (3,))
    graph = m.graph(m.operation("pointwise", m.index("2j~j", 0), leaf))
    ((found,),) = checked(graph, (arange(4, 3), arange(3)))
    np.testing.assert_allclose(found, arange(4, 3)[2] + arange(3))
    assert refused(graph, (2, 3), (3,)) == "E0574"


def test_a_rank_that_nothing_says_is_refused() -> None:
    m = Mixing(1)
    with pytest.raises(ShapeError) as caught:
        pipeline.infer(m.graph(m.operation("transpose", 0)))
    assert caught.value.code == "E0508"


def test_a_window_along_itself_waits_for_its_extent() -> None:
    """The extent cancels in the number of positions, which is no reason to decide it before there is one."""
    m = Mixing(2)
    product = m.operation("compose", m.leaf((), None, (4,), kind="parameter"), 0)
    graph = m.graph(m.index("(i+u-1)*u~iu >> +iu~i", product, product), 1)
    x, weights = arange(2), arange(4, 2)
    ((windows, _),) = checked(graph, (x, x, weights))
    both = weights @ x
    np.testing.assert_allclose(windows, np.convolve(np.pad(both, 1), both[::-1], "valid"))


def test_a_computed_extent_is_one_axis_however_often_it_is_read() -> None:
    m = Mixing()
    one, weights = m.leaf((), (), (3,)), m.leaf((), None, (3,), kind="parameter")
    joined = m.einsum("a; b => a^b", one, m.operation("compose", weights, one))
    graph = m.graph(m.index("(i+u-1)*u~iu >> +iu~i", joined, joined))
    x, matrix = arange(3), arange(3, 3)
    ((found,),) = checked(graph, (x, matrix))
    both = np.concatenate([x, matrix @ x])
    np.testing.assert_allclose(found, np.convolve(np.pad(both, 1), both[::-1], "valid"), rtol=1e-5)
