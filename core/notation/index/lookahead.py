"""The text ahead of the cursor: the questions that decide between two readings of a text; the cursor stays.

- a parenthesis with a digit, ``+`` or ``-`` is an affine index, unless it holds a number or a name alone: ``(2i+k)``
- one with a whole number alone is a fixed index inside a pattern, ``oc(0)(0)``, and a constant directly before
  ``>>`` or ``<<``
- a ``|`` begins a schedule where a further one or an axis with a colon follows, and no pattern: ``+ij~i | j:8``
- the longest ``[op] pattern [op pattern] ~ pattern`` is an expression
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container

from ilang.core.notation.lines import brackets
from ilang.core.notation.reader import BLANKS, DIGITS, LETTERS, QUOTED, WORD, WORD_START, Reader
from ilang.core.ops import ARGUMENTS

AFFINE = LETTERS + DIGITS + "+-:" + BLANKS
GUARDING = AFFINE + ",<>="
LEADING_ZERO = re.compile(r"(?<![0-9])0+[1-9]")


def is_affine(reader: Reader, start: int) -> bool:
    """Whether the parenthesis at ``start`` is an affine group: ``(2i+k)``, and not ``(f | 2)`` or ``(-1)``."""
    inside = _inside(reader, start)
    return inside is not None and not (_is_number(inside.removeprefix("-")) or _is_word(inside))


def is_index(reader: Reader, start: int) -> bool:
    """Whether the parenthesis at ``start``, inside a pattern, is an index: an affine group, or one position."""
    inside = _inside(reader, start)
    return inside is not None and not _is_word(inside)


def opens_expression(reader: Reader, start: int) -> bool:
    """Whether the parenthesis at ``start``, where a component begins, is the first index of an expression."""
    if is_affine(reader, start):
        return True
    if not is_index(reader, start):
        return False
    after = reader.past(BLANKS, reader.text.index(")", start) + 1)
    wired = reader.text.startswith((">>", "<<"), after, reader.end)
    return not wired and matches_form(reader)


def _inside(reader: Reader, start: int) -> str | None:
    """The text in a parenthesis if an index may have it: a digit or a sign among letters; else None."""
    stop = reader.past(AFFINE, start + 1)
    if stop >= reader.end or reader.text[stop] != ")":
        return None
    inside = reader.text[start + 1 : stop].strip(BLANKS)
    return inside if any(c in DIGITS + "+-" for c in inside) else None


def _is_word(text: str) -> bool:
    return text[:1] in LETTERS and all(c in WORD for c in text)


def _is_number(text: str) -> bool:
    mantissa, _, exponent = text.partition("e")
    return mantissa.isdigit() and (text == mantissa or exponent.lstrip("+-").isdigit())


def matches_form(reader: Reader) -> bool:
    """Whether ``[op] pattern [op pattern] ~ pattern`` stands at the cursor."""
    at = reader.pos
    symbol = reader.operator(at)
    argued = opens_argument(reader, at)
    at = past_pattern(reader, at + len(symbol) + argued)
    if at < 0:
        return False
    if not symbol:
        symbol = reader.operator(at)
        if symbol:
            at = past_pattern(reader, at + len(symbol))
    if at < 0 or at >= reader.end or reader.text[at] != "~":
        return False
    return past_leaf(reader, at + 1) >= 0


def opens_argument(reader: Reader, start: int) -> bool:
    """Whether ``>@ij`` or ``<@ij`` stands there: letters or numbers follow, and not the group of a position."""
    at = start + len(reader.operator(start))
    if reader.text[start : at + 1] not in ARGUMENTS:
        return False
    first = reader.past(BLANKS, at + 1)
    return first < reader.end and reader.text[first] in LETTERS + DIGITS


def begins_application(reader: Reader, definitions: Container[str]) -> int:
    """The place of the parenthesis of arguments, if a component and that stand at the cursor; else -1.

    ``f(``, ``(f >> g)(``, ``einsum("...")(``; not an expression that begins so, nor the pattern ``f(2i+k)``, unless f
    is a definition.
    """
    c = reader.peek()
    if c == "(":
        if opens_expression(reader, reader.pos):
            return -1
        stop = past_bracket(reader, reader.pos)
    elif c and c in WORD_START:
        stop = reader.past(WORD, reader.pos)
        word = reader.text[reader.pos : stop]
        after = past_member(reader, stop) if word == "einx" else reader.past(BLANKS, stop)
        opens = reader.text.startswith("(", after, reader.end)
        if not opens or matches_form(reader):
            return -1
        if is_affine(reader, after) and word not in definitions:
            return -1
        if word in QUOTED:
            stop = past_bracket(reader, after)
    else:
        return -1
    after = reader.past(BLANKS, stop)
    return after if 0 <= stop and reader.text.startswith("(", after, reader.end) else -1


def past_member(reader: Reader, start: int) -> int:
    """Past ``.name`` and the blanks around it, where that stands after a word that ends at ``start``; past blanks."""
    dot = reader.past(BLANKS, start)
    if not reader.text.startswith(".", dot, reader.end):
        return dot
    name = reader.past(BLANKS, dot + 1)
    return reader.past(BLANKS, reader.past(WORD, name))


def past_bracket(reader: Reader, start: int) -> int:
    """Past the bracket that closes the one at ``start``; -1 if none does."""
    depths = brackets(reader.text, start, reader.end)
    return next((at + 1 for at, depth in depths if not depth), -1)


def past_pattern(reader: Reader, start: int) -> int:
    """Past the operand that begins after blanks, and the blanks that follow it; -1 if there is none."""
    at = past_leaf(reader, start)
    if at < 0 or not reader.text.startswith("@", at, reader.end):
        return at
    return past_leaf(reader, at + 1)


def past_leaf(reader: Reader, start: int) -> int:
    """Past the pattern, or position, that begins after blanks, and the blanks that follow it; -1 if there is none."""
    start = reader.past(BLANKS, start)
    if reader.text.startswith(".", start, reader.end):
        return _past_guards(reader, start + 1)
    if reader.text.startswith(":", start, reader.end):
        return _past_axis(reader, start + 1)
    if reader.text.startswith("@", start, reader.end):
        return _past_position(reader, start + 1)
    stop = start
    while True:
        at = reader.past(LETTERS + DIGITS, stop)
        if LEADING_ZERO.search(reader.text, stop, at):
            return -1
        if reader.text.startswith("(", at, reader.end) and is_index(reader, at):
            at = reader.text.index(")", at) + 1
        if at == stop:
            break
        stop = at
    if stop == start or (stop < reader.end and reader.text[stop] in WORD):
        return -1
    return _past_guards(reader, stop)


def _past_position(reader: Reader, start: int) -> int:
    """Past the axis, or the group, of a position, and blanks; -1 if there is none."""
    stop = min(start + 1, reader.end)
    if reader.text.startswith("(", start, reader.end):
        stop = reader.past(AFFINE, stop)
        if not reader.text.startswith(")", stop, reader.end):
            return -1
        return reader.past(BLANKS, stop + 1)
    return _past_axis(reader, start)


def _past_axis(reader: Reader, start: int) -> int:
    """Past the axis that stands there, and blanks; -1 if there is none."""
    stop = min(start + 1, reader.end)
    return reader.past(BLANKS, stop) if reader.text[start:stop] in tuple(LETTERS) else -1


def _past_guards(reader: Reader, start: int) -> int:
    """Past blanks, and past guards if they follow."""
    at = reader.past(BLANKS, start)
    if not reader.text.startswith("[", at, reader.end):
        return at
    stop = reader.past(GUARDING, at + 1)
    return reader.past(BLANKS, stop + 1) if reader.text.startswith("]", stop, reader.end) else at


def opens_schedule(reader: Reader, named: bool = False) -> bool:
    """Whether a schedule begins after the blanks at the cursor; the cursor stays. ``named``: axes may be words."""
    bar = reader.past(BLANKS, reader.pos)
    if not reader.text.startswith("|", bar, reader.end):
        return False
    at = reader.past(BLANKS, bar + 1)
    if at >= reader.end:
        return False
    if reader.text[at] == "|":
        return not _is_unary_or(reader, at)
    stop = axis_end(reader, at, named)
    return stop > at and has_colon(reader, stop)


def axis_end(reader: Reader, at: int, named: bool) -> int:
    """The end of the axis of a schedule at a position; the position itself where none stands there."""
    if reader.text[at] not in (WORD_START if named else LETTERS):
        return at
    return reader.past(WORD, at) if named else at + 1


def _is_unary_or(reader: Reader, at: int) -> bool:
    """Whether ``|| pattern ~`` stands at a position."""
    if not reader.text.startswith("||", at, reader.end):
        return False
    after = past_pattern(reader, at + 2)
    return after >= 0 and reader.text.startswith("~", after, reader.end)


def has_colon(reader: Reader, start: int) -> bool:
    """Whether a colon stands after the blanks at a position."""
    return reader.text.startswith(":", reader.past(BLANKS, start), reader.end)


def is_over_names(reader: Reader, definitions: Collection[str]) -> bool:
    """Whether a body over names stands at the cursor, and no program; ``sum(ij)~i`` is a program gone wrong."""
    if reader.skip() == "{":
        return True
    at = begins_application(reader, definitions)
    if at < 0:
        return False
    stop = past_bracket(reader, at)
    return stop < 0 or not reader.text.startswith("~", reader.past(BLANKS, stop), reader.end)
