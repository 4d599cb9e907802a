"""The reader of tensor literals: ``[1; 2]`` has an output axis, ``(1, 2)`` an input axis, ``[|1; 2|]`` a batch axis.

    literal = number | "[" items ";" "]" | "(" items "," ")" | "[|" items ";" "|]"

Brackets nest, one kind a level; all items of one bracket have one shape. A number alone in parentheses is a number.
"""

from __future__ import annotations

import re

from ilang.core.diagnostic import NotationError
from ilang.core.ir.functions import Nested
from ilang.core.source import Source, Span

TOKEN = re.compile(
    r"\s+|(?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)|(?P<sign>\[\||\|\]|[\[\](),;])"
)
OPENS = {"[": ("]", ";", 2), "(": (")", ",", 1), "[|": ("|]", ";", 0)}
"""Closing bracket, separator, and row (0 batch, 1 input, 2 output) of each opening one."""
DEEPEST = 100
"""Brackets nest no deeper."""


def parse_literal(source: Source, span: Span | None = None) -> Nested:
    """A literal; ``span`` is the part of the source that it is (default: all).

    Raises:
        NotationError: E0148 (no literal), E0149 (ragged: items of one bracket differ in shape).
    """
    reader = _Reader(source, span or Span(source, 0, len(source.text)))
    literal = reader.read()
    if reader.at < len(reader.tokens):
        raise reader.unexpected("the end")
    return literal


class _Frame:
    """A bracket being read."""

    def __init__(self, text: str, span: Span) -> None:
        self.close, self.separator, self.row = OPENS[text]
        self.span = span
        self.items: list[Nested] = []
        self.separated = True


class _Reader:
    """Tokens of a literal, read with a stack of open brackets."""

    def __init__(self, source: Source, whole: Span) -> None:
        self.source = source
        self.last = Span(source, whole.end, whole.end)
        self.tokens: list[tuple[str, str, Span]] = []
        self.at = 0
        position = whole.start
        while position < whole.end:
            match = TOKEN.match(source.text, position, whole.end)
            if match is None:
                sign_span = Span(source, position, position + 1)
                message = f"`{sign_span.text()}` is no part of a tensor literal"
                raise NotationError(
                    "E0148", message, sign_span, "for example: [1; 2], (1, 2), [|1; 2|]"
                )
            if match.lastgroup is not None:
                span = Span(source, match.start(), match.end())
                self.tokens.append((match.lastgroup, match.group(), span))
            position = match.end()

    def unexpected(self, wanted: str) -> NotationError:
        """The error for whatever stands here."""
        _, text, span = self.tokens[self.at] if self.at < len(self.tokens) else ("", "", self.last)
        message = f"expected {wanted} in the literal, found {f'`{text}`' if text else 'the end'}"
        return NotationError("E0148", message, span, "for example: [1; 2], (1, 2), [|1; 2|]")

    def read(self) -> Nested:
        """One literal."""
        stack: list[_Frame] = []
        while self.at < len(self.tokens):
            kind, text, span = self.tokens[self.at]
            top = stack[-1] if stack else None
            done: Nested | None = None
            if (top is None or top.separated) and kind == "number":
                done = Nested((float(text),), (), span)
            elif (top is None or top.separated) and text in OPENS and len(stack) < DEEPEST:
                stack.append(_Frame(text, span))
            elif top is not None and not top.separated and text == top.separator:
                top.separated = True
            elif top is not None and top.items and text == top.close:
                done = self._closed(stack.pop(), span)
            else:
                break
            self.at += 1
            if done is None:
                continue
            if not stack:
                return done
            stack[-1].items.append(done)
            stack[-1].separated = False
        wanted = (
            "a number or a bracket" if not stack or stack[-1].separated else f"`{stack[-1].close}`"
        )
        raise self.unexpected(wanted)

    @staticmethod
    def _closed(frame: _Frame, end: Span) -> Nested:
        first = frame.items[0]
        if frame.close == ")" and len(frame.items) == 1 and not first.levels:
            return first
        for item in frame.items:
            if item.levels != first.levels:
                message = "the items of this bracket differ in shape"
                help_line = "give every item the same brackets with the same number of items"
                raise NotationError("E0149", message, frame.span.to(end), help_line)
        numbers = tuple(number for item in frame.items for number in item.numbers)
        return Nested(numbers, ((frame.row, len(frame.items)), *first.levels), frame.span.to(end))
