"""Patterns of einops: ``b (h h2)(w w2) c -> b h w c`` is text for an operation in einx notation, with rules of its own.

In:  "b(h 2) c -> b h c" of reduce
Out: "b (h 2) c -> b h c", which the reader of einx notation reads
In:  "... a -> ... a ..."
Out: E0167, an ellipsis twice on one side

What a pattern may say are the rules of einops, so that a text which works here works there: one level of parentheses,
one ellipsis a side, axes once a side, names that begin and end with a letter or a digit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from ilang.core.diagnostic import Label, NotationError, ShapeError
from ilang.core.ir.einx import (
    HIDDEN,
    Axis,
    Composition,
    Expression,
    Item,
    Repetition,
    UnnamedAxis,
    expression_text,
    inside,
    places,
)
from ilang.core.notation.einx.forms import reduced
from ilang.core.notation.einx.operation import read_einx
from ilang.core.source import Source, Span

OPENED, CLOSED = re.compile(r"(?<=[\w.)])\("), re.compile(r"\)(?=[\w.])")
FOREIGN = re.compile(r"[\[\]|,+]")
"""Signs of einx notation that patterns do not have."""
NAME = re.compile(r"[A-Za-z](?:\w*[A-Za-z0-9])?", re.ASCII)
ANYTHING = "*"
SIDES_HELP = "write `b (h h2) c -> b h c`"
NAME_HELP = "names begin with a letter, and end with a letter or a digit"


def read_pattern(function: str, pattern: str, sizes: Collection[str]) -> str:
    """The operation in einx notation that a pattern is.

    Args:
        function: ``rearrange``, ``reduce`` or ``repeat``.
        pattern: as it is written.
        sizes: the names of axes whose sizes are given.

    Raises:
        NotationError: E0160 to E0167.
        ShapeError: E0578 (nothing gives the sizes of two axes of one dimension).
    """
    source = _source(pattern)
    written = read_einx(source)
    if len(written.sides) != 2 or any(len(side) != 1 for side in written.sides):
        message = "a pattern has one input and one output"
        raise NotationError("E0164", message, written.span, SIDES_HELP)
    (given,), (output,) = written.sides
    for side in (given, output):
        _check_side(side)
    _check_ellipses(given, output)
    _check_numbers(function, given, output)
    _check_names(function, given, output)
    for item in given.items:
        _check_sizes(item, sizes)
    if function == "reduce":
        given = reduced(given, output)
    return f"{expression_text(given)} -> {expression_text(output)}"


def read_shape(pattern: str) -> list[str | int | None]:
    """The dimensions that a pattern of ``parse_shape`` names: names, sizes, None for an ellipsis; ``_`` is no name.

    Raises:
        NotationError: E0160 to E0167.
    """
    source = _source(pattern)
    written = read_einx(source)
    if len(written.sides) != 1 or len(written.sides[0]) != 1:
        raise NotationError("E0164", "a shape is one expression", written.span, "write `b h _ c`")
    (shape,) = written.sides[0]
    _check_side(shape, unnamed="_")
    dimensions: list[str | int | None] = []
    for item in shape.items:
        match item:
            case Axis():
                dimensions.append(item.name)
            case UnnamedAxis():
                dimensions.append(item.size)
            case Composition(items=()):
                dimensions.append(1)
            case Repetition():
                dimensions.append(None)
            case _:
                message = "a shape has no compositions: it names dimensions"
                raise NotationError("E0167", message, item.span, "write one name for it, or `_`")
    return dimensions


def packed_axes(pattern: str) -> tuple[list[str], list[str]]:
    """The axes before and after the ``*`` of a pattern of ``pack`` and ``unpack``.

    Raises:
        NotationError: E0161, E0167.
    """
    source = Source("<pattern>", pattern)
    words = [(word.group(), Span(source, *word.span())) for word in re.finditer(r"\S+", pattern)]
    seen: dict[str, Span] = {}
    for word, span in words:
        if word in seen and word != ANYTHING:
            raise _twice(f"axis {word}", seen[word], span)
        seen[word] = span
        if word != ANYTHING:
            _check_name(word, span)
    at = [n for n, (word, _) in enumerate(words) if word == ANYTHING]
    if len(at) != 1:
        message = f"there are {len(at)} `*` in the pattern"
        raise NotationError("E0161", message, Span(source, 0, len(pattern)), "write one: `b * c`")
    axes = [word for word, _ in words]
    return axes[: at[0]], axes[at[0] + 1 :]


def _source(pattern: str) -> Source:
    """A pattern with blanks around parentheses, which einops does without: ``(a b)(c d)``."""
    source = Source("<einops>", CLOSED.sub(") ", OPENED.sub(" (", pattern)))
    foreign = FOREIGN.search(source.text)
    if foreign is not None:
        message = f"`{foreign.group()}` has no meaning in a pattern of einops"
        help_line = "a pattern has names, numbers, parentheses, `...` and one `->`"
        raise NotationError("E0160", message, Span(source, *foreign.span()), help_line)
    return source


def _twice(leaf: str, first: Span, again: Span) -> NotationError:
    labels = [Label(again, "again here"), Label(first, "first here")]
    message = f"{leaf} stands twice on one side of the pattern"
    return NotationError(
        "E0167", message, again, "einops has it once: give it another name", labels
    )


def _check_name(name: str, span: Span) -> None:
    if NAME.fullmatch(name) is None:
        message = f"`{name}` is no name of an axis in a pattern of einops"
        raise NotationError("E0167", message, span, NAME_HELP)


def _check_side(side: Expression, unnamed: str | None = None) -> None:
    """One level of parentheses, axes once; ``unnamed`` is a word that names nothing."""
    for item in side.items:
        for below in inside(item):
            if isinstance(item, Composition) and isinstance(below, Composition):
                message = (
                    "parentheses stand inside parentheses, and a pattern of einops has one level"
                )
                labels = [Label(below.span, "inside"), Label(item.span, "of these")]
                raise NotationError(
                    "E0167", message, below.span, "leave the inner ones out", labels
                )
    seen: dict[str, Span] = {}
    for leaf in _leaves(side):
        if isinstance(leaf, Repetition):
            name, shown = HIDDEN, "`...`"
            if not _is_ellipsis(leaf):
                message = "a pattern of einops repeats no axes by name: `...` stands alone"
                raise NotationError("E0167", message, leaf.span, "write a blank before `...`")
        elif isinstance(leaf, UnnamedAxis):
            if leaf.size == 0:
                message = "an axis without a name has a size of 1 or more"
                raise NotationError(
                    "E0167", message, leaf.span, "write a name for an axis of size 0"
                )
            continue
        else:
            name, shown = leaf.name, f"axis {leaf.name}"
            if name == unnamed:
                continue
            _check_name(name, leaf.span)
        if name in seen:
            raise _twice(shown, seen[name], leaf.span)
        seen[name] = leaf.span


def _leaves(item: Expression | Item) -> Iterator[Axis | UnnamedAxis | Repetition]:
    """The axes, numbers and ellipses of a side, left to right."""
    for below in inside(item):
        if isinstance(below, Axis | UnnamedAxis | Repetition):
            yield below
        else:
            yield from _leaves(below)


def _is_ellipsis(item: Repetition) -> bool:
    return len(item.items) == 1 and item.items[0] == Axis(HIDDEN, item.span)


def _ellipsis(side: Expression) -> Repetition | None:
    return next((leaf for leaf in _leaves(side) if isinstance(leaf, Repetition)), None)


def _check_ellipses(given: Expression, output: Expression) -> None:
    """Refuse an ellipsis of the output where the input has none, and one of the input in a composition."""
    before, after = _ellipsis(given), _ellipsis(output)
    if after is not None and before is None:
        message = "`...` stands in the output, and the input has none"
        labels = [Label(after.span, "in the output"), Label(given.span, "the input")]
        raise NotationError("E0167", message, after.span, "write `...` in the input too", labels)
    if before is not None and before not in given.items:
        message = "`...` is a part of a dimension of the input, and nothing says of how many axes"
        help_line = "name the axes that the dimension is composed of"
        raise NotationError("E0167", message, before.span, help_line)


def _check_numbers(function: str, given: Expression, output: Expression) -> None:
    """Refuse an axis without a name where it may not stand: it is new, or is reduced."""
    for side, side_name in ((given, "input"), (output, "output")):
        allowed = (function, side_name) in (("repeat", "output"), ("reduce", "input"))
        for leaf in _leaves(side):
            if isinstance(leaf, UnnamedAxis) and leaf.size != 1 and not allowed:
                message = (
                    f"the axis of size {leaf.size} in the {side_name} of {function} has no name"
                )
                help_line = "give it a name, and its size as a parameter: `h2=2`"
                raise NotationError("E0167", message, leaf.span, help_line)


def _check_names(function: str, given: Expression, output: Expression) -> None:
    """Refuse axes of one side alone, but where repeat makes new ones and reduce leaves some out."""
    sides = (("input", given, output), ("output", output, given))
    for side_name, side, other in sides:
        if (function, side_name) in (("repeat", "output"), ("reduce", "input")):
            continue
        keys = {_key(leaf) for leaf in _leaves(other)}
        for leaf in _leaves(side):
            if not isinstance(leaf, UnnamedAxis) and _key(leaf) not in keys:
                shown = "`...`" if isinstance(leaf, Repetition) else f"axis {leaf.name}"
                lacks = "output" if side_name == "input" else "input"
                message = (
                    f"{shown} stands in the {side_name} alone, and {function} {_MUST[function]}"
                )
                labels = [
                    Label(leaf.span, f"in the {side_name}"),
                    Label(other.span, f"the {lacks}"),
                ]
                raise NotationError(
                    "E0167", message, leaf.span, _INSTEAD[function, side_name], labels
                )


_MUST = {
    "rearrange": "has the same axes on both sides",
    "reduce": "makes no axes",
    "repeat": "leaves none out",
}
_INSTEAD = {
    ("rearrange", "input"): "`reduce` leaves axes out; an axis of size 1 is written `1`",
    ("rearrange", "output"): "`repeat` makes new axes; an axis of size 1 is written `1`",
    ("reduce", "output"): "`repeat` makes new axes, of what `reduce` gives",
    ("repeat", "input"): "`reduce` leaves axes out; an axis of size 1 is written `1`",
}


def _key(leaf: Axis | UnnamedAxis | Repetition) -> str:
    return leaf.name if isinstance(leaf, Axis) else HIDDEN if isinstance(leaf, Repetition) else ""


def _check_sizes(item: Item, sizes: Collection[str]) -> None:
    """Of the axes that one dimension of the input is composed of, one may be open.

    Raises:
        ShapeError: E0578.
    """
    leaves = [place.leaf for place in places(Expression((item,), item.span))]
    open_ones = [leaf for leaf in leaves if isinstance(leaf, Axis) and leaf.name not in sizes]
    if len(open_ones) > 1 and isinstance(item, Composition):
        names = " and ".join(leaf.name for leaf in open_ones)
        message = f"nothing gives the sizes of {names}, which are one dimension"
        labels: Sequence[Label] = [Label(leaf.span, "") for leaf in open_ones]
        help_line = f"give all but one of them: `{open_ones[0].name}=2`"
        raise ShapeError("E0578", message, item.span, help_line, labels)
