"""The explanation of a program, as data: words, shapes, projections, schedule, loops, cost.

The command line draws it (``core/explain/page.py``, ``icli/render.py``); ``--json`` gives it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ilang.core.calculus.affine import Affine, variables_of
from ilang.core.cost import Total, of_assignments, of_transfers
from ilang.core.dtype import BYTES, DTYPES
from ilang.core.explain.expression import (
    affine_text,
    group_text,
    number_text,
    size_text,
    view_text,
    written_names,
)
from ilang.core.explain.kernel import loops_text
from ilang.core.explain.meaning import LoopLine, Meaning, meaning
from ilang.core.explain.projection import ProjectionRow, projection_row
from ilang.core.explain.running import runs_as
from ilang.core.explain.shapes import of_unit
from ilang.core.explain.simple_loops import simple_loops
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.graph import Assignment as Expression
from ilang.core.ir.graph import Einx, Graph
from ilang.core.ir.ids import ValueId
from ilang.core.ir.kernel import Program
from ilang.core.ir.operation import Operation
from ilang.core.ir.scalar import Apply, Constant, Convert, Position, scalars_within
from ilang.core.ir.schedule import Nest, Scheduled, loop_text, schedule_text, unscheduled
from ilang.core.ir.shaped import START, Assignment, Read, Shaped, View
from ilang.core.ops import OPS, PRIMITIVES
from ilang.core.record import record, replace
from ilang.core.schedule.fuse import mapping
from ilang.core.schedule.written import written_nest
from ilang.core.source import Span

if TYPE_CHECKING:  # few pages tell the story of the inference
    from ilang.core.explain.einx import OperationRow
    from ilang.core.explain.story import StoryRow
    from ilang.core.occupancy import Occupancy


@record
class TensorRow:
    """An input or output: name, element type, extents (numbers, or names of run-time sizes), axis letters.

    ``rows`` has the axes divided, ``b0 | k -> m``, where an einsum specification gives them; else it is empty.
    Dimensions stand as in memory; ``order`` has, for each, the one of the text, empty where they stand so there.
    """

    name: str
    dtype: str
    extents: tuple[str, ...]
    letters: tuple[str, ...]
    rows: str
    order: tuple[int, ...] = ()


@record
class StepRow:
    """An expression: its number, text, what it says in words, and what becomes of it (may be empty).

    ``name`` is what the program calls its value, or empty.
    """

    number: int
    text: str
    words: str
    remark: str
    name: str


@record
class ViewRow:
    """A view, which names the dimensions of a value anew: which value, and how, ``s (h d) -> s h d``."""

    name: str
    source: str
    text: str


@record
class ProjectionTable:
    """The dimension of each tensor that each axis of a loop nest walks."""

    step: int
    text: str
    axes: tuple[str, ...]
    rows: tuple[ProjectionRow, ...]
    remark: str


@record
class ScheduleRow:
    """The nest of an expression in the notation of schedules; empty where the text takes no schedule.

    An identity stands there as the index expression that it is, ``ij~ij``, since ``I`` takes no schedule.
    """

    number: int
    text: str
    schedule: str


@record
class Cost:
    """Operations and least traffic: numbers where every extent is known, else formulas; and what is stored between."""

    flops: int | str
    bytes: int | str
    storage: str


@record
class Execution:
    """The execution of a program: its nests, the loops of its kernels, all and simplified, and their cost.

    ``definition`` is the program with its schedules where it has more assignments than its text: empty where the
    language has no words for one, None for every other program.
    """

    schedule: tuple[ScheduleRow, ...]
    definition: str | None
    loops: str
    running: tuple[LoopLine, ...]
    occupancy: tuple[Occupancy, ...]
    cost: Cost


@record
class Explanation:
    """Everything, in the order in which it is shown."""

    name: str
    inputs: tuple[TensorRow, ...]
    outputs: tuple[TensorRow, ...]
    meaning: Meaning
    runs: str
    operations: tuple[OperationRow, ...]
    views: tuple[ViewRow, ...]
    steps: tuple[StepRow, ...]
    projections: tuple[ProjectionTable, ...]
    execution: Execution
    notes: tuple[str, ...]
    story: tuple[StoryRow, ...]

    def __str__(self) -> str:
        """The page as plain text, as ``i explain`` prints it: with the story of the inference, every step."""
        from ilang.core.explain.first_page import first_page
        from ilang.core.explain.page import explanation_text

        return explanation_text(self) if self.story else first_page(self)


def explain(
    graph: Graph,
    shaped: Shaped,
    scheduled: Scheduled,
    program: Program,
    verbose: bool = False,
    given: bool = False,
) -> Explanation:
    """Explain a program from its graph, what was inferred of it, its nests and its kernels.

    ``verbose`` adds the story of the inference; ``given`` says that shapes of the inputs were given.
    """
    return _ExplanationBuilder(graph, scheduled, program, verbose, given, meaning(shaped)).run()


class _ExplanationBuilder:
    """One explanation under construction."""

    def __init__(
        self,
        graph: Graph,
        scheduled: Scheduled,
        program: Program,
        verbose: bool,
        given: bool,
        says: Meaning,
    ) -> None:
        self.graph = graph
        self.verbose = verbose
        self.given = given
        self.program = program
        self.names = dict(says.names)
        self.says = says
        self.scheduled = scheduled
        self.shaped = shaped = scheduled.shaped
        self.sizes = [size_text(size) for size in shaped.sizes]
        self.last = shaped.last()
        self.memory = [shaped.tensors[value].name for value in self.last]
        """The name of the memory of each value: one that takes the place of another has its memory."""
        self.steps = [
            (value, node, nest)
            for value, node in enumerate(shaped.nodes)
            if isinstance(node, Assignment) and (nest := scheduled.nests[value]) is not None
        ]
        values = [v for v, node in enumerate(shaped.nodes) if isinstance(node, Assignment)]
        self.number = {value: n for n, value in enumerate(values, 1)}
        self.reader: dict[int, tuple[int, Assignment, Nest, int]] = {
            read.value: (value, node, nest, site)
            for value, node, nest in self.steps
            for number, read in enumerate(node.reads)
            if (site := nest.staged(number)) is not None
        }
        """The reader that computes each staged value, and at what site."""
        self.read: dict[int, tuple[Assignment, Read]] = {}
        """The first read of each value, and the assignment that it is of."""
        for _, node, _ in self.steps:
            for read in (*_looked(node), *node.reads):
                self.read.setdefault(read.value, (node, read))
        self.fused = {
            value
            for value, (_, _, nest, site) in self.reader.items()
            if isinstance(producer := shaped.nodes[value], Assignment)
            and producer.acc is None
            and site == len(nest.order)
        }
        """Values that are computed in the innermost loop of their reader and never stored."""
        self.rows = {each.value: each for each in reversed(shaped.rows)}
        named, results = graph.value_names(), graph.output_names(graph.outputs)
        self.called = {*graph.inner_names(graph.outputs).values()}
        self.called |= {n for v, n in zip(graph.outputs, results, strict=True) if v in named}
        self.specified = {node.text for node in graph.nodes if isinstance(node, Operation)}

    def run(self) -> Explanation:
        """The explanation of the program."""
        shaped, graph, program = self.shaped, self.graph, self.program
        views = ((v, node) for v, node in enumerate(shaped.nodes) if isinstance(node, View))
        return Explanation(
            name=shaped.name,
            inputs=tuple(map(self._tensor, shaped.inputs)),
            outputs=tuple(map(self._tensor, shaped.outputs)),
            meaning=self.says,
            runs=runs_as(self.scheduled, program),
            operations=_operations(graph, shaped, self.verbose),
            views=tuple(
                ViewRow(self.memory[v], self.memory[n.value], view_text(n.axes, n.source, n.target))
                for v, n in views
            ),
            steps=tuple(self._step(value, node) for value, node, _ in self.steps),
            projections=tuple(
                self._projection(v, node) for v, node, _ in self.steps if v not in self.fused
            ),
            execution=Execution(
                tuple(self._schedules()),
                _definition(self.scheduled),
                loops_text(program),
                simple_loops(program, self.names),
                _occupancy(program),
                self._cost(),
            ),
            notes=tuple(assumed_notes(shaped)),
            story=_story(shaped, graph, self.given) if self.verbose else (),
        )

    def _schedules(self) -> Iterator[ScheduleRow]:
        """The schedule of each expression; one that becomes several assignments, as an argmax does, has none.

        Assignments of an expression that stands in the program once have one row, that of the last of them.
        """
        written: dict[Span, list[str]] = {}
        for each in self.graph.nodes:
            text = each.text if isinstance(each, Expression) else ""
            written.setdefault(each.span, []).append(text)
        alike: dict[Span, list[int]] = {}
        several = set[int]()
        for value, node, _ in self.steps:
            texts = written.get(node.span, ())
            if node.text != "I" and node.text not in DTYPES and len(texts) == len({*texts}):
                alike.setdefault(node.span, []).append(value)
            for read in node.reads:
                source = self.shaped.nodes[read.value]
                if isinstance(source, Assignment) and "I" not in (node.text, source.text):
                    several |= {value, read.value} if source.span == node.span else set()
        several.update(*(values for values in alike.values() if 1 < len(values)))
        unwritten = {value for values in alike.values() for value in values[:-1]}
        for value, node, nest in self.steps:
            if value in unwritten:
                continue
            shown = None if value in several else _scheduled_text(node)
            if shown is None:
                yield ScheduleRow(self.number[value], node.text, "")
            else:
                followed = _followed(self.program, self.scheduled, value, node, nest)
                yield ScheduleRow(self.number[value], shown, schedule_text(node, followed))

    def _tensor(self, value: int) -> TensorRow:
        tensor, rows = self.shaped.tensors[value], ""
        if value in self.rows:
            from ilang.core.explain.story import rows_text

            rows = rows_text(self.rows[value])
        extents = tuple(self.sizes[n] for n in tensor.dims)
        return TensorRow(
            tensor.name, tensor.dtype, extents, self._letters(value), rows, tensor.order
        )

    def _letters(self, value: int) -> tuple[str, ...]:
        """The letters a value's dimensions go by: where it is made, else where it is first read."""
        node = self.shaped.nodes[value]
        if isinstance(node, Assignment):
            return tuple(self._letter(index, node) for index in node.target)
        if isinstance(node, View):
            return tuple(group_text(node.axes, group) for group in node.target)
        if value in self.read:
            reader, read = self.read[value]
            return tuple(self._letter(index, reader) for index in read.index)
        for view in self.shaped.nodes:
            if isinstance(view, View) and view.value == value:
                return tuple(group_text(view.axes, group) for group in view.source)
        return ()

    def _letter(self, index: Affine, node: Assignment) -> str:
        """The name of a dimension: its index, or the axis that is looked up there."""
        if index.looked and not index.variables():
            return self.shaped.sizes[index.looked[0][1].size].name
        names, tensors = written_names(node.axes, node.text), self.shaped.tensors
        size = self.sizes.__getitem__
        return affine_text(index, names.__getitem__, size, lambda v: tensors[v].name)

    def _step(self, value: int, node: Assignment) -> StepRow:
        name, remark = self.memory[value], self._remark(value, node)
        shown = name if name in self.called else ""
        return StepRow(self.number[value], node.text, words(node, name), remark, shown)

    def _remark(self, value: int, node: Assignment) -> str:
        if value not in self.reader:
            return ""
        reader, consumer, nest, site = self.reader[value]
        number = self.number[reader]
        if value in self.fused:
            return f"fused into {number}, never stored"
        if site == 0:
            return f"computed once, before the loops of {number}"
        read = next(r for r in consumer.reads if r.value == value)
        back, producer_nest = mapping(node, read), self.scheduled.nests[value]
        assert producer_nest is not None
        outside = nest.order[:site]
        indices = zip(node.target, read.index, strict=True)
        affine = {target.axis() for target, index in indices if index.axis() is None}
        kept = [
            loop_text(node, loop)
            for axis in node.output_axes()
            for loop in producer_nest.parts(axis)
            if axis not in affine
            and (axis not in back or replace(loop, axis=back[axis]) not in outside)
        ]
        part = [node.axes[axis].name for axis in node.output_axes() if axis in affine]
        over = [*filter(None, [" ".join(kept)]), *(f"the part of {name} read" for name in part)]
        stored = f"a buffer over {' and '.join(over)}" if over else "one scalar"
        return f"computed in {number} at loop {loop_text(consumer, outside[-1])}, kept in {stored}"

    def _projection(self, value: int, node: Assignment) -> ProjectionTable:
        """The accesses of a nest, those of what is fused into it included."""
        names, sizes, memory = (
            [axis.name for axis in node.axes],
            self.sizes.__getitem__,
            self.memory.__getitem__,
        )
        rows = [
            projection_row(self.memory[source], index, names, sizes, memory)
            for source, index in (*self._accesses(node), (value, node.target))
        ]
        reduced = [node.axes[axis].name for axis in node.reduced_axes()]
        remark = ""
        if node.base is not None:
            remark = (
                "elements may be met again: added up" if node.acc else "some elements, once each"
            )
        elif reduced:
            remark = f"{' '.join(reduced)} {'is' if len(reduced) == 1 else 'are'} reduced"
        if node.text in self.specified:
            remark = "; ".join(filter(None, (remark, _written(node))))
        return ProjectionTable(self.number[value], node.text, tuple(names), tuple(rows), remark)

    def _accesses(self, node: Assignment) -> list[tuple[int, tuple[Affine, ...]]]:
        accesses: dict[tuple[int, tuple[Affine, ...]], None] = {}
        pending: list[tuple[Read, dict[int, Affine]]] = [
            (read, {}) for read in reversed((*_looked(node), *node.reads))
        ]
        seen: set[tuple[int, tuple[Affine, ...]]] = set()  # a fused value may be read many times
        while pending:
            read, names = pending.pop()
            index = tuple(part.substituted(names) for part in read.index)
            if (read.value, index) in seen:
                continue
            seen.add((read.value, index))
            producer = self.shaped.nodes[read.value]
            if read.value in self.fused and isinstance(producer, Assignment):
                pairs = zip(producer.target, index, strict=True)
                inner = {axis: part for t, part in pairs if (axis := t.axis()) is not None}
                below = reversed((*_looked(producer), *producer.reads))
                pending.extend((each, inner) for each in below)
            else:
                accesses.setdefault((read.value, index))
        return list(accesses)

    # -- cost --------------------------------------------------------------------------------------------------------

    def _cost(self) -> Cost:
        flops, work = Total(self.program), of_assignments(self.shaped, self.program.machine)
        plans = (group.plan.instances for group in self.scheduled.groups)
        carried = {each.value: each.along for plan in plans for each in plan if each.along}
        for value, node, _ in self.steps:
            outputs = tuple(self.shaped.tensors[value].dims)
            domain = outputs if value in self.fused else work[value].sizes
            if value in carried:  # each term is added once, whatever the element at which it is
                along = carried[value].axis
                domain = tuple(size for axis, size in enumerate(node.sizes) if axis != along)
            flops.add(work[value].operations, domain)
        traffic = Total(self.program)
        for size, extents in of_transfers(self.shaped):
            traffic.add(size, extents)
        return Cost(flops.result(), traffic.result(), self._stored())

    def _stored(self) -> str:
        """The tensors stored between kernels, and what kernels keep for themselves (once per thread)."""
        kept: dict[str, str] = {}
        outputs = frozenset(map(self.shaped.owner, self.shaped.outputs))
        total = Total(self.program)
        for value, _, _ in self.steps:
            tensor = self.shaped.tensors[value]
            if value == self.last[value] and value not in self.reader and value not in outputs:
                kept[tensor.name] = self.names.get(tensor.name, tensor.name)
                total.add(BYTES[tensor.dtype], tensor.dims)
        scratch = Total(self.program)
        for buffer in self.program.buffers:
            if buffer.role == "temporary" and buffer.name not in kept:
                scratch.add(BYTES[buffer.dtype], buffer.dims)
        text = f"intermediate storage {total.spelled()} bytes ({', '.join(kept.values())})"
        text = text if kept else "no intermediate storage"
        return text if scratch.result() == 0 else f"{text}; scratch {scratch.spelled()} bytes"


def _operations(graph: Graph, shaped: Shaped, verbose: bool) -> tuple[OperationRow, ...]:
    """The operations in einx notation, which few programs have."""
    if not any(isinstance(node, Einx) for node in graph.nodes):
        return ()
    from ilang.core.explain.einx import operation_rows

    return operation_rows(graph, shaped, verbose)


def _occupancy(program: Program) -> tuple[Occupancy, ...]:
    """The blocks of each kernel that a GPU has at a time; other machines have no such limits."""
    if program.machine.device is None:
        return ()
    from ilang.core.explain.occupancy import occupancy_rows

    return occupancy_rows(program)


def _story(shaped: Shaped, graph: Graph, given: bool) -> tuple[StoryRow, ...]:
    from ilang.core.explain.story import typed_story

    return typed_story(shaped, graph.annotations, given)


def _definition(scheduled: Scheduled) -> str | None:
    """The program with its schedules, where its text cannot have them."""
    if not scheduled.is_apart:
        return None
    from ilang.core.explain.definition_text import definition_text

    return definition_text(scheduled.shaped, scheduled.nests) or ""


def _followed(
    program: Program, scheduled: Scheduled, value: int, node: Assignment, nest: Nest
) -> Nest:
    """A nest with the roles that its kernels follow: without those of its loops' positions where none does."""
    if nest.asked != "position":
        return nest
    groups = {
        number
        for number, group in enumerate(scheduled.groups)
        if any(instance.value == value for instance in group.plan.instances)
    }
    for call in program.launched():
        (spread,) = program.kernels[call.kernel].body
        is_own = call.group in groups
        if is_own and isinstance(spread, ThreadLoop) and spread.over != "grid":
            return nest
    written = written_nest(node)
    return nest if written is None else replace(nest, roles=written.roles)


def _looked(node: Assignment) -> tuple[Read, ...]:
    return tuple(Read(ValueId(each.source), each.index) for each in node.lookups())


def _scheduled_text(node: Assignment) -> str | None:
    """The text behind which the schedule of an assignment may be written; None where its component takes no schedule.

    An identity is the index expression ``ij~ij``; a conversion such as ``i64`` and a number have no such expression.
    """
    if node.text in DTYPES or not (node.axes or node.reads):
        return None
    if node.text != "I":
        return unscheduled(node)
    pattern = "".join(axis.name for axis in node.axes) or "."
    is_expression = node.reads and len({*pattern}) == len(pattern)  # letters repeat past 26 axes
    return f"{pattern}~{pattern}" if is_expression else None


def assumed_notes(shaped: Shaped) -> list[str]:
    """The assumptions where nothing in the program says what holds."""
    return [
        f"{each.variable} in {each.span.text()} stands for no axes, since nothing says how many: "
        "give shapes (--shape), or dimensions in a definition"
        for each in shaped.counted
        if each.assumed
    ]


def _written(node: Assignment) -> str:
    """Whether a write of an einsum meets every element (surjective), and none twice (injective)."""
    injective = node.acc is None
    return f"{'injective' if injective else 'not injective'}, {'surjective' if node.base is None else 'not surjective'}"


def words(node: Assignment, name: str) -> str:
    """An expression in words: ``sum over k, for each i j``; ``name`` is that of its result."""
    return f"{_words(node, name)}{of_unit(node.scalar)}"


def _words(node: Assignment, name: str) -> str:
    outputs = " ".join(dict.fromkeys(node.axes[axis].name for axis in node.output_axes()))
    if node.scatters():
        text = OPS[node.acc].reduction_says if node.acc else "store"
        return f"{text} at places of {name} that are looked up"
    if node.base is not None:
        return f"{'add into' if node.acc else 'store into'} {name}{f' over {outputs}' if outputs else ''}"
    if not node.reads and node.text.startswith(START):
        return f"fill {name} with {number_text(node.scalar.value) if isinstance(node.scalar, Constant) else ''}"
    if node.acc is not None:
        reduced = " ".join(node.axes[axis].name for axis in node.reduced_axes())
        each = f", for each {outputs}" if outputs else ""
        if any(isinstance(part, Position) for part in scalars_within(node.scalar)):
            reduced = f"positions along {reduced}"
        return f"{OPS[node.acc].reduction_says} over {reduced}{each}"
    return f"{_scalar_words(node)}{f' over {outputs}' if outputs else ''}"


def _scalar_words(node: Assignment) -> str:
    scalar = node.scalar
    operations = [part for part in scalars_within(scalar) if isinstance(part, Apply)]
    moved = any(read.index != node.target for read in node.reads)
    if not operations:
        if any(index.looked for read in node.reads for index in read.index):
            return "look up"
        if isinstance(scalar, Position):
            return "the position"
        if not node.reads:
            return "the constant"
        if isinstance(scalar, Convert) or node.text in DTYPES:
            return f"convert to {scalar.dtype}"
        read = variables_of(part for r in node.reads for part in r.index)
        if not read.issuperset(node.output_axes()):
            return "repeat"
        rank = len(node.target)
        diagonal = any(len({part.axis() for part in r.index}) < len(r.index) for r in node.reads)
        return "take the diagonal" if diagonal else ("transpose" if moved and rank > 1 else "copy")
    return _applied_words(operations[0])


def _applied_words(applied: Apply) -> str:
    """A primitive in words, with the constant it is applied with: ``maximum with 0``."""
    primitive = PRIMITIVES[applied.primitive]
    constants = [a for a in applied.arguments if isinstance(a, Constant)]
    if not constants:
        return primitive.says
    joint = " " if primitive.kind == "compare" else " with "
    return f"{primitive.says}{joint}{number_text(constants[0].value)}"
