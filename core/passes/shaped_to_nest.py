"""Give every assignment its loop nest: the one a person wrote, or one that ``schedule/auto.py`` chooses.

Example:
    in:   t1 = mul in0[i,k] in1[k,j];  out = sum t1[i,j,k] over k
    out:  t1 || i k j      out || i k j 0
"""

from __future__ import annotations

from ilang.core.ir.nest import Loop, Nest, Scheduled
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ir.syntax import LoopPart, LoopRole, Schedule, Site, SiteRole, Start
from ilang.core.machine import CPU, Machine
from ilang.core.schedule.auto import choose
from ilang.core.schedule.legal import check_nests


def shaped_to_nest(shaped: Shaped, machine: Machine = CPU) -> Scheduled:
    """The program with a nest per assignment, chosen for a machine.

    Raises:
        ScheduleError: E0320 to E0322, E0325 to E0327.
    """
    written = [
        written_nest(node) if isinstance(node, Assignment) else None for node in shaped.nodes
    ]
    scheduled = Scheduled(shaped, choose(shaped, written, machine), machine)
    check_nests(scheduled)
    return scheduled


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
    )


def _roles(
    schedule: Schedule, number: dict[str, int], reads: dict[int, int]
) -> tuple[dict[Loop, str], tuple[str, ...]]:
    """The role of each loop that has one, and of each read."""
    loops: dict[Loop, str] = {}
    spaces = [""] * len(reads)
    for entry in schedule.roles:
        match entry:
            case LoopRole():
                loops[Loop(number[entry.loop.axis], entry.loop.part)] = entry.role
            case SiteRole():
                if entry.operand in reads:
                    spaces[reads[entry.operand]] = entry.role
    return loops, tuple(spaces)
