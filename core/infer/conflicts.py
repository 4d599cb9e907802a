"""Failures of shape inference: every message names the axis or the rows, both values and where both come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from ilang.core.diagnostic import Label, ShapeError
from ilang.core.ir.rows import Composed, Dim, Known, Origin, Row, extent_of
from ilang.core.source import Span


def refusal(
    code: str, message: str, places: Sequence[tuple[Origin, str]], help_line: str
) -> ShapeError:
    """An error that points at every place that has one in the text; the first is underlined."""
    labels = [Label(origin.span, text) for origin, text in places if origin.span is not None]
    if labels and labels[0].span.text().startswith("square("):
        help_line = "`square` says that both rows of a matrix are equal; a power is `x *. x`"
    return ShapeError(code, message, labels[0].span if labels else None, help_line, labels)


MEETINGS = {"E0505": "makes them equal", "E0510": "compares them, and neither stretches"}
"""The manner in which two axes meet, by the code of a refusal, as messages say it."""
NOT_WHOLE = (
    "the stride must divide the axis exactly: pad (`=`), crop, or change the stride or the window"
)
TOO_SHORT = "make the axis longer, or the parts or the window smaller"
ALONG = re.compile(r"(?:sum|max|min|elements)\(.*;.*\)", re.DOTALL)
"""A reduction along axes that it names."""
UNWRITTEN_BATCH = (
    "the first axis of an input is its batch where its head writes none; "
    "all of them are output axes in `op f(x[i, j])`"
)
"""The help where a batch meets a row without axes."""
CONTRACTED = (
    "`*` and `/` sum over an input row; element by element is `*.` and `/.`, as in `x *. y`"
)
"""The help where rows meet that `*` contracts: products of elements are meant more often."""


def sizes_differ(one: Known, other: Known, origin: Origin, code: str) -> ShapeError:
    """Two known sizes that must agree and do not."""
    if one.origin.role == other.origin.role == "written":
        return _written_twice(one, other)
    message = (
        f"{one.origin.says} is {one.size} and {other.origin.says} is {other.size}, "
        f"but {origin.says} {MEETINGS[code]}"
    )
    places = [(one.origin, f"{one.size} here"), (other.origin, f"{other.size} here")]
    places.append((origin, "meets both here"))
    help_line = "give both the same size; only a number, an axis of index 0 or an axis of open size is repeated"
    if 1 in (one.size, other.size):
        help_line = "an axis whose size 1 is written is not repeated: leave the axis out, or write the index 0"
    return refusal(code, message, places, help_line)


def _written_twice(one: Known, other: Known) -> ShapeError:
    """Two numbers written for one extent."""
    # the number of an axis is said first, that of a dimension is beside it
    first, second = sorted((one, other), key=lambda known: known.origin.says.startswith("axis "))
    message = (
        f"one extent is written as {second.size} ({second.origin.says}) "
        f"and as {first.size} ({first.origin.says})"
    )
    places = [(second.origin, f"{second.size} here"), (first.origin, f"{first.size} here")]
    return refusal("E0504", message, places, "write the same number, or a name, in both places")


def labels_differ(one: tuple[str, Origin], other: tuple[str, Origin], origin: Origin) -> ShapeError:
    """Two axes of one size and two units."""
    message = (
        f"{one[1].says} is labelled {one[0]} and {other[1].says} is labelled {other[0]}, "
        f"but {origin.says} makes them one axis"
    )
    places = [
        (one[1], f"{one[0]} here"),
        (other[1], f"{other[0]} here"),
        (origin, "both meet here"),
    ]
    return refusal("E0511", message, places, "give both axes one label, or leave one unlabelled")


def axes_differ(one: str, other: str, counts: tuple[int, int], origin: Origin) -> ShapeError:
    """Two rows that must have the same number of axes and do not."""
    if origin.role == "slice":
        message = f"{origin.says} takes the first batch axis, and there is none"
        help_line = "batch axes stand before the `|` of a shape: `5|3`"
        return refusal("E0512", message, [(origin, "here")], help_line)
    message = (
        f"{_meeting(origin)}: {one} has {axes(counts[0])} and {other} has {axes(counts[1])}, "
        "and here the rows have the same axes"
    )
    help_line = "write one entry per axis, or a row variable (`...`) for the axes in between"
    written = origin.span.brief() if origin.span is not None else ""
    if ALONG.match(written) and counts[1] < counts[0]:
        message = (
            f"`{written}` goes along an axis that is not there: it needs a row of "
            f"{axes(counts[0])}, and {other} has {counts[1]}"
        )
        help_line = "axes count from 0, those of the batch first; -1 is the last output axis"
    elif origin.role == "contracted":
        help_line = CONTRACTED
    elif not min(counts) and origin.rows.startswith("its batch row"):
        help_line = UNWRITTEN_BATCH
    elif not min(counts) and origin.role is not None:
        help_line = "a row that is left out has no axes: write its axes, or `...` for any number"
    code = {"leaf": "E0503", "result": "E0501"}.get(origin.role or "", "E0512")
    return refusal(code, message, [(origin, "here")], help_line)


def too_many(result: str, operand: str, counts: tuple[int, int], origin: Origin) -> ShapeError:
    """An operand with more axes than its closed result row."""
    message = (
        f"{_meeting(origin)}: the operand row {operand} has {axes(counts[1])}, "
        f"more than the {counts[0]} of {result} that it must fit"
    )
    help_line = "an operand may lack axes of the result, never have more: reduce it first, or contract fewer axes"
    if origin.role == "contracted":
        help_line = CONTRACTED
    return refusal("E0513", message, [(origin, "here")], help_line)


def _meeting(origin: Origin) -> str:
    return f"{origin.says} ({origin.rows})" if origin.rows else origin.says


def infinite(row: str, origin: Origin) -> ShapeError:
    """Rows that would have to be longer than themselves."""
    message = f"{origin.says}: the row {row} would need more axes than it has, without end"
    help_line = "the tensor is used where it would get more axes: name the axes, or give its shape"
    return refusal("E0514", message, [(origin, "here")], help_line)


def contains_itself(axis: str, origin: Origin) -> ShapeError:
    """An axis that is a part of itself."""
    message = f"{origin.says}: {axis} would have to be longer than itself"
    return refusal("E0515", message, [(origin, "here")], "use another name for one of the two axes")


def out_of_range(known: Known, size: int, origin: Origin) -> ShapeError:
    """A fixed index past the end of its axis."""
    message = f"{origin.says} reads index {size - 1}, but {known.origin.says} has size {known.size}"
    places = [(origin, f"index {size - 1} here"), (known.origin, f"size {known.size} here")]
    return refusal(
        "E0574", message, places, f"indices of this axis are 0 to {extent_of(known) - 1}"
    )


def not_whole(
    axis: str, quotient: tuple[int, int], origin: Origin, source: Known | None = None
) -> ShapeError:
    """An affine axis whose size leaves a remainder; ``source`` is the axis it is computed from."""
    total, divisor = quotient
    message = f"{origin.says}: {_given(source)}{axis} would be {total}/{divisor}, which is no whole number"
    return refusal("E0517", message, _places(origin, source), NOT_WHOLE)


def too_short(
    axis: str, sizes: tuple[int, int], origin: Origin, source: Known | None = None
) -> ShapeError:
    """A part of an affine or concatenated axis that nothing is left for; ``sizes``: what is left, what must be."""
    size, least = sizes
    message = (
        f"{origin.says}: {_given(source)}{size} elements would be left for {axis}, "
        f"which has at least {least}"
    )
    return refusal("E0518", message, _places(origin, source), TOO_SHORT)


def _given(source: Known | None) -> str:
    """The words on what a computed size is computed from."""
    return f"{source.origin.says} is {source.size}, so " if source is not None else ""


def _places(origin: Origin, source: Known | None) -> list[tuple[Origin, str]]:
    places = [(origin, "here")]
    if source is not None and source.origin.span is not None:
        places.insert(0, (source.origin, f"{source.size} here"))
    return places


def counts_differ(left: int, right: int, origin: Origin) -> ShapeError:
    """Rows whose number of elements is known to be another."""
    message = f"{origin.says}, but the sizes multiply to {left}, not {right}"
    help_line = "give one value for each element of the output axes, or of all axes"
    return refusal("E0519", message, [(origin, "here")], help_line)


def undetermined(
    subject: str, origin: Origin, uses: Sequence[Origin] = (), others: Sequence[str] = ()
) -> ShapeError:
    """A parameter whose sizes nothing gives; ``uses`` it has, and ``others`` that have the same axes."""
    message = f"nothing determines {subject}, and sizes of parameters are never guessed"
    places = [(origin, "open here"), *((use, "used here") for use in uses[:2])]
    if others:
        help_line = (
            f"give the sizes of {subject}, or of what has the same axes: {', '.join(others[:4])}"
        )
    else:
        help_line = f"give the sizes of {subject}: no operand beside it has any"
        written = origin.span.text() if origin.span is not None else ""
        if written.startswith('"') and "output row" in subject:
            help_line += f"; {written} 16 has an output axis of 16"
    return refusal("E0520", message, places, help_line)


def never_given(name: str, origin: Origin, how: str = "") -> ShapeError:
    """An axis whose size nothing gives; ``how`` it can be given."""
    message = f"{origin.says}: the size of {name} is never given"
    help_line = (
        f'give {name} a size: an operand that has it, or in tensor expressions SetSize("{name}", 3)'
    )
    return refusal("E0521", message, [(origin, "here")], how or help_line)


def composed_otherwise(whole: Known, c: Composed, sizes: Sequence[int]) -> ShapeError:
    """Parts that are all known, and another number of elements."""
    message = (
        f"{c.origin.says}: {whole.origin.says} is {whole.size}, "
        f"and {_sized(c.names, sizes)} make {prod(sizes)}"
    )
    help_line = (
        f"leave one of {', '.join(c.names)} open, or give sizes whose product is {whole.size}"
    )
    return refusal(
        "E0577", message, [(c.origin, "here"), (whole.origin, f"{whole.size} here")], help_line
    )


def not_divided(part: int, whole: Known, c: Composed, sizes: Sequence[int]) -> ShapeError:
    """An axis that its known parts do not divide; ``sizes`` are those of the parts but one."""
    name, others = c.names[part], [*c.names[:part], *c.names[part + 1 :]]
    message = (
        f"{c.origin.says}: {whole.origin.says} is {whole.size}, and {_sized(others, sizes)}: "
        f"{name} would be {whole.size}/{prod(sizes)}, which is no whole number"
    )
    help_line = f"give an extent that {' x '.join(others)} divides, or another size of {others[-1]}"
    return refusal(
        "E0577", message, [(c.origin, "here"), (whole.origin, f"{whole.size} here")], help_line
    )


def any_part(name: str, whole: Known, c: Composed) -> ShapeError:
    """A part that may have any size, because another one has no element."""
    message = (
        f"{c.origin.says}: a part of ({' '.join(c.names)}) has no element, "
        f"so {name} may have any size"
    )
    places = [(c.origin, "here"), (whole.origin, f"{whole.size} here")]
    return refusal("E0578", message, places[:1], f"give the size of {name}")


def unknown_parts(names: Sequence[str], c: Composed) -> ShapeError:
    """Parts that nothing gives."""
    names = list(dict.fromkeys(names))
    message = (
        f"{c.origin.says}: nothing gives the size of {' and '.join(names)} in ({' '.join(c.names)})"
    )
    help_line = f"give the size of {' or '.join(names)}: one part of a composition may be open"
    return refusal("E0578", message, [(c.origin, "here")], help_line)


def _sized(names: Sequence[str], sizes: Sequence[int]) -> str:
    """``a = 4 and b = 2``."""
    return " and ".join(f"{name} = {size}" for name, size in zip(names, sizes, strict=True))


def wrong_rank(
    name: str, rank: int, read: int, span: Span | None = None, labels: Sequence[Label] = ()
) -> ShapeError:
    """An array of another rank than the program reads."""
    message = f"{name} has rank {rank}, but the program reads it with rank {read}"
    return ShapeError("E0503", message, span, f"pass an array of rank {read} as {name}", labels)


def ranks_differ(counts: tuple[int, int], origin: Origin) -> ShapeError:
    """A value that is read by another number of dimensions than it has."""
    message = f"{origin.says}: a value of rank {counts[1]} is read with rank {counts[0]}"
    help_line = (
        "write one index per axis: the batch axes first, then the output axes, then the input axes"
    )
    return refusal("E0501", message, [(origin, "here")], help_line)


def axes(count: int) -> str:
    """A number of axes in words."""
    return f"{count or 'no'} ax{'is' if count == 1 else 'es'}"


def row_text(row: Row) -> str:
    """A row in messages: ``[3, .., 5]``, unknown axes as ``?``."""
    return f"[{', '.join(axis_texts(row, '..'))}]"


def axis_texts(row: Row, variable: str) -> list[str]:
    """The axes of a row, unknown ones as ``?``, and ``variable`` for those that its row variable stands for."""
    middle = [variable] if row.variable is not None else []
    return [*map(_size_text, row.leading), *middle, *map(_size_text, row.trailing)]


def _size_text(axis: Dim) -> str:
    return str(axis.size) if isinstance(axis, Known) and isinstance(axis.size, int) else "?"
