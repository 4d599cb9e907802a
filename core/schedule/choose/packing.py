"""The loop inside which operands of an assignment are copied: those that the lanes of a tile read, and its rows share.

What lanes read once, side by side, is read where it is, and so are rows as long as the tile, whose copy would be the
same. Operands of its rows alone, along memory, are copied before, where many results share them: rows of a tile then
stand next to each other for one term after the other, and not in a line of memory for each.

Example:
    in:   in1[k,j] in a tile of rows i and lanes j, loops j i k k' i' j'
    out:  copied inside j
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import takewhile
from math import prod

from ilang.core.calculus.affine import Affine, variables_of
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Read
from ilang.core.record import record


@record
class TileAxes:
    """The axes of the tile around an assignment: its rows, its lanes, and whether the rows are windows.

    ``lengths`` are the extents of its output axes, as far as they are known. An operand that ``many`` results share,
    each using an element of it, is read again and again: it is worth a copy, also where only rows have it. A ``vector``
    has so many lanes.
    """

    rows: int
    lanes: int
    windows: bool
    lengths: Mapping[int, int]
    many: int
    vector: int

    def inside(self, back: dict[int, list[int]]) -> TileAxes:
        """This record in the axes of an inlined producer, -1 where it has no such axis; ``back`` has its axes."""
        rows, lanes = (back.get(axis, [-1])[0] for axis in (self.rows, self.lanes))
        lengths = {back[axis][0]: n for axis, n in self.lengths.items() if axis in back}
        return TileAxes(rows, lanes, self.windows, lengths, self.many, self.vector)

    def has_whole_vectors(self) -> bool:
        """Whether all vectors along the lanes are whole, or but for one of several."""
        length = self.lengths.get(self.lanes, 1)
        return length % self.vector == 0 or 2 * self.vector <= length

    def is_shared(self, axes: Container[int]) -> bool:
        """Whether many results share what is read by these axes."""
        return self.many <= prod(n for axis, n in self.lengths.items() if axis not in axes)

    def is_block(self, loop: Loop, axes: Container[int]) -> bool:
        """Whether a loop has blocks of the sum, by an axis that these have: extents of all of the result are known."""
        return not loop.part and loop.axis in axes and loop.axis not in self.lengths


@record
class Across:
    """The axes of a block of transposed work: the one that runs across, and the one that its lanes go along.

    The first is -1 where nothing is read across. What a block ends with may go row by row after all.
    """

    other: int
    last: int
    by_row: bool = False

    def inside(self, back: dict[int, list[int]]) -> Across:
        """This record in the axes of an inlined producer, -1 where it has no such axis; ``back`` has its axes."""
        other, last = (back.get(axis, [-1])[0] for axis in (self.other, self.last))
        return Across(other, last)


Packed = TileAxes | Across
"""The axes by which operands of an assignment are copied."""


def packed_site(packed: Packed | None, read: Read, nest: Nest) -> int | None:
    """The number of loops outside the copy of what is read; None where nothing is copied, as one number never is."""
    if not read.index:
        return None
    match packed:
        case Across():
            outer = variables_of(read.index[:-1])
            is_across = packed.last in outer and packed.other not in outer
            is_across = is_across and read.index[-1].axis() == packed.other
            blocks = nest.order[-1].part == 1
            return len(nest.order) - 2 if blocks and is_across else None
        case TileAxes():
            return tile_site(packed, read.index, nest)
        case None:
            return None


def tile_site(packed: TileAxes, index: Sequence[Affine], nest: Nest) -> int | None:
    """The number of loops outside a copy that stands beside a tile, of what is read at an index; None: no copy."""
    terms = [term for part in index for term in part.steps()]
    axes = [axis for _, axis in terms]
    rows, lanes = packed.rows, packed.lanes
    along = rows in axes and lanes not in axes and index[-1].axis() == rows
    if along and not packed.windows and packed.is_shared(axes):
        apart = takewhile(lambda loop: loop.axis in axes and loop.axis != rows, nest.order)
        return len(list(apart))
    copied = lanes in axes or (packed.windows and rows in axes)
    if not copied or {rows, lanes} <= set(axes) or any(c < 1 for c, _ in terms):
        return None
    if packed.windows:
        site = next(n for n, loop in enumerate(nest.order) if loop.axis not in axes)
        inside = {loop.axis for loop in nest.order[site:]} & set(axes)
        in_a_row = inside == {lanes} and index[-1].axis() == lanes
        return None if in_a_row else site
    site = min(nest.order.index(Loop(lanes)) + 1, nest.order.index(Loop(rows)))
    site = next((n for n in range(site, 0, -1) if nest.order[n - 1].axis in axes), 0)
    # A block of terms that stands around tiles is packed by itself.
    blocks = takewhile(lambda loop: packed.is_block(loop, axes), nest.order[site:])
    site += len(list(blocks))
    is_reused = any(
        _is_repeated(packed, loop, nest) for loop in nest.order[site:] if loop.axis not in axes
    )
    in_place = index[-1].axis() == lanes and packed.has_whole_vectors()
    is_packed = packed.lengths.get(lanes) == prod(nest.factors[lanes])
    return None if in_place and (is_packed or not is_reused) else site


def _is_repeated(packed: TileAxes, loop: Loop, nest: Nest) -> bool:
    """Whether a loop outside the tile may have several iterations."""
    length = packed.lengths.get(loop.axis)
    return not loop.part and (length is None or prod(nest.factors[loop.axis]) < length)
