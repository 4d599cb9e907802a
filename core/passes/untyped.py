"""A graph without element types, for whoever asks for shapes alone: those do not depend on types.

Example:
    in:   n1 = i64(n0)      n2 = n1[i] + n0[i]
    out:  n1 = n0           n2 = n1[i] + n0[i]
"""

from __future__ import annotations

from ilang.core.ir.graph import Elementwise, Graph
from ilang.core.ir.scalar import Operand
from ilang.core.record import replace

WIDEST = "f64"
"""The type that takes every constant and has every operation: with it on all inputs no type is refused."""


def untyped(graph: Graph) -> Graph:
    """The graph with the same values, none converted, and no type written."""
    nodes = tuple(
        replace(node, scalar=Operand(0)) if isinstance(node, Elementwise) else node
        for node in graph.nodes
    )
    return replace(
        graph,
        nodes=nodes,
        annotations=tuple(replace(annotation, dtype=None) for annotation in graph.annotations),
    )
