"""Functions of parallel loops: what they take and keep, how they are printed, and what the verifier refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ilang.core import pipeline
from ilang.core.check import host as host_check
from ilang.core.check import kernel as check
from ilang.core.diagnostic import InternalError
from ilang.core.ir.cpu import Outline
from ilang.core.ir.ids import LocalId
from ilang.core.ir.kernel import For, Kernel, Parallel, Program, map_statements, statements_within
from ilang.core.ir.scalar import Local
from ilang.core.lower.host import kernel_to_host
from ilang.core.passes.cpu.outlined import kernel_to_outlined
from ilang.core.record import replace

MATMUL = "ik*kj~ijk >> +ijk~ij"
ROWS = "(I & >ij~i) >> ij/i~ij"


def program_of(text: str) -> Program:
    return pipeline.lower(pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "p")))


def outlines_of(kernel: Kernel) -> list[Outline]:
    """The functions of the loops of a kernel, outer ones first."""
    loops = [s for s in statements_within(kernel.body) if isinstance(s, For)]
    return [loop.outline for loop in loops if loop.outline is not None]


def names(program: Program, buffers: tuple[int, ...] | frozenset[int]) -> set[str]:
    return {program.buffers[n].name for n in buffers}


def test_what_the_functions_of_a_product_take() -> None:
    program = program_of(MATMUL)
    (kernel,) = program.kernels
    strips, copies, tiles = outlines_of(kernel)
    assert [outline.name for outline in (strips, copies, tiles)] == [
        "out_j",
        "in1_copy_in1_0",
        "out_i",
    ]
    assert names(program, strips.captured.buffers) == {"in0", "in1", "out"}
    assert names(program, copies.captured.buffers) == {"in1", "in1_copy"}
    assert names(program, copies.written) == {"in1_copy"}
    assert [kernel.names[v] for v in tiles.captured.variables] == ["j"]


def test_a_copy_stands_in_the_scratch_storage_of_the_loop_around_its_uses() -> None:
    program = program_of(MATMUL)
    (kernel,) = program.kernels
    strips, copies, tiles = outlines_of(kernel)
    assert names(program, strips.private) == {"in1_copy"}
    assert (strips.scratch, strips.divided) == (True, False)
    assert (copies.scratch, tiles.scratch) == (False, False)
    assert kernel.outline is not None
    assert (kernel.outline.scratch, kernel.outline.divided) == (True, True)


def test_a_tile_that_fills_a_copy_is_told_whether_it_does() -> None:
    program = program_of(MATMUL)
    _, copies, tiles = outlines_of(program.kernels[0])
    assert names(program, tiles.fills) == {"in1_copy"}
    assert copies.fills == ()


def test_loops_with_nothing_between_them_are_one() -> None:
    text = "(I & >hij~hi) >> hij-hi~hij >> ^hij~hij"
    kernel = program_of(text).kernels[-1]
    (outline,) = outlines_of(kernel)
    parallel = [s for s in statements_within(kernel.body) if isinstance(s, For) and s.parallel]
    assert outline.loops == len(parallel) == 2


def test_the_largest_loop_inside_is_weighed() -> None:
    """The tiles, which take 4 n_k n_i, and not the copy of 64 n_k elements."""
    (kernel,) = program_of(MATMUL).kernels
    strips, copies, tiles = outlines_of(kernel)
    assert strips.estimate is not None
    assert tiles.estimate is not None
    assert strips.estimate.inside is not None
    assert strips.estimate.inside.times == tiles.estimate.times
    assert not any(loop.within for loop in strips.estimate.inside.loops)
    assert copies.estimate is not None
    assert copies.estimate.time == 128


def test_scalars_are_given() -> None:
    """The mean outside of the loop that subtracts it is given to the function of that loop."""
    (kernel,) = program_of("(I & +m~.) >> m-.~m").kernels
    (given,) = [
        outline.captured.locals for outline in outlines_of(kernel) if outline.captured.locals
    ]
    assert [kernel.locals[local.variable].name for local in given] == ["sum"]


def test_functions_are_printed() -> None:
    head, function, shared = pipeline.loops_text(program_of(ROWS)).splitlines()[:3]
    assert head == "parallel for i in 0..n_i"
    assert function == "  as out_i(n_j; in0, out) writing out"
    assert shared == "  shared by time 2.5·n_i·n_j"


def test_the_pass_stands() -> None:
    """A program that is outlined already gets the same functions."""
    program = program_of(MATMUL)
    assert kernel_to_outlined(program) == program


def changed(program: Program, change: Callable[[Outline], Outline]) -> Program:
    """The program whose functions of loops are described otherwise."""
    kernels = tuple(
        replace(
            kernel,
            body=map_statements(
                kernel.body,
                lambda s: (
                    replace(s, manner=Parallel(change(s.outline)))
                    if isinstance(s, For) and s.outline is not None
                    else s
                ),
            ),
        )
        for kernel in program.kernels
    )
    return replace(program, kernels=kernels)


WRONG: dict[str, Callable[[Outline], Outline]] = {
    "functions of loops have names of their own": lambda x: replace(x, name=""),
    "a parallel loop belongs to one function": lambda x: replace(x, loops=2),
    "a private buffer has one place": lambda x: replace(x, private=(2, 2)),
    "scratch storage is divided where what is called takes some": (
        lambda x: replace(x, divided=True)
    ),
    "calls the functions of loops inside it": lambda x: replace(x, calls=not x.calls),
    "threads share loops": lambda x: replace(x, estimate=None),
    "given the arrays that it touches": (
        lambda x: replace(x, captured=replace(x.captured, buffers=()))
    ),
    "says which arrays it writes": lambda x: replace(x, written=frozenset()),
    "given the scalars that it reads": (
        lambda x: replace(x, captured=replace(x.captured, locals=(Local(LocalId(0), "f32"),)))
    ),
    "given the extents of its loops": (
        lambda x: replace(x, captured=replace(x.captured, sizes=()))
    ),
    "given the loops around it": lambda x: replace(x, captured=replace(x.captured, variables=(0,))),
}


@pytest.mark.parametrize("invariant", WRONG)
def test_a_function_that_takes_something_else_is_refused(invariant: str) -> None:
    with pytest.raises(InternalError, match=invariant):
        check.verify(changed(program_of(ROWS), WRONG[invariant]))


def test_a_launch_gives_what_a_kernel_takes() -> None:
    program = program_of(ROWS)
    (kernel,) = program.kernels
    assert kernel.outline is not None
    outline = replace(kernel.outline, scratch=True)
    wrong = replace(program, kernels=(replace(kernel, outline=outline),))
    with pytest.raises(InternalError, match="takes scratch storage where it keeps something"):
        check.verify(wrong)
    with pytest.raises(InternalError, match="a launch gives what the function of a kernel takes"):
        host_check.verify(kernel_to_host(wrong))
