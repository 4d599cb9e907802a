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

from ilang.core.notation.lines import past_bracket
from ilang.core.notation.reader import BLANKS, LETTERS, QUOTED, WORD, WORD_START, Reader
from ilang.core.ops import ARGUMENTS, SYMBOLS

_B = rf"[{BLANKS}]*+"
_AFFINE = rf"[a-z0-9+\-:{BLANKS}]"
_WORD = rf"\({_B}[a-z][a-z0-9]*+{_B}\)"
_NUMBER = rf"\({_B}-?[0-9]++(?:e[+-]*[0-9]++)?{_B}\)"
_INDEX = rf"(?!{_WORD})\((?=[^)]*[0-9+-]){_AFFINE}*+\)"
_GUARDS = rf"{_B}(?:\[[a-z0-9+\-:{BLANKS},<>=]*+\]{_B})?+"
_LEAF = (
    rf"(?>{_B}(?:\.{_GUARDS}|:[a-z]{_B}|@(?:\({_AFFINE}*+\)|[a-z]){_B}"
    rf"|(?:[a-z]|0++(?![0-9])|[1-9][0-9]*+|{_INDEX})++(?![A-Za-z0-9_]){_GUARDS}))"
)
"""An input or an output: indices, of which a number has no leading zero, and guards, or a position, and blanks."""
_OPERATOR = f"(?>{'|'.join(map(re.escape, SYMBOLS))})"
_ARGUED = rf"(?:{'|'.join(map(re.escape, ARGUMENTS))})(?={_B}[a-z0-9])"

AFFINE = re.compile(rf"(?!{_NUMBER}){_INDEX}")
INDEX = re.compile(_INDEX)
LEAF = re.compile(_LEAF)
ARGUED = re.compile(_ARGUED)
OPERATOR = re.compile(_OPERATOR)
FIRST = re.compile(rf"(?>{_ARGUED}|{_OPERATOR})")

CALLED = re.compile(
    rf"([^~|;{{}}\n]*~[a-z.]+)[{BLANKS}]*(\((?:[A-Za-z0-9_.,{BLANKS}]|\([^()]*\))*\))"
)
"""A form with values in parentheses behind it, as those of a function: ``+ijk~ij(p)``."""


def is_affine(reader: Reader, start: int) -> bool:
    """Whether the parenthesis at ``start`` is an affine group: ``(2i+k)``, and not ``(f | 2)`` or ``(-1)``."""
    return reader.matches(AFFINE, start) is not None


def is_index(reader: Reader, start: int) -> bool:
    """Whether the parenthesis at ``start``, inside a pattern, is an index: an affine group, or one position."""
    return reader.matches(INDEX, start) is not None


def opens_expression(reader: Reader, start: int) -> bool:
    """Whether the parenthesis at ``start``, where a component begins, is the first index of an expression."""
    if is_affine(reader, start):
        return True
    if not is_index(reader, start):
        return False
    after = reader.past(BLANKS, reader.text.index(")", start) + 1)
    wired = reader.at((">>", "<<"), after)
    return not wired and matches_form(reader)


def matches_form(reader: Reader) -> bool:
    """Whether ``[op] pattern [op pattern] ~ pattern`` stands at the cursor."""
    unary = _past(FIRST, reader, reader.pos)
    if unary >= 0 and _ends_form(reader, past_pattern(reader, unary)):
        return True
    left = past_pattern(reader, reader.pos)
    if left < 0:
        return False
    right = _past(OPERATOR, reader, left)
    binary = right >= 0 and _ends_form(reader, past_pattern(reader, right))
    return binary or _ends_form(reader, left)


def applied(text: str) -> str:
    """The application to write for a form that stands bare: ``(+ij~i)(x)``; ``(+ij~i)(p)`` for ``+ij~i(p)``."""
    called = CALLED.fullmatch(text)
    return f"({called[1]}){called[2]}" if called else f"({text})(x)"


def _ends_form(reader: Reader, start: int) -> bool:
    """Whether ``~ pattern`` stands at a position; not where that is -1."""
    tilde = start >= 0 and reader.at("~", start)
    return tilde and past_leaf(reader, start + 1) >= 0


def _past(pattern: re.Pattern[str], reader: Reader, start: int) -> int:
    """Past what matches at a position; -1 if nothing does."""
    match = reader.matches(pattern, start)
    return -1 if match is None else match.end()


def opens_argument(reader: Reader, start: int) -> bool:
    """Whether ``>@ij`` or ``<@ij`` stands there: letters or numbers follow, and not the group of a position."""
    return reader.matches(ARGUED, start) is not None


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
    elif c in WORD_START:
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
    if not reader.at(".", dot):
        return dot
    name = reader.past(BLANKS, dot + 1)
    return reader.past(BLANKS, reader.past(WORD, name))


def past_pattern(reader: Reader, start: int) -> int:
    """Past the operand that begins after blanks, and the blanks that follow it; -1 if there is none."""
    stop = past_leaf(reader, start)
    looks_up = stop >= 0 and reader.at("@", stop)
    return past_leaf(reader, stop + 1) if looks_up else stop


def past_leaf(reader: Reader, start: int) -> int:
    """Past the pattern, or position, that begins after blanks, and the blanks that follow it; -1 if there is none."""
    return _past(LEAF, reader, start)


def opens_schedule(reader: Reader, named: bool = False) -> bool:
    """Whether a schedule begins after the blanks at the cursor; the cursor stays. ``named``: axes may be words."""
    at = past_bar(reader)
    if at < 0:
        return False
    if reader.text[at] == "|":
        return not _is_unary_or(reader, at)
    stop = axis_end(reader, at, named)
    return stop > at and has_colon(reader, stop)


def past_bar(reader: Reader) -> int:
    """Past the ``|`` after the blanks at the cursor, and the blanks that follow; -1 if none or nothing stands there."""
    bar = reader.past(BLANKS, reader.pos)
    if not reader.at("|", bar):
        return -1
    at = reader.past(BLANKS, bar + 1)
    return at if at < reader.end else -1


def axis_end(reader: Reader, at: int, named: bool) -> int:
    """The end of the axis of a schedule at a position; the position itself where none stands there."""
    if reader.text[at] not in (WORD_START if named else LETTERS):
        return at
    return reader.past(WORD, at) if named else at + 1


def _is_unary_or(reader: Reader, at: int) -> bool:
    """Whether ``|| pattern ~`` stands at a position."""
    if not reader.at("||", at):
        return False
    after = past_pattern(reader, at + 2)
    return after >= 0 and reader.at("~", after)


def has_colon(reader: Reader, start: int) -> bool:
    """Whether a colon stands after the blanks at a position."""
    return reader.at(":", reader.past(BLANKS, start))


def is_over_names(reader: Reader, definitions: Collection[str]) -> bool:
    """Whether a body over names stands at the cursor, and no program; ``sum(ij)~i`` is a program gone wrong."""
    if reader.skip() == "{":
        return True
    at = begins_application(reader, definitions)
    if at < 0:
        return False
    stop = past_bracket(reader, at)
    return stop < 0 or not reader.at("~", reader.past(BLANKS, stop))
