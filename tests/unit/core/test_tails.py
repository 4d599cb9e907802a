"""Rows of slow work at extents that vectors do not divide."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from ilang import i

ROWS = 9


def loops(extent: int, text: str = "ij-j~ij >> ^ij~ij") -> str:
    return i(text).loops((ROWS, extent), (extent,))


@pytest.mark.parametrize("extent", [17, 20, 31, 44, 47, 255])
def test_the_last_vector_overlaps(extent: int) -> None:
    whole = extent - extent % 16
    assert f"for j in 0..{whole}\n" in loops(extent)
    assert f"out[i,j+{extent - 16}] = exp(" in loops(extent)


@pytest.mark.parametrize("extent", [9, 12, 15])
def test_rows_shorter_than_a_vector_have_two_halves(extent: int) -> None:
    assert loops(extent).count("for j in 0..8\n") == 2
    assert f"out[i,j+{extent - 8}] = exp(" in loops(extent)


@pytest.mark.parametrize("extent", [7, 8, 16, 24, 32, 4097])
def test_other_rows_stay_one_loop(extent: int) -> None:
    """Short ones, those of whole vectors, and long ones, beside which a tail does not count."""
    assert loops(extent).count("exp(") == 1


def test_quick_work_stays_one_loop() -> None:
    assert loops(31, "ij-j~ij").count("out[") == 1


@pytest.mark.parametrize("extent", [9, 15, 17, 20, 23, 31, 33, 47, 63, 255])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values(extent: int, dtype: npt.DTypeLike) -> None:
    """The bits of every element are those that a row of whole vectors has."""
    random = np.random.default_rng(extent)
    x = random.standard_normal((ROWS, extent)).astype(dtype)
    y = random.standard_normal(extent).astype(dtype)
    wide = np.zeros((ROWS, 256), dtype), np.zeros(256, dtype)
    wide[0][:, :extent], wide[1][:extent] = x, y
    f = i("ij-j~ij >> ^ij~ij")
    np.testing.assert_array_equal(f(x, y), f(*wide)[:, :extent])


def test_maxima_of_columns_overlap() -> None:
    """A maximum that has seen a row already stays what it is; a sum would not."""
    largest, total = i(">ij~j").loops((4099, 22)), i("+ij~j").loops((4099, 22))
    assert "out_acc[j+6] = max(out_acc[j+6]," in largest
    assert "+6]" not in total


@pytest.mark.parametrize("extent", [17, 22, 31, 33, 47])
@pytest.mark.parametrize("rows", [64, 67, 1001])
def test_maxima_and_minima_of_columns(rows: int, extent: int) -> None:
    random = np.random.default_rng(extent)
    x = random.standard_normal((rows, extent)).astype(np.float32)
    x[3, 5], x[rows - 1, extent - 1] = np.nan, -0.0
    np.testing.assert_array_equal(i(">ij~j")(x), x.max(0))
    np.testing.assert_array_equal(i("<ij~j")(x), x.min(0))


@pytest.mark.parametrize(
    ("extent", "starts"), [(17, [0, 1]), (30, [0, 14]), (36, [0, 16, 20]), (60, [0, 16, 32, 44])]
)
def test_vectors_of_a_maximum_are_read_side_by_side(extent: int, starts: list[int]) -> None:
    text = i(">ij~i").loops((5000, extent))
    assert "for j in 0..16\n" in text
    read = [f"in0[i,j+{start}]" if start else "in0[i,j]" for start in starts]
    assert [
        line.split("out_acc, ")[1][:-1] for line in text.splitlines() if "max(out_acc" in line
    ] == read


@pytest.mark.parametrize("extent", [24, 32, 129])
def test_other_maxima_stay_one_loop(extent: int) -> None:
    """Those of rows that vectors or halves of them divide, and of long rows."""
    assert f"for j in 0..{extent}\n" in i(">ij~i").loops((1000, extent))
    assert "for j in 0..30\n" in i("ij/ij~ij >> ^ij~ij >> >ij~.").loops((1, 30), (1, 30))


@pytest.mark.parametrize("extent", [17, 20, 30, 31, 33, 47, 50, 63, 100, 127])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_maxima_of_rows(extent: int, dtype: npt.DTypeLike) -> None:
    x = np.random.default_rng(extent).standard_normal((40, extent)).astype(dtype)
    x[0, extent - 1] = np.nan
    x[1] = -np.inf
    x[2, :] = -0.0
    x[3, 0] = np.inf
    f, g = i("ij-ij~ij >> >ij~i"), i(">ij~i & <ij~i")
    y = x[::-1].copy()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(f(x, y), (x - y).max(1))
    largest, least = g(x)
    np.testing.assert_array_equal(largest, x.max(1))
    np.testing.assert_array_equal(least, x.min(1))
    assert np.signbit(largest[2])
