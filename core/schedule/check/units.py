"""Rules of schedules that give a product of matrices to a matrix unit, the roles m and m16."""

from __future__ import annotations

from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.extent import fixed, part_extent
from ilang.core.ir.schedule import (
    THREAD_DIMENSIONS,
    UNIT_ROLES,
    Accumulation,
    Group,
    Loop,
    Nest,
    Scheduled,
    ThreadTile,
    asks_for_unit,
    loop_text,
    unscheduled,
)
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import DeviceLimits, MatrixUnit
from ilang.core.matrix_unit import MatrixLoops, sum_of_products
from ilang.core.schedule.choose.terms import RUN

EXAMPLE = (
    "+ijk~ij | i:2:16,j:2:16,k:32 | i j k k' i' j' i'' j'' 0 | i:p,j:p,i':t,j':t,i'':m,j'':m,k':m"
)


def check_units(shaped: Shaped) -> None:
    """Refuse what no matrix unit does, on any machine.

    Raises:
        ScheduleError: E0337.
    """
    for value, node in enumerate(shaped.nodes):
        if isinstance(node, Assignment) and asks_for_unit(node):
            matched = sum_of_products(shaped, value)
            if isinstance(matched, str):
                raise ScheduleError(
                    "E0337",
                    f"{unscheduled(node)} cannot be a matrix unit's: {matched}",
                    node.schedule_span(),
                    f"a matrix unit has sums of products, as `ik*kj~ijk >> {EXAMPLE}`; or leave out its roles",
                )


def check_loops_of_units(scheduled: Scheduled, device: DeviceLimits) -> None:
    """Refuse loops that the matrix unit of a device has no instruction for.

    Raises:
        ScheduleError: E0337 (what is around the loops), E0338 (how often they run).
    """
    shaped = scheduled.shaped
    for group in scheduled.groups:
        for number, instance in enumerate(group.plan.instances):
            node, nest = scheduled.assigned(instance.value)
            if not {*UNIT_ROLES} & {*nest.roles}:
                continue
            matched = sum_of_products(shaped, instance.value)
            assert not isinstance(matched, str), "what is no product has been refused"
            loops, _ = matched
            _check_around(node, nest, group, number, loops)
            extents = {
                loop: fixed(
                    shaped.sizes,
                    part_extent(
                        shaped.sizes,
                        instance.extents[loop.axis],
                        nest.factors[loop.axis],
                        loop.part,
                    ),
                )
                for loop in nest.order
            }
            _check_extents(node, nest, extents, loops, device.unit(loops.rounding))


def _check_around(
    node: Assignment, nest: Nest, group: Group, number: int, loops: MatrixLoops
) -> None:
    """A unit's sum is stored whole, its threads are whole warps, and it is added in runs."""
    instance = group.plan.instances[number]
    named = [role for role in nest.roles if role in (*THREAD_DIMENSIONS, "l", "v")]
    if named:
        problem = f"the warps around it are counted together, and not by the role {named[0]}"
        help_line = "give loops for warps the role t"
    elif instance.chain or instance.home:
        problem = "it is staged inside of what reads it"
        help_line = "leave out the digit that stages it: the sums of a matrix unit are stored"
    elif number in group.plan.online:
        problem = "it is an online reduction, which is corrected"
        help_line = "leave out its roles"
    elif not _is_held(instance.accumulation, loops):
        problem = f"its sums are not in registers, {RUN} terms at a time at most"
        help_line = f"split the reduced axis so that the loops inside add {RUN} terms or fewer, outside the loops"
        help_line += " of the tile, whose extents are known"
    else:
        return
    message = f"{unscheduled(node)} cannot be a matrix unit's: {problem}"
    raise ScheduleError("E0337", message, node.schedule_span(), help_line)


def _is_held(held: Accumulation | None, loops: MatrixLoops) -> bool:
    """Whether lanes have the sums of a unit in registers while it adds."""
    if not isinstance(held, ThreadTile):
        return False
    return {loops.rows, loops.columns} <= {*held.elements} and loops.terms in held.core


def _check_extents(
    node: Assignment,
    nest: Nest,
    extents: dict[Loop, int | None],
    loops: MatrixLoops,
    unit: MatrixUnit,
) -> None:
    """The loops of a unit have whole matrices of it, and those of threads whole warps."""
    wanted = (
        (loops.rows, unit.rows, "rows"),
        (loops.columns, unit.columns, "columns"),
        (loops.terms, unit.terms, "terms"),
    )
    for loop, count, noun in wanted:
        extent = extents[loop]
        if extent is None or extent % count or not extent:
            asked = "a number of them known only at run time" if extent is None else f"{extent:,}"
            axis, name = node.axes[loop.axis].name, loop_text(node, loop)
            raise ScheduleError(
                "E0338",
                f"loop {name} of {unscheduled(node)} gives a matrix unit {asked} {noun}, "
                f"and it has a multiple of {count}",
                node.schedule_span(),
                f"let the innermost part of {axis} have so many iterations, or leave out its roles",
            )
    threads = [extents[loop] for n, loop in enumerate(nest.order) if nest.role(n) == "t"]
    if None in threads:
        raise ScheduleError(
            "E0337",
            f"{unscheduled(node)} cannot be a matrix unit's: how many warps it has is known only at run time",
            node.schedule_span(),
            "give the role t to parts of known extents",
        )
