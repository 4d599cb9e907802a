"""The text of a tensor function or a routine, with the rows that follow from it before any shape is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from ilang.core.calculus.extent import PLAIN, quotient
from ilang.core.diagnostic import counted
from ilang.core.explain.expression import aligned, written_rows
from ilang.core.infer.conflicts import axis_texts
from ilang.core.infer.inferred import rows_so_far
from ilang.core.ir.functions import Body, Function
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.ir.rows import KINDS, Dim, Known, Row, Shape, Var, known_axes
from ilang.core.record import record
from ilang.core.source import Span

if TYPE_CHECKING:
    from ilang.core.infer.inferred import Inferred
    from ilang.core.ir.functions import AxisNote, Routine, ShapeNote

Kind = Literal[
    "input", "parameter", "state", "setting", "constant", "gradient", "named", "update", "inner"
]

SECTIONS: dict[Kind, str] = {
    "input": "inputs",
    "parameter": "parameters",
    "state": "state, which lasts from run to run",
}
"""The kinds that a page lists first, and what it calls them."""

WIDTH = 80
Axes = tuple[tuple[int | str, None], ...]
"""Axes that are given, without labels: a size, or a word where it comes at run time."""


@record
class OpenRows:
    """A value: its kind, its name, its rows with `?` for an open axis and `...` for further ones, what makes it.

    ``named`` has a name in the text, or is a result; an ``update`` is what a parameter or state gets; all others that
    operations give are ``inner``.
    """

    kind: Kind
    name: str
    rows: str
    formula: str


@record
class SoFar:
    """Every value that has a name or a text, in order; ``str`` gives the page, without what is inside."""

    values: tuple[OpenRows, ...]
    results: tuple[str, ...]
    example: ExampleShapes | None = None

    def __str__(self) -> str:
        blocks = [
            [*self._section("input")],
            [*self._statements()],
            [f"returns {', '.join(self.results)}" if self.results else "returns nothing"],
            [*self._updates()],
            [*self._section("parameter")],
            [*self._section("state")],
            [*self._open()],
        ]
        return "\n\n".join("\n".join(block) for block in blocks if block)

    def listing(self) -> str:
        """Every value, a line each."""
        return "\n".join(aligned([(each.name, each.rows, each.formula) for each in self.values]))

    def of(self, kind: Kind) -> list[OpenRows]:
        """The values of a kind."""
        return [each for each in self.values if each.kind == kind]

    def _open(self) -> Iterator[str]:
        """The letters, each with the axes of inputs that it stands for; then what follows from them."""
        if self.example is None:
            return
        rows = list(self.example.places())
        if any("?" in each.rows for each in self.values if each.kind != "inner"):
            rows.append(("?", "follows from these") if rows else ("?", "comes at run time"))
        if rows:
            yield "open sizes"
            yield from (f"  {line}" for line in aligned(rows))
        if self.example.ranks:
            yield f"  {listed(self.example.ranks)} may have other numbers of axes"

    def _section(self, kind: Kind) -> Iterator[str]:
        """The inputs of a kind, below its title; state that parameters have alike is told once."""
        values = self.of(kind)
        parameters = {each.name for each in self.of("parameter")}
        parts = [each.name.rpartition(".") for each in values]
        beside = Counter(name for owner, _, name in parts if owner in parameters)
        alone = [v for v, (owner, *_) in zip(values, parts, strict=True) if owner not in parameters]
        lines = aligned([(each.name, _plain(each.rows)) for each in alone])
        lines += aligned([(name, f"of {counted(n, 'parameter')}") for name, n in beside.items()])
        if lines:
            yield SECTIONS[kind]
            yield from (f"  {line}" for line in lines)

    def _statements(self) -> Iterator[str]:
        """The text of each named value."""
        values = self.of("named")
        cells = aligned([(each.name, _plain(each.rows), "") for each in values])
        start = max(map(len, cells), default=0) + 4
        if values:
            yield "computes"
        for cell, each in zip(cells, values, strict=True):
            first, *rest = wrap(each.formula, WIDTH - start - 2, break_long_words=False) or [""]
            yield f"  {cell}".ljust(start) + f"= {first}"
            yield from (" " * (start + 2) + line for line in rest)

    def _updates(self) -> Iterator[str]:
        """The text of each update of parameters and of state."""
        if updates := Counter(each.formula for each in self.of("update")):
            yield "each run changes"
            counts = [(text, f"{n} tensors" if 1 < n else "") for text, n in updates.items()]
            yield from (f"  {line}" for line in aligned(counts))


def so_far(
    graph: Graph,
    inputs: Mapping[int, tuple[Kind, str]],
    results: Sequence[int],
    changed: Collection[int],
    written: Function | Routine,
    shapes: Sequence[Sequence[str]] | None = None,
) -> SoFar:
    """The rows of the graph of a definition, as far as they are known.

    Args:
        graph: it.
        inputs: the kind and the name of each input, in the order of the page.
        results: what it returns.
        changed: what parameters and state have from then on.
        written: the definition; names of what it calls are of ``inner`` values.
        shapes: the words of the rows of each value; None for what the operations alone say.

    Raises:
        ShapeError: E0501 to E0520 (operations that do not agree).
    """
    if shapes is None:
        rows = rows_so_far(graph)
        shapes = [[",".join(axis_texts(row, "...")) for row in shape] for shape in rows]
    returned = dict(zip(results, graph.output_names(results), strict=True))
    values = tuple(_values(graph, inputs, returned, changed, written, shapes))
    return SoFar(values, tuple(returned[each] for each in results))


def _values(
    graph: Graph,
    inputs: Mapping[int, tuple[Kind, str]],
    results: Mapping[int, str],
    changed: Collection[int],
    written: Function | Routine,
    shapes: Sequence[Sequence[str]],
) -> Iterator[OpenRows]:
    names = {**results, **graph.value_names()}
    calls = {each.value: each.span for each in reversed(graph.called)}
    for value in dict.fromkeys((*inputs, *range(len(graph.nodes)))):
        batch, inner, output = shapes[value]
        rows = written_rows(batch, inner, output or "()")
        kind: Kind
        node, name = graph.nodes[value], names.get(value, "")
        if isinstance(node, Terminal) and node.kind != "number":
            yield OpenRows(*inputs.get(value, ("gradient", node.name)), rows, "")
        elif isinstance(node, Operation) and (value in changed or not name):
            kind = "update" if value in changed else "inner"
            yield OpenRows(kind, name, rows, _line(node.text))
        elif name:
            span = calls.get(value, node.span)
            is_inside = _is_statement(span, written.span)
            is_named = value in results or is_inside
            if (
                is_named
                and not is_inside
                and isinstance(written, Function)
                and isinstance(written.body, Body)
            ):
                span = written.body.result.span
            yield OpenRows("named" if is_named else "inner", name, rows, _line(span.text()))


def _is_statement(span: Span, text: Span) -> bool:
    """Whether a value is one that the text of a definition computes: a gradient that it reads is none."""
    is_inside = span.source.name == text.source.name and text.start <= span.start < text.end
    return is_inside and not span.text().endswith(".grad")


def _line(text: str) -> str:
    return " ".join(text.split())


def _plain(rows: str) -> str:
    return "a number" if rows == "()" else rows.removesuffix("()")


@record
class ExampleShapes:
    """Shapes of inputs in which letters stand for open sizes: three rows each, by the name of the input.

    ``sizes`` has a size for each letter, and ``ranks`` the inputs whose number of axes is open, too.
    """

    shapes: Mapping[str, tuple[tuple[str, ...], ...]]
    sizes: Mapping[str, int]
    ranks: tuple[str, ...]

    def texts(self) -> dict[str, str]:
        """The shapes with the sizes of the letters, as ``rows_of`` reads them."""
        return {name: self._text(rows) for name, rows in self.shapes.items()}

    def _text(self, rows: Sequence[Sequence[str]]) -> str:
        batch, inner, output = (
            ",".join(str(self.sizes.get(axis, axis)) for axis in row) for row in rows
        )
        return written_rows(batch, inner, output)

    def places(self) -> Iterator[tuple[str, str]]:
        """Each letter, and which axes of which inputs it is."""
        for letter in self.sizes:
            names = {
                kind: [name for name, rows in self.shapes.items() if letter in rows[row]]
                for row, kind in enumerate(KINDS)
            }
            words = [f"{kind} axis of {listed(each)}" for kind, each in names.items() if each]
            if words:
                yield letter, listed(words)


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence: ``x, y and z``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


LETTERS = (*"nmklpqrs", *(f"n{n}" for n in range(1, 1000)))
SIZES = ((3, 2, 5, 7, 6, 4, *range(9, 1000)), range(64, 64000, 64), range(420, 420000, 420))
"""Sizes for letters, in their order: small ones, then such as many numbers divide."""

MORE: tuple[int | Literal["like"], ...] = (1, "like", 0, 2, 3, 4)
"""Axes that may stand for `...` in an output row: how many, or the last one of the result (``like``)."""


def examples(
    inputs: Mapping[str, Shape], result: Row | None
) -> Iterator[dict[str, tuple[Axes, Axes, Axes]]]:
    """Rows that inputs could have, by what is known of their rows: likely ones first; what is open is a word.

    ``result`` is the output row of what is returned first.
    """
    last = result.trailing[-1:] if result is not None else ()
    first, *others = (last if each == "like" else (Var(0),) * each for each in MORE)
    choices = [[first] * len(inputs)]
    for more in others:
        alone = [
            [more if n == place else first for n in range(len(inputs))]
            for place in reversed(range(len(inputs)))
        ]
        choices += [*alone, [more] * len(inputs)]
    for choice in choices:
        pairs = zip(inputs.items(), choice, strict=True)
        yield {name: _rows(shape, more) for (name, shape), more in pairs}


def _rows(shape: Shape, more: Sequence[Dim]) -> tuple[Axes, Axes, Axes]:
    """The rows of one input, with these axes in place of `...`."""

    def axes(dims: Sequence[Dim]) -> Axes:
        sizes = (each.size if isinstance(each, Known) else None for each in dims)
        return tuple((size if isinstance(size, int) else "n", None) for size in sizes)

    batch, inner, output = shape
    if output.variable is None or (output.axes() and len(more) == 1):
        more = ()
    first = (Var(0),) if batch.variable is not None and not batch.axes() else ()
    return (
        axes((*batch.leading, *first, *batch.trailing)),
        axes(inner.axes()),
        axes((*output.leading, *more, *output.trailing)),
    )


class Lettered:
    """Inferred rows with letters for the sizes that arrays give, and what follows from these."""

    def __init__(
        self, inferred: Inferred, inputs: Mapping[str, tuple[int, ShapeNote | None]]
    ) -> None:
        """For the number of each input, and what the head writes of it: its letters come first."""
        self.inferred = inferred
        self._cell = inferred.numbered().cell
        self._words: dict[int, str] = {}
        for number, note in inputs.values():
            for row, noted in zip(inferred.shapes[number], note.rows if note else (), strict=False):
                axes = known_axes(row)
                self._name(axes, noted.leading)
                self._name(axes[-len(noted.trailing) :], noted.trailing)
        unused = (each for each in LETTERS if each not in self._words.values())
        for number, _ in inputs.values():
            for kind, row in zip(KINDS, inferred.shapes[number], strict=True):
                for axis in known_axes(row):
                    if self._word(axis) == "?":
                        is_first = kind == "batch" and "b" not in self._words.values()
                        self._words[self._cell(axis)] = "b" if is_first else next(unused)
        self.letters = tuple(self._words.values())
        self.rows = {name: self._shape(number) for name, (number, _) in inputs.items()}
        for known, derived in inferred.run_time.derived:
            words = list(map(self._word, derived.parts))
            if derived.padding is None and "?" not in words:
                extent = quotient(derived.whole, derived.divisor)
                text = extent.text(words.__getitem__, PLAIN).replace(" ", "")
                self._words.setdefault(self._cell(known), text)

    def _name(self, axes: Sequence[Known], notes: Sequence[AxisNote]) -> None:
        """Give axes of run-time size the letters of a head."""
        for axis, note in zip(axes, notes, strict=False):
            if isinstance(note.size, str) and self._word(axis) == "?":
                self._words[self._cell(axis)] = note.size

    def _word(self, axis: Known) -> str:
        fixed = isinstance(axis.size, int)
        return str(axis.size) if fixed else self._words.get(self._cell(axis), "?")

    def _shape(self, value: int) -> tuple[tuple[str, ...], ...]:
        rows = self.inferred.shapes[value]
        return tuple(tuple(map(self._word, known_axes(row))) for row in rows)

    def words(self) -> list[tuple[str, ...]]:
        """The rows of every value."""
        values = range(len(self.inferred.shapes))
        return [tuple(map(",".join, self._shape(value))) for value in values]

    def examples(self, ranks: tuple[str, ...]) -> Iterator[ExampleShapes]:
        """Sizes for the letters; ``ranks`` are the inputs whose number of axes is open."""
        batch = {word for rows in self.rows.values() for word in rows[0]}
        for sizes in SIZES:
            others = iter(sizes)
            chosen = {each: 8 if each in batch else next(others) for each in self.letters}
            yield ExampleShapes(self.rows, chosen, ranks)
