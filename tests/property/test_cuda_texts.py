"""Random programs of every notation as texts of CUDA, which nothing compiles."""

from __future__ import annotations

import pytest

from tests.property.cuda_texts import DRAWN, check


@pytest.mark.batches(1)
@pytest.mark.parametrize("notation", DRAWN)
def test_random_programs(notation: str, batch: int) -> None:
    count = 600 if notation == "operands" else 30
    first = 7000 + count * batch
    tally = check(notation, range(first, first + count))
    assert not tally.failures
    assert count == tally.programs + tally.refused
    assert count < 2 * tally.programs
