"""What can be known about a program before it meets data: what it takes and gives, and that its schedules are right."""

from __future__ import annotations

from ilang.core.diagnostic import ToolError
from ilang.core.explain.page import signature
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.pipeline import lower
from ilang.core.record import record

MOST_RUN = 1_000
"""Expressions of a program whose written schedule is tried out, compiled with sanitizers."""


@record
class ScheduleCheck:
    """How written schedules were checked: at how many sets of extents, with sanitizers or not, and in words."""

    runs: int
    sanitized: bool
    says: str


@record
class Check:
    """A program that holds: what it takes and gives, and how its schedules were checked; None where it has none."""

    takes: str
    schedule: ScheduleCheck | None

    def __str__(self) -> str:
        """The line that ``i check`` prints."""
        return self.takes + ("" if self.schedule is None else f"   {self.schedule.says}")


def check(shaped: Shaped) -> Check:
    """Check everything about an inferred program.

    Raises:
        ScheduleError: E0320 to E0329. InternalError, DataError, ToolError: those of ``compare``.
    """
    if has_schedules(shaped):
        lower(shaped)
    return Check(signature(shaped), check_schedules(shaped))


def has_schedules(shaped: Shaped) -> bool:
    """Whether a schedule is written anywhere in a program: else there is none to check."""
    return any(isinstance(node, Assignment) and node.schedule for node in shaped.nodes)


def check_schedules(shaped: Shaped) -> ScheduleCheck | None:
    """How the written schedules of a program were checked; None where it has none.

    Without a C compiler they are checked to be legal, no more.
    """
    if not has_schedules(shaped):
        return None
    size = sum(isinstance(node, Assignment) for node in shaped.nodes)
    if MOST_RUN < size:
        says = f"schedule legal; not run: {size:,} expressions, more than {MOST_RUN:,}"
        return ScheduleCheck(0, sanitized=False, says=says)
    from ilang.codegen.project.comparison import compare

    try:
        done = compare(shaped)
    except ToolError as error:
        if error.code != "E0901":
            raise
        return ScheduleCheck(0, sanitized=False, says="schedule legal; not run: no C compiler")
    if not done.runs:
        says = "schedule legal; not run: too large"
    else:
        checks = ", with sanitizers" if done.sanitized else ""
        count = f"{done.runs} set{'s' if done.runs > 1 else ''} of extents"
        says = f"schedule legal; right at {count}{checks}"
    return ScheduleCheck(done.runs, done.sanitized, says)
