"""Positions along axes as values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import Error, i
from ilang.core.pipeline import graph_of, infer, text_component

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 7)).astype(np.float32)
W = RNG.standard_normal((7, 6)).astype(np.float32)
LABELS = np.array([3, 0, 2], np.int32)
ROW, COLUMN = np.indices(X.shape)


@pytest.mark.parametrize("target", ["c", "numpy"])
@pytest.mark.parametrize(
    ("text", "arrays", "wanted"),
    [
        ("@(j:10)~j", [], np.arange(10)),
        ("+@(j:10)~.", [], np.asarray(45)),
        ("-@(j:3)~j", [], -np.arange(3)),
        ("@(i:3)==@(j:4)~ij", [], np.eye(3, 4, dtype=np.bool_)),
        ("i==@(c:4)~ic", [LABELS], np.eye(4, dtype=np.bool_)[LABELS]),
        ("i==@c~ic >> ic*cd~icd >> +icd~id", [LABELS, W], W[LABELS]),
        ("ij*@j~ij", [X], X * COLUMN.astype(np.float32)),
        ("@(2i-j+1)*ij~ij", [X], X * (2 * ROW - COLUMN + 1).astype(np.float32)),
        ("@(2i-j+1)*ij~ij | i:2,j:3 | j i j' i'", [X], X * (2 * ROW - COLUMN + 1).astype(np.float32)),
        ("ij*@j~ij | j:2 | i j 0 j'", [X], X * COLUMN.astype(np.float32)),
        ("@(i:3)*i~i", [np.ones(3, np.bool_)], np.arange(3)),
        ("@i~i >> i*ij~ij || i j 0", [X.astype(np.int64)], ROW * X.astype(np.int64)),
        ("@i&&i~i", [LABELS], np.array([False, False, True])),
    ],
)  # fmt: skip
def test_values(target: str, text: str, arrays: list[Array], wanted: Array) -> None:
    result = i(text)(*arrays, target=target)
    assert result.dtype == wanted.dtype
    np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=1e-6)


ODD = X.copy()
ODD[1, 3], ODD[2], ODD[3] = np.nan, -np.inf, 1


@pytest.mark.parametrize("target", ["c", "numpy"])
@pytest.mark.parametrize(
    ("text", "array", "wanted"),
    [
        (">@ij~i", ODD, np.argmax(ODD, 1)),
        ("<@ij~j", ODD, np.argmin(ODD, 0)),
        (">@i~.", np.array([1, 9, 9], np.int32), np.asarray(1)),
        ("<@i~.", np.array([True, False, False]), np.asarray(1)),
        ("-ij~ij >> >@ij~i", X, np.argmax(-X, 1)),
        ("ij*@j~ij >> >@ij~i", X, np.argmax(X * COLUMN, 1)),
    ],
)
def test_argmax(target: str, text: str, array: Array, wanted: Array) -> None:
    result = i(text)(array, target=target)
    assert result.dtype == np.int64
    assert np.array_equal(result, wanted)


def test_an_empty_axis_has_no_position() -> None:
    with pytest.raises(Error) as caught:
        i(">@ij~i")(np.zeros((3, 0), np.float32))
    assert caught.value.code == "E0574"


def test_arrays_without_end_are_refused() -> None:
    """Both values stand in the message: what is reached, and what the type holds."""
    array = np.broadcast_to(np.float32(1), (2**24 + 2,))
    with pytest.raises(Error) as caught:
        i("i*@i~i >> +i~.")(array)
    assert caught.value.code == "E0576"
    assert "16777217" in str(caught.value)
    assert "16777216" in str(caught.value)


def test_the_c_checks_what_is_reached() -> None:
    assert "if (3 * ((double)n_i - 1) + 1 > 16777216.0) return 0;" in i("i*@(3i+1)~i").source("c")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("@i~i", "E0575"),
        ("@(i:16777218)*i~i", "E0576"),
        ("^@(i:3)~i", "E0602"),
        ("(@(i:3)~i | I) >> i*i~i", "E0601"),
        ("ij*@(3)~ij", "E0118"),
        ("ij*@~ij", "E0118"),
        ("ij*@(j~ij", "E0118"),
        ("ij/:2~ij", "E0124"),
        ("+ij~i >> i/:j~i", "E0211"),
        ("@(i:3)+@(i:4)~i", "E0207"),
        (">@ij~ij", "E0209"),
        (">@ijk~i", "E0209"),
        (">@i(j+1)~i", "E0209"),
        (">@ij[j<i]~i", "E0209"),
        (">@ij~i || i j", "E0330"),
    ],
)
def test_refusals(text: str, code: str) -> None:
    with pytest.raises(Error) as caught:
        infer(graph_of(text_component(text), "p"))
    assert caught.value.code == code
    assert caught.value.span is not None


@pytest.mark.parametrize("target", ["c", "numpy"])
@pytest.mark.parametrize(
    ("text", "arrays", "wanted"),
    [
        ("ij/:j~ij >> +ij~i", [X], X.mean(1)),
        ("ij*:i~ij", [X], X * 5),
        ("ij-:j~ij", [X.astype(np.int64)], X.astype(np.int64) - 7),
        ("(i+k:3)*:i~ik", [X[0]], 5 * np.lib.stride_tricks.sliding_window_view(X[0], 3)),
        ("i==:i~i", [LABELS], LABELS == 3),
    ],
)
def test_extents(target: str, text: str, arrays: list[Array], wanted: Array) -> None:
    result = i(text)(*arrays, target=target)
    assert result.dtype == wanted.dtype
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


def test_sums_of_terms_with_an_extent_have_lanes() -> None:
    assert "in 16 lanes" in i("ij/:j~ij >> +ij~i").loops()


@pytest.mark.parametrize("target", ["c", "numpy"])
def test_a_mean_of_many_elements_rounds_their_number(target: str) -> None:
    x = np.full((1, 2**24 + 3), 0.5, np.float32)
    np.testing.assert_allclose(i("ij/:j~ij >> +ij~i")(x, target=target), [0.5], rtol=1e-5)


def test_positions_have_names_of_their_own_in_explanations() -> None:
    page = str(i(">@ij~i >> i==@(c:5)~ic").explain())
    assert "argmax = argmax_j in0[i,j]" in page
    assert "minimum" not in page
