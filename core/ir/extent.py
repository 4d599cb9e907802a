"""Extents of schedules: of dimensions, of parts of split dimensions, of what loops reach of one.

Invariants:
    - What is known is a number: ``PartCount`` and ``LoopReach`` are of extents that are known at run time only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ilang.core.ir.shaped import Size
from ilang.core.record import record


@record
class Given:
    """The extent of a size number of the program."""

    size: int


@record
class FixedExtent:
    """An extent that is a number."""

    count: int


@record
class PartCount:
    """The number of parts of ``step`` in an extent, the last of which may be shorter."""

    whole: Extent
    step: int


@record
class LoopReach:
    """The elements of dimension ``whole`` that loops reach: one more than the sum of step times last iteration."""

    steps: tuple[tuple[int, Extent], ...]
    whole: int


Extent = Given | FixedExtent | PartCount | LoopReach
"""The number of iterations of a loop, or of elements that are kept along a dimension."""


def fixed(sizes: Sequence[Size], extent: Extent) -> int | None:
    """An extent as a number; None where it is known at run time only."""
    match extent:
        case Given():
            return sizes[extent.size].fixed
        case FixedExtent():
            return extent.count
        case PartCount() | LoopReach():
            return None


def extent_name(sizes: Sequence[Size], extent: Extent) -> str:
    """The name of an extent that is known at run time only: that of the size that it is made of."""
    match extent:
        case Given():
            return sizes[extent.size].name
        case FixedExtent():
            return f"c{extent.count}"
        case PartCount():
            return f"{extent_name(sizes, extent.whole)}_{extent.step}"
        case LoopReach():
            return f"{sizes[extent.whole].name}_window"


def extent_text(sizes: Sequence[Size], extent: Extent) -> str:
    """An extent as text: a number where it is known."""
    count = fixed(sizes, extent)
    return extent_name(sizes, extent) if count is None else str(count)


def part_extent(sizes: Sequence[Size], whole: Extent, factors: Sequence[int], part: int) -> Extent:
    """The number of iterations of the loop over a part of an axis: ceil(n / product) for part 0, else its factor."""
    if not factors:
        return whole
    if part:
        return FixedExtent(factors[part - 1])
    count = fixed(sizes, whole)
    return (
        PartCount(whole, prod(factors))
        if count is None
        else FixedExtent(-(-count // prod(factors)))
    )


def is_divided(sizes: Sequence[Size], whole: Extent, factors: Sequence[int]) -> bool:
    """Whether the factors are known to divide an extent."""
    count = fixed(sizes, whole)
    return count is not None and count % prod(factors) == 0
