"""A component with operations in einx notation, on operands of a graph whose rows are still open.

In:  ``einx.id("b n, b n -> b (1 + 1) n")`` on two values of a tensor function
Out: the same as assignments, for the ranks that all that has been said so far gives these values
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.infer.arrays import Arrays
from ilang.core.infer.inferred import Inferred
from ilang.core.infer.operations import Collecting
from ilang.core.infer.rows_so_far import rows_so_far
from ilang.core.ir.graph import Graph
from ilang.core.passes.einx_to_graph import einx_to_graph


def einx_on_operands(component: Graph, around: Graph, operands: Sequence[int]) -> Graph:
    """A component without operations in einx notation.

    Args:
        component: in which there are some.
        around: the graph that it is to be a part of, as far as it is known.
        operands: the values there that its inputs are.
    """
    return einx_to_graph(component, _ranks(around, operands))


def _ranks(graph: Graph, values: Sequence[int]) -> list[int]:
    """The ranks of values; rows that are open still are closed."""
    shapes = rows_so_far(Collecting(graph, Arrays(graph, None)))
    known = [shapes[value] for value in values]
    if all(row.variable is None for shape in known for row in shape):
        return [sum(len(row.leading) + len(row.trailing) for row in each) for each in known]
    inferred = Inferred(graph)
    return [len(inferred.axes(value)) for value in values]
