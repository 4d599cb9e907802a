"""The calls of a file whose libraries' text is followed: what is wrong in a library is told where the file calls it.

A span in the text of a library gets a source that knows the call; an error puts that place first (``diagnostic.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ilang.core.diagnostic import MeaningError, at_caller
from ilang.core.source import Source, Span


class Callers:
    """The call, if any, inside which definitions of libraries are followed."""

    def __init__(self) -> None:
        """No call is followed."""
        self._call: Span | None = None
        self._sources: dict[str, Source] = {}

    @contextmanager
    def called(self, definition: Span, place: Span) -> Iterator[None]:
        """Follow a definition that is called at a place; what is refused inside a library is told at the place."""
        before = self._call, self._sources
        if self._call is None and definition.source.name != place.source.name:
            self._call, self._sources = place, {}
        try:
            yield
        except MeaningError as error:
            if self._call is not None:
                at_caller(error, self._call)
            raise
        finally:
            self._call, self._sources = before

    def placed(self, span: Span) -> Span:
        """A span of the text that is followed; in a library it knows the call."""
        call, source = self._call, span.source
        if call is None or source.name == call.source.name:
            return span
        if source.name not in self._sources:
            self._sources[source.name] = Source(source.name, source.text, call)
        return Span(self._sources[source.name], span.start, span.end)
