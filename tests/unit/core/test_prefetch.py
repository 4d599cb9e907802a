"""Rows that loops fetch: which do not, how far ahead, and what the verifier refuses."""

from __future__ import annotations

import pytest

from ilang.core import pipeline
from ilang.core.calculus.affine import Affine
from ilang.core.check import kernel as check
from ilang.core.diagnostic import InternalError
from ilang.core.ir.cpu import Prefetch
from ilang.core.ir.ids import BufferId
from ilang.core.ir.kernel import For, Program, map_statements, statements_within
from ilang.core.ir.scalar import Load
from ilang.core.machine import CPU
from ilang.core.record import replace


def program_of(text: str, shapes: list[tuple[int, ...]] | None = None) -> Program:
    graph = pipeline.graph_of(pipeline.text_component(text), "program")
    return pipeline.lower(pipeline.infer(graph, shapes=shapes))


def fetches_of(program: Program) -> list[tuple[int, list[str]]]:
    """Of each loop that fetches, outermost first: the lanes, and the buffers."""
    inside = [s for kernel in program.kernels for s in statements_within(kernel.body)]
    return [
        (
            s.lanes,
            [program.buffers[load.buffer].name for _, loads in s.prefetch.lines for load in loads],
        )
        for s in inside
        if isinstance(s, For) and s.prefetch is not None
    ]


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ij+j~ij", [(9, 1000), (1000,)]),  # the row ends before what is a page further on
        ("^i~i", None),  # an exponential takes longer than the memory
        ("ij~ji", None),  # a copy in squares
        ("i*i~i", None),  # three arrays keep memory busy by themselves
        ("+ij~i", None),  # the sum of a row is stored, and not a row
        ("ik*kj~ijk >> +ijk~ij", None),  # tiles store from registers
    ],
)
def test_no_other_loop_fetches(text: str, shapes: list[tuple[int, ...]] | None) -> None:
    program = program_of(text, shapes)
    assert [lanes for lanes, _ in fetches_of(program) if lanes == 1] == []


def test_the_distances_are_of_the_machine() -> None:
    """A page of 8192 bytes, 256 bytes at a time, in lines of 128."""
    memory = replace(CPU.memory, page_bytes=8192, fetched_bytes=256, line_bytes=128)
    graph = pipeline.graph_of(pipeline.text_component("ij+j~ij"), "program")
    program = pipeline.lower(pipeline.infer(graph), replace(CPU, memory=memory))
    text = pipeline.loops_text(program)
    assert "for j in 0..n_j prefetching out[i,j+2048] and in0[i,j+2048] by 64" in text


@pytest.mark.parametrize(
    ("text", "shapes", "fetched"),
    [
        ("+ij~i", [(2048, 2048)], ""),
        ("+ij~i", [(2049, 2048)], "in0[i,j+2048] by 256"),
        ("ij*j~ij >> +ij~i", [(9, 2049 * 1024), (2049 * 1024,)], "in0[i,2048j+j1+2048] by 256"),
        ("+ij~j", [(2048, 2048)], ""),
        ("+ij~j", [(2049, 2048)], ""),
        ("ik*kj~ijk >> +ijk~ij", [(2049, 2048), (2048, 2049)], ""),
    ],
)
def test_what_no_cache_holds_is_fetched_two_pages_before(
    text: str, shapes: list[tuple[int, ...]], fetched: str
) -> None:
    """16 MB stay in a cache; a row of 2048 numbers is two pages."""
    lines = pipeline.loops_text(program_of(text, shapes)).splitlines()
    words = {line.split(" prefetching ")[1] for line in lines if " prefetching in" in line}
    assert words == {fetched} - {""}


OUT = BufferId(2)
ROW = (Affine(((1, 0),)), Affine(((1, 1),)))
WRONG = {
    "a loop that fetches says what": Prefetch(128, ()),
    "a loop fetches whole lines at a time": Prefetch(100, ((16, (Load(OUT, ROW, "f32"),)),)),
    "a line at every so many iterations": Prefetch(128, ((0, (Load(OUT, ROW, "f32"),)),)),
    "what it walks element by element": Prefetch(128, ((16, (Load(OUT, ROW[::-1], "f32"),)),)),
    "at indices of open loops": Prefetch(
        128, ((16, (Load(OUT, (Affine(((1, 9),)), ROW[1]), "f32"),)),)
    ),
}


@pytest.mark.parametrize("invariant", WRONG)
def test_a_loop_that_fetches_something_else_is_refused(invariant: str) -> None:
    program = program_of("ij+j~ij")
    (kernel,) = program.kernels
    body = map_statements(
        kernel.body,
        lambda s: (
            replace(s, prefetch=WRONG[invariant])
            if isinstance(s, For) and s.prefetch is not None
            else s
        ),
    )
    with pytest.raises(InternalError, match=invariant):
        check.verify(replace(program, kernels=(replace(kernel, body=body),)))
