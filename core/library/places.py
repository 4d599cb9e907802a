"""Places in the text of a library that know where a file calls it: an error begins with that call (0082).

``placed(graph, call, "y is net(x)")`` is a graph whose spans in other texts than that of the call have a source that
knows the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ilang.core.diagnostic import shorten
from ilang.core.ir.rows import Known
from ilang.core.record import replace
from ilang.core.source import Source, Span

LONGEST_ARGUMENT = 40
"""Code points of an argument that an error shows."""


class LibraryCall:
    """A call of a library by a file: its place, what it gives for the names of a head, the sources that know it."""

    def __init__(self, place: Span, given: str) -> None:
        """No source knows it yet."""
        self.place = place
        self.given = given
        self.sources: dict[str, Source] = {}

    def placed(self, value: Any) -> Any:
        """A span, a record or a tuple whose spans in other texts know the call; itself where none changes."""
        if isinstance(value, Span):
            return self._span(value)
        if isinstance(value, tuple):
            parts = tuple(map(self.placed, value))
            return parts if any(a is not b for a, b in zip(parts, value, strict=True)) else value
        if isinstance(value, Known):  # it is one thing, which a copy is not
            return value
        fields = {name: getattr(value, name) for name in getattr(type(value), "__match_args__", ())}
        moved = {name: self.placed(each) for name, each in fields.items()}
        changes = {name: each for name, each in moved.items() if each is not fields[name]}
        return replace(value, **changes) if changes else value

    def _span(self, span: Span) -> Span:
        source = span.source
        if source.name == self.place.source.name or source.caller is not None:
            return span
        if source.name not in self.sources:
            self.sources[source.name] = Source(source.name, source.text, self.place, self.given)
        return Span(self.sources[source.name], span.start, span.end)


def given_for(names: Sequence[str], texts: Sequence[str]) -> str:
    """The words on what a call gives for the names of a head, where it is something else: ``y is net(x), t is b``."""
    if len(names) != len(texts):
        return ""
    shown = (shorten(" ".join(each.split()), LONGEST_ARGUMENT) for each in texts)
    return ", ".join(f"{a} is {b}" for a, b in zip(names, shown, strict=True) if a != b)
