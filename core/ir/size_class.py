"""Extents as far as a choice of schedules may know them: numbers where they are fixed, and which of them are small.

A size class is the set of sizes that are small in the arrays at hand: a schedule may rest on it, a result never does.

Example, ``ik*kj~ijk >> +ijk~ij`` called with arrays of 3 × 90 and 90 × 90:
    in:   sizes i, k, j, none of them fixed
    out:  small: i
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ilang.core.ir.shaped import Shaped, Size
from ilang.core.machine import Machine
from ilang.core.record import record

SMALL, USUAL = 4, 1000
"""Extents that a choice of schedules rests on where they are known at run time only: of the small ones, and others."""


@record
class Extents:
    """The sizes of a program; the numbers of those that are ``small``, fixed ones among them."""

    sizes: tuple[Size, ...]
    small: frozenset[int]

    def fixed(self, size: int) -> int | None:
        """The extent of a size number, None where it is known at run time only."""
        return self.sizes[size].fixed

    def usual(self, size: int) -> int:
        """The extent of a size number, 1 at least, or one of its class where it is known at run time only."""
        extent = self.sizes[size].fixed
        return (SMALL if self.is_small(size) else USUAL) if extent is None else max(extent, 1)

    def is_small(self, size: int) -> bool:
        """Whether a size is, or is said to be, too small for tiles and blocks."""
        return size in self.small


def extents_of(shaped: Shaped, known_small: Collection[int], machine: Machine) -> Extents:
    """The extents of a program, where sizes that are not fixed are small if they are ``known_small``."""
    small = (
        number
        for number, size in enumerate(shaped.sizes)
        if (number in known_small if size.fixed is None else size.fixed < machine.small_extent)
    )
    return Extents(shaped.sizes, frozenset(small))


def size_class(
    shaped: Shaped, shapes: Sequence[tuple[int, ...]], machine: Machine
) -> frozenset[int]:
    """The sizes that are not fixed and small in arrays of these shapes: what a schedule may be chosen for."""
    return frozenset(
        number
        for number, size in enumerate(shaped.sizes)
        if size.fixed is None
        and any(shapes[place.number][place.dim] < machine.small_extent for place in size.places)
    )
