"""Guards: conditions on axes, of what is read and of what an iteration adds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import Error, i

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 7)).astype(np.float32)
W = RNG.standard_normal((7, 6)).astype(np.float32)
ROW, COLUMN = np.indices(X.shape)
LOWER = COLUMN <= ROW
SOFTMAX = "(I & >ij[j<=i]~i) >> ij-i~ij >> ^ij~ij >> (I & +ij[j<=i]~i) >> ij[j<=i]/i~ij"


def softmax() -> Array:
    raised = np.where(LOWER, np.exp(X - np.where(LOWER, X, -np.inf).max(1, keepdims=True)), 0)
    return np.asarray(raised / raised.sum(1, keepdims=True))


@pytest.mark.parametrize("target", ["c", "numpy"])
@pytest.mark.parametrize(
    ("text", "arrays", "wanted"),
    [
        ("ij[j<=i]~ij", [X], np.where(LOWER, X, 0)),
        ("^ij[j<=i,i<=j+1]~ji", [X], np.exp(np.where(LOWER & (ROW <= COLUMN + 1), X, 0)).T),
        ("+ij[j<=i]~i", [X], np.where(LOWER, X, 0).sum(1)),
        (">ij[j<i]~i", [X], np.where(COLUMN < ROW, X, -np.inf).max(1)),
        ("+ij[2i<j+3]~j", [X], np.where(2 * ROW < COLUMN + 3, X, 0).sum(0)),
        (">ij[j<=i]~. | j:4 | j i j'", [X], np.where(LOWER, X, -np.inf).max()),
        ("+ij[i==3]~j", [X], X[3]),
        ("ij[j<=i]*jk~ijk >> +ijk~ik", [X, W], np.where(LOWER, X, 0) @ W),
        ("-ij~ij >> ij[j<=i]*jk~ijk || i j k 0 >> +ijk~ik || i j k 0", [X, W], -np.where(LOWER, X, 0) @ W),
        (SOFTMAX, [X], softmax()),
        (f"{SOFTMAX} >> ij*jk~ijk >> +ijk~ik", [X, W], softmax() @ W),
    ],
)  # fmt: skip
def test_values(target: str, text: str, arrays: list[Array], wanted: Any) -> None:
    result = i(text)(*arrays, target=target)
    np.testing.assert_allclose(result, np.asarray(wanted), rtol=2e-6, atol=2e-6)


def test_loops() -> None:
    """An element that does not count is 0; an iteration that does not is skipped."""
    assert "out[i,j] = (in0[i,j] if j <= i else 0)" in i("ij[j<=i]~ij").loops()
    ended = "for j in 0..min(n_j, i)\n    out_acc = max(out_acc, in0[i,j])"
    assert ended in i(">ij[j<i]~i").loops()


def test_bool_and_integers() -> None:
    ones = np.ones((3, 3), np.bool_)
    assert i("ij[j<i]~ij")(ones).tolist() == np.tri(3, 3, -1, dtype=np.bool_).tolist()
    assert i("&&ij[i<0]~.")(ones).item() is True
    assert i(">i[i<0]~.")(np.ones(3, np.int32)).item() == np.iinfo(np.int32).min


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("ij[j<=k]~ij", "E0208"),
        (".[i<1]*i~i", "E0208"),
        ("ij[j]~ij", "E0117"),
        ("ij[]~ij", "E0117"),
        ("ij[j<i][i<3]~ij", "E0117"),
        ("ij[0<i<3]~ij", "E0117"),
        ("i[1:]~i", "E0117"),
        ("ij[j<=i~ij", "E0117"),
        ("ij[j:3<=i]~ij", "E0117"),
        ("ij~ij[j<=i]", "E0109"),
    ],
)
def test_refusals(text: str, code: str) -> None:
    with pytest.raises(Error) as caught:
        i(text)
    assert caught.value.code == code
    assert caught.value.span is not None


@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 0, 5), (8, 9, 16)])
def test_a_nest_that_moves_neighbors_is_guarded_as_a_whole(shape: tuple[int, ...]) -> None:
    component = i("((I & I) >> tsz*tkz~zkts) >> (I & +ijkl~.)")
    assert "E9905" not in component.source("cuda")
    t, s, z = shape
    x = np.arange(t * s * z, dtype=np.float32).reshape(shape) % 7
    product, total = component.dynamic()(x, target="cuda-emulated")
    expected, of_all = component(x, target="numpy")
    assert np.array_equal(product, expected)
    assert np.array_equal(total, of_all)


def test_guards_that_known_extents_prove_are_left_out() -> None:
    """A shifted read that cannot leave its array is a plain read; one that can keeps its condition."""
    stencil = "((i:6+1)~i & (i:6+2)~i) >> i+i~i"
    assert "if" not in i(stencil).loops((8,))
    assert "(in0[i+2] if i+2 < 7 else 0)" in i(stencil).loops((7,))
    assert "in0[i+1] +" not in i(stencil).loops()  # of any extent
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(i(stencil)(x), x[1:7] + np.append(x[2:], 0)[:6])
    np.testing.assert_array_equal(i(stencil)(x[:7]), x[1:7] + np.append(x[2:7], 0))


def test_a_written_condition_that_always_holds_is_left_out() -> None:
    text = "+i[i<9]~."
    assert "min" not in i(text).loops((8,))
    assert i(text)(np.ones(8, np.float32)) == 8
    assert i(text)(np.ones(12, np.float32)) == 9


@pytest.mark.parametrize("extents", [(7, 3, 5, 2, 70), (7, 3, 5, 0, 70), (7, 0, 5, 2, 70)])
def test_loops_that_one_function_runs_have_no_guard_between_them(extents: tuple[int, ...]) -> None:
    """Those that pack a factor of a contraction over three axes or more, whose extents may be 0."""
    product = i("iklm*klmj~iklmj >> +iklmj~ij").dynamic("i", "k", "l", "m", "j")
    x = RNG.standard_normal(extents[:4]).astype(np.float32)
    y = RNG.standard_normal(extents[1:]).astype(np.float32)
    wanted = np.einsum("iklm,klmj->ij", x.astype(np.float64), y)
    np.testing.assert_allclose(product(x, y), wanted, rtol=1e-5, atol=1e-4)
