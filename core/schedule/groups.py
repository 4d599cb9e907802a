"""Fusion groups, values that share a kernel: roots whose leading loops walk the same dimensions with the same splits.

Example, the largest and the smallest of each row, each a root of its own:
    in:   a = max x[i,j] over j || i j      b = min x[i,j] over j || i j
    out:  one kernel: for i { for j: a;  for j: b }

Values are taken from the last to the first. A root joins the root that it shares the most leading loops with, of those
in kernels that run before everything that needs it; loops are shared where they are over output axes of both and walk
the same dimension of the same tensor with the same split and the same role. A value that two roots stage is computed
once where they share its loops, so a root waits for one that stages the same, if that shares more of them. On a GPU,
where one more kernel costs little and a block has few registers and little shared memory, this alone is a reason.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from ilang.core.ir.schedule import Nest, Root, parted
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.schedule.fuse import Provenance, Sources
from ilang.core.schedule.plans import Plans
from ilang.core.schedule.readers import live_values, readers_of, whole_values


class Kernels:
    """The kernels of a program, last one first, each a list of roots; grown by ``add``."""

    def __init__(
        self,
        shaped: Shaped,
        provenance: Provenance,
        phases: Mapping[int, object] | None = None,
        only_common: bool = False,
    ) -> None:
        """For one program; none yet.

        Values of different ``phases`` share no kernel, and neither do, with ``only_common``, those that stage nothing
        in common.
        """
        self.phases = phases or {}
        self.only_common = only_common
        self.staging: _StagedValues | None = None  # where all nests are known
        # Of each kernel, the phase of its values, if one has any.
        self.running: list[object | None] = []
        self.shaped = shaped
        self.provenance = provenance
        self.groups: list[list[Root]] = []
        self.owners: list[
            list[int]
        ] = []  # of each kernel, the roots that have loops to share of their own
        self.computed: dict[
            int, int
        ] = {}  # value -> the last kernel here that computes it; -1: none
        self.nests: dict[int, Nest] = {}
        self.begun: dict[tuple[int, int], list[int]] = {}  # dimension -> kernels that begin there

    def add(
        self,
        value: int,
        nest: Nest,
        readers: Iterable[int],
        whole: bool,
        alone: bool = False,
        beside: int | None = None,
    ) -> Root:
        """Place one value; all its readers are placed already.

        Args:
            value: the value of an assignment.
            nest: its loops.
            readers: the values that read it, or take its place in memory.
            whole: whether it has loops of its own; else it is computed inside all of its readers.
            alone: whether its kernel is its own in any case.
            beside: the root whose kernel it shares, with all loops over its elements; it was found to be able to.
        """
        if beside is not None:
            return self._beside(value, nest, beside)
        after = max((self.computed.get(reader, -1) for reader in readers), default=-1)
        self.nests[value] = nest
        # The results of parts of a reduction are combined after all loops.
        alone |= bool(parted(self.shaped.assignment(value), nest))
        if not whole:
            self.computed[value] = after
            return Root(value, value, 0)
        dims = () if alone or not nest.order else self._origins(value, nest.order[0].axis)
        group, root, most = len(self.groups), Root(value, value, 0), self._most(value)
        for number in self._beginning(dims, after):
            phase = self.running[number]
            if phase is not None and self.phases.get(value, phase) != phase:
                continue
            for other in self.owners[number]:
                shared = self._common(value, other) if root.shared < most else 0
                if shared > root.shared and not self._is_kept_from(value, other, shared):
                    group, root = number, Root(value, other, shared)
        if group == len(self.groups):
            self.groups.append([])
            self.owners.append([])
            self.running.append(None)
            for at in dims:
                self.begun.setdefault(at, []).append(group)
        if root.shared < most:
            self.owners[group].append(value)
        self.groups[group].append(root)
        self.running[group] = self.phases.get(value, self.running[group])
        self.computed[value] = group
        return root

    def _beside(self, value: int, nest: Nest, other: int) -> Root:
        """Place a value in the kernel of another root, inside of all loops over its elements."""
        self.nests[value] = nest
        group = self.computed[other]
        root = Root(value, self.groups[group][0].value, self._most(value))
        self.groups[group].append(root)
        self.computed[value] = group
        return root

    def empty(self) -> Kernels:
        """None yet, for the same program."""
        return Kernels(self.shaped, self.provenance, only_common=self.only_common)

    def know(self, nests: Sequence[Nest | None], whole: Iterable[int]) -> None:
        """Take the nests of all values, and those that have loops of their own."""
        self.nests.update({value: nest for value, nest in enumerate(nests) if nest is not None})
        self.staging = _StagedValues(self.shaped, self.nests, whole)

    def close(self, groups: Iterable[int]) -> None:
        """Let no other value share some kernels."""
        for group in groups:
            self.owners[group].clear()

    def _is_kept_from(self, value: int, other: int, shared: int) -> bool:
        """Whether a root that shares so many loops with another has nothing in common with it, and better to wait for.

        A root that is placed later, and stages something in common with the first, is better to wait for.
        """
        staging = self.staging
        if staging is None or not staging.inside[value].isdisjoint(staging.inside[other]):
            return False
        return self.only_common or any(
            shared < self._common(value, later)
            for later in staging.others(value)
            if later not in self.computed
        )

    def _beginning(self, dims: Iterable[tuple[int, int]], after: int) -> list[int]:
        """The kernels numbered above ``after`` whose first loop walks one of some dimensions, in order."""
        kernels: set[int] = set()
        for at in dims:
            groups = self.begun.get(at, [])
            kernels.update(groups[bisect_right(groups, after) :])
        return sorted(kernels)

    def _most(self, value: int) -> int:
        """The number of leading loops that a root could share: those over axes that each walk a dimension of it."""
        axes = self.shaped.assignment(value).disjoint_axes()
        order = self.nests[value].order
        return next((n for n, loop in enumerate(order) if loop.axis not in axes), len(order))

    def _common(self, value: int, other: int) -> int:
        """The number of leading loops that are the same in two roots."""
        node, other_node = self.shaped.assignment(value), self.shaped.assignment(other)
        nest, other_nest = self.nests[value], self.nests[other]
        if node.base is not None or other_node.base is not None:
            return 0
        pairs: dict[int, int] = {}
        count = 0
        for a, b in zip(nest.order, other_nest.order, strict=False):
            new = a.axis not in pairs and b.axis not in pairs.values()
            if new and self._is_same(value, a.axis, other, b.axis):
                pairs[a.axis] = b.axis
            if (
                pairs.get(a.axis) != b.axis
                or a.part != b.part
                or nest.role(count) != other_nest.role(count)
            ):
                break
            count += 1
        return count

    def _is_same(self, value: int, axis: int, other: int, other_axis: int) -> bool:
        """Whether two axes walk one dimension into different elements, and are split alike."""
        value_node, node = self.shaped.assignment(value), self.shaped.assignment(other)
        return (
            value_node.sizes[axis] == node.sizes[other_axis]
            and self.nests[value].factors[axis] == self.nests[other].factors[other_axis]
            and axis in value_node.disjoint_axes()
            and other_axis in node.disjoint_axes()
            and not self._origins(value, axis).isdisjoint(self._origins(other, other_axis))
        )

    def _origins(self, value: int, axis: int) -> Sources:
        return self.provenance.origins(value, axis)


class _StagedValues:
    """The values that each root computes in its loops, ``inside``, itself included, and the roots that do, by value."""

    def __init__(self, shaped: Shaped, nests: Mapping[int, Nest], whole: Iterable[int]) -> None:
        self.inside: dict[int, set[int]] = {}
        self.outside: dict[int, set[int]] = {}
        self.roots: dict[int, list[int]] = {}
        for root in sorted(whole):
            inside, outside, todo = set[int](), set[int](), [root]
            while todo:
                value = todo.pop()
                node, nest = shaped.nodes[value], nests.get(value)
                if value in inside or nest is None or not isinstance(node, Assignment):
                    continue
                inside.add(value)
                self.roots.setdefault(value, []).append(root)
                for number, read in enumerate(node.reads):
                    if nest.staged(number) is None:
                        outside.add(shaped.owner(read.value))
                    else:
                        todo.append(read.value)
            self.inside[root], self.outside[root] = inside, outside

    def others(self, root: int) -> set[int]:
        """The roots that stage something that a root stages, and that it does not read whole."""
        others = {other for value in self.inside[root] for other in self.roots[value]}
        return others - self.outside[root] - {root}


def completed(
    kernels: Kernels, placed: int, nests: Sequence[Nest | None], plans: Plans
) -> tuple[tuple[Root, ...], ...]:
    """The roots of every kernel, the kernel that runs first first, for nests that are all known.

    Args:
        kernels: those of the values that were placed while nests were chosen.
        placed: the first of these values.
        nests: of the program.
        plans: of its kernels.

    Raises:
        ScheduleError: E0323, E0328, E0329: a partial value that cannot be made right.
    """
    online = [[plans.online(root.value) is not None for root in roots] for roots in kernels.groups]
    if any(any(each) and len(each) > 1 for each in online):  # known now only: it cannot share one
        kernels, placed = kernels.empty(), len(nests)
    else:
        kernels.close(group for group, each in enumerate(online) if any(each))
    shaped = kernels.shaped
    live = live_values(shaped)
    values = [v for v in range(placed - 1, -1, -1) if nests[v] is not None and v in live]
    if values:
        readers, whole = readers_of(shaped), whole_values(shaped, nests)
        kernels.know(nests, whole)
        for value in values:
            alone = value in whole and plans.online(value) is not None
            kernels.add(value, kernels.nests[value], readers[value], value in whole, alone=alone)
    return tuple(tuple(roots) for roots in reversed(kernels.groups))
