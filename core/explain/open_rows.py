"""The text of a tensor function or a routine, with the rows that follow from it before any shape is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Literal

from ilang.core.diagnostic import counted
from ilang.core.explain.expression import aligned
from ilang.core.infer.arrays import ArrayAxes
from ilang.core.infer.operations import GraphConstraints
from ilang.core.infer.rows_so_far import row_words, rows_so_far
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.record import record

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

    def __str__(self) -> str:
        lines = [line for kind in SECTIONS for line in self._section(kind)]
        return "\n".join([*lines, *self._formulas()])

    def listing(self) -> str:
        """Every value, a line each."""
        return "\n".join(aligned([(each.name, each.rows, each.formula) for each in self.values]))

    def of(self, kind: Kind) -> list[OpenRows]:
        """The values of a kind."""
        return [each for each in self.values if each.kind == kind]

    def _section(self, kind: Kind) -> Iterator[str]:
        """The inputs of a kind, below its title; state that parameters have alike is told once."""
        values = self.of(kind)
        parameters = {each.name for each in self.of("parameter")}
        parts = [each.name.rpartition(".") for each in values]
        beside = Counter(name for owner, _, name in parts if owner in parameters)
        alone = [v for v, (owner, *_) in zip(values, parts, strict=True) if owner not in parameters]
        lines = aligned([(each.name, each.rows) for each in alone])
        lines += aligned([(name, f"of {counted(n, 'parameter')}") for name, n in beside.items()])
        if lines:
            yield SECTIONS[kind]
            yield from (f"  {line}" for line in lines)
            yield ""

    def _formulas(self) -> Iterator[str]:
        """The text of each named value; then that of each update of parameters and of state."""
        values = self.of("named")
        cells = aligned([(each.name, each.rows, "") for each in values])
        start = max(map(len, cells), default=0) + 4
        for cell, each in zip(cells, values, strict=True):
            first, *rest = wrap(each.formula, WIDTH - start, break_long_words=False) or [""]
            yield f"  {cell}".ljust(start) + first
            yield from (" " * start + line for line in rest)
        if updates := Counter(each.formula for each in self.of("update")):
            yield from ("", "each run changes")
            counts = [(text, f"{n} tensors" if 1 < n else "") for text, n in updates.items()]
            yield from (f"  {line}" for line in aligned(counts))


def so_far(
    graph: Graph,
    inputs: Mapping[int, tuple[Kind, str]],
    results: Sequence[int],
    changed: Collection[int],
) -> SoFar:
    """The rows of the graph of a definition, as far as they are known.

    Args:
        graph: it.
        inputs: the kind and the name of each input, in the order of the page.
        results: what it returns.
        changed: what parameters and state have from then on.

    Raises:
        ShapeError: E0501 to E0520 (operations that do not agree).
    """
    return SoFar(tuple(_values(graph, inputs, results, changed)))


def _values(
    graph: Graph,
    inputs: Mapping[int, tuple[Kind, str]],
    results: Sequence[int],
    changed: Collection[int],
) -> Iterator[OpenRows]:
    shapes = rows_so_far(GraphConstraints(graph, ArrayAxes(graph, None)))
    names = dict(zip(results, graph.output_names(results), strict=True)) | graph.value_names()
    texts = {each.value: each.span.text() for each in reversed(graph.called)}
    for value in dict.fromkeys((*inputs, *range(len(graph.nodes)))):
        batch, inner, output = (row_words(row) for row in shapes[value])
        rows = f"{batch}|" * bool(batch) + f"{inner}->" * bool(inner) + (output or "()")
        node, name = graph.nodes[value], names.get(value, "")
        if isinstance(node, Terminal) and node.kind != "number":
            yield OpenRows(*inputs.get(value, ("gradient", node.name)), rows, "")
        elif isinstance(node, Operation) and (value in changed or not name):
            kind: Kind = "update" if value in changed else "inner"
            yield OpenRows(kind, name, rows, _line(node.text))
        elif name:
            yield OpenRows("named", name, rows, _line(texts.get(value, node.span.text())))


def _line(text: str) -> str:
    return " ".join(text.split())
