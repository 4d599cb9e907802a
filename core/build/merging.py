"""What comes from other ranks: sums that a run waits for, and gradients that nothing has summed.

Example, of ``p.grad =+ p.grad.merge`` with two ranks or more, where n3 stands for the gradient of p:
    n4, an input that has the sum of n3 over all ranks, is the gradient of p from now on
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ilang.core.build.emission import Emission
from ilang.core.build.values import Stored
from ilang.core.ir import functions as ast
from ilang.core.ir.graph import Node, operands
from ilang.core.record import record
from ilang.core.source import Span


@record
class Merged:
    """An input that has the sum of a node over the other ranks, or over all of them where it is ``whole``."""

    cell: Stored
    value: int
    whole: bool


class Merges:
    """The sums that one run waits for, each once."""

    def __init__(self, emission: Emission) -> None:
        """None yet."""
        self.emission = emission
        self.known: dict[tuple[int, bool], Merged] = {}

    def sum_of(self, value: int, name: str, whole: bool, span: Span) -> Stored:
        """The tensor that has the sum of a node over the other ranks; over all of them, this one too, if ``whole``."""
        merged = self.known.get((value, whole))
        if merged is None:
            cell = Stored("merged", f"{name}.merge", (None, None, None), None, None, None, span)
            self.emission.alike(self.emission.read(cell), value, cell.name, span)
            merged = self.known[value, whole] = Merged(cell, value, whole)
        return merged.cell

    def is_alone(self, value: int, gradients: Collection[int]) -> bool:
        """Whether a node is computed from a gradient of this rank that was not summed.

        Args:
            value: the node.
            gradients: the nodes that stand for gradients.
        """
        by_cell = {self.emission.first[each.cell]: each for each in self.known.values()}
        reached = _below(self.emission.nodes, value, ())
        summed = {by_cell[node].value for node in reached if node in by_cell}
        return not _below(self.emission.nodes, value, summed).isdisjoint(gradients)


def _below(nodes: Sequence[Node], value: int, without: Collection[int]) -> set[int]:
    """The nodes that a node is computed from, itself included; some are not looked at."""
    reached: set[int] = set()
    todo = [value]
    while todo:
        number = todo.pop()
        if number not in reached and number not in without:
            reached.add(number)
            todo += operands(nodes[number])
    return reached


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
