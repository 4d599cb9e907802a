"""Copy propagation: who reads a copy reads what it is a copy of.

Example:
    in:   n2[i,j,k] = n0[i,j];  n3[i,k] = sum n2[i,j,k] * n1[k,j] over j
    out:  n3[i,k] = sum n0[i,j] * n1[k,j] over j
"""

from __future__ import annotations

from ilang.core.calculus.affine import Affine
from ilang.core.ir.assignments import substituted
from ilang.core.ir.scalar import Operand
from ilang.core.ir.shaped import Assignment, Node, Read, Shaped, View
from ilang.core.record import replace
from ilang.core.transform.building import pruned


def propagated_copies(shaped: Shaped) -> Shaped:
    """The program in which no assignment reads a copy; copies that nothing else needs are gone."""
    nodes: list[Node] = []
    for node in shaped.nodes:
        nodes.append(_direct(node, nodes) if isinstance(node, Assignment) else node)
    return pruned(replace(shaped, nodes=tuple(nodes)))


def _direct(node: Assignment, nodes: list[Node]) -> Assignment:
    """An assignment that reads what copies are of; the copies have been looked at before."""
    reads = tuple(_source(read, nodes) for read in node.reads)
    return node if reads == node.reads else replace(node, reads=reads)


def _source(read: Read, nodes: list[Node]) -> Read:
    """The read of what a copy is of, at the place that the copy has it from."""
    copy = nodes[read.value]
    if isinstance(copy, View) or not isinstance(copy, Assignment) or not is_copy(copy):
        return read
    (source,) = copy.reads
    place: dict[int, Affine] = {}
    for part, index in zip(copy.target, read.index, strict=True):
        axis = part.axis()
        if axis is not None:
            place[axis] = index
    composed = tuple(substituted(part, place) for part in source.index)
    guards = tuple(replace(held, index=substituted(held.index, place)) for held in source.guards)
    return Read(source.value, composed, guards + read.guards)


def is_copy(node: Assignment) -> bool:
    """Whether every element is one of another value, and nothing is looked up to find it.

    A copy that reverses a dimension is kept: its readers would read backwards.
    """
    alone = node.acc is None and node.base is None and not node.guards
    plain = isinstance(node.scalar, Operand) and len(node.reads) == 1
    if not alone or not plain or node.lookups() or node.schedule is not None:
        return False
    return all(0 < c for part in node.reads[0].index for c, _ in part.steps())
