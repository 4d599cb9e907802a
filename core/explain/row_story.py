"""The story of a tensor program: the rows of every tensor, what fixed them stage by stage, and the projections.

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

from ilang.core.explain.explanation import ProjectionRow
from ilang.core.explain.expression import affine_text, aligned, number_text
from ilang.core.infer.conflicts import axes, row_text
from ilang.core.infer.dims import Log
from ilang.core.infer.inferred import Inferred
from ilang.core.infer.projections import Projection, project, sizes_of
from ilang.core.infer.solver import GUESS, STAGES
from ilang.core.ir.affine import Affine
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.ir.rows import (
    KINDS,
    Dim,
    Known,
    Origin,
    Row,
    Shape,
    Sum,
    Var,
    extent_of,
    known_axes,
)
from ilang.core.names import Names
from ilang.core.ops import OPS
from ilang.core.record import record
from ilang.core.source import Span


@record
class TensorRows:
    """A tensor: its name, its kind (data, parameter, fill, number) or the text of its operation, its three rows."""

    name: str
    made: str
    batch: tuple[int, ...]
    input: tuple[int, ...]
    output: tuple[int, ...]

    def text(self) -> str:
        """The rows as ``batch|input->output``."""
        batch, inner, output = (
            ",".join(map(str, row)) for row in (self.batch, self.input, self.output)
        )
        return f"{batch}|" * bool(batch) + f"{inner}->" * bool(inner) + (output or "()")


@record
class Event:
    """A thing that was fixed: in which stage (1 to 7), of what, to what, and why; ``span`` is the place that did."""

    stage: int
    subject: str
    value: str
    why: str
    span: Span | None


@record
class Walk:
    """The projection of an operation, or of one of its parts: loops, indices, and how the result is written.

    ``rows`` are the operands that are read, then the result; ``start`` is the neutral element that elements start
    from, or None where each is written once and all of them are.
    """

    tensor: str
    text: str
    part: tuple[str, ...]
    loops: tuple[tuple[str, int | None], ...]
    reduced: tuple[str, ...]
    rows: tuple[ProjectionRow, ...]
    injective: bool
    surjective: bool
    start: float | int | None


@record
class TensorStory:
    """Everything, in the order in which it is shown; ``more`` counts what was left out of each list."""

    tensors: tuple[TensorRows, ...]
    events: tuple[Event, ...]
    projections: tuple[Walk, ...]
    more: tuple[int, int, int]

    def __str__(self) -> str:
        return "\n\n".join(self.blocks())

    def blocks(self) -> list[str]:
        """Blocks of aligned lines: the rows; a block a stage; a block a projection. ``str`` is all of them."""
        tensors, events, projections = self.more
        found = [[*aligned([(t.name, t.text(), t.made) for t in self.tensors]), *_rest(tensors)]]
        for stage, title in enumerate(STAGES, 1):
            rows = [
                (f"  {e.subject}", f"{e.value}: {e.why}" if e.why else e.value)
                for e in self.events
                if e.stage == stage
            ]
            if rows:
                found.append([f"{stage} {title}", *aligned(rows)])
        found.append(_rest(events))
        for told in self.projections:
            part = f", part {' '.join(told.part)}" if told.part else ""
            found.append([f"{told.tensor} = {told.text}{part}", *_table(told)])
        found.append(_rest(projections))
        return ["\n".join(lines) for lines in found if lines]


def _rest(count: int) -> list[str]:
    return [f"… and {count} more"] if count else []


def _table(told: Walk) -> list[str]:
    """A column per loop, a row per tensor, the remark at the end."""
    head = ("axis →", *(f"{name}={extent}" for name, extent in told.loops), "")
    rows = [(f"  {row.tensor}", *row.cells, row.index) for row in told.rows]
    *before, (*last, index) = rows
    return aligned([head, *before, (*last, f"{index}  {remark(told)}".strip())])


def remark(told: Walk) -> str:
    """How the result of an operation is written."""
    if told.start is None:
        return "every element is written once, and all of them are"
    start = f"start from {number_text(told.start)}"
    reasons = []
    if told.reduced:
        reasons.append(f"{' '.join(told.reduced)} {'are' if told.reduced[1:] else 'is'} reduced")
    elif not told.injective:
        reasons.append("some elements are written more than once")
    if not told.surjective:
        reasons.append("not every element is written")
    return f"{' and '.join(reasons) or 'the parts are written one by one'}, so elements {start}"


def tell(graph: Graph, limit: int | None = 200) -> TensorStory:
    """The story of a graph of tensor operations.

    Args:
        graph: which can be solved.
        limit: how many tensors, how many events and how many projections to tell; None for all.
    """
    log = Log()
    return _Telling(Inferred(graph, log), log, limit).run()


class _Telling:
    """One story under construction."""

    def __init__(self, inferred: Inferred, log: Log, limit: int | None) -> None:
        self.inferred = inferred
        self.limit = limit
        self.log = log
        self.value = {n: row for _, n, row, _ in log.entries if isinstance(row, Row)}
        self.flat: dict[int, tuple[Dim, ...]] = {}
        self.sizes = inferred.numbered()
        names = Names()
        nodes = inferred.graph.nodes
        self.names = [names.fresh(n.name) if isinstance(n, Terminal) else "" for n in nodes]
        numbers = iter(range(1, len(nodes) + 1))
        self.names = [name or names.fresh(f"t{next(numbers)}") for name in self.names]
        self.rows: dict[int, str] = {}
        self.texts: dict[str, str] = {}
        self.dims = self._labels(nodes)
        for name, shape in zip(self.names, inferred.open, strict=True):
            self._name(name, shape)

    def run(self) -> TensorStory:
        nodes = self.inferred.graph.nodes
        made = [value for value, node in enumerate(nodes) if isinstance(node, Operation)]
        events = list(self._events())
        tensors = range(len(nodes))[: self.limit]
        shown = made[: self.limit]
        more = (len(nodes) - len(tensors), len(events[: self.limit]), len(made) - len(shown))
        return TensorStory(
            tuple(self._tensor(value) for value in tensors),
            tuple(events[: self.limit]),
            tuple(told for value in shown for told in self._projections(value)),
            (more[0], len(events) - more[1], more[2]),
        )

    # -- names -------------------------------------------------------------------------------------------------------

    def _labels(self, nodes: Sequence[object]) -> dict[int, str]:
        """The axes that specifications name, after the label and the result of the operation."""
        found: dict[int, str] = {}
        for value, node in enumerate(nodes):
            for label, number in self.inferred.labels_of(value):
                found.setdefault(number, f"axis {label} of {self.names[value]}")
            if isinstance(node, Operation):
                self.texts.setdefault(f" of `{node.text}`", f" of {self.names[value]}")
        for number, said in self.inferred.names.items():
            start = said.find(" of `")
            found.setdefault(number, said[:start] + self.texts.get(said[start:], said[start:]))
        return found

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
        for here in reversed(path):
            value = self.value[here]
            middle = value.leading + middle + value.trailing
            self.flat[here] = middle
        return row.leading + middle + row.trailing

    def _says(self, dim: Dim) -> str:
        match dim:
            case Known():
                return f"{dim.size}{', which stretches' if dim.stretch else ''}"
            case Var():
                return f"the same as {self.dims.get(dim.number, 'another axis')}"
            case Sum():
                return _sum_text([(c, self.dims.get(v, "?")) for c, v in dim.terms], dim.offset)

    # -- what is told ------------------------------------------------------------------------------------------------

    def _tensor(self, value: int) -> TensorRows:
        node = self.inferred.graph.nodes[value]
        batch, inner, output = (
            tuple(map(extent_of, known_axes(row))) for row in self.inferred.shapes[value]
        )
        made = node.kind if isinstance(node, Terminal) else _text(node)
        return TensorRows(self.names[value], made, batch, inner, output)

    def _events(self) -> Iterator[Event]:
        """What fixed each axis, and each row that has axes; rows that end are one event a stage."""
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

    def _projections(self, value: int) -> Iterator[Walk]:
        node = self.inferred.graph.nodes[value]
        assert isinstance(node, Operation)
        found = project(self.inferred, value, self.sizes)
        for projection in found:
            yield self._told(value, node, projection, len(found) > 1)

    def _told(self, value: int, node: Operation, projection: Projection, parts: bool) -> Walk:
        loops = tuple((loop.name, loop.extent) for loop in projection.loops)
        kept = {axis for index in projection.target for _, axis in index.terms}
        reduced = tuple(name for axis, (name, _) in enumerate(loops) if axis not in kept)
        injective = projection.is_injective()
        surjective = projection.is_surjective(sizes_of(self.inferred.shapes[value]))
        rows = [
            self._indices(projection, self.names[node.operands[operand]], index)
            for operand, index in projection.reads
        ]
        rows.append(self._indices(projection, self.names[value], projection.target))
        once = injective and surjective and not parts
        return Walk(
            self.names[value],
            _text(node),
            projection.part if parts else (),
            loops,
            reduced,
            tuple(rows),
            injective,
            surjective,
            None if once else OPS[node.acc].identity,
        )

    @staticmethod
    def _indices(projection: Projection, name: str, index: Sequence[Affine]) -> ProjectionRow:
        cells = []
        for axis in range(len(projection.loops)):
            dims = [str(d) for d, part in enumerate(index) if any(a == axis for _, a in part.terms)]
            cells.append(",".join(dims) or "·")
        plain = all(part.axis() is not None for part in index)
        words = (affine_text(part, lambda axis: projection.loops[axis].name) for part in index)
        return ProjectionRow(name, "" if plain else f"[{','.join(words)}]", tuple(cells))


_LISTED = 6
"""How many rows that end are named."""


def _text(node: object) -> str:
    assert isinstance(node, Operation)
    return node.text


def _sum_text(terms: Sequence[tuple[int, str]], offset: int) -> str:
    """A sum of sizes: ``2·axis o + axis k - 1``."""
    text = " + ".join(name if c == 1 else f"{c}·{name}" for c, name in terms)
    return text + (f" {'-' if offset < 0 else '+'} {abs(offset)}" if offset else "")
