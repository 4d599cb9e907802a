"""Rules of a schedule that need the program but no lowering: roles, and what can be staged at all.

Fusion (E0320 to E0322) is decided in ``fuse.py``, partial results (E0323) where the loops are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from ilang.core.calculus.extent import Extent
from ilang.core.diagnostic import Label, ScheduleError
from ilang.core.ir.extent import extent_name, fixed
from ilang.core.ir.schedule import (
    Instance,
    Loop,
    Nest,
    Plan,
    Role,
    Scheduled,
    loop_text,
    parted,
    unscheduled,
)
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.schedule.readers import compared, parted_values, sources, staged_values


def check_nests(shaped: Shaped, nests: Sequence[Nest | None]) -> None:
    """Refuse what no loops can follow.

    Raises:
        ScheduleError: E0325 (a role that needs a constant extent), E0326 (parallel iterations that meet in one
            element), E0327 (a staged value that several assignments make), E0331 (a staged value that is looked up).
    """
    assignments = {v for v, node in enumerate(shaped.nodes) if isinstance(node, Assignment)}
    known = all(nests[value] is not None for value in assignments)
    whole = parted_values(shaped, nests) if known else assignments - staged_values(shaped, nests)
    for value, node in enumerate(shaped.nodes):
        nest = nests[value]
        if isinstance(node, Assignment) and nest is not None:
            _check_sites(shaped, node, nest)
            parts = parted(node, nest) if value in whole and nest.start is None else ()
            for loop, role in zip(nest.order, nest.roles, strict=False):
                if role != "p" or loop not in parts:
                    _check_role(shaped, node, loop, role)


def _check_sites(shaped: Shaped, node: Assignment, nest: Nest) -> None:
    for number, read in enumerate(node.reads):
        producer = shaped.nodes[read.value]
        if nest.sites[number] is not None and any(index.looked for index in read.index):
            raise ScheduleError(
                "E0331",
                f"digit {node.operand(number)} of {unscheduled(node)} stages an input "
                "that is read at indices that are looked up",
                node.schedule_span(),
                "leave the digit out: which elements are read is known only when they are",
            )
        if (
            nest.staged(number) is None
            or not isinstance(producer, Assignment)
            or producer.base is None
        ):
            continue
        raise ScheduleError(
            "E0327",
            f"digit {node.operand(number)} of {unscheduled(node)} stages {unscheduled(producer)}, "
            "which is made in several steps",
            node.schedule_span(),
            "leave the digit out: what is made in several steps is computed whole, before",
            [Label(producer.span, "made here")],
        )


def _check_role(shaped: Shaped, node: Assignment, loop: Loop, role: Role) -> None:
    name = loop_text(node, loop)
    match role:
        case "u":
            size = shaped.sizes[node.sizes[loop.axis]]
            if loop.part == 0 and size.fixed is None:
                raise ScheduleError(
                    "E0325",
                    f"loop {name} of {unscheduled(node)} is unrolled, "
                    "but how often it runs is known only at run time",
                    node.schedule_span(),
                    f"split axis {name} and unroll the inner part, or leave the role out",
                )
        case "p" | "x" | "y" | "z":
            if loop.axis not in node.disjoint_axes():
                manner = "parallel" if role == "p" else "for blocks"
                raise ScheduleError(
                    "E0326",
                    f"loop {name} of {unscheduled(node)} is {manner}, "
                    "but its iterations meet in the same elements",
                    node.schedule_span(),
                    "give the role to a loop over an axis of the output, or p to the outermost reduced loops of what "
                    "is stored whole and nothing stages, or leave it out",
                )
        case "" | "t" | "tx" | "ty" | "tz" | "l" | "m" | "m16" | "v" | "q":
            pass
        case _:
            assert_never(role)


def check_storage(scheduled: Scheduled) -> None:
    """Refuse registers for a staged input that keeps a dimension of run-time extent.

    Raises:
        ScheduleError: E0325.
    """
    for group in scheduled.groups:
        for instance in group.plan.instances:
            node, nest = scheduled.assigned(instance.value)
            for number in range(len(node.reads)):
                if nest.space(number) == "r":
                    extents = _delivered(group.plan, instance, node, number)
                    _check_registers(scheduled.shaped, node, number, extents)


def _delivered(plan: Plan, instance: Instance, node: Assignment, number: int) -> list[Extent]:
    if number in instance.copies:
        return [dim.extent for dim in instance.copies[number]]
    source = instance.sources.get(node.reads[number])
    if source is None:
        return []
    running = plan.online.get(source.instance)
    partial = running is not None and running.partial
    kept = running.kept if running and partial else plan.instances[source.instance].kept
    return [*kept.values()]


def _check_registers(
    shaped: Shaped, node: Assignment, number: int, extents: Sequence[Extent]
) -> None:
    for extent in extents:
        if fixed(shaped.sizes, extent) is None:
            digit = node.operand(number)
            raise ScheduleError(
                "E0325",
                f"input {digit} of {unscheduled(node)} stands in registers, but keeps "
                f"{extent_name(shaped.sizes, extent)} elements, known only at run time",
                node.schedule_span(),
                f"split its axes and stage it inside the outer loops, or leave out `{digit}:r`",
            )


def check_equalities(shaped: Shaped, counts: Mapping[int, int]) -> None:
    """Refuse an equality between a value and a reduction of it where the value is computed more than once.

    Two computations of a value may differ by rounding, so that no element would equal the largest one.

    Args:
        shaped: the program.
        counts: how often each value is computed.

    Raises:
        ScheduleError: E0324.
    """
    if all(count < 2 for count in counts.values()):
        return
    for node, common in compared(shaped):
        once = {v for v in common if counts.get(v, 0) < 2}
        hidden = set().union(*(sources(shaped, v) for v in once)) - once
        for value in sorted(v for v in common - hidden if counts.get(v, 0) >= 2):
            source = shaped.assignment(value)
            raise ScheduleError(
                "E0324",
                f"{unscheduled(node)} compares {unscheduled(source)} with a reduction of itself, "
                f"but the schedule computes it {counts[value]} times, perhaps with other roundings",
                node.schedule_span(),
                "compute it once: leave out the digits that stage it",
                [Label(source.span, f"computed {counts[value]} times")],
            )
