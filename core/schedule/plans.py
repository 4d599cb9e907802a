"""The plan of each kernel: the instances that staging makes of values, and what is read while it is partial.

Example, the sum of the rows of a product, staged in the sum:
    in:   root n3, which stages n2           out:  instances n2 in n3, n3; no online reduction
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.ir.schedule import Plan, Root
from ilang.core.schedule.fuse import Fusions
from ilang.core.schedule.instances import Computations, Instances


class Plans:
    """The plans of the kernels of a program; of those with an online reduction each is found when first asked for."""

    def __init__(self, fusions: Fusions) -> None:
        """For one program."""
        self.fusions = fusions
        self.written = any(nest is not None and nest.written for nest in fusions.nests)
        self.known: dict[int, Plan | None] = {}
        self.computations = Computations(fusions.shaped)

    def online(self, root: int) -> Plan | None:
        """The plan of a kernel that computes ``root`` alone, if something in it is read while it is partial.

        Raises:
            ScheduleError: E0320 to E0322 (fusion), E0323, E0328, E0329 (a partial value that cannot be made right).
            MeaningError: E0251.
        """
        if not self.written:
            return None
        if root not in self.known:
            alone = (Root(root, root, 0),)
            computations = Computations(self.fusions.shaped)
            instances = Instances(self.fusions, alone, computations, intervals=False)
            partial = any(instances.partial(number) for number in range(len(instances.found)))
            self.known[root] = _online(instances) if partial else None
        return self.known[root]

    def of(self, roots: Sequence[Root]) -> Plan:
        """The plan of the kernel that computes some values.

        Raises:
            ScheduleError: as ``online`` does.
            MeaningError: E0251 (the digits of schedules have too much computed again).
        """
        online = self.online(roots[0].value)
        if online is None:
            found = Instances(self.fusions, roots, self.computations).found
            return Plan(tuple(found), {}, {})
        for instance in online.instances:
            self.computations.add(instance.value)
        return online


def _online(instances: Instances) -> Plan:
    """The plan of a kernel with an online reduction, which few programs have."""
    from ilang.core.schedule.online import online_plan

    return online_plan(instances)
