"""Loops that only copy, along one dimension of what they read and along another of what they write.

Example:
    for j1: for i: out[j1,i] = in0[i,j1]

A target may move such elements in squares; threads share the loops around them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.ir.affine import Affine
from ilang.core.ir.kernel import For, Program, Store
from ilang.core.ir.scalar import Load
from ilang.core.ir.shaped import FEW
from ilang.core.record import record

MOVED = frozenset({"f32", "f64", "i32", "i64"})
"""Element types whose squares are transposed: what an input of bool has is no bool yet."""


@record
class Transposing:
    """Two loops that copy: ``outer`` runs along what ``load`` reads, ``inner`` along what ``store`` writes."""

    outer: For
    inner: For
    store: Store
    load: Load


def transposing(program: Program, loop: For) -> list[Transposing]:
    """The copies that a loop and those inside it are, if they only copy, each transposing; else none."""
    copies: list[Transposing] = []
    for inner in loop.body:
        if not isinstance(inner, For):
            return []
        for s in inner.body:
            if not isinstance(s, Store) or not isinstance(s.value, Load):
                return []
            copies.append(Transposing(loop, inner, s, s.value))
    written = {copy.store.buffer for copy in copies}
    if any(copy.load.buffer in written or not _transposes(program, copy) for copy in copies):
        return []
    return copies


def _transposes(program: Program, copy: Transposing) -> bool:
    """Whether it is a copy of many elements that vectors hold, along one dimension and along another."""
    loops, load = (copy.outer, copy.inner), copy.load
    if any(x.parallel or x.role or x.lanes > 1 or _is_few(program, x) for x in loops):
        return False
    rest = copy.inner.rest
    if rest is not None and copy.outer.variable in {v for _, v in rest.start.terms}:
        return False
    return (
        load.dtype in MOVED
        and _runs_along(copy.store.index, copy.inner, copy.outer)
        and _runs_along(load.index, copy.outer, copy.inner)
    )


def _runs_along(index: Sequence[Affine], loop: For, other: For) -> bool:
    """Whether a loop walks the last dimension, element by element, and nothing else; the other not that one."""
    steps = [step_of(part, loop.variable) for part in index]
    return (
        bool(steps)
        and steps[-1] == 1
        and not any(steps[:-1])
        and not step_of(index[-1], other.variable)
    )


def _is_few(program: Program, loop: For) -> bool:
    fixed = program.sizes[loop.size].fixed
    return fixed is not None and fixed < FEW


def step_of(part: Affine, variable: int) -> int:
    """What an iteration of a loop adds to an index."""
    return sum(c for c, v in part.terms if v == variable)
