"""Forward mode: the program that gives directional derivatives, from the typed graph of a program.

Example, of a matrix multiply with tangents t0 and t1 of its inputs:
    in:   n2[i,j] = sum n0[i,k] * n1[k,j] over k
    out:  n2[i,j], and t2[i,j] = sum t0[i,k] * n1[k,j] + n0[i,k] * t1[k,j] over k

Beside each value that a tangent reaches stands its tangent, computed by the same assignment of the derivative of the
scalar; what an accumulator adds is in ``accumulators.py``.

What reverse mode leaves out is left out: behind a choice, a tangent of a derivative that may be infinite is not
multiplied with 0. For that the parts of a longer scalar that have such derivatives are values of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ilang.core.calculus.affine import axis_index
from ilang.core.check.shaped import verify
from ilang.core.dtype import FLOATS
from ilang.core.ir.assignments import reading, renumbered
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import (
    Apply,
    Constant,
    Operand,
    Scalar,
    arguments_of,
    operands_of,
    with_arguments,
)
from ilang.core.ir.shaped import Assignment, Input, InputDimension, Read, Shaped, View
from ilang.core.record import replace
from ilang.core.transform.accumulators import LOGIC, extreme, product, stuck
from ilang.core.transform.building import ProgramBuilder
from ilang.core.transform.derivatives import (
    CHOICES,
    Flow,
    compared,
    constant,
    converted,
    factors_of,
    flowing_back,
    summed,
    times,
    unless,
)
from ilang.core.transform.left_out import LASTING, leaves_out, levels, sums
from ilang.core.transform.simplified import simplified


def directional(shaped: Shaped, wrt: Sequence[int], again: bool = False) -> Shaped:
    """The program that takes the inputs, then a tangent for each of ``wrt``, and gives outputs, then their tangents.

    Args:
        shaped: the program.
        wrt: positions of inputs of floats.
        again: the tangents are differentiated, too.

    Raises:
        MeaningError: E0260 (an assignment that has no derivative).
    """
    derived = _Forward(shaped, wrt, again).run()
    verify(derived)
    return derived


class _Forward:
    def __init__(self, shaped: Shaped, wrt: Sequence[int], again: bool) -> None:
        self.shaped = shaped
        self.again = again
        self.new = ProgramBuilder(shaped.sizes)
        self.number: dict[ValueId, ValueId] = {}
        self.tangents: dict[ValueId, ValueId] = {}
        self.sparse: set[int] = set()
        """Values whose tangents are 0 in places, whatever they are."""
        self.levels = levels(shaped)
        self.singular: set[int] = set()
        """Values whose tangents have a derivative as a factor that may be infinite."""
        self.selected: set[int] = set()
        """Values of this kind whose tangents a choice leaves out somewhere."""
        for value in shaped.inputs:
            self._add(value)
        for position, place in enumerate(wrt):
            self._input(len(shaped.inputs) + position, self.number[shaped.inputs[place]])

    def _add(self, value: ValueId) -> ValueId:
        """The value itself; written schedules were of other neighbours."""
        node, tensor = renumbered(self.shaped.nodes[value], self.number), self.shaped.tensors[value]
        if isinstance(node, Assignment):
            node = replace(node, schedule=None)
        self.number[value] = self.new.add(node, tensor.name, tensor.dtype, tensor.dims)
        return self.number[value]

    def _input(self, position: int, value: ValueId) -> None:
        tensor, span = self.new.tensors[value], self.new.nodes[value].span
        for dim, size in enumerate(tensor.dims):
            known = self.new.sizes[size]
            places = (*known.places, InputDimension(position, dim, span))
            self.new.sizes[size] = replace(known, places=places)
        name = f"t{tensor.name}"
        self.tangents[value] = self.new.add(Input(position, span), name, tensor.dtype, tensor.dims)

    def run(self) -> Shaped:
        """The program with its tangents."""
        for value, node in self.shaped.numbered():
            if isinstance(node, Input):
                continue
            level = self.levels.get(value, 0)
            if isinstance(node, Assignment) and self.shaped.tensors[value].dtype in FLOATS:
                self._assigned(value, node, level)
                continue
            number = self._add(value)
            moved = self.new.nodes[number]
            match moved:
                case View():
                    self._view(number, moved)
                case Assignment() | Input():
                    pass
                case _:
                    assert_never(moved)
        return self._finished()

    def _assigned(self, value: ValueId, node: Assignment, level: int) -> None:
        """A value of floats, what it is cut into first."""
        whole = renumbered(node, self.number)
        assert isinstance(whole, Assignment)
        tensor, reads = self.shaped.tensors[value], list(whole.reads)
        scalar = self._cut(whole, whole.scalar, reads, bool(level), True)
        if scalar is not whole.scalar:
            whole = reading(whole, reads, scalar)
        whole = replace(whole, schedule=None)
        number = self.new.add(whole, tensor.name, tensor.dtype, tensor.dims)
        self.number[value] = number
        self._assignment(number, whole, level)

    def _cut(
        self, node: Assignment, scalar: Scalar, reads: list[Read], behind: bool, is_whole: bool
    ) -> Scalar:
        """A scalar with reads of its parts behind choices whose derivatives may be infinite; ``reads`` grows by these.

        Below are the parts of the scalar; what a tangent does not reach stays.
        """
        used = operands_of(scalar)
        if not any(reads[n].value in self.tangents for n in used) or scalar.dtype not in FLOATS:
            return scalar
        inside = behind or (isinstance(scalar, Apply) and scalar.primitive in CHOICES)
        parts = [self._cut(node, each, reads, inside, False) for each in arguments_of(scalar)]
        scalar = with_arguments(scalar, parts)
        if is_whole or not behind or not isinstance(scalar, Apply):
            return scalar
        if factors_of(scalar) != "singular":
            return scalar
        index = tuple(axis_index(axis) for axis in range(len(node.axes)))
        dtype = scalar.dtype or ""
        whole = replace(node, target=index, acc=None, base=None, schedule=None)
        part = reading(whole, reads, scalar)
        value = self.new.add(part, "part", dtype, node.sizes)
        self._assignment(value, part, LASTING)
        reads.append(Read(value, index))
        return Operand(len(reads) - 1, dtype)

    def _view(self, value: ValueId, node: View) -> None:
        if node.value in self.tangents:
            tensor = self.new.tensors[value]
            tangent = replace(node, value=self.tangents[node.value])
            self.tangents[value] = self.new.add(
                tangent, f"t{tensor.name}", tensor.dtype, tensor.dims
            )
            for some in (self.singular, self.selected, self.sparse):
                if node.value in some:
                    some.add(value)

    def _assignment(self, value: ValueId, node: Assignment, level: int) -> None:
        used = {node.reads[n].value for n in operands_of(node.scalar)}
        used |= set() if node.base is None else {node.base}
        if node.acc in LOGIC or not used & self.tangents.keys():
            return
        dtype = node.scalar.dtype or ""
        reads, moving = list(node.reads), list[Scalar]()
        for number, flows in flowing_back(
            node.scalar, Flow(Constant(1.0, dtype), again=self.again)
        )[0].items():
            read = node.reads[number]
            if read.value in self.tangents:
                reads.append(replace(read, value=self.tangents[read.value]))
                held = Operand(len(reads) - 1, self.new.tensors[read.value].dtype)
                self._follow(value, node, read, flows)
                moving += [self._moving(node, read, flow, held, dtype, level) for flow in flows]
        self._store(value, node, tuple(reads), summed(moving) if moving else Constant(0.0, dtype))
        if node.guards or (node.base is not None and node.acc in (">", "<")):
            self.sparse.add(value)

    def _follow(self, value: ValueId, node: Assignment, read: Read, flows: Sequence[Flow]) -> None:
        """Note whether the tangent of a value is sparse, singular or selected, as one of its terms makes it.

        The term is that of a read, whose tangent flows into the value along ``flows``.
        """
        if read.value in self.sparse or read.guards or any(flow.choices for flow in flows):
            self.sparse.add(value)
        is_singular = read.value in self.singular
        if is_singular or any(flow.factors == "singular" for flow in flows):
            self.singular.add(value)
        leaves = leaves_out(node, read, flows, self.new.tensors, self.new.sizes)
        if read.value in self.selected or (is_singular and (leaves or node.acc in (">", "<"))):
            self.selected.add(value)

    def _moving(
        self, node: Assignment, read: Read, flow: Flow, held: Operand, dtype: str, level: int
    ) -> Scalar:
        """The tangent of an element along one way, of the tangent ``held`` of what is read."""
        sparse = flow.factors and (read.value in self.sparse or read.guards)
        nothing = compared("eq", held, constant(0.0, held)) if sparse else None
        moved = replace(flow, part=converted(times(flow.part, held), dtype), nothing=nothing)
        moving = moved.selected()
        behind = level or flow.choices or read.value in self.selected
        if read.value not in self.singular or not behind or _is_summed(node, read, flow):
            return moving
        zero = constant(0.0, flow.part)
        return unless(compared("eq", flow.part, zero), moving, self.again)

    def _store(
        self, value: ValueId, node: Assignment, reads: tuple[Read, ...], moving: Scalar
    ) -> None:
        """The tangent of a value, whose elements move by ``moving``, through its accumulator."""
        tensor = self.new.tensors[value]
        name, text = f"t{tensor.name}", f"tangent of {node.text}"
        if node.acc in (None, "+"):
            base = None if node.base is None else self._moved(node.base)
            moved = reading(replace(node, base=base, operands=(), text=text), reads, moving)
            self.tangents[value] = self.new.add(moved, name, tensor.dtype, tensor.dims)
            return
        if node.base in self.tangents:
            raise stuck(node, "accumulates into values that depend on inputs")
        if node.acc == "*":
            moving, extra = product(self.new, node, moving, len(reads))
        elif node.acc in (">", "<"):
            moving, extra = extreme(self.new, value, node, moving, len(reads))
        else:
            raise stuck(node, f"accumulates with {node.acc}")
        whole = replace(node, acc=None, base=None, operands=(), text=text)
        moved = reading(whole, (*reads, *extra), moving)
        total = self.new.accumulated(moved, tensor.dtype, tensor.dims, name)
        self.tangents[value] = total

    def _moved(self, base: ValueId) -> ValueId:
        """The tangent of a base; zeros for one that nothing reaches."""
        if base in self.tangents:
            return self.tangents[base]
        tensor, span = self.new.tensors[base], self.new.nodes[base].span
        return self.new.filled(0.0, tensor.dtype, tensor.dims, f"t{tensor.name}", span)

    def _finished(self) -> Shaped:
        """The outputs, then their tangents, each memory of its own."""
        values = [self.number[value] for value in self.shaped.outputs]
        outputs = list(values)
        owners = {self.new.owner(value) for value in values}
        for value in values:
            tangent = self._given(value, owners)
            owners.add(self.new.owner(tangent))
            outputs.append(tangent)
        return simplified(self.new.program(self.shaped, f"{self.shaped.name}_tangent", outputs))

    def _given(self, value: ValueId, owners: set[ValueId]) -> ValueId:
        """The tangent of an output, in memory of its own."""
        tensor, span = self.new.tensors[value], self.new.nodes[value].span
        name, tangent = f"t{tensor.name}", self.tangents.get(value)
        dtype = tensor.dtype if tensor.dtype in FLOATS else "f32"
        if tangent is None:
            return self.new.filled(0.0, dtype, tensor.dims, name, span)
        return self.new.own(tangent, owners, dtype, name, span)


def _is_summed(node: Assignment, read: Read, flow: Flow) -> bool:
    """Whether a tangent is in a sum of products, or multiplied with nothing."""
    return isinstance(flow.part, Constant) or (flow.factors == "product" and sums(node, read))
