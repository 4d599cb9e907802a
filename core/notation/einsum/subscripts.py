"""The reader of einsum specifications as NumPy writes them: ``"ij,jk->ik"``, ``"...ii->...i"``, ``"ij,jk"``.

    specification = [ term { "," term } ] [ "->" term ]
    term          = { letter } [ "..." { letter } ]

Every letter is an axis of its own, white space is free. Without ``->`` the result has what ``...`` stands for, then the
letters that stand once, in alphabetic order. (NumPy, ``numpy.einsum``.)

Example:
    in:   ij,jk->ik
    out:  the specification `ij; jk => ik`
"""

from __future__ import annotations

import re
from collections import Counter

from ilang.core.diagnostic import NotationError
from ilang.core.ir.spec import Axis, AxisLabel, ShapeSpec, Spec, SpecRow, output_shape
from ilang.core.source import Source, Span

EXTENDED = re.compile(r"[|;*+^&<=0-9_]|\.\.\w+\.\.")
"""A sign that only an extended specification has."""
WORDS = re.compile(r"(?<![^\W\d_])[^\W\d_]{3,}(?=\s+[^\W\d_.])|(?<=[^\W\d_])\s+[^\W\d_]{3,}")
"""A word of three letters beside another in one term: axes with names, as other notations have them."""
ELLIPSIS = "..."
VARIABLE = "...output"
"""The row variable that an ellipsis is."""


def is_subscripts(text: str) -> bool:
    """Whether a specification is written as NumPy writes it."""
    return not EXTENDED.search(text) and not WORDS.search(text)


def parse_subscripts(source: Source, whole: Span) -> Spec:
    """The specification that a part of a source is, every shape of it an output row.

    Raises:
        NotationError: E0140 (a sign), E0143 (``...`` twice in an operand), E0152 (the result).
    """
    left, arrow, right = whole.text().partition("->")
    operands, start = [], whole.start
    for operand in left.split(","):
        operands.append(_term(Span(source, start, start + len(operand))))
        start += len(operand) + 1
    if arrow:
        result = _term(Span(source, whole.end - len(right), whole.end))
        _check_result(result, operands)
        if not any(output_row(shape).variable for shape in operands):
            result = output_shape(SpecRow((), None, result.axes()), result.span)
    else:
        result = _implicit(operands, Span(source, whole.end, whole.end))
    return Spec(tuple(operands), result, False, whole.text(), whole, subscripts=True)


def _term(span: Span) -> ShapeSpec:
    """One shape: its letters, and the row variable where an ellipsis stands."""
    axes: list[AxisLabel] = []
    place: int | None = None
    at = span.start
    text = span.source.text
    while at < span.end:
        sign = text[at]
        if text.startswith(ELLIPSIS, at) and at + len(ELLIPSIS) <= span.end:
            if place is not None:
                dots = Span(span.source, at, at + len(ELLIPSIS))
                raise NotationError(
                    "E0143",
                    "`...` stands twice in one operand",
                    dots,
                    "one operand has one place where axes are inserted",
                )
            place, at = len(axes), at + len(ELLIPSIS)
            continue
        if sign.isalpha():
            axes.append(AxisLabel(sign, Span(span.source, at, at + 1)))
        elif not sign.isspace():
            raise NotationError(
                "E0140",
                f"`{sign}` is no part of an einsum specification",
                Span(span.source, at, at + 1),
                'as NumPy writes it: letters, `,` and `->`, for example `ij,jk->ik`; else `"ij; jk => ik"`',
            )
        at += 1
    if place is None:
        return output_shape(SpecRow((), None, tuple(axes)), span)
    return output_shape(SpecRow(tuple(axes[:place]), VARIABLE, tuple(axes[place:])), span)


def output_row(shape: ShapeSpec) -> SpecRow:
    """The row in which a shape as NumPy writes it has its axes."""
    return shape.rows[2]


def letters(shape: ShapeSpec) -> tuple[str, ...]:
    """The letters of a shape as NumPy writes it, in order."""
    return tuple(axis.name for axis in shape.axes() if isinstance(axis, AxisLabel))


def _implicit(operands: list[ShapeSpec], span: Span) -> ShapeSpec:
    """The result that a specification without ``->`` means."""
    counts = Counter(letter for shape in operands for letter in letters(shape))
    axes: tuple[Axis, ...] = tuple(
        AxisLabel(letter, span) for letter in sorted(counts) if counts[letter] == 1
    )
    dots = any(output_row(shape).variable is not None for shape in operands)
    return output_shape(SpecRow((), VARIABLE if dots else None, axes), span)


def check_dots(spec: Spec) -> None:
    """Refuse, in NumPy's spelling, a result without the ``...`` of an operand, which may only stand for no axes there.

    Raises:
        NotationError: E0152.
    """
    shapes = spec.operands if spec.subscripts else ()
    dotted = next((shape for shape in shapes if output_row(shape).variable), None)
    if dotted is not None and output_row(spec.result).variable is None:
        raise NotationError(
            "E0152",
            f"the operand `{dotted.span.text().strip()}` has `...`, and the result has not",
            spec.result.span,
            "write `...` in the result too, or letters for the axes that are summed",
        )


def _check_result(result: ShapeSpec, operands: list[ShapeSpec]) -> None:
    """Each letter of a result stands there once, and in an operand."""
    known = {letter for shape in operands for letter in letters(shape)}
    listed: set[str] = set()
    for axis in result.axes():
        assert isinstance(axis, AxisLabel)
        if axis.name in listed:
            message = f"axis {axis.name} stands twice in the result"
            help_line = "each axis of a result has a letter of its own"
            raise NotationError("E0152", message, axis.span, help_line)
        if axis.name not in known:
            message = f"axis {axis.name} of the result stands in no operand"
            help_line = f"axes of the operands: {', '.join(sorted(known)) or 'none'}"
            raise NotationError("E0152", message, axis.span, help_line)
        listed.add(axis.name)
