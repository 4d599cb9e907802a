"""Zeros where vectors read past the end of a row: what a tile computes there must not depend on what memory held.

Example, of 100 columns in strips of 64:
    in:   for j: { for k: for j' in 0..min(64, 100 - 64j): c[k,j'] = in1[k,64j+j']
                   for i: tile t of c[k,j'] }
    out:  for j: { if not 64j+63 < 100:
                     if 64j+32 < 100: for k: for j' in 0..32: c[k,j'+32] = 0
                     else: for k: for j' in 0..32: c[k,j'] = 0
                   for k: for j' in 0..min(64, 100 - 64j): c[k,j'] = in1[k,64j+j']
                   for i: tile t of c[k,j'] }

A tile in registers computes all lanes of its vectors, also those past the end of a ragged dimension, where the buffer
that they are read from has room for them (``Registers.past``). Nothing uses those lanes, but numbers that are left
there from before may be subnormal, and many processors take a hundred times as long for arithmetic on these. Of a row
that ends early, the half is cleared that it ends in: tiles do not read the other one where it has no elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang.core.ir.affine import Within, walks
from ilang.core.ir.cpu import Transpose
from ilang.core.ir.kernel import (
    For,
    If,
    Kernel,
    Program,
    Rest,
    Statement,
    Store,
    Tile,
    statements_within,
)
from ilang.core.ir.scalar import Constant, Load
from ilang.core.ir.shaped import Size
from ilang.core.names import Names
from ilang.core.passes.cpu.tiles import guarded, with_tiles
from ilang.core.passes.rewriting import parts_of
from ilang.core.record import record, replace


@record
class _Around:
    """A statement around another one: its place in its block, and whether the other is in what is done otherwise."""

    s: For | If
    place: int
    otherwise: bool


Path = tuple[_Around, ...]
"""The statements around another one, outermost first."""
Places = tuple[tuple[int, bool], ...]
"""Where a statement is: its place in each block on the way to it, and whether that is what is done otherwise."""


@record
class _Filling:
    """A store in a buffer that is read past the end of its rows: what is around it, and inside what fills the buffer.

    ``first`` is the outermost of the statements that do not read the buffer, ``lanes`` the loop along its rows.
    """

    outside: Path
    first: _Around
    inside: Path
    store: Store
    lanes: For


MOST_LANES = 16
"""Lanes of the longest vectors: a tile reads as many at a time, or divisors of its row, of which half is past the end
at most."""


def kernel_to_padded(program: Program) -> Program:
    """The program with zeros in all lanes that a tile reads and nothing else writes.

    A buffer that cannot be cleared at one place is ``padded`` no more: tiles that read it along their lanes are in
    registers where all lanes are inside.
    """
    buffers, kernels = list(program.buffers), []
    program = _with_halves(program)
    numbers = {size.fixed: n for n, size in reversed(list(enumerate(program.sizes)))}
    for kernel in program.kernels:
        found = _Accesses(_read_past(kernel))
        found.note(kernel.body, (), ())
        inserted: dict[Places, list[Statement]] = {}
        for number in sorted(found.stores):
            cleared = _cleared(program, found, number, numbers)
            if cleared is None:
                buffers[number] = replace(buffers[number], padded=False)
            elif cleared[1]:
                inserted.setdefault(cleared[0], []).extend(cleared[1])
        body = _with(kernel.body, inserted, ()) if inserted else kernel.body
        kernels.append(kernel if body is kernel.body else replace(kernel, body=body))
    padded = replace(program, buffers=tuple(buffers), kernels=tuple(kernels))
    return padded if padded.buffers == program.buffers else _guarded(padded)


def _read_past(kernel: Kernel) -> set[int]:
    """The buffers that tiles of a kernel read past the end of what is in them."""
    tiles = (s for s in statements_within(kernel.body) if isinstance(s, Tile))
    held = (tile.registers for tile in tiles if tile.registers is not None)
    return {load.buffer for each in held if each.past for load in each.along}


def _guarded(program: Program) -> Program:
    """The program whose tiles know which buffers are padded no more."""
    kernels = []
    for kernel in program.kernels:
        tiles = {
            s.buffer: replace(s, registers=guarded(program, s.registers))
            for s in statements_within(kernel.body)
            if isinstance(s, Tile) and s.registers is not None
        }
        kernels.append(replace(kernel, body=with_tiles(kernel.body, tiles)))
    return replace(program, kernels=tuple(kernels))


class _Accesses:
    """Where the statements of a kernel write and read some buffers: seen in one walk."""

    def __init__(self, buffers: set[int]) -> None:
        self.stores: dict[int, list[tuple[Store, Path]]] = {number: [] for number in buffers}
        self.loads: dict[int, list[Places]] = {number: [] for number in buffers}

    def note(self, body: Sequence[Statement], around: Path, places: Places) -> None:
        """Note the accesses of a block; ``around`` is what it stands in, and ``places`` is where."""
        for place, s in enumerate(body):
            here = (*places, (place, False))
            for part in parts_of(s):
                if isinstance(part, Load) and part.buffer in self.loads:
                    self.loads[part.buffer].append(here)
            if isinstance(s, Store) and s.buffer in self.stores:
                self.stores[s.buffer].append((s, around))
            elif isinstance(s, (For, Transpose)):
                loop = s if isinstance(s, For) else s.loops
                self.note(loop.body, (*around, _Around(loop, place, False)), here)
            elif isinstance(s, If):
                self.note(s.body, (*around, _Around(s, place, False)), here)
                other = (*places, (place, True))
                self.note(s.otherwise, (*around, _Around(s, place, True)), other)
            elif isinstance(s, Tile):
                for inner in statements_within((s,)):
                    self._note_tile(inner, here)

    def _note_tile(self, inner: Statement, here: Places) -> None:
        for part in parts_of(inner):
            if isinstance(part, Load) and part.buffer in self.loads:
                self.loads[part.buffer].append(here)

    def is_read_in(self, buffer: int, outside: Path, at: _Around) -> bool:
        """Whether anything reads a buffer inside a statement that stands in others."""
        depth, known = len(outside), places_of(outside)
        return any(
            depth < len(load) and load[:depth] == known and load[depth][0] == at.place
            for load in self.loads[buffer]
        )


def places_of(path: Path) -> Places:
    """Where the block is that a path leads to."""
    return tuple((at.place, at.otherwise) for at in path)


def _cleared(
    program: Program, found: _Accesses, buffer: int, numbers: Mapping[int | None, int]
) -> tuple[Places, list[Statement]] | None:
    """What clears a buffer before it is filled, and before which statement; None where several places fill it."""
    fillings = [_filling(program, store, around, found) for store, around in found.stores[buffer]]
    clearing: list[Statement] = []
    first: _Filling | None = None
    for filling in fillings:
        if filling is None:
            return None
        first = first or filling
        if places_of(filling.outside) != places_of(first.outside):
            return None
        nest = _clearing(program, filling, numbers)
        clearing += [] if nest is None else [nest]
    if first is None:
        return (), []
    return (*places_of(first.outside), (first.first.place, False)), clearing


def _filling(program: Program, store: Store, around: Path, found: _Accesses) -> _Filling | None:
    """Where a store fills a buffer; None where its rows have no loop of their own there.

    A store that adds to a buffer, as all that is around it, reads the buffer, and does not fill it.
    """
    outer = enumerate(around)
    apart = (n for n, at in outer if not found.is_read_in(store.buffer, around[:n], at))
    n = next(apart, len(around))
    size = program.buffers[store.buffer].dims[-1]
    rests = [at.s for at in around[n:] if isinstance(at.s, For)]
    for s in rests:
        if store.index[-1] == walks(s.variable) and s.size == size:
            depends = any(_mentions(loop, s.variable) for loop in rests)
            simple = s.stretch is None and not depends
            return _Filling(around[:n], around[n], around[n:], store, s) if simple else None
    return None


def _clearing(
    program: Program, filling: _Filling, numbers: Mapping[int | None, int]
) -> Statement | None:
    """The loops that clear what a store fills, lanes innermost; None where it fills whole rows.

    The condition that a row ends early stands as far out as its variables are known; without it, all rows are cleared.
    """
    lanes = filling.lanes
    loops = [(at.s, at.otherwise) for at in filling.inside if at.s is not lanes]
    within = [s for s, _ in loops if isinstance(s, If) and _mentions(s, lanes.variable)]
    if lanes.rest is None and not within:
        return None
    extent = program.sizes[lanes.size].fixed
    if lanes.rest is None or extent is None or within:
        return _nest(
            _zeros(program, filling, lanes.size, 0), [x for x in loops if x[0] not in within]
        )
    needed = {variable for _, variable in lanes.rest.start.terms}
    inner = next(
        (n for n in range(len(loops), 0, -1) if _opens(loops[n - 1][0], needed)), 0
    )  # the loops from here on have nothing to do with where a row ends
    half = _half(program, lanes, numbers)
    if half is None:
        cleared = _nest(_zeros(program, filling, lanes.size, 0), loops[inner:])
    else:
        middle = program.sizes[half].fixed or 0
        parts = (
            (_nest(_zeros(program, filling, half, first), loops[inner:]),) for first in (middle, 0)
        )
        cleared = If((_reaches(lanes.rest, middle),), *parts)
    return _nest(If((_reaches(lanes.rest, extent - 1),), (), (cleared,)), loops[:inner])


def _zeros(program: Program, filling: _Filling, size: int, first: int) -> Statement:
    """The loop that clears so many lanes of a row, from one on."""
    store, variable = filling.store, filling.lanes.variable
    index = (*store.index[:-1], store.index[-1].plus((), first))
    zero = Constant(0, program.buffers[store.buffer].dtype)
    return For(variable, size, (Store(store.buffer, index, zero),))


def _nest(s: Statement, around: Sequence[tuple[For | If, bool]]) -> Statement:
    """A statement inside others, as it is inside these."""
    for outer, otherwise in reversed(around):
        if isinstance(outer, For):
            s = For(outer.variable, outer.size, (s,), rest=outer.rest)
        else:
            s = If(outer.within, *(((), (s,)) if otherwise else ((s,), ())))
    return s


def _opens(s: For | If, variables: set[int]) -> bool:
    """Whether a statement is the loop of one of some variables."""
    return isinstance(s, For) and s.variable in variables


def _reaches(rest: Rest, lane: int) -> Within:
    """That a row has the lane of this number."""
    return Within(rest.start.plus((), rest.step * lane), rest.size)


def _with_halves(program: Program) -> Program:
    """The program with the size of half of each row of lanes that is cleared by halves."""
    fixed = {size.fixed for size in program.sizes}
    read = {number for kernel in program.kernels for number in _read_past(kernel)}
    rows = {program.sizes[program.buffers[number].dims[-1]].fixed for number in read}
    halves = {row // 2 for row in rows if row is not None and row % (2 * MOST_LANES) == 0} - fixed
    names = Names(frozenset(size.name for size in program.sizes))
    sizes = [Size(names.fresh(f"c{half}"), half, ()) for half in sorted(halves)]
    return replace(program, sizes=(*program.sizes, *sizes)) if sizes else program


def _half(program: Program, lanes: For, numbers: Mapping[int | None, int]) -> int | None:
    """The size number of half of the lanes of a row, where that is vectors of any length; else None."""
    extent = program.sizes[lanes.size].fixed or 0
    return None if extent % (2 * MOST_LANES) else numbers[extent // 2]


def _mentions(s: For | If, variable: int) -> bool:
    """Whether how often a loop runs, or a condition, depends on a variable."""
    if isinstance(s, If):
        return any(v == variable for each in s.within for _, v in each.index.terms)
    return s.rest is not None and any(v == variable for _, v in s.rest.start.terms)


def _with(
    body: Sequence[Statement], inserted: Mapping[Places, Sequence[Statement]], places: Places
) -> tuple[Statement, ...]:
    """A block with other statements before some of its own, and of those inside; ``places`` is where it stands."""
    out: list[Statement] = []
    for place, s in enumerate(body):
        here = (*places, (place, False))
        out += inserted.get(here, ())
        if isinstance(s, For):
            out.append(replace(s, body=_with(s.body, inserted, here)))
        elif isinstance(s, If):
            otherwise = _with(s.otherwise, inserted, (*places, (place, True)))
            out.append(replace(s, body=_with(s.body, inserted, here), otherwise=otherwise))
        else:
            out.append(s)
    return tuple(out)
