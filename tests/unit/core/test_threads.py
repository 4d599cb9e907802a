"""Which loops threads share, and sums in blocks: never which result comes out."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import i
from ilang.core.calculus.affine import Affine, Within
from ilang.core.calculus.extent import size as size_of
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.kernel import Buffer, For, If, Kernel, Program, Store, statements_within
from ilang.core.ir.scalar import Constant
from ilang.core.ir.shaped import Size
from ilang.core.passes.cpu.threads import kernel_to_threads
from ilang.core.pipeline import graph_of, infer, lower, text_component

ATTENTION = """hid*hjd~hijd >> +hijd~hij >> (I & >hij~hi) >> hij-hi~hij >> ^hij~hij
    >> (I & +hij~hi) >> hij/hi~hij >> hij*hjd~hijd >> +hijd~hid"""
CONVOLUTION = "nc(y+u-1)(x+v-1)*ocuv~noyxcuv >> +noyxcuv~noyx"


def program(text: str, **known: object) -> Program:
    return lower(infer(graph_of(text_component(text), "f"), **known))  # type: ignore[arg-type]


def shared(p: Program) -> list[str]:
    """The variables of the parallel loops of all kernels, outermost first."""
    return [
        kernel.names[s.variable]
        for kernel in p.kernels
        for s in statements_within(kernel.body)
        if isinstance(s, For) and s.parallel
    ]


def marked(size: int, extent: int | None, *terms: tuple[int, int], inner: int | None = 8) -> bool:
    """Whether a loop over v0, with one over v1 inside, is parallel that writes at this index of a buffer."""
    sizes = (Size("n", None, ()), Size("outer", extent, ()), Size("inner", inner, ()))
    out = BufferId(0)
    store = Store(out, (Affine(terms),), Constant(0, "f32"))
    nest = For(VariableId(0), size_of(1), (For(VariableId(1), size_of(2), (store,)),))
    kernel = Kernel("k0", (nest,), ("a", "b"), (), ())
    buffers = (Buffer("out", "f32", (size,), "output"),)
    (made,) = kernel_to_threads(Program("f", sizes, buffers, (), (out,), (kernel,))).kernels
    return any(isinstance(s, For) and s.parallel for s in made.body)


def test_indices_that_tell_iterations_apart() -> None:
    assert marked(0, None, (8, 0), (1, 1))
    assert marked(0, 99999, (1, 0), (99999, 1), inner=None)
    assert marked(0, None, (1, 0), inner=99999)


def test_indices_that_do_not() -> None:
    assert not marked(0, None, (7, 0), (1, 1))
    assert not marked(0, None, (8, 0), (1, 1), inner=None)
    assert not marked(0, None, (1, 0), (99999, 1), inner=None)
    assert not marked(0, 100000, (1, 0), (99999, 1), inner=None)
    assert not marked(0, None, (1, 1), inner=99999)
    assert not marked(0, 99999, (-1, 0), (99999, 1))


def test_a_role_chooses_the_loop() -> None:
    assert shared(program("ij~ij || i j | j:p")) == ["j"]
    assert shared(program("ij~ij || i j | i:p")) == ["i"]
    assert shared(program("ij~ij || i j | i:q")) == []


def test_a_short_nest_is_not_shared() -> None:
    assert shared(program("-ij~ij", shapes=[(16, 16)])) == []
    assert shared(program("+ij~.", shapes=[(16, 16)])) == []


@pytest.mark.parametrize(
    "shape", [(0, 3), (3, 0), (1, 1), (7, 5), (1, 300_000), (300_000, 1), (700, 900)]
)
def test_blocks_give_the_same_with_any_number_of_threads(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    found = [i("+ij~.")(x, threads=threads) for threads in (1, 2, 3, 7)]
    assert all(np.array_equal(found[0], other) for other in found)
    np.testing.assert_allclose(found[0], x.sum(dtype=np.float64), rtol=1e-5, atol=1e-5)


OF_COLUMNS = [
    "+ij~j",
    "+ij~j || i j",
    "+ij~j | i:8 | i j i'",
    ">ij~j || i j",
    "+ij~j | i:512 | i i' j",
]


@pytest.mark.parametrize(
    "text",
    [
        "(I & I) >> (+ij~j & (^ij~ij >> +ij~j))",
        "(^ij~ij & -ij~ij) >> (+ij~j | +ij~j)",
        "(^ij~ij & -ij~ij) >> (+ij~j || i j | >ij~j || i j)",
        "(I & +ij~j) >> ij-j~ij >> (+ij~j & (^ij~ij >> +ij~j) & -ij~ij)",
    ],
)
def test_sums_of_columns_that_share_loops(text: str) -> None:
    """Loops that are open around several sums are around none of their chunks."""
    for shape in ((9, 70), (4_001, 70), (70, 2_100)):
        x = np.random.default_rng(8).standard_normal(shape).astype(np.float32)
        f = i(text)
        results = f(x, threads=1)
        for threads in (2, 5):
            assert all(map(np.array_equal, results, f(x, threads=threads)))
        for one, other in zip(results, f(x, target="numpy"), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)


def test_known_columns_are_in_blocks_where_they_are_few_and_long() -> None:
    def chunked(rows: int, columns: int) -> bool:
        return shared(program("+ij~j", shapes=[(rows, columns)]))[:1] == ["b"]

    assert chunked(65_536, 64)
    assert chunked(4_096, 512)
    assert chunked(8_192, 5_000)
    assert not chunked(
        4_096, 5_000
    )  # threads share strips of columns: a block would have few terms
    assert not chunked(64, 64)
    assert not chunked(15, 60_000)  # a block would have no more terms than accumulators
    assert not chunked(4_096, 1_000_000)  # nor are there several blocks of so many


@pytest.mark.deep
@pytest.mark.parametrize("text", OF_COLUMNS)
@pytest.mark.parametrize(
    "shape",
    [
        (0, 3),
        (3, 0),
        (1, 1),
        (7, 5),
        (1, 300_000),
        (300_000, 1),
        (9_001, 77),
        (77, 9_001),
        (520, 2_050),
    ],
)
def test_blocks_of_columns_give_the_same_with_any_number_of_threads(
    text: str, shape: tuple[int, int]
) -> None:
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    results = [i(text)(x, threads=threads) for threads in (1, 2, 3, 7)]
    assert all(np.array_equal(results[0], other) for other in results)
    np.testing.assert_allclose(results[0], i(text)(x, target="numpy"), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("extent", [0, 1, 31, 131_072, 262_145, 9_000_001])
def test_blocks_of_one_loop(extent: int) -> None:
    x = np.random.default_rng(4).integers(-9, 9, extent).astype(np.int32)
    for threads in (1, 3):
        assert i("+i~.")(x, threads=threads) == x.sum()
        if extent:
            assert i(">i~.")(x, threads=threads) == x.max()


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_attention_with_any_number_of_threads(heads: int) -> None:
    random = np.random.default_rng(5)
    q, k, v = (random.standard_normal((heads, 130, 16)).astype(np.float32) for _ in range(3))
    found = [i(ATTENTION)(q, k, v, threads=threads) for threads in (1, 2, 5)]
    assert all(np.array_equal(found[0], other) for other in found)
    expected = i(ATTENTION)(q, k, v, target="numpy")
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("images", [0, 1, 2])
def test_a_convolution_with_any_number_of_threads(images: int) -> None:
    random = np.random.default_rng(6)
    x = random.standard_normal((images, 9, 33, 35)).astype(np.float32)
    w = random.standard_normal((17, 9, 3, 3)).astype(np.float32)
    found = [i(CONVOLUTION)(x, w, threads=threads) for threads in (1, 2, 5)]
    assert all(np.array_equal(found[0], other) for other in found)
    expected = i(CONVOLUTION)(x, w, target="numpy")
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-3)


def test_short_calls_with_threads_write_where_they_are_told() -> None:
    double = i("i+i~i")
    x, out = np.arange(100_000, dtype=np.float32), np.empty(100_000, np.float32)
    for threads in (2, 3, 2, 1):
        out[...] = 0
        assert double(x, x, out=out, threads=threads) is out
        assert np.array_equal(out, x + x)


@pytest.mark.parametrize("extents", [(3000, 300), (40, 2100), (1, 7), (0, 5)])
def test_one_text_sums_one_block_of_terms_or_several(extents: tuple[int, int]) -> None:
    """A block alone is the result; results of several are kept and added, the same ones for any number of threads."""
    text = "+ij~j"
    loops = i(text).loops()
    assert loops.count("for i in 0..") == 1
    assert loops.count("if 1 < n_out_blocks") == 2
    x = np.random.default_rng(0).standard_normal(extents).astype(np.float32)
    one, two = (i(text).dynamic()(x, threads=threads) for threads in (1, 2))
    assert np.array_equal(one, two)
    np.testing.assert_allclose(one, x.astype(np.float64).sum(0), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("least", "is_shared"), [(1, True), (2, False)])
def test_a_loop_of_one_iteration_shares_nothing(least: int, is_shared: bool) -> None:
    """What is stored where a loop has one iteration alone is in no other's way; where it has two, it is."""
    sizes = (Size("n", None, ()), Size("m", None, ()))
    out, parts = BufferId(0), BufferId(1)
    buffers = (Buffer("out", "f32", (1,), "output"), Buffer("parts", "f32", (0, 1), "output"))
    first, second = Affine(((1, 0),)), Affine(((1, 1),))
    several = If(
        (Within(Affine((), least), 0),),
        (Store(parts, (first, second), Constant(0, "f32")),),
        (Store(out, (second,), Constant(0, "f32")),),
    )
    nest = For(VariableId(0), size_of(0), (For(VariableId(1), size_of(1), (several,)),))
    kernel = Kernel("k0", (nest,), ("a", "b"), (), ())
    given = Program("f", sizes, buffers, (), (out, parts), (kernel,))
    (loop,) = kernel_to_threads(given).kernels[0].body
    assert isinstance(loop, For)
    assert loop.parallel is is_shared
