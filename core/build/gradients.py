"""Gradients of a run: the tensors that keep them, and the values that `backprop` goes back through.

Example, of ``y = "w" * x; backprop(y)`` and then ``w.grad``, where n2 = compose(w, x):
    n3 stands for the gradient of n2 with respect to w
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ilang.core.build.emission import Emission
from ilang.core.build.flow import feeding, is_source, read_back, read_back_by
from ilang.core.build.tensor import Rows
from ilang.core.build.values import Computed, Custom, Output, Stored, Tensor, name_of
from ilang.core.diagnostic import Label, MeaningError
from ilang.core.ir import functions as ast
from ilang.core.ir.graph import operands
from ilang.core.ir.scalar import Operand
from ilang.core.source import Span

UNKNOWN: Rows = (None, None, None)


class Gradients:
    """The gradients of one run, which goes back once."""

    def __init__(self, emission: Emission, assigned: Mapping[Stored, Span]) -> None:
        """None yet; ``assigned`` are the tensors that the run has given other values."""
        self.emission = emission
        self.assigned = assigned
        self.cells: dict[Tensor, Stored] = {}
        self.value: dict[Stored, Tensor] = {}
        """The tensor that each is the gradient of."""
        self.back: tuple[int, list[tuple[int, int]], Span] | None = None
        """The node where the run goes back, those that stand for gradients, each with what it is of, the statement."""
        self.reached: set[Tensor] = set()
        self.used: dict[Tensor, int] = {}

    def of(self, value: Tensor, span: Span) -> Stored:
        """The tensor that keeps the gradient of another.

        Raises:
            MeaningError: E0280 (it has none).
        """
        if value in self.cells:
            return self.cells[value]
        if not is_differentiable(value):
            raise MeaningError(
                "E0280",
                f"`{_written(value, span)}` has no gradient: no parameter feeds it",
                span,
                "`track(x)` is x with a gradient",
            )
        owner = value.owner if isinstance(value, Stored) else None
        cell = Stored("gradient", f"{name_of(value)}.grad", UNKNOWN, None, span, owner=owner)
        self.cells[value] = cell
        self.value[cell] = value
        return cell

    def stands(self, cell: Stored) -> None:
        """A gradient is read: it stands for what ``backprop`` computes.

        Raises:
            MeaningError: E0281 (nothing has computed it).
        """
        value = self.value[cell]
        if self.back is None or value not in self.reached:
            raise MeaningError(
                "E0281",
                f"nothing has computed `{_written(value, cell.span)}.grad` here",
                cell.span,
                "`backprop(t)` computes the gradients of what feeds t",
            )
        number = self.emission.read(cell)
        of = self.used.get(value, self.emission.latest[value])
        self.back[1].append((number, of))
        self.emission.alike(number, of, cell.name, cell.span)

    def refuse(self, value: Tensor, each: ast.TensorStatement) -> None:
        """Refuse a statement that goes back once more, or where nothing has a gradient.

        Raises:
            MeaningError: E0280, E0283.
        """
        if self.back is not None:
            labels = [Label(each.span, "again here"), Label(self.back[2], "first here")]
            message = "a run goes back once"
            raise MeaningError("E0283", message, each.span, "add what both are of", labels)
        if not is_differentiable(value):
            message = f"no parameter feeds `{each.tensor.name}`: nothing has a gradient of it"
            raise MeaningError("E0280", message, each.span, "`track(x)` is x with a gradient")

    def backprop(self, value: Tensor, of: int, each: ast.TensorStatement) -> None:
        """From here on gradients are those of the sum of all elements of a value, whose node is ``of``.

        Raises:
            MeaningError: E0261 (through what has none), E0284 (through what has other values by now).
        """
        flowing = feeding([value])
        self.reached = set(flowing)
        for one in flowing:
            if isinstance(one, Custom) and one.refused and is_differentiable(one.value):
                labels = [Label(one.span, "used here"), Label(each.span, "goes back through it")]
                message = f"{one.name} has no gradient, and one is asked for"
                help_line = "write it after the operation, `grad { g1 =+ g * ... }`, or use `stop_gradient(...)`"
                raise MeaningError("E0261", message, one.span, help_line, labels)
        self._refuse_changed(value, each)
        for tensor, cell in self.cells.items():
            if tensor in self.reached:
                self.emission.latest.pop(cell, None)
        self.back = (of, [], each.span)
        self.emission.backward.append(self.back)

    def _refuse_changed(self, value: Tensor, each: ast.TensorStatement) -> None:
        """Refuse that what the way back reads has other values by now."""
        for tensor in feeding([value]):
            if isinstance(tensor, Computed):
                for operand, number in zip(tensor.operands, self._operands(tensor), strict=True):
                    if isinstance(operand, Stored):
                        self.used.setdefault(operand, number)
            for cell, read in self._read_back(tensor):
                if not isinstance(cell, Stored) or cell not in self.assigned:
                    continue
                if self.emission.latest[cell] not in read:
                    labels = [
                        Label(each.span, "goes back through what it was"),
                        Label(self.assigned[cell], "it has other values from here on"),
                    ]
                    message = f"`{name_of(cell)}` is assigned between its use and `backprop`"
                    help_line = "assign after `backprop`, or copy it before"
                    raise MeaningError("E0284", message, each.span, help_line, labels)

    def _read_back(self, tensor: Tensor) -> Iterator[tuple[Tensor, Sequence[int]]]:
        """The tensors whose values the way back through one reads, each with the nodes that have these values."""
        match tensor:
            case Computed():
                read = read_back(tensor.scalar, tensor.acc, tensor.operands, is_differentiable)
                yield from ((each, self._operands(tensor)) for each in read)
            case Output():
                given, added, _ = self.emission.calls[tensor.of]
                flows = [is_differentiable(each) for each in tensor.of.operands]
                for n in read_back_by(self.emission.nodes, added, given, flows):
                    yield tensor.of.operands[n], given
            case Custom():
                forward = dict.fromkeys(feeding([tensor.value], every=True))
                rules = feeding([back for _, back in tensor.gradients], True, forward)
                copies = {slot for slot, _ in tensor.gradients if _is_copy(slot)}
                for rule in rules:
                    if isinstance(rule, Computed) and (rule in copies or rule not in forward):
                        yield from ((each, self._operands(rule)) for each in rule.operands)
            case _:
                pass

    def _operands(self, tensor: Tensor) -> tuple[int, ...]:
        """The nodes that the node of a computed tensor reads."""
        return operands(self.emission.nodes[self.emission.latest[tensor]])

    def still(self, number: int, comes: Tensor, span: Span) -> int:
        """Values that a declared tensor keeps: it has no gradient, so nothing flows back through them."""
        if not is_differentiable(comes):
            return number
        values = Computed((), Operand(0), "+", "pointwise", name_of(comes), None, span)
        self.emission.latest[values] = number
        return self.emission.read(Custom(values, name_of(comes), span))


def _written(value: Tensor, span: Span) -> str:
    """The name of a tensor where its gradient is read: ``a`` of ``a.grad``."""
    return name_of(value) if isinstance(value, Stored) else span.text().removesuffix(".grad")


def is_differentiable(value: Tensor) -> bool:
    """Whether something can flow back to a value: a parameter feeds it, or it is tracked."""
    return any(is_source(each) for each in feeding([value]))


def _is_copy(value: Tensor) -> bool:
    """Whether a value is another one, element by element, such as a slot of an operation that repeats it."""
    return isinstance(value, Computed) and value.scalar == Operand(0)
