"""A written schedule as the nest of its assignment.

Example:
    in:   +ijk~ij | i:8 | i k i' j 0
    out:  factors (8) () (), order i k i' j, site of read 0 inside all four
"""

from __future__ import annotations

from ilang.core.ir import schedule as schedules
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ir.syntax import LoopPart, Schedule, Site, Start
from ilang.core.record import replace


def written_nest(node: Assignment) -> schedules.Nest | None:
    """The nest of a written schedule; its sites are the compiler's where its order is empty.

    A digit of a constant places nothing: the constant stands in the code.
    """
    schedule = node.schedule
    if schedule is None:
        return None
    number = {axis.name: n for n, axis in enumerate(node.axes)}
    reads = {node.operand(read): read for read in range(len(node.reads))}
    factors: list[tuple[int, ...]] = [()] * len(node.axes)
    for split in schedule.splits:
        factors[number[split.axis]] = split.factors
    order: list[schedules.Loop] = []
    sites: list[int | None] = [None] * len(node.reads)
    start = None
    for atom in schedule.order:
        match atom:
            case LoopPart():
                order.append(schedules.Loop(number[atom.axis], atom.part))
            case Site():
                if atom.operand in reads:
                    sites[reads[atom.operand]] = len(order)
            case Start():
                start = len(order)
    if not order:
        kept = dict.fromkeys(node.output_axes())
        axes = [*kept, *(axis for axis in range(len(node.axes)) if axis not in kept)]
        order = [
            schedules.Loop(axis, part) for axis in axes for part in range(len(factors[axis]) + 1)
        ]
    roles, spaces = _roles(schedule, number, reads)
    return schedules.Nest(
        tuple(factors),
        tuple(order),
        tuple(sites),
        start,
        tuple(roles.get(loop, "") for loop in order),
        spaces,
        bool(schedule.order),
        "role"
        if set(roles.values())
        & {*schedules.BLOCK_ROLES, *schedules.THREAD_ROLES, *schedules.UNIT_ROLES}
        else "",
    )


def without_schedules(shaped: Shaped) -> Shaped:
    """A program without the schedules that are written in it."""
    nodes = (
        replace(node, schedule=None, text=schedules.unscheduled(node))
        if isinstance(node, Assignment)
        else node
        for node in shaped.nodes
    )
    return replace(shaped, nodes=tuple(nodes))


def without_blocks(nest: schedules.Nest) -> schedules.Nest:
    """A nest for a machine that has no blocks: loops for dimensions of grids and blocks, and for lanes, say nothing."""
    named: set[schedules.Role] = {*schedules.BLOCK_ROLES, *schedules.THREAD_ROLES} - {"t"}
    roles: list[schedules.Role] = ["" if role in named else role for role in nest.roles]
    return replace(nest, roles=tuple(roles))


def _roles(
    schedule: Schedule, number: dict[str, int], reads: dict[int, int]
) -> tuple[dict[schedules.Loop, schedules.Role], tuple[schedules.Space, ...]]:
    loops: dict[schedules.Loop, schedules.Role] = {}
    spaces: list[schedules.Space] = [""] * len(reads)
    for entry in schedule.roles:
        match entry.of:
            case LoopPart(axis=axis, part=part):
                assert schedules.is_role(entry.role)
                loops[schedules.Loop(number[axis], part)] = entry.role
            case operand:
                assert schedules.is_space(entry.role)
                if operand in reads:
                    spaces[reads[operand]] = entry.role
    return loops, tuple(spaces)
