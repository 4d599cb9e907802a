"""The memory that the innermost iteration of each assignment touches, and the order of loops that follows: rule 4.

Example, a product that its sum computes:
    in:   t1 = in0[i,k] * in1[k,j];  out = sum t1[i,j,k] over k
    out:  out: in0[i,k], in1[k,j], writes out[i,j];  loops i k j
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ilang.core.calculus.affine import Affine
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.fuse import mapping

Access = tuple[Affine, ...]
"""An index: an affine expression for each dimension."""
Arrays = Mapping[Access, int]
"""The arrays that an assignment reads at each index over its axes."""
Accesses = Mapping[Access, float]
"""The weight of each access of an assignment, by its index over the axes of the assignment."""


def accesses_of(shaped: Shaped, inlining: Inlining, machine: Machine) -> tuple[Accesses, ...]:
    """The memory accesses of each assignment, those of what is computed in its innermost loop included."""
    known: list[Accesses] = []
    for node in shaped.nodes:
        accesses: dict[Access, float] = {}
        if isinstance(node, Assignment):
            accesses[node.target] = machine.memory.strided_write
            for read in dict.fromkeys(node.reads):
                for access, weight in _through(shaped, inlining, read, known, machine).items():
                    accesses[access] = accesses.get(access, 0.0) + weight
        known.append(accesses)
    return tuple(known)


def _through(
    shaped: Shaped, inlining: Inlining, read: Read, known: Sequence[Accesses], machine: Machine
) -> Accesses:
    """The accesses that one read causes, in the axes of the reader."""
    producer = shaped.nodes[read.value]
    if not inlining.inlined[read.value] or not isinstance(producer, Assignment):
        return {read.index: 1.0}
    renamed = mapping(producer, read)
    accesses: dict[Access, float] = {}
    for access, weight in known[read.value].items():
        if access != producer.target or weight != machine.memory.strided_write:
            moved = tuple(index.renamed(renamed) for index in access)
            accesses[moved] = accesses.get(moved, 0.0) + weight
    return accesses


def arrays_of(shaped: Shaped, inlining: Inlining) -> tuple[Arrays, ...]:
    """The number of arrays that each assignment reads at an index, with those of what its innermost loop computes."""
    known: list[frozenset[tuple[int, Access]]] = []
    for node in shaped.nodes:
        pairs = set[tuple[int, Access]]()
        for read in node.reads if isinstance(node, Assignment) else ():
            producer = shaped.nodes[read.value]
            if inlining.inlined[read.value] and isinstance(producer, Assignment):
                renamed = mapping(producer, read)
                pairs |= {
                    (value, tuple(part.renamed(renamed) for part in index))
                    for value, index in known[read.value]
                }
            else:
                pairs.add((read.value, read.index))
        known.append(frozenset(pairs))
    return tuple(Counter(index for _, index in pairs) for pairs in known)


def reads_of(node: Assignment, accesses: Accesses) -> list[Access]:
    """The accesses of an assignment but for its own result."""
    return [access for access in accesses if access != node.target]


def loop_order(node: Assignment, accesses: Accesses, machine: Machine) -> tuple[int, ...]:
    """The axes of an assignment, outermost first. Ties go to the order of the output, then of the reduced axes."""
    if node.scatters() and node.acc is None:
        return tuple(range(len(node.axes)))  # the last iteration that meets an element stores it
    reduced = set(node.reduced_axes())
    memory = machine.memory
    cost = [memory.dependent_sum * (axis in reduced) for axis in range(len(node.axes))]
    for access, weight in accesses.items():
        for distance, index in enumerate(reversed(access)):
            for axis in index.rests_on():
                cost[axis] += weight * (memory.wide_stride + distance)
            for coefficient, axis in index.steps():
                along = memory.unit_stride * abs(coefficient)
                step = memory.wide_stride + distance if distance else along
                cost[axis] += weight * step
    return tuple(sorted(range(len(node.axes)), key=lambda axis: -cost[axis]))


def strided_order(
    node: Assignment, accesses: Accesses, extents: Extents, machine: Machine
) -> tuple[int, ...]:
    """The axes of an assignment in the order of ``loop_order``.

    A reduction whose innermost axis is long and reduced has all reduced axes inside: it meets each result once.
    """
    order = loop_order(node, accesses, machine)
    reduced = node.reduced_axes()
    is_inside = machine.device is None and bool(order) and order[-1] in reduced
    if not is_inside or extents.is_small(node.sizes[order[-1]]):
        return order
    return tuple(sorted(order, key=lambda axis: axis in reduced))
