"""The loops that a producer takes from its reader.

Example:
    in:   reader | i:8 | i j i';  the producer's axes p q, walked by i and j, own order q p
    out:  factors (8) (), order p q p'
"""

from __future__ import annotations

from ilang.core.ir.schedule import Loop, Nest
from ilang.core.schedule.choose.tile import Factors


def taken(
    nest: Nest, pairs: dict[int, int], order: tuple[int, ...]
) -> tuple[Factors, tuple[Loop, ...]]:
    """The splits and the order of a producer: its reader's loops in their order, then its other loops in its own."""
    back = inverse(pairs)
    factors = tuple(
        nest.factors[pairs[axis]] if axis in pairs else () for axis in range(len(order))
    )
    outer = [Loop(axis, loop.part) for loop in nest.order for axis in back.get(loop.axis, [])]
    rest = [
        Loop(axis, part)
        for axis in order
        for part in range(len(factors[axis]) + 1)
        if Loop(axis, part) not in outer
    ]
    return factors, (*outer, *rest)


def inverse(pairs: dict[int, int]) -> dict[int, list[int]]:
    """The producer's axes for each axis of a reader."""
    back: dict[int, list[int]] = {}
    for inner, outer in pairs.items():
        back.setdefault(outer, []).append(inner)
    return back


def leading(order: tuple[Loop, ...], back: dict[int, list[int]]) -> int:
    """The number of the reader's outer loops that walk the value."""
    return next((n for n, loop in enumerate(order) if loop.axis not in back), len(order))


def shared_prefix(
    order: tuple[Loop, ...], back: dict[int, list[int]], axes: tuple[int, ...], reduced: set[int]
) -> int:
    """The number of the reader's outer loops that are, in order, the outer output loops of a reduction."""
    shared, position = 0, 0
    for loop in order:
        axes_of_loop = back.get(loop.axis, [])
        ahead = axes[position : position + len(axes_of_loop)]
        if not axes_of_loop or set(ahead) != set(axes_of_loop) or reduced & set(ahead):
            break
        shared, position = shared + 1, position + len(axes_of_loop)
    return shared
