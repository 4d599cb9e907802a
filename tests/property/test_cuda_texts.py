"""Random programs of every notation as texts of CUDA, which nothing compiles."""

from __future__ import annotations

import pytest

from ilang.core import pipeline
from ilang.core.machine import GPU
from tests.property.cuda_texts import DRAWN, check


@pytest.mark.batches(1)
@pytest.mark.parametrize("notation", DRAWN)
def test_random_programs(notation: str, batch: int) -> None:
    count = 600 if notation == "operands" else 30
    first = 7000 + count * batch
    tally = check(notation, range(first, first + count))
    assert not tally.failures
    assert count == tally.counts["programs"] + tally.counts["refused"]
    assert count < 2 * tally.counts["programs"]


@pytest.mark.parametrize("reader", ["einsum('a,;a^j,=>j,a')", "einsum('a,;j,=>j,a')"])
def test_a_chosen_sum_beside_a_written_nest_has_parts_only_where_it_is_stored(reader: str) -> None:
    """Nothing reads the sum of the first program: an axis of a concatenation is never all axes of a result."""
    text = f"+ei~i << (einsum('k,;k<+t,p,t=>t,k|') || p t k) >> {reader}"
    shaped = pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "p"))
    pipeline.lower(shaped, GPU)
