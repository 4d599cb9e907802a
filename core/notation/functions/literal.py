"""The reader of tensor literals: ``[1; 2]`` has an output axis, ``(1, 2)`` an input axis, ``[|1; 2|]`` a batch axis.

    literal = number | "[" items ";" "]" | "(" items "," ")" | "[|" items ";" "|]"

Brackets nest, one kind a level; all items of one bracket have one shape. A number alone in parentheses is a number.
"""

from __future__ import annotations

import re

from ilang.core.diagnostic import NotationError
from ilang.core.ir.functions import Nested
from ilang.core.notation.symbols import Symbols
from ilang.core.source import Source, Span

TOKEN = re.compile(
    r"\s+|(?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)|(?P<sign>\[\||\|\]|[\[\](),;])"
)
OPENS = {"[": ("]", ";", 2), "(": (")", ",", 1), "[|": ("|]", ";", 0)}
"""Closing bracket, separator, and row (0 batch, 1 input, 2 output) of each opening one."""
EXAMPLES = "for example: [1; 2], (1, 2), [|1; 2|]"
DEEPEST = 100
"""Brackets nest no deeper."""


def parse_literal(source: Source, span: Span | None = None) -> Nested:
    """A literal; ``span`` is the part of the source that it is (default: all).

    Raises:
        NotationError: E0148 (no literal), E0149 (ragged: items of one bracket differ in shape).
    """
    reader = _LiteralReader(source, span or Span(source, 0, len(source.text)), TOKEN)
    reader.find()
    literal = reader.read()
    reader.finish()
    return literal


class _Frame:
    """A bracket being read."""

    def __init__(self, text: str, span: Span) -> None:
        self.close, self.separator, self.row = OPENS[text]
        self.span = span
        self.items: list[Nested] = []
        self.separated = True


class _LiteralReader(Symbols):
    """Symbols of a literal, read with a stack of open brackets."""

    code = "E0148"
    form = "expected {wanted} in the literal, found {shown}"
    usual = EXAMPLES

    def strange(self, span: Span) -> NotationError:
        message = f"`{span.text()}` is no part of a tensor literal"
        return NotationError("E0148", message, span, EXAMPLES)

    def read(self) -> Nested:
        """One literal."""
        stack: list[_Frame] = []
        while self.at < len(self.symbols):
            kind, text, span = self.peek()
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
