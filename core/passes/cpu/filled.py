"""Loops that fill private buffers, which end where all loops do that read what they fill.

Example, of a softmax over a triangle:
    in:   for j in 0..n_j: t[j] = exp(in0[i,j])              out:  for j in 0..min(n_j, i+1): t[j] = exp(in0[i,j])
          for j in 0..min(n_j, i+1): out[i,j] = t[j] / acc         the same
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ilang.core.calculus.affine import Affine, Within, axis_index, lookups
from ilang.core.ir import kernel as ir
from ilang.core.ir.rewriting import accesses, unless_same
from ilang.core.ir.scalar import Load, Scalar, Select, arguments_of
from ilang.core.record import replace

End = tuple[Affine, int]
"""The end of a loop, ``ceil(index / step)``: an index, and a step."""


def filled(program: ir.Program, body: ir.Block) -> ir.Block:
    """The body of a kernel, whose loops fill no more of private buffers than is read."""
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
    is_whole = not loop.within and loop.chunk is None and loop.lanes == 1 and loop.role != "u"
    store = loop.body[-1] if loop.body and is_whole else None
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
        return next(loop.end.limits(), None)
    for each in within:
        if each.index.coefficient(variable) < 0 and each.is_plain():
            return each.limit(variable)
    return None
