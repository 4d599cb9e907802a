"""What is chosen for a GPU: contractions and transposes by blocks, all else by elements."""

from __future__ import annotations

import pytest

from ilang.core import pipeline
from ilang.core.machine import GPU


def schedule(text: str) -> list[str]:
    """The chosen nest of every expression."""
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    told = pipeline.explain(graph, machine=GPU)
    return [row.schedule for row in told.execution.schedule]


@pytest.mark.parametrize(
    ("text", "nests"),
    [
        (
            "ik*kj~ijk >> +ijk~ij",
            [
                "| i:2:16:4,j:16:4,k:8:16 | i j k k' 0 1 k'' i' i'' j' i''' j'' | 0:s2,1:s2",
                (
                    "| i:2:16:4,j:16:4,k:8:16 | i j k k' k'' i' i'' j' i''' j'' 0 "
                    "| i:p,j:p,k:p,i':u,i'':t,j':t,i''':u,j'':u"
                ),
            ],
        ),
        ("ij~ji", ["| j:4:8,i:32 | j i 0 j' j'' i' | j:p,i:p,j':u,j'':t,i':t"]),
        ("ij+ij~ij", ["|| i j | i:p,j:p"]),
        ("+ij~i", ["| j:1024 | i j j' | i:p,j:p,j':t"]),
        ("+ij~j", ["| i:2:128 | j i i' i'' | j:p,i:p"]),
        ("+ijk~jk", ["| i:2:128 | j k i i' i'' | j:p,k:p,i:p"]),
        ("+ijk~k", ["|| k i j | k:p"]),
        ("+ij~.", ["|| i j | j:t"]),
        ("(x+v)*v~xv >> +xv~x", ["|| x v", "|| x v 0 | x:p"]),
    ],
)
def test_nests_by_pattern(text: str, nests: list[str]) -> None:
    assert schedule(text) == nests


@pytest.mark.parametrize("text", ["ik*kj~ijk >> +ijk~ij", "ij~ji", "(I & >ij~i) >> ij-i~ij"])
def test_what_is_chosen_gives_the_same_text_when_it_is_written(text: str) -> None:
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    chosen = pipeline.explain(graph, machine=GPU).execution.schedule
    assert all(row.schedule for row in chosen)
    again = text
    for row in chosen:
        bare = row.text
        again = again.replace(bare, f"{bare} {row.schedule}")
    other = pipeline.graph_of(pipeline.text_component(again), "f")
    first, second = (
        pipeline.loops_text(pipeline.lower(pipeline.infer(g), GPU)) for g in (graph, other)
    )
    assert first == second


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        (
            "ik*kj~ijk >> +ijk~ij",
            "over k' k'', in f32, added over k, 32 at a time at most, i' i'' j' i''' j'' at a time",
        ),
        ("+ij~i | j:64 | i j j'", "over j', in f32"),
        ("+ij~i | j:64 | i j j' | j':t", None),  # threads share a run
        ("+ij~i | j:256 | i j j'", None),  # too many terms for f32
        (">ij~i | j:64 | i j j'", None),
        ("f64 >> +ij~i | j:64 | i j j'", None),
    ],
)
def test_threads_add_few_terms_of_f32_before_others(text: str, runs: str | None) -> None:
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    told = pipeline.stage_text(graph, "schedule", machine=GPU)
    said = [line.partition(" in runs ")[2] for line in told.splitlines() if " in runs " in line]
    assert said == ([] if runs is None else [runs])


def test_copies_are_double_buffered_where_blocks_have_room_for_two() -> None:
    text = "ik*kj~ijk >> +ijk~ij >> ij*jl~ijl >> +ijl~il"
    assert [row.split(" | ")[-1] for row in schedule(text)[::2]] == ["0:s2,1:s2", "0:c2,1:s2"]
    graph = pipeline.graph_of(pipeline.text_component("ik*kj~ijk >> +ijk~ij"), "f")
    wide = pipeline.lower(pipeline.infer(graph, ["f64", "f64"]), GPU)
    assert "swap" not in pipeline.loops_text(wide)  # more than 48 KiB
    for terms, swapped in ((16, 0), (17, 2)):  # one tile, and more
        shapes = [(512, terms), (terms, 512)]
        few = pipeline.lower(pipeline.infer(graph, shapes=shapes), GPU)
        assert pipeline.loops_text(few).count("swap") == swapped
