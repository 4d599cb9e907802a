"""Guards that hold in every iteration, left out.

Example, where ``in0`` has 1300 elements and ``i`` goes to 1298:
    in:   out[i] = (in0[i+2] if 0 <= i+2 < 1300 else 0)
    out:  out[i] = in0[i+2]

Extents that are known when a program is compiled prove most guards of stencils. What stays has loops split at its
boundaries.
"""

from __future__ import annotations

from ilang.core.calculus.affine import Within
from ilang.core.ir.shaped import Assignment, Node, Shaped
from ilang.core.record import replace
from ilang.core.transform.conditions import Bounds, conditions


def without_met_guards(shaped: Shaped) -> Shaped:
    """The program without guards that extents prove; itself where there are none."""
    nodes = tuple(_without_proved(shaped, node) for node in shaped.nodes)
    changed = any(one is not other for one, other in zip(nodes, shaped.nodes, strict=True))
    return replace(shaped, nodes=nodes) if changed else shaped


def _without_proved(shaped: Shaped, node: Node) -> Node:
    """A node with the guards that may fail."""
    if not isinstance(node, Assignment) or not (
        node.guards or any(read.guards for read in node.reads)
    ):
        return node
    bounds = Bounds(shaped.sizes, node)

    def unmet(guards: tuple[Within, ...]) -> tuple[Within, ...]:
        return tuple(g for g in guards if not all(map(bounds.follows, conditions((g,)))))

    guards = unmet(node.guards)
    reads = tuple(
        read if (left := unmet(read.guards)) == read.guards else replace(read, guards=left)
        for read in node.reads
    )
    same = guards == node.guards and reads == node.reads
    return node if same else replace(node, guards=guards, reads=reads)
