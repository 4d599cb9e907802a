"""Dimensions kept of a staged value or of a copy: extents of loop parts, intervals that affine indices walk.

Example, three rows of t for each i, and a copy of what a tile reads:
    in:   out = sum t[i+u,j] over u || i 0 j u            sum in0[i,k] * in1[k,j] | j:64,k:512 | j 1 i k k' j'
    out:  t walks an interval of 3 rows from i on         in1 kept as [k, j'], of n_k by 64 elements

Through an affine index nothing fuses (docs/language.md section 6): the loops of the producer walk the interval, and
its storage has the extent of one. An interval may leave the dimension at its ends; what is there is never computed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ilang.core.calculus.affine import Affine, variables_of
from ilang.core.calculus.extent import Extent, number, reach, size
from ilang.core.ir.extent import fixed, part_extent
from ilang.core.ir.schedule import Interval, Kept, Loop, LoopSteps, Nest, Opened, PackedDimension
from ilang.core.ir.shaped import Assignment, Read, Size, Tensor
from ilang.core.record import record


@record
class StagedReader:
    """A reader at a place: its nest, the extents and the intervals of its axes, and its loops as the kernel's.

    ``chain`` are the loops around the place, outermost first, ``around`` the same ones; ``inside`` says that all loops
    around the reader are among them.
    """

    nest: Nest
    extents: tuple[Extent, ...]
    intervals: Mapping[int, Interval]
    loops: Mapping[Loop, Opened]
    chain: tuple[Opened, ...]
    around: frozenset[Opened]
    inside: bool

    def knows(self, interval: Interval) -> bool:
        """Whether an interval that the reader walks begins at what is known at the place."""
        return self.inside or self.around.issuperset(opened for _, opened in interval[0])

    def below(self) -> list[Loop]:
        """The loops inside the place."""
        return [loop for loop in self.nest.order if self.loops[loop] not in self.around]


def kept_dims(
    sizes: Sequence[Size],
    node: Assignment,
    nest: Nest,
    tensor: Tensor,
    extents: Sequence[Extent],
    shared: Collection[Loop],
) -> Kept:
    """The storage of a staged value: a dimension per loop part that indexes it and is not shared."""
    kept: Kept = {}
    for d, index in enumerate(node.target):
        axis = index.axis()
        parts = () if axis is None else nest.parts(axis)
        open_parts = [part for part in parts if part not in shared]
        if axis is None or len(open_parts) == len(parts):
            kept[d] = size(tensor.dims[d]) if axis is None else extents[axis]
            continue
        for loop in open_parts:
            extent = part_extent(sizes, extents[axis], nest.factors[axis], loop.part)
            kept[Loop(d, loop.part)] = extent
    return kept


def in_loop_order(kept: Kept, node: Assignment, nest: Nest) -> Kept:
    """The dimensions of a staged value in the order of the loops that fill it."""

    def place(entry: int | Loop) -> int:
        axis = node.target[entry.axis if isinstance(entry, Loop) else entry].axis()
        if axis is None:
            return -1
        parts = (Loop(axis, entry.part),) if isinstance(entry, Loop) else nest.parts(axis)
        return max(map(nest.order.index, parts))

    return {entry: kept[entry] for entry in sorted(kept, key=place)}


# -- intervals ---------------------------------------------------------------------------------------------------------


def interval_of(
    sizes: Sequence[Size], reader: StagedReader, index: Affine, whole: int
) -> tuple[Interval, Extent, LoopSteps] | None:
    """The interval of a dimension that an index walks, its extent, and how the loops of the reader walk it.

    None where it is all of it, runs backwards, or begins at what is not known at the place.

    Args:
        sizes: of the program.
        reader: what reads there.
        index: over the axes of the reader.
        whole: the size number of the dimension.
    """
    start, below, offset = [], [], index.offset
    for c, axis in index.steps():
        around = reader.intervals.get(axis)
        if around is not None:
            if not reader.knows(around):
                return None
            begins, more = around
            start += [(c * step, opened) for step, opened in begins]
            offset += c * more
        for loop in reader.nest.parts(axis):
            step, opened = c * reader.nest.weight(loop), reader.loops[loop]
            if opened in reader.around:
                start.append((step, opened))
            else:
                below.append((step, loop))
    if index.sizes or any(c < 0 for c, _ in below):
        return None
    extent = _reached(sizes, reader, below, whole)
    if (
        not start
        and not offset
        and fixed(sizes, extent) is not None
        and fixed(sizes, extent) == sizes[whole].fixed
    ):
        return None
    return (tuple(start), offset), extent, tuple(below)


def _reached(
    sizes: Sequence[Size], reader: StagedReader, below: list[tuple[int, Loop]], whole: int
) -> Extent:
    """One more than what loops reach; the extent of an axis where they are all of it."""
    nest = reader.nest
    if not below:
        return number(1)
    axes = {loop.axis for _, loop in below}
    if len(axes) == 1:
        (axis,) = axes
        if tuple(below) == tuple((nest.weight(loop), loop) for loop in nest.parts(axis)):
            return reader.extents[axis]
    return _reach(sizes, reader, below, whole)


def _reach(
    sizes: Sequence[Size], reader: StagedReader, steps: Sequence[tuple[int, Loop]], whole: int
) -> Extent:
    """One more than the sum of step times the last iteration of each loop."""
    factors = reader.nest.factors
    parts = [
        (c, part_extent(sizes, reader.extents[loop.axis], factors[loop.axis], loop.part))
        for c, loop in steps
    ]
    if len(parts) == 1 and parts[0][0] == 1:
        return parts[0][1]
    counts = [(c, extent, fixed(sizes, extent)) for c, extent in parts]
    return reach([(c, e if count is None else number(count)) for c, e, count in counts], whole)


# -- copies ------------------------------------------------------------------------------------------------------------


def packed_dims(
    sizes: Sequence[Size], tensor: Tensor, reader: StagedReader, read: Read
) -> tuple[PackedDimension, ...] | None:
    """The copy of what the loops below a place read: a dimension per loop, in the order in which they read it.

    An axis whose parts follow each other is one dimension, as is an affine group: what it reaches. Each loop of a group
    that is walked backwards has a dimension of its own. None where an interval that a copy would hold begins at what is
    known further inside only.

    Args:
        sizes: of the program.
        tensor: what is copied.
        reader: what reads there.
        read: by which indices.
    """
    axes = variables_of(read.index)
    if not all(map(reader.knows, (x for a, x in reader.intervals.items() if a in axes))):
        return None
    below = reader.below()
    packed: list[PackedDimension] = []
    for d, index in enumerate(read.index):
        steps = [
            (c * reader.nest.weight(loop), loop)
            for c, axis in index.steps()
            for loop in reader.nest.parts(axis)
            if loop in below
        ]
        for terms in _dimensions(index, steps, below, reader.nest):
            extent = _extent(sizes, reader, terms, tensor.dims[d])
            loop = terms[0][1]
            falls = any(step < 0 for step, _ in steps)
            single = (falls or index.axis() is not None) and len(terms) == 1
            step = {part: step for step, part in steps}[loop] if single else 1
            packed.append(PackedDimension(d, terms, extent, loop if single else None, step))
    packed.sort(key=lambda entry: max(below.index(loop) for _, loop in entry.steps))
    return tuple(packed)


def _dimensions(
    index: Affine, steps: list[tuple[int, Loop]], below: list[Loop], nest: Nest
) -> list[LoopSteps]:
    """The dimensions that the copy has for one of what is copied."""
    if not steps:
        return []
    axis = index.axis()
    if axis is None and all(step > 0 for step, _ in steps):
        return [tuple(steps)]
    if axis is None:  # a group that is walked backwards: a dimension per loop
        return [((1, loop),) for _, loop in steps]
    first = below.index(steps[0][1])
    if tuple(below[first : first + len(steps)]) == nest.parts(axis):
        return [tuple(steps)]
    return [((1, loop),) for _, loop in steps]


def _extent(sizes: Sequence[Size], reader: StagedReader, terms: LoopSteps, whole: int) -> Extent:
    """The extent of a dimension of a copy: of a whole axis its own, of anything else what its loops reach."""
    if len({loop.axis for _, loop in terms}) == 1:
        axis = terms[0][1].axis
        if len(terms) == len(reader.nest.parts(axis)) and terms[-1][0] == 1:
            return reader.extents[axis]
    return _reach(sizes, reader, [(abs(c), loop) for c, loop in terms], whole)
