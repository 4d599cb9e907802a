"""A component that leaves ranks open, on operands of a graph whose rows are still open.

In:  ``einx.id("b n, b n -> b (1 + 1) n")`` on two values of a tensor function
Out: the same as assignments, for the ranks that all that has been said so far gives these values
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ilang.core.diagnostic import Label, ShapeError
from ilang.core.infer.inferred import Inferred, rows_so_far
from ilang.core.infer.ranks import input_ranks
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Terminal
from ilang.core.passes.einx_to_graph import einx_to_graph
from ilang.core.passes.solved_to_shaped import needed_values


def einx_on_operands(
    component: Graph, around: Graph, operands: Sequence[int], waiting: Collection[str] = ()
) -> Graph:
    """A component without nodes that leave ranks open.

    Args:
        component: in which there are some.
        around: the graph that it is to be a part of, as far as it is known.
        operands: the values there that its inputs are.
        waiting: what inputs of ``around`` are called whose shape is still to be given.

    Raises:
        ShapeError: E0520 (a rank rests on the shape of an input that waits for it), E0501 to E0520, E054.
    """
    shapes = rows_so_far(around)
    written = input_ranks(component, None)
    ranks: list[int | None] = []
    for value, rank in zip(operands, written, strict=True):
        rows = shapes[value]
        if all(row.variable is None for row in rows):
            ranks.append(sum(row.count() for row in rows))
            continue
        if rank is None:
            _refuse_waiting(component, around, value, waiting)
        ranks.append(rank)
    if None in ranks:  # nothing that is to come gives them axes
        inferred = Inferred(around)
        closed = (len(inferred.axes(value)) for value in operands)
        ranks = [each if rank is None else rank for rank, each in zip(ranks, closed, strict=True)]
    return einx_to_graph(component, ranks)


def _refuse_waiting(component: Graph, around: Graph, value: int, waiting: Collection[str]) -> None:
    """The rank of a value is not guessed where it is computed from an input whose shape will be given."""
    for number in sorted(needed_values(around, (value,))):
        node = around.nodes[number]
        if isinstance(node, Terminal) and node.kind == "fill" and node.name in waiting:
            message = f"nothing determines the axes of {node.name}, and ranks are never guessed"
            help_line = f"give the shape of {node.name}, or write its axes: `{node.name}[n,m]`"
            span = component.nodes[component.outputs[0]].span
            labels = [Label(span, "depends on them"), Label(node.span, "open here")]
            error = ShapeError("E0520", message, node.span, help_line, labels)
            error.guessed = True
            raise error
