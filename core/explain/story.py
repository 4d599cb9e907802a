"""The story of an inference: what fixed each row and each extent, and how each result is written.

Of a typed graph, a row each; ``i explain --verbose`` shows them:

    axis k  one extent: dimension 1 of in0, dimension 0 of in1
    out     f32: k is reduced, so elements start from 0, in f64

Of any graph, stage by stage of the solver; ``Program.story`` of a tensor program is this:

    x   20|2   data
    w   2->16  parameter
    t1  20|16  w @ x

    1 what follows from the operations
      input axis 0 of w  2: `w @ x` meets output axis 0 of x

    t1 = w @ x
    axis →  b0  o0  k0
      w     ·   0   1
      x     0   ·   1
      t1    0   1   ·   k0 is reduced, so elements start from 0

The inference runs once more for it, with a log: a program whose story nobody asks for pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from ilang.core.calculus.affine import Affine, axis_index, variables_of
from ilang.core.explain.expression import aligned, extents_of, written_rows
from ilang.core.explain.projection import WRITTEN_ONCE, ProjectionRow, projection_row, written
from ilang.core.explain.reasons import of_shaped, of_solved
from ilang.core.infer.conflicts import axes, row_text
from ilang.core.infer.dims import Log
from ilang.core.infer.inferred import Inferred
from ilang.core.infer.projections import OperationLoop, Projection
from ilang.core.infer.solved import Solved
from ilang.core.infer.solver import GUESS, STAGES
from ilang.core.ir import shaped as shaped_ir
from ilang.core.ir.graph import (
    Annotation,
    Assignment,
    Einx,
    Elementwise,
    Graph,
    Input,
    Node,
    OpenKernel,
    View,
)
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.ir.rows import KINDS, MEMORY_ORDER, Dim, Known, Origin, Row, Shape, Var, known_axes
from ilang.core.names import Names
from ilang.core.ops import OPS
from ilang.core.record import record, replace
from ilang.core.source import Span


@record
class StoryRow:
    """One thing that was inferred, and why: of an axis, an input or a result, or in a stage of an operation."""

    subject: str
    says: str


Extent = int | str
"""A number, or the name of a run-time extent."""


@record
class TensorRows:
    """A tensor: its name, its kind (input, data, parameter, fill, number) or the text that makes it, its rows."""

    name: str
    formula: str
    batch: tuple[Extent, ...]
    input: tuple[Extent, ...]
    output: tuple[Extent, ...]

    def text(self) -> str:
        """The rows as ``batch|input->output``."""
        batch, inner, output = (
            ",".join(map(str, row)) for row in (self.batch, self.input, self.output)
        )
        return written_rows(batch, inner, output or "()")


@record
class Event:
    """A thing that was fixed: in which stage (1 to 7), of what, to what, and why; ``span`` is the place that did."""

    stage: int
    subject: str
    value: str
    why: str
    span: Span | None


@record
class Computation:
    """The computation of a tensor, or of a part of it: loops, indices, and how the result is written.

    ``rows`` are the operands that are read, then the result; ``start`` is the neutral element that elements start
    from, or None where each is written once and all of them are, or where another value is written onto.
    """

    tensor: str
    text: str
    part: tuple[str, ...]
    loops: tuple[tuple[str, Extent], ...]
    reduced: tuple[str, ...]
    rows: tuple[ProjectionRow, ...]
    injective: bool
    surjective: bool
    start: float | int | None


@record
class Story:
    """Everything, in the order in which it is shown; ``more`` counts what was left out of each list.

    ``sizes`` says what gives each extent that comes at run time.
    """

    tensors: tuple[TensorRows, ...]
    events: tuple[Event, ...]
    sizes: tuple[StoryRow, ...]
    projections: tuple[Computation, ...]
    more: tuple[int, int, int]

    def __str__(self) -> str:
        return "\n\n".join(self.blocks())

    def blocks(self) -> list[str]:
        """Blocks of aligned lines: rows; a block a stage; run-time extents; a block a projection. ``str`` is all."""
        tensors, events, projections = self.more
        blocks = [
            [*aligned([(t.name, t.text(), t.formula) for t in self.tensors]), *_rest(tensors)]
        ]
        for stage, title in enumerate(STAGES, 1):
            rows = [
                (f"  {e.subject}", f"{e.value}: {e.why}" if e.why else e.value)
                for e in self.events
                if e.stage == stage
            ]
            if rows:
                blocks.append([f"{stage} {title}", *aligned(rows)])
        blocks.append(_rest(events))
        if self.sizes:
            sizes = aligned([(f"  {row.subject}", row.says) for row in self.sizes])
            blocks.append(["extents that come at run time", *sizes])
        for each in self.projections:
            part = f", part {' '.join(each.part)}" if each.part else ""
            blocks.append([f"{each.tensor} = {each.text}{part}", *_table(each)])
        blocks.append(_rest(projections))
        return ["\n".join(lines) for lines in blocks if lines]


def _rest(count: int) -> list[str]:
    return [f"… and {count} more"] if count else []


def _table(computed: Computation) -> list[str]:
    """A column per loop, a row per tensor, the remark at the end."""
    head = ("axis →", *(f"{name}={extent}" for name, extent in computed.loops), "")
    rows = [(f"  {row.tensor}", *row.cells, row.index) for row in computed.rows]
    *before, (*last, index) = rows
    return aligned([head, *before, (*last, f"{index}  {remark(computed)}".strip())])


def remark(computed: Computation) -> str:
    """The manner in which a result is written."""
    if computed.start is None:
        return WRITTEN_ONCE if computed.surjective else "what is not written stays as it is"
    return written(computed.reduced, computed.injective, computed.surjective, computed.start)


def tell(graph: Graph, limit: int | None = 200) -> Story:
    """The story of a graph, whatever its nodes are.

    Args:
        graph: which can be solved.
        limit: how many tensors, how many events and how many projections to tell; None for all.
    """
    log = Log()
    return _StoryBuilder(Inferred(graph, log), log, limit).run()


class _StoryBuilder:
    """One story under construction."""

    def __init__(self, inferred: Inferred, log: Log, limit: int | None) -> None:
        self.inferred = inferred
        self.limit = limit
        self.log = log
        self.value = {n: row for _, n, row, _ in log.entries if isinstance(row, Row)}
        self.flat: dict[int, tuple[Dim, ...]] = {}
        nodes = inferred.graph.nodes
        self.computed = [
            value for value, node in enumerate(nodes) if not isinstance(node, Input | Terminal)
        ]
        self.solved = Solved(inferred, {*inferred.graph.inputs, *self.computed[:limit]})
        self.names = _names(inferred.graph)
        self.rows: dict[int, str] = {}
        self.texts: dict[str, str] = {}
        self.dims = self._labels(nodes)
        for name, shape in zip(self.names, inferred.open, strict=True):
            self._name(name, shape)

    def run(self) -> Story:
        count = len(self.inferred.graph.nodes)
        events = list(self._events())
        tensors = range(count)[: self.limit]
        shown = self.computed[: self.limit]
        reasons = of_solved(self.solved)
        open_sizes = [n for n, size in enumerate(reasons.sizes) if size.fixed is None]
        return Story(
            tuple(self._tensor(value) for value in tensors),
            tuple(events[: self.limit]),
            tuple(StoryRow(reasons.sizes[n].name, reasons.of(n)) for n in open_sizes[: self.limit]),
            tuple(each for value in shown for each in self._computations(value)),
            (
                count - len(tensors),
                len(events) - len(events[: self.limit]),
                len(self.computed) - len(shown),
            ),
        )

    # -- names -------------------------------------------------------------------------------------------------------

    def _labels(self, nodes: Sequence[object]) -> dict[int, str]:
        """The axes that specifications name, after the label and the result of the operation."""
        labels: dict[int, str] = {}
        for value, node in enumerate(nodes):
            for label, number in self.inferred.labels_of(value):
                labels.setdefault(number, f"axis {label} of {self.names[value]}")
            if isinstance(node, Operation):
                self.texts.setdefault(f" of `{node.text}`", f" of {self.names[value]}")
        for number, name in self.inferred.names.items():
            start = name.find(" of `")
            labels.setdefault(number, name[:start] + self.texts.get(name[start:], name[start:]))
        return labels

    def _name(self, name: str, shape: Shape) -> None:
        """Call the variables of the rows of a tensor after it, unless they have a name."""
        for kind, row in zip(KINDS, shape, strict=True):
            variable = row.variable
            while variable is not None and variable not in self.rows:
                self.rows[variable] = f"{kind} row of {name}"
                value = self.value.get(variable)
                variable = None if value is None else value.variable
            for place, axis in enumerate(self._axes(row)):
                if isinstance(axis, Var):
                    self.dims.setdefault(axis.number, f"{kind} axis {place} of {name}")

    def _axes(self, row: Row) -> tuple[Dim, ...]:
        """The axes of a row as they were first written, before any of them was fixed."""
        if row.variable is None:
            return row.axes()
        path = []
        variable: int | None = row.variable
        while variable is not None and variable not in self.flat:
            path.append(variable)
            variable = self.value[variable].variable
        middle = () if variable is None else self.flat[variable]
        for axis in reversed(path):
            value = self.value[axis]
            middle = value.leading + middle + value.trailing
            self.flat[axis] = middle
        return row.leading + middle + row.trailing

    def _says(self, dim: Dim) -> str:
        match dim:
            case Known():
                extent = self._extent(self.solved.numbers.of(dim))
                return f"{extent}{', which stretches' if dim.stretch else ''}"
            case Var():
                return f"the same as {self.dims.get(dim.number, 'another axis')}"
            case Affine():
                return _sum_text([(c, self.dims.get(v, "?")) for c, v in dim.steps()], dim.offset)

    # -- the rows of the page ----------------------------------------------------------------------------------------

    def _tensor(self, value: int) -> TensorRows:
        sizes = iter([self._extent(size) for size in self.solved.dims(value)])
        rows = {
            kind: tuple([next(sizes) for _ in known_axes(self.inferred.shapes[value][kind])])
            for kind in MEMORY_ORDER
        }
        node = self.inferred.graph.nodes[value]
        return TensorRows(self.names[value], _made(node), rows[0], rows[1], rows[2])

    def _extent(self, size: int) -> Extent:
        fixed = self.solved.fixed(size)
        return self.solved.numbers.name(size) if fixed is None else fixed

    def _events(self) -> Iterator[Event]:
        """The constraint that fixed each axis, and each row that has axes; rows that end are one event a stage."""
        ends: dict[int, list[str]] = {}
        for stage, number, value, origin in self.log.entries:
            if not isinstance(value, Row):
                if number in self.dims:
                    yield self._axis(stage, number, value, origin)
            elif number in self.rows:
                if value.variable is None and not value.count():
                    ends.setdefault(stage, []).append(self.rows[number])
                else:
                    yield Event(
                        stage, self.rows[number], self._row(value), origin.says, origin.span
                    )
        for stage, names in ends.items():
            listed = ", ".join(names[:_LISTED])
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            yield Event(stage, "no further axes", f"{listed}{more}", "", None)

    def _axis(self, stage: int, number: int, value: Dim, origin: Origin) -> Event:
        why = "" if origin is GUESS else origin.says
        span = origin.span
        if isinstance(value, Known) and not value.origin.says.startswith(
            (why or " ", self.inferred.names.get(number, self.dims[number]))
        ):
            why = f"{why} meets {value.origin.says}" if why else f"{value.origin.says} asks for it"
            span = span or value.origin.span
        elif not why:
            why = "nothing asks for more" if isinstance(value, Known) else "they bound each other"
        return Event(stage, self.dims[number], self._says(value), why.rstrip(","), span)

    def _row(self, row: Row) -> str:
        if any(isinstance(axis, Known) for axis in row.axes()):
            return row_text(row)
        count = row.count()
        if not count and row.variable is not None:
            return f"the same as {self.rows.get(row.variable, 'another row')}"
        return f"{axes(count)}{'' if row.variable is None else ' or more'}"

    def _computations(self, value: int) -> Iterator[Computation]:
        node = self.inferred.graph.nodes[value]
        match node:
            case Operation():
                projections = self.solved.projections[value]
                for projection in projections:
                    yield self._projected(value, node, projection, len(projections) > 1)
            case Assignment():
                reads = [(read.value, read.index) for read in node.reads]
                names = [axis.name for axis in node.axes]
                whole = self._assigned(value, names, self.solved.axes(value), reads, node.target)
                looked = variables_of(node.target) & node.looked_up()
                once = not looked and node.base is None
                start = whole.start if node.base is None else None
                yield replace(
                    whole, injective=whole.injective and once, surjective=once, start=start
                )
            case Elementwise():
                dims = self.solved.dims(value)
                names = [self.solved.numbers.name(size) for size in dims]
                index = tuple(map(axis_index, range(len(dims))))
                yield self._assigned(value, names, dims, [(node.value, index)], index)
            case _:
                pass

    def _assigned(
        self,
        value: int,
        names: Sequence[str],
        sizes: Sequence[int],
        reads: Sequence[tuple[int, Sequence[Affine]]],
        target: Sequence[Affine],
    ) -> Computation:
        """An assignment over named axes of these sizes: it writes every element, once unless axes are reduced."""
        loops = [(name, self._extent(size)) for name, size in zip(names, sizes, strict=True)]
        node = self.inferred.graph.nodes[value]
        computed = self._computation(value, _made(node), loops, reads, target)
        acc = node.acc if isinstance(node, Assignment) else None
        return computed if acc is None else replace(computed, start=OPS[acc].identity)

    def _projected(
        self, value: int, node: Operation, projection: Projection, parts: bool
    ) -> Computation:
        """The story of one projection of an operation: its loops, its indices, and how its result is written."""
        loops = [(loop.name, self._repeated(loop)) for loop in projection.loops]
        reads = [(node.operands[operand], index) for operand, index in projection.reads]
        computed = self._computation(value, node.text, loops, reads, projection.target)
        injective = projection.is_injective()
        extents = [self.solved.fixed(size) for size in self.solved.dims(value)]
        surjective = projection.is_surjective(extents)
        once = injective and surjective and not parts
        return replace(
            computed,
            part=projection.part if parts else (),
            injective=injective,
            surjective=surjective,
            start=None if once else OPS[node.acc].identity,
        )

    def _computation(
        self,
        value: int,
        text: str,
        loops: Sequence[tuple[str, Extent]],
        reads: Sequence[tuple[int, Sequence[Affine]]],
        target: Sequence[Affine],
    ) -> Computation:
        """A computation that writes every element of a value onto nothing, once unless axes are reduced."""
        names, kept = [name for name, _ in loops], variables_of(target)
        reduced = tuple(name for axis, name in enumerate(names) if axis not in kept)
        rows = tuple(
            projection_row(self.names[n], index, names, self._size)
            for n, index in (*reads, (value, target))
        )
        name = self.names[value]
        return Computation(name, text, (), tuple(loops), reduced, rows, not reduced, True, None)

    def _repeated(self, loop: OperationLoop) -> Extent:
        assert loop.size is not None, "only an added loop has no size"
        return self._extent(loop.size)

    def _size(self, number: int) -> str:
        return str(self._extent(number))


_LISTED = 6
"""Rows that end and are named, at most."""


def _names(graph: Graph) -> list[str]:
    """The names of values in the story: those of inputs and leaves, and ``t1``, ``t2``, ... in order."""
    unique = Names()
    inputs = {value: graph.input_name(number) for number, value in enumerate(graph.inputs)}
    leaves = [
        node.name if isinstance(node, Terminal) else inputs.get(value, "")
        for value, node in enumerate(graph.nodes)
    ]
    names = [unique.fresh(name) if name else "" for name in leaves]
    numbers = iter(range(1, len(names) + 1))
    return [name or unique.fresh(f"t{next(numbers)}") for name in names]


def _made(node: Node) -> str:
    """The origin of a value: the text of an expression or an operation, the kind of a leaf."""
    match node:
        case Input():
            return "input"
        case Terminal():
            return node.kind
        case Assignment() | Elementwise() | View() | Operation() | Einx() | OpenKernel():
            return node.text
        case _:
            assert_never(node)


def _sum_text(terms: Sequence[tuple[int, str]], offset: int) -> str:
    """A sum of sizes: ``2·axis o + axis k - 1``."""
    text = " + ".join(name if c == 1 else f"{c}·{name}" for c, name in terms)
    return text + (f" {'-' if offset < 0 else '+'} {abs(offset)}" if offset else "")


# -- a typed graph -------------------------------------------------------------------------------------------------


def typed_story(
    shaped: shaped_ir.Shaped, annotations: Sequence[Annotation], given: bool
) -> tuple[StoryRow, ...]:
    """The story of a typed graph: axes, then results in the order in which they are computed.

    Args:
        shaped: the program.
        annotations: what definitions write of inputs.
        given: whether the extents of the inputs are those of ``--shape``.
    """
    rows = [StoryRow(f"row {each.variable}", _counted(each)) for each in shaped.counted]
    reasons = of_shaped(shaped, annotations, given)
    rows += [
        StoryRow(f"axis {size.name}", reasons.of(number))
        for number, size in enumerate(shaped.sizes)
    ]
    for each in shaped.rows:
        extents = _divided(each, extents_of(shaped, each.value))
        text = f"rows {rows_text(each)}, extents {extents}"
        rows.append(StoryRow(shaped.tensors[each.value].name, text))
    for tensor, node in zip(shaped.tensors, shaped.nodes, strict=True):
        if isinstance(node, shaped_ir.Assignment):
            rows.append(StoryRow(tensor.name, f"{tensor.dtype}: {_result(tensor, node)}"))
    return tuple(rows)


def _counted(counted: shaped_ir.Counted) -> str:
    """The number of axes that a row variable stands for, and why."""
    many = f"{counted.length or 'no'} ax{'is' if counted.length == 1 else 'es'}"
    return f"{many}: {counted.because}"


def rows_text(rows: shaped_ir.Rows) -> str:
    """The axes of a value as a specification has them: ``b0 | k -> m``."""
    return _divided(rows, rows.axes)


def _divided(rows: shaped_ir.Rows, words: Sequence[str]) -> str:
    """A word for each axis of a value, divided as its rows are."""
    inner = len(words) - rows.inner
    text = " ".join(words[rows.batch : inner]) or "·"
    if rows.inner:
        text = f"{' '.join(words[inner:])} -> {text}"
    return f"{' '.join(words[: rows.batch])} | {text}" if rows.batch else text


def _result(tensor: shaped_ir.Tensor, node: shaped_ir.Assignment) -> str:
    """The manner in which a result is written: once, from the neutral element on, or onto another."""
    if node.base is not None and node.acc is None:
        return "each of its elements is written once, and not all of them are: the others stay as they are"
    if node.base is not None and node.acc is not None:
        return f"several iterations may write one element: {OPS[node.acc].name} to what is there"
    reduced = [node.axes[axis].name for axis in node.reduced_axes()]
    if node.acc is None or not reduced:
        return WRITTEN_ONCE
    neutral = OPS[node.acc].identity
    assert neutral is not None
    inner = f", in {node.acc_dtype()}" if node.acc_dtype() != tensor.dtype else ""
    return f"{written(reduced, False, True, neutral)}{inner}"
