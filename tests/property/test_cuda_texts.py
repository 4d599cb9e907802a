"""Random programs of every notation as texts of CUDA, which nothing compiles."""

from __future__ import annotations

import pytest

from tests.property.cuda_texts import DRAWN, check


@pytest.mark.batches(1)
@pytest.mark.parametrize("notation", DRAWN)
def test_random_programs(notation: str, batch: int) -> None:
    tally = check(notation, range(7000 + 30 * batch, 7030 + 30 * batch))
    assert not tally.failures
    assert tally.programs == 30
    assert tally.lines
