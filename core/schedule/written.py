"""A written schedule as the nest of its assignment.

Example:
    in:   +ijk~ij | i:8 | i k i' j 0
    out:  factors (8) () (), order i k i' j, site of read 0 inside all four
"""

from __future__ import annotations

from ilang.core.ir.schedule import (
    BLOCK_ROLES,
    THREAD_ROLES,
    UNIT_ROLES,
    Loop,
    Nest,
    Role,
    Space,
    is_role,
    is_space,
    unscheduled,
)
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ir.syntax import LoopPart, Schedule, Site, Start
from ilang.core.record import replace


def written_nest(node: Assignment) -> Nest | None:
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
    order: list[Loop] = []
    sites: list[int | None] = [None] * len(node.reads)
    start = None
    for atom in schedule.order:
        match atom:
            case LoopPart():
                order.append(Loop(number[atom.axis], atom.part))
            case Site():
                if atom.operand in reads:
                    sites[reads[atom.operand]] = len(order)
            case Start():
                start = len(order)
    if not order:
        kept = dict.fromkeys(node.output_axes())
        axes = [*kept, *(axis for axis in range(len(node.axes)) if axis not in kept)]
        order = [Loop(axis, part) for axis in axes for part in range(len(factors[axis]) + 1)]
    roles, spaces = _roles(schedule, number, reads)
    return Nest(
        tuple(factors),
        tuple(order),
        tuple(sites),
        start,
        tuple(roles.get(loop, "") for loop in order),
        spaces,
        bool(schedule.order),
        "role" if set(roles.values()) & {*BLOCK_ROLES, *THREAD_ROLES, *UNIT_ROLES} else "",
    )


def without_schedules(shaped: Shaped) -> Shaped:
    """A program without the schedules that are written in it."""
    nodes = (
        replace(node, schedule=None, text=unscheduled(node))
        if isinstance(node, Assignment)
        else node
        for node in shaped.nodes
    )
    return replace(shaped, nodes=tuple(nodes))


def without_blocks(nest: Nest) -> Nest:
    """A nest for a machine that has no blocks: loops for dimensions of grids and blocks, and for lanes, say nothing."""
    named: set[Role] = {*BLOCK_ROLES, *THREAD_ROLES} - {"t"}
    roles: list[Role] = ["" if role in named else role for role in nest.roles]
    return replace(nest, roles=tuple(roles))


def _roles(
    schedule: Schedule, number: dict[str, int], reads: dict[int, int]
) -> tuple[dict[Loop, Role], tuple[Space, ...]]:
    """The role of each loop that has one, and of each read."""
    loops: dict[Loop, Role] = {}
    spaces: list[Space] = [""] * len(reads)
    for entry in schedule.roles:
        match entry.of:
            case LoopPart(axis=axis, part=part):
                assert is_role(entry.role)
                loops[Loop(number[axis], part)] = entry.role
            case operand:
                assert is_space(entry.role)
                if operand in reads:
                    spaces[reads[operand]] = entry.role
    return loops, tuple(spaces)
