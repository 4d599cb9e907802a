"""Sizes of known extents: a pass that makes loops or buffers finds or adds their numbers."""

from __future__ import annotations

from ilang.core.calculus.extent import Extent, size
from ilang.core.ir.shaped import Size


class FixedSizes:
    """The sizes of a program that are known, by extent."""

    def __init__(self, sizes: list[Size]) -> None:
        self.sizes = sizes
        self.numbers: dict[int, int] = {}
        for number, each in enumerate(sizes):
            if each.fixed is not None:
                self.numbers.setdefault(each.fixed, number)

    def number(self, extent: int) -> int:
        """The number of the first size that has an extent; where none has, that of a new one."""
        if extent not in self.numbers:
            self.numbers[extent] = len(self.sizes)
            self.sizes.append(Size(str(extent), extent, ()))
        return self.numbers[extent]

    def extent(self, extent: int) -> Extent:
        """The end of a loop that has so many iterations."""
        return size(self.number(extent))
