"""Keep in registers the operands that a thread would read several times from shared memory.

Example:
    in:   for i unrolled                                 out:  for i unrolled: a_held[i] = a_copy[k,4i2+i]
            for j unrolled                                     for j unrolled: b_held[j] = b_copy[k,4j2+j]
              run[i,j] += a_copy[k,4i2+i] * b_copy[k,4j2+j]    for i unrolled
                                                                 for j unrolled
                                                                   run[i,j] += a_held[i] * b_held[j]

An operand is kept if it does not depend on one of the unrolled loops and goes along a row of shared memory with
another one: the next pass makes vectorized loads of it. A value that is computed under a condition stays where it is,
since the condition may guard what it reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.calculus.affine import Affine
from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import (
    chain_of,
    chosen_loads,
    nested,
    parts_of,
    replaced_loads,
    unless_same,
)
from ilang.core.ir.scalar import Load
from ilang.core.passes.gpu.numbering import Numbering
from ilang.core.record import replace


class RegisterOperands:
    """The buffers that operands of one kernel are held in."""

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.registers: dict[tuple[int, tuple[int, ...]], BufferId] = {}

    def body(self, body: ir.Block) -> ir.Block:
        """A block whose nests of unrolled loops read what they hold."""
        out: list[ir.Statement] = []
        for s in body:
            nest = _nest(s) if isinstance(s, ir.For) else []
            held = self._held(nest) if len(nest) > 1 else ()
            out += held or (ir.map_blocks(s, self.body),)
        return unless_same(body, out)

    def _held(self, nest: Sequence[ir.For]) -> ir.Block:
        """The loads of a nest into registers, and the nest that reads these; nothing where it stays as it is."""
        parts = [part for s in nest[-1].body for part in parts_of(s)]
        chosen = [load for s in nest[-1].body for load in chosen_loads(s)]
        reads: dict[Load, Load] = {}
        before: list[ir.Statement] = []
        for load in dict.fromkeys(part for part in parts if isinstance(part, Load)):
            loops = [loop for loop in nest if _reads_along(load, loop)]
            shared = self.numbering.buffers[load.buffer].space == "shared"
            if not shared or not loops or len(loops) == len(nest) or load in chosen:
                continue
            if not _reads_along(replace(load, index=load.index[-1:]), loops[-1]):
                continue
            sizes = tuple(loop.size for loop in loops)
            index = tuple(Affine(((1, loop.variable),)) for loop in loops)
            reads[load] = replace(load, buffer=self._buffer(load, sizes), index=index)
            before += nested(loops, (ir.Store(reads[load].buffer, index, load),))
        if not reads:
            return ()
        rest = tuple(
            replace(s, value=replaced_loads(s.value, lambda load: reads.get(load, load)))
            for s in nest[-1].body
            if isinstance(s, (ir.Define, ir.Store))
        )
        return (*before, *nested(nest, rest))

    def _buffer(self, load: Load, sizes: tuple[int, ...]) -> BufferId:
        key = load.buffer, sizes
        if key not in self.registers:
            tensor = self.numbering.buffers[load.buffer].tensor
            name = f"{self.numbering.buffers[load.buffer].name}_held"
            self.registers[key] = self.numbering.private(name, load.dtype, sizes, "local", tensor)
        return self.registers[key]


def _nest(loop: ir.For) -> list[ir.For]:
    """Unrolled loops, each right inside the one before, around a store and scalars for it; none for any other loop."""
    nest, (*scalars, last) = chain_of((loop,))
    stores = isinstance(last, ir.Store) and all(isinstance(s, ir.Define) for s in scalars)
    is_unrolled = all(each.role == "u" and not each.within for each in nest)
    return nest if stores and is_unrolled else []


def _reads_along(load: Load, loop: ir.For) -> bool:
    """Whether what is read goes on with a loop."""
    return any(loop.variable in part.axes() for part in load.index)
