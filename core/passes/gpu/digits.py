"""Split dimensions of private buffers into digits, of which one is a loop for threads.

Example, where j1 is for the 32 lanes of a warp:
    in:   memory t f32[1024]                       out:  memory t f32[8,32,4]
          t[128j+4j1+j2] = ...                           t[j,j1,j2] = ...

A thread that has elements of its own then keeps them in registers (``spaces.py``), although they are not adjacent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ilang.core.calculus.affine import Affine, axis_index
from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.rewriting import Access, accesses, with_indices
from ilang.core.ir.schedule import THREAD_ROLES
from ilang.core.passes.gpu.numbering import Numbering, renumbered
from ilang.core.record import replace

Steps = tuple[int, ...]
"""The distances of the digits of a dimension, outermost first: 128, 4, 1."""
WHOLE: Steps = (1,)
"""The distances of a dimension that stays as it is."""


def with_digits(program: ir.Program) -> ir.Program:
    """The program with dimensions split in which each thread has elements of its own."""
    return renumbered(program, _split)


def _split(program: ir.Program, kernel: ir.Kernel, numbering: Numbering) -> ir.Kernel:
    loops = {loop.variable: loop for loop in ir.every(kernel.body, ir.For)}
    if not any(loop.role in THREAD_ROLES for loop in loops.values()):
        return kernel
    split: dict[BufferId, list[Steps]] = {}
    for number in dict.fromkeys(buffer for buffer, _ in accesses(kernel.body)):
        if not program.buffers[number].private:
            continue
        indices = [index for buffer, index in accesses(kernel.body) if buffer == number]
        extents = (program.sizes[size].fixed for size in program.buffers[number].dims)
        steps = [
            WHOLE if extent is None else _steps(program, loops, [index[d] for index in indices])
            for d, extent in enumerate(extents)
        ]
        if any(1 < len(each) for each in steps):
            split[number] = steps
            numbering.buffers[number] = replace(
                program.buffers[number], dims=tuple(_dims(program, number, steps, numbering))
            )
    return replace(kernel, body=_indexed(kernel.body, split)) if split else kernel


def _steps(
    program: ir.Program, loops: Mapping[VariableId, ir.For], parts: Sequence[Affine]
) -> Steps:
    """The digits that all indices of a dimension have, one of them the same loop for threads; one digit where not."""
    ordered = [sorted(part.steps(), reverse=True) for part in parts]
    steps = tuple(step for step, _ in ordered[0])
    plain = all(not (part.offset or part.sizes or part.looked) for part in parts)
    if len(steps) < 2 or not plain or any(tuple(s for s, _ in o) != steps for o in ordered):
        return WHOLE
    if steps[-1] != 1 or any(variable not in loops for o in ordered for _, variable in o):
        return WHOLE
    for terms in ordered:
        inner = [program.sizes[loops[VariableId(v)].size].fixed for _, v in terms[1:]]
        if any(
            extent is None or step * extent != outer
            for extent, (outer, step) in zip(inner, pairwise(steps), strict=True)
        ):
            return WHOLE
    places = [
        {n for n, (_, v) in enumerate(terms) if loops[VariableId(v)].role in THREAD_ROLES}
        for terms in ordered
    ]
    return steps if set.intersection(*places) else WHOLE


def _dims(
    program: ir.Program, number: BufferId, steps: Sequence[Steps], numbering: Numbering
) -> Iterator[int]:
    """The sizes of the dimensions of a buffer, of which each digit is one."""
    for size, each in zip(program.buffers[number].dims, steps, strict=True):
        extent = program.sizes[size].fixed
        if len(each) == 1 or extent is None:  # an open extent has one digit
            yield size
            continue
        yield numbering.size(-(-extent // each[0]))
        yield from (numbering.size(outer // step) for outer, step in pairwise(each))


def _indexed(body: ir.Block, split: Mapping[BufferId, Sequence[Steps]]) -> ir.Block:
    def index_of(access: Access) -> tuple[Affine, ...]:
        buffer, index = access
        if buffer not in split:
            return index
        out: list[Affine] = []
        for part, steps in zip(index, split[buffer], strict=True):
            digits = [axis_index(variable) for _, variable in sorted(part.steps(), reverse=True)]
            out += digits if 1 < len(steps) else [part]
        return tuple(out)

    return with_indices(body, index_of)
