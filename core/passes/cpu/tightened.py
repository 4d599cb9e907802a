"""Tighten loop bounds from guards: loops begin where a condition begins to hold, or end where it ceases to.

Example, a triangle:
    in:   for j in 0..n_j: if 0 <= i-j: acc += in0[i,j]
    out:  for j in 0..min(n_j, i+1): acc += in0[i,j]

Example, the other one:
    in:   for j in 0..n_j: if 0 <= j-i: acc += in0[i,j]
    out:  for j in 0..n_j-i: acc += in0[i,i+j]

A loop that only fills a private buffer ends where all loops that read the buffer end.

The remaining iterations need no test, so the loop can be vectorized. If a condition depends on loops further out, the
bounds of those loops are tightened, too. A loop takes one condition; other conditions remain tests, which ``splits.py``
removes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ilang.core.calculus.affine import Affine, Within, axis_index, lookups, size_value
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile
from ilang.core.ir.rewriting import accesses, substituted, unless_same, with_bodies
from ilang.core.ir.scalar import Load, Scalar, Select, arguments_of
from ilang.core.passes.cpu.splits import SHORT
from ilang.core.record import replace

End = tuple[Affine, int]
"""The end of a loop, ``ceil(index / step)``: an index, and a step."""


def kernel_to_tightened(program: ir.Program) -> ir.Program:
    """The program with loop bounds tightened from guards."""
    return with_bodies(program, lambda kernel: _wanted(program, _block(program, kernel.body)))


def _block(program: ir.Program, block: ir.Block) -> ir.Block:
    return unless_same(block, [_statement(program, s) for s in block])


def _statement(program: ir.Program, s: ir.Statement) -> ir.Statement:
    """A statement with its loops tightened, inner ones first; a tile keeps its loops."""
    if isinstance(s, Tile):
        return s
    s = ir.map_blocks(s, lambda block: _block(program, block))
    return _tightened(program, s) if isinstance(s, ir.For) else s


def _tightened(program: ir.Program, loop: ir.For) -> ir.For:
    """A loop that takes one of the conditions under which it does anything; the loop itself where there is none."""
    extent = program.sizes[loop.size].fixed
    if not _is_whole(loop) or (extent is not None and extent <= SHORT):
        return loop
    conditions = _common(loop.body)
    last = next((each for each in conditions if each.index.coefficient(loop.variable) < 0), None)
    if last is not None:
        end = loop.end.among("min", (last.limit(loop.variable),))
        return replace(loop, body=_settled(loop.body, last), end=end)
    for each in conditions:
        begin = replace(each.limit(loop.variable)[0], window=True)
        if each.index.coefficient(loop.variable) == 1 and begin.is_natural():
            further = begin + axis_index(loop.variable)
            body = _settled(loop.body, each)
            shifted = tuple(substituted(s, {loop.variable: further}) for s in body)
            end = loop.end.among("min", ((size_value(loop.size) - begin, 1),))
            return replace(loop, body=shifted, end=end)
    return loop


def _is_whole(loop: ir.For) -> bool:
    """Whether a loop goes over all of its dimension, one iteration after the other."""
    return not loop.within and loop.chunk is None and loop.lanes == 1 and loop.role != "u"


def _wanted(program: ir.Program, body: ir.Block) -> ir.Block:
    """A kernel whose loops fill no more of private buffers than is read."""
    read: dict[int, set[End | None]] = {}
    for buffer, end in _reads(body, {}):
        if program.buffers[buffer].private:
            read.setdefault(buffer, set()).add(end)
    ends = {buffer: end for buffer, (end, *more) in read.items() if end is not None and not more}
    return _filled(body, ends, frozenset()) if ends else body


def _filled(body: ir.Block, ends: Mapping[int, End], opened: frozenset[int]) -> ir.Block:
    """A block whose loops end where those do that read what they fill."""
    return unless_same(body, [_filling(s, ends, opened) for s in body])


def _filling(s: ir.Statement, ends: Mapping[int, End], opened: frozenset[int]) -> ir.Statement:
    """A statement whose loops, and it itself, end so; ``opened`` are the variables of the loops around it."""
    if isinstance(s, ir.If):
        return ir.map_blocks(s, lambda block: _filled(block, ends, opened))
    if not isinstance(s, ir.For):
        return s
    end = ends.get(_fills(s))
    if end is not None and end[0].axes() <= opened:
        return replace(s, end=s.end.among("min", (end,)))
    variable = s.variable
    return ir.map_blocks(s, lambda block: _filled(block, ends, opened | {variable}))


def _fills(loop: ir.For) -> int:
    """The buffer of which a whole loop fills an element after the other, and does nothing else; -1 for any other."""
    store = loop.body[-1] if loop.body and _is_whole(loop) else None
    if not isinstance(store, ir.Store) or store.index != (axis_index(loop.variable),):
        return -1
    others = all(isinstance(s, ir.Define) and not s.mutable for s in loop.body[:-1])
    return store.buffer if others else -1


def _reads(
    body: Sequence[ir.Statement], loops: Mapping[int, ir.For]
) -> Iterator[tuple[int, End | None]]:
    """The buffers that a block reads, each with the end of what is read of it; None where that is not known."""
    for s in body:
        if isinstance(s, ir.For):
            yield from _reads(s.body, {**loops, s.variable: s})
        elif isinstance(s, ir.If):
            yield from _reads((*s.body, *s.otherwise), loops)
        elif isinstance(s, (ir.Define, ir.Change, ir.Store)):
            yield from _parts(s.value, (), loops)
        else:
            yield from ((buffer, None) for buffer, _ in accesses((s,)))


def _parts(
    scalar: Scalar, within: tuple[Within, ...], loops: Mapping[int, ir.For]
) -> Iterator[tuple[int, End | None]]:
    """The loads of a scalar where some conditions hold."""
    match scalar:
        case Load():
            yield scalar.buffer, _end_of_reads(scalar, within, loops)
            looked = (each.source for each in lookups(scalar.index))
            yield from ((source, None) for source in looked)
        case Select():
            yield from _parts(scalar.then, (*within, *scalar.within), loops)
            yield from _parts(scalar.otherwise, within, loops)
        case _:
            for argument in arguments_of(scalar):
                yield from _parts(argument, within, loops)


def _end_of_reads(load: Load, within: Sequence[Within], loops: Mapping[int, ir.For]) -> End | None:
    """The end of what is read one element after the other: with its loop, or where a condition ceases to hold."""
    variable = load.index[0].axis() if len(load.index) == 1 else None
    if variable is None:
        return None
    loop = loops[variable]
    if loop.within and not loop.part():
        return next(loop.end.limits())
    for each in within:
        if each.index.coefficient(variable) < 0 and each.is_plain():
            return each.limit(variable)
    return None


def _common(body: Sequence[ir.Statement]) -> list[Within]:
    """The conditions, on variables around a loop as well, without which its body does nothing."""
    common: list[Within] | None = None
    for s in body:
        if isinstance(s, ir.If) and not s.otherwise:
            common = [each for each in (s.within if common is None else common) if each in s.within]
        elif not isinstance(s, ir.Define) or s.mutable:
            return []
    return [each for each in common or () if each.is_plain() and len(each.index.variables()) > 1]


def _settled(body: Sequence[ir.Statement], taken: Within) -> ir.Block:
    out: list[ir.Statement] = []
    for s in body:
        within = tuple(each for each in s.within if each != taken) if isinstance(s, ir.If) else ()
        if isinstance(s, ir.If) and not within:
            out += s.body
        else:
            out.append(replace(s, within=within) if isinstance(s, ir.If) else s)
    return tuple(out)
