"""Fusion by provenance: which loops of a staged producer are loops of its reader (SCHEDULES, section 4, rules 1, 2).

A loop outside the site is shared iff both sides walk the same dimension of the same tensor by plain axes: an output
axis of the producer where the reader's index walks it, a reduced axis where both walk a dimension of a common source,
also through a chain of plain accesses. Letters, positions and equal extents decide nothing.
"""

from __future__ import annotations

from ilang.core.diagnostic import Label, ScheduleError
from ilang.core.ir.nest import Loop, Nest, loop_text, unscheduled
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.record import record

Sources = frozenset[tuple[int, int]]
"""Dimensions of values, each a value and the number of one of its dimensions."""


@record
class Fusion:
    """The loops of a producer that are loops of its reader; ``pairs`` gives the reader's axis of each fused axis."""

    loops: dict[Loop, Loop]
    pairs: dict[int, int]


class Provenance:
    """The dimensions that the axes of a program walk by plain accesses, those of producers included."""

    def __init__(self, shaped: Shaped) -> None:
        """For one program; sets are found when they are asked for."""
        self.shaped = shaped
        self.known: dict[tuple[int, int], Sources] = {}
        self.first: dict[tuple[int, int], Sources] = {}

    def of(self, value: int, axis: int) -> Sources:
        """What an axis of the assignment that makes ``value`` walks."""
        return self._found(value, axis, self.known, all_sources=True)

    def origins(self, value: int, axis: int) -> Sources:
        """The part of ``of`` that no axis of another assignment makes; the axis itself where it walks nothing else."""
        return self._found(value, axis, self.first, all_sources=False)

    def _found(
        self, value: int, axis: int, known: dict[tuple[int, int], Sources], all_sources: bool
    ) -> Sources:
        """What an axis walks, directly and through what it reads, without recursion."""
        stack = [(value, axis)]
        while stack:
            key = stack[-1]
            if key in known:
                stack.pop()
                continue
            below = self._walked(*key)
            made = {(v, d): self._made(v, d) if v != key[0] else None for v, d in below}
            entries = [entry for entry in made.values() if entry is not None]
            missing = [entry for entry in entries if entry not in known]
            if missing:
                stack += missing
                continue
            own = below
            if not all_sources:
                own = [at for at in below if at[0] != key[0] and made[at] is None]
                own = own if own or entries else [(key[0], -1 - key[1])]
            known[key] = frozenset(own).union(*(known[entry] for entry in entries))
            stack.pop()
        return known[(value, axis)]

    def _walked(self, value: int, axis: int) -> list[tuple[int, int]]:
        """The dimensions that an axis walks directly: of what is read, and of what is made."""
        node = self.shaped.nodes[value]
        assert isinstance(node, Assignment)
        found = [(value, d) for d, index in enumerate(node.target) if index.axis() == axis]
        for read in node.reads:
            found += [(read.value, d) for d, index in enumerate(read.index) if index.axis() == axis]
        return list(dict.fromkeys(found))

    def _made(self, value: int, dim: int) -> tuple[int, int] | None:
        """The axis that writes a dimension of a value, if one alone does."""
        node = self.shaped.nodes[value]
        if not isinstance(node, Assignment) or node.base is not None:
            return None
        axis = node.target[dim].axis()
        return None if axis is None else (value, axis)


def mapping(made: Assignment, read: Read) -> dict[int, int]:
    """The reader's axis for each output axis of a producer, where the read is by plain axes."""
    pairs = zip(made.target, read.index, strict=True)
    found: dict[int, int] = {}
    for target, index in pairs:
        own, ours = target.axis(), index.axis()
        if own is not None and ours is not None:
            found[own] = ours
    return found


def axis_pairs(provenance: Provenance, reader: int, read: Read, axes: set[int]) -> dict[int, int]:
    """The axis of the reader, one of ``axes``, that each axis of the producer may fuse with.

    Raises:
        ScheduleError: E0322 (a reduced axis could be two loops of the reader, or two could be one).
    """
    shaped = provenance.shaped
    made, node = shaped.nodes[read.value], shaped.nodes[reader]
    assert isinstance(made, Assignment)
    assert isinstance(node, Assignment)
    plain = mapping(made, read)
    found = {own: ours for own, ours in plain.items() if ours in axes}
    free = axes - set(plain.values())
    for axis in made.reduced_axes() if free else ():
        sources = provenance.of(read.value, axis)
        near = {ours: _nearest(sources & provenance.of(reader, ours)) for ours in sorted(free)}
        best = max(near.values(), default=-1)
        chosen = [ours for ours, value in near.items() if value == best >= 0]
        taken = [own for own, ours in found.items() if ours in chosen]
        if len(chosen) > 1 or taken:
            raise _ambiguous(made, node, axis, chosen, taken)
        if chosen:
            found[axis] = chosen[0]
    return found


def _nearest(common: Sources) -> int:
    """The value closest to both sides among common sources; -1 where there is none."""
    return max((value for value, _ in common), default=-1)


def _ambiguous(
    made: Assignment, node: Assignment, axis: int, chosen: list[int], taken: list[int]
) -> ScheduleError:
    ours = " and ".join(node.axes[c].name for c in chosen)
    what = f"axis {made.axes[axis].name} of {unscheduled(made)} could be axis {ours} of {unscheduled(node)}"
    if taken:
        what += f", which is also axis {made.axes[taken[0]].name}"
    return ScheduleError(
        "E0322",
        what,
        node.span,
        "stage it outside these loops, or leave the digit out: it is then computed whole, before",
        [Label(made.span, "staged here")],
    )


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
    made, node = shaped.nodes[read.value], shaped.nodes[reader]
    assert isinstance(made, Assignment)
    assert isinstance(node, Assignment)
    prefix = nest.order[:depth]
    pairs = axis_pairs(provenance, reader, read, {loop.axis for loop in prefix})
    loops: dict[Loop, Loop] = {}
    for own, ours in pairs.items():
        _check_splits(node, nest, made, inner, own, ours)
        for loop in inner.parts(own):
            partner = Loop(ours, loop.part)
            if partner in prefix:
                loops[loop] = partner
    _check_order(node, made, inner, loops, prefix)
    return Fusion(loops, pairs)


def _check_splits(
    node: Assignment, nest: Nest, made: Assignment, inner: Nest, own: int, ours: int
) -> None:
    """Loops of one dimension have one split."""
    if inner.factors[own] == nest.factors[ours]:
        return

    wanted = ":".join([made.axes[own].name, *map(str, nest.factors[ours])])
    theirs = ":".join([made.axes[own].name, *map(str, inner.factors[own])])
    here = ":".join([node.axes[ours].name, *map(str, nest.factors[ours])])
    outside = f"split as {here}" if nest.factors[ours] else "which is not split"
    inside = f"splits that dimension as {theirs}" if inner.factors[own] else "does not split it"
    legal = f"write `{wanted}`" if nest.factors[ours] else f"write no split of {wanted}"
    raise ScheduleError(
        "E0320",
        f"{unscheduled(made)} is staged under loops of axis {node.axes[ours].name}, {outside}, "
        f"but {inside}{_origin(made)}",
        made.schedule.span if made.schedule is not None else made.span,
        f"loops fuse only with the same split: {legal} there",
        [Label(node.schedule.span if node.schedule is not None else node.span, "staged by this")],
    )


def _origin(made: Assignment) -> str:
    """Where the schedule of a producer comes from that has none of its own."""
    return "" if made.schedule is not None else ", like another expression that stages it"


def _check_order(
    node: Assignment,
    made: Assignment,
    inner: Nest,
    loops: dict[Loop, Loop],
    prefix: tuple[Loop, ...],
) -> None:
    """Loops that fuse stand in one order."""
    have = [loop for loop in inner.order if loop in loops]
    wanted = sorted(have, key=lambda loop: prefix.index(loops[loop]))
    if have == wanted:
        return
    legal = " ".join(loop_text(made, loop) for loop in wanted)
    names = " ".join(loop_text(node, loop) for loop in prefix if loop in loops.values())
    theirs = " ".join(loop_text(made, loop) for loop in have)
    raise ScheduleError(
        "E0321",
        f"{unscheduled(made)} is staged under the loops {names} of {unscheduled(node)}, "
        f"but orders them {theirs}{_origin(made)}",
        made.schedule.span if made.schedule is not None else made.span,
        f"fused loops keep their order: {legal}",
        [Label(node.schedule.span if node.schedule is not None else node.span, "staged by this")],
    )
