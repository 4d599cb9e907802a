"""The text of a tensor function or a routine, with the rows that follow from it before any shape is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from textwrap import wrap
from typing import Literal

from ilang.core.diagnostic import counted
from ilang.core.explain.expression import aligned
from ilang.core.infer.arrays import ArrayAxes
from ilang.core.infer.operations import GraphConstraints
from ilang.core.infer.rows_so_far import row_words, rows_so_far
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.ir.rows import KINDS, Dim, Known, Row, Shape
from ilang.core.record import record
from ilang.core.source import Span

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
    text: Span,
    shapes: Sequence[Sequence[str]] | None = None,
) -> SoFar:
    """The rows of the graph of a definition, as far as they are known.

    Args:
        graph: it.
        inputs: the kind and the name of each input, in the order of the page.
        results: what it returns.
        changed: what parameters and state have from then on.
        text: where the definition stands; names of what it calls are of ``inner`` values.
        shapes: the words of the rows of each value; None for what the operations alone say.

    Raises:
        ShapeError: E0501 to E0520 (operations that do not agree).
    """
    if shapes is None:
        rows = rows_so_far(GraphConstraints(graph, ArrayAxes(graph, None)))
        shapes = [tuple(map(row_words, shape)) for shape in rows]
    returned = dict(zip(results, graph.output_names(results), strict=True))
    values = tuple(_values(graph, inputs, returned, changed, text, shapes))
    return SoFar(values, tuple(returned[each] for each in results))


def _values(
    graph: Graph,
    inputs: Mapping[int, tuple[Kind, str]],
    results: Mapping[int, str],
    changed: Collection[int],
    text: Span,
    shapes: Sequence[Sequence[str]],
) -> Iterator[OpenRows]:
    names = {**results, **graph.value_names()}
    calls = {each.value: each.span for each in reversed(graph.called)}
    for value in dict.fromkeys((*inputs, *range(len(graph.nodes)))):
        batch, inner, output = shapes[value]
        rows = f"{batch}|" * bool(batch) + f"{inner}->" * bool(inner) + (output or "()")
        kind: Kind
        node, name = graph.nodes[value], names.get(value, "")
        if isinstance(node, Terminal) and node.kind != "number":
            yield OpenRows(*inputs.get(value, ("gradient", node.name)), rows, "")
        elif isinstance(node, Operation) and (value in changed or not name):
            kind = "update" if value in changed else "inner"
            yield OpenRows(kind, name, rows, _line(node.text))
        elif name:
            span = calls.get(value, node.span)
            is_named = value in results or _is_statement(span, text)
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

    ``sizes`` has the size of each letter, and ``ranks`` the inputs whose number of axes is open, too.
    """

    shapes: Mapping[str, tuple[tuple[str, ...], ...]]
    sizes: Mapping[str, int]
    ranks: tuple[str, ...]

    def texts(self) -> dict[str, str]:
        """The shapes with the sizes of the letters, as ``rows_of`` reads them."""
        return {name: self._text(rows) for name, rows in self.shapes.items()}

    def larger(self) -> ExampleShapes:
        """The same with larger sizes, to tell what depends on which: a sum or a multiple of sizes is no such size."""
        larger = {letter: 7 * size + _step(size) for letter, size in self.sizes.items()}
        return ExampleShapes(self.shapes, larger, self.ranks)

    def _text(self, rows: Sequence[Sequence[str]]) -> str:
        batch, inner, output = (
            ",".join(str(self.sizes.get(axis, axis)) for axis in row) for row in rows
        )
        return f"{batch}|" * bool(batch) + f"{inner}->" * bool(inner) + output

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

    def words(self, one: Shape, other: Shape) -> tuple[str, ...]:
        """The rows of a value in letters, of what it is at the sizes, and at the larger ones."""
        larger = self.larger().sizes
        letters = {(str(size), str(larger[name])): name for name, size in self.sizes.items()}

        def axis(pair: tuple[str, str]) -> str:
            return pair[0] if pair[0] == pair[1] else letters.get(pair, "?")

        rows = [
            (row_words(a).split(","), row_words(b).split(","))
            for a, b in zip(one, other, strict=True)
        ]
        return tuple(",".join(map(axis, zip(a, b, strict=False))) for a, b in rows)


def _step(size: int) -> int:
    return 128 if size % 64 == 0 else 2


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence: ``x, y and z``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


LETTERS = (*"nmklpqrs", *(f"n{n}" for n in range(1, 100)))
SMALL = (3, 2, 5, 7, 6, 4, *range(9, 110))
WIDE = tuple(range(64, 64 * 108, 64))
"""Sizes for letters, in their order: small ones, and some that others divide."""

MORE: tuple[int | str | tuple[str, ...], ...] = (1, "like", (), ("n",), 2, 3, 4)
"""The axes that may stand for `...` in an output row: as many letters, one as a result has it, or these."""


def examples(inputs: Mapping[str, Shape], result: Row | None) -> Iterator[ExampleShapes]:
    """Shapes that inputs could have, by what is known of their rows: likely ones first.

    ``result`` is the output row of what is returned first.
    """
    last = result.trailing[-1:] if result is not None else ()
    like = tuple(str(each.size) for each in last if isinstance(each, Known)) or ("1",)
    more = [like if isinstance(each, str) else each for each in MORE]
    ranks = tuple(n for n, rows in inputs.items() if any(row.variable is not None for row in rows))
    for choice in _choices(len(inputs)):
        for sizes in (SMALL, WIDE):
            letters = iter(LETTERS)
            known: dict[object, str] = {}
            shapes = {
                name: _rows(shape, more[each], letters, known)
                for (name, shape), each in zip(inputs.items(), choice, strict=True)
            }
            axes = {axis for shape in shapes.values() for row in shape for axis in row}
            used = [letter for letter in LETTERS if letter in axes]
            open_sizes = {"b": 8, **dict(zip(used, sizes, strict=False))}
            yield ExampleShapes(shapes, open_sizes, ranks)


def _choices(count: int) -> Iterator[list[int]]:
    """The number in ``MORE`` for each of some inputs: all alike, or one unlike the others."""
    yield [0] * count
    for choice in range(1, len(MORE)):
        for place in reversed(range(count)):
            yield [choice if n == place else 0 for n in range(count)]
        yield [choice] * count


def _rows(
    shape: Shape, more: int | tuple[str, ...], letters: Iterator[str], known: dict[object, str]
) -> tuple[tuple[str, ...], ...]:
    """The rows of one input, with these axes, or as many letters, in place of `...`."""

    def axis(dim: Dim) -> str:
        if isinstance(dim, Known) and isinstance(dim.size, int):
            return str(dim.size)
        if dim not in known:
            known[dim] = next(letters)
        return known[dim]

    batch, inner, output = shape
    for first_axis in batch.axes()[:1]:
        known.setdefault(first_axis, "b")
    if output.variable is None or (output.axes() and more == 1):
        more = ()
    added = tuple(islice(letters, more)) if isinstance(more, int) else more
    first = ("b",) if batch.variable is not None and not batch.axes() else ()
    return (
        (*map(axis, batch.leading), *first, *map(axis, batch.trailing)),
        tuple(map(axis, inner.axes())),
        (*map(axis, output.leading), *added, *map(axis, output.trailing)),
    )
