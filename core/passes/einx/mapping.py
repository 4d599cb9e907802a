"""A program that goes along axes: each of its values has those of what it is computed from, before its own.

Example, ``einx.vmap("a [b], c [b] -> a c", op=f)``, f = ``i*i~i >> +i~.``:
    in:   n2 = n0[i] * n1[i] for i        n3 = fold + over i: n2[i]
    out:  n6 = n4[a,i] * n5[c,i] for a c i   n7 = fold + over i: n6[a,c,i] for a c
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ilang.core.calculus.affine import axis_index, resized
from ilang.core.diagnostic import InternalError
from ilang.core.ir.graph import (
    Annotation,
    Assignment,
    Axis,
    Elementwise,
    Graph,
    Groups,
    Node,
    Read,
    View,
    operands,
    rewired,
)
from ilang.core.ir.operation import Amount, Operation, Sized
from ilang.core.ir.scalar import Operand, Position, Scalar
from ilang.core.ir.spec import AxisLabel, ShapeSpec, Spec
from ilang.core.names import Names
from ilang.core.passes.einx.building import EinxBuilder, LeafDimension, LeafTensor, Leaves
from ilang.core.record import mapped, replace
from ilang.core.source import Span
from ilang.core.walks import reached

T = TypeVar("T")


class BatchedProgram:
    """A program without einx operations, put along the leaves of its inputs that are not in brackets."""

    def __init__(self, building: EinxBuilder, program: Graph, order: Leaves) -> None:
        """Add to what is built; ``order`` has the leaves that any input may be along, as results have them."""
        self.building = building
        self.program = program
        self.order = order
        self.values: dict[int, int] = {}
        self.along: dict[int, tuple[LeafDimension, ...]] = {}
        self.stored: dict[int, tuple[int, ...]] = {}
        """Of inputs whose dimensions stand in another order: which one each is."""

    def run(
        self, inputs: Sequence[LeafTensor], output: int
    ) -> tuple[int, tuple[LeafDimension, ...]]:
        """The value of one output, and the leaves that stand before its own dimensions.

        Args:
            inputs: of the program; leaves in brackets are its own dimensions.
            output: the number of the output.
        """
        for value, tensor in zip(self.program.inputs, inputs, strict=True):
            self._input(value, tensor)
        wanted = self.program.outputs[output]
        for value in _needed(self.program, wanted):
            if value not in self.values:
                self.values[value] = self._node(value)
        self._constraints()
        return self._plain(wanted), self.along[wanted]

    def _input(self, value: int, tensor: LeafTensor) -> None:
        """An input as it is stored, or, where it has a diagonal or an axis that no output has, copied."""
        leaf_keys = {leaf.key for leaf in tensor.leaves}
        along = self.along[value] = tuple(leaf for leaf in self.order if leaf.key in leaf_keys)
        wanted = [*along, *(leaf for leaf in tensor.leaves if leaf.marked)]
        keys = [leaf.key for leaf in wanted]
        if len(keys) != len(tensor.leaves) or not leaf_keys <= set(keys):
            self.values[value] = self.building.copied(tensor, wanted).value
            return
        self.values[value] = tensor.value
        order = tuple(keys.index(leaf.key) for leaf in tensor.leaves)
        if order != tuple(range(len(order))):
            self.stored[value] = order

    def _plain(self, value: int) -> int:
        """A value whose dimensions stand in the order of its axes; an input that is stored otherwise is copied."""
        order = self.stored.pop(value, None)
        if order is None:
            return self.values[value]
        along, span, text = self.along[value], self.building.span, self.building.text
        further = [Axis(f"n{n}", None, span) for n in range(len(order) - len(along))]
        axes = (*self._axes(along), *further)
        self.values[value] = self._copied(self.values[value], axes, order, text, span)
        return self.values[value]

    def _copied(
        self, value: int, axes: tuple[Axis, ...], order: Sequence[int], text: str, span: Span
    ) -> int:
        """A copy of a value, of which ``order`` says which of the axes walks each dimension."""
        target = tuple(map(axis_index, range(len(axes))))
        spans = tuple(span for _ in order)
        read = Read(value, tuple(target[n] for n in order), False, spans, span)
        copy = Assignment(axes, target, (read,), Operand(0), None, None, text, span)
        return self.building.add(copy)

    def annotations(self, scope: int) -> list[Annotation]:
        """The annotations of types in the program; sizes are constraints. The scope is one that nothing else has."""
        return [
            replace(each, value=self.values[each.value], dims=None, scope=scope)
            for each in self.program.annotations
            if each.value in self.values
        ]

    def _node(self, value: int) -> int:
        node = self.program.nodes[value]
        below = operands(node)
        keys = {leaf.key for each in below for leaf in self.along[each]}
        along = self.along[value] = tuple(leaf for leaf in self.order if leaf.key in keys)
        if isinstance(node, Assignment):
            return self._assignment(node, along)
        read = [self._plain(each) for each in below]
        match node:
            case Elementwise():
                rewired_node: Node = rewired(node, read)
            case View():
                axes = (*self._axes(along), *node.axes)
                groups = (_after(group, len(along)) for group in (node.source, node.target))
                source, target = groups
                rewired_node = replace(node, value=read[0], axes=axes, source=source, target=target)
            case Operation(logic=Spec() as logic):
                rewired_node = replace(self._contraction(node, logic, along), operands=tuple(read))
            case _:
                raise InternalError("E9901", f"no node of a component: {type(node).__name__}")
        return self.building.add(rewired_node)

    def _axes(self, leaves: Leaves) -> list[Axis]:
        return [Axis(leaf.key, self.building.size(leaf), leaf.span) for leaf in leaves]

    def _assignment(self, node: Assignment, along: Leaves) -> int:
        """An assignment of a component, done for each element along some axes: its loops stand inside of theirs."""
        count = len(along)
        moved = {axis: axis + count for axis in range(len(node.axes))}
        place = {leaf.key: axis_index(n) for n, leaf in enumerate(along)}

        def read(each: Read) -> Read:
            first = self.along[each.value]
            further = (part.renamed(moved) for part in each.index)
            index = (*(place[leaf.key] for leaf in first), *further)
            spans = (*(leaf.span for leaf in first), *each.spans)
            return replace(
                each,
                value=self.values[each.value],
                index=self._as_stored(each.value, index),
                spans=self._as_stored(each.value, spans),
                guards=tuple(
                    replace(guard, index=guard.index.renamed(moved)) for guard in each.guards
                ),
            )

        batched = replace(
            node,
            axes=(*self._axes(along), *node.axes),
            target=(*place.values(), *(part.renamed(moved) for part in node.target)),
            reads=tuple(map(read, node.reads)),
            scalar=_moved(node.scalar, moved),
            text=_text_along(node.text, along),
            schedule=None,
            some=tuple(moved[axis] for axis in node.some),
            lookups=tuple(replace(each, axis=moved[each.axis]) for each in node.lookups),
            base=None if node.base is None else self._base(node.base, along, node),
        )
        return self.building.add(batched)

    def _base(self, value: int, along: Leaves, node: Assignment) -> int:
        """The tensor that elements are stored into, repeated along the axes that it lacks."""
        start = self._plain(value)
        if len(self.along[value]) == len(along):
            return start
        further = [Axis(f"n{n}", None, node.span) for n in range(len(node.target))]
        axes = (*self._axes(along), *further)
        keys = {leaf.key for leaf in self.along[value]}
        order = [n for n, leaf in enumerate(along) if leaf.key in keys]
        order += range(len(along), len(axes))
        copied = self._copied(start, axes, order, node.text, node.span)
        names = (None if leaf.key in keys else leaf.name for leaf in along)
        amounts = (*names, *(None for _ in further))
        spans = tuple(axis.span for axis in axes)
        scope = self.building.scope
        self.building.sized.append(Sized(copied, "axes", amounts, scope, spans, node.span))
        return copied

    def _contraction(self, node: Operation, spec: Spec, along: Leaves) -> Operation:
        """A specification with labels for axes in front of what each shape has.

        An array has its axes in the order batch, output, input: what stands before them is of the batch row.
        """
        unique = Names(spec.names())
        labels = {leaf.key: AxisLabel(unique.fresh(leaf.key), leaf.span) for leaf in along}

        def before(shape: ShapeSpec, leaves: Leaves) -> ShapeSpec:
            batch, *others = shape.rows
            first = tuple(labels[leaf.key] for leaf in leaves)
            return replace(shape, rows=(replace(batch, leading=(*first, *batch.leading)), *others))

        operands = zip(spec.operands, node.operands, strict=True)
        shapes = tuple(before(shape, self.along[value]) for shape, value in operands)
        whole = replace(spec, operands=shapes, result=before(spec.result, along))
        return replace(node, logic=whole, schedule=None)

    def _constraints(self) -> None:
        """Add the constraints that the program has on sizes of values that are computed."""
        sized = self.building.sized
        scopes: dict[tuple[str, int], int] = {}

        def say(value: int, constraint: Sized, kind: str) -> None:
            along = () if constraint.of == "labels" else self.along[value]
            amounts: tuple[Amount, ...] = (*(None for _ in along), *constraint.amounts)
            spans = (*(leaf.span for leaf in along), *constraint.spans)
            if constraint.of == "dims":
                amounts, spans = self._as_stored(value, amounts), self._as_stored(value, spans)
            scope = scopes.setdefault((kind, constraint.scope), -1 - len(sized))
            value = self.values[value]
            sized.append(
                replace(constraint, value=value, amounts=amounts, spans=spans, scope=scope)
            )

        for each in self.program.constraints:
            if isinstance(each, Sized) and each.value in self.values:
                say(each.value, each, "solved")
        for written in self.program.annotations:
            if written.value in self.values and written.dims is not None:
                spans = tuple(written.span for _ in written.dims)
                scope, span = written.scope, written.span
                say(
                    written.value,
                    Sized(written.value, "dims", written.dims, scope, spans, span),
                    "written",
                )

    def _as_stored(self, value: int, parts: tuple[T, ...]) -> tuple[T, ...]:
        """Parts, one of each dimension of a value, those before its own first, in the order in which it is stored."""
        order = self.stored.get(value)
        return parts if order is None else tuple(parts[n] for n in order)


def _needed(program: Graph, output: int) -> list[int]:
    return sorted(reached([output], lambda value: operands(program.nodes[value])))


def _after(groups: Groups, count: int) -> Groups:
    """The groups of a view after so many dimensions of one axis each."""
    moved = (tuple(axis + count for axis in group) for group in groups)
    return (*((n,) for n in range(count)), *moved)


def _text_along(text: str, along: Leaves) -> str:
    """The text of work for each of some axes: its loops go over these as well, which the text alone does not name."""
    names = " ".join(leaf.name or str(leaf.size) for leaf in along)
    return f"{text} of each {names}" if along else text


def _moved(scalar: Scalar, axes: Mapping[int, int]) -> Scalar:
    """A scalar whose positions and extents are those of other axes."""

    def move(leaf: Position) -> Position:
        return replace(leaf, index=resized(leaf.index.renamed(axes), axes))

    return mapped(scalar, Position, move)
