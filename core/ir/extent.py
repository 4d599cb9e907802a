"""Extents of schedules: of dimensions, of parts of split dimensions, of what loops reach of one.

Invariants:
    - What is known is a number: operations are of extents that are known at run time only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ilang.core.calculus.extent import Extent, number, parts
from ilang.core.ir.shaped import Size


def fixed(sizes: Sequence[Size], extent: Extent) -> int | None:
    """An extent as a number; None where it is known at run time only."""
    return sizes[extent.number].fixed if extent.operation == "size" else extent.constant()


def extent_name(sizes: Sequence[Size], extent: Extent) -> str:
    """The name of an extent that is known at run time only: that of the size that it is made of."""
    if extent.operation == "size":
        return sizes[extent.number].name
    if extent.after is not None:
        return f"{sizes[extent.after].name}_window"
    return "_".join(extent_text(sizes, operand) for operand in extent.operands)


def extent_text(sizes: Sequence[Size], extent: Extent) -> str:
    """An extent as text: a number where it is known."""
    count = fixed(sizes, extent)
    return extent_name(sizes, extent) if count is None else str(count)


def part_extent(sizes: Sequence[Size], whole: Extent, factors: Sequence[int], part: int) -> Extent:
    """The number of iterations of the loop over a part of an axis: ceil(n / product) for part 0, else its factor."""
    if not factors:
        return whole
    if part:
        return number(factors[part - 1])
    count, step = fixed(sizes, whole), prod(factors)
    return parts(whole, step) if count is None else number(-(-count // step))


def is_divided(sizes: Sequence[Size], whole: Extent, factors: Sequence[int]) -> bool:
    """Whether the factors are known to divide an extent."""
    count = fixed(sizes, whole)
    return count is not None and count % prod(factors) == 0
