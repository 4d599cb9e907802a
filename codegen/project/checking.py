"""Checks of a program before it meets data: what it takes and gives, and that its schedules are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ilang.codegen.call.arguments import check_is
from ilang.codegen.project.extents import MOST_RUN
from ilang.core.diagnostic import DataError, ToolError
from ilang.core.explain.page import signature
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import MACHINES
from ilang.core.pipeline import lower
from ilang.core.record import record

if TYPE_CHECKING:
    from ilang.codegen.project.emulation import CudaCheck


@record
class ScheduleCheck:
    """The check of written schedules: at how many sets of extents, with sanitizers or not, and in words."""

    runs: int
    sanitized: bool
    says: str


@record
class Check:
    """A program that holds: what it takes and gives, how its schedules and its CUDA were checked; None: not at all."""

    takes: str
    schedule: ScheduleCheck | None
    cuda: CudaCheck | None = None

    def __str__(self) -> str:
        checks = (each for each in (self.schedule, self.cuda) if each is not None)
        return "   ".join((self.takes, *(each.says for each in checks)))


def check(shaped: Shaped, target: str = "c") -> Check:
    """Check everything about an inferred program; for the target "cuda" its kernels too, on the emulator.

    Raises:
        DataError: E0712 (another target), and those of ``compare``. ScheduleError: E0320 to E0336.
        InternalError, ToolError: those of ``compare`` and of ``check_cuda``.
    """
    help_line = f"programs are checked for {' and '.join(map(repr, MACHINES))}"
    check_is(target, str, "E0712", "a target has a name", help_line)
    if target not in MACHINES:
        raise DataError("E0712", f"there is no check for target {target!r}", help=help_line)
    if has_schedules(shaped):
        lower(shaped, MACHINES[target])
    schedule = check_schedules(shaped)
    if target == "c":
        return Check(signature(shaped), schedule)
    from ilang.codegen.project.emulation import check_cuda

    return Check(signature(shaped), schedule, check_cuda(shaped))


def has_schedules(shaped: Shaped) -> bool:
    """Whether a schedule is written anywhere in a program: else there is none to check."""
    return any(isinstance(node, Assignment) and node.schedule for node in shaped.nodes)


def check_schedules(shaped: Shaped) -> ScheduleCheck | None:
    """The check of the written schedules of a program; None where it has none.

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
        runs, sanitized = compare(shaped)
    except ToolError as error:
        if error.code != "E0901":
            raise
        return ScheduleCheck(0, sanitized=False, says="schedule legal; not run: no C compiler")
    if not runs:
        says = "schedule legal; not run: too large"
    else:
        checks = ", with sanitizers" if sanitized else ""
        count = f"{runs} set{'s' if runs > 1 else ''} of extents"
        says = f"schedule legal; right at {count}{checks}"
    return ScheduleCheck(runs, sanitized, says)
