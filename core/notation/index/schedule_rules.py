"""Schedules that can be read alone: factors, loops, digits and roles that fit their expression.

- factors are positive; each, and the product for an axis, stays below 2^31; one entry per axis
- an order that is not empty lists every loop part exactly once; a digit and ``!`` stand at most once
- digits name inputs the expression has; ``!`` needs a reduction and stands inside all output loops
- a role is one of its kind and stands once for its loop or staged input; a dimension of a grid or a block is one loop's

Whether a schedule is legal in its program (staging, fusion, constant extents) is decided later.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ilang.core.diagnostic import Label, ScheduleError
from ilang.core.ir.schedule import BLOCK_ROLES, THREAD_DIMENSIONS, THREAD_ROLES
from ilang.core.ir.syntax import LoopPart, Schedule, Site, Start, WrittenRole
from ilang.core.notation.reader import brief_number
from ilang.core.record import record
from ilang.core.source import Span

FACTOR_LIMIT = 2**31
"""Factors stay below this."""

LOOP_ROLES = {
    "p": "parallel",
    "t": "threads",
    "v": "lanes",
    "u": "unrolled",
    "q": "sequential",
    "x, y, z": "blocks of a grid",
    "tx, ty, tz": "threads of a block",
    "l": "lanes of a warp",
    "m": "matrix unit",
    "m16": "matrix unit, of factors of 16 bits",
}
DIGITS = {
    1: "one input, and its digit is 0",
    2: "two inputs, and their digits are 0 and 1",
    3: "three inputs, and their digits are 0, 1 and 2",
}
SITE_ROLES = {
    "s": "shared",
    "s2": "double-buffered",
    "r": "registers",
    "c": "computed whole",
    "c2": "computed whole, its copy double-buffered",
}


@record
class ScheduleTarget:
    """The assignment that a schedule must fit: its axes, those that its output keeps, and how many inputs it has."""

    axes: tuple[str, ...]
    kept: frozenset[str]
    operands: int


def check_schedule(schedule: Schedule, form: ScheduleTarget) -> None:
    """Refuse a schedule that does not fit its expression.

    Raises:
        ScheduleError: E0301 to E0313.
    """
    parts = dict.fromkeys(form.axes, 1)
    _check_splits(schedule, parts)
    if schedule.order:
        _check_order(form, schedule, parts)
    _check_roles(form, schedule, parts)


def factor_out_of_range(axis: str, factor: str, span: Span) -> ScheduleError:
    """The refusal of one factor; ``factor`` is its text, which may be very long."""
    message = (
        f"the factor {brief_number(factor)} of axis {axis} is not between 1 and {FACTOR_LIMIT - 1}"
    )
    help_line = f"a factor is how many iterations a part of the loop has: `{axis}:8`"
    return ScheduleError("E0301", message, span, help_line)


def _check_splits(schedule: Schedule, parts: dict[str, int]) -> None:
    """Check the entries; count the loop parts of each axis in ``parts``."""
    seen: dict[str, Span] = {}
    for split in schedule.splits:
        start = split.span.start
        _check_axis(split.axis, parts, Span(split.span.source, start, start + len(split.axis)))
        help_line = f"one entry may hold several factors: `{split.axis}:2:4`"
        _refuse_again(f"axis {split.axis}", "is split twice", split.span, seen, "E0302", help_line)
        product = 1
        for factor in split.factors:
            product *= factor
            if not 1 <= factor < FACTOR_LIMIT:
                raise factor_out_of_range(split.axis, str(factor), split.span)
            if product >= FACTOR_LIMIT:
                message = f"the factors of axis {split.axis} multiply to {FACTOR_LIMIT} or more"
                help_line = "no extent needs that many iterations: write smaller factors"
                raise ScheduleError("E0301", message, split.span, help_line)
        parts[split.axis] = len(split.factors) + 1


def _refuse_again(
    name: str, problem: str, span: Span, seen: dict[str, Span], code: str, help_line: str
) -> None:
    """Refuse a name that was seen before; the first one is taken down."""
    first = seen.setdefault(name, span)
    if first is not span:
        labels = (Label(span, "again here"), Label(first, "first here"))
        raise ScheduleError(code, f"{name} {problem}", span, help_line, labels)


def _check_axis(axis: str, parts: dict[str, int], span: Span) -> None:
    if axis not in parts:
        axes_text = f"its axes are {', '.join(parts)}" if parts else "it has no axis"
        raise ScheduleError("E0303", f"the expression has no axis {axis}", span, axes_text)


def _check_part(loop: LoopPart, parts: dict[str, int], span: Span) -> None:
    """The axis of a loop exists and has that part."""
    _check_axis(loop.axis, parts, span)
    count = parts[loop.axis]
    if loop.part < count:
        return
    if count == 1:
        problem, help_line = "is not split", f"split it first: `{loop.axis}:8`"
    else:
        problem = f"has {count} loops"
        help_line = f"they are {_listed([LoopPart(loop.axis, n, span) for n in range(count)])}"
    message = f"there is no loop {loop.text()}, because axis {loop.axis} {problem}"
    raise ScheduleError("E0304", message, span, help_line)


def _check_order(form: ScheduleTarget, schedule: Schedule, parts: dict[str, int]) -> None:
    seen: dict[str, Span] = {}
    for atom in schedule.order:
        name = "`!`"
        if isinstance(atom, LoopPart):
            _check_part(atom, parts, atom.span)
            name = f"loop {atom.text()}"
        elif isinstance(atom, Site):
            _check_operand(form, atom.operand, atom.span)
            name = f"digit {atom.operand}"
        help_line = "leave one out: the order lists each loop, each digit and `!` once"
        _refuse_again(name, "stands twice in the order", atom.span, seen, "E0305", help_line)
    wanted = [LoopPart(axis, n, schedule.span) for axis in parts for n in range(parts[axis])]
    missing = [loop for loop in wanted if f"loop {loop.text()}" not in seen]
    if missing:
        noun = "loops" if len(missing) > 1 else "loop"
        message = f"the order lacks {noun} {_listed(missing)}"
        span = schedule.order[0].span.to(schedule.order[-1].span)
        whole = _completed_order(schedule, missing)
        help_line = f"with every loop it is `{whole}`; an empty order means the default one"
        raise ScheduleError("E0306", message, span, help_line)
    _check_start(form, schedule)


def _completed_order(schedule: Schedule, missing: Sequence[LoopPart]) -> str:
    """An order with the loops that it lacks: each after the others of its axis, or else last."""
    texts = [atom.span.text() for atom in schedule.order]
    axes = [atom.axis if isinstance(atom, LoopPart) else "" for atom in schedule.order]
    for loop in missing:
        at = len(axes) - axes[::-1].index(loop.axis) if loop.axis in axes else len(axes)
        at -= loop.part == 0 and loop.axis in axes
        texts.insert(at, loop.text())
        axes.insert(at, loop.axis)
    return " ".join(texts)


def _check_operand(form: ScheduleTarget, operand: int, span: Span) -> None:
    if operand >= form.operands:
        message = f"there is no input {operand}"
        raise ScheduleError("E0307", message, span, f"the expression has {DIGITS[form.operands]}")


def _check_start(form: ScheduleTarget, schedule: Schedule) -> None:
    """``!`` belongs to a reduction and stands inside all its output loops."""
    starts = [n for n, atom in enumerate(schedule.order) if isinstance(atom, Start)]
    if not starts:
        return
    at, span = starts[0], schedule.order[starts[0]].span
    if form.kept.issuperset(form.axes):
        message = "`!` places the start of a reduction, and this expression reduces nothing"
        raise ScheduleError("E0308", message, span, "leave it out")
    for atom in schedule.order[at + 1 :]:
        if isinstance(atom, LoopPart) and atom.axis in form.kept:
            labels = (Label(span, ""), Label(atom.span, "an output loop, inside it"))
            message = f"`!` stands outside output loop {atom.text()}"
            help_line = "a reduction starts inside all output loops"
            raise ScheduleError("E0309", message, span, help_line, labels)


def _check_roles(form: ScheduleTarget, schedule: Schedule, parts: dict[str, int]) -> None:
    staged = {atom.operand for atom in schedule.order if isinstance(atom, Site)}
    seen: dict[str, Span] = {}
    for entry in schedule.roles:
        if isinstance(entry.of, int):
            _check_operand(form, entry.of, entry.span)
            _check_role(entry.role, SITE_ROLES, "a staged input", entry.span)
            name = f"input {entry.of}"
            if entry.of not in staged:
                message = f"the order does not stage {name}, so it has no role"
                help_line = f"stage it: write {entry.of} in the order"
                raise ScheduleError("E0312", message, entry.span, help_line)
        else:
            _check_part(entry.of, parts, entry.of.span)
            _check_role(entry.role, LOOP_ROLES, "a loop", entry.span)
            name = f"loop {entry.of.text()}"
        help_line = "leave one out: a loop, and what is staged, has one role"
        _refuse_again(name, "has two roles", entry.span, seen, "E0311", help_line)
    _check_dimensions([*schedule.loops()])


def _check_dimensions(roles: Sequence[tuple[LoopPart, WrittenRole]]) -> None:
    """A dimension of the grid or of a block is one loop's, and threads are counted in one way."""
    seen: dict[str, tuple[LoopPart, WrittenRole]] = {}
    for loop, entry in roles:
        dimension = entry.role in (*BLOCK_ROLES, *THREAD_DIMENSIONS, "l")
        if dimension and entry.role in seen:
            raise _two(f"both have the role {entry.role}", seen[entry.role], (loop, entry))
        seen.setdefault(entry.role, (loop, entry))
    threads = [role for role in THREAD_ROLES if role in seen]
    for one, other in pairwise(threads):
        if not {one, other} <= set(THREAD_DIMENSIONS):
            raise _two(f"have the roles {one} and {other}", seen[one], seen[other])


def _two(
    problem: str, one: tuple[LoopPart, WrittenRole], other: tuple[LoopPart, WrittenRole]
) -> ScheduleError:
    help_line = (
        "threads of a block are t, or one loop each of tx, ty and tz, or the lanes l of warps"
    )
    if other[1].role in BLOCK_ROLES:
        help_line = "give each loop a dimension of its own; p is for as many loops as you like"
    message = f"loops {one[0].text()} and {other[0].text()} {problem}"
    labels = [Label(one[1].span, "one here")]
    return ScheduleError("E0313", message, other[1].span, help_line, labels)


def _check_role(role: str, legal: dict[str, str], owner: str, span: Span) -> None:
    if role not in {word for names in legal for word in names.split(", ")}:
        help_line = ", ".join(f"{name} ({says})" for name, says in legal.items())
        message = f"{role} is not a role of {owner}"
        raise ScheduleError("E0310", message, span, f"the roles are {help_line}")


def _listed(loops: list[LoopPart]) -> str:
    """The first few loops by name; the rest as a count."""
    names = ", ".join(loop.text() for loop in loops[:8])
    return names if len(loops) <= 8 else f"{names} and {len(loops) - 8} more"
