"""Whole tiles that loops of a GPU move, as lines of pages."""

from __future__ import annotations

from ilang.core import pipeline
from ilang.core.explain.first_page import loops_page
from ilang.core.machine import GPU
from ilang.core.pipeline import explain, graph_of, infer, text_component

PRODUCT = "ik*kj~ijk >> +ijk~ij"


def stage(text: str, *shapes: tuple[int, ...]) -> str:
    graph = graph_of(text_component(text), "program")
    return pipeline.loops_text(pipeline.lower(infer(graph, shapes=list(shapes) or None), GPU))


def test_copies_are_lines_with_ranges() -> None:
    """What is loaded ahead begins a tile further on; registers are named without a range where all are moved."""
    lines = stage(PRODUCT, (2048, 2048), (2048, 2048))
    assert "in0_copy[0..16,0..128] = in0[128i+0..128,0..16]" in lines
    assert "in1_copy_loaded = in1[128k+16k1+16..32,128j+0..128]" in lines
    assert "out_part += out_run" in lines
    assert "in0_copy_next[0..16,0..128] = in0_copy_loaded" in lines


def test_edges_and_conversions_are_said_where_loops_are_exact() -> None:
    lines = stage(PRODUCT)
    assert "in0[128i+0..128,128k+0..16], where it is inside" in lines
    assert "out_acc += f64(out_part)" in lines


def test_a_transpose_is_two_lines() -> None:
    """Also at the edges of arrays, which the page leaves out."""
    page = loops_page(explain(graph_of(text_component("ij~ji"), "program"), None, machine=GPU))
    assert "in0_copy[0..4,0..8,0..32] = in0[i+0..32,j+0..32]\n" in page
    assert "out[j+0..32,i+0..32] = in0_copy[0..4,0..8,0..32]\n" in page


def test_loops_that_compute_stay_loops() -> None:
    lines = stage(PRODUCT, (2048, 2048), (2048, 2048))
    assert (
        "out_run[i1,j1,i3,j3] += in0_copy_held[i1,i3] * in1_copy_held[j1,j3], rounded once" in lines
    )
    assert "for j3 in 0..4 unrolled" in lines


def test_lines_of_a_stage_fit() -> None:
    assert max(map(len, stage(PRODUCT).splitlines())) <= 100


def test_the_page_has_no_remark_beside_tiles() -> None:
    graph = graph_of(text_component(PRODUCT), "program")
    page = loops_page(explain(graph, [(2048, 2048), (2048, 2048)], machine=GPU))
    assert "in0_copy[0..16,0..128] = in0[128i+0..128,0..16]\n" in page
    assert "''''" not in page
    assert len(page.splitlines()) <= 30
