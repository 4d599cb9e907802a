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


def alike(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, 1e-9, 1e-9)


INFINITE = np.array([[-np.inf, -np.inf], [1, 2]])
WEIGHTS = [[np.nan, np.nan], [1 / (1 + np.e), np.e / (1 + np.e)]]
ZERO = np.array([[0.0, 0.0], [3.0, 4.0]])
GIVEN = {
    "softmax": (INFINITE, WEIGHTS, [[np.nan, np.nan], [0, 0]]),
    "logarithm": (INFINITE, [-np.inf, np.log(np.e + np.e**2)], WEIGHTS),
    "norm": (ZERO, [0.0, 5.0], [[np.nan, np.nan], [0.6, 0.8]]),
    "guarded": (np.array([[5.0, 6.0], [1.0, 2.0]]), [[np.nan, np.nan], [1, 0]], [[0, 0], [0, 0]]),
}
"""An array, what is computed of its rows, and what flows back where 1 flows back to each element of that."""
SQUARES = "(I & I) >> ij*ij~ij"
WAYS = {
    "softmax": {
        "index": "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij",
        "einx": "einx.softmax('a [b]')",
        "kernels": "(I & elementwise('c: x[i,j] -> max 1: x')) >> elementwise('c: x[i,j], m[i] -> exp(x - m)')"
        " >> (I & elementwise('c: x[i,j] -> sum 1: x')) >> elementwise('c: x[i,j], s[i] -> x / s')",
    },
    "logarithm": {
        "index": "^ij~ij >> +ij~i >> $i~i",
        "einx": "einx.logsumexp('a [b]')",
        "einsum": "^ij~ij >> einsum('ij->i') >> $i~i",
        "kernels": "elementwise('f: x[i,j] -> exp(x)') >> elementwise('c: x[i,j] -> sum 1: x')"
        " >> elementwise('f: x[i] -> log(x)')",
    },
    "norm": {
        "index": f"({SQUARES} >> +ij~i | 0.5) >> i^.~i",
        "einx": f"{SQUARES} >> einx.sum('a [b]') >> elementwise('f: x[i] -> sqrt(x)')",
        "einsum": "(I & I) >> einsum('ij,ij->i') >> elementwise('f: x[i] -> sqrt(x)')",
        "specification": "(I & I) >> einsum('ij;ij=>i') >> elementwise('f: x[i] -> sqrt(x)')",
        "kernels": "elementwise('f: x[i,j] -> x * x') >> elementwise('c: x[i,j] -> sum 1: x')"
        " >> elementwise('f: x[i] -> sqrt(x)')",
    },
    "guarded": {
        "index": "(I & >ij[j<i]~i) >> ij-i~ij >> ^ij~ij >> (I & +ij[j<i]~i) >> ij[j<i]/i~ij"
    },
}
"""Programs for each, by notation."""
FUNCTIONS = {
    "softmax": "softmax(x)",
    "logarithm": 'log(exp(x) ++ "...|c => ...|0")',
    "norm": 'sqrt(x *. x ++ "...|c => ...|0")',
    "guarded": 'guarded(x) ++ "b, c => b|c"',
}
"""Tensor functions for each."""
TARGETS = ("numpy", "c", "cuda-emulated")


@pytest.mark.usefixtures("compiled_quickly")
@np.errstate(all="ignore")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("title", "way"), [(title, way) for title in WAYS for way in WAYS[title]])
def test_components_give_what_is_documented(title: str, way: str, target: str) -> None:
    x, value, gradient = GIVEN[title]
    program: Any = i(WAYS[title][way])
    alike(program(x, target=target), value)
    alike(program.grad()(x, np.ones_like(value), target=target), gradient)


@pytest.mark.usefixtures("compiled_quickly")
@np.errstate(all="ignore")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("title", FUNCTIONS)
def test_tensor_functions_give_what_is_documented(title: str, target: str, tmp_path: Path) -> None:
    x, value, gradient = GIVEN[title]
    path = tmp_path / "rows.i"
    path.write_text(f"""\
use nn
guarded(x[i,j]) = {WAYS["guarded"]["index"]}
op f(x[b|c]) = {FUNCTIONS[title]}
cd g(x: f64[b|c]) {{
  a = track(x)
  y = f(a)
  loss = y ++ "...|... => 0"
  backprop(loss)
  return y, a.grad
}}
""")
    found, slope = load(str(path))["g"](x, target=target)
    alike(np.reshape(found, np.shape(value)), value)
    alike(slope, gradient)


@np.errstate(all="ignore")
@pytest.mark.parametrize("target", TARGETS)
def test_layers_of_rows_of_one_number_or_of_infinities(target: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.i"
    path.write_text("""\
use nn
cd normed(x: f64[b|c]) {
  a = track(x)
  y = layer_norm(a)
  loss = y *. y ++ "...|... => 0"
  backprop(loss)
  return y, a.grad
}
cd entropy(x: f64[b|c], t: i64[b|]) {
  a = track(x)
  y = cross_entropy_sum_at(a, t)
  backprop(y)
  return y, a.grad
}
""")
    library = load(str(path))
    y, slope = library.session("normed", target=target)(np.array([[2.0, 2.0], [1.0, 3.0]]))
    alike(y, [[0, 0], [-(1.00001**-0.5), 1.00001**-0.5]])
    assert slope[0].tolist() == [0, 0]
    assert np.abs(slope[1]).max() < 1e-4
    x, of = np.array([[-np.inf, 1.0], [0.0, 0.0]]), np.array([1, 0])
    y, slope = library["entropy"](x, of, target=target)
    alike(y, np.log(2))
    alike(slope, [[0, 0], [-0.5, 0.5]])
