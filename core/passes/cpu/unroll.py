"""Say how many copies of its body an unrolled loop is written out in.

Example:
    in:   for i in 0..4 unrolled: for j in 0..128 unrolled: ...
    out:  the same, i in 4 copies and j in 64, which together are as many as compilers take

GCC refuses to unroll 65535 times, and takes minutes for a few thousand copies.
"""

from __future__ import annotations

from ilang.core.ir.kernel import Block, For, Program, Statement, map_blocks
from ilang.core.ir.rewriting import unless_same, with_bodies
from ilang.core.record import replace

MOST_COPIES = 256
"""Copies of a body that unrolled loops ask for, all around it together."""


def kernel_to_unrolled(program: Program) -> Program:
    """The program whose unrolled loops have a number of copies."""
    return with_bodies(program, lambda kernel: _block(program, kernel.body, 1))


def _block(program: Program, block: Block, around: int) -> Block:
    return unless_same(block, [_statement(program, s, around) for s in block])


def _statement(program: Program, s: Statement, around: int) -> Statement:
    """A statement of whose block loops ``around`` it ask for so many copies; threads share no copies."""
    if isinstance(s, For) and s.parallel:
        around = 1
    elif isinstance(s, For) and s.role == "u" and s.lanes == 1:
        copies = min(program.sizes[s.size].fixed or 0, MOST_COPIES // around)
        s, around = replace(s, copies=copies), around * max(1, copies)
    return map_blocks(s, lambda block: _block(program, block, around))
