"""The reader of shapes in heads, ``[b|i->o, p]``, and of shape strings, ``64|784``.

    shape = [ row "|" ] [ row "->" ] row               batch, input, output
    row   = { axis } [ variable { axis } ]             variable: "..." or ".." name ".."
    axis  = [ "'" label "'" ] ( name | number )

With a comma somewhere names have several characters, else each letter is an axis; a run of digits is one size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ilang.core.diagnostic import NotationError
from ilang.core.ir.functions import AxisNote, RowNote, ShapeNote
from ilang.core.ir.rows import KINDS
from ilang.core.notation.reader import number_below
from ilang.core.notation.symbols import Symbol, Symbols
from ilang.core.source import Source, Span

LEXEME = re.compile(
    r"(?P<variable>\.\.(?:\.|[A-Za-z_][A-Za-z0-9_]*\.\.))|(?P<label>'[^'\n]*')|(?P<number>[0-9]+)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>->|[|,])|\s+"
)
LARGEST = 2**62 - 1
HELP = "a shape is `batch|input->output`, axes divided by commas: `x[b|i->o, 10]`"


def read_shape(source: Source, span: Span | None = None) -> ShapeNote:
    """The shape that a part of a source is; without ``span``, all of it.

    Raises:
        NotationError: E0195.
    """
    whole = span or Span(source, 0, len(source.text))
    return _Shape(source, whole).read()


class _Shape(Symbols):
    """Symbols of a shape, taken from the left."""

    code = "E0195"
    form = "expected {wanted} before {shown}"
    usual = HELP
    text_end = "the end of the shape"

    def __init__(self, source: Source, whole: Span) -> None:
        super().__init__(source, whole, LEXEME)
        self.find()
        if "," not in whole.text():
            self.symbols = [part for each in self.symbols for part in _letters(each)]

    def strange(self, span: Span) -> NotationError:
        return NotationError("E0195", f"`{span.text()}` is no part of a shape", span, HELP)

    def read(self) -> ShapeNote:
        """Up to three rows."""
        rows = self.rows(self.row, "E0195", HELP)
        self.finish()
        batch, inner, output = map(_placed, rows, KINDS)
        return ShapeNote((batch, inner, output), self.whole)

    def row(self) -> RowNote:
        """Axes, and perhaps a row variable between them."""
        axes: list[AxisNote] = []
        variable: str | None = None
        leading = 0
        comma = False
        while True:
            kind, text, span = self.peek()
            if kind == "variable":
                if variable is not None:
                    message = "two row variables stand in one row"
                    help_line = "one row has one place where axes are inserted"
                    raise NotationError("E0195", message, span, help_line)
                variable, leading = text.strip("."), len(axes)
                self.at += 1
            elif kind in ("word", "number", "label"):
                axes.append(self.axis())
            elif comma or text != ",":
                if comma:
                    raise self.unexpected("an axis")
                break
            comma = False
            if self.peek()[1] == ",":
                self.at += 1
                comma = True
        if variable is None:
            return RowNote((), None, tuple(axes))
        return RowNote(tuple(axes[:leading]), variable, tuple(axes[leading:]))

    def axis(self) -> AxisNote:
        """``b``, ``64``, ``'rgb' 3``."""
        kind, text, start = self.peek()
        label: str | None = None
        if kind == "label":
            label = text[1:-1]
            self.at += 1
            if not label.strip():
                raise NotationError("E0195", "this label is empty", start, HELP)
        kind, text, span = self.peek()
        if kind not in ("word", "number"):
            raise self.unexpected("a letter or a size after the label")
        self.at += 1
        if kind == "word":
            return AxisNote(text, label, start.to(span))
        size = number_below(text, LARGEST + 1)
        if size is None:
            message = f"the size {text.lstrip('0')[:20]} is more than {LARGEST}"
            raise NotationError("E0195", message, span, "no array is as long")
        return AxisNote(size, label, start.to(span))


def _letters(symbol: Symbol) -> Iterator[Symbol]:
    """A word letter by letter, a run of digits in it as one number; any other symbol as it is."""
    if symbol.kind != "word":
        yield symbol
        return
    for part in re.finditer(r"[0-9]+|.", symbol.text):
        start = symbol.span.start
        span = Span(symbol.span.source, start + part.start(), start + part.end())
        yield Symbol("number" if part.group().isdigit() else "word", part.group(), span)


def _placed(row: RowNote | None, kind: str) -> RowNote:
    """The row of a shape; the variable of ``...`` is called after it, with dots before."""
    if row is None:
        return RowNote((), None, ())
    variable = f"...{kind}" if row.variable == "" else row.variable
    return RowNote(row.leading, variable, row.trailing)
