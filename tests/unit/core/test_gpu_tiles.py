"""What is chosen for a GPU: contractions and transposes by blocks, all else by elements."""

from __future__ import annotations

from ilang.core import pipeline
from ilang.core.machine import GPU


def schedule(text: str) -> list[str]:
    """The chosen nest of every expression."""
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    told = pipeline.explain(graph, machine=GPU)
    return [row.schedule for row in told.execution.schedule]


def test_copies_are_double_buffered_where_blocks_have_room_for_two() -> None:
    text = "ik*kj~ijk >> +ijk~ij >> ij*jl~ijl >> +ijl~il"
    assert [row.split(" | ")[-1] for row in schedule(text)[::2]] == ["0:s2,1:s2", "0:c2,1:s2"]
    graph = pipeline.graph_of(pipeline.text_component("ik*kj~ijk >> +ijk~ij"), "f")
    for terms, swapped in ((8, 0), (17, 2)):  # one copy, and more
        shapes = [(512, terms), (terms, 512)]
        few = pipeline.lower(pipeline.infer(graph, shapes=shapes), GPU)
        assert pipeline.loops_text(few).count("swap") == swapped
