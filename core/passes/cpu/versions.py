"""Choose how each loop is written: unrolled, split at boundaries, or with a reciprocal.

Example:
    in:   for i in 0..4 unrolled: for j in 0..128 unrolled: ...
    out:  the same, i in 4 copies and j in 64, which together are as many as compilers take

Example, where the conditions of reads hold in one interval of iterations:
    in:   for x: t[x] = (in0[x-1] if 0 <= x-1 < n_x else 0)
    out:  for x, cut from 1 to n_x+1: t[x] = (in0[x-1] if 0 <= x-1 < n_x else 0)

A loop may be split (``splits.py``) unless it divides by a reciprocal. Short rows of slow work become whole vectors
(``tails.py``). GCC refuses to unroll 65535 times, and takes minutes for a few thousand copies.
"""

from __future__ import annotations

from collections.abc import Iterator

from ilang.core.ir import kernel as ir
from ilang.core.ir.rewriting import is_guarded, is_invariant, parts_of, unless_same, with_bodies
from ilang.core.ir.scalar import Apply, Load, Local, Scalar, Select, reads_both, scalars_within
from ilang.core.passes.cpu.splits import cut
from ilang.core.passes.cpu.tails import ShortRows
from ilang.core.record import replace

PEELED = 16
"""Iterations at most of a loop that compilers write out of themselves."""
MOST_COPIES = 256
"""Copies of a body that unrolled loops ask for, all around it together."""


def kernel_to_versions(program: ir.Program) -> ir.Program:
    """The program whose loops say how they are written."""
    versions = _LoopVersions(program)
    changed = with_bodies(program, lambda kernel: versions.block(kernel.body, 1, False))
    return changed if changed is program else replace(changed, sizes=versions.program.sizes)


class _LoopVersions:
    """One program, whose sizes grow by those of parts of rows."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.rows = ShortRows(program)

    def block(self, block: ir.Block, around: int, inside: bool) -> ir.Block:
        """A block, ``inside`` a loop or not, of which loops ``around`` it ask for so many copies."""
        out: list[ir.Statement] = []
        for s in block:
            if isinstance(s, ir.For):
                out += self._loops(s, around, inside)
            else:
                out.append(ir.map_blocks(s, lambda block: self.block(block, around, inside)))
        return unless_same(block, out)

    def _loops(self, s: ir.For, around: int, inside: bool) -> Iterator[ir.For]:
        """A loop as it is written, or two that do the same."""
        loop = s if s.manner is not None else self._unrolled(s, around, inside)
        copies = loop.copies or 1
        within = 1 if loop.parallel else around * copies  # threads share no copies
        body = self.block(loop.body, within, True)
        loop = loop if body is loop.body else replace(loop, body=body)
        division = invariant_division(self.program, loop)
        if division is not None:
            yield replace(loop, version=division)
            return
        parts = self.rows.parts(loop)
        if len(self.program.sizes) < len(self.rows.sizes):
            self.program = replace(self.program, sizes=tuple(self.rows.sizes))
        for part in parts:
            pieces = cut(self.program, part)
            yield part if pieces is None else replace(part, version=pieces)

    def _unrolled(self, loop: ir.For, around: int, inside: bool) -> ir.For:
        """A loop in as many copies as is asked for, or a loop that is to stay one."""
        if loop.role == "u":
            copies = min(self.program.sizes[loop.size].fixed or 0, MOST_COPIES // around)
            return replace(loop, manner=ir.Unrolled(copies))
        if inside and _is_miscompiled(self.program, loop):
            return replace(loop, manner=ir.Unrolled(1))
        return loop


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


def invariant_division(program: ir.Program, loop: ir.For) -> Apply | None:
    """The one division of a loop by what the loop does not change, where the loop may run twice; else None.

    A target may compute the quotients by a loop that multiplies by the reciprocal and corrects the result, if the
    divisor and all dividends are in range. Both loops give the same bits, except for quotients below the smallest
    normal number, which may differ in the last bit. A loop that reads under a condition runs in parts
    (``splits.py``), and may not.
    """
    if loop.manner is not None or loop.role or is_guarded(loop.body):
        return None
    extent = program.sizes[loop.size].fixed
    if extent is not None and extent < program.machine.divided_iterations:
        return None
    stored = {s.buffer for s in loop.body if isinstance(s, ir.Store)}
    defined = {s.variable for s in loop.body if isinstance(s, ir.Define)}
    divisions: list[Apply] = []
    for s in loop.body:
        if not isinstance(s, (ir.Define, ir.Store)) or (isinstance(s, ir.Define) and s.mutable):
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
