"""The symbols of a notation that stands in quotes: found by a pattern, taken from the left."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ilang.core.diagnostic import NotationError
from ilang.core.ir.rows import KINDS
from ilang.core.source import Source, Span

R = TypeVar("R")


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

    def finish(self, wanted: str = "") -> None:
        """Nothing may follow; ``wanted`` is what might, in an error for something else."""
        if self.peek().kind != "end":
            raise self.unexpected(wanted or self.text_end)

    def demand(self, sign: str, wanted: str) -> None:
        """Take a sign that has to stand here."""
        if not self.take(sign):
            raise self.unexpected(wanted)

    def rows(self, read: Callable[[], R], code: str, help_line: str) -> tuple[R | None, ...]:
        """The batch, input and output rows of a shape, divided by `|` and `->`; a row that is left out is None.

        Raises:
            NotationError: of the ``code``, where a divider stands a second time, or too late.
        """
        rows = {"output": read()}
        while (divider := self.take("|", "->")) is not None:
            kind = "batch" if divider.text == "|" else "input"
            if kind in rows or (kind == "batch" and "input" in rows):
                message = f"`{divider.text}` stands a second time, or too late, in one shape"
                raise NotationError(code, message, divider.span, help_line)
            rows[kind] = rows["output"]
            rows["output"] = read()
        return tuple(map(rows.get, KINDS))

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
