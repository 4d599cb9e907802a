"""Mark the loops whose iterations several threads may share.

Example:
    in:   for n                     out:  for n in parallel
            for y                           for y in parallel
              for c: out[n,y,c] = ..          for c: out[n,y,c] = ..

Iterations are independent if each writes elements that no other iteration accesses. Several loops of a nest may be
marked: at run time the extents decide which of them threads share, and this never changes a result. A loop is marked if
it contains other loops, or if it is the only statement of the loops around it: for short inner loops threads are not
worth their cost.

The role ``p`` of a schedule marks its loop wherever it stands, and then no other loop of the kernel is marked; a loop
with another role is not.
"""

from __future__ import annotations

from math import prod

from ilang.core.cost import of_loop
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile, Transpose
from ilang.core.ir.rewriting import unless_same, with_bodies
from ilang.core.passes.independence import Independence
from ilang.core.record import replace


def kernel_to_threads(program: ir.Program) -> ir.Program:
    """The program with its parallel loops marked."""
    return with_bodies(
        program, lambda kernel: _Parallelizer(program, kernel).block(kernel.body, 0, True)
    )


class _Parallelizer:
    """The independent loops of one kernel."""

    def __init__(self, program: ir.Program, kernel: ir.Kernel) -> None:
        self.program = program
        inside = list(ir.statements_within(kernel.body))
        self.independence = Independence(program, inside)
        loops = (s for s in inside if isinstance(s, ir.For))
        self.asked = any(loop.role == "p" for loop in loops)

    def block(self, block: ir.Block, level: int, alone: bool) -> ir.Block:
        """A block with marks; ``level`` loops around it are marked, and ``alone`` says that they hold nothing else."""
        out: list[ir.Statement] = []
        for s in block:
            if isinstance(s, ir.If):
                out.append(ir.map_blocks(s, lambda block: self.block(block, level, False)))
            elif isinstance(s, ir.For) and s.lanes == 1:
                out.append(self._loop(s, level, alone))
            else:
                out.append(s)
        return unless_same(block, out)

    def _loop(self, loop: ir.For, level: int, alone: bool) -> ir.For:
        once = self.program.sizes[loop.size].fixed == 1
        wanted = level < self.program.machine.threads.levels and loop.role == (
            "p" if self.asked else ""
        )
        mark = (
            wanted
            and not once
            and loop.chunk is None
            and self._pays(loop, alone)
            and self.independence.holds(loop)
        )
        if not (mark or once or self.asked):
            return loop  # what is inside is done by whoever does this loop
        body = self.block(loop.body, level + mark, alone and len(loop.body) == 1)
        if body is loop.body and not mark:
            return loop
        return replace(loop, body=body, manner=ir.Parallel() if mark else loop.manner)

    def _pays(self, loop: ir.For, alone: bool) -> bool:
        """Whether a loop may have enough to do for several threads."""
        if not alone and not any(isinstance(s, (ir.For, Tile, Transpose)) for s in loop.body):
            return False
        least, most = self.program.machine.threads.enough_work, self.program.chunks()
        works = (work.split(self.program.sizes) for work in of_loop(self.program, loop))
        return any(
            not most.keys() >= set(unknown) or least <= time * prod(most[n] for n in unknown)
            for time, unknown in works
        )
