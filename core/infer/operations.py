"""Operations to constraints: what each operation of a graph requires of the rows of its operands and its result.

C is the result, A and B the operands; ⊑ an inequality (the operand may be repeated), = an equation:

    pointwise    C ⊑ X in every row, for every operand X
    compose      A.input ⊑ B.output;  C.batch ⊑ A.batch, B.batch;  C.input ⊑ B.input;  C.output ⊑ A.output
    transpose    C.batch ⊑ A.batch;  C.input ⊑ A.output;  C.output ⊑ A.input
    slice        A.batch = [s, ..C.batch..];  the other rows equal
    einsum       each row of the specification = that of its tensor
    stack        C = A with one more first axis in one row
    interleave   C = A with the last output axis twice as long
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, assert_never

from ilang.core.infer.arrays import ArrayAxes
from ilang.core.infer.counting import RowAxis
from ilang.core.infer.indices import opened_axes
from ilang.core.infer.notes import Notes, brief, compared
from ilang.core.infer.rowvars import EMPTY
from ilang.core.infer.scopes import Scopes
from ilang.core.ir import spec as notation
from ilang.core.ir.graph import (
    Annotation,
    Assignment,
    Axis,
    Einx,
    Elementwise,
    Graph,
    Input,
    Node,
    OpenKernel,
    Read,
    View,
    operands,
)
from ilang.core.ir.operation import Einsum, Operation, Slice, Stack, Terminal
from ilang.core.ir.rows import (
    KINDS,
    MEMORY_ORDER,
    AtLeast,
    Composed,
    Constraint,
    Determined,
    Dim,
    DimEqual,
    Known,
    LeafRow,
    Origin,
    Positions,
    Product,
    Row,
    RowBelow,
    RowEqual,
    Shape,
    StoredRows,
    Var,
    closed,
    opened,
    weighted,
    window,
)

BATCH, INPUT, OUTPUT = range(3)


class Labels:
    """The names of one specification: axes by dimension variable, row variables by number."""

    def __init__(self, node: int) -> None:
        """No names yet; ``node`` has the specification."""
        self.node = node
        self.places: dict[RowAxis, Var] = {}
        self.dims: dict[str, Var] = {}
        self.rows: dict[str, int] = {}


class GraphConstraints:
    """The constraints of one graph."""

    def __init__(self, graph: Graph, arrays: ArrayAxes) -> None:
        """Collect them; ``arrays`` are its inputs without rows."""
        self.graph = graph
        self.arrays = arrays
        self.dims = len(arrays.given)
        self.rows = 0
        self.constraints: list[Constraint] = []
        self.names: dict[int, str] = {}
        self.shapes: list[Shape] = []
        self.labels: dict[int, Labels] = {}
        self.latest: dict[str, Labels] = {}
        self.views: dict[tuple[int, int], Shape] = {}
        self.node_axes: dict[int, list[Dim]] = {}
        self.inside: dict[int, set[Read]] = {}
        self.annotated: dict[tuple[int, str], Var] = {}
        self.scopes = Scopes(self._fresh)
        self.notes = Notes(self._fresh, self._open)
        self.used, self.bound = _uses(graph)
        for value, node in enumerate(graph.nodes):
            self._node(value, node)
        for annotation in graph.annotations:
            self._annotate(annotation)
        if graph.constraints:
            from ilang.core.infer.size_constraints import SizeConstraintCollector

            collector = SizeConstraintCollector(self)
            for constraint in graph.constraints:
                collector.add(constraint)

    def _node(self, value: int, node: Node) -> None:
        match node:
            case Terminal():
                self.shapes.append(self._terminal(value, node))
            case Operation():
                shape = (self._open(), self._open(), self._open())
                self.shapes.append(shape)
                self._operation(value, node, shape)
            case Input():
                self.shapes.append((EMPTY, EMPTY, closed(self.arrays.axes[value])))
            case Elementwise():
                self.shapes.append(self.shapes[node.value])
            case Assignment():
                self.shapes.append((EMPTY, EMPTY, closed(self._assignment(value, node))))
            case View():
                self.shapes.append((EMPTY, EMPTY, closed(self._view(value, node))))
            case Einx() | OpenKernel():
                raise AssertionError(node)
            case _:
                assert_never(node)

    def _fresh(self, name: str | None = None) -> Var:
        self.dims += 1
        if name is not None:
            self.names[self.dims - 1] = name
        return Var(self.dims - 1)

    def _open(self) -> Row:
        self.rows += 1
        return opened(self.rows - 1)

    # -- leaves ------------------------------------------------------------------------------------------------------

    def _terminal(self, value: int, node: Terminal) -> Shape:
        if node.kind == "number":
            unit = Known(1, True, None, Origin(f"the number {node.value}", node.span))
            return closed(()), closed(()), closed((unit,))
        given = self.arrays.rows[value]
        rows = [self._open() if axes is None else closed(axes) for axes in given]
        required = node.kind == "parameter" and value in self.bound
        for kind, (row, axes) in enumerate(zip(rows, node.rows, strict=True)):
            if axes is None and node.kind != "alike":
                origin = Origin(f"the {KINDS[kind]} row of {node.name}", node.span, "", None)
                repeated = node.kind == "constant" and kind != OUTPUT
                leaf = LeafRow(row, required, kind == OUTPUT, origin, repeated)
                self.constraints.append(leaf)
        if value not in self.used and node.rows[OUTPUT] is None and node.count is None:
            guess = Known(1, True, None, Origin(f"the output of {node.name}", node.span))
            unused = Origin(f"{node.name}, which nothing uses,", node.span)
            self.constraints.append(RowEqual(rows[OUTPUT], closed((guess,)), unused))
        if node.count is not None:
            origin = Origin(f"{node.name} has {node.count} values", node.span)
            total = closed((Known(node.count, False, None, origin),))
            self.constraints.append(Product(tuple(rows), (total,), origin))
        return rows[0], rows[1], rows[2]

    # -- index expressions -------------------------------------------------------------------------------------------

    def _assignment(self, value: int, node: Assignment) -> list[Dim]:
        """Relate the axes of an assignment to what it reads; the dimensions of its result.

        An axis is the first dimension that it walks; only the others make equations.
        """
        says, axes = f"`{node.text}`", _written(node)
        accesses = [
            (read, self.dimensions(read.value, len(read.index), Origin(says, read.span, "", None)))
            for read in node.accesses()
        ]
        for read, dims in accesses:
            for dim, index, span in zip(dims, read.index, read.spans, strict=True):
                whole = index.axis()
                if whole is not None:
                    if axes.setdefault(whole, dim) is not dim:
                        self.constraints.append(
                            DimEqual(axes[whole], dim, Origin(says, span, "", None))
                        )
                elif not index.variables():
                    self.constraints.append(
                        AtLeast(dim, index.offset + 1, Origin(says, span, "", None))
                    )
        for number, axis in enumerate(node.axes):
            if number not in axes:
                axes[number] = self._fresh(f"axis {axis.name} of {says}")
        for number in node.some:
            not_empty = AtLeast(axes[number], 1, Origin(says, node.span, "", None))
            self.constraints.append(not_empty)
        opened, self.inside[value] = opened_axes(node)
        for each in opened:
            span = each.read.spans[each.dim]
            windows = tuple((step, axes[axis]) for step, axis in each.windows)
            place = Origin(f"`{span.text()}` in {says}", span)
            dim = next(dims[each.dim] for read, dims in accesses if read is each.read)
            c = Positions(axes[each.axis], dim, windows, each.stride, each.padding(), place)
            self.constraints.append(c)
        self.node_axes[value] = [axes[number] for number in range(len(node.axes))]
        whole_axes = [index.axis() for index in node.target]
        return [self._fresh() if axis is None else axes[axis] for axis in whole_axes]

    def _view(self, value: int, node: View) -> list[Dim]:
        """Relate the axes of a view to the dimensions of what it is of; the dimensions of its result."""
        says = f"`{node.text}`"
        origin = Origin(says, node.span, "", None)
        axes = _written(node)
        unit = Known(1, False, None, Origin(f"an axis of no part in {says}", node.span))
        whole: dict[tuple[int, ...], Dim] = {(): unit}
        dims = self.dimensions(node.value, len(node.source), origin)
        for group, dim in zip(node.source, dims, strict=True):
            held = (
                axes.setdefault(group[0], dim) if len(group) == 1 else whole.setdefault(group, dim)
            )
            if held is not dim:
                self.constraints.append(DimEqual(held, dim, origin))
        for number, axis in enumerate(node.axes):
            if number not in axes:
                axes[number] = self._fresh(f"axis {_word(axis)} of {says}")
        for group in node.groups():
            if group not in whole:
                whole[group] = self._fresh(f"{node.group_text(group)} of {says}")
            parts = tuple(axes[axis] for axis in group)
            names = tuple(_word(node.axes[axis]) for axis in group)
            self.constraints.append(Composed(whole[group], parts, names, origin))
        self.node_axes[value] = [axes[number] for number in range(len(node.axes))]
        return [axes[group[0]] if len(group) == 1 else whole[group] for group in node.target]

    def dimensions(self, value: int, rank: int, origin: Origin) -> tuple[Dim, ...]:
        """The dimensions of what is read; of a value with rows, new ones that are its axes one after the other."""
        batch, inner, output = self.shapes[value]
        plain = batch is EMPTY and inner is EMPTY and output.variable is None
        if plain and output.count() == rank:
            return output.axes()
        dims = tuple(self._fresh() for _ in range(rank))
        self._stored((batch, inner, output), dims, origin)
        return dims

    def _stored(self, shape: Shape, axes: Sequence[Dim], origin: Origin) -> None:
        """The axes of a tensor, in the order in which they are stored."""
        rows = tuple(shape[kind] for kind in MEMORY_ORDER)
        self.constraints.append(StoredRows((closed(axes),), rows, origin))

    def _annotate(self, annotation: Annotation) -> None:
        """Constrain the dimensions of a value as its definition writes them."""
        dims: list[Dim] = []
        for number, written in enumerate(annotation.dims or ()):
            if isinstance(written, int):
                place = Origin(
                    f"dimension {number} of {annotation.name}", annotation.span, "", "written"
                )
                dims.append(Known(written, False, None, place))
                continue
            key = (annotation.scope, written)
            if key not in self.annotated:
                self.annotated[key] = self._fresh(f"dimension {written} of {annotation.name}")
            dims.append(self.annotated[key])
        if annotation.dims is not None:
            origin = Origin(f"the definition of {annotation.name}", annotation.span)
            self._stored(self.shapes[annotation.value], dims, origin)

    # -- operations --------------------------------------------------------------------------------------------------

    def _operation(self, value: int, node: Operation, shape: Shape) -> None:
        """Relate the rows of an operation to those of its operands, as its logic says."""
        origin = Origin(f"`{node.text}`", node.span, "", None)
        operands = [self.shapes[operand] for operand in node.operands]
        match node.logic:
            case "pointwise":
                for name, operand in zip(self._names(node), operands, strict=True):
                    for kind, row, operand_row in zip(KINDS, shape, operand, strict=True):
                        self.below(row, operand_row, origin.at(kind, name))
            case "compose":
                self._compose(shape, operands[0], operands[1], self._names(node), origin)
            case "transpose":
                batch, inner, output = operands[0]
                for row, operand_row in zip(shape, (batch, output, inner), strict=True):
                    self.below(row, operand_row, origin)
            case Slice():
                self._slice(node, node.logic, shape, operands, origin)
            case Einsum():
                shapes, names = [*operands, shape], [*self._names(node), "the result"]
                self._einsum(value, node.logic.spec, shapes, names, origin)
            case Stack():
                self._stack(node, node.logic.kind, shape, operands, origin)
            case "interleave":
                self._interleave(node, shape, operands, origin)
            case _:
                assert_never(node.logic)

    def below(self, result: Row, operand: Row, origin: Origin) -> None:
        """Require that an operand's row fits a result's, repeated where it may be."""
        self.constraints.append(RowBelow(result, operand, origin))

    def _equal(self, one: Row, other: Row, origin: Origin, read: int | None = None) -> None:
        """Require that two rows are equal; one of them is that of what is ``read``, if anything is."""
        computed = read is not None and not isinstance(self.graph.nodes[read], Terminal | Input)
        self.constraints.append(RowEqual(one, other, origin, computed))

    def _names(self, node: Operation) -> list[str]:
        nodes = [self.graph.nodes[operand] for operand in node.operands]
        return list(map(brief, nodes))

    def _compose(self, c: Shape, a: Shape, b: Shape, names: list[str], origin: Origin) -> None:
        rows = f"the input row of {names[0]} against the output row of {names[1]}"
        self.below(a[INPUT], b[OUTPUT], Origin(origin.says, origin.span, rows, None))
        for row, side, name in ((BATCH, a, 0), (BATCH, b, 1), (INPUT, b, 1), (OUTPUT, a, 0)):
            self.below(c[row], side[row], origin.at(KINDS[row], names[name]))

    def _slice(
        self, node: Operation, logic: Slice, c: Shape, operands: Sequence[Shape], origin: Origin
    ) -> None:
        (a, *position), read = operands, node.operands[0]
        axis = self._fresh("the first batch axis")
        rest = self._open()
        takes = Origin(origin.says, origin.span, role="slice")
        self._equal(a[BATCH], Row((axis,), rest.variable, ()), takes, read)
        self._equal(c[BATCH], rest, origin)
        self._equal(c[INPUT], a[INPUT], origin, read)
        self._equal(c[OUTPUT], a[OUTPUT], origin, read)
        for row in (row for shape in position for row in shape):
            self._equal(row, EMPTY, Origin(origin.says, origin.span, "its position has no axes"))
        self.constraints.append(AtLeast(axis, (logic.position or 0) + 1, origin))
        if logic.extent is not None:
            extent = Known(logic.extent, False, None, Origin("the declared range", origin.span))
            self.constraints.append(DimEqual(axis, extent, origin))

    def _stack(
        self, node: Operation, kind: int, c: Shape, operands: Sequence[Shape], origin: Origin
    ) -> None:
        count = Known(len(operands), False, None, origin)
        for row in range(3):
            rest = self._open()
            for read, operand in zip(node.operands, operands, strict=True):
                self._equal(operand[row], rest, origin, read)
            stacked = Row((count,), rest.variable, ()) if row == kind else rest
            self._equal(c[row], stacked, origin)

    def _interleave(
        self, node: Operation, c: Shape, operands: Sequence[Shape], origin: Origin
    ) -> None:
        half, rest = self._fresh("the last output axis"), self._open()
        for read, operand in zip(node.operands, operands, strict=True):
            self._equal(operand[OUTPUT], Row((), rest.variable, (half,)), origin, read)
            for row in (BATCH, INPUT):
                self._equal(c[row], operand[row], origin, read)
        double = weighted([(2, half)], 0, origin)
        self._equal(c[OUTPUT], Row((), rest.variable, (double,)), origin)

    # -- specifications ----------------------------------------------------------------------------------------------

    def _einsum(
        self,
        value: int,
        spec: notation.Spec,
        shapes: Sequence[Shape],
        names: Sequence[str],
        origin: Origin,
    ) -> None:
        """Relate the rows of operands and result to a specification: axes of one label are one axis."""
        node = self.graph.nodes[value]
        assert isinstance(node, Operation)
        labels = self.labels[value] = Labels(value)
        divided = ", names divided by commas," if spec.named else ""
        for number, (shape, tensor, name) in enumerate(
            zip(spec.shapes(), shapes, names, strict=True)
        ):
            says = f"`{shape.span.text().strip()}` in {origin.says}"
            if number < len(spec.operands) and self._is_flat(value, number):
                self._viewed(value, number, shape, Origin(says, shape.span))
                continue
            meets = self._meets(value, number)
            read = node.operands[number] if number < len(node.operands) else None
            for kind, row, of_tensor in zip(KINDS, shape.rows, tensor, strict=True):
                rows = f"its {kind} row{divided} against that of {name}"
                place = Origin(says, shape.span, rows, meets)
                self._equal(self._row(labels, row, origin), of_tensor, place, read)
        for shape in spec.operands:
            self._parts_are_given(labels, shape, origin)
        for name in (*labels.dims, *labels.rows):
            self.latest[name] = labels

    def _parts_are_given(self, labels: Labels, shape: notation.ShapeSpec, origin: Origin) -> None:
        """Require that something gives the sizes of the parts of an operand: many sizes have one sum."""
        for axis in shape.axes():
            if isinstance(axis, notation.Joined):
                place = Origin(f"`{axis.span.text()}` in {origin.says}", axis.span)
                for name in axis.parts:
                    part = self._label(labels, name, origin)
                    self.constraints.append(Determined(part, name, place))

    def _meets(self, value: int, number: int) -> Literal["leaf", "result"]:
        """The kind of value that a shape of a specification meets: a leaf, or one that is computed."""
        node = self.graph.nodes[value]
        assert isinstance(node, Operation)
        read = (*node.operands, value)[number]
        return "leaf" if isinstance(self.graph.nodes[read], Terminal | Input) else "result"

    def _is_flat(self, value: int, number: int) -> bool:
        """Whether an operand is an array: its dimensions are not divided into rows."""
        node = self.graph.nodes[value]
        assert isinstance(node, Operation)
        return node.operands[number] in self.arrays.flat

    def _viewed(self, value: int, number: int, shape: notation.ShapeSpec, origin: Origin) -> None:
        """A specification that reads an array: its rows are divided anew, one after the other."""
        node = self.graph.nodes[value]
        assert isinstance(node, Operation)
        text = Origin(f"`{node.text}`", node.span, "", None)
        labels = self.labels[value]
        batch, inner, output = (
            self._numbered(self._row(labels, row, text), origin) for row in shape.rows
        )
        view = self.views[value, number] = (batch, inner, output)
        sides = [
            tuple(each[kind] for kind in MEMORY_ORDER)
            for each in (view, self.shapes[node.operands[number]])
        ]
        self.constraints.append(StoredRows(sides[0], sides[1], origin))

    def _numbered(self, row: Row, origin: Origin) -> Row:
        """A row in which every sum is an axis with a number."""
        numbered, sums = row.numbered(self._fresh)
        self.constraints.extend(DimEqual(var, axis, origin) for var, axis in sums)
        return numbered

    def _row(self, labels: Labels, row: notation.SpecRow, origin: Origin) -> Row:
        leading = tuple([self._axis(labels, axis, origin) for axis in row.leading])
        trailing = tuple([self._axis(labels, axis, origin) for axis in row.trailing])
        if row.variable is None:
            return Row(leading, None, trailing) if leading or trailing else EMPTY
        count = self.arrays.count(labels.node, row.variable)
        if count is not None:
            places = [RowAxis(row.variable, place) for place in range(count)]
            middle = tuple(self._place(labels, axis, origin) for axis in places)
            return Row(leading + middle, None, trailing)
        if row.variable not in labels.rows:
            variable = self._open().variable
            assert variable is not None
            labels.rows[row.variable] = variable
        return Row(leading, labels.rows[row.variable], trailing)

    def _place(self, labels: Labels, axis: RowAxis, origin: Origin) -> Var:
        """The axis that a counted row variable stands for."""
        if axis not in labels.places:
            labels.places[axis] = self._fresh(f"axis {axis.name()} of {origin.says}")
        return labels.places[axis]

    def _label(self, labels: Labels, name: str, origin: Origin) -> Var:
        if name not in labels.dims:
            labels.dims[name] = self._fresh(f"axis {name} of {origin.says}")
        return labels.dims[name]

    def _axis(self, labels: Labels, axis: notation.Axis, origin: Origin) -> Dim:
        written = Origin(f"`{axis.span.text()}` in {origin.says}", axis.span)
        match axis:
            case notation.AxisLabel():
                return self._label(labels, axis.name, origin)
            case notation.Blank():
                return self._fresh(f"axis _ of {origin.says}")
            case notation.Fixed():
                dim = self._fresh(f"axis {axis.position} of {origin.says}")
                self.constraints.append(AtLeast(dim, axis.position + 1, written))
                return dim
            case notation.Window():
                return self._window(labels, axis, written, origin)
            case notation.Joined():
                parts = [(1, self._label(labels, name, origin)) for name in axis.parts]
                return weighted([*parts], 0, written)
            case _:
                assert_never(axis)

    def _window(self, labels: Labels, axis: notation.Window, place: Origin, origin: Origin) -> Dim:
        over = self._label(labels, axis.over, origin)
        if axis.kernel is None:
            return window(axis.stride, over, 1, None, place)
        kernel = self._label(labels, axis.kernel, origin)
        self.constraints += [
            AtLeast(over, 1, place, axis.over),
            AtLeast(kernel, 1, place, axis.kernel),
        ]
        self.constraints.append(Determined(kernel, axis.kernel, place))
        return window(axis.stride, over, axis.dilation, None if axis.padded else kernel, place)

    # -- constraints of sizes ----------------------------------------------------------------------------------------


def _word(axis: Axis) -> str:
    """An axis of a view as its text has it: ``3`` and not ``n3``, ``s`` and not ``s_0``."""
    return axis.span.text() if re.search(r"\d", axis.name) else axis.name


def _uses(graph: Graph) -> tuple[set[int], set[int]]:
    """The values that something uses, and those whose axes are named or contracted somewhere."""
    used: set[int] = set()
    bound: set[int] = set()
    for node in graph.nodes:
        used.update(operands(node))
        repeated = isinstance(node, Operation) and node.logic == "pointwise"
        if not repeated and not isinstance(node, Elementwise):
            bound.update(operands(node))
    used.update(value for each in graph.constraints for value in compared(each))
    return used, bound


def _written(node: Assignment | View) -> dict[int, Dim]:
    """The axes whose extents are written, by number."""
    return {
        number: Known(
            axis.extent, False, None, Origin(f"axis {axis.name}", axis.span, "", "written")
        )
        for number, axis in enumerate(node.axes)
        if axis.extent is not None
    }
