"""Rows shorter than vectors, with lanes across them, against the evaluator: random chains of work on rows."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ilang import Component, einx, i
from ilang.core.schedule.choose import short_rows

pytestmark = pytest.mark.usefixtures("compiled_quickly")

COUNTS = (32, 33, 47, 48, 64, 65, 100)
LENGTHS = (2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 48, 49)
OPERATIONS = [
    (name, pattern)
    for name in ("max", "softmax", "logsumexp", "argmax", "min", "sort", "var", "sum", "mean")
    for pattern in ("a [b]", "a b [c]", "[a] b [c]", "a [b] [c]", "a [b] c")
    if pattern.count("[") == 1 or name not in ("argmax", "sort")
]
SEEDS = range(9100, 9116)

CHAINS = (
    ">{r}{s}~{r}",
    "<{r}{s}~{r}",
    "(I & >{r}{s}~{r}) >> {r}{s}-{r}~{r}{s} >> ^{r}{s}~{r}{s} >> (I & +{r}{s}~{r}) >> {r}{s}/{r}~{r}{s}",
    "(I & >{r}{s}~{r}) >> ({r}{s}-{r}~{r}{s} >> ^{r}{s}~{r}{s} >> +{r}{s}~{r} >> ^{r}~{r})",
    "(I & (>{r}{s}~{r} >> -{r}~{r})) >> {r}{s}+{r}~{r}{s}",
    "^{r}{s}~{r}{s} >> +{r}{s}~{r} >> -{r}~{r}",
    "(>{r}{s}~{r} & <{r}{s}~{r}) >> {r}-{r}~{r}",
    "(I & >{r}{s}~{r}) >> {r}{s}-{r}~{r}{s} >> +{r}{s}~{s}",
    ">{r}{s}~{s}{r}",
    "^{r}{s}~{s}{r} >> >{s}{r}~{r}",
    ">@{r}{s}~{r}",
    "+{r}{s}~{r}",
    "(I & +{r}{s}~{r}) >> {r}{s}-{r}~{r}{s}",
    "(I & ((I & I) >> {r}{s}*{r}{s}~{r}{s} >> +{r}{s}~{r})) >> {r}{s}*{r}~{r}{s}",
    "(I & +{r}{s}~{r}) >> {r}{s}-{r}~{r}{s} >> (I & I) >> {r}{s}*{r}{s}~{r}{s} >> +{r}{s}~{r}",
)


def program(rng: random.Random) -> tuple[str, tuple[int, ...]]:
    """A text, and the shape of its input: outer axes, rows, and what is in each."""
    outer = rng.choice(("", "", "a", "ab"))
    text = rng.choice(CHAINS).format(r=outer + "r", s="s")
    shape = (*(rng.choice((1, 2, 3)) for _ in outer), rng.choice(COUNTS), rng.choice(LENGTHS))
    return text, shape


def array(rng: random.Random, shape: tuple[int, ...]) -> Any:
    numbers = np.random.default_rng(rng.randrange(2**32))
    values = numbers.integers(-4, 5, shape).astype(rng.choice((np.float32, np.float64)))
    for special in (np.nan, -np.inf, np.inf, -0.0):
        if rng.random() < 0.2:
            values[tuple(rng.randrange(extent) for extent in shape)] = special
    return values


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_chains_of_rows_are_right(seed: int) -> None:
    rng = random.Random(seed)
    text, shape = program(rng)
    _agree(i(text), array(rng, shape), text)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_lanes_across_any_rows_are_right(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the price says, and however long the rows are."""
    rng = random.Random(f"across {seed}")
    monkeypatch.setattr(short_rows.BlocksOfRows, "saved", lambda *_: rng.random() - 0.3)
    text, shape = program(rng)
    _agree(i(text), array(rng, (*shape[:-1], rng.choice((*LENGTHS, 60, 64)))), text)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "pattern"), OPERATIONS)
def test_operations_on_rows_are_right(name: str, pattern: str) -> None:
    rng = random.Random(f"{name} {pattern}")
    shape = tuple(rng.choice((2, 40)) for _ in pattern.split()[:-1])
    _agree(getattr(einx, name)(pattern), array(rng, (*shape[:-1], 40, 9)), name)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_columns_of_short_rows_are_right(seed: int) -> None:
    rng = random.Random(f"columns {seed}")
    name = rng.choice(("sum", "max", "min", "mean", "var", "softmax"))
    pattern = rng.choice(("[b] c", "a [b] c", "[a] b [c] d", "[b c] d"))
    inner = (rng.choice((8, 9, 100, 257, 1000)), rng.choice((2, 3, 4, 5, 7, 12, 15)))
    shape = (*(rng.choice((1, 2, 3)) for _ in pattern.split()[:-2]), *inner)
    _agree(getattr(einx, name)(pattern), array(rng, shape), f"{name} {pattern} {shape}")


def test_lanes_go_across_short_rows() -> None:
    assert "in0_copy[j,i1]" in i(">ij~i").loops((1000, 9))
    assert "in0_copy" not in i(">ij~i").loops((1000, 90))
    assert "in0_copy[b,a1]" in einx.logsumexp("a [b]").loops((1000, 9))
    assert "in0_copy" not in einx.var("a [b] c").loops((500, 60, 30))
    assert "in0_copy[b,a1]" in einx.var("a [b]").loops((1000, 16))
    assert "in0_copy" not in i("+ij~i").loops((1000, 16))
    assert "in0_copy[j,i1]" in i("+ij~i").loops((1000, 9))


def test_rows_that_are_written_are_stored_along_memory() -> None:
    """Unless they are little longer than a vector, or wait for functions."""
    centred = "(I & +ij~i) >> ij-i~ij"
    twice = f"{centred} >> (I & >ij~i) >> ij-i~ij"
    for text, length, is_across in (
        (centred, 9, True),
        (centred, 17, True),
        (centred, 47, False),
        (twice, 16, True),
        (twice, 33, False),
    ):
        assert ("in0_copy" in i(text).loops((1000, length))) is is_across, (text, length)
    assert "in0_copy" in einx.softmax("i [j]").loops((1000, 33))


def test_blocks_of_rows_end_row_by_row() -> None:
    """Where they are written as they lie in memory; functions of few elements have lanes across rows."""
    unit = "(I & ((I & I) >> ij*ij~ij >> +ij~i >> sqrt)) >> ij*i~ij"
    for length in (3, 4, 8, 12, 20):
        text = i(unit).loops((1000, length))
        assert "in0_copy[j,i1]" in text
        assert "out[64i+i1,j] = in0[64i+i1,j] * " in text, length
    shifted = "(I & >ij~i) >> ij-i~ij >> ^ij~ij"
    assert "for j in 0..5\n    for i1" in i(shifted).loops((1000, 5))
    assert "for i1 in 0..min(64, 1000 - (64i))\n    for j" in i(shifted).loops((1000, 16))


def test_few_blocks_of_lanes_beside_other_loops_stay_loops() -> None:
    centred = "(I & ((I & I) >> ij*ij~ij >> +ij~i)) >> ij-i~ij"
    assert "in 0..32 in 16 lanes not unrolled" in i(centred).loops((1000, 32))
    assert "in 0..33 in 16 lanes not unrolled" not in i(centred).loops((1000, 33))
    assert "not unrolled" not in i("(I & I) >> ij*ij~ij >> +ij~i").loops((1000, 32))


def _agree(component: Component, given: Any, text: str) -> None:
    wanted = component(given, target="numpy")
    found = component(given)
    assert found.dtype == wanted.dtype, text
    tolerance = 1e-5 if found.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, wanted, tolerance, tolerance, err_msg=text)


def test_rows_from_memory_have_lanes_along_them() -> None:
    """Squares of rows longer than a line take lines out of order."""
    softmax = einx.softmax("i [j]")
    assert "in0_copy" in softmax.loops((1000, 33))
    assert "in0_copy" not in softmax.loops((100_000, 33))
    assert "in0_copy" in softmax.loops((100_000, 10))
