"""Loops that do nothing where a condition fails: they begin where it begins to hold, or end where it ceases to.

Example, a triangle:
    in:   for j in 0..n_j: if 0 <= i-j: acc += in0[i,j]
    out:  for j in 0..min(n_j, i+1): acc += in0[i,j]

Example, the other one:
    in:   for j in 0..n_j: if 0 <= j-i: acc += in0[i,j]
    out:  for j in 0..n_j-i: acc += in0[i,i+j]

What remains is done without a test, so that it can have lanes. A condition that several loops away decides is of a
loop around as well, and one loop takes one condition: any other stays a test, and ``cuts.py`` sees to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.ir.affine import Affine, Within
from ilang.core.ir.kernel import (
    Block,
    Define,
    For,
    If,
    Program,
    Rest,
    Statement,
    Tile,
    map_blocks,
)
from ilang.core.passes.rewriting import step_of, unless_same, walked, with_bodies
from ilang.core.record import replace

SHORT = 8
"""A loop that is known to have no more iterations stays whole: a compiler writes each of them out."""


def kernel_to_trimmed(program: Program) -> Program:
    """The program with loops that begin and end where conditions do."""
    return with_bodies(program, lambda kernel: _block(program, kernel.body))


def _block(program: Program, block: Block) -> Block:
    return unless_same(block, [_statement(program, s) for s in block])


def _statement(program: Program, s: Statement) -> Statement:
    """A statement with its loops trimmed, inner ones first; a tile keeps its loops."""
    if isinstance(s, Tile):
        return s
    s = map_blocks(s, lambda block: _block(program, block))
    return _trimmed(program, s) if isinstance(s, For) else s


def _trimmed(program: Program, loop: For) -> For:
    """A loop that takes one of the conditions under which it does anything; the loop itself where there is none."""
    extent = program.sizes[loop.size].fixed
    if loop.rest is not None or loop.stretch is not None or loop.lanes > 1 or loop.role == "u":
        return loop
    if extent is not None and extent <= SHORT:
        return loop
    found = _common(loop.body)
    last = next((each for each in found if step_of(each.index, loop.variable) < 0), None)
    if last is not None:
        until = _without(last.index, loop.variable, 1).plus((), 1)
        rest = Rest(loop.size, Affine(()), 1, until, -step_of(last.index, loop.variable))
        return replace(loop, body=_settled(loop.body, last), rest=rest)
    for each in found:
        begin = _without(each.index, loop.variable, -1)
        if step_of(each.index, loop.variable) == 1 and _is_natural(begin):
            further = begin.plus(((1, loop.variable),))
            body = _settled(loop.body, each)
            shifted = tuple(walked(s, {loop.variable: further}) for s in body)
            until = _without(each.index, loop.variable, 1)
            until = replace(until, sizes=(*until.sizes, (1, loop.size)))
            return replace(loop, body=shifted, rest=Rest(loop.size, Affine(()), 1, until))
    return loop


def _common(body: Sequence[Statement]) -> list[Within]:
    """The conditions, on variables around a loop as well, without which its body does nothing."""
    found: list[Within] | None = None
    for s in body:
        if isinstance(s, If) and not s.otherwise:
            found = [each for each in (s.within if found is None else found) if each in s.within]
        elif not isinstance(s, Define) or s.mutable:
            return []
    return [
        each
        for each in found or ()
        if each.size is None and len(each.index.terms) > 1 and not each.index.looked
    ]


def _settled(body: Sequence[Statement], taken: Within) -> Block:
    """A block where one condition holds."""
    out: list[Statement] = []
    for s in body:
        within = tuple(each for each in s.within if each != taken) if isinstance(s, If) else ()
        if isinstance(s, If) and not within:
            out += s.body
        else:
            out.append(replace(s, within=within) if isinstance(s, If) else s)
    return tuple(out)


def _without(index: Affine, variable: int, sign: int) -> Affine:
    """An index, or minus it, without one variable."""
    terms = tuple((sign * c, v) for c, v in index.terms if v != variable)
    sizes = tuple((sign * c, n) for c, n in index.sizes)
    return Affine(terms, sign * index.offset, window=True, sizes=sizes)


def _is_natural(index: Affine) -> bool:
    """Whether an index is known to be 0 or more."""
    return index.offset >= 0 and all(0 <= c for c, _ in (*index.terms, *index.sizes))
