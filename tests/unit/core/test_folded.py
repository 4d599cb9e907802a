"""Loops of one iteration and conditions that known extents decide: gone, and nothing else."""

from __future__ import annotations

import pytest

from ilang.codegen.targets import c
from ilang.core import pipeline
from ilang.core.ir.kernel import For, Program, statements_within
from ilang.core.machine import MACHINES

PRODUCT = "ik*kj~ijk >> +ijk~ij"


def program_of(text: str, *shapes: tuple[int, ...], target: str = "c") -> Program:
    graph = pipeline.graph_of(pipeline.text_component(text), "program")
    return pipeline.lower(pipeline.infer(graph, shapes=shapes), MACHINES[target])


def loops_of(program: Program) -> list[For]:
    """The loops of all kernels, but for those that blocks and threads share out."""
    return [
        s
        for kernel in program.kernels
        for s in statements_within(kernel.body)
        if isinstance(s, For) and s.body
    ]


@pytest.mark.parametrize("target", ["c", "cuda"])
@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (PRODUCT, ((64, 100), (100, 32))),
        (PRODUCT, ((8, 32), (32, 10))),
        ('einx.softmax("a [b]")', ((64, 100),)),
    ],
)
def test_no_loop_has_one_iteration(
    text: str, shapes: tuple[tuple[int, ...], ...], target: str
) -> None:
    program = program_of(text, *shapes, target=target)
    counts = [program.sizes[loop.size].fixed for loop in loops_of(program)]
    assert counts
    assert 1 not in counts


NO_TERMS = "ik*jk~ijk | i:16,j:8,k:2:16 | i j k 0 1 k' k'' i' j' | 0:s2,1:s >> "
NO_TERMS += "+ijk~ij | i:16,j:8,k:2:16 | i j k k' k'' i' j' 0 | i':m16,j':m16,k'':m16,j:x,i:y"


def test_a_loop_of_no_iterations_stays_as_it_is() -> None:
    """What a copy is filled with decides how its readers take it, though nothing is copied."""
    lowered = pipeline.loops_text(program_of(NO_TERMS, (5, 0), (3, 0), target="cuda"))
    assert "for k in 0..0\n" in lowered
    assert "in0_copy_next[0..16,0..32] = bf16(in0_copy_loaded)" in lowered
    assert "matrix unit adds to" in lowered


def test_a_loop_around_one_of_no_iterations_stays() -> None:
    text = "kj*ik~ijk | i:3:16,j:8,k:4:16 | j i k 0 1 k' k'' i' i'' j' >> "
    text += "+ijk~ij | i:3:16,j:8,k:4:16 | j i k k' k'' i' i'' j' 0"
    assert "for j in 0..1\n  for i in 0..0\n" in pipeline.loops_text(
        program_of(text, (4, 2), (0, 4))
    )


SCORES = "md*nd~mnd | m:16,n:16 | m n m' n' d >> +mnd~mn | m:16,n:16 | m n m' n' d 0"
SCORES += " >> >mn~m | m:16,n:16 | m n 0 m' n'"
FACTORS = "ki*jk~ijk | i:3:16,j:8,k:8 | i j 1 k k' i' i'' j' | 1:s2"
FACTORS += " >> +ijk~ij | i:3:16,j:8,k:8 | i j k k' i' i'' j' 0 | i':t,i'':m,j':m,k':m,j:x,i:y"


@pytest.mark.parametrize(
    ("text", "shapes", "element"),
    [
        (SCORES, ((2, 2), (3, 2)), "in1[n1,d]"),
        (FACTORS, ((3, 17), (40, 3)), "(in1_copy[j1,i3] if j1 < 3 else 0)"),
    ],
    ids=["loop", "condition"],
)
def test_threads_read_the_only_block_of_a_short_dimension(
    text: str, shapes: tuple[tuple[int, ...], ...], element: str
) -> None:
    """Their loop is longer than the dimension; where it ends, or a condition, keeps them inside."""
    assert element in pipeline.loops_text(program_of(text, *shapes, target="cuda"))


def test_a_block_that_is_never_whole_is_not_stored_from_registers() -> None:
    assert "into out" not in pipeline.loops_text(program_of(PRODUCT, (18, 100), (100, 10)))
    assert "into out" in pipeline.loops_text(program_of(PRODUCT, (8, 32), (32, 16)))


def test_little_work_has_one_thread() -> None:
    assert "SHARE_LOOP" not in c.emit(program_of("ij*ij~ij", (64, 100), (64, 100)))
    assert "SHARE_LOOP" in c.emit(program_of("ij*ij~ij", (640, 1000), (640, 1000)))


def test_known_extents_make_the_workspace_a_number() -> None:
    text = c.emit(program_of(PRODUCT, (64, 100), (100, 40)))
    assert "return 19264;" in text
    assert "_layout" not in text
