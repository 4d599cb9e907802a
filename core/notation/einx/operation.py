"""The reader of operations in einx notation: ``"b (s [r])... c -> b s... c"``.

    operation = side [ "->" side ]                    `|` means `->`
    side      = list { "," list }
    list      = { item }                              divided by white space; empty: rank 0
    item      = part [ "..." ] | "..."
    part      = name | number | "(" operation ")" | "[" operation "]" | "(" operand { "+" operand } ")"
    operand   = name | number | "(" ... ")"

`->` and `,` inside parentheses and brackets are distributed: ``a [b->c]`` is ``a [b] -> a [c]``, and ``a (b, c), d`` is
``a b, a c, d``. Of the parts of a list, those with one alternative belong to every alternative, and all others have the
same number of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from ilang.core import limits
from ilang.core.diagnostic import Label, NotationError
from ilang.core.ir import einx
from ilang.core.notation.symbols import Symbol, Symbols
from ilang.core.record import record
from ilang.core.source import Source, Span

T = TypeVar("T")
TOKEN = re.compile(
    r"[ \t\r\n\f]+|(?P<dots>\.\.\.)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[0-9]+)|(?P<sign>->|[|,+()\[\]])"
)
LARGEST = 2**62
"""Sizes stay below this."""
DEEPEST = 100
"""Parentheses and brackets inside each other, at most."""
CLOSING = {"(": ")", "[": "]"}
HELP = "axes are names or numbers with blanks between them: `b (s [r])... c -> b s... c`"


@record
class Written:
    """An operation as it is written: the expressions of each side, one side where there is no `->`."""

    sides: tuple[tuple[einx.Expression, ...], ...]
    span: Span


@record
class _Divided:
    """Alternatives: of `->`, or of `,`."""

    sign: str
    parts: tuple[_List | _Divided, ...]
    span: Span


@record
class _List:
    """Items side by side, some of which may have alternatives inside."""

    items: tuple[_Item, ...]
    span: Span


@record
class _Group:
    """The text in parentheses or brackets."""

    opening: str
    inner: _List | _Divided
    span: Span


@record
class _Joined:
    """``(a + b)``."""

    parts: tuple[_Item, ...]
    span: Span


@record
class _Repeated:
    """An item with an ellipsis after it, which is token number ``place``."""

    inner: _Item
    place: int
    span: Span


_Item = einx.Axis | einx.UnnamedAxis | _Group | _Joined | _Repeated


def read_einx(source: Source, span: Span | None = None) -> Written:
    """The operation that a part of a source is (default: all of it).

    Raises:
        NotationError: E0160 to E0165.
        MeaningError: E0250 (too many operands).
    """
    whole = span or Span(source, 0, len(source.text))
    limits.check_expressions(1 + whole.text().count(","), whole, is_exact=False)
    reader = _EinxReader(source, whole)
    read = reader.operation("")
    reader.end()
    sides = _alternatives(read, "->")
    if len(sides) > 2:
        message = "there is more than one `->`"
        raise NotationError("E0164", message, whole, "an operation has inputs and outputs")
    return Written(tuple(tuple(map(_list, _alternatives(side, ","))) for side in sides), whole)


class _EinxReader(Symbols):
    """Symbols of an operation, taken from the left."""

    def __init__(self, source: Source, whole: Span) -> None:
        super().__init__(source, whole, TOKEN)
        self.depth = 0
        self.find()
        for one, other in pairwise(self.symbols):
            _check_apart(one, other)

    def end(self) -> None:
        """Nothing may follow."""
        token = self.peek()
        if token.kind == "end":
            return
        if token.text in ")]":
            raise NotationError("E0162", f"this `{token.text}` was never opened", token.span, HELP)
        raise self.unexpected("the end")

    def unexpected(self, wanted: str) -> NotationError:
        """The error for whatever stands here."""
        token = self.peek()
        present = f"`{token.text}`" if token.text else "the end"
        return NotationError("E0161", f"expected {wanted}, found {present}", token.span, HELP)

    def strange(self, span: Span) -> NotationError:
        word, help_line = _word(span.source, span.start), HELP
        if span.text() == ".":
            help_line = "an ellipsis is three dots, `...`; names are letters, digits and `_`"
        elif span.text() in "{}":
            help_line = "axes are grouped with `( )`, and marked with `[ ]`"
        message = f"`{span.text()}` is no part of an einx operation"
        if word.end - word.start > 1:
            message = f"`{word.text()}` is no name: `{span.text()}` is no part of an einx operation"
        return NotationError("E0160", message, span, help_line, [Label(word, "")])

    def operation(self, opening: str) -> _List | _Divided:
        """Two sides at most, each of expressions."""
        return self._divided(("->", "|"), lambda: self._divided((",",), self._items))

    def _divided(
        self, signs: Sequence[str], read: Callable[[], _List | _Divided]
    ) -> _List | _Divided:
        start = self.peek().span
        parts = [read()]
        while self.take(*signs) is not None:
            parts.append(read())
        return parts[0] if len(parts) == 1 else _Divided(signs[0], tuple(parts), self._since(start))

    def _since(self, start: Span) -> Span:
        """From a place to the last token that was taken; nothing where none was."""
        last = self.before() if self.at else start
        if last.end <= start.start:
            return Span(start.source, start.start, start.start)
        return Span(start.source, start.start, last.end)

    def _items(self) -> _List:
        start, items = self.peek().span, []
        while (token := self.peek()).kind in ("word", "number", "dots") or token.text in ("(", "["):
            items.append(self._item())
        if self.peek().text == "+":
            message = "`+` stands in parentheses of its own, between axes"
            help_line = (
                "write `(a + b)`; what is one part of several axes has parentheses: `(a + (b c))`"
            )
            raise NotationError("E0163", message, self.peek().span, help_line)
        return _List(tuple(items), self._since(start))

    def _item(self) -> _Item:
        start = self.peek().span
        dots = self.take("...")
        if dots is not None:
            inner: _Item = einx.Axis(einx.HIDDEN, dots.span)
        else:
            inner = self._part()
            dots = self.take("...") if self._is_close() else None
            if dots is None:
                return inner
        if self.peek().text == "..." and self._is_close():
            message = "two ellipses follow each other"
            help_line = "what repeats a repetition stands in parentheses: `(a...)...`"
            raise NotationError("E0161", message, self.peek().span, help_line)
        return _Repeated(inner, self.at - 1, start.to(dots.span))

    def _is_close(self) -> bool:
        """Whether no blank stands before the next token."""
        return self.before().end == self.peek().span.start

    def _part(self) -> _Item:
        token = self.peek()
        self.at += 1
        if token.kind == "word":
            return einx.Axis(token.text, token.span)
        if token.kind == "number":
            digits = token.text.lstrip("0") or "0"
            if len(digits) > 20 or int(digits) >= LARGEST:
                raise NotationError(
                    "E0160", "this size is too large", token.span, "no array is as long"
                )
            return einx.UnnamedAxis(int(digits), self.at - 1, token.span)
        return self._group(token)

    def _group(self, opening: Symbol) -> _Item:
        self.depth += 1
        if self.depth > DEEPEST:
            message = f"more than {DEEPEST} parentheses and brackets stand inside each other"
            raise NotationError(
                "E0162", message, opening.span, "group less: `(a b c)` for `((a b) c)`"
            )
        joined = self._joined(opening) if opening.text == "(" else None
        inner = self.operation(opening.text) if joined is None else None
        closing = self.peek()
        if self.take(CLOSING[opening.text]) is None:
            wanted, word = CLOSING[opening.text], {"(": "parenthesis", "[": "bracket"}[opening.text]
            if closing.kind == "end":
                message = f"this {word} `{opening.text}` is never closed"
                raise NotationError("E0162", message, opening.span, f"write `{wanted}`")
            labels = [Label(opening.span, "opened here")]
            message = f"expected `{wanted}`, found `{closing.text}`"
            raise NotationError("E0162", message, closing.span, HELP, labels)
        self.depth -= 1
        span = opening.span.to(closing.span)
        if joined is not None:
            return _Joined(joined, span)
        assert inner is not None
        return _Group(opening.text, inner, span)

    def _joined(self, opening: Symbol) -> tuple[_Item, ...] | None:
        """The parts of a concatenation, where that is what the parentheses hold."""
        start, depth = self.at, 0
        for token in self.symbols[start:]:
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
            if depth < 0 or (token.text == "+" and not depth):
                break
        else:
            return None
        if token.text != "+":
            return None
        parts = [self._operand(opening)]
        while self.take("+") is not None:
            parts.append(self._operand(opening))
        return tuple(parts)

    def _operand(self, opening: Symbol) -> _Item:
        token = self.peek()
        if token.kind not in ("word", "number") and token.text != "(":
            present = f"`{token.text}`" if token.text else "the end"
            message = f"expected a part of the concatenation, found {present}"
            help_line = "the parts are axes, numbers, or axes in parentheses: `(a + 1 + (b c))`"
            labels = [Label(opening.span, "in this concatenation")]
            raise NotationError("E0163", message, token.span, help_line, labels)
        part = self._part()
        after = self.peek()
        if after.text not in ("+", ")"):
            present = f"`{after.text}`" if after.text else "the end"
            message = f"expected `+` or `)` in the concatenation, found {present}"
            help_line = "a part of several axes has parentheses of its own: `(a + (b c))`"
            raise NotationError("E0163", message, after.span, help_line)
        return part


def _word(source: Source, position: int) -> Span:
    """The word around a position, between blanks, parentheses and signs."""
    text, ends = source.text, " \t\r\n\f()[],+|"
    start, end = position, position + 1
    while start > 0 and text[start - 1] not in ends and text[start - 1] not in "\"'":
        start -= 1
    while end < len(text) and text[end] not in ends and text[end] not in "\"'":
        end += 1
    return Span(source, start, end)


def _check_apart(one: Symbol, other: Symbol) -> None:
    """Refuse two items without a blank between them."""
    if one.span.end != other.span.start:
        return
    ends = one.kind in ("word", "number", "dots") or one.text in (")", "]")
    begins = other.kind in ("word", "number") or other.text in ("(", "[")
    if other.kind == "dots" and one.kind == "dots":
        return
    if ends and begins:
        both = one.span.to(other.span)
        message = f"a blank is missing between `{one.text}` and `{other.text}`"
        if one.kind == "number" and other.kind == "word":
            message = f"`{both.text()}` is neither a name nor a number"
        raise NotationError("E0160", message, both, "write a blank between two axes")


def _alternatives(read: _List | _Divided, sign: str) -> list[_List | _Divided]:
    """The alternatives on the sides of a sign, wherever it stands, as texts without it."""
    if isinstance(read, _Divided):
        if read.sign == sign:
            return [alternative for part in read.parts for alternative in _alternatives(part, sign)]
        parts = [_alternatives(part, sign) for part in read.parts]
        count = _count(parts, read.span, sign)
        return [
            _Divided(read.sign, tuple(_chosen(part, n) for part in parts), read.span)
            for n in range(count)
        ]
    if all(isinstance(item, (einx.Axis, einx.UnnamedAxis)) for item in read.items):
        return [read]
    items = [_item_alternatives(item, sign) for item in read.items]
    count = _count(items, read.span, sign)
    return [_List(tuple(_chosen(item, n) for item in items), read.span) for n in range(count)]


def _item_alternatives(item: _Item, sign: str) -> list[_Item]:
    match item:
        case einx.Axis() | einx.UnnamedAxis():
            return [item]
        case _Group():
            inner = _alternatives(item.inner, sign)
            return [_Group(item.opening, each, item.span) for each in inner]
        case _Repeated():
            repeated = _item_alternatives(item.inner, sign)
            return [_Repeated(each, item.place, item.span) for each in repeated]
        case _Joined():
            parts = [_item_alternatives(part, sign) for part in item.parts]
            count = _count(parts, item.span, sign)
            return [
                _Joined(tuple(_chosen(part, n) for part in parts), item.span) for n in range(count)
            ]


def _count(parts: Sequence[Sequence[T]], span: Span, sign: str) -> int:
    """The number of alternatives: those of all parts that have several."""
    counts = sorted({len(part) for part in parts} - {1})
    if len(counts) > 1:
        message = f"the parts have {' and '.join(map(str, counts))} alternatives at `{sign}`"
        help_line = "parts beside each other have equally many, or one"
        raise NotationError("E0164", message, span, help_line)
    return counts[0] if counts else 1


def _chosen(part: Sequence[T], number: int) -> T:
    return part[0] if len(part) == 1 else part[number]


def _list(read: _List | _Divided) -> einx.Expression:
    assert isinstance(read, _List)
    return einx.Expression(tuple(each for item in read.items for each in _item(item)), read.span)


def _item(item: _Item) -> tuple[einx.Item, ...]:
    """An item without alternatives; a bracket around nothing vanishes."""
    match item:
        case einx.Axis() | einx.UnnamedAxis():
            return (item,)
        case _Group():
            items = _list(item.inner).items
            if item.opening == "(":
                return (einx.Composition(items, item.span),)
            return (einx.Bracket(items, item.span),) if items else ()
        case _Joined():
            parts = (_item(part)[0] for part in item.parts)
            return (einx.Concatenation(tuple(parts), item.span),)
        case _Repeated():
            inner = _item(item.inner)
            return (einx.Repetition(inner, item.place, item.span),) if inner else ()
