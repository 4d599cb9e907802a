"""Pad packed panels with zeros: what a tile computes past the end of a row must not depend on what memory held.

Example, of 100 columns in strips of 64:
    in:   for j: { for k: for j' in 0..min(64, 100 - 64j): c[k,j'] = in1[k,64j+j']
                   for i: tile t of c[k,j'] }
    out:  for j: { if not 64j+63 < 100:
                     if 64j+32 < 100: for k: for j' in 0..32: c[k,j'+32] = 0
                     else: for k: for j' in 0..32: c[k,j'] = 0
                   for k: for j' in 0..min(64, 100 - 64j): c[k,j'] = in1[k,64j+j']
                   for i: tile t of c[k,j'] }

A tile in registers computes all lanes of its vectors, also lanes past the end of a dimension, if the buffer that it
reads has room for them. The results of these lanes are not used, but stale memory may hold
subnormal numbers, and arithmetic on these takes a hundred times as long on many processors. Of a row that ends early,
only the half in which it ends is cleared, since tiles skip a half without elements.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from ilang.core.calculus.affine import axis_index
from ilang.core.calculus.extent import size as size_of
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile, Transpose
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import parts_of
from ilang.core.ir.scalar import Constant, Load
from ilang.core.passes.cpu.registers import reads_past
from ilang.core.passes.fixed_sizes import FixedSizes
from ilang.core.record import record, replace

Path = tuple[tuple[ir.For | ir.If, int, bool], ...]
"""The statements around another one, outermost first: of each its place in its block, and whether the other is in what
is done otherwise."""
Places = tuple[tuple[int, bool], ...]
"""A block: the places of the statements around it, and of each whether it is in what is done otherwise."""
Spot = tuple[Places, int]
"""A statement: its block, and its place there."""
Zeros = dict[Spot, list[ir.Statement]]
"""Statements that clear buffers, by the statement before which they stand."""


@record
class _PackingStore:
    """A store in a buffer that is read past the end of its rows, and what is around it.

    The statement at a ``depth`` of the path is the outermost one that does not read the buffer, and fills it; ``lanes``
    is the loop along its rows.
    """

    path: Path
    depth: int
    store: ir.Store
    lanes: ir.For


class Padding:
    """The zeros that kernels of a program need before its tiles, in a program that has sizes for them.

    A buffer that cannot be cleared at one place is ``padded`` no more in that program: tiles that read it along their
    lanes are in registers where all lanes are inside.
    """

    def __init__(self, program: ir.Program) -> None:
        read = [_read_past(program, kernel) for kernel in program.kernels]
        buffers, sizes = list(program.buffers), list(program.sizes)
        fixed = FixedSizes(sizes)
        self.zeros: list[Zeros] = []
        """The statements that clear buffers in each kernel, by the places before which they stand."""
        for kernel, numbers in zip(program.kernels, read, strict=True):
            padder = _ZeroPadder(program, kernel.body, numbers, fixed)
            self.zeros.append({})
            for number in sorted(numbers):
                spot = padder.spot(number)
                if spot is None:
                    buffers[number] = replace(buffers[number], padded=False)
                else:
                    self.zeros[-1].setdefault(spot, []).extend(padder.nests(number))
        self.program = replace(program, buffers=tuple(buffers), sizes=tuple(sizes))


def _read_past(program: ir.Program, kernel: ir.Kernel) -> set[BufferId]:
    held = (tile for tile in ir.every(kernel.body, Tile) if tile.number is not None)
    return {load.buffer for tile in held if reads_past(program, tile) for load in tile.along()}


class _ZeroPadder:
    """The statements that fill some buffers of a kernel, found in one traversal, and where buffers are cleared."""

    def __init__(
        self, program: ir.Program, body: ir.Block, buffers: set[BufferId], fixed: FixedSizes
    ) -> None:
        """For the buffers of a kernel that tiles read past the end; ``fixed`` gets the sizes of zeros."""
        self.program = program
        self.fixed = fixed
        self.buffers = buffers
        self.stores: dict[BufferId, list[tuple[ir.Store, Path]]] = {
            number: [] for number in buffers
        }
        self.reads: dict[Spot, frozenset[int]] = {}
        self._visit(body, ())
        self.fillings = {
            number: [self._filling(store, around) for store, around in stores]
            for number, stores in self.stores.items()
        }

    def _visit(self, body: ir.Block, around: Path) -> None:
        for place, s in enumerate(body):
            if isinstance(s, ir.Store) and s.buffer in self.buffers:
                self.stores[s.buffer].append((s, around))
            elif isinstance(s, (ir.For, Transpose)):
                loop = s if isinstance(s, ir.For) else s.loops
                self._visit(loop.body, (*around, (loop, place, False)))
            elif isinstance(s, ir.If):
                self._visit(s.body, (*around, (s, place, False)))
                self._visit(s.otherwise, (*around, (s, place, True)))

    def spot(self, buffer: BufferId) -> Spot | None:
        """The place to clear a buffer: before the statement that fills it first; None where others do elsewhere."""
        first: Spot | None = None
        for filling in self.fillings[buffer]:
            if filling is None:
                return None
            spot = _spot(filling.path[: filling.depth + 1])
            first = first or spot
            if spot[0] != first[0]:
                return None
        return first

    def nests(self, buffer: BufferId) -> Iterator[ir.Statement]:
        """The loops that clear a buffer that is cleared at one spot."""
        for filling in self.fillings[buffer]:
            assert filling is not None
            nest = _nest_of_zeros(self.program, filling, self.fixed)
            if nest is not None:
                yield nest

    def _filling(self, store: ir.Store, around: Path) -> _PackingStore | None:
        """The loops in which a store fills a buffer; None where its rows have no loop of their own there.

        A store that adds to a buffer, as all that is around it, reads the buffer, and does not fill it.
        """
        paths = (around[: n + 1] for n in range(len(around)))
        n = next((n for n, path in enumerate(paths) if not self._reads(path, store.buffer)), None)
        size = self.program.buffers[store.buffer].dims[-1]
        if n is None:
            return None
        loops = [s for s, _, _ in around[n:] if isinstance(s, ir.For)]
        for s in loops:
            if store.index[-1] == axis_index(s.variable) and s.size == size:
                depends = any(_mentions(loop, s.variable) for loop in loops)
                simple = s.chunk is None and not depends
                return _PackingStore(around, n, store, s) if simple else None
        return None

    def _reads(self, path: Path, buffer: BufferId) -> bool:
        spot = _spot(path)
        if spot not in self.reads:
            parts = (part for s in ir.statements_within((path[-1][0],)) for part in parts_of(s))
            self.reads[spot] = frozenset(part.buffer for part in parts if isinstance(part, Load))
        return buffer in self.reads[spot]


def _spot(path: Path) -> Spot:
    *outside, (_, last, _) = path
    return tuple((place, otherwise) for _, place, otherwise in outside), last


def _nest_of_zeros(
    program: ir.Program, filling: _PackingStore, fixed: FixedSizes
) -> ir.Statement | None:
    """The loops that clear what a store fills, lanes innermost; None where it fills whole rows.

    The condition that a row ends early stands as far out as its variables are known; without it, all rows are cleared.
    """
    lanes = filling.lanes
    inside = filling.path[filling.depth :]
    loops = [(s, otherwise) for s, _, otherwise in inside if s is not lanes]
    within = [s for s, _ in loops if isinstance(s, ir.If) and _mentions(s, lanes.variable)]
    if not lanes.within and not within:
        return None
    extent = program.sizes[lanes.size].fixed
    if not lanes.within or extent is None or within:
        return _nest(
            _zeros(program, filling, lanes.size, 0), [x for x in loops if x[0] not in within]
        )
    needed = lanes.ends()
    inner = next(
        (n for n in range(len(loops), 0, -1) if _opens(loops[n - 1][0], needed)), 0
    )  # the loops from here on have nothing to do with where a row ends
    if extent % (2 * program.machine.vector_lanes("f32")):
        cleared = _nest(_zeros(program, filling, lanes.size, 0), loops[inner:])
    else:  # a tile reads one of the longest vectors at a time, or divisors of its row, half past it at most
        middle = extent // 2
        half = fixed.number(middle)
        second, both = (
            _nest(_zeros(program, filling, half, first), loops[inner:]) for first in (middle, 0)
        )
        cleared = ir.If(lanes.reaches(middle), (second,), (both,))
    return _nest(ir.If(lanes.reaches(extent - 1), (), (cleared,)), loops[:inner])


def _zeros(program: ir.Program, filling: _PackingStore, size: int, first: int) -> ir.Statement:
    """The loop that clears so many lanes of a row, from one on."""
    store, variable = filling.store, filling.lanes.variable
    index = (*store.index[:-1], store.index[-1] + first)
    zero = Constant(0, program.buffers[store.buffer].dtype)
    return ir.For(variable, size_of(size), (ir.Store(store.buffer, index, zero),))


def _nest(s: ir.Statement, around: Sequence[tuple[ir.For | ir.If, bool]]) -> ir.Statement:
    for outer, otherwise in reversed(around):
        if isinstance(outer, ir.For):
            s = ir.For(outer.variable, outer.end, (s,), outer.begin)
        else:
            s = ir.If(outer.within, *(((), (s,)) if otherwise else ((s,), ())))
    return s


def _opens(s: ir.For | ir.If, variables: Container[int]) -> bool:
    return isinstance(s, ir.For) and s.variable in variables


def _mentions(s: ir.For | ir.If, variable: int) -> bool:
    if isinstance(s, ir.If):
        return any(variable in each.index.axes() for each in s.within)
    return variable in s.ends()


def with_zeros(body: ir.Block, cleared: Zeros, block: Places = ()) -> ir.Block:
    """A block at some place of a kernel, its buffers cleared."""
    if not cleared:
        return body
    out: list[ir.Statement] = []
    for place, s in enumerate(body):
        out += cleared.get((block, place), ())
        inside, otherwise = (*block, (place, False)), (*block, (place, True))
        if isinstance(s, ir.For):
            out.append(replace(s, body=with_zeros(s.body, cleared, inside)))
        elif isinstance(s, ir.If):
            then = with_zeros(s.body, cleared, inside)
            out.append(replace(s, body=then, otherwise=with_zeros(s.otherwise, cleared, otherwise)))
        else:
            out.append(s)
    return tuple(out)
