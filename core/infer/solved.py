"""The solved graph: the size of every dimension and axis, and the projections of operations.

Produced from a graph by the solver, consumed by ``passes/solved_to_shaped.py``.

Invariants:
    - Values and nodes are those of the graph; sizes are numbered from 0.
    - An index that walks a whole dimension belongs to an axis of that size: of an assignment, or of a projection.
    - A projection indexes its result, and each operand that it reads, once per dimension.
    - ``derived`` is in the order in which extents can be computed.

Example:
    in:   n2 = n0[i,k] * n1[k,j];  n3 = fold + over k: n2[i,j,k]
    out:  n0 [i,k]   n1 [k,j]   n2 [i,j,k] for i j k   n3 [i,j] for i j k   sizes i k j, of n0 and n1
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import starmap
from typing import TYPE_CHECKING

from ilang.core.calculus.affine import Affine, Within, inside
from ilang.core.infer.counting import Flat, RowAxis, axis_says
from ilang.core.infer.inferred import Inferred
from ilang.core.ir.graph import Assignment, Graph, Node, Read, View
from ilang.core.ir.operation import Operation
from ilang.core.ir.rows import MEMORY_ORDER, Known
from ilang.core.ir.shaped import Counted, Derivation, InputDimension, Rows, Size
from ilang.core.ir.spec import Axis, ShapeSpec, Spec, names_of
from ilang.core.record import replace
from ilang.core.source import Span

if TYPE_CHECKING:  # expressions have no projections
    from ilang.core.infer.projections import OperationLoop, Projection

Key = str | RowAxis
"""An axis of a specification: a label, or one that a row variable stands for."""
RowsOf = Callable[[int], Sequence[Flat] | None]
"""The axes of the shapes of the specification of a node, where its row variables are counted."""


def graph_to_solved(graph: Graph, ranks: Sequence[int | None] | None = None) -> Solved:
    """Infer the extents of a graph.

    Args:
        graph: in which index expressions, specifications and operations may be mixed.
        ranks: the ranks of its arrays, one per input, None for one that is not there.

    Raises:
        ShapeError: E05 (ranks and extents), E0508 (a rank that nothing determines).
    """
    return Solved(Inferred(graph, None, ranks))


class Solved:
    """The extents of a graph."""

    def __init__(self, inferred: Inferred, needed: Collection[int] | None = None) -> None:
        """Number the sizes of every value and axis, and project the operations.

        Args:
            inferred: the rows.
            needed: the values to compute, inputs among them; None for all.
        """
        self.graph = inferred.graph
        self.inferred = inferred
        self.needed = range(len(self.graph.nodes)) if needed is None else needed
        self.inputs = tuple(value for value in self.graph.inputs if value in self.needed)
        self.numbers = inferred.numbered()
        self.letters = _Letters(self.graph, inferred.counted)
        self._dims: list[tuple[int, ...]] = []
        self._axes: dict[int, tuple[int, ...]] = {}
        self._name()
        self.projections = self._projected()
        run_time = inferred.run_time
        self.reaches = tuple(starmap(self.numbers.reach, run_time.reaches))
        self.derived = self._derivations()
        for known in run_time.guessed:
            self.numbers.guess(known)

    def _projected(self) -> dict[int, list[Projection]]:
        operations = [
            value
            for value, node in enumerate(self.graph.nodes)
            if isinstance(node, Operation) and value in self.needed
        ]
        if not operations:
            return {}
        from ilang.core.infer.projections import project

        return {value: project(self.inferred, value, self.numbers) for value in operations}

    def _name(self) -> None:
        """Number the sizes in the order in which values, then their axes, have them.

        Names that definitions and operations write come first, then the letters of expressions, then those of ellipses.
        """
        named: dict[int, tuple[Known, str]] = {}
        for annotation in reversed(
            self.graph.annotations
        ):  # the outermost definition is the last: its words win
            if annotation.dims is None or annotation.scope < 0:  # that of an elementwise kernel
                continue
            for known, word in zip(
                self.inferred.axes(annotation.value), annotation.dims, strict=True
            ):
                if isinstance(word, str):
                    named.setdefault(self.numbers.cell(known), (known, word))
        numbered: dict[int, str] = {}
        for known, word in self.inferred.named_axes():
            if word.rpartition("_")[2].isdigit():  # of an ellipsis, which has no letters
                numbered.setdefault(self.numbers.cell(known), word)
            else:
                named.setdefault(self.numbers.cell(known), (known, word))
        letters: dict[int, tuple[Known, str]] = {}
        called: dict[int, tuple[Known, int]] = {}
        cells = [
            [self._met(letters, called, *each) for each in self._words(value, node)]
            for value, node in enumerate(self.graph.nodes)
        ]
        chosen = {
            cell: self.numbers.unique.fresh(named[cell][1]) for cell in letters if cell in named
        }
        size = {
            cell: self.numbers.add(
                known,
                chosen.get(cell) or self.numbers.unique.fresh(letter or numbered.get(cell, "n")),
            )
            for cell, (known, letter) in letters.items()
        }
        for value, met in enumerate(cells):
            rank = len(self.inferred.axes(value))
            self._dims.append(tuple([size[cell] for cell in met[:rank]]))
            self._axes[value] = tuple([size[cell] for cell in met[rank:]])

    def _met(
        self,
        letters: dict[int, tuple[Known, str]],
        called: dict[int, tuple[Known, int]],
        known: Known,
        letter: str,
    ) -> int:
        """The cell of an axis, one for all axes that are one extent; note the first letter that the text gives it.

        Args:
            letters: by cell, an axis of it and that letter, which is empty so far where no text has one.
            called: the cells of axes that have a letter, by the identity of the axis: they need no second look.
            known: the axis.
            letter: what the text calls the axis here, or nothing.
        """
        if id(known) in called:
            return called[id(known)][1]
        cell = self.numbers.cell(known)
        if not letters.get(cell, (known, ""))[1]:
            letters[cell] = (known, letter)
        if letters[cell][1]:
            called[id(known)] = known, cell
        return cell

    def _words(self, value: int, node: Node) -> Iterator[tuple[Known, str]]:
        """The axes of a value, then those of its node, and what the text calls them."""
        for dim, known in enumerate(self.inferred.axes(value)):
            yield known, self.letters.of(value, dim)[0]
        if isinstance(node, Assignment | View):
            for known, axis in zip(self.inferred.node_axes(value), node.axes, strict=True):
                yield known, axis.name
        if not isinstance(node, Operation):
            return
        rows = self.inferred.counted(value)
        labels = [name for name, _ in self.inferred.labels_of(value)]
        for key in labels if rows is None else _named_axes(rows):
            yield self.inferred.label(value, key), key if isinstance(key, str) else key.name()

    def dims(self, value: int) -> tuple[int, ...]:
        """The size numbers of the dimensions of a value."""
        return self._dims[value]

    def axes(self, value: int) -> tuple[int, ...]:
        """The size numbers of the axes of an assignment, or of a view."""
        return self._axes[value]

    def guards(self, value: int, read: Read) -> tuple[Within, ...]:
        """The conditions for a read of an assignment to stay in its dimensions, where they are not known to hold."""
        moving = [
            dim
            for dim, index in enumerate(read.index)
            if index.axis() is None and index.variables()
        ]
        if not moving or self.inferred.stays(value, read):
            return ()
        dims = self.dims(read.value)
        return inside([read.index[dim] for dim in moving], [dims[dim] for dim in moving])

    def size_of(self, loop: OperationLoop) -> int:
        """The size number of a loop of a projection."""
        return self.numbers.once() if loop.size is None else loop.size

    def fixed(self, size: int) -> int | None:
        """The extent of a size number, or None where it comes at run time."""
        return self.numbers.fixed(size)

    def sizes(self) -> tuple[Size, ...]:
        """Every size, with the dimensions of inputs that have it."""
        places: dict[int, list[InputDimension]] = {}
        for number, value in enumerate(self.inputs):
            for dim, size in enumerate(self.dims(value)):
                span = self.letters.of(value, dim)[1]
                places.setdefault(size, []).append(InputDimension(number, dim, span))
        return self.numbers.table(places)

    def _derivations(self) -> tuple[Derivation, ...]:
        """The extents that follow from others, by each rule once; one that a window fills is 1 at least."""
        filled = {reach.size for reach in self.reaches if reach.part is not None}
        rules: dict[Derivation, Derivation] = {}
        for known, derived in self.inferred.run_time.derived:
            rule = self.numbers.rule(known, derived)
            rules.setdefault(replace(rule, span=self.numbers.span), rule)
        return (
            *(
                replace(each, least=1) if each.size in filled and not each.is_composed() else each
                for each in rules.values()
            ),
            *self.numbers.derived,
        )

    def rows(self) -> Iterator[Rows]:
        """The rows that specifications determined, in the order of the graph."""
        for value, node in enumerate(self.graph.nodes):
            if not isinstance(node, Operation):
                continue
            rows = self.inferred.counted(value)
            if rows is None:
                continue
            for each, (batch, inner, output) in zip((*node.operands, value), rows, strict=True):
                axes = tuple(map(axis_says, (*batch, *output, *inner)))
                yield Rows(each, axes, len(batch), len(inner))

    def counted(self) -> tuple[Counted, ...]:
        """The row variables that are known, in the order in which they were determined."""
        ranks = self.inferred.arrays.ranks
        if ranks is None:
            return ()
        return tuple(ranks.counted.values())


# -- names of dimensions -----------------------------------------------------------------------------------------------


class _Letters:
    """The letters by which each dimension of a graph is first read, or given, and where they stand."""

    def __init__(self, graph: Graph, rows: RowsOf) -> None:
        self.graph = graph
        self.rows = rows
        self._first: dict[int, list[tuple[str, Span]]] = {}
        self._results: dict[int, list[tuple[str, Span]]] = {}
        for value, node in enumerate(graph.nodes):
            if isinstance(node, Assignment):
                for read in node.reads:
                    letters = list(zip(_letters(node, read.index), read.spans, strict=True))
                    self._first.setdefault(read.value, letters)
            elif isinstance(node, View):
                words = [(_joined(node, group), node.span) for group in node.source]
                self._first.setdefault(node.value, words)
            elif isinstance(node, Operation):
                shapes = self._shapes(value, node)
                for each, letters in zip(node.operands, shapes, strict=False):
                    self._first.setdefault(each, letters)
                if shapes:
                    self._results[value] = shapes[-1]

    def of(self, value: int, dim: int) -> tuple[str, Span]:
        """The letters of a dimension, and where they stand; none for a fixed index."""
        node = self.graph.nodes[value]
        if value in self._first:
            return self._first[value][dim]
        if isinstance(node, Assignment):
            return _letters(node, node.target)[dim], node.span
        if isinstance(node, View):
            return _joined(node, node.target[dim]), node.span
        result = self._results.get(value)
        return ("", node.span) if result is None else result[dim]

    def _shapes(self, value: int, node: object) -> list[list[tuple[str, Span]]]:
        rows = self.rows(value)
        if rows is None or not isinstance(node, Operation) or not isinstance(node.logic, Spec):
            return []
        shapes = zip(node.logic.shapes(), rows, strict=True)
        return [_shape_letters(shape, each) for shape, each in shapes]


def _stored(rows: Sequence[Sequence[Axis | RowAxis]]) -> list[Axis | RowAxis]:
    """The axes of three rows in memory order."""
    return [axis for kind in MEMORY_ORDER for axis in rows[kind]]


def _axis_keys(axis: Axis | RowAxis) -> tuple[Key, ...]:
    """The axes that one entry of a shape names."""
    return (axis,) if isinstance(axis, RowAxis) else names_of(axis)


def _named_axes(rows: Sequence[Flat]) -> Iterator[Key]:
    """The axes that a specification names, in the order in which its shapes have them."""
    yield from dict.fromkeys(
        key for each in rows for axis in _stored(each) for key in _axis_keys(axis)
    )


def _joined(node: View, group: Sequence[int]) -> str:
    """The name in sizes of a dimension of several axes."""
    return _one_word([node.axes[axis].name for axis in group])


def _one_word(names: Sequence[str]) -> str:
    """Names in a row: letters as they are, words apart."""
    return ("" if all(len(name) == 1 for name in names) else "_").join(names)


def _axis_letters(axis: Axis | RowAxis) -> str:
    """The name in pages and sizes of the dimension that an axis walks; empty for a fixed index and a blank."""
    if isinstance(axis, RowAxis):
        return axis.name()
    return _one_word([key if isinstance(key, str) else key.name() for key in _axis_keys(axis)])


def _shape_letters(
    shape: ShapeSpec, rows: Sequence[Sequence[Axis | RowAxis]]
) -> list[tuple[str, Span]]:
    """The letters of each dimension in memory order, and where they stand."""
    return [
        (_axis_letters(axis), shape.span if isinstance(axis, RowAxis) else axis.span)
        for axis in _stored(rows)
    ]


def _letters(node: Assignment, index: Sequence[Affine]) -> list[str]:
    return ["".join(node.axes[axis].name for axis in part.variables()) for part in index]
