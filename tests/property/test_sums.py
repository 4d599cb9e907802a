"""What sums of f32 keep: 1e-5 of the sum of sizes, up to 2^24 terms, in whatever loops; products up to 2^16.

The terms are chosen against sums: numbers that a large one swallows, one by one; what cancels; what grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import i
from tests.property.test_fuzz import needs_compiler

Array = npt.NDArray[Any]
pytestmark = [needs_compiler]

BOUND = 1e-5
SMALL = np.float32(2.0**-24 * 0.999)
"""A number that 1 swallows."""


def swallowed(count: int, every: int = 2**30) -> Array:
    """A one, then numbers that it swallows; another one after so many."""
    x = np.full(count, SMALL, np.float32)
    x[::every] = 1
    return x


KINDS: dict[str, Callable[[int], Array]] = {
    "cancelling": lambda n: np.tile(np.array([2.0**24, 1, -(2.0**24)]), -(-n // 3))[:n],
    "growing": lambda n: np.exp2(np.linspace(-20, 20, n)),
    "shrinking": lambda n: np.exp2(np.linspace(20, -20, n)),
    "alternating": lambda n: np.where(np.arange(n) % 2, -0.1, 0.1),
    "equal": lambda n: np.full(n, 0.1),
    "swallowed": swallowed,
    "swallowed in tiles": lambda n: swallowed(n, 512),
    "swallowed in chunks": lambda n: swallowed(n, 2048),
    "random": lambda n: np.random.default_rng(n).standard_normal(n),
}
"""So many terms of a sum, by what is hard about them."""


def terms(count: int, kinds: Iterable[str] = KINDS) -> dict[str, Array]:
    """Terms of a sum by their kind."""
    return {kind: KINDS[kind](count).astype(np.float32) for kind in kinds}


def error(found: Array, x: Array) -> float:
    """How far results are from the sum of some terms, beside the sum of their sizes."""
    wide = x.astype(np.float64)
    return float(np.abs(found.astype(np.float64) - wide.sum()).max() / np.abs(wide).sum())


ROWS, COLUMNS = 7, 70
OF_ROWS = {
    "rows": "+ij~i",
    "rows in tiles": "+ij~i | i:4,j:512 | i j j' i'",
    "rows by columns": "+ij~i || j i",
    "rows in partial sums": "+ij~i | j:16:32 | i j j' j''",
    "rows unrolled": "+ij~i | j:512 | i j j' | j':u",
}
OF_COLUMNS = {
    "columns": "+ij~j",
    "columns in tiles": "+ij~j | i:512,j:16 | j i i' j'",
    "columns down": "+ij~j | i:512 | i i' j",
    "columns, strided": "+ij~j || j i",
}
PRODUCT = "ik*kj~ijk >> "
PRODUCTS = {
    "product": PRODUCT + "+ijk~ij",
    "product in small tiles": PRODUCT + "+ijk~ij | i:4,j:16,k:512 | i j k k' i' j' 0",
    "product in lanes": PRODUCT + "+ijk~ij | j:16,k:512 | i j k k' j' 0",
    "product in short tiles": PRODUCT + "+ijk~ij | i:4,j:16,k:256 | i j k k' i' j' 0",
    "product in tiles of two parts": PRODUCT + "+ijk~ij | i:4,j:16,k:16:32 | i j k k' k'' i' j' 0",
    "product down": PRODUCT + "+ijk~ij | j:64,k:512 | k i j k' j' 0",
    "product by rows": PRODUCT + "+ijk~ij || i j k 0",
}


@pytest.mark.parametrize("count", [1, 127, 513, 2049, 65536])
@pytest.mark.parametrize("name", [*OF_ROWS, *OF_COLUMNS])
def test_sums_of_rows_and_columns(name: str, count: int) -> None:
    component = i({**OF_ROWS, **OF_COLUMNS}[name])
    for kind, x in terms(count).items():
        rows = np.tile(x, (ROWS, 1))
        found = component(rows if name in OF_ROWS else np.ascontiguousarray(rows.T))
        assert error(found, x) <= BOUND, kind


@pytest.mark.parametrize("count", [1, 2049, 65536, 2**24])
def test_sums_of_everything(count: int) -> None:
    large = ("cancelling", "equal", "swallowed in chunks")
    for kind, x in terms(count, large if count == 2**24 else KINDS).items():
        assert error(i("+i~.")(x), x) <= BOUND, kind
        assert error(i("+ij~.")(x.reshape(1, -1)), x) <= BOUND, kind
        assert error(i("+i~.")(x[::-1]), x) <= BOUND, kind


@pytest.mark.parametrize("count", [3, 129, 513, 1500, 65536])
@pytest.mark.parametrize("name", PRODUCTS)
def test_sums_of_products(name: str, count: int) -> None:
    component = i(PRODUCTS[name])
    for kind, x in terms(count).items():
        for rows, columns in ((ROWS, COLUMNS), (7, 20), (64, 128), (1, 64), (5, 8)):
            if rows * columns * count <= 2**24:
                ones = np.ones((count, columns), np.float32)
                found = component(np.tile(x, (rows, 1)), ones)
                assert error(found, x) <= BOUND, (kind, rows, columns)


@pytest.mark.parametrize("count", [3, 513, 65536])
@pytest.mark.parametrize("text", ["ij*j~ij >> +ij~i", "j*ij~ij >> +ij~i"])
def test_products_with_a_vector(text: str, count: int) -> None:
    for kind, x in terms(count).items():
        rows, ones = np.tile(x, (ROWS, 1)), np.ones(count, np.float32)
        pair = (rows, ones) if text.startswith("ij") else (ones, rows)
        assert error(i(text)(*pair), x) <= BOUND, kind


@pytest.mark.parametrize("width", [9, 129, 513])
def test_windows(width: int) -> None:
    """Convolutions, whose tiles sum over several axes."""
    convolution = i("nc(x+u)*ocu~noxcu >> +noxcu~nox")
    for kind, x in terms(width).items():
        row = np.concatenate((x, x))
        signal = np.tile(row, (2, 3, 1))
        kernel = np.ones((16, 3, width), np.float32)
        result = convolution(signal, kernel)
        assert error(result[:, :, 0], np.tile(x, 3)) <= BOUND, kind


def test_what_the_specification_says_of_cancelling() -> None:
    """Docs: of 2^24, 1 and -2^24, twenty times over, the sum is 20, and anything within 1e-5 of the sizes is right."""
    x = np.tile(np.array([2.0**24, 1, -(2.0**24)], np.float32), 20)
    bound = BOUND * np.abs(x.astype(np.float64)).sum()
    assert 6710 < bound < 6712
    for found in (i("+i~.")(x), *i("+ij~i")(np.tile(x, (2, 1)))):
        assert abs(float(found) - 20) <= bound
    assert i("f64 >> +ij~i")(x[None])[0] == 20
