"""Extents as far as a choice of schedules knows them: numbers where they are fixed, a usual one where they are not.

Example, ``ik*kj~ijk >> +ijk~ij`` for arrays of 3 × 90 and 90 × n:
    in:   sizes i = 3, k = 90, j, which is not fixed
    out:  small: i; j counts as 1000
"""

from __future__ import annotations

from ilang.core.ir.shaped import Shaped, Size
from ilang.core.machine import Machine
from ilang.core.record import record

USUAL = 1000
"""The extent that a choice of schedules rests on where one is known at run time only."""


@record
class Extents:
    """The sizes of a program; the numbers of those that are ``small``."""

    sizes: tuple[Size, ...]
    small: frozenset[int]

    def fixed(self, size: int) -> int | None:
        """The extent of a size number, None where it is known at run time only."""
        return self.sizes[size].fixed

    def usual(self, size: int) -> int:
        """The extent of a size number, 1 at least; the usual one where it is known at run time only."""
        extent = self.sizes[size].fixed
        return USUAL if extent is None else max(extent, 1)

    def is_small(self, size: int) -> bool:
        """Whether a size is known to be too small for tiles and blocks."""
        return size in self.small


def extents_of(shaped: Shaped, machine: Machine) -> Extents:
    """The extents of a program; those below what the machine calls small are small."""
    small = (
        number
        for number, size in enumerate(shaped.sizes)
        if size.fixed is not None and size.fixed < machine.small_extent
    )
    return Extents(shaped.sizes, frozenset(small))
