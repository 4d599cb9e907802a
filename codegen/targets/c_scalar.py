"""Statements without loops as C text: scalar variables, elements, and lanes combined into one value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ilang.codegen.targets.braces import braced
from ilang.codegen.targets.cfamily import Spelling, combined
from ilang.core.dtype import FLOATS
from ilang.core.ir.kernel import Change, Define, HorizontalReduction, Store
from ilang.core.ops import PRIMITIVES

Simple = Define | Change | HorizontalReduction | Store
"""Statements that have no statements in them."""


def lines(s: Simple, spelling: Spelling) -> Iterator[str]:
    """A statement; a variable with lanes is the one of the lane at hand."""
    match s:
        case Define() if (lanes := spelling.scalar(s.variable).lanes) > 1:
            name = spelling.name(s.variable)
            yield f"{spelling.kind(s.variable, s.dtype)} {name}[{lanes}];"
            head = f"for (int lane = 0; lane < {lanes}; ++lane)"
            yield f"{head} {name}[lane] = {spelling.value(s.value)};"
        case Define():
            const = "" if s.mutable else "const "
            name = spelling.local(s.variable)
            kind, value = spelling.kind(s.variable, s.dtype), spelling.first(s.variable, s.value)
            yield f"{const}{kind} {name} = {value};"
        case Change():
            yield spelling.change(s.variable, s.value)
        case Store():
            yield spelling.store(s.buffer, s.index, s.value)
        case HorizontalReduction():
            yield from _horizontal(s, spelling)
        case _:
            assert_never(s)


def _horizontal(s: HorizontalReduction, spelling: Spelling) -> Iterator[str]:
    """Combine lanes pairwise: half of them take the other half, until one is left.

    Each half has a text of its own: its number of lanes is then known, which is less to compile and faster. A sum
    of floats is a macro. The largest and the smallest of floats have functions of the library, that of integers a
    loop.
    """
    name = spelling.name(s.variable)
    if s.primitive in ("max", "min") and s.dtype in FLOATS and s.lanes % 8 == 0:
        yield f"{name}[0] = {s.primitive}_lanes_{s.dtype}({name}, {s.lanes});"
        return
    if s.primitive == "add" and s.dtype in FLOATS:
        yield f"SUM_LANES_{s.lanes}({name});"
        return
    halves = [str(s.lanes >> n) for n in range(1, s.lanes.bit_length())]
    looped = not PRIMITIVES[s.primitive].notation.c
    updates = [
        f"for (int lane = 0; lane < {half}; ++lane) "
        + combined(s.primitive, s.dtype, f"{name}[lane]", f"{name}[lane + {half}]")
        for half in (["half"] if looped else halves)
    ]
    head = f"for (int half = {halves[0]}; half > 0; half /= 2)"
    yield from braced(head, updates) if looped else updates
