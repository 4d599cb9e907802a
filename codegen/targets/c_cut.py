"""Loops cut where their conditions begin and cease to hold (``core/passes/cpu/cuts.py``).

    int64_t x = 0;
    const int64_t start_x = min_i64(max_i64(x, 1), n_x);
    const int64_t stop_x = max_i64(start_x, min_i64(n_in0 + 1, n_x));
    for (; x < start_x; ++x) in0_copy[x] = 0.0f;
    for (; x < stop_x; ++x) in0_copy[x] = in0[x - 1];
    for (; x < n_x; ++x) in0_copy[x] = 0.0f;

A loop that still tests where it reads is marked ``SCALAR``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.codegen.targets.cfamily import Spelling
from ilang.core.calculus.affine import Ceiling
from ilang.core.ir.cpu import Cut
from ilang.core.ir.kernel import Statement

Piece = tuple[str, Sequence[Statement], bool]
"""The line that opens a loop, what its iterations do, and whether they test where they read."""


def ends(parts: Cut, name: str, end: str, spelling: Spelling) -> Iterator[str]:
    """The statements that say where the middle part of the loop over ``name``, now at its first iteration, is."""
    start = name
    for bound in parts.least:
        start = f"max_i64({start}, {_bound(bound, spelling)})"
    stop = end
    for bound in parts.most:
        stop = f"min_i64({stop}, {_bound(bound, spelling)})"
    start = f"min_i64({start}, {end})" if parts.least else start
    stop = f"max_i64(start_{name}, {stop})" if parts.most else stop
    if parts.within:
        words = spelling.conditions(parts.within)
        stop = f"({words}) ? {stop} : start_{name}"
    yield f"const int64_t start_{name} = {start};"
    yield f"const int64_t stop_{name} = {stop};"


def pieces(parts: Cut, name: str, end: str) -> Iterator[Piece]:
    """The parts of a loop, in order."""
    if parts.outside and parts.least:
        yield f"for (; {name} < start_{name}; ++{name}) {{", parts.outside, parts.outside_tests
    first = "" if parts.outside else f"{name} = start_{name}"
    yield f"for ({first}; {name} < stop_{name}; ++{name}) {{", parts.inside, parts.inside_tests
    if parts.outside and (parts.most or parts.within):
        yield f"for (; {name} < {end}; ++{name}) {{", parts.outside, parts.outside_tests


def _bound(bound: Ceiling, spelling: Spelling) -> str:
    """An end of the middle part."""
    text = spelling.index(bound.index)
    return text if bound.step == 1 else f"ceil_i64({text}, {bound.step})"
