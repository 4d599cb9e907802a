"""Copies of unrolled loops: as many as a compiler takes, all around each other together."""

from ilang.core.ir.cpu import Tile
from ilang.core.ir.kernel import For, Program, statements_within
from ilang.core.pipeline import graph_of, infer, loops_text, lower, text_component


def copies(program: Program) -> list[int | None]:
    inside = (s for kernel in program.kernels for s in statements_within(kernel.body))
    return [s.copies for s in inside if isinstance(s, For)]


def lowered(text: str) -> Program:
    return lower(infer(graph_of(text_component(text), "program")))


def test_a_loop_is_written_out() -> None:
    assert copies(lowered("-ij~ij | j:8 | i j j' | j':u")) == [None, None, 8]


def test_loops_around_each_other_share_the_copies() -> None:
    program = lowered("-ij~ij | i:4,j:128 | i j i' j' | i':u,j':u")
    assert copies(program) == [None, None, 4, 64]
    assert " unrolled by 64" in loops_text(program)


def test_other_loops_have_none() -> None:
    assert set(copies(lowered("-ij~ij >> +ij~i"))) == {None}


def test_what_stands_beside_registers_stays_a_loop() -> None:
    program = lowered("ik*kj~ijk >> +ijk~ij")
    (tile,) = (s for k in program.kernels for s in statements_within(k.body) if isinstance(s, Tile))
    *around, innermost = (s for s in statements_within(tile.body) if isinstance(s, For))
    assert innermost.copies == 1
    assert {loop.copies for loop in around} == {None}
