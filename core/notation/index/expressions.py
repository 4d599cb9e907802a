"""Index expressions: ``ik*kj~ijk``, one operator, one or two inputs, one output.

    expression = form "~" pattern [ schedule ]
    form       = op operand | operand op operand | operand
    op         = operator | ">@" | "<@"            the last two before one pattern
    operand    = leaf | pattern "@" leaf
    leaf       = pattern | "@" letter | "@" "(" linear ")" | ":" letter
    pattern    = ("." | index+) [ "[" guard { "," guard } "]" ]       no blanks between indices; guards on inputs
    guard      = linear ("<" | "<=" | ">" | ">=" | "==") linear
    linear     = [ "+" | "-" ] part { ("+" | "-") part }
    index      = letter | number | "(" number ")" | "(" [ "+" | "-" ] part { ("+" | "-") part } ")"
    part       = [ number ] letter [ ":" number ] | number

A run of zeros is that many indices 0; every other run of digits is one number. Blanks between tokens are free. An
operator is one token: ``> >`` is not ``>>``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ilang.core.diagnostic import NotationError
from ilang.core.ir import syntax
from ilang.core.ir.spec import Fixed
from ilang.core.notation.index.lookahead import is_index, opens_argument, opens_schedule, past_leaf
from ilang.core.notation.index.rules import check_expression
from ilang.core.notation.reader import (
    BLANKS,
    DIGITS,
    LETTERS,
    TILDE_HELP,
    WORD,
    Reader,
    number_below,
)
from ilang.core.ops import OPS

if TYPE_CHECKING:  # few expressions have schedules
    from ilang.core.notation.index.schedule_rules import ScheduleTarget

RELATIONS: tuple[syntax.Relation, ...] = ("<=", ">=", "==", "<", ">")
"""Longest first."""
NUMBER_LIMIT = 2**31
SO_FAR = "+(i:5+j:5-4)~i"
"""The cumulative sum of 5 elements."""
PATTERN_HELP = "letters are the axes, one per dimension, and `.` is a scalar: `ij*j~ij`, `+i~.`"
POSITION_HELP = "positions are like `ij*@j~ij`, `@(2i+j-1)` and `@(i:10)`"
SIGNED_WORD = re.compile(r"([+-]?)\s*(\w+)")
GROUP_HELP = "an affine index is like `(2y+u-1)`, or `(2y+u:3)` for a window of 3"
GUARD_HELP = "guards compare sums of axes and numbers: `ij[j<=i,i<3]~ij`"


def read_expression(reader: Reader) -> syntax.Expression:
    """The expression at the cursor, with its schedule, checked."""
    form = read_form(reader)
    check_expression(form)
    if not opens_schedule(reader):
        return form
    from ilang.core.notation.index.schedule import parse_schedule
    from ilang.core.notation.index.schedule_rules import check_schedule

    schedule: syntax.Schedule = parse_schedule(reader)
    span = form.span.to(schedule.span)
    tree = syntax.Expression(form.op, form.left, form.right, form.output, schedule, span)
    check_schedule(schedule, _form(tree))
    return tree


def _form(e: syntax.Expression) -> ScheduleTarget:
    from ilang.core.notation.index.schedule_rules import ScheduleTarget

    kept, leaves, looked = e.output.letters(), e.leaves(), e.looked_up()
    read = "".join(leaf.letters() for leaf in leaves)
    axes = tuple(letter for letter in dict.fromkeys(kept + read) if letter not in looked)
    return ScheduleTarget(axes, frozenset(kept) - looked, len(leaves))


def read_form(reader: Reader) -> syntax.Expression:
    """The expression at the cursor without its schedule, not checked."""
    reader.skip()
    start = reader.pos
    right: syntax.Operand | None = None
    op: str | None = _take_operator(reader, is_prefix=True) or None
    left = _read_operand(reader)
    reader.skip()
    if op is None and reader.peek() != "~":
        op = _operator_after(reader, left)
        right = _read_operand(reader)
        reader.skip()
    if reader.peek() != "~":
        raise _no_tilde(reader)
    reader.take(reader.pos + 1)
    output = _read_indices(reader, "an output pattern (`.` for a scalar)")
    return syntax.Expression(op, left, right, output, None, reader.span(start))


def _take_operator(reader: Reader, is_prefix: bool = False) -> str:
    """The operator at the cursor; one before an operand may be ``>@`` or ``<@``, where indices follow."""
    symbol = reader.operator(reader.pos)
    if is_prefix and opens_argument(reader, reader.pos):
        symbol += "@"
    if symbol:
        reader.take(reader.pos + len(symbol))
    return symbol


def _read_operand(reader: Reader) -> syntax.Operand:
    leaf = _read_leaf(reader)
    if reader.skip() != "@":
        return leaf
    at = reader.pos
    if not isinstance(leaf, syntax.Pattern):
        help_line = "read at a position by an index: `(i+1)j`, `0j`"
        message = f"`{leaf.span.text()}` is no input, and what is looked up is an array's element"
        raise NotationError("E0119", message, leaf.span, help_line)
    reader.take(at + 1)
    if past_leaf(reader, reader.pos) < 0:
        wanted = "a pattern or a position that is looked up"
        raise reader.unexpected("E0119", wanted, "an embedding is `bt@vd~btd`")
    table = _read_leaf(reader)
    return syntax.Lookup(leaf, table, reader.span(leaf.span.start, table.span.end))


def _read_leaf(reader: Reader) -> syntax.Leaf:
    c = reader.skip()
    if c == ":":
        return _read_extent(reader)
    if c != "@":
        return read_pattern(reader)
    start = reader.pos
    reader.take(start + 1)
    c = reader.peek()
    if c in LETTERS:
        axis = syntax.Axis(c, reader.take(reader.pos + 1))
        _refuse_tail(reader, start)
        return syntax.Position((syntax.Term(1, axis, None),), 0, reader.span(start))
    if c != "(":
        raise reader.unexpected(
            "E0118",
            "an axis, or a sum of axes in parentheses, after `@`",
            reader.hint() or POSITION_HELP,
        )
    reader.take(reader.pos + 1)
    terms, offset, _ = _sum(reader)
    if reader.peek() != ")":
        raise reader.unexpected(
            "E0118", "`+`, `-` or `)` in this position", reader.hint() or POSITION_HELP
        )
    reader.take(reader.pos + 1)
    _refuse_tail(reader, start)
    if not terms:
        message = "a position is one along an axis"
        help_line = f"a constant is a component of its own: `(I | {offset}) >> ij*.~ij`"
        raise NotationError("E0118", message, reader.span(start), help_line)
    return syntax.Position(tuple(terms.values()), offset, reader.span(start))


def _read_extent(reader: Reader) -> syntax.Position:
    """``:j``."""
    start = reader.pos
    reader.take(start + 1)
    c = reader.peek()
    if c not in LETTERS:
        raise reader.unexpected("E0124", "an axis after `:`", "the extent of axis j is `:j`")
    axis = syntax.Axis(c, reader.take(reader.pos + 1))
    _refuse_tail(reader, start)
    return syntax.Position((), 0, reader.span(start), axis)


def _operator_after(reader: Reader, left: syntax.Operand) -> str:
    """The operator between two inputs; an error if none stands there."""
    symbol = _take_operator(reader)
    if symbol:
        return symbol
    c = reader.peek()
    if not c or c == ")":
        raise _no_tilde(reader)
    raise reader.unexpected(
        "E0105",
        f"an operator or `~` after `{left.span.text()}`",
        _joined(reader) or reader.hint() or TILDE_HELP,
    )


PRODUCT = re.compile(r"\([^()]*?(\d+)\s*\*\s*([a-z])")
"""A group in which a number and a letter are multiplied."""


def _no_tilde(reader: Reader) -> NotationError:
    help_line = _joined(reader) or reader.hint()
    product = reader.matches(PRODUCT)
    if product is not None:
        help_line = f"a coefficient stands before its letter: `{product[1]}{product[2]}`"
    if reader.operator(reader.pos) and help_line is None:
        help_line = "an expression has one operator; chain two with `>>`: `i+j~ij >> ij*j~ij`"
    return reader.unexpected("E0104", "`~` and an output", help_line or reader.hint() or TILDE_HELP)


ORDER = re.compile(r"~\s*[a-z.]+\s*\|\s*([a-z]'*(?:\s+(?:[a-z]'*|\d|!))*)\s*$")
"""A pattern of a result, one bar and an order of loops."""


def _joined(reader: Reader) -> str | None:
    """Help for blanks inside a pattern, which may be the order of a schedule."""
    order = ORDER.search(reader.text, 0, reader.end)
    if order is not None and order.start(1) < reader.pos:
        return f"a schedule without splits has two bars: `|| {' '.join(order[1].split())}`"
    if reader.text[: reader.pos].rpartition("\n")[2].startswith("use "):
        return "`use` is a line of a file or of the REPL; elsewhere write the name alone: `softmax`"
    if reader.peek() in LETTERS and reader.peek():
        return "the letters of a pattern are written without blanks: `ij`"
    return None


def read_pattern(reader: Reader) -> syntax.Pattern:
    """The pattern of an input at the cursor, with its guards."""
    pattern = _read_indices(reader, "a pattern")
    if reader.skip() != "[":
        return pattern
    guards = []
    while reader.peek() in ("[", ","):
        reader.take(reader.pos + 1)
        guards.append(_guard(reader))
    if reader.peek() != "]":
        again = any(reader.at(symbol) for symbol in RELATIONS)
        help_line = (
            "a guard is one comparison: write `0<i,i<3` for `0<i<3`" if again else GUARD_HELP
        )
        raise reader.unexpected("E0117", "`,` or `]` after this guard", help_line)
    reader.take(reader.pos + 1)
    if reader.skip() == "[":
        message = "the guards of an input stand in one pair of brackets"
        help_line = "write a comma between them: `[i<2,j<i]`"
        raise NotationError("E0117", message, reader.here(), help_line)
    return syntax.Pattern(pattern.indices, reader.span(pattern.span.start), tuple(guards))


def _guard(reader: Reader) -> syntax.Guard:
    """``j<=i+3``; the cursor is then past the blanks that follow."""
    if reader.skip() == "]":
        empty = "brackets hold conditions, `ij[j<=i]`; where there is none, leave them out"
        raise reader.unexpected("E0117", "a guard", empty)
    start = reader.pos
    left = _linear(reader)
    relation = next((symbol for symbol in RELATIONS if reader.at(symbol)), None)
    if relation is None:
        help_line = GUARD_HELP
        if reader.peek() in ("]", ",") or (reader.peek() and reader.peek() in LETTERS):
            help_line = (
                "the indices of an input are plain letters: `ij`; `[ ]` holds a guard, `ij[j<=i]`; rows by their "
                "numbers, `v[ids]`, are `n@vd~nd`, applied to ids and v"
            )
        elif reader.peek() == ":":
            help_line = "brackets hold conditions: `i[1<=i]~i` is 0 at the other positions"
        elif reader.at("!="):
            help_line = (
                "a guard has no `!=`: what is on either side is another reading, by `<` and `>`"
            )
        wanted = f"one of {' '.join(RELATIONS)} in this guard"
        raise reader.unexpected("E0117", wanted, help_line)
    reader.take(reader.pos + len(relation))
    right = _linear(reader)
    return syntax.Guard(left, relation, right, reader.span(start, right.span.end))


def _linear(reader: Reader) -> syntax.Linear:
    """One side of a guard; the cursor is then past the blanks that follow."""
    reader.skip()
    start = reader.pos
    terms, offset, _ = _sum(reader)
    for term in terms.values():
        if term.extent is not None:
            message = f"the extent of axis {term.axis.letter} is written in a guard"
            help_line = f"write it in an index: `({term.axis.letter}:{term.extent}+0)`"
            raise NotationError("E0117", message, reader.span(start), help_line)
    text = reader.text[start : reader.pos].rstrip(BLANKS)
    return syntax.Linear(tuple(terms.values()), offset, reader.span(start, start + len(text)))


def _read_indices(reader: Reader, wanted: str) -> syntax.Pattern:
    c = reader.skip()
    start = reader.pos
    if c == ".":
        span = reader.take(start + 1)
        _refuse_tail(reader, start)
        return syntax.Pattern((), span)
    indices: list[syntax.Index] = []
    while (c := reader.peek()) and (
        c in LETTERS | DIGITS or (c == "(" and is_index(reader, reader.pos))
    ):
        indices += _indices(reader, c)
    if not indices:
        alone = reader.text[:start].strip() if reader.end <= start else ""
        help_line = PATTERN_HELP
        if alone in OPS:
            from ilang.core.notation.guidance import operator_help

            help_line = operator_help(alone)
        elif c == "(" and reader.text[:start].rstrip(BLANKS).endswith("~"):
            help_line = 'axes of a result are joined by einx: `einx.id("a b c d -> (a c) (b d)")`'
        if reader.at("+") and reader.at("++", reader.pos - 1):
            help_line = f"`+` reduces, and a cumulative sum along i is `{SO_FAR}` of 5 elements"
        raise reader.unexpected("E0103", wanted, reader.hint() or help_line)
    _refuse_tail(reader, start)
    return syntax.Pattern(tuple(indices), reader.span(start))


def _indices(reader: Reader, c: str) -> list[syntax.Index]:
    """The indices at the cursor: a letter, a group, a number, or a run of zeros, which is an index for each."""
    start = reader.pos
    if c == "(":
        return [_group(reader)]
    if c in LETTERS:
        return [syntax.Axis(c, reader.take(start + 1))]
    stop = reader.past(DIGITS, start)
    if reader.past("0", start) < stop:
        return [Fixed(_whole(reader), reader.span(start))]
    reader.take(stop)
    return [Fixed(0, reader.span(at, at + 1)) for at in range(start, stop)]


NUMBER_HELP = (
    "write a smaller number, or reach further elements in two steps, with `>>` between them"
)
EXTENT_HELP = "write a smaller extent: `+(i+k:3)~i` sums 3 neighbours"


def _whole(reader: Reader, help_line: str = NUMBER_HELP) -> int:
    start = reader.pos
    stop = reader.past(DIGITS, start)
    digits = reader.text[start:stop]
    if digits[0] == "0" and len(digits) > 1:
        message = f"`{digits[:20]}` begins with 0, and a run of digits is one number"
        raise NotationError(
            "E0107", message, reader.span(start, stop), "write the number without leading zeros"
        )
    number = number_below(digits, NUMBER_LIMIT)
    if number is None:
        message = (
            f"the number {digits[:20]}{'…' if len(digits) > 20 else ''} is not below {NUMBER_LIMIT}"
        )
        raise NotationError("E0107", message, reader.span(start, stop), help_line)
    reader.take(stop)
    return number


def _word(reader: Reader, start: int) -> str | None:
    """The help where a word that is a number elsewhere stands for an index: ``(-inf)``."""
    from ilang.core.notation.guidance import no_number

    word = reader.matches(SIGNED_WORD, start)
    return None if word is None else no_number(word[2], word[1])


def _group(reader: Reader) -> syntax.Index:
    """``(2y+u:3-1)``: terms and numbers between signs, in parentheses; ``(0)`` is one position."""
    start = reader.pos
    reader.take(start + 1)
    terms, offset, last = _sum(reader)
    if (c := reader.peek()) != ")":
        help_line = f"without blanks: `{last}{c}`" if last.isdigit() and c in LETTERS else None
        if c == ":" and terms and last.isdigit():
            help_line = f"an extent stands behind its letter: `({'+'.join(terms)}:3-1)`"
        help_line = help_line or _word(reader, start + 1) or reader.hint() or GROUP_HELP
        raise reader.unexpected("E0107", "`+`, `-` or `)` in this affine index", help_line)
    reader.take(reader.pos + 1)
    span = reader.span(start)
    if not terms and span.text()[1:-1].strip(BLANKS).isdigit():
        return Fixed(offset, span)
    if not terms:
        message = "an affine index has an axis"
        help_line = (
            f"one position is written `{offset}`" if offset >= 0 else "positions count from 0"
        )
        raise NotationError("E0107", message, span, help_line)
    return syntax.Linear(tuple(terms.values()), offset, span)


def _sum(reader: Reader) -> tuple[dict[str, syntax.Term], int, str]:
    """Terms and numbers between signs: the terms by letter, the sum of the numbers, and the text of the last part."""
    terms: dict[str, syntax.Term] = {}
    offset = 0
    sign = -1 if reader.skip() == "-" else 1
    if reader.peek() in ("-", "+"):
        reader.take(reader.pos + 1)
    while True:
        reader.skip()
        begin = reader.pos
        offset += sign * _part(reader, sign, terms)
        last = reader.text[begin : reader.pos]
        c = reader.skip()
        if c not in ("+", "-"):
            return terms, offset, last
        sign = -1 if c == "-" else 1
        reader.take(reader.pos + 1)


def _part(reader: Reader, sign: int, terms: dict[str, syntax.Term]) -> int:
    """One part of a group: a term, which goes into ``terms``, or a number, which is given back."""
    start = reader.pos
    c = reader.peek()
    number = _whole(reader) if c in DIGITS else None
    c = reader.peek()
    if c not in LETTERS:
        if number is None:
            raise reader.unexpected(
                "E0107", "an axis or a number in this affine index", reader.hint() or GROUP_HELP
            )
        return number
    axis = syntax.Axis(c, reader.take(reader.pos + 1))
    extent = None
    if reader.skip() == ":":
        reader.take(reader.pos + 1)
        c = reader.skip()
        if c not in DIGITS:
            raise reader.unexpected("E0107", f"the extent of axis {axis.letter}", GROUP_HELP)
        extent = _whole(reader, EXTENT_HELP)
    span = reader.span(start)
    if number == 0 or extent == 0:
        factor = (
            f"the coefficient of axis {axis.letter}"
            if number == 0
            else f"the extent of axis {axis.letter}"
        )
        help_line = (
            "leave the axis out" if number == 0 else "an extent that is written is 1 or more"
        )
        raise NotationError("E0107", f"{factor} is 0 in this affine index", span, help_line)
    if axis.letter in terms:
        message = f"axis {axis.letter} stands twice in one index"
        raise NotationError("E0107", message, span, "add its coefficients: `(2i)` for `(i+i)`")
    terms[axis.letter] = syntax.Term(sign * (1 if number is None else number), axis, extent)
    return 0


def _refuse_tail(reader: Reader, start: int) -> None:
    """Refuse what is glued to a pattern and cannot belong to it."""
    c = reader.peek()
    if c == "" or c not in WORD | {"."}:
        return
    stop = reader.past(WORD | {"."}, reader.pos)
    text = reader.text[start:stop]
    lower = text.lower().strip(".")
    help_line = "the pattern of a scalar is `.`; every other pattern is letters, numbers and groups"
    if text.isalpha() and text.isascii():
        help_line = f"axes are lower-case letters: `{lower}`"
    elif "." in text and text.replace(".", "").isdigit():
        help_line = "a constant is a component of its own: `(I | 0.5) >> ij*.~ij`"
    message = f"`{text}` is not a pattern, which is indices from a to z, or `.` alone"
    raise NotationError("E0106", message, reader.span(start, stop), help_line)
