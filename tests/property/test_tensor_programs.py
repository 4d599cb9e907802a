"""Random tensor functions and routines: meaning, oracle, C and CUDA agree, gradients with differences."""

from __future__ import annotations

import pytest

from tests.property.tensor_checking import check

START = 70_000


@pytest.mark.batches(1)
@pytest.mark.parametrize(("mode", "count"), [("fast", 8), ("cuda-checked", 3)])
def test_random_routines_mean_what_they_say(mode: str, count: int, batch: int) -> None:
    start = START + 1000 * batch + (500 if mode == "fast" else 0)
    tally = check(range(start, start + count), mode, session_every=10)
    assert not tally.failures, tally.told()
    assert count < 2 * tally.counts["meant"]
