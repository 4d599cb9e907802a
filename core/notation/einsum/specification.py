"""The reader of extended einsum specifications: ``"..v..|ijk => ..v..kji"``.

    spec   = shape { ";" shape } "=>" shape
    shape  = [ row "|" ] [ row "->" ] row              batch, input, output
    row    = { axis } [ variable { axis } ]            variable: "..." or ".." name ".."
    axis   = name | "_" | number | window | name { "^" name }
    window = [ number "*" ] name [ ( "<" | "=" )? "+" [ number "*" ] name ] [ "+" number ]

Without any of ``, * + ^ & <`` (or ``=`` outside ``=>``) every letter and every digit is an axis of its own; with one,
axes are names. White space is free.
"""

from __future__ import annotations

import re

from ilang.core import limits
from ilang.core.diagnostic import NotationError
from ilang.core.ir.rows import KINDS
from ilang.core.ir.spec import (
    Axis,
    AxisLabel,
    Blank,
    Fixed,
    Joined,
    ShapeSpec,
    Spec,
    SpecRow,
    Window,
    names_of,
)
from ilang.core.notation.einsum.subscripts import is_subscripts, parse_subscripts
from ilang.core.notation.reader import number_below
from ilang.core.notation.symbols import Symbols
from ilang.core.source import Source, Span

NAMED = re.compile(r"[,*+^&<]|=(?!>)")
NO_SUBSCRIPT = re.compile(r"[a-zA-Z.,\s]*([^a-zA-Z.,\s>-])[\w.,\s]*->[\w.\s]*")
"""Subscripts as NumPy writes them, with a sign that names no axis there."""
TOKEN = re.compile(
    r"\s+|(?P<variable>\.\.[A-Za-z_][A-Za-z0-9_]*\.\.)|(?P<ellipsis>\.\.\.)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>[0-9]+)|(?P<sign>=>|->|[|;,*+^<=-])"
)
SINGLE = re.compile(
    r"\s+|(?P<variable>\.\.[A-Za-z_][A-Za-z0-9_]*\.\.)|(?P<ellipsis>\.\.\.)|(?P<word>[A-Za-z_])"
    r"|(?P<number>[0-9])|(?P<sign>=>|->|[|;-])"
)
LARGEST = 2**31
"""Numbers in a specification stay below this."""


def parse_spec(source: Source, span: Span | None = None) -> Spec:
    """A whole specification; ``span`` is the part of the source that it is (default: all).

    A specification without ``=>`` that has nothing else of this language is NumPy's.

    Raises:
        NotationError: E0140 to E0147, E0152.
        MeaningError: E0250 (too many operands).
    """
    whole = span or Span(source, 0, len(source.text))
    _check_length(whole)
    if is_subscripts(whole.text()):
        return parse_subscripts(source, whole)
    try:
        return _read(source, whole)
    except NotationError:
        spelling = None if "=>" in whole.text() else _respelled(whole.text())
        strange = NO_SUBSCRIPT.fullmatch(whole.text())
        if spelling is None and strange is not None:
            message = f"`{strange[1]}` is no axis of subscripts as NumPy writes them"
            help_line = "their axes are letters: `ij,jk->ik`, `ij->i`"
            at = whole.start + strange.start(1)
            raise NotationError("E0141", message, Span(source, at, at + 1), help_line) from None
        if spelling is None:
            raise
        message = "a specification has `;` between its inputs and `=>` before its result"
        help_line = f"write `{spelling}`"
        raise NotationError("E0141", message, whole, help_line) from None


def _check_length(whole: Span) -> None:
    """Refuse a text of too many operands before any is read; one of ``,`` and ``;`` is between two of them."""
    text = whole.text()
    limits.check_expressions(1 + max(text.count(","), text.count(";")), whole, is_exact=False)


def _respelled(text: str) -> str | None:
    """A specification as NumPy writes it in the spelling of this language, if it can be read then."""
    from ilang.core.notation.guidance import specification

    spelling = specification(text)
    if spelling is None:
        return None
    try:
        parse_spec(Source("<help>", spelling))
    except NotationError:
        return None
    return spelling


def _read(source: Source, whole: Span) -> Spec:
    reader = _EinsumReader(source, whole)
    operands = [reader.shape()]
    while reader.take(";"):
        operands.append(reader.shape())
    reader.demand("=>", "`;` or `=>`")
    result = reader.shape()
    reader.finish()
    spec = Spec(tuple(operands), result, reader.named, whole.text(), whole)
    _check_names(spec)
    return spec


def parse_shape(source: Source) -> tuple[ShapeSpec, bool]:
    """One shape, and whether its axes are names of several characters.

    Raises:
        NotationError: E0140 to E0145.
    """
    reader = _EinsumReader(source, Span(source, 0, len(source.text)))
    shape = reader.shape()
    reader.finish()
    return shape, reader.named


class _EinsumReader(Symbols):
    """Symbols of a specification, taken from the left."""

    code = "E0141"
    form = "expected {wanted} in the einsum specification, found {shown}"
    usual = "for example: `ij; jk => ik`, `...|i->o => ...|o`"

    def __init__(self, source: Source, whole: Span) -> None:
        self.named = NAMED.search(whole.text()) is not None
        super().__init__(source, whole, TOKEN if self.named else SINGLE)
        self.find()

    def strange(self, span: Span) -> NotationError:
        message = f"`{span.text()}` is no part of an einsum specification"
        help_line = (
            "axes are letters, digits and `_`; rows are divided by `|` and `->`, operands by `;`"
        )
        if span.text() in ("(", "+"):
            help_line = "windows are those of index expressions: `(i+k)*k~ik >> +ik~i`"
        return NotationError("E0140", message, span, help_line)

    def shape(self) -> ShapeSpec:
        """Up to three rows."""
        start = self.peek()[2]
        help_line = "a shape is batch|input->output, each at most once"
        rows = zip(KINDS, self.rows(self._row, "E0142", help_line), strict=True)
        batch, inner, output = (self._split(row or [], kind) for kind, row in rows)
        return ShapeSpec((batch, inner, output), start.to(self.before()))

    def _row(self) -> list[Axis | str]:
        """Axes and row variables as they stand; a row variable is its name."""
        items: list[Axis | str] = []
        variables, comma = 0, -1
        while True:
            kind, text, span = self.peek()
            if kind in ("variable", "ellipsis"):
                self.at += 1
                items.append(text.strip("."))
                variables += 1
                if variables > 1:
                    message = "two row variables stand in one row"
                    help_line = "one row has one place where axes are inserted"
                    raise NotationError("E0143", message, span, help_line)
            elif kind in ("word", "number"):
                items.append(self._axis())
            elif not items or comma == self.at or not self.take(","):
                return items
            else:
                comma = self.at

    @staticmethod
    def _split(items: list[Axis | str], kind: str) -> SpecRow:
        """The axes before and after the row variable; that of ``...`` is named after its row."""
        place = next((n for n, item in enumerate(items) if isinstance(item, str)), None)
        axes = [item for item in items if not isinstance(item, str)]
        if place is None:
            return SpecRow((), None, tuple(axes))
        return SpecRow(tuple(axes[:place]), str(items[place]) or f"...{kind}", tuple(axes[place:]))

    def _number(self) -> int:
        _, text, span = self.peek()
        self.at += 1
        number = number_below(text, LARGEST)
        if number is None:
            raise NotationError(
                "E0144", f"the number {text} is too large", span, "it must be below 2^31"
            )
        return number

    def _axis(self) -> Axis:
        kind, text, span = self.peek()
        if kind == "number":
            number = self._number()
            if self.named and self.take("*"):
                return self._window(number, span)
            return Fixed(number, span)
        if text == "_":
            self.at += 1
            return Blank(span)
        if not self.named:
            self.at += 1
            return AxisLabel(text, span)
        return self._window(None, span)

    def _name(self) -> tuple[str, Span]:
        kind, text, span = self.peek()
        if kind != "word" or text == "_":
            raise self.unexpected("the name of an axis")
        self.at += 1
        return text, span

    def _window(self, stride: int | None, start: Span) -> Axis:
        """The axis that starts with a name: a plain one, a window, or a concatenation."""
        over, end = self._name()
        if stride is None and self.take("^"):
            parts = [over]
            while True:
                name, end = self._name()
                parts.append(name)
                if not self.take("^"):
                    return self._joined(parts, start.to(end))
        padded = self.take("=")
        valid = None if padded else self.take("<")
        dilation, kernel, offset = 1, None, 0
        plus = self.take("+")
        if plus is None and (padded or valid):
            raise self.unexpected("`+` and the name of the window")
        while plus or (kernel is None and not (padded or valid) and self.take("-")):
            sign = 1 if plus else -1
            number = None
            if self.peek()[0] == "number":
                end = self.peek()[2]
                number = self._number()
            if number is not None and not (sign > 0 and kernel is None and self.take("*")):
                offset += sign * number
            elif sign > 0 and kernel is None:
                dilation = 1 if number is None else number
                kernel, end = self._name()
            else:
                raise self.unexpected("a number")
            plus = self.take("+")
        return self._checked(
            Window(
                1 if stride is None else stride,
                over,
                dilation,
                kernel,
                bool(padded),
                offset,
                start.to(end),
            ),
            stride is None,
        )

    @staticmethod
    def _joined(parts: list[str], span: Span) -> Joined:
        if len(set(parts)) < len(parts):
            message = f"a part stands twice in the concatenation {span.text()}"
            raise NotationError("E0146", message, span, "give each part a name of its own")
        return Joined(tuple(parts), span)

    @staticmethod
    def _checked(window: Window, bare: bool) -> Axis:
        if window.stride < 1 or window.dilation < 1:
            message = "a stride and a dilation are at least 1"
            raise NotationError("E0145", message, window.span, "for example `2*o<+k`")
        if window.over == window.kernel:
            message = f"{window.over} is both what {window.span.text()} walks and its window"
            raise NotationError("E0145", message, window.span, "give the window another name")
        if bare and window.kernel is None and not window.offset and not window.padded:
            return AxisLabel(window.over, window.span)
        return window


def _check_names(spec: Spec) -> None:
    """No name is both an axis and a row variable."""
    variables = {row.variable for shape in spec.shapes() for row in shape.rows}
    for shape in spec.shapes():
        for axis in shape.axes():
            for name in names_of(axis):
                if name in variables:
                    message = f"{name} names both an axis and a row variable"
                    raise NotationError(
                        "E0147", message, axis.span, "give one of them another name"
                    )
