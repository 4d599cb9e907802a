"""Values from other ranks: sums that a run waits for, and gradients that nothing has summed.

Example, of ``p.grad =+ p.grad.merge`` with two ranks or more, where n3 stands for the gradient of p:
    n4, an input that has the sum of n3 over all ranks, is the gradient of p from now on
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ilang.core.build.emission import Emission
from ilang.core.build.settings import Setting
from ilang.core.build.tensor import SCALAR
from ilang.core.build.values import NumberTensor, Stored
from ilang.core.diagnostic import MeaningError
from ilang.core.ir import functions as ast
from ilang.core.ir.graph import operands
from ilang.core.source import Span
from ilang.core.walks import reached

RANKS = "ranks"
"""The name in texts of the number of processes that run a program."""


class Merges:
    """The sums that one run waits for, each once, and what `ranks` means in it."""

    def __init__(self, emission: Emission, ranks: int | None, span: Span) -> None:
        """None yet.

        Args:
            emission: the nodes of the run.
            ranks: how many processes there are; None where a program is for any number of them.
            span: the definition that is run.
        """
        self.emission = emission
        self.known: dict[tuple[int, bool], Stored] = {}
        self._late: MeaningError | None = None
        self._ranks = ranks
        if ranks is None:
            scalar = Stored("setting", RANKS, SCALAR, 1, span)
            self.count = Setting(1, span, tensor=scalar, names=(RANKS,))
        else:
            self.count = Setting(ranks, span, tensor=NumberTensor(ranks, span))

    def sum_of(self, value: int, name: str, whole: bool, span: Span) -> Stored:
        """The tensor that has the sum of a node over the other ranks; over all of them, this one too, if ``whole``."""
        cell = self.known.get((value, whole))
        if cell is None:
            cell = Stored("merged", f"{name}.merge", (None, None, None), None, span)
            self.emission.alike(self.emission.read(cell), value, cell.name, span)
            self.known[value, whole] = cell
        return cell

    def all(self) -> Mapping[tuple[int, bool], Stored]:
        """All inputs that have sums, each by the node that is summed, and whether over all ranks or the others.

        Raises:
            MeaningError: E0285, of a program for any number of ranks; one that merges nothing is for a single one.
        """
        if self.known and self._late is not None:
            raise self._late
        return self.known

    def check(self, name: str, value: int, gradients: Collection[int], span: Span) -> None:
        """Refuse that a parameter, which all ranks have, goes by a gradient that this rank has alone.

        Args:
            name: what the text calls the parameter.
            value: the node of the values that it gets.
            gradients: the nodes that stand for gradients.
            span: the assignment.

        Raises:
            MeaningError: E0285.
        """
        if not self._is_alone(value, gradients):
            return
        message = (
            f"`{name}` would differ from rank to rank: its gradient is that of a share of the batch"
        )
        help_line = f"sum it before: `{name}.grad =+ {name}.grad.merge`, and for a mean loss `{name}.grad =/ ranks`"
        self._refuse(MeaningError("E0285", message, span, help_line))

    def check_kept(self, name: str, value: int, data: Collection[int], span: Span) -> None:
        """Refuse that what a tensor function keeps for the next run comes from the share of data of this rank.

        Args:
            name: what the text calls the tensor.
            value: the node of the values that it gets.
            data: the nodes of inputs.
            span: where the text says what it keeps.

        Raises:
            MeaningError: E0285.
        """
        if self._is_alone(value, data):
            message = f"`{name}` would differ from rank to rank: it comes from a share of the batch"
            self._refuse(MeaningError("E0285", message, span, "train it by one process"))

    def _refuse(self, error: MeaningError) -> None:
        """Refuse what several ranks cannot do; a program for any number of them may be for a single one."""
        if self._ranks is not None:
            raise error
        self._late = self._late or error

    def _is_alone(self, value: int, gradients: Collection[int]) -> bool:
        """Whether a node is computed from a gradient of this rank that was not summed."""
        values = {self.emission.first[cell]: value for (value, _), cell in self.known.items()}
        nodes = self.emission.nodes
        every = reached([value], lambda number: operands(nodes[number]))
        summed = {values[node] for node in every if node in values}
        alone = reached({value} - summed, lambda number: {*operands(nodes[number])} - summed)
        return not alone.isdisjoint(gradients)


def is_sum_over_ranks(each: ast.Assigned) -> bool:
    """Whether an assignment adds to a tensor what the other ranks have of it: ``p.grad =+ p.grad.merge``."""
    right = each.right
    if each.accumulator != "+" or each.fresh or not isinstance(right, ast.Single):
        return False
    if right.operator is not None or (each.logic is not None and each.logic.kind != "."):
        return False
    (comes,) = right.operands
    if not isinstance(comes, ast.Access) or "merge" not in comes.part:
        return False
    part = "grad" if comes.part == "grad.merge" else ""
    return _place(each.target) == (comes.tensor.name, part)


def _place(target: ast.Reference | ast.Access | ast.Declared) -> tuple[str, str]:
    """The name of what is assigned, and the part of it: its gradient, or its value."""
    if isinstance(target, ast.Access):
        return target.tensor.name, "grad" if target.part == "grad" else ""
    return target.name, ""
