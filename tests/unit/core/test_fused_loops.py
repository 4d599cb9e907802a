"""Which loops are fused, what then needs no memory, and what a loop in lanes sums and fetches."""

import pytest

from ilang.core.explain.kernel import loops_text
from ilang.core.machine import CPU, GPU
from ilang.core.pipeline import (
    FINAL,
    graph_of,
    infer,
    lower,
    stage_text,
    stage_texts,
    stages_of,
    text_component,
)
from ilang.core.steps import PASSES


def loops(text: str, shapes: list[tuple[int, ...]] | None = None) -> str:
    """The loops of a program of f32 arrays."""
    graph = graph_of(text_component(text), "program")
    return loops_text(lower(infer(graph, shapes=shapes)))


SOFTMAX = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"


def test_what_nothing_reads_is_not_stored() -> None:
    text = loops("-ij~ij || i j >> ^ij~ij || i 0 j")
    assert "negative_element = -in0[i,j]" in text
    assert "t1[" not in text


def test_long_sums_go_in_chunks_and_short_ones_do_not() -> None:
    assert "for j in 0..3\n" in loops("+ij~i", [(4, 5000)])
    short = loops("+ij~i", [(4, 2048)])
    assert "for j in 0..2048 in 32 lanes" in short
    assert "out_acc += f64(out_lanes)" in short


def test_sums_of_f64_stay_in_f64() -> None:
    assert "partial" not in loops("f64 >> +ij~i")


def test_every_stage_is_printed_by_its_name() -> None:
    graph = graph_of(text_component(SOFTMAX), "program")
    for machine in (CPU, GPU):
        shown = stage_texts(SOFTMAX, machine)
        assert {s: stage_text(graph, s, machine=machine) for s in stages_of(machine)} == {
            **{stage: text for stage, text in shown.items() if stage != "syntax"},
            FINAL: shown[PASSES[machine.kind][-1].stage],
        }
        assert set(shown) == {"syntax", *stages_of(machine)} - {FINAL}


@pytest.mark.parametrize("then", ["-ij~ij", "-ji~ji", "-ab~ab"])
def test_a_copy_that_transposes_stays_whatever_the_letters(then: str) -> None:
    graph = graph_of(text_component(f"ij~ji >> {then}"), "turned")
    assert "in squares" in stage_text(graph, "transposes")
