"""Gradients inside a program: inputs that stand for them are replaced by what computes them.

Example, of ``backprop(y)`` and ``w =- w.grad``, where n2 stands for the gradient of n3 with respect to w, n0:
    in:   n3[b] = sum n0[i] * n1[b,i];  n4[i] = n0[i] - n2[i];  backward of n3: n2 is with respect to n0
    out:  n3[b] = sum n0[i] * n1[b,i];  d3[b] = 1;  d0[i] = sum d3[b] * n1[b,i];  n4[i] = n0[i] - d0[i]

What the gradient of a value is computed from comes before it, whatever the order of the numbers was. A value with a
gradient of its own passes on what that says, and nothing of how the value is computed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from ilang.core.ir.assignments import renumbered, sources
from ilang.core.ir.graph import Backprop, Custom
from ilang.core.ir.ids import ValueId
from ilang.core.ir.shaped import Assignment, Input, InputDimension, Shaped
from ilang.core.record import replace
from ilang.core.transform.building import ProgramBuilder
from ilang.core.transform.reverse import Reverse
from ilang.core.transform.simplified import is_copy, simplified
from ilang.core.walks import parts_first


def attached(shaped: Shaped) -> Shaped:
    """The program in which nothing stands for a gradient.

    Raises:
        MeaningError: E0260 (an assignment through which nothing can flow back).
    """
    if not shaped.backward and not shaped.custom:
        return shaped
    return _BackpropExpansion(shaped).program()


class _BackpropExpansion(Reverse):
    def __init__(self, shaped: Shaped) -> None:
        self.shaped = shaped
        self.new = ProgramBuilder(shaped.sizes)
        self.number: dict[ValueId, ValueId] = {}
        self.flowing = defaultdict(list)
        self.levels: dict[int, int] = {}
        self.active: set[int] = set()
        self.back = {given: each for each in shaped.backward for given, _ in each.gradients}
        self.rules = {rule.value: rule for rule in shaped.custom}
        self.cotangents = []
        self.inputs = [n for n in shaped.inputs if not self._stands_for(n)]

    def _stands_for(self, value: ValueId) -> bool:
        """Whether a value is an input that stands for a gradient, or for what flows back."""
        return value in self.back or any(r.cotangent == value for r in self.shaped.custom)

    def program(self) -> Shaped:
        """The program, its inputs first."""
        for position, value in enumerate(self.inputs):
            node, tensor = self.shaped.nodes[value], self.shaped.tensors[value]
            assert isinstance(node, Input)
            self.number[value] = self.new.add(
                Input(position, node.span), tensor.name, tensor.dtype, tensor.dims
            )
        for value in self.shaped.outputs:
            self._need(value, self.number)
        outputs: list[ValueId] = []
        for value in self.shaped.outputs:
            outputs.append(self._own(self._copied(self.number[value]), outputs))
        place = {self.shaped.inputs.index(n): position for position, n in enumerate(self.inputs)}
        sizes = tuple(
            replace(
                size,
                places=tuple(
                    InputDimension(place[each.number], each.dim, each.span)
                    for each in size.places
                    if each.number in place
                ),
            )
            for size in self.new.sizes
        )
        return simplified(
            replace(
                self.shaped,
                nodes=tuple(self.new.nodes),
                tensors=tuple(self.new.tensors),
                sizes=sizes,
                inputs=tuple(range(len(self.inputs))),
                outputs=tuple(outputs),
                backward=(),
                custom=(),
            )
        )

    def _copied(self, value: ValueId) -> ValueId:
        """The computed value that another copies whole, if any: a gradient that is an output was a copy of it."""
        node, tensor = self.new.nodes[value], self.new.tensors[value]
        if not isinstance(node, Assignment) or not is_copy(node) or len(node.reads) != 1:
            return value
        (read,) = node.reads
        source = self.new.tensors[read.value]
        is_whole = read.index == node.target and (source.dims, source.dtype) == (
            tensor.dims,
            tensor.dtype,
        )
        is_input = isinstance(self.new.nodes[self.new.owner(read.value)], Input)
        return value if read.guards or is_input or not is_whole else read.value

    def _own(self, value: ValueId, outputs: Sequence[ValueId]) -> ValueId:
        """A value in memory of its own: a copy of one that is an input, or an output already."""
        taken = {self.new.owner(output) for output in outputs}
        tensor, span = self.new.tensors[value], self.new.nodes[value].span
        return self.new.own(value, taken, tensor.dtype, tensor.name, span)

    # -- values as they are needed -----------------------------------------------------------------------------------

    def _need(self, wanted: ValueId, number: dict[ValueId, ValueId]) -> None:
        """Add what a value is computed from, and the value; ``number`` has the values that there are."""
        for value in parts_first([wanted], self._below, number):
            back = self.back.get(value)
            if back is None:
                number[value] = self._added(value, number)
            else:
                self._differentiate(back)

    def _below(self, value: ValueId) -> tuple[ValueId, ...]:
        back = self.back.get(value)
        if back is None:
            return sources(self.shaped.nodes[value])[::-1]
        return tuple(ValueId(n) for n in (back.of, *(wrt for _, wrt in back.gradients)))[::-1]

    def _added(self, value: ValueId, number: Mapping[ValueId, ValueId]) -> ValueId:
        node, tensor = renumbered(self.shaped.nodes[value], number), self.shaped.tensors[value]
        return self.new.add(node, tensor.name, tensor.dtype, tensor.dims)

    def _differentiate(self, back: Backprop) -> None:
        of = self.number[ValueId(back.of)]
        tensor, span = self.new.tensors[of], self.new.nodes[of].span
        pairs = [(ValueId(given), ValueId(wrt)) for given, wrt in back.gradients]
        self.active = self._reached({self.number[wrt] for _, wrt in pairs}, {of})
        self.flowing.clear()
        if of in self.active:
            ones = self.new.filled(1.0, tensor.dtype, tensor.dims, f"d{tensor.name}", span)
            self.flowing[of] = [ones]
            self.sweep()
        for given, wrt in pairs:
            self.number[given] = self._gradient_of(
                self.number[wrt], self.shaped.tensors[given].name
            )

    def _gradient_of(self, value: ValueId, name: str) -> ValueId:
        tensor = self.new.tensors[value]
        if value in self.flowing:
            return self._total(value)
        return self.new.filled(0.0, tensor.dtype, tensor.dims, name, self.new.nodes[value].span)

    # -- gradients of their own --------------------------------------------------------------------------------------

    def _rule(self, value: ValueId) -> Custom | None:
        rules = ((self.number.get(ValueId(v)), rule) for v, rule in self.rules.items())
        return next((rule for number, rule in rules if number == value), None)

    def _is_opaque(self, value: ValueId) -> bool:
        return self._rule(value) is not None

    def _passed_on(self, value: ValueId, total: ValueId) -> bool:
        rule = self._rule(value)
        if rule is None:
            return False
        number = self._instance(rule, total)
        for operand, gradient in ((ValueId(v), ValueId(n)) for v, n in rule.gradients):
            self._need(gradient, number)
            if self.number[operand] in self.active:
                self.levels[number[gradient]] = self.levels.get(total, 0)
                self.flowing[self.number[operand]].append(number[gradient])
        return True

    def _instance(self, rule: Custom, total: ValueId) -> dict[ValueId, ValueId]:
        """The values that there are, where ``total`` flows back to the value of a rule.

        Nodes that depend on that are added for each instance; all else is added once.
        """
        reached = {rule.cotangent}
        for value, node in enumerate(self.shaped.nodes):
            if reached.intersection(sources(node)):
                reached.add(value)
        return _Instance(self.number, {ValueId(rule.cotangent): total}, reached.__contains__)


class _Instance(dict[ValueId, ValueId]):
    """Values by number: those that depend on a cotangent are its own, all others are shared."""

    def __init__(
        self,
        shared: dict[ValueId, ValueId],
        given: Mapping[ValueId, ValueId],
        depends: Callable[[ValueId], bool],
    ) -> None:
        super().__init__(given)
        self.shared = shared
        self.depends = depends

    def __contains__(self, value: object) -> bool:
        return super().__contains__(value) or value in self.shared

    def __missing__(self, value: ValueId) -> ValueId:
        return self.shared[value]

    def __setitem__(self, value: ValueId, number: ValueId) -> None:
        if self.depends(value):
            super().__setitem__(value, number)
        else:
            self.shared[value] = number
