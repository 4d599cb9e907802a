"""Operations in einx notation as data: one expression per tensor, and how many times ellipses repeat.

Produced by ``notation/einx/operation.py`` as written; ``notation/einx/forms.py`` adds what an operation leaves out;
``passes/einx/ellipses.py`` repeats what stands under ellipses.

Invariants:
    - A list stands for its items in place: no item is a list; a composition of one item is that item's size.
    - An ellipsis is known by where it stands: those that were written once, and stand in several expressions since
      `->` and `,` were distributed, have one ``place`` and are repeated equally often.
    - So is a number: it is an axis of its own wherever it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ilang.core.record import record, replace
from ilang.core.source import Span


@record
class Axis:
    """An axis by its name; after ellipses are repeated, ``s.0`` is the first of ``s...``."""

    name: str
    span: Span


@record
class UnnamedAxis:
    """An axis of this size, without a name: token number ``place`` of the text, and which repetition ``at`` of it."""

    size: int
    place: int
    span: Span
    at: tuple[int, ...] = ()


@record
class Composition:
    """``(a b)``: axes that are one dimension, the last varying fastest; none are an axis of size 1."""

    items: tuple[Item, ...]
    span: Span


@record
class Concatenation:
    """``(a + b)``: axes one after the other."""

    items: tuple[Item, ...]
    span: Span


@record
class Bracket:
    """``[a b]``: the axes that the operation sees."""

    items: tuple[Item, ...]
    span: Span


@record
class Repetition:
    """``a...``, token number ``place`` of the text; ``...`` alone has the same hidden axis wherever it stands."""

    items: tuple[Item, ...]
    place: int
    span: Span


Item = Axis | UnnamedAxis | Composition | Concatenation | Bracket | Repetition

HIDDEN = "..."
"""The name of the axis that an ellipsis alone repeats."""


@record
class Expression:
    """The dimensions of one tensor."""

    items: tuple[Item, ...]
    span: Span


Sizes = int | tuple["Sizes", ...]
"""The size of an axis, or one for each repetition of its ellipsis."""


@record
class Parameter:
    """``r=4``, ``r=(4, 4)``: the size of an axis, or an option of the operation."""

    name: str
    value: Sizes
    span: Span


@record
class Form:
    """An operation, complete: ``einx.mean("b (s [r])... c -> b s... c", r=4)``.

    ``text`` is what stands between the quotes; ``inputs`` and ``outputs`` have what it leaves out as well. Of what is
    ``given``, ``parameters`` are sizes of axes, and ``options`` its further arguments.
    """

    op: str
    text: str
    inputs: tuple[Expression, ...]
    outputs: tuple[Expression, ...]
    given: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]
    options: tuple[Parameter, ...]
    span: Span

    def expressions(self) -> tuple[Expression, ...]:
        """The expressions of the inputs, then those of the outputs."""
        return (*self.inputs, *self.outputs)


def inside(item: Item | Expression) -> tuple[Item, ...]:
    """The items directly below one."""
    return () if isinstance(item, (Axis, UnnamedAxis)) else item.items


def unbracketed(items: Iterable[Item]) -> Iterator[Item]:
    """The dimensions of a tensor, brackets aside."""
    for item in items:
        if isinstance(item, Bracket):
            yield from unbracketed(item.items)
        else:
            yield item


def rebuilt(
    expression: Expression, change: Callable[[Item], tuple[Item, ...] | None]
) -> Expression:
    """An expression with items replaced: ``change`` gives what takes the place of one, or None to look below it.

    A bracket around nothing vanishes, as an ellipsis after nothing does.
    """
    items = tuple(each for item in expression.items for each in _rebuilt(item, change))
    return replace(expression, items=items)


def _rebuilt(item: Item, change: Callable[[Item], tuple[Item, ...] | None]) -> tuple[Item, ...]:
    changed = change(item)
    if changed is not None or isinstance(item, Axis | UnnamedAxis):
        return (item,) if changed is None else changed
    inner = tuple(each for below in item.items for each in _rebuilt(below, change))
    kept = inner or not isinstance(item, Bracket | Repetition)
    return (replace(item, items=inner),) if kept else ()


@record
class Occurrence:
    """An axis or a number where it stands: whether in brackets, and the ellipses around it, the outermost first."""

    leaf: Axis | UnnamedAxis
    marked: bool
    around: tuple[Repetition, ...]


def places(expression: Expression | Item) -> list[Occurrence]:
    """Every axis and number of an expression, left to right."""
    leaves: list[Occurrence] = []
    todo: list[tuple[Iterator[Item], bool, tuple[Repetition, ...]]] = [
        (iter(inside(expression)), False, ())
    ]
    while todo:
        items, marked, around = todo[-1]
        for item in items:
            if isinstance(item, (Axis, UnnamedAxis)):
                leaves.append(Occurrence(item, marked, around))
                continue
            inner = (*around, item) if isinstance(item, Repetition) else around
            todo.append((iter(inside(item)), marked or isinstance(item, Bracket), inner))
            break
        else:
            todo.pop()
    return leaves


def named(expression: Expression) -> dict[str, Axis]:
    """The axes of an expression by name, each where it stands first."""
    axes: dict[str, Axis] = {}
    for place in places(expression):
        if isinstance(place.leaf, Axis):
            axes.setdefault(place.leaf.name, place.leaf)
    return axes


def dimensions(expression: Expression) -> int | None:
    """The rank of a tensor of an einx operation; open where an ellipsis repeats dimensions."""
    count = 0
    todo = list(expression.items)
    while todo:
        item = todo.pop()
        if isinstance(item, Repetition):
            return None
        if isinstance(item, Bracket):
            todo += item.items
        else:
            count += 1
    return count


def item_text(item: Item) -> str:
    """An item as it is written."""
    match item:
        case Axis():
            return item.name
        case UnnamedAxis():
            return str(item.size)
        case Composition():
            return f"({' '.join(map(item_text, item.items))})"
        case Concatenation():
            return f"({' + '.join(map(item_text, item.items))})"
        case Bracket():
            return f"[{' '.join(map(item_text, item.items))}]"
        case Repetition():
            inner = " ".join(map(item_text, item.items))
            if inner == HIDDEN:
                return "..."
            return f"{inner}..." if len(item.items) == 1 else f"{{{inner}}}..."


def expression_text(expression: Expression) -> str:
    """An expression as it is written."""
    return " ".join(map(item_text, expression.items))


def form_text(form: Form) -> str:
    """The expressions of a form, as they are written in full."""
    sides = (", ".join(map(expression_text, side)) for side in (form.inputs, form.outputs))
    return " -> ".join(sides).strip()
