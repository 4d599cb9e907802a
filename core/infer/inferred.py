"""The solved rows of a graph: the axes of every value, every assignment and every specification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod

from ilang.core.calculus.affine import variables_of
from ilang.core.diagnostic import ShapeError
from ilang.core.infer.counting import Flat, RowAxis, flat
from ilang.core.infer.dims import Log
from ilang.core.infer.operations import GraphConstraints
from ilang.core.infer.rowvars import resolved
from ilang.core.infer.sizes import Sizes
from ilang.core.infer.solver import Solver, solve
from ilang.core.ir.graph import Assignment, Graph, Read
from ilang.core.ir.operation import Operation, Sized
from ilang.core.ir.rows import MEMORY_ORDER, Known, Shape, known_axes, opened
from ilang.core.ir.spec import Spec


class Inferred:
    """The rows of every value of a graph, and the sizes of the labels of every specification."""

    def __init__(
        self, graph: Graph, log: Log | None = None, ranks: Sequence[int | None] | None = None
    ) -> None:
        """Solve a graph.

        Args:
            graph: in which leaves with rows stand beside inputs that are arrays.
            log: takes down what fixes each variable; then ``open`` has the rows before that.
            ranks: the ranks of the arrays, one per input, None for one that is not there.
                Extents come at run time.

        Raises:
            ShapeError: E0501 to E0532, E0570 to E0574.
        """
        self.graph = graph
        collected = GraphConstraints(graph, ranks)
        with _blaming(graph):
            self._solution = solve(
                collected.dims,
                collected.rows,
                collected.constraints,
                collected.names,
                log,
                collected.arrays.given,
            )
        self.run_time = self._solution.run_time
        """The sizes that follow from run-time ones, and the conditions that these must satisfy."""
        self.steps = self._solution.steps
        """The number of constraints that the solver looked at: its work, in a number that no machine changes."""
        self.open = collected.shapes if log is not None else []
        self.names = collected.names
        self._collected = collected
        self.arrays = collected.arrays
        self._labels = collected.labels
        self.shapes: list[Shape] = list(map(self._solved, collected.shapes))
        self._axes = [
            [axis for kind in MEMORY_ORDER for axis in known_axes(shape[kind])]
            for shape in self.shapes
        ]
        self._node_axes = {
            value: list(map(self._solution.known, axes))
            for value, axes in collected.node_axes.items()
        }
        self._counted: dict[int, list[Flat]] = {}
        self._check_positions()
        self._views = {key: self._solved(shape) for key, shape in collected.views.items()}

    def _check_positions(self) -> None:
        """Refuse axes that only positions have, where nothing gives their extent.

        Raises:
            ShapeError: E0575.
        """
        guessed = {self._solution.cell(known) for known in self.run_time.guessed}
        for value, axes in self._node_axes.items() if guessed else ():
            node = self.graph.nodes[value]
            if not isinstance(node, Assignment):
                continue
            read = variables_of(part for r in node.reads for part in r.index)
            for number, axis in enumerate(node.axes):
                if number not in read and self._solution.cell(axes[number]) in guessed:
                    message = f"nothing fixes the extent of axis {axis.name}"
                    help_line = f"write it where the position is: `@({axis.name}:10)`"
                    raise ShapeError("E0575", message, axis.span, help_line)

    def _solved(self, shape: Shape) -> Shape:
        batch, inner, output = (self._solution.row(row) for row in shape)
        return batch, inner, output

    def axes(self, value: int) -> list[Known]:
        """The axes of a value in memory order."""
        return self._axes[value]

    def node_axes(self, value: int) -> list[Known]:
        """The axes of an assignment, or of a view."""
        return self._node_axes[value]

    def stays(self, value: int, read: Read) -> bool:
        """Whether a read of an assignment with affine indices never leaves its dimensions."""
        return read in self._collected.inside.get(value, ())

    def named_axes(self) -> Iterator[tuple[Known, str]]:
        """The dimensions of values that operations give names, each with the name."""
        for constraint in self.graph.constraints:
            if isinstance(constraint, Sized) and constraint.of == "dims":
                axes = self.axes(constraint.value)
                for known, amount in zip(axes, constraint.amounts, strict=True):
                    if isinstance(amount, str):
                        yield known, amount

    def viewed(self, value: int, operand: int) -> Shape:
        """The rows of an operand as the specification of an operation sees them; the result comes last."""
        node = self.graph.nodes[value]
        assert isinstance(node, Operation)
        values = (*node.operands, value)
        return self._views.get((value, operand)) or self.shapes[values[operand]]

    def label(self, node: int, label: str | RowAxis) -> Known:
        """The axis that a label of the specification of a node is, or one that a row variable stands for."""
        labels = self._labels[node]
        places = labels.dims[label] if isinstance(label, str) else labels.places[label]
        return self._solution.known(places)

    def counted(self, value: int) -> list[Flat] | None:
        """The axes of the shapes of the specification of a node, where its row variables are counted."""
        node = self.graph.nodes[value]
        if self.arrays.ranks is None or not isinstance(node, Operation):
            return None
        known = self._counted.get(value)
        if known is None:
            assert isinstance(node.logic, Spec)
            counted = self.arrays.ranks.counted
            known = self._counted[value] = [
                flat(shape, lambda name: counted[value, name].length)
                for shape in node.logic.shapes()
            ]
        return known

    def numbered(self) -> Sizes:
        """The size numbers of its axes, none of which is asked for yet."""
        return Sizes(self._solution.cell, self._solution.known, self.graph.nodes[0].span)

    def labels_of(self, node: int) -> list[tuple[str, int]]:
        """The axis labels of the specification of a node, each with its dimension variable."""
        labels = self._labels.get(node)
        return [] if labels is None else [(name, dim.number) for name, dim in labels.dims.items()]

    def captured(self) -> dict[str, int]:
        """The size of every label, of row labels the product; the last specification that uses one counts."""
        captured: dict[str, int] = {}
        for labels in self._labels.values():
            for name, dim in labels.dims.items():
                captured[name] = self._solution.size(dim)
            for name, variable in labels.rows.items():
                axes = self._solution.row(opened(variable)).axes()
                captured[name] = prod(map(self._solution.size, axes))
        return captured

    def units(self, value: int) -> tuple[str | None, ...]:
        """The units of the axes of a value, in memory order."""
        batch, inner, output = self.shapes[value]
        return tuple(
            self._solution.label(axis) for row in (batch, output, inner) for axis in row.axes()
        )


@contextmanager
def _blaming(graph: Graph) -> Iterator[None]:
    """Tell an error of shapes at the call of a definition that is at fault."""
    try:
        yield
    except ShapeError as error:
        from ilang.core.infer.blame import blamed

        raise blamed(graph, error) from None


def rows_so_far(graph: Graph) -> list[Shape]:
    """The rows of every value before anything open is closed: what the operations alone say (stage 1 of the solver).

    Raises:
        ShapeError: E0501 to E0520.
    """
    collected = GraphConstraints(graph)
    given = collected.arrays.given
    solver = Solver(collected.dims, collected.rows, collected.names, given)
    with _blaming(graph):
        solver.submit(collected.constraints)
    rows = solver.rows
    return [
        (resolved(rows, batch), resolved(rows, inner), resolved(rows, output))
        for batch, inner, output in collected.shapes
    ]
