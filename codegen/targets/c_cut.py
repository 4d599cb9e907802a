"""Loops cut where their conditions begin and cease to hold (``core/passes/cpu/splits.py``).

    int64_t x = 0;
    const int64_t start_x = min_i64(max_i64(x, 1), n_x);
    const int64_t stop_x = max_i64(start_x, min_i64(n_in0 + 1, n_x));
    for (; x < start_x; ++x) in0_copy[x] = 0.0f;
    for (; x < stop_x; ++x) in0_copy[x] = in0[x - 1];
    for (; x < n_x; ++x) in0_copy[x] = 0.0f;

A loop that still tests where it reads is marked ``SCALAR``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.codegen.targets.cfamily import Spelling
from ilang.core.ir.kernel import For, If, Statement

Piece = tuple[str, Sequence[Statement]]
"""The head of a loop, and what its iterations do."""


def pieces(parts: If, end: str, spelling: Spelling) -> tuple[list[str], list[Piece]]:
    """The statements that say where the middle part of a loop is, at its first iteration; and its parts, in order."""
    (middle,) = parts.body
    assert isinstance(middle, For)
    begins, ends = bool(middle.begin.operands), bool(middle.end.operands)
    name = spelling.variable(middle.variable)
    start, stop = spelling.bound(middle.begin, name), spelling.bound(middle.end, end)
    start = f"min_i64({start}, {end})" if begins else start
    stop = f"max_i64(start_{name}, {stop})" if ends else stop
    if parts.within:
        stop = f"({spelling.conditions(parts.within)}) ? {stop} : start_{name}"
    lines = [f"const int64_t start_{name} = {start};", f"const int64_t stop_{name} = {stop};"]
    first = "" if parts.otherwise else f"{name} = start_{name}"
    of_parts: list[Piece] = []
    if parts.otherwise and begins:
        of_parts.append((f"for (; {name} < start_{name}; ++{name})", parts.otherwise))
    of_parts.append((f"for ({first}; {name} < stop_{name}; ++{name})", middle.body))
    if parts.otherwise and (ends or parts.within):
        of_parts.append((f"for (; {name} < {end}; ++{name})", parts.otherwise))
    return lines, of_parts
