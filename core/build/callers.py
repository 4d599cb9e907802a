"""The calls that are followed: what is wrong in a definition is told where it is called.

A span in the text of a library gets a source that knows the call; an error puts that place first (``diagnostic.py``).
The graph has all calls, so that shapes that do not fit are told there as well (``infer/blame.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ilang.core.build.values import ComponentCall, Tensor
from ilang.core.diagnostic import MeaningError, at_caller
from ilang.core.ir.functions import Head, ShapeNote, Term
from ilang.core.ir.graph import DefinitionCall, Graph
from ilang.core.library.places import LibraryCall, given_for
from ilang.core.record import replace
from ilang.core.source import Span

if TYPE_CHECKING:  # what has the nodes asks for the calls
    from ilang.core.build.emission import Emission

T = TypeVar("T")


class Callers:
    """The calls that are followed, the open ones among them, and the one, if any, in which a library is followed."""

    def __init__(self) -> None:
        """No call is followed."""
        self._library: LibraryCall | None = None
        self._calls: list[DefinitionCall] = []
        self._given: list[tuple[Tensor, ...]] = []
        """The tensors that each call is given."""
        self._values: list[list[Tensor]] = []
        """The tensors that are computed in each."""
        self._components: dict[int, ComponentCall] = {}
        """The components that are called, by the number of the call."""
        self._open: list[int] = []
        self.notes: list[tuple[Tensor, str, ShapeNote, int]] = []
        """The rows of tensors as heads write them, the name of each there, and a scope for each head."""

    @contextmanager
    def called(
        self, head: Head, place: Span, arguments: Sequence[Term], given: Sequence[Tensor]
    ) -> Iterator[None]:
        """Follow a definition that is called at a place; what is refused inside a library is told at the place.

        There, what the arguments give for the names of its head is said, too.
        """
        before = self._library
        self.begin(head, self.placed(place), [self.placed(each.span) for each in arguments], given)
        if self._library is None and head.span.source.name != place.source.name:
            texts = [each.span.text() for each in arguments]
            words = given_for([each.name for each in head.tensors], texts)
            self._library = LibraryCall(place, words)
        try:
            yield
        except MeaningError as error:
            if self._library is not None:
                at_caller(error, self._library.place, self._library.given)
            raise
        finally:
            self._library = before
            self._open.pop()

    def begin(
        self, head: Head, place: Span, arguments: Sequence[Span], given: Sequence[Tensor]
    ) -> None:
        """Open a call; that of the definition which is run stays open."""
        parameters = tuple(each.span.text() for each in head.tensors)
        self._add((head.name, parameters), arguments, given, (place, head.span))
        self._open.append(len(self._calls) - 1)

    def _add(
        self,
        words: tuple[str, tuple[str, ...]],
        arguments: Sequence[Span],
        given: Sequence[Tensor],
        places: tuple[Span, Span],
        component: ComponentCall | None = None,
    ) -> None:
        """Note a call; an argument that stands for several outputs leaves no place for each of them."""
        spans = tuple(arguments) if len(arguments) == len(given) else ()
        if component is not None:
            self._components[len(self._calls)] = component
        self._given.append(tuple(given))
        self._values.append([])
        self._calls.append(
            DefinitionCall(
                *words,
                arguments=tuple(each.text() for each in spans),
                given=(),
                nodes=(),
                within=self._open[-1] if self._open else -1,
                scopes=range(0),
                is_component=component is not None,
                span=places[0],
                argument_span=spans,
                head_span=places[1],
            )
        )

    def scope(self, scope: int) -> None:
        """The rows that the head of the open call writes have this scope."""
        number = self._open[-1]
        self._calls[number] = replace(self._calls[number], scopes=range(scope, scope + 1))

    def noted(self, value: Tensor, name: str, note: ShapeNote, scope: int) -> None:
        """The head of the open call writes rows of a tensor."""
        self.notes.append((value, name, replace(note, span=self.placed(note.span)), scope))

    def kept(self, value: Tensor) -> Tensor:
        """Note that a tensor is computed in the open call."""
        self._values[self._open[-1]].append(value)
        return value

    def component(self, call: ComponentCall, name: str, arguments: Sequence[Span]) -> None:
        """A component is called: what it computes is known when its nodes are there."""
        parameters = [""] * len(call.graph.inputs)
        for each in call.graph.annotations:
            if each.value in call.graph.inputs:  # the outermost head is the last
                parameters[call.graph.inputs.index(each.value)] = each.span.text()
        heads = tuple(
            each or name for each, name in zip(parameters, call.graph.input_names(), strict=True)
        )
        place = self.placed(call.span)
        spans = [self.placed(each) for each in arguments]
        self._add((name, heads), spans, call.operands, (place, place), call)

    def graph(self, graph: Graph, place: Span, given: str) -> Graph:
        """The graph of a component that is called at a place; in a library, its spans know the call."""
        call = self._library or LibraryCall(place, given)
        file = call.place.source.name
        if all(node.span.source.name == file for node in graph.nodes):
            return graph
        placed: Graph = call.placed(graph)
        return placed

    def placed(self, value: T) -> T:
        """A span of the text that is followed, or what has spans; in a library they know the call."""
        placed: T = value if self._library is None else self._library.placed(value)
        return placed

    def finished(self, emission: Emission, number: Mapping[int, int]) -> tuple[DefinitionCall, ...]:
        """The calls by nodes, which have these numbers in the end; a value that nothing reads has none, -1."""
        nodes = dict(emission.latest)
        nodes |= dict(emission.first.items())

        def node(value: Tensor) -> int:
            return number[nodes[value]] if value in nodes else -1

        finished = []
        for n, call in enumerate(self._calls):
            inside = [each for each in map(node, self._values[n]) if each >= 0]
            scopes = call.scopes
            if self._components.get(n) in emission.calls:
                _, added, scopes = emission.calls[self._components[n]]
                inside = [number[each] for each in added]
            given = tuple(map(node, self._given[n]))
            finished.append(replace(call, given=given, nodes=tuple(inside), scopes=scopes))
        return tuple(finished)
