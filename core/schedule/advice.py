"""The nearest legal schedule: what to write in place of one that is refused.

Small changes are tried one by one, and the first with which the program lowers is told: a producer takes
the splits and the order of what stages it; a digit moves outwards, or is left out; a role is left out. Where a block
has no room for so many threads or elements, parts become smaller, or loops for threads sequential; where a matrix unit
has no whole matrices, they become larger, and loops of two units one unit's. Where no change alone makes the program
legal, because another schedule is wrong too, a digit or a role to leave out is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from ilang.core.diagnostic import Label, ScheduleError, shorten
from ilang.core.ir.schedule import BLOCK_ROLES, THREAD_ROLES, UNIT_ROLES, Loop, Nest, Role
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ir.syntax import LoopPart, Schedule, Site, Split, Start, WrittenRole
from ilang.core.matrix_unit import with_rounded_factors
from ilang.core.notation.components.printer import print_schedule
from ilang.core.record import record, replace
from ilang.core.schedule.fuse import mapping
from ilang.core.schedule.written import written_nest
from ilang.core.source import Span

LIMITS = ("E0332", "E0333")
"""The codes of blocks that are too large."""
TRIES, LARGE = 40, 4000
"""Changes that are tried at most, and the changes times assignments of a program that are."""


@record
class Candidate:
    """Another schedule for a node; ``is_less`` if it is the old one less a digit or a role.

    A chain of candidates that are less ends: however often one is followed, nothing comes back.
    """

    node: Assignment
    schedule: Schedule
    is_less: bool = False


def advised(
    shaped: Shaped, error: ScheduleError, lower: Callable[[Shaped], object]
) -> ScheduleError:
    """The error with the nearest legal schedule in its help and as its ``fix``.

    Args:
        shaped: the refused program.
        error: why it is refused.
        lower: lowers a program, or raises a ScheduleError.
    """
    fallback, removes = None, False
    for candidate in islice(_candidates(shaped, error), min(TRIES, LARGE // len(shaped.nodes))):
        try:
            lower(_changed(shaped, candidate))
        except ScheduleError as other:
            moved = (other.code, other.span) != (error.code, error.span)
            if candidate.is_less and (fallback is None or (moved and not removes)):
                fallback, removes = candidate, moved
        else:
            return _with_fix(error, candidate)
    return error if fallback is None else _with_fix(error, fallback)


def _with_fix(error: ScheduleError, candidate: Candidate) -> ScheduleError:
    assert candidate.node.schedule is not None
    span, text = candidate.node.schedule.span, print_schedule(candidate.schedule)
    old = shorten(" ".join(span.text().split()), 200)
    example = f"write `{text}` in place of `{old}`"
    help_line = f"{error.help}; for example, {example}" if error.help else example
    fixed = ScheduleError(error.code, error.message, error.span, help_line, error.labels)
    fixed.fix, fixed.within = Label(span, text), error.within
    return fixed


def _changed(shaped: Shaped, candidate: Candidate) -> Shaped:
    """The program with another schedule at a place of the text, wherever that place is used.

    The roles of the schedule say how factors are rounded.
    """
    old = candidate.node.schedule
    assert old is not None
    nodes = tuple(
        replace(node, schedule=candidate.schedule)
        if isinstance(node, Assignment)
        and node.schedule is not None
        and node.schedule.span == old.span
        else node
        for node in shaped.nodes
    )
    return with_rounded_factors(replace(shaped, nodes=nodes))


# -- what may be changed -----------------------------------------------------------------------------------------------


def _candidates(shaped: Shaped, error: ScheduleError) -> Iterator[Candidate]:
    """Changes near the error, smallest first."""
    spans = [span for span in (error.span, *(at.span for at in error.labels)) if span is not None]
    related = {
        value
        for value, node in enumerate(shaped.nodes)
        if isinstance(node, Assignment) and any(_holds(node, span) for span in spans)
    }
    edges = list(_staged(shaped, related))
    nodes = [
        node for value in sorted(related) if isinstance(node := shaped.nodes[value], Assignment)
    ]
    for node in nodes if error.code == "E0334" else ():
        yield from _along_x(node)
    for node in nodes if error.code == "E0337" else ():
        yield from _of_one_unit(node)
    for node in nodes if error.code == "E0338" else ():
        yield from _larger(node)
    for node in nodes if error.code in LIMITS else ():
        yield from _smaller(node)
        yield from _sequential(node)
    for node in nodes:
        yield from _without_roles(node)
    for reader, number in edges:
        yield from _followed(shaped, reader, number)
    for reader, number in edges:
        yield from _outwards(reader, number)
    for reader, number in edges:
        yield from _alone(reader, number)


def _holds(node: Assignment, span: Span) -> bool:
    return node.span.source is span.source and (
        node.span.start <= span.start and span.end <= node.span.end
    )


def _staged(shaped: Shaped, related: set[int]) -> Iterator[tuple[Assignment, int]]:
    """Written digits that concern some values: theirs, those that stage them, and those that stage these."""
    near = set(related)
    staged: list[tuple[Assignment, int]] = []
    for value in range(len(shaped.nodes) - 1, -1, -1):
        node = shaped.nodes[value]
        nest = written_nest(node) if isinstance(node, Assignment) else None
        if not isinstance(node, Assignment) or nest is None:
            continue
        for number, (read, site) in enumerate(zip(node.reads, nest.sites, strict=True)):
            if site is not None and (value in near or read.value in near):
                staged.append((node, number))
    direct = [edge for edge in staged if edge[0].reads[edge[1]].value in related]
    yield from direct
    yield from (edge for edge in staged if edge not in direct)


def _smaller(node: Assignment) -> Iterator[Candidate]:
    """Each factor, the largest first, as a smaller power of two."""
    if node.schedule is None:
        return
    splits = node.schedule.splits
    factors = [(f, n, at) for n, split in enumerate(splits) for at, f in enumerate(split.factors)]
    for factor, n, at in sorted(factors, reverse=True):
        for power in range((factor - 1).bit_length() - 1, max(-1, factor.bit_length() - 7), -1):
            others = splits[n].factors
            split = replace(splits[n], factors=(*others[:at], 1 << power, *others[at + 1 :]))
            schedule = replace(node.schedule, splits=(*splits[:n], split, *splits[n + 1 :]))
            yield Candidate(node, schedule)


def _larger(node: Assignment) -> Iterator[Candidate]:
    """The innermost part of each axis that a matrix unit takes as a larger power of two."""
    if node.schedule is None:
        return
    splits = node.schedule.splits
    asked = {loop.axis for loop, x in node.schedule.loops() if x.role in UNIT_ROLES}
    for n, split in enumerate(splits):
        *others, last = split.factors
        first = (last - 1).bit_length()
        for power in range(first, first + 5) if split.axis in asked else ():
            changed = replace(split, factors=(*others, 1 << power))
            if changed != split:
                schedule = replace(node.schedule, splits=(*splits[:n], changed, *splits[n + 1 :]))
                yield Candidate(node, schedule)


def _of_one_unit(node: Assignment) -> Iterator[Candidate]:
    if node.schedule is None:
        return
    roles = node.schedule.roles
    asked = dict.fromkeys(entry.role for entry in roles if entry.role in UNIT_ROLES)
    for role in asked if len(asked) > 1 else ():
        changed = (replace(x, role=role) if x.role in UNIT_ROLES else x for x in roles)
        yield Candidate(node, replace(node.schedule, roles=tuple(changed)))


def _along_x(node: Assignment) -> Iterator[Candidate]:
    """Blocks along the dimension of a grid that has most of them, if that is free, or counted with others."""
    if node.schedule is None:
        return
    roles = node.schedule.roles
    for n, entry in enumerate(roles):
        for other in ("x", "p") if entry.role in BLOCK_ROLES[1:] else ():
            if other == "p" or all(each.role != other for each in roles):
                changed = (*roles[:n], replace(entry, role=other), *roles[n + 1 :])
                yield Candidate(node, replace(node.schedule, roles=changed), is_less=True)


def _sequential(node: Assignment) -> Iterator[Candidate]:
    """Each loop for threads, the outermost last, one iteration after the other."""
    nest = written_nest(node)
    if nest is None or node.schedule is None or not nest.written:
        return
    by_position = [loop.part == 1 and not nest.asked for loop in nest.order]
    for position in range(len(nest.order) - 1, -1, -1):
        if not by_position[position] and nest.role(position) not in THREAD_ROLES:
            continue
        roles: list[Role] = [nest.role(n) for n in range(len(nest.order))]
        roles[position] = "q"
        yield Candidate(node, _schedule(node, replace(nest, roles=tuple(roles))), is_less=True)


def _without_roles(node: Assignment) -> Iterator[Candidate]:
    """Each role left out, then all of a kind, then all."""
    if node.schedule is None:
        return
    roles = node.schedule.roles
    rests = [tuple(other for other in roles if other != role) for role in roles]
    rests += [tuple(other for other in roles if other.role != role.role) for role in roles]
    rests += [()] if roles else []
    for rest in dict.fromkeys(rests):
        yield Candidate(node, replace(node.schedule, roles=rest), is_less=True)


def _followed(shaped: Shaped, reader: Assignment, number: int) -> Iterator[Candidate]:
    """The producer with the splits and the order of the loops outside its site."""
    read = reader.reads[number]
    producer, nest = shaped.nodes[read.value], written_nest(reader)
    if not isinstance(producer, Assignment) or nest is None:
        return
    inner, site = written_nest(producer), nest.sites[number]
    if inner is None or site is None:
        return
    pairs = mapping(producer, read)
    factors = tuple(
        nest.factors[pairs[axis]] if axis in pairs else inner.factors[axis]
        for axis in range(len(producer.axes))
    )
    order = _order(nest.order[:site], pairs, inner, factors)
    yield Candidate(producer, _schedule(producer, _moved(inner, factors, order)))


def _order(
    outside: tuple[Loop, ...],
    pairs: dict[int, int],
    inner: Nest,
    factors: tuple[tuple[int, ...], ...],
) -> tuple[Loop, ...]:
    """The loops of a producer: those outside its site in the order of its reader, then the others in its own."""
    order = [
        Loop(axis, loop.part)
        for loop in outside
        for axis, outer in pairs.items()
        if outer == loop.axis
    ]
    for loop in inner.order:
        count = len(factors[loop.axis]) + 1
        last = loop.part == len(inner.factors[loop.axis])
        for part in range(loop.part, count if last else min(loop.part + 1, count)):
            if Loop(loop.axis, part) not in order:
                order.append(Loop(loop.axis, part))
    return tuple(order)


def _moved(inner: Nest, factors: tuple[tuple[int, ...], ...], order: tuple[Loop, ...]) -> Nest:
    """A nest in another order: digits and the start stay inside the loop before them, roles with their loops."""

    def place(site: int | None) -> int | None:
        if not site:
            return site
        loop = inner.order[site - 1]
        while loop not in order:
            loop = replace(loop, part=loop.part - 1)
        return order.index(loop) + 1

    roles = {loop: inner.role(n) for n, loop in enumerate(inner.order)}
    return Nest(
        factors,
        order,
        tuple(place(site) for site in inner.sites),
        None,
        tuple(roles.get(loop, "") for loop in order),
        inner.spaces,
        inner.written,
    )


def _outwards(reader: Assignment, number: int) -> Iterator[Candidate]:
    """A digit one loop further out, and again, up to the start of the kernel."""
    nest = written_nest(reader)
    assert nest is not None
    site = nest.sites[number]
    for depth in range((site or 0) - 1, -1, -1):
        yield Candidate(reader, _schedule(reader, _with_site(nest, number, depth)))


def _alone(reader: Assignment, number: int) -> Iterator[Candidate]:
    """A digit left out: the input is computed whole, before."""
    nest = written_nest(reader)
    assert nest is not None
    yield Candidate(reader, _schedule(reader, _with_site(nest, number, None)), is_less=True)


def _with_site(nest: Nest, number: int, depth: int | None) -> Nest:
    sites = (*nest.sites[:number], depth, *nest.sites[number + 1 :])
    spaces = nest.spaces
    if depth is None and spaces:
        spaces = (*spaces[:number], "", *spaces[number + 1 :])
    return replace(nest, sites=sites, spaces=spaces)


# -- as syntax and text ------------------------------------------------------------------------------------------------


def _schedule(node: Assignment, nest: Nest) -> Schedule:
    """A nest as a written schedule, at the place of the node's own."""
    assert node.schedule is not None
    span = node.schedule.span
    splits = tuple(
        Split(node.axes[axis].name, factors, span)
        for axis, factors in enumerate(nest.factors)
        if factors
    )
    order: list[LoopPart | Site | Start] = []
    for depth in range(len(nest.order) + 1):
        order += [Site(node.operand(n), span) for n, s in enumerate(nest.sites) if s == depth]
        order += [Start(span)] if nest.start == depth else []
        order += [_part(node, loop, span) for loop in nest.order[depth : depth + 1]]
    roles = [
        WrittenRole(_part(node, loop, span), role, span)
        for loop, role in zip(nest.order, nest.roles, strict=False)
        if role
    ]
    roles += [
        WrittenRole(node.operand(n), space, span) for n, space in enumerate(nest.spaces) if space
    ]
    return Schedule(splits, tuple(order), tuple(roles), span)


def _part(node: Assignment, loop: Loop, span: Span) -> LoopPart:
    return LoopPart(node.axes[loop.axis].name, loop.part, span)
