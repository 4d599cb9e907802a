"""Limits of a device that a written schedule may pass: threads of a block, blocks of a grid.

Threads and blocks are counted from the loops that each value of a kernel opens by itself, where their extents are
known; loops with other extents are strip-mined. The contents of a block's memory are known only when its loops are
bound (``passes/gpu/bind.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.extent import fixed, part_extent
from ilang.core.ir.schedule import (
    BLOCK_ROLES,
    THREAD_DIMENSIONS,
    THREAD_ROLES,
    UNIT_ROLES,
    Instance,
    Nest,
    Role,
    Scheduled,
    loop_text,
    unscheduled,
)
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import DeviceLimits


def check_device(scheduled: Scheduled, device: DeviceLimits) -> None:
    """Refuse blocks and grids that a device cannot have.

    Raises:
        ScheduleError: E0325 (a dimension of a block beside others, of a run-time extent), E0332 (too many threads in a
            block), E0334 (too many blocks along a dimension of the grid).
    """
    for group in scheduled.groups:
        for instance in group.plan.instances:
            nest, node = (
                scheduled.nests[instance.value],
                scheduled.shaped.assignment(instance.value),
            )
            if nest is None or not nest.asked:
                continue
            loops = list(_opened(scheduled, instance, nest))
            _check_threads(node, nest, [each for each in loops if each[1] in THREAD_ROLES], device)
            _check_grid(node, [each for each in loops if each[1] in BLOCK_ROLES], device)


Asking = tuple[str, Role, int | None]
"""A loop by name, its role, and how often it runs, where that is known."""


def _opened(scheduled: Scheduled, instance: Instance, nest: Nest) -> Iterator[Asking]:
    node = scheduled.shaped.assignment(instance.value)
    for position, loop in enumerate(nest.order):
        if loop in instance.home:
            continue
        whole, factors = instance.extents[loop.axis], nest.factors[loop.axis]
        extent = part_extent(scheduled.shaped.sizes, whole, factors, loop.part)
        count = fixed(scheduled.shaped.sizes, extent)
        yield loop_text(node, loop), nest.role(position), count


def _check_threads(node: Assignment, nest: Nest, loops: list[Asking], device: DeviceLimits) -> None:
    """A block has no more threads than it may, and where it has several dimensions, each is known."""
    dimensions = [each for each in loops if each[1] in THREAD_DIMENSIONS]
    for name, role, count in dimensions:
        if count is None and len(dimensions) > 1:
            raise ScheduleError(
                "E0325",
                f"loop {name} of {unscheduled(node)} is dimension {role} of a block that has others, "
                "but how often it runs is known only at run time",
                node.schedule_span(),
                f"split its axis and give {role} to the inner part",
            )
        if role == "tz" and count is not None and device.most_deep_threads < count:
            raise ScheduleError(
                "E0332",
                f"{unscheduled(node)} asks for {count:,} threads of a block along z ({count} of {name}), "
                f"and a block has {device.most_deep_threads:,} there at most",
                node.schedule_span(),
                "give the loop the role tx or ty, or take a smaller part",
            )
    known = [(name, count) for name, role, count in loops if count is not None and role != "l"]
    if {*UNIT_ROLES} & {*nest.roles}:
        known.append(("a warp", device.warp))
    threads = prod(count for _, count in known)
    if threads <= device.most_block_threads:
        return
    product = " x ".join(f"{count} of {name}" for name, count in known)
    how = "" if nest.asked == "role" else "; loops with one prime are for threads"
    raise ScheduleError(
        "E0332",
        f"{unscheduled(node)} asks for {threads:,} threads in a block ({product}), "
        f"and a block has {device.most_block_threads:,} at most{how}",
        node.schedule_span(),
        "take a smaller part, or let threads run some of the loops one iteration after the other",
    )


def _check_grid(node: Assignment, loops: list[Asking], device: DeviceLimits) -> None:
    """A dimension of a grid has no more blocks than it may."""
    for name, role, count in loops:
        most = device.most_blocks if role == "x" else device.most_across
        if count is not None and most < count:
            other = "give it the role x or p" if role != "x" else "split its axis"
            raise ScheduleError(
                "E0334",
                f"loop {name} of {unscheduled(node)} asks for {count:,} blocks along {role}, "
                f"and a grid has {most:,} there at most",
                node.schedule_span(),
                other,
            )
