"""Results of windows and of few terms, accumulated in registers, against the evaluator: random shapes and steps."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

from ilang import einx, i

pytestmark = pytest.mark.usefixtures("compiled_quickly")

SEEDS = range(9200, 9240)
EXTENTS = (1, 3, 4, 5, 7, 9, 12, 14, 15, 16, 17, 20, 24, 31, 33, 63, 64, 65, 80, 130)


def program(rng: random.Random) -> tuple[str, list[tuple[int, ...]]]:
    """A reduction of windows or of columns, and the shapes of its inputs."""
    lead, channels = rng.choice(("", "n")), rng.choice(("", "c"))
    step = rng.choice(("", "", "2", "3"))
    width = rng.choice((1, 2, 3, 5))
    shift = rng.choice(("", "", "-1", "+1"))
    rows = rng.choice((1, 2, 7, 14))
    columns = rng.choice(EXTENTS) * int(step or 1) + width + 2
    outer = [rng.choice((1, 2, 3)) for _ in lead]
    last = [rng.choice(EXTENTS) for _ in channels]
    kind = rng.choice(("pool", "product", "column", "matrices"))
    if kind == "matrices":
        n, i_, k, j = (rng.choice((1, 2, 3, 4, 5, 6, 7, 9, 13, 16, 20)) for _ in "nikj")
        first, second = rng.choice((("nik", "nkj"), ("nki", "nkj"), ("nik", "kj")))
        extents = {"n": n, "i": i_, "k": k, "j": j}
        shapes = [tuple(extents[letter] for letter in word) for word in (first, second)]
        return f"{first}*{second}~nikj >> +nikj~nij", shapes
    if kind == "column":
        terms = rng.choice((1, 2, 9, 40, 513))
        return f"{rng.choice('+><*')}{lead}ij~{lead}j", [(*outer, terms, columns)]
    window = f"({step}j{shift}+v:{width})"
    if kind == "pool":
        text = f"{rng.choice('+><')}{lead}i{window}{channels}~{lead}ij{channels}"
        return text, [(*outer, rows, columns, *last)]
    window = f"({step}j{shift}+v)"
    every = f"{lead}ij{channels}v"
    text = f"{lead}i{window}{channels}*v{channels}~{every} >> +{every}~{lead}ij{channels}"
    return text, [(*outer, rows, columns, *last), (width, *last)]


def array(rng: random.Random, shape: tuple[int, ...], dtype: type[np.floating[Any]]) -> Any:
    """Whole numbers, which sums in any order give exactly, with some that are special."""
    values = np.random.default_rng(rng.randrange(2**32)).integers(-4, 5, shape).astype(dtype)
    for special in (np.nan, np.inf, -0.0):
        if rng.random() < 0.2:
            values[tuple(rng.randrange(extent) for extent in shape)] = special
    return values


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_reductions_of_windows_are_right(seed: int) -> None:
    rng = random.Random(seed)
    text, shapes = program(rng)
    dtype = rng.choice((np.float32, np.float64))
    given = [array(rng, shape, dtype) for shape in shapes]
    found, wanted = i(text)(*given), i(text)(*given, target="numpy")
    assert found.dtype == wanted.dtype, text
    np.testing.assert_array_equal(found, wanted, err_msg=f"{text} {shapes}")


def test_windows_stay_in_registers() -> None:
    for text in (">(i+u:3)(j+v:3)~ij", "(i+u)(j+v)*uv~ijuv >> +ijuv~ij"):
        shapes = [(40, 90), (3, 3)][: 1 + text.count("*")]
        assert "registers" in i(text).loops(*shapes), text


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(12))
def test_sums_of_more_terms_than_f32_adds_are_right(
    seed: int, dtype: type[np.floating[Any]]
) -> None:
    """Results in registers meet 512 terms at a time, whatever is left of rows and terms, on any number of threads."""
    rng = random.Random(seed)
    shape = (rng.choice((1, 2, 5)), rng.randint(100, 2000), rng.choice((*EXTENTS, 300, 385, 777)))
    values, weights = array(rng, shape, dtype), array(rng, shape[1:2], dtype)
    for text, given in (("+aij~j", [values]), ("aij*i~aij >> +aij~j", [values, weights])):
        wanted = i(text)(*given, target="numpy")
        for threads in (1, 2):
            found = i(text)(*given, threads=threads)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{text} {shape}")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("shape", [(2163, 523), (600, 40), (1025, 385), (5000, 77)])
def test_sums_inside_of_strips_are_in_blocks_of_terms(shape: tuple[int, int]) -> None:
    """A mean that a sum of squares rests on is computed once, and adds 512 terms in f32 as that does."""
    text = "(I & (+ij~j >> (I | 0.5) >> j*.~j)) >> ij-j~ij >> (I & I) >> ij*ij~ij >> +ij~j"
    assert "f64(in0" not in i(text).loops(shape)
    values = array(random.Random(f"{shape}"), shape, np.float32)
    wanted = i(text)(values, target="numpy")
    for threads in (1, 2):
        np.testing.assert_allclose(i(text)(values, threads=threads), wanted, rtol=1e-5)


def test_sums_across_rows_stay_in_vectors() -> None:
    """Terms of two axes, the last of which f32 adds: what lanes read is copied in squares, beside a tile."""
    loops = einx.var("[a] b [c]").loops((28, 622, 55))
    assert loops.count("in squares") == loops.count("in vectors of 16") == 2


def test_long_sums_of_columns_are_accurate() -> None:
    """Sums of 512 terms in f32 are added in f64."""
    values = np.random.default_rng(0).random((70_001, 40), np.float32)
    exact = values.sum(0, dtype=np.float64)
    assert np.abs(i("+ij~j")(values) / exact - 1).max() < 1e-6
    assert "tile f32[40] registers" in i("+ij~j").loops(values.shape)


@pytest.mark.parametrize(
    ("shape", "tile"), [((1439, 299, 15), "15"), ((1439, 303, 15), "15"), ((1439, 303, 33), "5,33")]
)
def test_registers_hold_extremes_of_short_rows(shape: tuple[int, ...], tile: str) -> None:
    """Where all terms come from memory, waiting for the extreme of those before takes no time."""
    assert f"out_tile f32[{tile}] registers" in i(">abc~ac").loops(shape)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("sign", [">", "<"])
@pytest.mark.parametrize("shape", [(13, 30, 5), (7, 3, 9), (6, 100, 15), (1, 9, 6), (8, 5, 4)])
def test_extremes_of_short_rows_are_right(sign: str, shape: tuple[int, ...]) -> None:
    given = array(random.Random(f"{sign} {shape}"), shape, np.float32)
    text = f"{sign}abc~ac"
    np.testing.assert_array_equal(i(text)(given), i(text)(given, target="numpy"))


@pytest.mark.parametrize(("columns", "loops"), [(29, "i j v"), (15, "i j v")])
def test_short_rows_of_windows_in_steps_are_loops(columns: int, loops: str) -> None:
    text = i(">i(2j+v:3)~ij").loops((50, columns)).split("out[")[0]
    assert " ".join(re.findall(r"for (\w) in", text)) == loops


def test_open_extremes_meet_results_one_by_one() -> None:
    """Their terms may leave some over; those of sums are few."""
    assert "i1 in 0..8" not in i(">ij~j").loops()
    assert "i1 in 0..8" in i("+ij~j").loops()


def test_known_arrays_are_read_in_the_order_of_memory() -> None:
    """Rows of a sum over the first and the last axis, with extents or without."""
    assert i("+abc~b").explain((30, 500, 64)).execution.schedule[-1].schedule == "|| a b c"
    assert i("+abc~b").explain().execution.schedule[-1].schedule == "|| a b c"
