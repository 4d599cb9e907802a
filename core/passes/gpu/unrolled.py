"""Take the ends of unrolled loops out of them: a loop with an end of its own that is known late is not unrolled.

Example, where rows have 1,000 elements, a multiple of four, and of 10:
    in:   for j2 in 0..min(4, 1000 - (128j+4j1)) unrolled          out:  if 128j+4j1 < 1000
            run += t[j,j2]                                                 for j2 in 0..4 unrolled: run += t[j,j2]
          for j in 0..min(3, ceil((10-j1) / 4)) unrolled                 for j in 0..3 unrolled
            run += t[j]                                                    if 4j+j1 < 10: run += t[j]

Vectors that a dimension has a whole number of are inside of it or not: nothing is tested for each element.
"""

from __future__ import annotations

from ilang.core.calculus.affine import Within
from ilang.core.ir import kernel as ir
from ilang.core.ir.schedule import THREAD_ROLES
from ilang.core.record import replace


def with_unrolled(program: ir.Program, body: ir.Block) -> ir.Block:
    """A block whose unrolled loops run as often as they say, under conditions, as far as dimensions are known.

    The block is left as it is where threads share no rows: tiles have conditions of their own (``full_tiles.py``).
    """
    shared = (loop for loop in ir.every(body, ir.For) if loop.role in THREAD_ROLES)
    if not any(_accumulates(loop) for loop in shared):
        return body
    return ir.map_statements(body, lambda s: _whole(program, s) if isinstance(s, ir.For) else s)


def _accumulates(loop: ir.For) -> bool:
    """Whether iterations of a loop change a scalar variable that stands outside of it."""
    inside = list(ir.statements_within(loop.body))
    defined = {s.variable for s in inside if isinstance(s, ir.Define)}
    return any(isinstance(s, ir.Change) and s.variable not in defined for s in inside)


def _whole(program: ir.Program, loop: ir.For) -> ir.Statement:
    known = all(
        each.size is not None and program.sizes[each.size].fixed is not None for each in loop.within
    )
    if loop.role != "u" or not loop.within or not known or loop.finite:
        return loop
    outside = tuple(
        each for w in loop.within if (each := _of_vectors(program, loop, w)) is not None
    )
    inside = tuple(w for w in loop.within if _of_vectors(program, loop, w) is None)
    body = (ir.If(inside, loop.body),) if inside else loop.body
    whole = replace(loop.whole(), body=body)
    return ir.If(outside, (whole,)) if outside else whole


def _of_vectors(program: ir.Program, loop: ir.For, condition: Within) -> Within | None:
    """The condition that all iterations of a loop share, where they are a vector; None where they are not."""
    count, size = program.sizes[loop.size].fixed, condition.size
    assert size is not None
    extent, index = program.sizes[size].fixed, condition.index
    rest = index.without((loop.variable,))
    if count is None or extent is None or extent % count or index.coefficient(loop.variable) != 1:
        return None
    plain = not (rest.sizes or rest.looked)
    return replace(condition, index=rest) if plain and rest.is_multiple(count) else None
