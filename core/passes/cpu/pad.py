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

from collections.abc import Iterator, Sequence

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


def kernel_to_padded(program: Program) -> Program:
    """The program with zeros in all lanes that a tile reads and nothing else writes.

    A buffer that cannot be cleared at one place is ``padded`` no more: tiles that read it along their lanes are in
    registers where all lanes are inside.
    """
    buffers, kernels = list(program.buffers), []
    program = _with_halves(program)
    for kernel in program.kernels:
        body = kernel.body
        for number in sorted(_read_past(kernel)):
            cleared = _cleared(program, body, number)
            if cleared is None:
                buffers[number] = replace(buffers[number], padded=False)
            body = cleared or body
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


def _cleared(
    program: Program, body: tuple[Statement, ...], buffer: int
) -> tuple[Statement, ...] | None:
    """The statements of a kernel, a buffer cleared before it is filled; None where it is filled at several places."""
    fillings = [_filling(program, store, around) for store, around in _stores(body, buffer, ())]
    clearing: list[Statement] = []
    first: _Filling | None = None
    for filling in fillings:
        if filling is None:
            return None
        first = first or filling
        if _block(filling) != _block(first):
            return None
        nest = _clearing(program, filling)
        clearing += [] if nest is None else [nest]
    if first is None or not clearing:
        return body
    return _before(body, (*first.outside, first.first), clearing)


def _stores(body: Sequence[Statement], buffer: int, around: Path) -> Iterator[tuple[Store, Path]]:
    """The stores in a buffer, and what is around each."""
    for place, s in enumerate(body):
        if isinstance(s, Store) and s.buffer == buffer:
            yield s, around
        elif isinstance(s, (For, Transpose)):
            loop = s if isinstance(s, For) else s.loops
            yield from _stores(loop.body, buffer, (*around, _Around(loop, place, False)))
        elif isinstance(s, If):
            yield from _stores(s.body, buffer, (*around, _Around(s, place, False)))
            yield from _stores(s.otherwise, buffer, (*around, _Around(s, place, True)))


def _filling(program: Program, store: Store, around: Path) -> _Filling | None:
    """Where a store fills a buffer; None where its rows have no loop of their own there.

    A store that adds to a buffer, as all that is around it, reads the buffer, and does not fill it.
    """
    n = next((n for n, at in enumerate(around) if not _reads(at.s, store.buffer)), len(around))
    size = program.buffers[store.buffer].dims[-1]
    rests = [at.s for at in around[n:] if isinstance(at.s, For)]
    for s in rests:
        if store.index[-1] == walks(s.variable) and s.size == size:
            depends = any(_mentions(loop, s.variable) for loop in rests)
            simple = s.stretch is None and not depends
            return _Filling(around[:n], around[n], around[n:], store, s) if simple else None
    return None


def _reads(s: Statement, buffer: int) -> bool:
    """Whether a statement, or one in it, reads a buffer."""
    inside = (part for inner in statements_within((s,)) for part in parts_of(inner))
    return any(isinstance(part, Load) and part.buffer == buffer for part in inside)


def _block(filling: _Filling) -> list[tuple[int, bool]]:
    """What tells the block apart that a filling stands in."""
    return [(at.place, at.otherwise) for at in filling.outside]


def _clearing(program: Program, filling: _Filling) -> Statement | None:
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
    half = _half(program, lanes)
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
    pair = _pair(program)
    halves = {row // 2 for row in rows if row is not None and row % pair == 0} - fixed
    names = Names(frozenset(size.name for size in program.sizes))
    sizes = [Size(names.fresh(f"c{half}"), half, ()) for half in sorted(halves)]
    return replace(program, sizes=(*program.sizes, *sizes)) if sizes else program


def _pair(program: Program) -> int:
    """Lanes of two of the longest vectors: a tile reads one at a time, or divisors of its row, half past it at most."""
    return 2 * program.machine.vector_lanes("f32")


def _half(program: Program, lanes: For) -> int | None:
    """The size number of half of the lanes of a row, where that is vectors of any length; else None."""
    extent = program.sizes[lanes.size].fixed or 0
    if extent % _pair(program):
        return None
    sizes = (size.fixed for size in program.sizes)
    return next(n for n, fixed in enumerate(sizes) if fixed == extent // 2)


def _mentions(s: For | If, variable: int) -> bool:
    """Whether how often a loop runs, or a condition, depends on a variable."""
    if isinstance(s, If):
        return any(v == variable for each in s.within for _, v in each.index.terms)
    return s.rest is not None and any(v == variable for _, v in s.rest.start.terms)


def _before(
    body: Sequence[Statement], path: Path, clearing: Sequence[Statement]
) -> tuple[Statement, ...]:
    """A block with other statements before the one that a path leads to."""
    at, *deeper = path
    before, s, after = body[: at.place], body[at.place], body[at.place + 1 :]
    if not deeper:
        return (*before, *clearing, s, *after)
    if isinstance(s, For):
        return (*before, replace(s, body=_before(s.body, tuple(deeper), clearing)), *after)
    assert isinstance(s, If), "nothing stands between the loops of a copy in squares"
    part = _before(s.otherwise if at.otherwise else s.body, tuple(deeper), clearing)
    changed = replace(s, otherwise=part) if at.otherwise else replace(s, body=part)
    return (*before, changed, *after)
