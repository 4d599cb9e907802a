"""Softmax, logsumexp and norms of rows of -inf, infinity, NaN and 0, and of rows with nothing inside their guards.

docs/gradients.md says what they give; NumPy computes it. Derivatives are compared where a row has a finite element, and
no NaN and no infinity.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ilang import einx, i, load

Array = NDArray[Any]
ROWS = 24
SPECIAL = (-np.inf, np.inf, np.nan, 0.0, 1000.0, -1000.0, 88.0, -90.0)
SOFTMAX = i("(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij")
CAUSAL = i("(I & >ij[j<i]~i) >> ij-i~ij >> ^ij~ij >> (I & +ij[j<i]~i) >> ij[j<i]/i~ij")
TENSORS = """\
use nn
cd soft(x: f64[b|c], g: f64[b|c]) {
  a = track(x)
  y = softmax(a)
  loss = (y *. g) ++ "...|... => 0"
  backprop(loss)
  return y, a.grad
}
cd norm(x: f64[b|c], g: f64[b|c]) {
  a = track(x)
  s = a *. a ++ "...|c => ...|0"
  loss = (where(s > 0, sqrt(s), 0) *. g) ++ "...|... => 0"
  backprop(loss)
  return a.grad
}
cd bare(x: f64[b|c], g: f64[b|c]) {
  a = track(x)
  loss = (sqrt(a *. a ++ "...|c => ...|0") *. g) ++ "...|... => 0"
  backprop(loss)
  return a.grad
}
"""


def wild(rng: np.random.Generator, length: int) -> Array:
    """Rows of each kind."""
    x = rng.normal(size=(ROWS, length))
    for row, values in enumerate(x):
        match row % 8:
            case 0:
                values[:] = -np.inf
            case 1 | 2:
                values[rng.integers(length)] = np.inf if row % 8 == 1 else np.nan
            case 3:
                values[:] = 0
            case 4:
                values[rng.random(length) < 0.5] = -np.inf
            case 5 | 6:
                values[:] = rng.choice(SPECIAL[4:] if row % 8 == 5 else SPECIAL, length)
            case _:
                pass
    return x


def soft(x: Array, inside: Array) -> Array:
    """The weights of each row, where it is inside; 0 divided by their sum elsewhere."""
    greatest = np.where(inside, x, -np.inf).max(-1, keepdims=True)
    e = np.where(inside, np.exp(x - greatest), 0)
    weights: Array = e / e.sum(-1, keepdims=True)
    return weights


def soft_back(y: Array, back: Array) -> Array:
    slope: Array = y * (back - (back * y).sum(-1, keepdims=True))
    return slope


def tame(x: Array, inside: Array) -> Array:
    """Rows whose derivatives are finite."""
    kept = np.where(inside, x, -np.inf)
    rows: Array = np.isfinite(kept.max(-1)) & ~np.isnan(x).any(-1) & ~np.isposinf(x).any(-1)
    return rows


@pytest.mark.usefixtures("compiled_quickly")
@np.errstate(all="ignore")
@pytest.mark.parametrize(
    ("target", "length"), [*(("numpy", n) for n in (1, 2, 7, 40)), ("c", 9), ("cuda-emulated", 3)]
)
def test_rows_of_index_expressions(target: str, length: int) -> None:
    rng = np.random.default_rng(length)
    x = wild(rng, length)
    back = rng.normal(size=x.shape)
    below = np.arange(ROWS)[:, None] > np.arange(length)
    for program, inside in ((SOFTMAX, np.ones(x.shape, bool)), (CAUSAL, below)):
        y, rows = soft(x, inside), tame(x, inside)
        alike(program(x, target=target), y)
        slope = soft_back(y, np.where(inside, back, 0))
        alike(program.grad()(x, back, target=target)[rows], slope[rows])
        if target == "numpy":
            alike(program.jvp()(x, back, target=target)[1][rows], soft_back(y, back)[rows])


@np.errstate(all="ignore")
@pytest.mark.parametrize("length", [1, 2, 7, 40])
def test_rows_of_einx_and_tensor_functions(length: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(length)
    x = wild(rng, length)
    back = rng.normal(size=x.shape)
    everywhere = np.ones(x.shape, bool)
    y, rows, greatest = soft(x, everywhere), tame(x, everywhere), x.max(-1)
    shift = np.where(np.isinf(greatest), 0, greatest)
    alike(einx.softmax("a [b]", x, target="numpy"), y)
    logs = np.log(np.exp(x - shift[:, None]).sum(-1)) + shift
    alike(einx.logsumexp("a [b]", x, target="numpy"), logs)
    found = einx.logsumexp("a [b]").grad()(x, back[:, 0], target="numpy")
    alike(found[rows], (back[:, :1] * y)[rows])
    path = tmp_path / "rows.i"
    path.write_text(TENSORS)
    functions = load(str(path))
    weights, slope = functions["soft"](x, back, target="numpy")
    alike(weights, y)
    alike(slope[rows], soft_back(y, back)[rows])
    norm = np.sqrt((x * x).sum(-1))
    finite, at_0 = np.isfinite(norm), norm == 0
    scale = back.sum(-1) / np.where(at_0, 1, norm)
    found = functions["norm"](x, back, target="numpy")
    alike(found[finite], (scale[:, None] * x)[finite])
    found = functions["bare"](x, back, target="numpy")
    assert np.isnan(found[at_0]).all()
    alike(found[finite & ~at_0], (scale[:, None] * x)[finite & ~at_0])


def alike(found: Any, wanted: Array) -> None:
    np.testing.assert_allclose(found, wanted, 1e-9, 1e-9)
