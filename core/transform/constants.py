"""Numbers that tensors are full of stand in the scalars that read them.

Example:
    in:   g[i] = 1;  d[i] = t[i] * g[i]
    out:  d[i] = t[i]

Factors of 1 go with them (``ir/scalar_rules.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.ir.scalar import Constant, Operand, Scalar
from ilang.core.ir.scalar_rules import short_scalar
from ilang.core.ir.shaped import Assignment, Node, Read, Shaped
from ilang.core.record import mapped, replace
from ilang.core.transform.building import pruned, reading


def constants_in_place(shaped: Shaped) -> Shaped:
    """The program in which no assignment reads a tensor of one number; those that nothing else needs are gone."""
    nodes: list[Node] = []
    for node in shaped.nodes:
        nodes.append(_direct(node, nodes) if isinstance(node, Assignment) else node)
    return pruned(replace(shaped, nodes=tuple(nodes)))


def _direct(node: Assignment, nodes: Sequence[Node]) -> Assignment:
    """An assignment that has in its scalar the numbers of which it reads whole tensors."""
    constants = [_constant(read, nodes) for read in node.reads]
    if not any(constants):
        return node
    return reading(node, node.reads, short_scalar(_put(node.scalar, constants)))


def _constant(read: Read, nodes: Sequence[Node]) -> Constant | None:
    """The number that a read delivers wherever it is: one with guards delivers 0, too."""
    producer = nodes[read.value]
    if not isinstance(producer, Assignment) or read.guards or producer.guards:
        return None
    if producer.acc is not None or producer.base is not None:
        return None
    return producer.scalar if isinstance(producer.scalar, Constant) else None


def _put(scalar: Scalar, constants: Sequence[Constant | None]) -> Scalar:
    return mapped(scalar, Operand, lambda operand: constants[operand.number] or operand)
