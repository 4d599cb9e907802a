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
from ilang.core.ir.operation import Operation, Slice, Stack, Terminal
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
    """The names of one specification, axes by dimension variable, row variables by number; the rows that it writes."""

    def __init__(self, node: int, origin: Origin, collected: GraphConstraints) -> None:
        """No names yet; ``node`` has the specification, and ``origin`` says so."""
        self.node = node
        self.origin = origin
        self.collected = collected
        self.dims: dict[str, Var] = {}
        self.places: dict[RowAxis, Var] = {}
        self.rows: dict[str, int] = {}

    def row(self, row: notation.SpecRow) -> Row:
        """The row of axes that a row of the specification stands for."""
        leading = tuple(map(self._axis, row.leading))
        trailing = tuple(map(self._axis, row.trailing))
        if row.variable is None:
            return Row(leading, None, trailing) if leading or trailing else EMPTY
        count = self.collected.arrays.count(self.node, row.variable)
        if count is not None:
            places = [RowAxis(row.variable, place) for place in range(count)]
            return Row(leading + tuple(map(self._place, places)), None, trailing)
        if row.variable not in self.rows:
            variable = self.collected.opened().variable
            assert variable is not None
            self.rows[row.variable] = variable
        return Row(leading, self.rows[row.variable], trailing)

    def _place(self, axis: RowAxis) -> Var:
        """The axis that a counted row variable stands for."""
        if axis not in self.places:
            name = f"axis {axis.name()} of {self.origin.says}"
            self.places[axis] = self.collected.fresh(name)
        return self.places[axis]

    def label(self, name: str) -> Var:
        """The axis of a name."""
        if name not in self.dims:
            self.dims[name] = self.collected.fresh(f"axis {name} of {self.origin.says}")
        return self.dims[name]

    def _axis(self, axis: notation.Axis) -> Dim:
        written = Origin(f"`{axis.span.text()}` in {self.origin.says}", axis.span)
        match axis:
            case notation.AxisLabel():
                return self.label(axis.name)
            case notation.Blank():
                return self.collected.fresh(f"axis _ of {self.origin.says}")
            case notation.Fixed():
                dim = self.collected.fresh(f"axis {axis.position} of {self.origin.says}")
                self.collected.constraints.append(AtLeast(dim, axis.position + 1, written))
                return dim
            case notation.Window():
                return self._window(axis, written)
            case notation.Joined():
                return weighted([(1, self.label(name)) for name in axis.parts], 0, written)
            case _:
                assert_never(axis)

    def _window(self, axis: notation.Window, place: Origin) -> Dim:
        over = self.label(axis.over)
        if axis.kernel is None:
            return window(axis.stride, over, 1, None, place)
        kernel = self.label(axis.kernel)
        self.collected.constraints += [
            AtLeast(over, 1, place, axis.over),
            AtLeast(kernel, 1, place, axis.kernel),
            Determined(kernel, axis.kernel, place),
        ]
        return window(axis.stride, over, axis.dilation, None if axis.padded else kernel, place)


class GraphConstraints:
    """The constraints of one graph."""

    def __init__(self, graph: Graph, ranks: Sequence[int | None] | None = None) -> None:
        """Collect them; ``ranks`` are those of the arrays, one per input, None for one that is not there.

        Raises:
            ShapeError: E0501 to E0503, E0508, E0530 to E0532, E0570, E0571, E0579.
        """
        self.graph = graph
        self.arrays = ArrayAxes(graph, ranks)
        self.dims = len(self.arrays.given)
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
        self.scopes = Scopes(self.fresh)
        self.notes = Notes(self.fresh, self.opened)
        self.used, self.bound = _uses(graph)
        self.ends: list[int] = []
        """The number of constraints so far after each node, each annotation and each constraint of the graph."""
        for value, node in enumerate(graph.nodes):
            self._node(value, node)
            self.ends.append(len(self.constraints))
        for annotation in graph.annotations:
            self._annotate(annotation)
            self.ends.append(len(self.constraints))
        if graph.constraints:
            from ilang.core.infer.size_constraints import add_size_constraint

            for constraint in graph.constraints:
                add_size_constraint(self, constraint)
                self.ends.append(len(self.constraints))

    def _node(self, value: int, node: Node) -> None:
        match node:
            case Terminal():
                self.shapes.append(self._terminal(value, node))
            case Operation():
                shape = (self.opened(), self.opened(), self.opened())
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

    def fresh(self, name: str | None = None) -> Var:
        """A new axis, which messages call ``name``."""
        self.dims += 1
        if name is not None:
            self.names[self.dims - 1] = name
        return Var(self.dims - 1)

    def opened(self) -> Row:
        """A row of a new row variable."""
        self.rows += 1
        return opened(self.rows - 1)

    # -- leaves ------------------------------------------------------------------------------------------------------

    def _terminal(self, value: int, node: Terminal) -> Shape:
        if node.kind == "number":
            unit = Known(1, Origin(f"the number {node.value}", node.span), stretch=True)
            return closed(()), closed(()), closed((unit,))
        given = self.arrays.rows[value]
        rows = [self.opened() if axes is None else closed(axes) for axes in given]
        required = node.kind == "parameter" and value in self.bound
        for kind, (row, axes) in enumerate(zip(rows, node.rows, strict=True)):
            if axes is None and node.kind != "alike":
                origin = Origin(f"the {KINDS[kind]} row of {node.name}", node.span)
                repeated = node.kind == "constant" and kind != OUTPUT
                leaf = LeafRow(row, required, kind == OUTPUT, origin, repeated)
                self.constraints.append(leaf)
        if value not in self.used and node.rows[OUTPUT] is None and node.count is None:
            guess = Known(1, Origin(f"the output of {node.name}", node.span), stretch=True)
            unused = Origin(f"{node.name}, which nothing uses,", node.span)
            self.constraints.append(RowEqual(rows[OUTPUT], closed((guess,)), unused))
        if node.count is not None:
            origin = Origin(f"{node.name} has {node.count} values", node.span)
            total = closed((Known(node.count, origin),))
            self.constraints.append(Product(tuple(rows), (total,), origin))
        return rows[0], rows[1], rows[2]

    # -- index expressions -------------------------------------------------------------------------------------------

    def _assignment(self, value: int, node: Assignment) -> list[Dim]:
        """Relate the axes of an assignment to what it reads; the dimensions of its result.

        An axis is the first dimension that it walks; only the others make equations.
        """
        says, axes = f"`{node.text}`", _written(node)
        accesses = [
            (read, self.dimensions(read.value, len(read.index), Origin(says, read.span)))
            for read in node.accesses()
        ]
        for read, dims in accesses:
            for dim, index, span in zip(dims, read.index, read.spans, strict=True):
                whole = index.axis()
                if whole is not None:
                    if axes.setdefault(whole, dim) is not dim:
                        self.constraints.append(DimEqual(axes[whole], dim, Origin(says, span)))
                elif not index.variables():
                    self.constraints.append(AtLeast(dim, index.offset + 1, Origin(says, span)))
        for number, axis in enumerate(node.axes):
            if number not in axes:
                axes[number] = self.fresh(f"axis {axis.name} of {says}")
        for number in node.some:
            not_empty = AtLeast(axes[number], 1, Origin(says, node.span))
            self.constraints.append(not_empty)
        opened, self.inside[value] = opened_axes(node)
        for opening, place, number in opened:
            span, index = opening.spans[place], opening.index[place]
            others = index.without((number,)).steps()
            windows = tuple((step, axes[other]) for step, other in others)
            padding = -2 * index.offset if windows else -index.offset  # one axis alone is shifted
            base = next(dims[place] for read, dims in accesses if read is opening)
            written = Origin(f"`{span.text()}` in {says}", span)
            stride = index.coefficient(number)
            c = Positions(axes[number], base, windows, stride, padding, written)
            self.constraints.append(c)
        self.node_axes[value] = [axes[number] for number in range(len(node.axes))]
        whole_axes = [index.axis() for index in node.target]
        return [self.fresh() if axis is None else axes[axis] for axis in whole_axes]

    def _view(self, value: int, node: View) -> list[Dim]:
        """Relate the axes of a view to the dimensions of what it is of; the dimensions of its result."""
        says = f"`{node.text}`"
        origin = Origin(says, node.span)
        axes = _written(node)
        unit = Known(1, Origin(f"an axis of no part in {says}", node.span))
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
                axes[number] = self.fresh(f"axis {_word(axis)} of {says}")
        for group in node.groups():
            if group not in whole:
                whole[group] = self.fresh(f"{node.group_text(group)} of {says}")
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
        dims = tuple(self.fresh() for _ in range(rank))
        self._stored((batch, inner, output), dims, origin)
        return dims

    def _stored(self, shape: Shape, axes: Sequence[Dim], origin: Origin) -> None:
        self.constraints.append(StoredRows((closed(axes),), _in_memory(shape), origin))

    def _annotate(self, annotation: Annotation) -> None:
        dims: list[Dim] = []
        for number, written in enumerate(annotation.dims or ()):
            if isinstance(written, int):
                place = Origin(
                    f"dimension {number} of {annotation.name}", annotation.span, "", "written"
                )
                dims.append(Known(written, place))
                continue
            key = (annotation.scope, written)
            if key not in self.annotated:
                self.annotated[key] = self.fresh(f"dimension {written} of {annotation.name}")
            dims.append(self.annotated[key])
        if annotation.dims is not None:
            origin = Origin(f"the definition of {annotation.name}", annotation.span)
            self._stored(self.shapes[annotation.value], dims, origin)

    # -- operations --------------------------------------------------------------------------------------------------

    def _operation(self, value: int, node: Operation, shape: Shape) -> None:
        origin = Origin(f"`{node.text}`", node.span)
        operands = [self.shapes[operand] for operand in node.operands]
        names = [brief(self.graph.nodes[operand]) for operand in node.operands]
        match node.logic:
            case "pointwise":
                for name, operand in zip(names, operands, strict=True):
                    for kind, row, operand_row in zip(KINDS, shape, operand, strict=True):
                        self.below(row, operand_row, origin.at(kind, name))
            case "compose":
                self._compose(shape, operands[0], operands[1], names, origin)
            case "transpose":
                batch, inner, output = operands[0]
                for row, operand_row in zip(shape, (batch, output, inner), strict=True):
                    self.below(row, operand_row, origin)
            case Slice():
                self._slice(node, node.logic, shape, operands, origin)
            case notation.Spec():
                self._einsum(value, node, node.logic, [*names, "the result"], origin)
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

    def _compose(self, c: Shape, a: Shape, b: Shape, names: list[str], origin: Origin) -> None:
        rows = f"the input row of {names[0]} against the output row of {names[1]}"
        self.below(a[INPUT], b[OUTPUT], Origin(origin.says, origin.span, rows, "contracted"))
        for row, side, name in ((BATCH, a, 0), (BATCH, b, 1), (INPUT, b, 1), (OUTPUT, a, 0)):
            self.below(c[row], side[row], origin.at(KINDS[row], names[name]))

    def _slice(
        self, node: Operation, logic: Slice, c: Shape, operands: Sequence[Shape], origin: Origin
    ) -> None:
        (a, *position), read = operands, node.operands[0]
        axis = self.fresh("the first batch axis")
        rest = self.opened()
        takes = Origin(origin.says, origin.span, role="slice")
        self._equal(a[BATCH], Row((axis,), rest.variable, ()), takes, read)
        self._equal(c[BATCH], rest, origin)
        self._equal(c[INPUT], a[INPUT], origin, read)
        self._equal(c[OUTPUT], a[OUTPUT], origin, read)
        for row in (row for shape in position for row in shape):
            self._equal(row, EMPTY, Origin(origin.says, origin.span, "its position has no axes"))
        self.constraints.append(AtLeast(axis, (logic.position or 0) + 1, origin))
        if logic.extent is not None:
            extent = Known(logic.extent, Origin("the declared range", origin.span))
            self.constraints.append(DimEqual(axis, extent, origin))

    def _stack(
        self, node: Operation, kind: int, c: Shape, operands: Sequence[Shape], origin: Origin
    ) -> None:
        count = Known(len(operands), origin)
        for row in range(3):
            rest = self.opened()
            for read, operand in zip(node.operands, operands, strict=True):
                self._equal(operand[row], rest, origin, read)
            stacked = Row((count,), rest.variable, ()) if row == kind else rest
            self._equal(c[row], stacked, origin)

    def _interleave(
        self, node: Operation, c: Shape, operands: Sequence[Shape], origin: Origin
    ) -> None:
        half, rest = self.fresh("the last output axis"), self.opened()
        for read, operand in zip(node.operands, operands, strict=True):
            self._equal(operand[OUTPUT], Row((), rest.variable, (half,)), origin, read)
            for row in (BATCH, INPUT):
                self._equal(c[row], operand[row], origin, read)
        double = weighted([(2, half)], 0, origin)
        self._equal(c[OUTPUT], Row((), rest.variable, (double,)), origin)

    # -- specifications ----------------------------------------------------------------------------------------------

    def _einsum(
        self, value: int, node: Operation, spec: notation.Spec, names: Sequence[str], origin: Origin
    ) -> None:
        """Relate the rows of operands and result to a specification: axes of one label are one axis."""
        labels = self.labels[value] = Labels(value, origin, self)
        divided = ", names divided by commas," if spec.named else ""
        tensors = (*node.operands, value)
        for number, (shape, read, name) in enumerate(
            zip(spec.shapes(), tensors, names, strict=True)
        ):
            place = Origin(f"`{shape.span.text().strip()}` in {origin.says}", shape.span)
            is_operand = number < len(spec.operands)
            if is_operand and read in self.arrays.flat:
                self._viewed(labels, number, read, shape, place)
                continue
            leaf = isinstance(self.graph.nodes[read], Terminal | Input)
            role: Literal["leaf", "result"] = "leaf" if leaf else "result"
            for kind, row, of_tensor in zip(KINDS, shape.rows, self.shapes[read], strict=True):
                rows = f"its {kind} row{divided} against that of {name}"
                meeting = Origin(place.says, place.span, rows, role)
                self._equal(labels.row(row), of_tensor, meeting, read if is_operand else None)
        for axis in (axis for shape in spec.operands for axis in shape.axes()):
            if isinstance(axis, notation.Joined):  # many sizes of parts have one sum
                place = Origin(f"`{axis.span.text()}` in {origin.says}", axis.span)
                self.constraints += [Determined(labels.label(n), n, place) for n in axis.parts]
        self.latest |= dict.fromkeys((*labels.dims, *labels.rows), labels)

    def _viewed(
        self, labels: Labels, number: int, read: int, shape: notation.ShapeSpec, origin: Origin
    ) -> None:
        """A specification that reads an array: its rows are divided anew, one after the other."""
        batch, inner, output = (
            labels.row(row).numbered(self.fresh, self.constraints, origin) for row in shape.rows
        )
        view = self.views[labels.node, number] = (batch, inner, output)
        self.constraints.append(StoredRows(_in_memory(view), _in_memory(self.shapes[read]), origin))


def _in_memory(shape: Shape) -> tuple[Row, ...]:
    """The rows of a tensor in the order in which they are stored."""
    return tuple(shape[kind] for kind in MEMORY_ORDER)


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
        number: Known(axis.extent, Origin(f"axis {axis.name}", axis.span, "", "written"))
        for number, axis in enumerate(node.axes)
        if axis.extent is not None
    }
