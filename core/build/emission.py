"""Tensors to nodes of the graph, each when it is first needed; what keeps values has the node of its latest ones.

Example, of ``y = "w" * x`` and then ``w =- lr *. w.grad`` after ``backprop(y)``:
    n0 = x;  n1 = w;  n2 = lr;  n3 stands for the gradient of n4 with respect to n1
    n4 = compose(n1, n0);  n5 = n2 *. n3;  n6 = n1 - n5, which is what w is from now on
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar, assert_never

from ilang.core.build.callers import Callers
from ilang.core.build.settings import Einx
from ilang.core.build.tensor import placed
from ilang.core.build.values import (
    ComponentCall,
    Computed,
    Custom,
    Measured,
    NumberTensor,
    Output,
    Stored,
    Tensor,
    operands,
)
from ilang.core.ir import graph as g
from ilang.core.ir import operation as o
from ilang.core.ir.rows import Known, Origin
from ilang.core.ir.scalar import Operand
from ilang.core.names import Names
from ilang.core.record import replace
from ilang.core.source import Span
from ilang.core.walks import parts_first

Scoped = TypeVar("Scoped", g.Annotation, o.Sized)


class Emission:
    """Nodes under construction; they have their final numbers when inputs have been moved to the front."""

    def __init__(self, einx: Einx, callers: Callers) -> None:
        """No nodes yet.

        Args:
            einx: makes assignments of the operations in einx notation of a component.
            callers: has the calls, and what their heads say of tensors.
        """
        self._einx = einx
        self._callers = callers
        self.nodes: list[g.Node] = []
        self.first: dict[Stored, int] = {}
        self.latest: dict[Tensor, int] = {}
        self.results: dict[ComponentCall, list[int]] = {}
        self.calls: dict[ComponentCall, tuple[list[int], range, range]] = {}
        """Of each component what it is given, its nodes, and the scopes of what it writes of them."""
        self.constraints: list[o.SizeConstraint] = []
        self.annotations: list[g.Annotation] = []
        self.custom: list[g.Custom] = []
        self.backward: list[tuple[int, list[tuple[int, int]], Span]] = []
        self.measured: list[tuple[Stored, int]] = []
        self.names = Names()
        self.updates: set[int] = set()
        self.scopes = 0

    # -- values ------------------------------------------------------------------------------------------------------

    def read(self, wanted: Tensor) -> int:
        """The node that a tensor is now; what it is computed from comes before, and nothing is computed twice."""
        for value in parts_first([wanted], self._before, self.latest):
            self.latest[value] = self._node(value)
        return self.latest[wanted]

    @staticmethod
    def _before(value: Tensor) -> tuple[Tensor, ...]:
        """The tensors whose nodes stand before the node of a tensor."""
        if isinstance(value, Stored) and isinstance(value.initial, Measured):
            return (value.initial.value,)
        return operands(value)

    def add(self, node: g.Node) -> int:
        """Add a node; its number."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def alike(self, one: int, other: int, name: str, span: Span) -> None:
        """Two values have the same axes."""
        self.constraints.append(o.Alike(one, other, name, span))

    def _node(self, value: Tensor) -> int:
        match value:
            case Stored():
                return self._stored(value)
            case NumberTensor():
                text = value.span.text() or str(value.value)
                rows = (None, None, None)
                return self.add(o.Terminal(text, "number", rows, None, value.value, value.span))
            case Computed():
                given = tuple(self.latest[each] for each in value.operands)
                key = (value.scalar, value.acc, value.logic, value.text, value.span)
                return self.add(o.Operation(given, *key, value.schedule))
            case Output():
                return self._output(value)
            case Custom():
                return self._custom(value)
            case _:
                assert_never(value)

    def _stored(self, value: Stored) -> int:
        """The input that has the values that a tensor starts from."""
        known, count = value.rows, None
        if value.kind == "constant" and None in known:
            count = getattr(value.initial, "size", None)
            count = len(value.initial) if isinstance(value.initial, list) else count
            known = (None, None, None)
        name = self.names.fresh(_word(value.name))
        _, rows = placed(name, known)
        if value.kind == "setting" or isinstance(value.initial, Measured):
            unit = Known(1, Origin(name, value.span), stretch=True)
            rows = [(), (), (unit,)]
        kind: o.TerminalKind = "fill"
        if value.kind in ("gradient", "cotangent"):
            kind = "alike"
        elif value.kind == "parameter":
            kind = "parameter"
        elif None not in known:
            kind = "data"
        elif count is not None:
            kind = "constant"
        leaf = o.Terminal(name, kind, (rows[0], rows[1], rows[2]), count, None, value.span)
        number = self.first[value] = self.add(leaf)
        return number

    def named(self, cell: Stored) -> str:
        """The name of the input that has what a tensor starts from."""
        node = self.nodes[self.first[cell]]
        assert isinstance(node, o.Terminal)
        return node.name

    def assign(self, cell: Stored, number: int) -> None:
        """A tensor has other values from now on, with the same axes."""
        self.updates.add(number)
        before = self.latest.get(cell)
        if before is not None:
            self.alike(number, before, cell.name, self.nodes[number].span)
        self.latest[cell] = number

    def _custom(self, value: Custom) -> int:
        """A value with a gradient of its own: a copy, for which that stands."""
        inner = self.latest[value.value]
        node = o.Operation((inner,), Operand(0), "+", "pointwise", value.name, value.span)
        number = self.add(node)
        self.alike(number, inner, value.name, value.span)
        if value.tracked:
            return number
        unknown = Stored("cotangent", value.name, (None, None, None), None, value.span)
        cotangent = self.read(value.cotangent or unknown)
        self.alike(cotangent, number, value.name, value.span)
        pairs = []
        for operand, gradient in value.gradients:
            pair = (self.read(operand), self.read(gradient))
            self.alike(*pair, f"what flows back through {value.name}", value.span)
            pairs.append(pair)
        rule = (number, cotangent, tuple(pairs), value.name, value.span)
        self.custom.append(g.Custom(*rule))
        return number

    def _output(self, value: Output) -> int:
        """An output of a component, whose nodes are added once."""
        component = value.of
        numbers = self.results.get(component)
        if numbers is None:
            given = [self.latest[each] for each in component.operands]
            first, scope = len(self.nodes), self.scopes
            numbers = self.results[component] = self._included(component.graph, given)
            nodes, scopes = range(first, len(self.nodes)), range(scope, self.scopes)
            self.calls[component] = given, nodes, scopes
        return numbers[value.number]

    def _included(self, graph: g.Graph, given: Sequence[int]) -> list[int]:
        """The outputs of a component, whose inputs are values that there are; its nodes are added."""
        if any(isinstance(node, g.OPEN) for node in graph.nodes):
            around, number = self.graph("around", given)
            graph = self._einx(graph, around, [number[value] for value in given])
        numbers = dict(zip(graph.inputs, given, strict=True))
        for value, node in enumerate(graph.nodes):
            if value in numbers:
                continue
            values = [numbers[each] for each in g.operands(node)]
            numbers[value] = self.add(g.rewired(node, values))

        def moved(each: Scoped) -> Scoped:
            return replace(each, value=numbers[each.value], scope=self.scopes + each.scope)

        self.annotations += map(moved, graph.annotations)
        self.constraints += (
            moved(each) if isinstance(each, o.Sized) else each for each in graph.constraints
        )
        scopes = [each.scope for each in graph.annotations]
        scopes += [each.scope for each in graph.constraints if isinstance(each, o.Sized)]
        self.scopes += 1 + max([0, *scopes])
        return [numbers[value] for value in graph.outputs]

    # -- the end -----------------------------------------------------------------------------------------------------

    def graph(
        self,
        name: str,
        outputs: Sequence[int],
        head: Sequence[Stored] = (),
        called: Sequence[g.ValueName] = (),
        defined: Sequence[g.ValueName] = (),
    ) -> tuple[g.Graph, Mapping[int, int]]:
        """The graph, inputs first, and the final number of each node; among inputs those of ``head`` in that order.

        ``called`` are nodes that names of the text are bound to, ``defined`` the results of calls.
        """
        inputs = [
            n
            for n, node in enumerate(self.nodes)
            if isinstance(node, o.Terminal) and node.kind != "number"
        ]
        in_order = [self.first[cell] for cell in head if cell in self.first]
        swapped = dict(zip(sorted(in_order), in_order, strict=True))
        inputs = [swapped.get(n, n) for n in inputs]
        chosen = set(inputs)
        order = inputs + [n for n in range(len(self.nodes)) if n not in chosen]
        number = {old: new for new, old in enumerate(order)}
        nodes = [
            g.rewired(node, [number[each] for each in g.operands(node)])
            for node in (self.nodes[old] for old in order)
        ]
        return g.Graph(
            name=name,
            nodes=tuple(nodes),
            inputs=tuple(range(len(inputs))),
            outputs=tuple(number[each] for each in outputs),
            annotations=g.renumbered(self.annotations, number.__getitem__),
            constraints=tuple(_moved(each, number) for each in (*self.constraints, *self._noted())),
            called=g.renumbered(called, number.__getitem__),
            backward=tuple(
                g.Backprop(number[of], tuple((number[a], number[b]) for a, b in pairs), span)
                for of, pairs, span in self.backward
            ),
            custom=tuple(
                replace(
                    each,
                    value=number[each.value],
                    cotangent=number[each.cotangent],
                    gradients=tuple((number[a], number[b]) for a, b in each.gradients),
                )
                for each in self.custom
            ),
            defined=g.renumbered(defined, number.__getitem__),
            calls=self._callers.finished(self, number),
        ), number

    def _noted(self) -> list[o.Noted]:
        """The rows that heads write of the values that there are."""
        return [
            o.Noted(self.latest[value], name, note, scope, note.span)
            for value, name, note, scope in self._callers.notes
            if value in self.latest
        ]


def _word(name: str) -> str:
    """A name as loops and C may have it; that of what has none says what it is."""
    word = name.replace(".", "_")
    return word if word.isidentifier() and word.isascii() else "literal"


def _moved(constraint: o.SizeConstraint, number: Mapping[int, int]) -> o.SizeConstraint:
    match constraint:
        case o.Alike():
            return replace(constraint, one=number[constraint.one], other=number[constraint.other])
        case o.Noted() | o.Sized():
            return replace(constraint, value=number[constraint.value])
        case o.Fits():
            moved = number[constraint.result], number[constraint.operand]
            return o.Fits(*moved)
        case o.SetSize() | o.SameSize() | o.Scaled():
            return constraint
        case _:
            assert_never(constraint)
