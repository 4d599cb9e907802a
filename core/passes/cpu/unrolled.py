"""Count the copies of its body that an unrolled loop is written out in.

Example:
    in:   for i in 0..4 unrolled: for j in 0..128 unrolled: ...
    out:  the same, i in 4 copies and j in 64, which together are as many as compilers take

GCC refuses to unroll 65535 times, and takes minutes for a few thousand copies.
"""

from __future__ import annotations

from ilang.core.ir import kernel as ir
from ilang.core.ir.rewriting import parts_of, unless_same, with_bodies
from ilang.core.ir.scalar import Apply, Load, Scalar, Select, reads_both, scalars_within
from ilang.core.record import replace

PEELED = 16
"""Iterations at most of a loop that compilers write out of themselves."""
MOST_COPIES = 256
"""Copies of a body that unrolled loops ask for, all around it together."""


def kernel_to_unrolled(program: ir.Program) -> ir.Program:
    """The program whose unrolled loops have a number of copies."""
    return with_bodies(program, lambda kernel: _block(program, kernel.body, 1))


def _block(program: ir.Program, block: ir.Block, around: int, inside: bool = False) -> ir.Block:
    return unless_same(block, [_statement(program, s, around, inside) for s in block])


def _statement(program: ir.Program, s: ir.Statement, around: int, inside: bool) -> ir.Statement:
    """A statement of whose block loops ``around`` it ask for so many copies; threads share no copies."""
    if isinstance(s, ir.For) and s.parallel:
        around = 1
    elif isinstance(s, ir.For) and s.role == "u" and s.lanes == 1:
        copies = min(program.sizes[s.size].fixed or 0, MOST_COPIES // around)
        s, around = replace(s, copies=copies), around * max(1, copies)
    elif isinstance(s, ir.For) and s.lanes == 1 and inside and _is_miscompiled(program, s):
        s = replace(s, copies=1)
    within = inside or isinstance(s, ir.For)
    return ir.map_blocks(s, lambda block: _block(program, block, around, within))


def _is_miscompiled(program: ir.Program, loop: ir.For) -> bool:
    """Whether a loop inside another one is to stay a loop.

    Where GCC 12 writes out a small loop that stores what it loads under conditions, and makes vectors of the loop
    around it, the vectors are wrong.
    """
    extent = program.sizes[loop.size].fixed
    if extent is None or PEELED < extent:
        return False
    statements = list(ir.statements_within(loop.body))
    stores = [s for s in statements if isinstance(s, ir.Store)]
    conditional = any(_loads_conditionally(part) for s in statements for part in parts_of(s))
    return conditional and any(loop.variable in part.axes() for s in stores for part in s.index)


def _loads_conditionally(scalar: Scalar) -> bool:
    """Whether a scalar loads where a condition holds, and only there."""
    match scalar:
        case Select():
            sides: tuple[Scalar, ...] = (scalar.then, scalar.otherwise)
        case Apply(primitive="where") if not reads_both(scalar):
            sides = scalar.arguments[1:]
        case _:
            return False
    return any(isinstance(part, Load) for side in sides for part in scalars_within(side))
