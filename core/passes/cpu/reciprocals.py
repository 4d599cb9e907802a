"""Divide by a loop-invariant value by its reciprocal, corrected to the exact quotient, which costs less.

Example:
    in:   for j: out[i,j] = t[j] / s
    out:  for j with the reciprocal of s: out[i,j] = t[j] / s

A target may then compute the quotients by a loop that multiplies by the reciprocal and corrects the result, if the
divisor and all dividends are in range. Both loops give the same bits, except for quotients below the smallest normal
number, which may differ in the last bit.
"""

from __future__ import annotations

from ilang.core.ir.kernel import Define, For, Program, Store
from ilang.core.ir.rewriting import is_guarded, is_invariant
from ilang.core.ir.scalar import Apply, Load, Local, scalars_within


def invariant_division(program: Program, loop: For) -> Apply | None:
    """The one division of a loop by what the loop does not change, where the loop may run twice; else None.

    A loop that reads under a condition runs in parts (``splits.py``), and may not.
    """
    if loop.manner is not None or loop.role or is_guarded(loop.body):
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
