"""Operations that leave ranks open become assignments and views, as soon as the ranks of their operands are known.

Example:
    in:   n1 = einx.sum "b (s [r])... c" of n0, of rank 4, r=4
    out:  n1 = n0 as b (s_0 r_0:4) (s_1 r_1:4) c -> b s_0 r_0 s_1 r_1 c
          n2 = fold + over r_0 r_1: n1[b,s_0,r_0,s_1,r_1,c]

The stages of one operation: ellipses are repeated (``einx/ellipses.py``), axes that always stand together become one
(``einx/fusing.py``), and what is left becomes nodes (``einx/building.py``, ``einx/bodies.py``). The sizes of an
operation are solved with those of all other nodes. A kernel without ranks has those of its operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ilang.core.calculus.affine import variables_of
from ilang.core.diagnostic import Label, MeaningError, ScheduleError, ShapeError, counted
from ilang.core.einx_ops import EINX_OPS, EinxOp
from ilang.core.infer.ranks import infer_ranks, input_ranks, undetermined
from ilang.core.ir import einx
from ilang.core.ir import graph as graphs
from ilang.core.ir.operation import Operation, Sized, Terminal
from ilang.core.ir.spec import Spec
from ilang.core.ir.syntax import ElementKernel, Schedule
from ilang.core.passes.einx.bodies import computed
from ilang.core.passes.einx.building import EinxBuilder, LeafTensor, dimensions, joined, parts
from ilang.core.passes.einx.ellipses import repeat
from ilang.core.passes.einx.fusing import FusedOperation, fuse
from ilang.core.passes.einx.mapping import BatchedProgram
from ilang.core.passes.kernels import kernel_annotations, kernel_outputs
from ilang.core.record import replace
from ilang.core.source import Span


def einx_to_graph(graph: graphs.Graph, ranks: Sequence[int | None] | None = None) -> graphs.Graph:
    """A graph without operations in einx notation, and without kernels that leave ranks open.

    Args:
        graph: in which they may stand beside all other nodes.
        ranks: of its arrays, one per input, None for one that is not there.

    Raises:
        ShapeError: E0503, E0508, E054 (ranks and sizes that do not fit an operation).
        MeaningError: E0224, E0227, E0228.
    """
    if not any(isinstance(node, graphs.OPEN) for node in graph.nodes):
        return graph
    return _Expansion(graph, ranks).run()


def operations(
    graph: graphs.Graph, ranks: Sequence[int | None]
) -> list[tuple[graphs.Einx, FusedOperation, tuple[str, ...]]]:
    """The operations of a graph in einx notation, what they become, and what messages call their operands."""
    run = _Expansion(graph, ranks)
    run.run()
    return run.expanded


def expanded(form: einx.Form, ranks: Sequence[int | None], names: Sequence[str]) -> FusedOperation:
    """The expressions of an operation over tensors of these ranks; ``names`` are what messages call them."""
    repeated = repeat(form, ranks, names)
    sizes = repeated.written()
    op = EINX_OPS[form.op]
    count = len(repeated.inputs)
    every = (*repeated.inputs, *repeated.outputs)
    leaves = [place.leaf for each in every for place in _marked(each)] if op.apart else []
    kept = {*sizes, *(leaf.name for leaf in leaves if isinstance(leaf, einx.Axis))}
    fused = fuse(repeated.inputs, repeated.outputs, kept)
    if op.kind == "dot":
        _check_numbers(fused[:count])
    _count_coordinates(op, fused[:count], fused[count:], sizes)
    return FusedOperation(fused[:count], fused[count:], sizes, repeated)


def _marked(expression: einx.Expression) -> list[einx.Occurrence]:
    return [place for place in einx.places(expression) if place.marked]


def _check_numbers(inputs: Sequence[einx.Expression]) -> None:
    """Refuse a number that a dot sums in one operand alone: it may be meant for one of another. MeaningError E0226."""
    leaves = [place.leaf for each in inputs for place in _marked(each)]
    numbers = [leaf for leaf in leaves if isinstance(leaf, einx.UnnamedAxis) and leaf.size != 1]
    met = Counter((leaf.place, leaf.at) for leaf in numbers)
    for leaf in numbers:
        if met[leaf.place, leaf.at] == 1:
            message = f"nothing says which axis of the other operand the {leaf.size} in brackets is"
            help_line = "name the axis in both: `a [b], [b] c -> a c`"
            raise MeaningError("E0226", message, leaf.span, help_line)


def _count_coordinates(
    op: EinxOp,
    inputs: Sequence[einx.Expression],
    outputs: Sequence[einx.Expression],
    sizes: dict[str, int],
) -> None:
    """Coordinates are as many as the axes they are of; their number becomes a size. Raises MeaningError E0228."""
    axes = _marked(inputs[0])
    if op.kind in ("argument", "set") and not axes:
        target = inputs[0].span
        message = f"{op.name} goes along axes in brackets, and `{target.text()}` has none"
        help_line = "an ellipsis in brackets stands for no axis here: put brackets around one"
        raise MeaningError("E0228", message, target, help_line)
    if op.kind == "argument":
        along = _marked(outputs[0])
        _check_coordinates(op, inputs[0], axes, [along], sizes)
    elif op.kind in ("get", "set"):
        given = inputs[1:] if op.kind == "get" else inputs[1:-1]
        _check_coordinates(op, inputs[0], axes, list(map(_marked, given)), sizes)


def _check_coordinates(
    op: EinxOp,
    target: einx.Expression,
    axes: Sequence[einx.Occurrence],
    given: Sequence[Sequence[einx.Occurrence]],
    sizes: dict[str, int],
) -> None:
    """The coordinates of all tensors together are those of the axes in brackets; one length may be implied."""
    total = 0
    opened: list[einx.Axis] = []
    for along in given:
        if len(along) > 1:
            labels = [Label(place.leaf.span, "") for place in along]
            message = (
                f"the coordinates of {op.name} are along one axis, and {len(along)} are in brackets"
            )
            help_line = "put brackets around one axis"
            raise MeaningError("E0228", message, along[0].leaf.span, help_line, labels)
        if not along:
            total += 1
            continue
        leaf = along[0].leaf
        size = leaf.size if isinstance(leaf, einx.UnnamedAxis) else sizes.get(leaf.name)
        if size is None and isinstance(leaf, einx.Axis):
            opened.append(leaf)
        total += size or 0
    if len(opened) == 1 and total <= len(axes):
        sizes[opened[0].name] = len(axes) - total
        return
    if opened or total != len(axes):
        wanted = counted(len(axes), "coordinate")
        message = f"{op.name} has {wanted}, one an axis in brackets of `{einx.expression_text(target)}`, not {total}"
        if opened:
            names = " and ".join(leaf.name for leaf in opened)
            message = f"nothing says how many of {wanted} of {op.name} are along {names} each"
        labels = [Label(place.leaf.span, "") for place in axes]
        labels += [Label(place.leaf.span, "") for along in given for place in along]
        help_line = "write how many there are: `p [2]`"
        raise MeaningError(
            "E0228", message, labels[-1].span if labels else target.span, help_line, labels
        )


class _Expansion:
    """The nodes of the new graph so far, and which value of it each of the old one is."""

    def __init__(self, graph: graphs.Graph, ranks: Sequence[int | None] | None) -> None:
        self.graph = graph
        self.given = input_ranks(graph, ranks)
        self.nodes: list[graphs.Node] = []
        self.sized: list[Sized] = []
        self.written: list[graphs.Annotation] = []
        self.number: list[int] = []
        self.parts: list[str] = []
        self.expanded: list[tuple[graphs.Einx, FusedOperation, tuple[str, ...]]] = []
        self.kernels: dict[tuple[tuple[int, ...], ElementKernel], list[int]] = {}

    def run(self) -> graphs.Graph:
        """The graph without einx operations."""
        for node in self.graph.nodes:
            self.number.append(self._node(node))
            if self.graph.parts:
                part = self.graph.parts[len(self.number) - 1]
                self.parts += [part] * (len(self.nodes) - len(self.parts))
        new = self.number.__getitem__
        return replace(
            self.graph,
            nodes=tuple(self.nodes),
            outputs=tuple(map(new, self.graph.outputs)),
            annotations=(*graphs.renumbered(self.graph.annotations, new), *self.written),
            constraints=(*self.graph.constraints, *self.sized),
            called=graphs.renumbered(self.graph.called, new),
            defined=graphs.renumbered(self.graph.defined, new),
            parts=tuple(self.parts),
        )

    def _node(self, node: graphs.Node) -> int:
        if isinstance(node, graphs.Einx):
            return self._einx(node)
        if isinstance(node, graphs.OpenKernel):
            return self._kernel(node)
        return self._add(
            graphs.rewired(node, [self.number[value] for value in graphs.operands(node)])
        )

    def _kernel(self, node: graphs.OpenKernel) -> int:
        """The value of one output of a kernel, whose outputs share folds.

        Raises:
            ShapeError: E0501, E0508.
        """
        values = tuple(self.number[value] for value in node.operands)
        outputs = self.kernels.get((values, node.kernel))
        if outputs is None:
            whole = node.kernel.ranked([self._rank(value) for value in values])
            self.written += kernel_annotations(whole, values, -1 - len(self.written))
            outputs = kernel_outputs(whole, values, self._add)
            self.kernels[values, node.kernel] = outputs
        return outputs[node.output]

    def _add(self, node: graphs.Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _einx(self, node: graphs.Einx) -> int:
        values = [self.number[value] for value in node.operands]
        ranks = [self._rank(value) for value in values]
        names = [
            self.graph.input_name(value)
            if value < len(self.graph.inputs)
            else f"operand {n} of {node.form.op}"
            for n, value in enumerate(values)
        ]
        try:
            solved = expanded(node.form, ranks, names)
        except ShapeError as error:
            unknown = [v for v, rank in zip(values, ranks, strict=True) if rank is None]
            if error.code == "E0540" and unknown and unknown[0] < len(self.graph.inputs):
                raise undetermined(self.graph, unknown[0]) from None
            raise
        if not node.output:
            self.expanded.append((node, solved, tuple(names)))
        before = len(self.nodes)
        value = self._made(node, solved, values)
        if node.schedule is not None:
            self._schedule(node, node.schedule, before)
        return value

    def _schedule(self, node: graphs.Einx, schedule: Schedule, before: int) -> None:
        """Give the one assignment of an operation its schedule.

        Raises:
            ScheduleError: E0301 to E0313, E0330 (there are several, or none).
        """
        added = [
            n for n in range(before, len(self.nodes)) if not isinstance(self.nodes[n], graphs.View)
        ]
        only = self.nodes[added[0]] if len(added) == 1 else None
        if not isinstance(only, graphs.Assignment):
            message = f"this operation becomes {counted(len(added), 'assignment')}, and a schedule is that of one"
            help_line = "leave the schedule out: the compiler chooses one for each"
            labels = [Label(node.span, "")]
            raise ScheduleError("E0330", message, schedule.span, help_line, labels)
        from ilang.core.ir.schedule import resolved as spelled
        from ilang.core.notation.index.schedule_rules import ScheduleTarget as Scheduling
        from ilang.core.notation.index.schedule_rules import check_schedule

        axes = tuple(axis.name for axis in only.axes)
        written = spelled(schedule, axes)
        kept = frozenset(axes[axis] for axis in variables_of(only.target))
        check_schedule(written, Scheduling(axes, kept, len(only.reads)))
        self.nodes[added[0]] = replace(only, schedule=written)

    def _made(self, node: graphs.Einx, solved: FusedOperation, values: Sequence[int]) -> int:
        scope = len(self.sized)
        every = solved.expressions
        building = EinxBuilder(self.nodes, self.sized, scope, node, every, solved.sizes)
        op = EINX_OPS[node.form.op]
        if node.body is not None:
            return self._mapped(building, node, solved, values)
        if op.kind == "id":
            return _identity(building, solved, values, node.output)
        tensors = [building.taken(v, e) for v, e in zip(values, solved.inputs, strict=True)]
        dims = dimensions(solved.outputs[0])
        target = building.wanted(dims)
        options = {option.name: option.value for option in node.form.options}
        return building.merged(computed(building, op, tensors, target, options), dims)

    def _mapped(
        self, b: EinxBuilder, node: graphs.Einx, solved: FusedOperation, values: Sequence[int]
    ) -> int:
        """One output of a program that goes along the axes outside brackets.

        Raises:
            MeaningError: E0226 (it gives another rank than there are axes in brackets).
            ShapeError: E0503 (it takes another rank).
        """
        op = node.body
        assert op is not None
        tensors = [b.taken(v, e) for v, e in zip(values, solved.inputs, strict=True)]
        dims = dimensions(solved.outputs[node.output])
        target = b.wanted(dims)
        along, marked = ([leaf for leaf in target if leaf.marked is m] for m in (False, True))
        ranks = [sum(leaf.marked for leaf in tensor.leaves) for tensor in tensors]
        for wanted, given, each in zip(
            input_ranks(op.program, None), ranks, solved.inputs, strict=True
        ):
            if wanted is not None and wanted != given:
                raise ShapeError("E0503", *_wrong_rank(op, "takes", wanted, given, each))
        program = einx_to_graph(op.program, ranks)
        rank = infer_ranks(program, ranks).rank(program.outputs[node.output])
        if rank is not None and rank != len(marked):
            output = solved.outputs[node.output]
            raise MeaningError("E0226", *_wrong_rank(op, "gives", rank, len(marked), output))
        run = BatchedProgram(b, program, along)
        value, first = run.run(tensors, node.output)
        self.written += run.annotations(-1 - len(self.written))
        result = LeafTensor(value, (*first, *marked))
        b.note(value, result.leaves)
        return b.merged(b.copied(result, target), dims)

    def _rank(self, value: int) -> int | None:
        """The rank of a value of the new graph; None where nothing that is there so far says it."""
        node = self.nodes[value]
        match node:
            case graphs.Input() | Terminal():
                return self.given[value]
            case graphs.Assignment():
                return len(node.target)
            case graphs.View():
                return len(node.target)
            case graphs.Elementwise():
                return self._rank(node.value)
            case Operation(logic=Spec() as spec):
                if all(row.variable is None for row in spec.result.rows):
                    return len(spec.result.axes())
            case _:
                pass
        so_far = replace(
            self.graph,
            nodes=tuple(self.nodes),
            outputs=(value,),
            annotations=(),
            constraints=(),
            called=(),
            defined=(),
        )
        return infer_ranks(so_far, self.given).rank(value)


def _wrong_rank(
    body: graphs.EinxBody, verb: str, rank: int, given: int, expression: einx.Expression
) -> tuple[str, Span, str, list[Label]]:
    """The words of an error of a component that takes, or gives, another rank than there are axes in brackets."""
    are = "axis is" if given == 1 else "axes are"
    text = einx.expression_text(expression)
    message = f"`{body.text}` {verb} rank {rank}, and {given} {are} in brackets in `{text}`"
    labels = [
        Label(expression.span, f"{given} in brackets"),
        Label(body.span, f"{verb} rank {rank}"),
    ]
    return message, expression.span, f"put brackets around the axes that it {verb}", labels


def _identity(b: EinxBuilder, solved: FusedOperation, values: Sequence[int], output: int) -> int:
    """One output of einx.id: its pieces in order are those of the inputs.

    Raises:
        MeaningError: E0224 (another number of pieces).
    """
    counts = [_pieces(each) for each in solved.outputs]
    count = sum(map(_pieces, solved.inputs))
    if sum(counts) != count:
        message = f"the inputs are {counted(count, 'piece')}, and the outputs {counted(sum(counts), 'piece')}"
        labels = [Label(each.span, counted(_pieces(each), "piece")) for each in solved.expressions]
        help_line = "parts go from inputs to outputs in order, so both sides have equally many"
        raise MeaningError("E0224", message, b.span, help_line, labels)
    first = sum(counts[:output])
    wanted = range(first, first + counts[output])
    pieces: list[LeafTensor] = []
    place = 0
    for value, expression in zip(values, solved.inputs, strict=True):
        count = _pieces(expression)
        if set(range(place, place + count)) & set(wanted):
            every = parts(b, value, dimensions(expression))
            pieces += [part for n, part in enumerate(every, place) if n in wanted]
        else:
            b.noted(value, expression)
        place += count
    rest = iter(pieces)
    return joined(
        b,
        dimensions(solved.outputs[output]),
        lambda dims: b.merged(b.copied(next(rest), b.wanted(dims)), dims),
    )


def _pieces(expression: einx.Expression) -> int:
    count = 1
    for item in expression.items:
        count *= _item_pieces(item)
    return count


def _item_pieces(item: einx.Item) -> int:
    if isinstance(item, einx.Concatenation):
        return sum(map(_item_pieces, item.items))
    count = 1
    for each in einx.inside(item):
        count *= _item_pieces(each)
    return count
