"""The rows of every value of a graph as far as they follow from its operations, before anything open is closed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ilang.core.explain.expression import aligned
from ilang.core.infer.arrays import ArrayAxes
from ilang.core.infer.operations import Collecting
from ilang.core.infer.rows_so_far import row_words, rows_so_far
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.record import record


@record
class OpenRows:
    """A value: its name, its rows with `?` for an open axis and `...` for further ones, what makes it."""

    name: str
    rows: str
    formula: str


@record
class SoFar:
    """The rows of every value that has a name or a text, in order; ``str`` gives aligned lines."""

    values: tuple[OpenRows, ...]

    def __str__(self) -> str:
        return "\n".join(aligned([(each.name, each.rows, each.formula) for each in self.values]))


def so_far(graph: Graph, names: Mapping[int, str]) -> SoFar:
    """The rows of a graph that are known, whose values have names where ``names`` has them.

    Raises:
        ShapeError: E0501 to E0520 (operations that do not agree).
    """
    return SoFar(tuple(_values(graph, names)))


def _values(graph: Graph, names: Mapping[int, str]) -> Iterator[OpenRows]:
    shapes = rows_so_far(Collecting(graph, ArrayAxes(graph, None)))
    for value, (node, shape) in enumerate(zip(graph.nodes, shapes, strict=True)):
        batch, inner, output = (row_words(row) for row in shape)
        rows = f"{batch}|" * bool(batch) + f"{inner}->" * bool(inner) + (output or "()")
        match node:
            case Terminal() if node.kind == "number":
                continue
            case Terminal():
                yield OpenRows(names.get(value, node.name), rows, "")
            case Operation():
                yield OpenRows(names.get(value, ""), rows, " ".join(node.text.split()))
            case _:
                continue
