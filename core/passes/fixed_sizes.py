"""Sizes of known extents: a pass that makes loops or buffers finds or adds their numbers."""

from __future__ import annotations

from ilang.core.ir.shaped import Size


def size_of_extent(sizes: list[Size], extent: int) -> int:
    """The number of a size that is known, the first one that there is; a list without any gets it."""
    for number, size in enumerate(sizes):
        if size.fixed == extent:
            return number
    sizes.append(Size(str(extent), extent, ()))
    return len(sizes) - 1
