"""Loops of one iteration replaced by what they do, and conditions decided by known extents.

Example, of a dimension of 32 elements in blocks of 32:
    in:   for j in 0..1: for j1 in 0..min(32, n_j - 32j): out[32j+j1] = t[j1]
    out:  for j1 in 0..32: out[j1] = t[j1]

A loop that a schedule gives to threads stays, and so do the loops over the elements of a tile. A loop of no iterations
stays as it is, and so do loops around it: what it stores is what others read. The pass runs once tiles and threads are
known, for those that make them read the blocks of a schedule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ilang.core.calculus.affine import Affine, Within, before, left
from ilang.core.calculus.extent import size as size_of
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import substituted, unless_same, with_bodies
from ilang.core.record import replace

Extents = Mapping[int, int | None]
"""The number of iterations of each loop around a place; None where it is not known."""
FIRST = Affine(())
"""The index of the only iteration of a loop."""


def kernel_to_folded(program: ir.Program) -> ir.Program:
    """The program without loops of one iteration, and without conditions that known extents decide."""
    sizes = [size.fixed for size in program.sizes]
    if all(size is None for size in sizes):
        return program
    return with_bodies(program, lambda kernel: _Folding(sizes, kernel).block(kernel.body, {}))


class _Folding:
    def __init__(self, sizes: Sequence[int | None], kernel: ir.Kernel) -> None:
        self.sizes = sizes
        self.defined = Counter(s.variable for s in ir.every(kernel.body, ir.Define))
        self.blocks = {s.chunk[2] for s in ir.every(kernel.body, ir.For) if s.chunk is not None}
        self.copied = set[BufferId]()
        """Tiles that are never stored where they belong."""

    def block(self, block: ir.Block, around: Extents) -> ir.Block:
        """A block with what its loops of one iteration do in their place."""
        out: list[ir.Statement] = []
        for s in block:
            out += self._folded(s, around)
        return unless_same(block, out)

    def _folded(self, s: ir.Statement, around: Extents) -> Iterable[ir.Statement]:
        match s:
            case ir.For() if self.sizes[s.size] == 0:
                return (s,)
            case ir.For() if self._is_single(s):
                once = {s.variable: FIRST}
                within = self._open(substituted(s.within, once), around)
                body = self.block(substituted(s.body, once), around)
                return (ir.If(within, body),) if within else body
            case ir.For():
                loop = self._bounded(s, around)
                inner = {**around, s.variable: self.sizes[loop.size]}
                body = self.block(loop.body, inner)
                return (loop if body is loop.body else replace(loop, body=body),) if body else ()
            case ir.If():
                return self._chosen(s, around)
            case Tile():
                return (self._tile(s, around),)
            case ThreadLoop():
                inner = {**around, **{loop.variable: self.sizes[loop.size] for loop in s.loops}}
                return (ir.map_blocks(s, lambda block: self.block(block, inner)),)
            case _:
                return (s,)

    def _is_single(self, loop: ir.For) -> bool:
        """Whether a loop has one iteration, which can be done where the loop stands."""
        if self.sizes[loop.size] != 1 or loop.role not in ("", "u", "v") or loop.finite:
            return False
        if loop.chunk is not None or loop.variable in self.blocks or loop.deferred is not None:
            return False
        if any(self.sizes[inner.size] == 0 for inner in ir.every(loop.body, ir.For)):
            return False
        defined = (s.variable for s in loop.body if isinstance(s, ir.Define))
        return all(self.defined[variable] == 1 for variable in defined)

    def _bounded(self, loop: ir.For, around: Extents) -> ir.For:
        """A loop without the bounds that it never meets; over all of a dimension that one block has."""
        if loop.deferred is not None:
            guards = self._open(loop.deferred.guards, around)
            loop = replace(loop, deferred=replace(loop.deferred, guards=guards))
        inner = {**around, loop.variable: self.sizes[loop.size]}
        limits = [*loop.end.limits()]
        kept = [each for each in limits if not self._holds(before(loop.variable, *each), inner)]
        if loop.first or (len(kept) == len(limits) != 1):
            return loop
        rest = left(kept[0][0]) if len(kept) == 1 and kept[0][1] == 1 else None
        if (
            rest is not None
            and not loop.finite
            and rest[0].constant() == 0
            and self.sizes[rest[1]] is not None
        ):
            return replace(loop, end=size_of(rest[1]))
        return (
            replace(loop, end=loop.end.unlimited().among("min", kept)) if kept != limits else loop
        )

    def _chosen(self, s: ir.If, around: Extents) -> Iterable[ir.Statement]:
        """A condition, or what it chooses where that is known."""
        if s.stored in self.copied:
            return self.block(s.body, around)
        if any(self._holds(each, around) is False for each in s.within):
            return self.block(s.otherwise, around)
        within = self._open(s.within, around)
        if not within and not s.aligned and s.stored is None:
            return self.block(s.body, around)
        kept = s if within == s.within else replace(s, within=within)
        return (ir.map_blocks(kept, lambda block: self.block(block, around)),)

    def _tile(self, tile: Tile, around: Extents) -> Tile:
        """A tile whose own loops stay; in registers where that is known."""
        opened = {*around, *(loop.variable for loop in ir.every((tile,), ir.For))}
        target = tile.target
        if target is not None:
            if any(self._holds(each, around) is False for each in target.within):
                self.copied.add(tile.buffer)
                target = None
            else:
                target = replace(target, within=self._open(target.within, around))
        first = tuple(v for v in tile.first if v in opened)
        guards = self._open(tile.guards, around)
        folded = replace(tile, first=first, target=target, guards=guards)
        return tile if folded == tile else folded

    def _open(self, within: Iterable[Within], around: Extents) -> tuple[Within, ...]:
        """The conditions that do not hold in every iteration of the loops around."""
        return tuple(each for each in within if not self._holds(each, around))

    def _holds(self, condition: Within, around: Extents) -> bool | None:
        """Whether a condition holds in every iteration, or in none; None for anything else."""
        size = None if condition.size is None else self.sizes[condition.size]
        return condition.holds(around, size)
