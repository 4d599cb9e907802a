"""The errors of partial reductions: which, where and why; ``advice.py`` adds the nearest legal schedule."""

from __future__ import annotations

from ilang.core.diagnostic import Label, ScheduleError
from ilang.core.ir.schedule import Loop, Opened, loop_text, unscheduled
from ilang.core.schedule.instances import Instances

OUTSIDE = "stage it outside that loop"


def unfinished(
    instances: Instances, partial: int, blamed: int | None, why: str, is_stored: bool = False
) -> ScheduleError:
    """E0323: the value of a partial reduction is used where it is not final, in a way that nothing corrects.

    What is made of it ``is_stored``: where that is a result of the program, a user of the program may correct it.
    """
    node = instances.node(partial)
    name = _name(instances, instances.outermost(partial))
    message = (
        f"{unscheduled(node)} is staged under loop {name} over its own reduced axis, "
        f"where its value is not final, and {why}"
    )
    span = node.span if blamed is None else instances.node(blamed).span
    labels = [] if blamed is None else [Label(node.span, "staged here")]
    error = ScheduleError("E0323", message, span, OUTSIDE, labels)
    error.within = is_stored and instances.by_number[0].value in instances.shaped.outputs
    return error


def interleaved(instances: Instances, partial: int, opened: Opened) -> ScheduleError:
    """E0328: a loop that a partial reduction does not have is around it, inside a loop over its reduced axis."""
    node = instances.node(partial)
    inner, outer = _name(instances, opened), _name(instances, instances.outermost(partial))
    message = (
        f"{unscheduled(node)} is staged inside loop {inner}, which it does not have, "
        f"and that inside loop {outer} over its own reduced axis: it would count every element again"
    )
    labels = [Label(instances.node(opened.instance).span, f"has loop {inner}")]
    return ScheduleError("E0328", message, node.span, OUTSIDE, labels)


def parallel(instances: Instances, partial: int, other: int, loop: Loop) -> ScheduleError:
    """E0329: the loop over which a reduction is partial is parallel."""
    node, owner = instances.node(partial), instances.node(other)
    name = loop_text(owner, loop)
    message = (
        f"loop {name} of {unscheduled(owner)} is parallel, and {unscheduled(node)}, staged inside, "
        "is carried from one iteration of it to the next"
    )
    written = owner.schedule_span()
    labels = [Label(node.span, "staged here")]
    help_line = f"leave out the role p of loop {name}"
    return ScheduleError("E0329", message, written, help_line, labels)


def _name(instances: Instances, opened: Opened) -> str:
    return loop_text(instances.node(opened.instance), opened.loop)
