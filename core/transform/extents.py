"""Extents that a program computes with, as ``dim(x, "b")``: numbers, or sizes of a call where they come with that.

Example, where n1 stands for the extent of b:
    in:   n2[i] = n0[i] / n1[0]
    out:  n2[i] = n0[i] / f32(b), and n0[i] / 50 where b is 50
"""

from __future__ import annotations

from collections.abc import Mapping

from ilang.core.calculus.affine import size_value
from ilang.core.ir.assignments import in_order, reading, sources, whole_index
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Constant, Convert, Operand, Position, Scalar
from ilang.core.ir.shaped import Assignment, Input, Node, Shaped
from ilang.core.record import mapped, replace


def extents_in_place(shaped: Shaped, measured: Mapping[int, int]) -> Shaped:
    """The program in which no input stands for an extent.

    Args:
        shaped: the program; its gradients are computed.
        measured: by the position of an input of one element, the number of the size whose extent it stands for.
    """
    if not measured:
        return shaped
    extents = {
        shaped.inputs[position]: _extent(
            shaped, size, shaped.tensors[shaped.inputs[position]].dtype
        )
        for position, size in measured.items()
    }
    kept = [position for position in range(len(shaped.inputs)) if position not in measured]
    place = {position: n for n, position in enumerate(kept)}
    nodes = tuple(_without_inputs(shaped, value, extents, place) for value, _ in shaped.numbered())
    sizes = tuple(
        replace(
            size,
            places=tuple(
                replace(each, number=place[each.number])
                for each in size.places
                if each.number in place
            ),
        )
        for size in shaped.sizes
    )
    inputs = tuple(shaped.inputs[position] for position in kept)
    read = {*shaped.outputs, *(value for node in nodes for value in sources(node))}
    values = [ValueId(n) for n in range(len(nodes)) if n not in extents or n in read]
    values.sort(key=lambda value: value not in inputs)
    return in_order(replace(shaped, nodes=nodes, sizes=sizes, inputs=inputs), values)


def _extent(shaped: Shaped, size: int, dtype: str) -> Scalar:
    """An extent in a type of floats."""
    fixed = shaped.sizes[size].fixed
    if fixed is not None:
        return Constant(float(fixed), dtype)
    return Convert(Position(size_value(size), "i64"), dtype)


def _without_inputs(
    shaped: Shaped, value: ValueId, extents: Mapping[ValueId, Scalar], place: Mapping[int, int]
) -> Node:
    """A node that reads no extent where it can compute with it; an extent itself is one that computes it."""
    match node := shaped.nodes[value]:
        case Input() if value in extents:
            dims = shaped.tensors[value].dims
            _, target = whole_index(dims, lambda size: shaped.sizes[size].fixed)
            text = node.span.text()
            return Assignment((), (), target, (), extents[value], None, None, text, node.span)
        case Input():
            return replace(node, number=place[node.number])
        case Assignment():
            given = [None if each.guards else extents.get(each.value) for each in node.reads]
            if not any(given):
                return node
            scalar = mapped(node.scalar, Operand, lambda operand: given[operand.number] or operand)
            return reading(node, node.reads, scalar)
        case _:
            return node
