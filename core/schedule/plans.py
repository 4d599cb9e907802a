"""The plan of each kernel: the instances that staging makes of values, and what is read while it is partial.

Example, the sum of the rows of a product, staged in the sum:
    in:   root n3, which stages n2           out:  instances n2 in n3, n3; no online reduction
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.ir.schedule import Plan, Root, Scheduled
from ilang.core.schedule.instances import Computations, Instances


class Plans:
    """The plans of the kernels of a program; of those with an online reduction each is found when first asked for."""

    def __init__(self, nested: Scheduled) -> None:
        self.nested = nested
        self.partial = _over_partial(nested)
        self.known: dict[int, Plan] = {}
        self.computations = Computations(nested.shaped)

    def online(self, root: int) -> Plan | None:
        """The plan of a kernel that computes ``root`` alone, if something in it is read while it is partial.

        Raises:
            ScheduleError: E0323, E0328, E0329 (a partial value that cannot be made right).
            MeaningError: E0251.
        """
        if root not in self.partial:
            return None
        if root not in self.known:
            alone, computations = (Root(root, root, 0),), Computations(self.nested.shaped)
            self.known[root] = _online(Instances(self.nested, alone, computations, intervals=False))
        return self.known[root]

    def of(self, roots: Sequence[Root]) -> Plan:
        """The plan of the kernel that computes some values.

        Raises:
            ScheduleError: as ``online`` does.
            MeaningError: E0251 (the digits of schedules have too much computed again).
        """
        online = self.online(roots[0].value)
        if online is None:
            return Plan(tuple(Instances(self.nested, roots, self.computations).by_number), {}, {})
        for instance in online.instances:
            self.computations.add(instance.value)
        return online


def _over_partial(nested: Scheduled) -> frozenset[int]:
    """The values that stage, also through what they stage, a reduction inside a loop over one of its reduced axes."""
    over: set[int] = set()
    for value, fusions in enumerate(nested.fusions):
        for number, fusion in enumerate(fusions):
            if fusion is None:
                continue
            read = nested.assigned(value)[0].reads[number]
            producer = nested.assigned(read.value)[0]
            reduced = set() if producer.base is not None else set(producer.reduced_axes())
            if read.value in over or any(loop.axis in reduced for loop in fusion.loops):
                over.add(value)
    return frozenset(over)


def _online(instances: Instances) -> Plan:
    """The plan of a kernel with an online reduction, which few programs have."""
    from ilang.core.schedule.online import online_plan

    return online_plan(instances)
