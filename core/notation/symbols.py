"""The symbols of a notation that stands in quotes: found by a pattern, taken from the left."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import NamedTuple

from ilang.core.diagnostic import NotationError
from ilang.core.source import Source, Span


class Symbol(NamedTuple):
    """A word, a number, a sign: the group of the pattern that it is, its text, its place."""

    kind: str
    text: str
    span: Span


class Symbols(ABC):
    """The symbols of a part of a source; they are found when they are first looked at.

    ``code``, ``form`` and ``usual`` are the parts of the error for a symbol where another belongs: its code, what it
    says was expected (``wanted``) beside what stands there (``shown``), and a usual spelling. ``text_end`` is what
    the end of the text is called.
    """

    code: str
    form: str
    usual: str
    text_end = "the end"

    def __init__(self, source: Source, whole: Span, pattern: re.Pattern[str]) -> None:
        """Symbols are groups of the pattern; blanks are none."""
        self.source = source
        self.whole = whole
        self.pattern = pattern
        self.position = whole.start
        self.symbols: list[Symbol] = []
        self.at = 0
        self.last = Span(source, whole.end, whole.end)

    @abstractmethod
    def strange(self, span: Span) -> NotationError:
        """The error for a character that begins no symbol."""

    def unexpected(self, wanted: str) -> NotationError:
        """The error for whatever stands here."""
        _, text, span = self.peek()
        shown = f"`{text}`" if text else self.text_end
        return NotationError(
            self.code, self.form.format(wanted=wanted, shown=shown), span, self.usual
        )

    def finish(self) -> None:
        """Nothing may follow."""
        if self.peek().kind != "end":
            raise self.unexpected(self.text_end)

    def find(self, count: int | None = None) -> None:
        """Find so many symbols, or all of them."""
        while self.position < self.whole.end and (count is None or len(self.symbols) < count):
            match = self.pattern.match(self.source.text, self.position, self.whole.end)
            if match is None:
                raise self.strange(Span(self.source, self.position, self.position + 1))
            if match.lastgroup is not None:
                span = Span(self.source, match.start(), match.end())
                self.symbols.append(Symbol(match.lastgroup, match.group(), span))
            self.position = match.end()

    def peek(self, ahead: int = 0) -> Symbol:
        """The next symbol, or one so many further on; of kind ``end`` where there is none."""
        number = self.at + ahead
        self.find(number + 1)
        return self.symbols[number] if number < len(self.symbols) else Symbol("end", "", self.last)

    def take(self, *texts: str) -> Symbol | None:
        """Take one of some signs if it stands here."""
        symbol = self.peek()
        if symbol.kind == "end" or symbol.text not in texts:
            return None
        self.at += 1
        return symbol

    def before(self) -> Span:
        """The place of the last symbol that was taken; the end where none was."""
        return self.symbols[self.at - 1].span if self.at else self.last
