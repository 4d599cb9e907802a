"""Fusion by provenance: which loops of a staged producer are loops of its reader (docs/language.md section 6).

A loop outside the site is shared iff both sides walk the same dimension of the same tensor by plain axes: an output
axis of the producer where the reader's index walks it, a reduced axis where both walk a dimension of a common source,
also through a chain of plain accesses. Letters, positions and equal extents decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.diagnostic import Label, ScheduleError
from ilang.core.ir.schedule import Fusion, Loop, Nest, Scheduled, loop_text, unscheduled
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.schedule.readers import live_values

Sources = frozenset[tuple[int, int]]
"""Dimensions of values, each a value and the number of one of its dimensions."""


MOST_ORIGINS = 64
"""Dimensions that an axis is known to come from: of a sum of many arrays the first ones, in the order of the graph."""


class Provenance:
    """The dimensions that the axes of a program walk by plain accesses, those of producers included."""

    def __init__(self, shaped: Shaped) -> None:
        """For one program; what an axis walks is found when it is asked for."""
        self.shaped = shaped
        self.known: dict[tuple[int, int], Sources] = {}

    def nearest(self, one: tuple[int, int], other: tuple[int, int]) -> int:
        """The last value of which both axes, each of an assignment, walk one dimension; -1 where there is none.

        Goes back from both, no further than it must: a program of many steps has many values before that one.
        """
        dims, other_dims = self._falling(*one), self._falling(*other)
        a, b = next(dims, None), next(other_dims, None)
        while a is not None and b is not None:
            if a == b:
                return a[0]
            if a < b:
                b = next(other_dims, None)
            else:
                a = next(dims, None)
        return -1

    def _falling(self, value: int, axis: int) -> Iterator[tuple[int, int]]:
        """Every dimension that an axis walks, directly and through what it reads, the last one first."""
        from heapq import heappop, heappush

        todo = [
            (-value, False, axis)
        ]  # axes of assignments, and after them dimensions of the same value, negated
        seen = set(todo)
        while todo:
            negative, is_dim, number = heappop(todo)
            if is_dim:
                yield -negative, -number
                continue
            for v, d in self._dims_of(-negative, number):
                maker = self._made(v, d) if v != -negative else None
                for entry in ((-v, True, -d), *([] if maker is None else [(-v, False, maker[1])])):
                    if entry not in seen:
                        seen.add(entry)
                        heappush(todo, entry)

    def origins(self, value: int, axis: int) -> Sources:
        """The dimensions that an axis walks and no other assignment makes; the axis itself where there are none."""
        stack = [(value, axis)]
        while stack:
            key = stack[-1]
            if key in self.known:
                stack.pop()
                continue
            below = self._dims_of(*key)
            makers = {(v, d): self._made(v, d) if v != key[0] else None for v, d in below}
            entries = [entry for entry in makers.values() if entry is not None]
            missing = [entry for entry in entries if entry not in self.known]
            if missing:
                stack += missing
                continue
            ends = [at for at in below if at[0] != key[0] and makers[at] is None]
            ends = ends if ends or entries else [(key[0], -1 - key[1])]
            self.known[key] = _united(ends, [self.known[entry] for entry in entries])
            stack.pop()
        return self.known[(value, axis)]

    def _dims_of(self, value: int, axis: int) -> list[tuple[int, int]]:
        """The dimensions that an axis walks directly: of what is read, and of what is made."""
        node = self.shaped.assignment(value)
        dims = [(value, d) for d, index in enumerate(node.target) if index.axis() == axis]
        for read in node.reads:
            dims += [(read.value, d) for d, index in enumerate(read.index) if index.axis() == axis]
        return list(dict.fromkeys(dims))

    def _made(self, value: int, dim: int) -> tuple[int, int] | None:
        """The axis that writes a dimension of a value, if one alone does."""
        node = self.shaped.nodes[value]
        if not isinstance(node, Assignment) or node.base is not None:
            return None
        axis = node.target[dim].axis()
        return None if axis is None else (value, axis)


def _united(dims: Sequence[tuple[int, int]], others: Sequence[Sources]) -> Sources:
    """The first dimensions among several sets of them."""
    if not dims and len(others) == 1:
        return others[0]
    united = frozenset(dims).union(*others)
    return united if len(united) <= MOST_ORIGINS else frozenset(sorted(united)[:MOST_ORIGINS])


def mapping(producer: Assignment, read: Read) -> dict[int, int]:
    """The reader's axis for each output axis of a producer, where the read is by plain axes."""
    dims = zip(producer.target, read.index, strict=True)
    pairs: dict[int, int] = {}
    for target, index in dims:
        inner, outer = target.axis(), index.axis()
        if inner is not None and outer is not None:
            pairs[inner] = outer
    return pairs


def axis_pairs(provenance: Provenance, reader: int, read: Read, axes: set[int]) -> dict[int, int]:
    """The axis of the reader, one of ``axes``, that each axis of the producer may fuse with.

    Raises:
        ScheduleError: E0322 (a reduced axis could be two loops of the reader, or two could be one).
    """
    shaped = provenance.shaped
    producer, node = shaped.assignment(read.value), shaped.assignment(reader)
    plain = mapping(producer, read)
    pairs = {inner: outer for inner, outer in plain.items() if outer in axes}
    free = axes - set(plain.values())
    for axis in producer.reduced_axes() if free else ():
        dimension = (read.value, axis)
        near = {outer: provenance.nearest(dimension, (reader, outer)) for outer in sorted(free)}
        best = max(near.values(), default=-1)
        chosen = [outer for outer, value in near.items() if value == best >= 0]
        taken = [inner for inner, outer in pairs.items() if outer in chosen]
        if len(chosen) > 1 or taken:
            raise _ambiguous(producer, node, axis, chosen, taken)
        if chosen:
            pairs[axis] = chosen[0]
    return pairs


def _ambiguous(
    producer: Assignment, node: Assignment, axis: int, chosen: list[int], taken: list[int]
) -> ScheduleError:
    names = " and ".join(node.axes[c].name for c in chosen)
    message = f"axis {producer.axes[axis].name} of {unscheduled(producer)} could be axis {names} of {unscheduled(node)}"
    if taken:
        message += f", which is also axis {producer.axes[taken[0]].name}"
    return ScheduleError(
        "E0322",
        message,
        node.span,
        "stage it outside these loops, or leave the digit out: it is then computed whole, before",
        [Label(producer.span, "staged here")],
    )


def nested(
    shaped: Shaped, nests: tuple[Nest | None, ...], provenance: Provenance, machine: Machine
) -> Scheduled:
    """The program with the fusions of nests that are all chosen.

    Raises:
        ScheduleError: E0320 to E0322: loops that cannot fuse, the last reader first, since producers follow readers.
    """
    live = live_values(shaped)
    fusions: list[tuple[Fusion | None, ...]] = [()] * len(shaped.nodes)
    for value in sorted(live, reverse=True):
        reads = range(len(shaped.assignment(value).reads))
        fusions[value] = tuple(_fusion(provenance, nests, value, number) for number in reads)
    return Scheduled(shaped, nests, tuple(fusions), (), machine)


def _fusion(
    provenance: Provenance, nests: Sequence[Nest | None], value: int, number: int
) -> Fusion | None:
    """The loops that a read of an assignment shares with its producer; None where nothing is computed for it."""
    node, nest = provenance.shaped.assignment(value), nests[value]
    assert nest is not None
    read, site = node.reads[number], nest.sites[number]
    producer = nests[read.value]
    copied = nest.staged(node.reads.index(read)) is None  # an equal read follows the first one
    if site is None or producer is None or copied:
        return None
    return fuse(provenance, value, nest, read, site, producer)


def fuse(
    provenance: Provenance, reader: int, nest: Nest, read: Read, depth: int, inner: Nest
) -> Fusion:
    """The loops that a producer shares with the ``depth`` outer loops of its reader.

    Args:
        provenance: of the program.
        reader: the value of the reading assignment.
        nest: that of the reader.
        read: the staged read.
        depth: how many of the reader's loops are outside the site.
        inner: the nest of what makes the staged value.

    Raises:
        ScheduleError: E0320 (different splits), E0321 (another relative order), E0322 (two candidates).
    """
    shaped = provenance.shaped
    producer, node = shaped.assignment(read.value), shaped.assignment(reader)
    prefix = nest.order[:depth]
    pairs = axis_pairs(provenance, reader, read, {loop.axis for loop in prefix})
    loops: dict[Loop, Loop] = {}
    for inner_axis, outer_axis in pairs.items():
        _check_splits(node, nest, producer, inner, inner_axis, outer_axis)
        for loop in inner.parts(inner_axis):
            partner = Loop(outer_axis, loop.part)
            if partner in prefix:
                loops[loop] = partner
    _check_order(node, producer, inner, loops, prefix)
    return Fusion(loops, pairs)


def _check_splits(
    node: Assignment,
    nest: Nest,
    producer: Assignment,
    inner: Nest,
    inner_axis: int,
    outer_axis: int,
) -> None:
    """Loops of one dimension have one split."""
    if inner.factors[inner_axis] == nest.factors[outer_axis]:
        return

    wanted = ":".join([producer.axes[inner_axis].name, *map(str, nest.factors[outer_axis])])
    split = ":".join([producer.axes[inner_axis].name, *map(str, inner.factors[inner_axis])])
    split_text = ":".join([node.axes[outer_axis].name, *map(str, nest.factors[outer_axis])])
    outside = f"split as {split_text}" if nest.factors[outer_axis] else "which is not split"
    inside = (
        f"splits that dimension as {split}" if inner.factors[inner_axis] else "does not split it"
    )
    legal = f"write `{wanted}`" if nest.factors[outer_axis] else f"write no split of {wanted}"
    raise ScheduleError(
        "E0320",
        f"{unscheduled(producer)} is staged under loops of axis {node.axes[outer_axis].name}, {outside}, "
        f"but {inside}{_origin(producer)}",
        producer.schedule_span(),
        f"loops fuse only with the same split: {legal} there",
        [Label(node.schedule_span(), "staged by this")],
    )


def _origin(producer: Assignment) -> str:
    """The origin of the schedule of a producer that has none of its own."""
    return "" if producer.schedule is not None else ", like another expression that stages it"


def _check_order(
    node: Assignment,
    producer: Assignment,
    inner: Nest,
    loops: dict[Loop, Loop],
    prefix: tuple[Loop, ...],
) -> None:
    """Loops that fuse stand in one order."""
    shared_order = [loop for loop in inner.order if loop in loops]
    wanted = sorted(shared_order, key=lambda loop: prefix.index(loops[loop]))
    if shared_order == wanted:
        return
    legal = " ".join(loop_text(producer, loop) for loop in wanted)
    names = " ".join(loop_text(node, loop) for loop in prefix if loop in loops.values())
    order = " ".join(loop_text(producer, loop) for loop in shared_order)
    raise ScheduleError(
        "E0321",
        f"{unscheduled(producer)} is staged under the loops {names} of {unscheduled(node)}, "
        f"but orders them {order}{_origin(producer)}",
        producer.schedule_span(),
        f"fused loops keep their order: {legal}",
        [Label(node.schedule_span(), "staged by this")],
    )
