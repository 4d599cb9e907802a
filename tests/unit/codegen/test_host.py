"""The host program: what is checked, where things stand, what is launched; and that C does as it says."""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ilang import Error
from ilang.codegen.call.load import Compiled, Interface
from ilang.codegen.call.memory import NO_SPACE, argument
from ilang.codegen.targets.c import emit
from ilang.core import pipeline
from ilang.core.check import host as check
from ilang.core.check import kernel as kernel_check
from ilang.core.dtype import BYTES
from ilang.core.ir.host import Host, Look, Step
from ilang.core.ir.kernel import Program, Statement, Store, map_statements
from ilang.core.ir.shaped import Derivation, Reach
from ilang.core.lower.host import kernel_to_host
from ilang.core.machine import CPU
from ilang.core.pipeline import graph_of, infer, lower, text_component
from ilang.core.record import replace
from ilang.core.steps import PASSES
from ilang.core.steps import Step as PipelineStep

pytestmark = pytest.mark.usefixtures("real_compiler")

SOFTMAX = "^ij~ij >> (I & +ij~i) >> ij/i~ij"
TWO_KERNELS = "(+ij~j & I) >> j*ij~ij >> (I & >ij~i) >> ij-i~ij"
PROGRAMS = (
    "i+i~i",
    SOFTMAX,
    TWO_KERNELS,
    "ik*kj~ijk >> +ijk~ij",
    "(i+k-1)*k~ik >> +ik~i",
    "(2i+k)*k~ik >> +ik~i",
    "3j~j",
    "+ij~j",
    "+i~.",
)


def program_of(text: str) -> Program:
    return lower(infer(graph_of(text_component(text), "program")))


def host_of(text: str) -> Host:
    host = kernel_to_host(program_of(text))
    check.verify(host)
    return host


def size_of(rule: Derivation, extents: dict[int, int]) -> int:
    total = rule.whole.offset() + sum(c * extents[n] for c, n in rule.whole.steps())
    return total // rule.divisor.number


def holds(reach: Reach, extents: dict[int, int]) -> bool:
    """Whether every position from the least to the largest is within the limit."""
    ends = [c * (extents[n] - 1) for c, n in reach.index.steps()]
    largest = reach.index.offset + sum(end for end in ends if 0 < end)
    least = reach.index.offset + sum(end for end in ends if end < 0)
    return largest <= reach.limit and -reach.limit <= least


def settled(host: Host, steps: Sequence[Step], given: dict[int, int]) -> dict[int, int] | None:
    """Every extent after some steps; None where one refuses."""
    extents = {n: size.fixed for n, size in enumerate(host.program.sizes) if size.fixed is not None}
    for step in steps:
        match step:
            case int():
                extents[step] = given[step]
            case Derivation():
                value = size_of(step, extents)
                spread = any(1 < extents[n] for n in step.spread)
                if value < (1 if spread else step.least):
                    return None
                if step.known and value != extents[step.size]:
                    return None
                extents[step.size] = value
            case Reach() if step.size is not None:
                if extents[step.size] <= step.index.offset:
                    return None
            case Reach():
                if not holds(step, extents):
                    return None
            case (size, value):
                extents[size] = value.value(extents)
    return extents


def workspace(host: Host, given: dict[int, int]) -> int | None:
    """The bytes of workspace by the meaning of the layout; None where the extents do not fit."""
    extents = settled(host, host.checks, given)
    if extents is None:
        return None
    buffers, line = host.program.buffers, host.program.machine.memory.line_bytes

    def taken(number: int) -> int:
        count = math.prod(extents[n] for n in buffers[number].dims)
        return -(-count * BYTES[buffers[number].dtype] // line) * line

    total = sum(map(taken, host.temporaries))
    most = max((sum(map(taken, private)) for private in host.scratch), default=0)
    threads = 1  # without OpenMP
    return total + most * threads + (line if host.has_workspace() else 0)


@pytest.mark.parametrize("text", PROGRAMS)
def test_c_takes_the_workspace_that_the_layout_says(text: str) -> None:
    program = program_of(text)
    host = kernel_to_host(program)
    arguments = [n for n, size in enumerate(program.sizes) if size.is_argument()]
    interface = Interface("program", len(program.arguments()), tuple(arguments), (), 1, 0)
    library = Compiled(interface, lambda: emit(program), emit(program)).library(threads=False)
    for extents in ((5, 7, 3), (3, 3, 3), (70, 600, 200), (0, 4, 1), (1, 0, 0)):
        given = dict(zip(arguments, extents, strict=False))
        sizes = np.array([*given.values(), 0], np.int64)
        asked = library.work(argument(sizes))
        wanted = workspace(host, given)
        assert asked == (2**64 - 1 if wanted is None else wanted), given


def in_place(text: str) -> Program:
    """A program of one input and one output of the same shape, computed where the input stands."""
    lowering, passes = pipeline.LOWERING, PASSES[CPU.kind]
    program = taken(infer(graph_of(text_component(text), "program")), lowering)
    (source,), (target,) = program.inputs, program.outputs

    def moved(s: Statement) -> Statement:
        return replace(s, buffer=source) if isinstance(s, Store) and s.buffer == target else s

    kernels = tuple(
        replace(kernel, body=map_statements(kernel.body, moved)) for kernel in program.kernels
    )
    buffers = list(program.buffers)
    buffers[source] = replace(buffers[source], role="inout")
    moved_there = replace(program, buffers=tuple(buffers), kernels=kernels, outputs=(source,))
    return taken(moved_there, passes)


def taken(value: Any, steps: tuple[PipelineStep, ...]) -> Program:
    """What some steps of the pipeline give."""
    for step in steps:
        value = step.run(value, CPU)
    program: Program = value
    return program


def test_an_array_that_is_read_and_written() -> None:
    program = in_place("-i~i")
    kernel_check.verify(program)
    host = kernel_to_host(program)
    check.verify(host)
    assert program.arguments() == program.inputs
    text = emit(program)
    assert "int program(const program_sizes *sizes, float *in0, void *work)" in text
    assert "inout   in0: f32[i]" in text
    library = Compiled(Interface("program", 1, (0,), (), 1, 0), lambda: text, text).library(False)
    array = np.arange(100, dtype=np.float32)
    sizes = np.array([100], np.int64)
    status = library.function(argument(sizes), argument(array), NO_SPACE)
    assert status == 0
    assert np.array_equal(array, -np.arange(100, dtype=np.float32))


def broken(host: Host, invariant: str) -> None:
    with pytest.raises(Error) as caught:
        check.verify(host)
    assert caught.value.code == "E9905"
    assert invariant in caught.value.message


def test_every_invariant_is_checked() -> None:
    host = host_of(TWO_KERNELS)
    first, *rest = host.launches()
    wrong = tuple(replace(buffer, role="inout") for buffer in host.program.buffers)
    broken(replace(host, program=replace(host.program, buffers=wrong)), "does with it")
    broken(replace(host, checks=()), "a size of what is measured is given")
    broken(replace(host, sizes=()), "a size that a launch takes is given")
    broken(replace(host, checks=host.checks * 2), "a size is given once")
    broken(replace(host, sizes=host.sizes[::-1]), "a step reads sizes that are known before it")
    broken(replace(host, temporaries=()), "has a place")
    twice = replace(host, temporaries=host.temporaries * 2)
    broken(twice, "a buffer has one place")
    broken(replace(host, operations=(*rest, first)), "written before it is read")
    foreign = replace(first, writes=first.writes | {host.program.inputs[0]})
    broken(replace(host, operations=(foreign, *rest)), "inputs are not written")
    idle = replace(rest[-1], writes=frozenset())
    broken(replace(host, operations=(first, *rest[:-1], idle)), "an output is written")
    told = replace(first, infinite=0)
    broken(replace(host, operations=(told, *rest)), "known to be finite is not written")
    early = Look(((host.temporaries[0], None),), 0, None)
    broken(replace(host, operations=(early, first, *rest)), "looked at has been written")
    twice_told = (first, early, early, *rest)
    broken(replace(host, operations=twice_told), "a mark is that of one look")


def test_private_buffers_are_parameters() -> None:
    """Compilers take ``restrict`` from parameters: pointers of a body are taken to overlap, and loops stay scalar."""
    text = emit(lower(infer(graph_of(text_component(SOFTMAX), "f"), shapes=[(640, 1000)])))
    assert "float *restrict exps)" in text
    assert not re.search(r"\*restrict \w+ =", text)
