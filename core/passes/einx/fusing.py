"""Axes that stand next to each other in compositions wherever they stand are one axis: their sizes do not matter.

Example:
    in:   (a b) c -> c (a b)                 out:  a_b c -> c a_b
    in:   (a b) (c d) -> (a (b c) d)         out:  a_b c_d -> (a_b c_d)

A composition inside a composition is divided like the one around it: the last axis varies fastest in both.

A number is an axis of its own wherever it is written, but in runs that several compositions have alike (``alike.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ilang.core.ir import einx
from ilang.core.names import Names
from ilang.core.passes.einx.alike import with_alike
from ilang.core.passes.einx.ellipses import RepeatedForm
from ilang.core.record import record, replace


@record
class FusedOperation:
    """An operation whose ellipses are repeated and whose axes are fused, with ``sizes`` of axes by name."""

    inputs: tuple[einx.Expression, ...]
    outputs: tuple[einx.Expression, ...]
    sizes: dict[str, int]
    repeated: RepeatedForm

    @property
    def expressions(self) -> tuple[einx.Expression, ...]:
        """All expressions, those of inputs first."""
        return (*self.inputs, *self.outputs)


def fuse(
    inputs: Sequence[einx.Expression], outputs: Sequence[einx.Expression], kept: Collection[str]
) -> tuple[einx.Expression, ...]:
    """Expressions without ellipses whose compositions are flat, those of inputs first.

    Args:
        inputs: their expressions.
        outputs: their expressions.
        kept: axes that stay what they are.
    """
    flat = tuple(replace(each, items=_flat(each.items)) for each in (*inputs, *outputs))
    flat = with_alike(flat, len(inputs))
    pair = _pair(flat, kept)
    if pair is None:
        return flat
    unique = Names(
        {p.leaf.name for each in flat for p in einx.places(each) if isinstance(p.leaf, einx.Axis)}
    )
    while pair is not None:
        name = unique.fresh("_".join(pair))
        flat = tuple(replace(each, items=_joined(each.items, pair, name)) for each in flat)
        pair = _pair(flat, kept)
    return flat


def _flat(items: Sequence[einx.Item]) -> tuple[einx.Item, ...]:
    flat: list[einx.Item] = []
    for item in items:
        match item:
            case einx.Composition():
                flat.append(replace(item, items=tuple(_leaves(_flat(item.items)))))
            case einx.Concatenation() | einx.Bracket():
                flat.append(replace(item, items=_flat(item.items)))
            case einx.Repetition():
                raise AssertionError(item)
            case _:
                flat.append(item)
    return tuple(flat)


def _leaves(items: Sequence[einx.Item]) -> Iterator[einx.Item]:
    """The items of a composition, those of compositions among them one by one; brackets around each."""
    for item in items:
        match item:
            case einx.Composition():
                yield from item.items
            case einx.Bracket():
                for each in _leaves(item.items):
                    yield einx.Bracket((each,), each.span)
            case einx.UnnamedAxis(size=1):
                pass
            case _:
                yield item


def _pair(expressions: Sequence[einx.Expression], kept: Collection[str]) -> tuple[str, str] | None:
    after: dict[str, str | None] = {}
    before: dict[str, str | None] = {}
    for expression in expressions:
        for run in _runs(expression.items):
            for one, other in zip([None, *run], [*run, None], strict=True):
                if one is not None and after.setdefault(one, other) != other:
                    after[one] = None
                if other is not None and before.setdefault(other, one) != one:
                    before[other] = None
    for one, other in after.items():
        if other is None or one == other or before[other] != one or {one, other} & set(kept):
            continue
        return one, other
    return None


def _runs(items: Sequence[einx.Item], composed: bool = False) -> Iterator[list[str]]:
    """Axes that stand next to each other in one composition; any other axis alone."""
    run: list[str] = []
    for item in items:
        if isinstance(item, einx.Axis) and composed:
            run.append(item.name)
            continue
        if run:
            yield run
            run = []
        match item:
            case einx.Axis():
                yield [item.name]
            case einx.Composition():
                yield from _runs(item.items, True)
            case einx.Concatenation() | einx.Bracket():
                yield from _runs(item.items)
            case _:
                pass
    if run:
        yield run


def _joined(items: Sequence[einx.Item], pair: tuple[str, str], name: str) -> tuple[einx.Item, ...]:
    joined: list[einx.Item] = []
    skipped = False
    for n, item in enumerate(items):
        if skipped:
            skipped = False
            continue
        match item:
            case einx.Axis() if item.name == pair[0]:
                joined.append(einx.Axis(name, item.span.to(items[n + 1].span)))
                skipped = True
            case einx.Composition():
                inner = _joined(item.items, pair, name)
                joined.append(inner[0] if len(inner) == 1 else replace(item, items=inner))
            case einx.Concatenation() | einx.Bracket():
                joined.append(replace(item, items=_joined(item.items, pair, name)))
            case _:
                joined.append(item)
    return tuple(joined)
