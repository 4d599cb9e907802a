"""Divide by a loop-invariant value by its reciprocal, corrected to the exact quotient, which costs less.

Example:
    in:   for j: out[i,j] = t[j] / s
    out:  for j with the reciprocal of s: out[i,j] = t[j] / s

A target may then compute the quotients by a loop that multiplies by the reciprocal and corrects the result, if the
divisor and all dividends are in range. Both loops give the same bits, except for quotients below the smallest normal
number, which may differ in the last bit.
"""

from __future__ import annotations

from ilang.core.ir.kernel import Block, Define, For, Program, Statement, Store, Tile, map_blocks
from ilang.core.ir.rewriting import is_guarded, is_invariant, unless_same, with_bodies
from ilang.core.ir.scalar import Apply, Load, Local, scalars_within
from ilang.core.record import replace


def kernel_to_reciprocals(program: Program) -> Program:
    """The program whose loops have the reciprocals of their invariant divisors."""
    return with_bodies(program, lambda kernel: _block(program, kernel.body))


def _block(program: Program, block: Block) -> Block:
    return unless_same(block, [_statement(program, s) for s in block])


def _statement(program: Program, s: Statement) -> Statement:
    """A statement whose loops are marked; of a tile those of its elements in memory."""
    if isinstance(s, Tile):
        edge = _block(program, s.edge)
        return s if edge is s.edge else replace(s, edge=edge)
    s = map_blocks(s, lambda block: _block(program, block))
    if not isinstance(s, For):
        return s
    division = invariant_division(program, s)
    return s if division is None else replace(s, division=division)


def invariant_division(program: Program, loop: For) -> Apply | None:
    """The one division of a loop by what the loop does not change, where the loop may run twice; else None.

    A loop that reads under a condition runs in parts (``splits.py``), and may not.
    """
    if loop.parallel or loop.role or loop.lanes > 1 or is_guarded(loop.body):
        return None
    extent = program.sizes[loop.size].fixed
    if extent is not None and extent < program.machine.divided_iterations:
        return None
    stored = {s.buffer for s in loop.body if isinstance(s, Store)}
    defined = {s.variable for s in loop.body if isinstance(s, Define)}
    divisions: list[Apply] = []
    for s in loop.body:
        if not isinstance(s, (Define, Store)) or (isinstance(s, Define) and s.mutable):
            return None
        for part in scalars_within(s.value):
            if isinstance(part, Load) and part.buffer in stored:
                return None
            if isinstance(part, Apply) and part.primitive == "div" and part.dtype == "f32":
                divisions.append(part)
    if len(divisions) != 1 or not stored:
        return None
    number, divisor = divisions[0].arguments
    varies = isinstance(number, (Load, Local)) and not is_invariant(number, loop.variable, defined)
    return divisions[0] if varies and is_invariant(divisor, loop.variable, defined) else None
