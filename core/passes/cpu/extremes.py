"""Maxima and minima of floats that variables accumulate alone, and nothing reads before the last one.

Example:
    for j: m = max(m, in0[i,j])                     m is one: a target may hold it as an ordered integer
    for j: s = s * exp(m - t[j]);  m = max(m, t[j])   m is none: each step of the loop reads it
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from ilang.core.dtype import FLOATS
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile, Transpose
from ilang.core.ir.ids import BufferId, LocalId
from ilang.core.ir.rewriting import named, parts_of
from ilang.core.ir.scalar import Apply, Load, Local, Scalar

Extreme = Literal["max", "min"]


def extremes(body: ir.Block) -> dict[LocalId, Extreme]:
    """The variables of a kernel that become the larger of themselves and another float, or the smaller, and no else."""
    changed: dict[LocalId, Extreme | None] = {}
    for s in ir.statements_within(body):
        if isinstance(s, ir.Change):
            extreme = extreme_of(s)
            changed[s.variable] = extreme if changed.get(s.variable, extreme) == extreme else None
    if not any(changed.values()):
        return {}
    carried = set[LocalId]()
    _uses(body, carried)
    return {
        v: extreme for v, extreme in changed.items() if extreme is not None and v not in carried
    }


def _uses(body: ir.Block, carried: set[LocalId]) -> tuple[set[LocalId], set[LocalId]]:
    """The outer variables that a block changes, and those it reads; ``carried`` gets those of loops that are both."""
    defined, changed, read = set[LocalId](), set[LocalId](), set[LocalId]()
    for s in body:
        if isinstance(s, ir.Define):
            defined.add(s.variable)
        if isinstance(s, ir.Change):
            changed.add(s.variable)
        combines = isinstance(s, ir.Change) and extreme_of(s) is not None
        is_copy = isinstance(s, ir.Store) and isinstance(s.value, Local)  # no step waits for it
        parts = () if is_copy else parts_of(s)
        parts = (part for n, part in enumerate(parts) if not combines or n != 1)
        read |= {part.variable for part in parts if isinstance(part, Local)}
        for block in ir.blocks_of(s):
            changes, reads = _uses(block, carried)
            if isinstance(s, ir.For):
                carried |= changes & reads
            changed |= changes
            read |= reads
    return changed - defined, read - defined


def extreme_buffers(program: ir.Program) -> dict[BufferId, Extreme]:
    """The buffers, each of one kernel, whose elements become the larger of themselves and another, or the smaller."""
    extremes: dict[BufferId, Extreme] = {}
    used = Counter(buffer for kernel in program.kernels for buffer in named(kernel.body))
    shared = {each.owner for each in program.buffers}
    shared |= {buffer for call in program.calls for pair in call.arrays for buffer in pair}
    alone = {
        number
        for number in program.numbers()
        if used[number] == 1 and number not in shared
        if program.buffers[number].role == "temporary"
    }
    for kernel in program.kernels:
        kinds: dict[BufferId, Extreme | None] = {}
        for s in ir.statements_within(kernel.body):
            if isinstance(s, (Tile, Transpose)):
                blocks = tuple(inner for block in ir.blocks_of(s) for inner in block)
                kinds |= dict.fromkeys(named(blocks))
            elif isinstance(s, ir.Store) and (extreme := extreme_of(s)) is not None:
                same = s.buffer in alone and kinds.get(s.buffer, extreme) == extreme
                kinds[s.buffer] = extreme if same else None
        extremes |= {buffer: extreme for buffer, extreme in kinds.items() if extreme is not None}
    return extremes


def extreme_of(s: ir.Change | ir.Store) -> Extreme | None:
    """The manner in which a variable or an element becomes the larger of itself and another float, or the smaller."""
    value = s.value
    if not isinstance(value, Apply) or value.dtype not in FLOATS:
        return None
    held: Scalar = (
        Local(s.variable, value.dtype)
        if isinstance(s, ir.Change)
        else Load(s.buffer, s.index, value.dtype)
    )
    if value.arguments[0] != held:
        return None
    return "max" if value.primitive == "max" else "min" if value.primitive == "min" else None
