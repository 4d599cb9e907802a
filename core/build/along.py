"""Reductions along axes that a call names: ``sum(x)``, ``sum(x; "h, w")``, ``max(x; -1)``, ``elements(x; 0)``.

In:  ``sum(d; "n")`` where the head is ``op f(x[b|n], y)`` and d is ``x - y``
Out: ``d ++ "...|..., n->... => ...|..., 0->..."``: the axis stays, with extent 1, and is repeated beside others
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ilang.core.build.settings import Setting
from ilang.core.build.values import Computed, Custom, NumberTensor, Tensor, operands
from ilang.core.diagnostic import Label, MeaningError
from ilang.core.ir import functions as ast
from ilang.core.ir.primitives import ALL_AXES, ALONG
from ilang.core.ir.rows import KINDS
from ilang.core.ir.scalar import Constant, Operand
from ilang.core.ir.spec import AxisLabel, Fixed, ShapeSpec, Spec, SpecRow, output_shape
from ilang.core.names import Names
from ilang.core.source import Span

if TYPE_CHECKING:
    from ilang.core.build.functions import Functions
    from ilang.core.build.settings import Evaluation

T = TypeVar("T")
EVERY = "...|...->... => 0"
HELP = (
    'an axis is a letter of the head, `"n"`, or a number: 0 is the first, -1 the last output axis'
)


AxisPlace = tuple[int, int, bool]
"""An axis of a tensor: its row (0 batch, 1 input, 2 output), and its place there, from the end where negative.

The third part says that the place is right where the tensor has one batch axis.
"""
Counts = tuple[int, int, int]
"""The numbers of batch, input and output axes of a tensor."""
NamedAxes = dict[tuple[AxisPlace | None, str], Span]
"""The axes that a head names, by place and name; without a place where that is another one in what is computed."""


class AxesOfHeads:
    """The axes that heads write of tensors, and those that follow of what is computed from them, once for each."""

    def __init__(self, notes: Sequence[tuple[Tensor, str, ast.ShapeNote, int]]) -> None:
        """For so many notes of heads."""
        self.count = len(notes)
        self.notes: dict[Tensor, list[tuple[ast.ShapeNote, int]]] = {}
        for tensor, _, note, scope in notes:
            self.notes.setdefault(tensor, []).append((note, scope))
        self.counts: dict[Tensor, Counts | None] = {}
        self.named: dict[int, dict[Tensor, NamedAxes]] = {}


def along(
    build: Functions, frame: Evaluation, name: str, call: ast.Called, value: Tensor
) -> Tensor:
    """The tensor that ``sum``, ``max``, ``min`` or ``elements`` gives of a value, along the axes of the call."""
    axes = Setting(ALL_AXES, call.span)
    for setting in call.settings or ():
        axes = build.setting(frame, setting.value)
    places = _places(build, value, axes, call.span)
    logic = _spec(places, call.span)
    scalar = Constant(1) if name == "elements" else Operand(0)
    return build.operation(scalar, ALONG[name], logic, [value], call.span)


def _places(
    build: Functions, value: Tensor, axes: Setting, span: Span
) -> dict[AxisPlace, str] | None:
    """The axes that are meant, with their names; None: all of them."""
    known = build.known(axes)
    if isinstance(known, str):
        if known.strip() == ALL_AXES:
            return None
        names = [each.strip() for each in known.split(",")]
        places = [_of_name(build, value, each, axes.scope, span) for each in names]
    else:
        numbers = known if isinstance(known, tuple) else (known,)
        names = [f"n{n}" if n else "n" for n in range(len(numbers))]
        places = [_of_number(build, value, each, span) for each in numbers]
    if len(set(places)) < len(places):
        raise MeaningError("E0290", "one axis is named twice here", span, "name each axis once")
    return dict(zip(places, names, strict=True))


def _of_number(build: Functions, value: Tensor, number: object, span: Span) -> AxisPlace:
    """An axis by its number: in memory order, or of the output row from the end.

    A tensor whose axes no head writes has one batch axis, as arrays that are given have.
    """
    if not isinstance(number, int | float) or number != int(number):
        raise MeaningError("E0290", f"{number} is no number of an axis", span, HELP)
    number = int(number)
    if number < 0:
        return (2, number, False)
    counts = _counts(build, value)
    if counts is None:
        return (2, number - 1, True) if number else (0, -1, True)
    at = number
    for row in (0, 2, 1):
        if at < counts[row]:
            return (row, at - counts[row], False)
        at -= counts[row]
    message = f"there is no axis {number}: this tensor has {sum(counts)}"
    raise MeaningError("E0290", message, span, HELP)


def _counts(build: Functions, value: Tensor) -> Counts | None:
    """The numbers of axes of a tensor; None where neither heads nor specifications say those of what it is made of."""
    axes = _axes_of(build)

    def written(each: Tensor) -> Counts | None:
        notes = (note for note, _ in axes.notes.get(each, ()))
        whole = (note for note in notes if all(row.variable is None for row in note.rows))
        return next(map(_written, whole), None)

    def below(each: Tensor) -> tuple[Tensor, ...]:
        return () if written(each) else operands(each)

    def entry(each: Tensor) -> Counts | None:
        return written(each) or _made(each, [axes.counts[one] for one in operands(each)])

    return _completed(axes.counts, value, below, entry)


def _written(shape: ast.ShapeNote) -> Counts:
    batch, inner, output = (len(row.leading) + len(row.trailing) for row in shape.rows)
    return batch, inner, output


def _made(value: Tensor, counts: Sequence[Counts | None]) -> Counts | None:
    """The numbers of axes of a tensor that no head writes, by those of its operands."""
    match value:
        case NumberTensor():
            return 0, 0, 1
        case Custom():
            return counts[0]
        case Computed(logic="pointwise"):
            known = [each for each in counts if each is not None]
            return _most(known) if len(known) == len(counts) else None
        case Computed(logic="compose"):
            one, other = counts
            if one is None or other is None:
                return None
            return max(one[0], other[0]), other[1], one[2]
        case Computed(logic=Spec() as spec):
            rows = [_row_count(spec, counts, kind) for kind in range(3)]
            batch, inner, output = rows
            return (
                None if batch is None or inner is None or output is None else (batch, inner, output)
            )
        case _:
            return None


def _most(counts: Sequence[Counts]) -> Counts:
    batch, inner, output = (max(each[kind] for each in counts) for kind in range(3))
    return batch, inner, output


def _row_count(spec: Spec, counts: Sequence[Counts | None], kind: int) -> int | None:
    """The number of axes of one row of the result of a specification."""
    result = spec.result.rows[kind]
    if result.variable is None:
        return len(result.axes())
    for shape, known in zip(spec.operands, counts, strict=True):
        for number, row in enumerate(shape.rows):
            if row.variable == result.variable and known is not None:
                return known[number] - len(row.axes()) + len(result.axes())
    return None


def _of_name(build: Functions, value: Tensor, name: str, scope: int, span: Span) -> AxisPlace:
    """An axis by the letter that a head writes for it, of a tensor or of what it is computed from element by element.

    Raises:
        MeaningError: E0290 (no head writes it, or two of them for different axes).
    """
    axes = _named_axes(build, value, scope)
    places = {place: at for (place, each), at in axes.items() if each == name and place is not None}
    known = dict.fromkeys(each for _, each in axes)
    if len(places) == 1:
        return next(iter(places))
    if places:
        one, other, *_ = places.values()
        message = f"`{name}` names two axes of what this is computed from"
        labels = [Label(span, "which one?"), Label(one, "one"), Label(other, "the other")]
        raise MeaningError("E0290", message, span, "number the axis: -1 is the last", labels)
    listed = f"known here: {', '.join(known)}" if known else "write its shape in the head: `x[b|n]`"
    message = f"nothing calls an axis of this tensor {name or '(empty)'}"
    raise MeaningError("E0290", message, span, listed)


def _named_axes(build: Functions, value: Tensor, scope: int) -> NamedAxes:
    """The axes that a head names, of a tensor and of what it is computed from place by place."""
    axes = _axes_of(build)
    known = axes.named.setdefault(scope, {})

    def below(each: Tensor) -> tuple[Tensor, ...]:
        return operands(each) if _is_pointwise(each) or _keeps_axes(each) else ()

    def entry(each: Tensor) -> NamedAxes:
        named: NamedAxes = {}
        for note, noted in axes.notes.get(each, ()):
            for at_place, axis in _named(note) if noted == scope else ():
                named.setdefault((at_place, str(axis.size)), axis.span)
        for one in below(each):
            for (place, name), at in known[one].items():
                moves = place is None or (0 <= place[1] and _is_pointwise(each))
                named.setdefault((None if moves else place, name), at)
        return named

    return _completed(known, value, below, entry)


def _axes_of(build: Functions) -> AxesOfHeads:
    """The axes that heads write so far."""
    if build.axes is None or build.axes.count < len(build.callers.notes):
        build.axes = AxesOfHeads(build.callers.notes)
    return build.axes


def _completed(
    known: dict[Tensor, T],
    value: Tensor,
    below: Callable[[Tensor], Sequence[Tensor]],
    entry: Callable[[Tensor], T],
) -> T:
    """The entry of a tensor in a table, made of the entries of those below it, each of them once."""
    todo = [value]
    while todo:
        missing = [one for one in below(todo[-1]) if one not in known]
        if missing:
            todo += missing
            continue
        known[todo[-1]] = entry(todo[-1])
        todo.pop()
    return known[value]


def _is_pointwise(value: Tensor) -> bool:
    return isinstance(value, Computed) and value.logic == "pointwise"


def _keeps_axes(value: Tensor) -> bool:
    """Whether each axis of a tensor has the place of one of its operand."""
    return isinstance(value, Custom) or _is_along(value)


def _is_along(value: Tensor) -> bool:
    """Whether a tensor is a reduction each axis of which has the place of one of its operand."""
    if not isinstance(value, Computed) or not isinstance(value.logic, Spec) or not value.acc:
        return False
    (operand, *others), result = value.logic.operands, value.logic.result
    if others:
        return False
    pairs = zip(operand.rows, result.rows, strict=True)
    return all(_keeps_places(one, other) for one, other in pairs)


def _keeps_places(row: SpecRow, result: SpecRow) -> bool:
    """Whether each axis of a row of a result stands where the same one, or a reduced one, stands in the operand."""
    sides = ((row.leading, result.leading), (row.trailing, result.trailing))
    if row.variable != result.variable or any(len(one) != len(other) for one, other in sides):
        return False
    pairs = (pair for one, other in sides for pair in zip(one, other, strict=True))
    return all(isinstance(other, Fixed) or one == other for one, other in pairs)


def _named(note: ast.ShapeNote) -> list[tuple[AxisPlace, ast.AxisNote]]:
    """The axes of a shape as a head writes it, each with its place.

    A place is counted from the end of its row: -1 is the last axis. Only axes before a row variable are counted from
    the front, since the variable may stand for any number of axes.
    """
    places: list[tuple[AxisPlace, ast.AxisNote]] = []
    for kind, row in enumerate(note.rows):
        front, back = row.leading, row.trailing
        if row.variable is None:
            front, back = (), (*front, *back)
        places += [((kind, n - len(back), False), axis) for n, axis in enumerate(back)]
        places += [((kind, n, False), axis) for n, axis in enumerate(front)]
    return places


def _spec(places: Mapping[AxisPlace, str] | None, span: Span) -> Spec:
    """The specification of a reduction along axes: each keeps its place, with extent 1; along all, one number."""
    if places is None:
        batch, inner, output = (SpecRow((), f"...{kind}", ()) for kind in KINDS)
        operand = ShapeSpec((batch, inner, output), span)
        one = output_shape(SpecRow((), None, (Fixed(0, span),)), span)
        return Spec((operand,), one, True, EVERY, span)
    single = any(single for *_, single in places)
    labels = Names(frozenset(places.values()))
    sides = []
    for kind in range(3):
        named = {place: name for (row, place, _), name in places.items() if row == kind}
        sides.append(
            _rows(named, None if single and kind == 0 else f"...{KINDS[kind]}", labels, span)
        )
    operand, result = (ShapeSpec((sides[0][n], sides[1][n], sides[2][n]), span) for n in range(2))
    return Spec((operand,), result, True, f"{_text(operand)} => {_text(result)}", span)


def _rows(
    named: Mapping[int, str], variable: str | None, labels: Names, span: Span
) -> tuple[SpecRow, SpecRow]:
    """One row of the operand and of the result, with the names of the axes in it that are reduced."""
    first = max((place + 1 for place in named if 0 <= place), default=0)
    last = max((-place for place in named if place < 0), default=0)
    ends = range(-(last if variable is not None else 1), 0)
    sides = [
        [AxisLabel(named.get(n) or labels.fresh("a"), span) for n in places]
        for places in (range(first), ends)
    ]
    leading, trailing = sides
    operand = SpecRow(tuple(leading), variable, tuple(trailing))
    kept = [Fixed(0, span) if n in named else axis for n, axis in enumerate(leading)]
    rest = [Fixed(0, span) if n in named else axis for n, axis in zip(ends, trailing, strict=True)]
    return operand, SpecRow(tuple(kept), variable, tuple(rest))


def _text(shape: ShapeSpec) -> str:
    batch, inner, output = (_row_text(row) for row in shape.rows)
    return f"{batch}|{inner}->{output}"


def _row_text(row: SpecRow) -> str:
    middle = [] if row.variable is None else ["..."]
    words = [each.name if isinstance(each, AxisLabel) else "0" for each in row.axes()]
    return ", ".join([*words[: len(row.leading)], *middle, *words[len(row.leading) :]])
