"""Split contractions (split-K) on a GPU: parts of the terms where it has too few results.

Example, a product of 16 by 65,536 and 65,536 by 16 elements, in parts of 512 terms:
    in:   one reduced axis k
    out:  k in the order of blocks, k' and k'' inside: a second kernel adds their results, in their order

A block reduces a part, and costs a write and a read of its result. If extents are known only at run time, the number of
parts is computed from them (`accumulation.py`); it is 1 if the results fill the device. Else a price has found it
(`gpu_blocks.py`).
"""

from __future__ import annotations

from math import prod

from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop
from ilang.core.ir.shaped import Assignment
from ilang.core.schedule.choose.gpu_blocks import BlockShape, multiple
from ilang.core.schedule.choose.terms import PART, RUN

MOST_OTHERS = 1
"""Reduced axes beside the last one of a reduction that is split at run time: more take too many indices."""


def loops_of(
    node: Assignment, extents: Extents, block: BlockShape, factors: list[tuple[int, ...]]
) -> tuple[list[Loop], list[Loop]]:
    """The loops over the reduced axes of a contraction: those that number its parts, and all others, the copies' last.

    Axes are used up from the outermost one on, until parts are as many as are wanted; the factors of all are set.
    """
    *others, last = node.reduced_axes()
    known = [extents.fixed(node.sizes[axis]) or 0 for axis in (*others, last)]
    wanted = 1 if block.part is None else -(-prod(known) // block.part)
    parts, rest = list[Loop](), list[Loop]()
    for axis, extent in zip(others, known, strict=False):
        if wanted == 1:
            rest.append(Loop(axis))
        elif extent <= wanted:
            parts.append(Loop(axis))
            wanted //= extent
        else:
            factors[axis] = (-(-extent // wanted),)
            parts.append(Loop(axis))
            rest.append(Loop(axis, 1))
            wanted = 1
    count = extents.fixed(node.sizes[last])
    each, unit = 0, block.terms
    if 1 < wanted:
        each = -(-known[-1] // wanted)
        each = multiple(each, unit if each <= RUN else RUN)
    if each and each < known[-1]:
        factors[last] = _factors(each, unit)
        parts.append(Loop(last))
    else:
        factors[last] = (unit,) if count is not None and count <= RUN else (RUN // unit, unit)
    steps = [Loop(last, part) for part in range(len(factors[last]) + 1)]
    inside = [*rest, *(step for step in steps if step not in parts)]
    is_long = 2 < len(inside) and (0 in known or PART < prod(known))
    if block.shares and is_long and len(others) <= MOST_OTHERS:
        parts, inside = inside[:1], inside[1:]
    return parts, inside


def _factors(part: int, unit: int) -> tuple[int, ...]:
    """The factors of an axis whose parts have so many terms, a run of them and a unit at a time."""
    if part == unit:
        return (unit,)
    return (part // unit, unit) if part <= RUN else (part // RUN, RUN // unit, unit)
