"""Accumulators that a loop carries from one iteration to the next, and reductions that start anew in each."""

from __future__ import annotations

import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.machine import CPU, GPU, Machine
from tests.property import schedules

CHOICE = '({} | I | 0.0) >> einx.where("k j, j, -> k j") >> +kj~k'


def carried(text: str, *shapes: tuple[int, ...], machine: Machine = CPU) -> str:
    """The loops of a program after the pass."""
    graph = pipeline.graph_of(pipeline.text_component(text), "program")
    stage = "carried" if machine is CPU else "loops"
    return pipeline.stage_text(graph, stage, shapes or None, machine)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("+b(k:20+j:20-19)~bk", "in0[b,k]"),
        ("+b(k:20+j:20-20)~bk", "in0[b,k-1]"),
        ("+b(k:20+j:20)~bk", "in0[b,-k+19]"),
        (">(k:20+j:20-19)d~kd", "in0[k,d]"),
        ("*(k:20+j:20)~k", "in0[-k+19]"),
        (CHOICE.format("@(k:20)>=@(j:20)~kj"), "in0[k]"),
        (CHOICE.format("@(j:20)<<@(k:20)~kj"), "in0[k-1]"),
        (CHOICE.format("@(k:20)<=@(j:20)~kj"), "in0[-k+19]"),
    ],
)
def test_each_iteration_adds_one_term(text: str, term: str) -> None:
    loops = carried(text, (20,) * len(text.rpartition("~")[2]))
    assert "for j" not in loops
    assert term in loops


def test_the_first_terms_are_added_before_the_loop() -> None:
    loops = carried("+(k:20+j:23-19)~k", (20,))
    assert loops.startswith("out_acc = 0\nfor j in 0..min(20, 3)\n")
    assert "if k+3 < 20" in loops


def test_accumulators_of_lanes_are_a_row() -> None:
    loops = carried("+(k:20+j:20-19)d~kd")
    assert "memory out_acc f64[2048] private" in loops
    assert loops.index("out_acc[d1] = 0") < loops.index("for k in 0..20")


@pytest.mark.parametrize(
    "text",
    [
        "+b(k:20+j:5-4)~bk",  # windows that slide
        "+b(k:20+j:30-25)~bk",  # that lose terms on one side, and get others
        "+b(k:9+j:9-8)~bk",  # few terms
        "ij[j<=i]*j~ij >> +ij~i",  # terms of each row
        CHOICE.format("@(k:20)==@(j:20)~kj"),
        CHOICE.format("@(k:20)>=@(j:20)~kj").replace("| 0.0", "| 1.0"),
        "@(k:20)>=@(j:20)~kj >> f32 >> kj*j~kj >> +kj~k",
        "+b(k:20+j:20-19)~bk || j b k",  # other loops than a scan has
        "+b(k:20+j:20-19)~bk || b k j | k:p",  # which threads share
    ],
)
def test_what_is_no_scan_starts_anew(text: str) -> None:
    shape = (20,) if text.endswith("~k") else (20, 20)
    loops = carried(text, *([shape, (20,)] if "ij" in text else [shape]))
    assert "for j" in loops or "for i" in loops


def test_sums_from_both_ends_of_one_array() -> None:
    loops = carried("+(k:20+j:20-19)~k & +(k:20+j:20)~k", (20,))
    assert "for j" not in loops
    assert "in0[k]" in loops
    assert "in0[-k+19]" in loops


def test_a_gpu_adds_all_terms() -> None:
    assert "for j" in carried("+b(k:20+j:20-19)~bk", (20, 20), machine=GPU)


@pytest.mark.parametrize("text", ["+b(k:20+j:20-19)~bk", CHOICE.format("@(k:20)>=@(j:20)~kj")])
def test_the_printed_schedule_gives_the_same_code(text: str) -> None:
    shape = (20,) * len(text.rpartition("~")[2])
    graph = pipeline.graph_of(pipeline.text_component(text), "program")
    shaped = pipeline.infer(graph, shapes=[shape])
    again = schedules.written_back(shaped, CPU)
    assert schedules.same_code(shaped, again, CPU)


def test_work_counts_each_term_once() -> None:
    for batch in (1, 3):
        page = str(i("+b(k:20+j:20-19)~bk").explain((batch, 20)))
        assert f"work     {20 * batch} flops" in page, page
    assert "work     1,200 flops" in str(i("+b(k:20+j:20-19)~bk || j b k").explain((3, 20)))
