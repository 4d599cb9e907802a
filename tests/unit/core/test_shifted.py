"""Loops that read a row at several shifts: their vectors, and what they do not prefetch."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import i

MARK = "in vectors of half a cache line"
WINDOW = "+(i+u:3)~i >> (I | 0.5) >> i*.~i"


def test_a_window_of_a_long_row() -> None:
    assert MARK in i(WINDOW).loops((2_000_000,))
    assert "HALF_VECTORS void" in i(WINDOW).source("c", (2_000_000,))


def test_rows_of_several_shifts() -> None:
    """Reads at two shifts of one row; at shifts of different rows alone vectors may all be aligned."""
    text = "((i:1000)(j:1000+1)~ij & (i:1000)(j:1000)~ij) >> ij+ij~ij"
    assert MARK in i(text).loops((1002, 1002))
    other = "((i:1000+1)(j:1000)~ij & (i:1000)(j:1000)~ij) >> ij+ij~ij"
    assert MARK not in i(other).loops((1002, 1002))


@pytest.mark.parametrize("shape", [(2000,), None])
def test_what_a_cache_may_hold_has_whole_vectors(shape: tuple[int, ...] | None) -> None:
    """A short row, and one of any length."""
    loops = i(WINDOW).loops(shape) if shape else i(WINDOW).loops()
    assert MARK not in loops


def test_values() -> None:
    x = np.arange(600_000, dtype=np.float32) % 17
    np.testing.assert_array_equal(i(WINDOW)(x), 0.5 * (x[:-2] + x[1:-1] + x[2:]))
