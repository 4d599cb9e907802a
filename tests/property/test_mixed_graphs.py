"""Random graphs that mix index expressions, specifications and operations between tensors."""

from __future__ import annotations

import shutil

import pytest

from tests.property import mixed, mixed_checking
from tests.property.test_fuzz import needs_compiler

AGAIN = 10_000
"""The seeds of another batch begin so much later."""


@needs_compiler
@pytest.mark.parametrize(
    ("seed", "count", "mode"), [(0, 30, "sanitized"), (60, 20, "fast"), (100, 20, "threads")]
)
@pytest.mark.batches(1)
def test_random_mixed_graphs(seed: int, count: int, mode: str, batch: int) -> None:
    seed += AGAIN * batch
    tally = mixed_checking.check(range(seed, seed + count), mode)
    assert not tally.failures, tally.told()
    assert tally.counts["programs"] == count
    assert 0 < tally.counts["fixed"] < count
    assert tally.counts["runs"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.batches(1)
def test_random_mixed_graphs_on_the_emulator(batch: int) -> None:
    seed = 140 + AGAIN * batch
    tally = mixed_checking.check(range(seed, seed + 15), "cuda-checked")
    assert not tally.failures, tally.told()
    assert tally.counts["runs"]


def test_mixed_graphs_have_every_form() -> None:
    drawn = [mixed.generate(seed) for seed in range(200)]
    kinds = {kind for one in drawn for kind in one.says}
    assert kinds == {
        *("unary", "binary", "triangle", "convolved", "contraction", "window", "joined"),
        *("pointwise", "scaled", "composed", "exchanged", "sliced", "stacked", "woven"),
        *("joining", "splitting", "across"),
    }
    assert {n for one in drawn for run in one.runs for a in run for n in a.shape} >= {0, 1, 2, 17}
    assert {one.fixed for one in drawn} == {None, 0, 1, 2}
    assert {one.dtype for one in drawn} == set(mixed.DTYPES)
    assert {len(one.graph.outputs) for one in drawn} >= {1, 2, 3}
