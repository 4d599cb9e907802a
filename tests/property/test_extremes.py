"""Maxima and minima of floats, which variables hold as ordered integers: NaN, infinities and both zeros."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ilang import i

pytestmark = pytest.mark.usefixtures("compiled_quickly")

PROGRAMS = (
    "{op}ij~i",
    "{op}ij~j",
    "{op}ij~.",
    "(I & {op}ij~i) >> ij-i~ij",
    "({op}ij~i & +ij~i) >> i+i~i",
    "(I & {op}ij~i) >> ij-i~ij >> ^ij~ij >> +ij~i",
    "ij-.~ij >> {op}ij~i",
    "{op}ij~i >> {op}i~.",
    "{op}(i+k)j~ij",
)
EXTENTS = (1, 2, 7, 8, 15, 16, 17, 24, 31, 33, 48, 50, 64, 100, 199, 513)
SPECIAL = (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0)


def _array(rng: random.Random, shape: tuple[int, ...], dtype: Any) -> Any:
    numbers = np.random.default_rng(rng.randrange(2**32))
    x = numbers.integers(-3, 4, shape).astype(dtype) * dtype(rng.choice((0.0, 1.0, 0.5)))
    for special in rng.sample(SPECIAL, rng.randrange(4)):
        x[tuple(rng.randrange(extent) for extent in shape)] = special
    return x


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(5200, 5248))
def test_extremes_are_right(seed: int) -> None:
    rng = random.Random(seed)
    text = rng.choice(PROGRAMS).format(op=rng.choice("<>"))
    text = text.replace("{k}", "3").replace("(i+k)", "(i+k:2)")
    x = _array(
        rng, (rng.choice(EXTENTS) + 1, rng.choice(EXTENTS)), rng.choice((np.float32, np.float64))
    )
    given = (x, x.dtype.type(1)) if text.startswith("ij-.") else (x,)
    found, wanted = i(text)(*given, threads=rng.choice((1, 2))), i(text)(*given, target="numpy")
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5, err_msg=text)
    if "+" not in text.replace("i+k", ""):
        zeros = found == 0
        assert np.array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros])), text


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("op", "sign"), [(">", 1.0), ("<", -1.0)])
def test_nan_and_zeros(op: str, sign: float, dtype: Any) -> None:
    x = np.zeros((6, 20), dtype)
    x[0, 3] = x[1, 19] = np.nan
    x[1, 19] = -x[1, 19]
    x[2] = -sign * np.inf
    x[3] = -0.0
    x[4, 1:] = -0.0
    x[5, :19] = -0.0
    for threads in (1, 2):
        found = i(f"{op}ij~i")(x, threads=threads)
        assert np.isnan(found[:2]).all()
        assert found[2] == -sign * np.inf
        assert np.signbit(found[3])
        assert np.signbit(found[4:]).tolist() == [op == "<"] * 2


def test_extremes_are_ordered_integers() -> None:
    assert "acc = -inf as an ordered integer" in i(">ij~i").loops((100, 60))
    assert "f32[60] shared as ordered integers" in i(">ij~j").loops((1000, 60))


def test_an_integer_that_stands_for_a_maximum_is_passed_on() -> None:
    text = i(">abc~b").source("c", (104, 214, 18))
    assert "= il_max_i32(out_acc[b2], out_part);" in text
    assert "il_order_max_f32(il_ordered_max_f32(" not in text
