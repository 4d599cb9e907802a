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
from typing import TypeVar, cast

from ilang.core import limits
from ilang.core.diagnostic import Label, NotationError
from ilang.core.ir import einx
from ilang.core.notation.reader import number_below
from ilang.core.notation.symbols import Symbol, Symbols
from ilang.core.record import record, replace
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
    """Alternatives, divided by `->` or `,`: where there are any, the only item of a list."""

    sign: str
    parts: tuple[einx.Expression, ...]
    span: Span


def read_einx(source: Source, span: Span | None = None) -> Written:
    """The operation that a part of a source is (default: all of it).

    Raises:
        NotationError: E0160 to E0165.
        MeaningError: E0250 (too many operands).
    """
    whole = span or Span(source, 0, len(source.text))
    limits.check_expressions(1 + whole.text().count(","), whole, is_exact=False)
    reader = _EinxReader(source, whole)
    read = reader.operation()
    reader.finish()
    sides = _alternatives(read, "->")
    if len(sides) > 2:
        message = "there is more than one `->`"
        raise NotationError("E0164", message, whole, "an operation has inputs and outputs")
    divided = (_alternatives(side, ",") for side in sides)
    return Written(
        tuple(tuple(einx.rebuilt(each, lambda _: None) for each in side) for side in divided), whole
    )


class _EinxReader(Symbols):
    """Symbols of an operation, taken from the left."""

    code = "E0161"
    form = "expected {wanted}, found {shown}"
    usual = HELP

    def __init__(self, source: Source, whole: Span) -> None:
        super().__init__(source, whole, TOKEN)
        self.depth = 0
        self.find()
        for one, other in pairwise(self.symbols):
            _check_apart(one, other)

    def finish(self, wanted: str = "") -> None:
        """Nothing may follow, least of all what closes no bracket."""
        token = self.peek()
        if token.text and token.text in ")]":
            raise NotationError("E0162", f"this `{token.text}` was never opened", token.span, HELP)
        super().finish(wanted)

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

    def operation(self) -> einx.Expression:
        """Two sides at most, each of expressions."""
        return self._divided(("->", "|"), lambda: self._divided((",",), self._items))

    def _divided(
        self, signs: Sequence[str], read: Callable[[], einx.Expression]
    ) -> einx.Expression:
        start = self.peek().span
        parts = [read()]
        while self.take(*signs) is not None:
            parts.append(read())
        if len(parts) == 1:
            return parts[0]
        return _expression(
            [_Divided(signs[0], tuple(parts), self._since(start))], self._since(start)
        )

    def _since(self, start: Span) -> Span:
        """From a place to the last token that was taken; nothing where none was."""
        last = self.before() if self.at else start
        if last.end <= start.start:
            return Span(start.source, start.start, start.start)
        return Span(start.source, start.start, last.end)

    def _items(self) -> einx.Expression:
        start, items = self.peek().span, list[einx.Item]()
        while (token := self.peek()).kind in ("word", "number", "dots") or token.text in ("(", "["):
            items.append(self._item())
        if self.peek().text == "+":
            message = "`+` stands in parentheses of its own, between axes"
            help_line = (
                "write `(a + b)`; what is one part of several axes has parentheses: `(a + (b c))`"
            )
            raise NotationError("E0163", message, self.peek().span, help_line)
        return _expression(items, self._since(start))

    def _item(self) -> einx.Item:
        start = self.peek().span
        dots = self.take("...")
        if dots is not None:
            inner: einx.Item = einx.Axis(einx.HIDDEN, dots.span)
        else:
            inner = self._part()
            dots = self.take("...") if self._is_close() else None
            if dots is None:
                return inner
        if self.peek().text == "..." and self._is_close():
            message = "two ellipses follow each other"
            help_line = "what repeats a repetition stands in parentheses: `(a...)...`"
            raise NotationError("E0161", message, self.peek().span, help_line)
        return einx.Repetition((inner,), self.at - 1, start.to(dots.span))

    def _is_close(self) -> bool:
        """Whether no blank stands before the next token."""
        return self.before().end == self.peek().span.start

    def _part(self) -> einx.Item:
        token = self.peek()
        self.at += 1
        if token.kind == "word":
            return einx.Axis(token.text, token.span)
        if token.kind == "number":
            size = number_below(token.text, LARGEST)
            if size is None:
                message = "this size is too large"
                raise NotationError("E0160", message, token.span, "no array is as long")
            return einx.UnnamedAxis(size, self.at - 1, token.span)
        return self._group(token)

    def _group(self, opening: Symbol) -> einx.Item:
        self.depth += 1
        if self.depth > DEEPEST:
            message = f"more than {DEEPEST} parentheses and brackets stand inside each other"
            raise NotationError(
                "E0162", message, opening.span, "group less: `(a b c)` for `((a b) c)`"
            )
        joined = self._joined(opening) if opening.text == "(" else None
        items = self.operation().items if joined is None else joined
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
            return einx.Concatenation(items, span)
        return einx.Bracket(items, span) if opening.text == "[" else einx.Composition(items, span)

    def _joined(self, opening: Symbol) -> tuple[einx.Item, ...] | None:
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

    def _operand(self, opening: Symbol) -> einx.Item:
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


def _expression(items: Sequence[einx.Item | _Divided], span: Span) -> einx.Expression:
    return einx.Expression(tuple(cast("Sequence[einx.Item]", items)), span)


def _alternatives(read: einx.Expression, sign: str) -> list[einx.Expression]:
    """The alternatives on the sides of a sign, wherever it stands, as texts without it."""
    divided = cast("einx.Item | _Divided", read.items[0]) if read.items else None
    if isinstance(divided, _Divided) and divided.sign == sign:
        return [alternative for part in divided.parts for alternative in _alternatives(part, sign)]
    if isinstance(divided, _Divided):
        parts = [_alternatives(part, sign) for part in divided.parts]
        return [
            _expression([replace(divided, parts=chosen)], read.span)
            for chosen in _choices(parts, read.span, sign)
        ]
    if all(isinstance(item, (einx.Axis, einx.UnnamedAxis)) for item in read.items):
        return [read]
    items = [_item_alternatives(item, sign) for item in read.items]
    return [_expression(chosen, read.span) for chosen in _choices(items, read.span, sign)]


def _item_alternatives(item: einx.Item, sign: str) -> list[einx.Item]:
    if isinstance(item, einx.Axis | einx.UnnamedAxis) or not item.items:
        return [item]
    span = item.items[0].span.to(item.items[-1].span)
    if isinstance(item, einx.Concatenation):
        span = item.span
    inner = _alternatives(einx.Expression(item.items, span), sign)
    return [replace(item, items=each.items) for each in inner]


def _choices(parts: Sequence[Sequence[T]], span: Span, sign: str) -> list[tuple[T, ...]]:
    """One alternative of each part, all first ones, all second ones; a part that has one is the same in all."""
    counts = sorted({len(part) for part in parts} - {1})
    if len(counts) > 1:
        message = f"the parts have {' and '.join(map(str, counts))} alternatives at `{sign}`"
        help_line = "parts beside each other have equally many, or one"
        raise NotationError("E0164", message, span, help_line)
    count = counts[0] if counts else 1
    return [tuple(part[n if len(part) > 1 else 0] for part in parts) for n in range(count)]
