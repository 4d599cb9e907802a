"""Functions of parallel loops: what the verifier refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ilang.core import pipeline
from ilang.core.check import host as host_check
from ilang.core.check import kernel as check
from ilang.core.diagnostic import InternalError
from ilang.core.ir.cpu import Outline
from ilang.core.ir.ids import LocalId
from ilang.core.ir.kernel import For, Parallel, Program, map_statements
from ilang.core.ir.scalar import Local
from ilang.core.lower.host import kernel_to_host
from ilang.core.record import replace

ROWS = "(I & >ij~i) >> ij/i~ij"


def program_of(text: str) -> Program:
    return pipeline.lower(pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "p")))


def names(program: Program, buffers: tuple[int, ...] | frozenset[int]) -> set[str]:
    return {program.buffers[n].name for n in buffers}


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
