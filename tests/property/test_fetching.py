"""Loops that fetch what they will store: right for every extent, and no loop fetches what another one has."""

from __future__ import annotations

import numpy as np
import pytest

from ilang.core.pipeline import graph_of, infer, text_component
from tests.property import native
from tests.property.batch import Batch
from tests.property.meaning import TYPES
from tests.property.test_fuzz import needs_compiler

ROWS = ((0, 5), (3, 0), (1, 1), (1, 127), (2, 128), (3, 129), (5, 1000), (2, 1025), (4, 2500))


@needs_compiler
@pytest.mark.parametrize(
    ("mode", "dtype"),
    [
        *(("sanitized", dtype) for dtype in ("f32", "f64")),
        *(("fast", "f32"), ("baseline", "f64"), ("threads", "f32")),
        pytest.param("avx2", "f64", marks=native.needs_avx2),
    ],
)
def test_every_extent(mode: str, dtype: str) -> None:
    """Sums of matrices, and rows divided by their largest number."""
    numbers = np.random.default_rng(0)
    arrays = [numbers.integers(1, 9, shape).astype(TYPES[dtype]) for shape in ROWS]
    batch = Batch(mode)
    for text in ("ij+ij~ij", "(I & >ij~i) >> ij/i~ij"):
        count = 2 if "+" in text else 1
        shaped = infer(graph_of(text_component(text), "f"), [dtype] * count)
        batch.add(shaped)
        for x in arrays:
            right = x + x if count == 2 else x / x.max(1, keepdims=True, initial=0)
            batch.call(shaped, [x] * count, [right])
    batch.agree(0)
