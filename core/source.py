"""Text with a name, and places in it.

Every node of every IR keeps the ``Span`` of the text that made it, so any step can point at the user's words.
"""

from __future__ import annotations

import re

from ilang.core.record import once, record

SHAPES = "<tensor>"
"""The name of a text that has the shape of a leaf."""

BRIEF = 60
"""The longest text of an expression in an explanation; longer ones are cut."""


@record
class Source:
    """A program's text as the user gave it, and the name messages call it by (``<text>``, ``model.i``).

    ``caller`` is where a user's text calls the definition of a library whose text this is, and ``given`` says what it
    gives for the names of its head: ``y is a, t is b``.
    """

    name: str
    text: str
    caller: Span | None = None
    given: str = ""


@record
class Span:
    """The half-open range ``start..end`` of a source, in code points from 0."""

    __slots__ = ("__dict__", "_brief")
    source: Source
    start: int
    end: int

    def text(self) -> str:
        """The words the span covers."""
        return self.source.text[self.start : self.end]

    def line_up_to(self, length: int) -> str:
        """The words the span covers in one line, cut at a length: of long spans no more is looked at."""
        words = re.compile(r"\S+").finditer(self.source.text, self.start, self.end)
        line = ""
        for word in words:
            line += " " * bool(line) + word.group()
            if length <= len(line):
                break
        return line[:length]

    @once
    def brief(self) -> str:
        """The words the span covers in one line, cut where it is long."""
        text = self.line_up_to(BRIEF + 1)
        return text if len(text) <= BRIEF else text[: BRIEF - 1] + "…"

    def begin(self, length: int, past: int = 0) -> Span:
        """The span of so many characters at the beginning of this one, or ``past`` some of it."""
        return Span(self.source, self.start + past, self.start + past + length)

    def line_number(self) -> int:
        """The line the span starts on, from 1."""
        return self.source.text.count("\n", 0, self.start) + 1

    def column(self) -> int:
        """The code point the span starts at in its line, from 1."""
        return self.start - self.source.text.rfind("\n", 0, self.start)

    def line(self) -> str:
        """The whole first line of the span, without its line end."""
        text = self.source.text
        begin = text.rfind("\n", 0, self.start) + 1
        end = text.find("\n", begin)
        return text[begin:] if end < 0 else text[begin:end]

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of another of the same source."""
        if other.source is not self.source:
            return self
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))


def whole(source: Source) -> Span:
    """The span that covers a source."""
    return Span(source, 0, len(source.text))
