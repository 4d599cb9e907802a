"""Elements that are left out: by guards, by choices, by indices that do not walk whole dimensions.

There a cotangent is 0 whatever follows, and what flows back further is not multiplied with derivatives, which may be
infinite. Forward mode asks the same of each value before any cotangent is there (``levels``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.dtype import FLOATS
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Apply, Operand, scalars_within
from ilang.core.ir.shaped import Assignment, Read, Shaped, Size, Tensor, View
from ilang.core.transform.accumulators import LOGIC
from ilang.core.transform.derivatives import Flow, flowing_back

SPARSE, LASTING = 1, 2
"""Levels of a cotangent that is 0 in places: ``LASTING`` if it stays so in a sum of products, as that of a maximum, of
dead units, does not."""


def leaves_out(
    node: Assignment,
    read: Read,
    flows: Sequence[Flow],
    tensors: Sequence[Tensor],
    sizes: Sequence[Size],
) -> bool:
    """Whether nothing flows back to some elements that a read is of."""
    whole = [
        sizes[size].fixed == 1 if axis is None else node.sizes[axis] == size
        for axis, size in zip(
            (part.axis() for part in read.index), tensors[read.value].dims, strict=True
        )
    ]
    return bool(node.guards or read.guards) or not all(whole) or any(flow.choices for flow in flows)


def passed_on(level: int, node: Assignment, read: Read, leaves: bool, guarded: bool) -> int:
    """The level of the cotangent that flows back through a read, 0 if it need not be 0 anywhere.

    Args:
        level: of the cotangent of the assignment.
        node: the assignment.
        read: one of its reads.
        leaves: whether nothing flows back to some elements.
        guarded: whether guards of the cotangent guard what flows back.
    """
    if level == LASTING or guarded:
        return LASTING
    if leaves:
        return SPARSE if _is_extreme(node) else LASTING
    sparse = level or node.acc in (">", "<")
    return SPARSE if sparse and not is_contraction(node, read) else 0


def levels(shaped: Shaped) -> dict[ValueId, int]:
    """The level of the cotangent of each value of which floats of the outputs are computed."""
    known: dict[ValueId, int] = {v: 0 for v in shaped.outputs if _is_float(shaped, v)}
    for value, node in reversed(list(shaped.numbered())):
        if value not in known or not _is_float(shaped, value):
            continue
        level = known[value]
        below: list[tuple[ValueId, int]] = []
        if isinstance(node, View):
            below.append((node.value, level))
        elif isinstance(node, Assignment) and node.acc not in LOGIC:
            below += [] if node.base is None else [(node.base, level if node.acc else 0)]
            back = Flow(Operand(len(node.reads), node.scalar.dtype))
            for number, flows in flowing_back(node.scalar, back)[0].items():
                read = node.reads[number]
                leaves = leaves_out(node, read, flows, shaped.tensors, shaped.sizes)
                below.append((read.value, passed_on(level, node, read, leaves, False)))
        for source, part in below:
            known[source] = min(part, known.get(source, part))
    return known


def _is_float(shaped: Shaped, value: ValueId) -> bool:
    return shaped.tensors[value].dtype in FLOATS


def _is_extreme(node: Assignment) -> bool:
    """Whether an assignment chooses by maxima and minima alone, as a relu does."""
    primitives = {each.primitive for each in scalars_within(node.scalar) if isinstance(each, Apply)}
    return bool(primitives & {"max", "min"} or node.acc in (">", "<")) and not (
        primitives & {"where", "pow"} or node.guards
    )


def sums(node: Assignment, read: Read) -> bool:
    """Whether what flows back through a read is a sum: some axis does not walk it."""
    kept = {axis for part in read.index for axis in part.axes()}
    return any(axis not in kept for axis in range(len(node.axes)))


def is_contraction(node: Assignment, read: Read) -> bool:
    """Whether what flows back through a read is a sum of products with another operand."""
    return sums(node, read) and isinstance(node.scalar, Apply) and node.scalar.primitive == "mul"
