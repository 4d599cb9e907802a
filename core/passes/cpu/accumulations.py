"""Loops that can have lanes: they change accumulators alone, and their accesses go along memory or stay.

Example:
    for k: acc += f64(in0[k] * in1[k])      acc can have a partial result in every lane
    for k: acc = acc * x + in0[k]           no: every step waits for the one before it
"""

from __future__ import annotations

from ilang.core.calculus.affine import row_step
from ilang.core.ir.kernel import Change, Define, For, Program, Store
from ilang.core.ir.rewriting import chain_of, parts_of
from ilang.core.ir.scalar import Apply, Load, Local, Position, Select, scalars_within


def short_sizes(program: Program) -> set[int]:
    """The sizes of loops that are too short for lanes."""
    fixed = {n: size.fixed for n, size in enumerate(program.sizes) if size.fixed is not None}
    return {n for n, extent in fixed.items() if extent < program.machine.sum_lanes}.union(
        program.chunks()
    )


def accumulations(loop: For, short: set[int]) -> tuple[Change, ...]:
    """The changes that a nest makes in its innermost loop, where that loop can have lanes; else none.

    ``short`` are the sizes of loops that are too short for them.
    """
    loop = chain_of((loop,))[0][-1]
    changes = tuple(s for s in loop.body if isinstance(s, Change))
    if loop.size in short or not changes or loop.lanes > 1:
        return ()
    if not all(isinstance(s, (Define, Change, Store)) for s in loop.body):
        return ()
    if len({s.variable for s in changes}) < len(changes):
        return ()
    stored = {s.buffer for s in loop.body if isinstance(s, Store)}
    changed = {s.variable for s in changes}
    for s in loop.body:
        if isinstance(s, Store) and row_step(s.index, loop.variable) != 1:
            return ()
        variable = s.variable if isinstance(s, Change) else None
        if isinstance(s, Change) and not _accumulates(s):
            return ()
        for part in parts_of(s):
            if isinstance(part, Select) or (isinstance(part, Position) and part.index.axes()):
                return ()
            if isinstance(part, Load) and (
                part.buffer in stored or row_step(part.index, loop.variable) not in (0, 1)
            ):
                return ()
            if isinstance(part, Local) and part.variable in changed - {variable}:
                return ()
    return changes


def _accumulates(change: Change) -> bool:
    value = change.value
    if not isinstance(value, Apply) or len(value.arguments) != 2:
        return False
    accumulator = Local(change.variable, value.dtype or "")
    return value.arguments[0] == accumulator and accumulator not in scalars_within(
        value.arguments[1]
    )
