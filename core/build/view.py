"""Views by the names of their axes: how a notation makes one of a composition.

Example:
    in:   [["a", "b"], ["c"]] to [["a"], ["b", "c"]], a of 4
    out:  View of axes a:4 b c, source ((0, 1), (2,)), target ((0,), (1, 2)), which prints as (a:4 b) c -> a:4 (b c)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang.core.ir.graph import Axis, Groups, View
from ilang.core.source import Span

NameGroups = Sequence[Sequence[str]]
"""The names of the axes of each dimension; every name stands once."""


def view(
    value: int,
    source: NameGroups,
    target: NameGroups,
    span: Span,
    extents: Mapping[str, int] | None = None,
) -> View:
    """A view of a value.

    Args:
        value: its number in the graph.
        source: the axes of each of its dimensions.
        target: the same axes in the same order, of each dimension of the result.
        span: where the text has it.
        extents: of the axes whose extent is written.
    """
    written = extents or {}
    names = [name for group in source for name in group]
    axes = tuple(Axis(name, written.get(name), span) for name in names)
    number = {name: axis for axis, name in enumerate(names)}

    def groups(side: NameGroups) -> Groups:
        return tuple(tuple(number[name] for name in group) for group in side)

    return View(value, axes, groups(source), groups(target), span.text(), span)
