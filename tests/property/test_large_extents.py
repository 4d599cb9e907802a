"""Reductions and contractions of arrays with extents of hundreds, where vectors, tiles and partial sums all end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ilang import einsum, i
from ilang.codegen.system.npy import Array

LONGEST = 700
"""The largest extent; extents are as often below 26 as above."""
ROUNDING = 2e-5
"""What a sum may be off, as a part of the sum of absolute values."""
REDUCED: dict[str, Callable[..., Array]] = {"+": np.sum, ">": np.max, "<": np.min}


def extents(rng: np.random.Generator, rank: int, most: float) -> list[int]:
    """Extents of arrays with at most so many elements, all axes together."""
    while True:
        drawn = np.exp(rng.uniform(0, np.log(LONGEST), rank)).astype(int)
        if drawn.prod(dtype=float) <= most:
            return [int(extent) for extent in drawn]


def is_near(result: Array, wanted: Array, size: Array) -> bool:
    """Whether a result differs from what is wanted by no more than rounding of terms of a size."""
    return bool(np.all(np.abs(result - wanted) <= ROUNDING * (size + 1)))


@pytest.mark.parametrize("seed", range(60))
def test_reductions_over_any_axes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(2, 5))
    letters = "abcd"[:rank]
    x = rng.standard_normal(extents(rng, rank, 1e6)).astype(np.float32)
    axes = tuple(int(n) for n in np.flatnonzero(rng.random(rank) < 0.5)) or (rank - 1,)
    sign = str(rng.choice(list(REDUCED)))
    kept = "".join(letter for n, letter in enumerate(letters) if n not in axes)
    exact = x.astype(np.float64)
    result = i(f"{sign}{letters}~{kept or '.'}")(x)
    assert result.shape == tuple(x.shape[letters.index(letter)] for letter in kept)
    assert is_near(result, REDUCED[sign](exact, axis=axes), np.abs(exact).sum(axes))


@pytest.mark.parametrize("seed", range(40))
def test_contractions_of_any_axes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(2, 6))
    letters = "abcde"[:rank]
    sizes = dict(zip(letters, extents(rng, rank, 1e7), strict=True))
    words = ["".join(rng.permutation([c for c in letters if rng.random() < 0.7])) for _ in range(3)]
    out = "".join(c for c in words[2] if c in words[0] + words[1])
    spec = f"{words[0]},{words[1]}->{out}"
    arrays = [
        rng.standard_normal([sizes[c] for c in word]).astype(np.float32) for word in words[:2]
    ]
    exact = [array.astype(np.float64) for array in arrays]
    wanted = np.einsum(spec, *exact, optimize=True)
    size = np.einsum(spec, *map(np.abs, exact), optimize=True)
    assert is_near(einsum(spec, *arrays), wanted, size)


@pytest.mark.parametrize("terms", [512, 513, 819, 5000])
def test_rows_that_are_added_to_other_rows(terms: int) -> None:
    x = np.random.default_rng(terms).standard_normal((3, 7, terms)).astype(np.float32)
    component = i("+abc~b || a b c")
    assert "lanes" in component.loops((3, 7, terms))
    exact = x.astype(np.float64)
    assert is_near(component(x), exact.sum((0, 2)), np.abs(exact).sum((0, 2)))
