"""Values that are as cheap to compute as to read are computed where they are read, and not stored.

Example, centered rows, of which a backward program has several readers:
    in:   t[i,j] = n0[i,j] - m[i];  v[i] = sum t[i,j] * t[i,j] over j;  d[i,j] = g[i,j] * t[i,j]
    out:  v[i] = sum (n0[i,j] - m[i]) * (n0[i,j] - m[i]) over j;  d[i,j] = g[i,j] * (n0[i,j] - m[i])

Such a value is a few operations, none of them slow, on one element of what is in memory in any case, an input or what
others read too, and on tensors of fewer dimensions. The readers of the value read that element instead, once an
iteration, and the same bits come of it. Everything else that several read is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.calculus.affine import Affine, variables_of
from ilang.core.dtype import BYTES
from ilang.core.ir.assignments import all_reads, substituted
from ilang.core.ir.scalar import (
    Apply,
    Constant,
    Convert,
    Operand,
    Scalar,
    scalars_within,
    with_operands,
)
from ilang.core.ir.shaped import Assignment, Input, Node, Read, Shaped
from ilang.core.ops import SLOW
from ilang.core.record import replace
from ilang.core.transform.building import pruned

MOST = 4
"""Operations of a value that is computed again, at most: a few are done while an element comes from memory."""


def recomputed(shaped: Shaped) -> Shaped:
    """The program whose cheap values are computed in their readers, where these are several."""
    reads, kept = all_reads(shaped)
    nodes: list[Node] = []
    cheap: set[int] = set()
    for value, given in enumerate(shaped.nodes):
        node = given
        if isinstance(given, Assignment) and given.schedule is None:
            node = _with_values(given, cheap, nodes)
        nodes.append(node)
        if value in kept or not isinstance(node, Assignment) or len(reads[value]) < 2:
            continue
        if _is_cheap(shaped, node, reads) and all(
            _meets_once(shaped, reader, read) for reader, read in reads[value]
        ):
            cheap.add(value)
    return pruned(replace(shaped, nodes=tuple(nodes)))


def _is_cheap(
    shaped: Shaped, node: Assignment, reads: Sequence[Sequence[tuple[int, Read]]]
) -> bool:
    """Whether a value is a few operations on one element that is stored in any case, and on smaller tensors."""
    parts = [*scalars_within(node.scalar)]
    work = [part for part in parts if isinstance(part, Apply)]
    plain = all(isinstance(part, Apply | Convert | Constant | Operand) for part in parts)
    if node.acc is not None or node.base is not None or node.schedule is not None or not plain:
        return False
    if node.lookups() or node.guards or any(read.guards for read in node.reads):
        return False
    if len(work) > MOST or any(part.primitive in SLOW for part in work):
        return False
    full = [read for read in node.reads if _axes(read) == set(range(len(node.axes)))]
    if len(full) != 1 or not node.axes:
        return False
    (read,) = full
    stored = isinstance(shaped.nodes[read.value], Input) or 1 < len(reads[read.value])
    wide = BYTES[shaped.tensors[read.value].dtype] <= BYTES[node.scalar.dtype or ""]
    return stored and wide


def _axes(read: Read) -> set[int]:
    return variables_of(read.index)


def _meets_once(shaped: Shaped, reader: int, read: Read) -> bool:
    """Whether a reader meets each element in one iteration, by axes that are its own."""
    node = shaped.assignment(reader)
    axes = [index.axis() for index in read.index if index != Affine(())]
    return (
        node.schedule is None
        and not read.guards
        and None not in axes
        and len(set(axes)) == len(axes) == len(node.axes)
    )


def _operand_types(node: Assignment) -> dict[int, str | None]:
    """The element type of each operand of a scalar."""
    operands = (part for part in scalars_within(node.scalar) if isinstance(part, Operand))
    return {part.number: part.dtype for part in operands}


def _with_values(node: Assignment, cheap: set[int], nodes: Sequence[Node]) -> Assignment:
    """An assignment that computes what it would read of cheap values."""
    if not any(read.value in cheap for read in node.reads):
        return node
    reads: list[Read] = []
    leaves: list[Scalar] = []
    types = _operand_types(node)
    for number, read in enumerate(node.reads):
        producer = nodes[read.value]
        if read.value not in cheap or not isinstance(producer, Assignment):
            leaves.append(Operand(_place(reads, read), types.get(number)))
            continue
        indices = {
            axis: index
            for target, index in zip(producer.target, read.index, strict=True)
            if (axis := target.axis()) is not None
        }
        inner: list[Scalar] = []
        dtypes = _operand_types(producer)
        for n, each in enumerate(producer.reads):
            moved = Read(each.value, tuple(substituted(part, indices) for part in each.index))
            inner.append(Operand(_place(reads, moved), dtypes.get(n)))
        leaves.append(with_operands(producer.scalar, inner, lambda index: index))
    scalar = with_operands(node.scalar, leaves, lambda index: index)
    return replace(node, reads=tuple(reads), scalar=scalar, operands=())


def _place(reads: list[Read], read: Read) -> int:
    """The number of a read among those so far, to which it is added where it is new."""
    if read not in reads:
        reads.append(read)
    return reads.index(read)
