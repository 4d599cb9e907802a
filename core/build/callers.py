"""The calls of a file whose libraries' text is followed: what is wrong in a library is told where the file calls it.

A span in the text of a library gets a source that knows the call; an error puts that place first (``diagnostic.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from ilang.core.diagnostic import MeaningError, at_caller
from ilang.core.ir.functions import Head, Term
from ilang.core.ir.graph import Graph
from ilang.core.library.places import LibraryCall, given_for
from ilang.core.source import Span

T = TypeVar("T")


class Callers:
    """The call, if any, inside which definitions of libraries are followed."""

    def __init__(self) -> None:
        """No call is followed."""
        self._call: LibraryCall | None = None

    @contextmanager
    def called(self, head: Head, place: Span, arguments: Sequence[Term]) -> Iterator[None]:
        """Follow a definition that is called at a place; what is refused inside a library is told at the place.

        There, what the arguments give for the names of its head is said, too.
        """
        before = self._call
        if self._call is None and head.span.source.name != place.source.name:
            texts = [each.span.text() for each in arguments]
            given = given_for([each.name for each in head.tensors], texts)
            self._call = LibraryCall(place, given, {})
        try:
            yield
        except MeaningError as error:
            if self._call is not None:
                at_caller(error, self._call.place, self._call.given)
            raise
        finally:
            self._call = before

    def component(self, graph: Graph, place: Span, given: str) -> Graph:
        """The graph of a component that is called at a place; in a library, its spans know the call."""
        call = self._call or LibraryCall(place, given, {})
        file = call.place.source.name
        if all(node.span.source.name == file for node in graph.nodes):
            return graph
        placed: Graph = call.placed(graph)
        return placed

    def placed(self, value: T) -> T:
        """A span of the text that is followed, or what has spans; in a library they know the call."""
        placed: T = value if self._call is None else self._call.placed(value)
        return placed
