"""The schedule of an expression: ``| splits | order | roles``.

    splits = [ axis ":" n { ":" n } { "," … } ]
    order  = { axis {"'"} | digit | "!" }
    roles  = loop ":" role { "," … } | digit ":" space { "," … }

A bar after an output pattern opens a schedule iff the next token is another bar or ``letter:``; but ``|||`` followed
by ``pattern ~`` is the combinator ``|`` and a unary ``||``. After the order a further bar opens roles iff ``loop:`` or
``digit:`` follows; else it is the combinator.

An axis of an index expression is a letter. Axes of a specification may have names of several characters, separated by
blanks; what a word stands for is decided where the axes are known (``resolved`` in ``core/ir/schedule.py``).
"""

from __future__ import annotations

from ilang.core.diagnostic import Label, NotationError
from ilang.core.ir.syntax import LoopPart, Schedule, Site, Split, Start, WrittenRole
from ilang.core.notation.index.lookahead import axis_end, has_colon, past_bar
from ilang.core.notation.index.schedule_rules import LOOP_ROLES, factor_out_of_range
from ilang.core.notation.reader import BLANKS, DIGITS, LETTERS, Reader, number_below
from ilang.core.source import Span

SHAPE_HELP = "a schedule is `| splits | order | roles`, for example `+ij~i | j:8 | i j j'`"
COMMA_HELP = "commas stand between splits: `| i:8,j:8 | i j i' j'`"
HUGE = 10**10
"""Factors from here on are refused when they are read, others that no schedule may have with their split."""
ROLES_HELP = "roles are like `+ij~i || i j | i:p`, and those of staged inputs like `0:s`"


def parse_schedule(reader: Reader, named: bool = False) -> Schedule:
    """The schedule whose first bar follows the blanks at the cursor. ``named``: axes may be words."""
    reader.skip()
    start = reader.pos
    first = reader.take(start + 1, left=True)
    splits = _splits(reader, named)
    if reader.skip() != "|":
        labels = (Label(first, "opened here"),)
        help_line = COMMA_HELP if reader.peek() and _opens_split(reader, named) else SHAPE_HELP
        if not reader.peek():
            written = reader.text[first.start : reader.pos].rstrip(BLANKS)
            help_line = f"write `{written} |` for the default order; {help_line}"
        error = reader.unexpected("E0120", "a second `|`", help_line, expression=False)
        raise NotationError(error.code, error.message, error.span, error.help, labels)
    reader.take(reader.pos + 1, left=bool(splits))
    stop = reader.pos
    order = _order(reader, named)
    stop = order[-1].span.end if order else stop
    roles: tuple[WrittenRole, ...] = ()
    if _opens_roles(reader, named):
        reader.skip()
        reader.take(reader.pos + 1, left=True)
        roles = _roles(reader, named)
        stop = reader.pos
    return Schedule(splits, order, roles, reader.span(start, stop))


def _splits(reader: Reader, named: bool) -> tuple[Split, ...]:
    if reader.skip() in ("|", ""):
        return ()
    splits = [_split(reader, True, named)]
    while reader.skip() == ",":
        reader.take(reader.pos + 1)
        splits.append(_split(reader, False, named))
    return tuple(splits)


def _opens_split(reader: Reader, named: bool) -> bool:
    """Whether ``axis:`` stands at the cursor."""
    stop = axis_end(reader, reader.pos, named)
    return stop > reader.pos and has_colon(reader, reader.past(BLANKS, stop))


def _split(reader: Reader, first: bool, named: bool) -> Split:
    """``i:2:4``."""
    char = reader.skip()
    start = reader.pos
    stop = axis_end(reader, start, named) if char else start
    if stop == start:
        raise reader.unexpected("E0121", "an axis to split", SHAPE_HELP, False)
    axis = reader.take(stop, left=first).text()
    if reader.skip() != ":":
        raise reader.unexpected("E0121", f"`:` and a factor of axis {axis}", SHAPE_HELP, False)
    factors: list[int] = []
    while reader.skip() == ":":
        reader.take(reader.pos + 1)
        factors.append(_factor(reader, axis))
    end = reader.pos
    while reader.text[end - 1] in BLANKS:
        end -= 1
    return Split(axis, tuple(factors), reader.span(start, end))


def _factor(reader: Reader, axis: str) -> int:
    """A whole number; one that no schedule may hold is refused here, before it becomes huge."""
    reader.skip()
    start = reader.pos
    digits = start + 1 if reader.at("-") else start
    stop = reader.past(DIGITS, digits)
    if stop == digits:
        help_line = (
            f"a factor is how many iterations a part of the loop has: `{axis}:8`, `{axis}:2:4`"
        )
        word = reader.text[start : reader.past(LETTERS | DIGITS, start)]
        if word in ", ".join(LOOP_ROLES).split(", "):
            help_line = (
                f"`{word}` is a role, and roles stand last: `| splits | order | {axis}:{word}`"
            )
        wanted = f"a factor of axis {axis}, a whole number,"
        raise reader.unexpected("E0121", wanted, help_line, False)
    number = number_below(reader.text[digits:stop], HUGE)
    if digits > start or number is None:
        span = reader.span(start, stop)
        raise factor_out_of_range(axis, span.text(), span)
    if reader.at(".", stop):
        reader.pos = stop
        raise reader.unexpected("E0121", "`:`, `,` or `|`", "factors are whole numbers", False)
    reader.take(stop)
    return number


def _order(reader: Reader, named: bool) -> tuple[LoopPart | Site | Start, ...]:
    order: list[LoopPart | Site | Start] = []
    while True:
        c = reader.skip()
        start = reader.pos
        if not c or c in "|&)" or reader.combinator(start):
            return tuple(order)
        if axis_end(reader, start, named) > start:
            order.append(_loop(reader, True, named))
        elif c in DIGITS:
            order.append(Site(int(c), reader.take(start + 1, left=True)))
        elif c == "!":
            order.append(Start(reader.take(start + 1, left=True)))
        elif c == "~" and order:
            raise _swallowed(reader)
        else:
            raise reader.unexpected("E0122", "a loop, a digit or `!`", SHAPE_HELP, False)


def _swallowed(reader: Reader) -> NotationError:
    help_line = "`||` after an output opens a schedule; to pair with an expression, write "
    help_line += "parentheses: `(+ij~i) | ij~i`"
    message = "`~` is not part of the order of a schedule"
    return NotationError("E0122", message, reader.here(), help_line)


def _loop(reader: Reader, left: bool, named: bool) -> LoopPart:
    """``i''``; blanks may stand before a prime."""
    start = reader.pos
    axis = reader.take(axis_end(reader, start, named), left=left).text()
    part, stop = 0, reader.pos
    while reader.skip() == "'":
        reader.take(reader.pos + 1)
        part, stop = part + 1, reader.pos
    reader.pos = stop
    return LoopPart(axis, part, reader.span(start))


def _opens_roles(reader: Reader, named: bool) -> bool:
    """Whether ``| loop:`` or ``| digit:`` follows; the cursor stays."""
    at = past_bar(reader)
    if at < 0:
        return False
    stop = axis_end(reader, at, named)
    if stop > at:
        return has_colon(reader, reader.past("'" + BLANKS, stop))
    return reader.text[at] in DIGITS and has_colon(reader, at + 1)


def _roles(reader: Reader, named: bool) -> tuple[WrittenRole, ...]:
    roles = [_role(reader, True, named)]
    while True:
        comma = reader.past(BLANKS, reader.pos)
        if not reader.at(",", comma):
            return tuple(roles)
        reader.pos = comma
        reader.take(comma + 1)
        roles.append(_role(reader, False, named))


def _role(reader: Reader, first: bool, named: bool) -> WrittenRole:
    """``i':v`` or ``0:s2``; what the words mean is checked later."""
    c = reader.skip()
    start = reader.pos
    is_loop = c != "" and axis_end(reader, start, named) > start
    if not is_loop and (c not in DIGITS):
        raise reader.unexpected("E0123", "a loop or the digit of an input", ROLES_HELP, False)
    target = _loop(reader, first, named) if is_loop else reader.take(start + 1, left=first)
    if reader.skip() != ":":
        raise reader.unexpected("E0123", "`:` and a role", ROLES_HELP, False)
    reader.take(reader.pos + 1)
    c = reader.skip()
    stop = reader.past(LETTERS | DIGITS, reader.pos)
    if c not in LETTERS:
        raise reader.unexpected("E0123", "a role", ROLES_HELP, False)
    role = reader.take(stop).text()
    if isinstance(target, Span):
        return WrittenRole(int(target.text()), role, reader.span(start))
    return WrittenRole(target, role, reader.span(start))
