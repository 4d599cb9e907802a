"""Reverse mode: the program that gives gradients, from the typed graph of a program.

Example, of a matrix multiply with the cotangent g of its result:
    in:   n2[i,j] = sum n0[i,k] * n1[k,j] over k
    out:  d0[i,k] = sum g[i,j] * n1[k,j] over j
          d1[k,j] = sum g[i,j] * n0[i,k] over i

One rule for the accumulating assignment: an operand and the target change places. Axes, guards and indices stay, so
windows, gathers, scatters and concatenations need no rules of their own: where the index of an operand does not walk
whole dimensions, its gradient accumulates into zeros. An accumulator adds a factor beside the cotangent to the rule:

    sum            nothing
    product        the product of what stands before and after: no division, so zeros are no special case
    max, min       an equal share for every winner: (f == result) / (how many there are); nothing where it only shifts
                   what cancels (``shifts.py``)
    and, or, xor   nothing flows back

What takes long to compute, an exponential or a power, is read where the way forward stored it, and not computed again.
A cotangent that is zero everywhere is never computed: only inputs that nothing flows back to are filled with zeros.

Where a guard, a choice, or an index that leaves elements out makes a cotangent 0, it stays 0: what flows back further
is not multiplied with derivatives, which may be infinite there. Guards of a cotangent guard what is computed of it;
where no guard says so, it is compared with 0. Products that are summed, as those of matrices, take it as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import assert_never

from ilang.core.calculus.affine import Within, axis_index
from ilang.core.check.shaped import verify
from ilang.core.dtype import FLOATS
from ilang.core.ir.assignments import reading, renumbered
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Constant, Operand, Scalar, operands_of
from ilang.core.ir.scalar import renumbered as with_operands
from ilang.core.ir.shaped import Assignment, Input, InputDimension, Read, Shaped, View
from ilang.core.record import replace
from ilang.core.transform.accumulators import LOGIC, extreme, product, stuck
from ilang.core.transform.building import ProgramBuilder
from ilang.core.transform.derivatives import (
    Flow,
    compared,
    constant,
    converted,
    flowing_back,
    gathered,
    reads_value,
    summed,
    unless,
)
from ilang.core.transform.left_out import leaves_out, passed_on, sums
from ilang.core.transform.shifts import cancelled
from ilang.core.transform.simplified import simplified


def gradient(
    shaped: Shaped,
    wrt: Sequence[int],
    values: bool = False,
    dtypes: Sequence[str | None] = (),
    ones: bool = False,
    again: bool = False,
) -> Shaped:
    """The program that takes the inputs, then a cotangent for each output, and gives a gradient for each of ``wrt``.

    Args:
        shaped: the program.
        wrt: positions of inputs.
        values: give the outputs of the program too, before the gradients.
        dtypes: of the cotangents of outputs that are whole numbers or booleans: from those nothing flows back.
        ones: cotangents are ones, and no inputs: the gradients are those of the sum of all elements of the outputs.
        again: the gradients are differentiated, too.

    Raises:
        MeaningError: E0260 (an assignment through which nothing can flow back).
    """
    run = Reverse(shaped, wrt, values, dtypes, ones)
    run.again = again
    derived = run.run()
    verify(derived)
    return derived


class Reverse:
    """One run over a program, from its last value to its first; its gradients may be differentiated ``again``."""

    again = False

    def __init__(
        self,
        shaped: Shaped,
        wrt: Sequence[int],
        values: bool,
        dtypes: Sequence[str | None],
        ones: bool,
    ) -> None:
        self.shaped = shaped
        self.ones = ones
        self.dtypes = dtypes
        self.wrt = tuple(wrt)
        self.values = values
        self.new = ProgramBuilder(shaped.sizes)
        self.flowing: defaultdict[ValueId, list[ValueId]] = defaultdict(list)
        self.levels: dict[int, int] = {}
        """Cotangents that are 0 in places because of guards, choices and indices (``left_out.py``)."""
        self.number: dict[ValueId, ValueId] = {}
        self._forward()
        ends = {self.number[value] for value in shaped.outputs}
        self.active = self._reached({self.number[shaped.inputs[n]] for n in wrt}, ends)
        """The values of the new program that floats of the wanted inputs reach."""

    # -- the program itself, and the cotangents as further inputs ----------------------------------------------------

    def _forward(self) -> None:
        """Inputs, cotangents, then everything else, without written schedules: those were of other neighbours."""
        shaped, inputs = self.shaped, self.shaped.inputs
        for value in inputs:
            self._add(value)
        self.cotangents = [self._cotangent(n, value) for n, value in enumerate(shaped.outputs)]
        for value, node in shaped.numbered():
            if not isinstance(node, Input):
                self._add(value)

    def _add(self, value: ValueId) -> None:
        node, tensor = renumbered(self.shaped.nodes[value], self.number), self.shaped.tensors[value]
        if isinstance(node, Assignment):
            node = replace(node, schedule=None)
        self.number[value] = self.new.add(node, tensor.name, tensor.dtype, tensor.dims)

    def _cotangent(self, position: int, value: ValueId) -> ValueId:
        """The input that is what flows back to an output; its dimensions are those of the output."""
        tensor, span = self.shaped.tensors[value], self.shaped.nodes[value].span
        if self.ones:
            dtype = tensor.dtype if tensor.dtype in FLOATS else "f32"
            return self.new.filled(1.0, dtype, tensor.dims, f"d{tensor.name}", span)
        number = len(self.shaped.inputs) + position
        for dim, size in enumerate(tensor.dims):
            known = self.new.sizes[size]
            place = InputDimension(number, dim, span)
            self.new.sizes[size] = replace(known, places=(*known.places, place))
        given = self.dtypes[position] if position < len(self.dtypes) else None
        dtype = tensor.dtype if tensor.dtype in FLOATS else given or "f32"
        return self.new.add(Input(number, span), f"d{tensor.name}", dtype, tensor.dims)

    def _reached(self, reached: set[int], ends: Collection[int]) -> set[int]:
        """The values of the new program that are computed from floats of some, themselves included.

        Maxima that cancel on the way to the ``ends`` are left out.
        """
        constant = cancelled(self.new.nodes, ends, self._is_opaque)
        for value, node in enumerate(self.new.nodes):
            if self.new.tensors[value].dtype not in FLOATS or value in constant:
                reached.discard(value)
                continue
            match node:
                case Input():
                    pass
                case View():
                    reached |= {value} if node.value in reached else set()
                case Assignment():
                    used = {node.reads[n].value for n in operands_of(node.scalar)}
                    used |= set() if node.base is None else {node.base}
                    reached |= {value} if used & reached else set()
                case _:
                    assert_never(node)
        return reached

    # -- the way back ------------------------------------------------------------------------------------------------

    def run(self) -> Shaped:
        """The gradient program."""
        for cotangent, value in zip(self.cotangents, self.shaped.outputs, strict=True):
            if self.number[value] in self.active:
                self.flowing[self.number[value]].append(cotangent)
        self.sweep()
        return self._finished()

    def sweep(self) -> None:
        """Pass on what flows back to each value, from the last to the first."""
        for value in map(ValueId, reversed(range(len(self.new.nodes)))):
            node = self.new.nodes[value]
            if value not in self.flowing or isinstance(node, Input):
                continue
            total = self._total(value)
            if self._passed_on(value, total):
                continue
            match node:
                case View():
                    self._through_view(value, node, total)
                case Assignment():
                    self._through(value, node, total)
                case _:
                    assert_never(node)

    def _passed_on(self, value: ValueId, total: ValueId) -> bool:
        """Whether a value has a gradient of its own, which then has been passed on."""
        return False

    def _is_opaque(self, value: ValueId) -> bool:
        return False

    def _total(self, value: ValueId) -> ValueId:
        parts = self.flowing[value]
        if len(parts) == 1:
            return parts[0]
        tensor = self.new.tensors[value]
        scalar = summed([Operand(number, tensor.dtype) for number in range(len(parts))])
        text, span = f"what flows back to {tensor.name}", self.new.nodes[value].span
        total = self.new.pointwise(parts, scalar, tensor.dims, f"d{tensor.name}", text, span)
        self.levels[total] = min(self.levels.get(part, 0) for part in parts)
        return total

    def _through_view(self, value: ValueId, node: View, total: ValueId) -> None:
        source = self.new.tensors[node.value]
        if node.value not in self.active:
            return
        back = replace(node, value=total, source=node.target, target=node.source)
        part = self.new.add(back, f"d{source.name}", source.dtype, source.dims)
        self.levels[part] = self.levels.get(total, 0)
        self.flowing[node.value].append(part)

    def _through(self, value: ValueId, node: Assignment, total: ValueId) -> None:
        """An assignment: to each value that it reads, and to its base."""
        if node.base is not None and node.base in self.active:
            self._to_base(node, total)
        flow = self._flow(value, node, total)
        if flow is None:
            return
        back, given, extra = flow
        reads = [*node.reads, *extra]
        known: Scalar | None = None
        if node.acc is None and reads_value(node.scalar):
            known = Operand(len(reads), self.new.tensors[value].dtype)
            reads.append(Read(value, node.target))
        level = self.levels.get(total, 0)
        guards = self._guards(node, total)
        nothing = compared("eq", given, constant(0.0, given)) if _is_sparse(node, level) else None
        for read, flows in self._met(
            node, Flow(back, nothing=nothing, again=self.again), known, guards, reads
        ).items():
            part = self._part(node, read, flows, guards, reads)
            leaves = leaves_out(node, read, flows, self.new.tensors, self.new.sizes)
            self.levels[part] = passed_on(level, node, read, leaves, bool(guards))
            self.flowing[read.value].append(part)

    def _met(
        self,
        node: Assignment,
        back: Flow,
        known: Scalar | None,
        guards: tuple[Within, ...],
        reads: list[Read],
    ) -> dict[Read, list[Flow]]:
        """The cotangents of each read; ``reads`` grows by what flows back to parts at which the scalar is cut."""
        met: dict[Read, list[Flow]] = {}
        alike = [n for n, r in enumerate(node.reads) if not any(p.axes() for p in r.index)]
        sparse = back.nothing is not None
        todo = [(node.scalar, back, known)]
        while todo:
            scalar, flow, value = todo.pop()
            reached, parts = flowing_back(scalar, flow, value, alike, sparse)
            for number, flows in reached.items():
                read = node.reads[number]
                if read.value in self.active:
                    met.setdefault(read, []).extend(flows)
            for part, reaching in parts:
                if any(node.reads[n].value in self.active for n in operands_of(part)):
                    cut = Operand(len(reads), part.dtype)
                    reads.append(self._cut(node, reaching, guards, reads))
                    nothing = compared("eq", cut, constant(0.0, cut))
                    todo.append((part, Flow(cut, nothing=nothing, again=self.again), None))
                    sparse = True
        return met

    def _cut(
        self, node: Assignment, flow: Flow, guards: tuple[Within, ...], reads: Sequence[Read]
    ) -> Read:
        """The cotangent of a part of a scalar, a value of its own."""
        index = tuple(axis_index(axis) for axis in range(len(node.axes)))
        dtype = flow.part.dtype or ""
        whole = replace(
            node,
            target=index,
            acc=None,
            base=None,
            guards=(*node.guards, *guards),
            text=f"what flows back in {node.text}",
        )
        moved = reading(whole, reads, flow.selected())
        return Read(self.new.accumulated(moved, dtype, node.sizes, "part"), index)

    def _guards(self, node: Assignment, total: ValueId) -> tuple[Within, ...]:
        """The conditions of a cotangent, over the axes of the assignment that it flows back to; 0 where they fail."""
        source = self.new.nodes[total]
        if not isinstance(source, Assignment) or source.base is not None:
            return ()
        moved = {
            part.axis(): index.axis()
            for part, index in zip(source.target, node.target, strict=True)
            if part.axis() is not None
        }
        names = {old: new for old, new in moved.items() if old is not None and new is not None}
        known = [each for each in source.guards if each.index.axes() <= names.keys()]
        if any(source.sizes[old] != node.sizes[new] for old, new in names.items()):
            return ()
        return tuple(replace(each, index=each.index.renamed(names)) for each in known)

    def _part(
        self,
        node: Assignment,
        read: Read,
        flows: Sequence[Flow],
        guards: tuple[Within, ...],
        reads: Sequence[Read],
    ) -> ValueId:
        """The cotangent that flows back through one read: its target is where the read was."""
        tensor = self.new.tensors[read.value]
        summed_up = sums(node, read)
        flows = [
            flow
            if flow.factors and not (summed_up and flow.factors == "product")
            else replace(flow, nothing=None)
            for flow in flows
        ]
        nothing, *others = dict.fromkeys(flow.nothing for flow in flows)
        if others:
            part = summed([flow.selected() for flow in flows])
        else:
            part = gathered([replace(flow, nothing=None) for flow in flows])
            if nothing is not None:
                part = unless(nothing, part, self.again)
        used = operands_of(part)
        place = {number: n for n, number in enumerate(used)}
        moved = replace(
            node,
            target=read.index,
            reads=tuple(reads[number] for number in used),
            scalar=with_operands(part, place),
            acc=None,
            base=None,
            operands=(),
            guards=tuple(dict.fromkeys((*node.guards, *read.guards, *guards))),
            text=f"d{tensor.name} of {node.text}",
        )
        cotangent = place.get(len(node.reads))
        return self.new.accumulated(moved, tensor.dtype, tensor.dims, f"d{tensor.name}", cotangent)

    def _to_base(self, node: Assignment, total: ValueId) -> None:
        """The cotangent of the base of an assignment: what the assignment leaves of the base flows back to it."""
        assert node.base is not None
        tensor = self.new.tensors[node.base]
        if node.acc not in (None, "+"):
            raise stuck(node, "accumulates into values that depend on inputs")
        if node.acc == "+":
            self.flowing[node.base].append(total)
            return
        name = f"d{tensor.name}"
        text = f"d{tensor.name} of {node.text}"
        kept = self.new.copied(total, tensor.dtype, name, text, node.span)
        cleared = replace(
            node, reads=(), scalar=Constant(0.0, tensor.dtype), base=kept, operands=(), text=text
        )
        self.flowing[node.base].append(self.new.add(cleared, name, tensor.dtype, tensor.dims))

    # -- accumulators ------------------------------------------------------------------------------------------------

    def _flow(
        self, value: ValueId, node: Assignment, total: ValueId
    ) -> tuple[Scalar, Scalar, tuple[Read, ...]] | None:
        """The cotangents of the scalar of an assignment and of its element, and the reads that they have more.

        None where nothing flows back.
        """
        if node.acc in LOGIC:
            return None
        first = len(node.reads)
        back = converted(Operand(first, self.new.tensors[total].dtype), node.scalar.dtype or "")
        given = Read(total, node.target)
        extra: tuple[Read, ...] = ()
        cotangent = back
        match node.acc:
            case None if node.overwrites():
                raise stuck(node, "stores several values in one place, of which the last stays")
            case None | "+":
                pass
            case ">" | "<":
                back, extra = extreme(self.new, value, node, back, first + 1)
            case "*":
                back, extra = product(self.new, node, back, first + 1)
            case _:
                raise stuck(node, f"accumulates with {node.acc}")
        return back, cotangent, (given, *extra)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _finished(self) -> Shaped:
        """The outputs, each memory of its own, and what they need."""
        outputs: list[ValueId] = []
        if self.values:
            outputs += [self.number[value] for value in self.shaped.outputs]
        for position in self.wrt:
            outputs.append(self._gradient(position, outputs))
        return simplified(self.new.program(self.shaped, f"{self.shaped.name}_gradient", outputs))

    def _gradient(self, position: int, outputs: Sequence[ValueId]) -> ValueId:
        """The gradient of an input, in memory of its own."""
        value = self.number[self.shaped.inputs[position]]
        tensor, span = self.new.tensors[value], self.new.nodes[value].span
        name = f"d{tensor.name}"
        dtype = tensor.dtype if tensor.dtype in FLOATS else "f32"
        if value not in self.flowing:
            return self.new.filled(0.0, dtype, tensor.dims, name, span)
        total = self._total(value)
        owners = {self.new.owner(output) for output in outputs}
        return self.new.own(total, owners, dtype, name, span)


def _is_sparse(node: Assignment, level: int) -> bool:
    """Whether what flows back to the scalar of an assignment is 0 in places."""
    return bool(level) or node.acc in (">", "<")
