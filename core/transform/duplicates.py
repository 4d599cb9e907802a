"""Values that are computed twice are computed once: common sub-expressions.

Example:
    in:   t[i] = n0[i] - n1[];  u[j] = n0[j] - n1[];  out = sum t[i] * u[i] over i
    out:  t[i] = n0[i] - n1[];  out = sum t[i] * t[i] over i

Two assignments are one where they differ by the names and the order of axes alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ilang.core.calculus.affine import Affine, axis_index
from ilang.core.ir.assignments import reindexed, renumbered
from ilang.core.ir.ids import ValueId
from ilang.core.ir.shaped import Assignment, Input, Node, Shaped, Tensor, View
from ilang.core.record import replace
from ilang.core.transform.building import pruned


def computed_once(shaped: Shaped) -> Shaped:
    """The program without values that are equal to one before: what read them reads that one.

    Outputs stay, each in memory of its own, and so does what is stored into: bases, and what takes their place.
    """
    outputs = {*shaped.outputs, *map(shaped.owner, shaped.outputs)}
    bases = {node.base for node in shaped.nodes if isinstance(node, Assignment)}
    number = {value: value for value, _ in shaped.numbered()}
    known: dict[object, ValueId] = {}
    nodes: list[Node] = []
    for value, given in shaped.numbered():
        node = renumbered(given, number)
        nodes.append(node)
        key = None if value in bases else _key(node, shaped.tensors[value])
        if key is not None:
            first = known.setdefault(key, value)
            number[value] = value if value in outputs else first
    return pruned(replace(shaped, nodes=tuple(nodes)))


def _key(node: Node, tensor: Tensor) -> object:
    """A key that is equal for two nodes that give the same elements; None for one that is like no other."""
    match node:
        case Input():
            return None
        case View():
            return "view", node.value, node.sizes, node.source, node.target, tensor.dims
        case Assignment() if node.base is not None or node.schedule is not None:
            return None
        case Assignment():
            order = [*dict.fromkeys((*_met(node), *range(len(node.axes))))]
            moved = reindexed(node, {axis: axis_index(n) for n, axis in enumerate(order)})
            sizes = tuple(node.sizes[axis] for axis in order)
            computation = repr((moved.target, moved.reads, moved.scalar, moved.guards))
            return computation, sizes, node.acc, tensor.dtype, tensor.dims


def _met(node: Assignment) -> Iterator[int]:
    """The axes of an assignment as they are met in its indices: those of the target first."""
    for index in node.indices():
        yield from _axes_of(index)


def _axes_of(index: Affine) -> Iterator[int]:
    yield from index.variables()
    for _, each in index.looked:
        for part in each.index:
            yield from _axes_of(part)
