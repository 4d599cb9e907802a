"""A graph without element types, for whoever asks for shapes alone: those do not depend on types.

Example:
    in:   n1 = i64(n0)      n2 = n1[i] + n0[i]
    out:  n1 = n0           n2 = n1[i] + n0[i]

    in:   n2[i] = n1[v], v = n0[i]
    out:  n2[i] (+)= n1[v]

What is looked up would have to be an integer: without the look-up its axis is one that loops count, and no result
changes its extents.
"""

from __future__ import annotations

from ilang.core.ir.graph import Assignment, Elementwise, Graph, Node
from ilang.core.ir.scalar import Operand
from ilang.core.record import replace

WIDEST = "f64"
"""The type that takes every constant and has every operation: with it on all inputs no type is refused."""


def untyped(graph: Graph) -> Graph:
    """The graph with values of the same extents, none converted, none looked up, and no type written."""
    return replace(
        graph,
        nodes=tuple(map(_node, graph.nodes)),
        annotations=tuple(replace(annotation, dtype=None) for annotation in graph.annotations),
    )


def _node(node: Node) -> Node:
    match node:
        case Elementwise():
            return replace(node, scalar=Operand(0))
        case Assignment() if node.lookups:
            return replace(node, lookups=(), acc=node.acc or "+")
        case _:
            return node
