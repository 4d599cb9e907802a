"""Give the innermost loop of a reduction lanes: partial results that do not wait for each other.

Example:
    in:   acc = 0
          for k: acc += in0[k] * in1[k]
    out:  acc = 0 in each of 16 lanes
          for k in 16 lanes: acc += in0[k] * in1[k]
          fold the lanes of acc with add

The role ``v`` of schedules (LANGUAGE.md section 3): the innermost loop has it by default where every access it moves
has unit stride. Lane ``k % 16`` takes iteration k and the lanes are folded pairwise, so the result depends on the
extent alone, not on the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.ir.kernel import (
    Blocks,
    Change,
    Define,
    Fold,
    For,
    If,
    Kernel,
    Program,
    Statement,
    Store,
)
from ilang.core.ir.scalar import Apply, Load, Local, Select, walk
from ilang.core.record import replace

LANES = 16
"""Partial results of a laned reduction: enough to keep four 256-bit adders of doubles busy."""


def kernel_to_lanes(program: Program) -> Program:
    """The program with lanes where they are allowed and pay."""
    short = {
        n for n, size in enumerate(program.sizes) if size.fixed is not None and size.fixed < LANES
    }
    short |= {part.size for part in program.parts if isinstance(part, Blocks)}
    kernels = tuple(_kernel(kernel, short) for kernel in program.kernels)
    return replace(program, kernels=kernels)


def _kernel(kernel: Kernel, short: set[int]) -> Kernel:
    return replace(kernel, body=_block(kernel.body, short))


def _block(body: Sequence[Statement], short: set[int]) -> tuple[Statement, ...]:
    """A block with lanes: each accumulator defined in it and the nest that changes it, together."""
    out: list[Statement] = []
    defined: dict[int, int] = {}
    for s in body:
        if isinstance(s, Define) and s.mutable:
            defined[s.variable] = len(out)
        elif isinstance(s, For):
            change = _accumulation(s, short)
            if change is not None and change.variable in defined:
                at = defined.pop(change.variable)
                lanes = _lanes(change)
                out[at] = replace(out[at], lanes=lanes)
                out += [_laned(s, lanes), _fold(change, lanes)]
                continue
        out.append(replace(s, body=_block(s.body, short)) if isinstance(s, (For, If)) else s)
    return tuple(out)


def _accumulation(loop: For, short: set[int]) -> Change | None:
    """The one change that a nest makes in its innermost loop, where that loop can have lanes."""
    while len(loop.body) == 1 and isinstance(loop.body[0], For):
        loop = loop.body[0]
    changes = [s for s in loop.body if isinstance(s, Change)]
    if (
        loop.size in short
        or len(changes) != 1
        or any(isinstance(s, (For, If, Store)) for s in loop.body)
    ):
        return None
    change = changes[0]
    value = change.value
    if not isinstance(value, Apply) or value.arguments[0] != Local(
        change.variable, value.dtype or ""
    ):
        return None
    for s in loop.body:
        assert isinstance(s, (Define, Change))
        for part in walk(s.value):
            if isinstance(part, Select) or (
                isinstance(part, Load) and not _is_unit(part, loop.variable)
            ):
                return None
    return change


def _is_unit(load: Load, variable: int) -> bool:
    """Whether one more iteration reads the next element, or the same one."""
    steps = [sum(c for c, v in index.terms if v == variable) for index in load.index]
    return not any(steps[:-1]) and (not steps or steps[-1] in (0, 1))


def _lanes(change: Change) -> int:
    """How many lanes an accumulation has: more where a step takes longer, and its order means nothing."""
    value = change.value
    return 2 * LANES if isinstance(value, Apply) and value.primitive in ("max", "min") else LANES


def _laned(loop: For, lanes: int) -> For:
    """The nest with lanes on its innermost loop."""
    inner = loop.body[0]
    if len(loop.body) == 1 and isinstance(inner, For):
        return replace(loop, body=(_laned(inner, lanes),))
    return replace(loop, lanes=lanes)


def _fold(change: Change, lanes: int) -> Fold:
    value = change.value
    assert isinstance(value, Apply)
    return Fold(change.variable, value.primitive, value.dtype or "", lanes)
