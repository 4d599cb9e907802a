"""Functions of few axes as values of their own, where loops would compute them again and again.

Example, a logarithm of softmax along rows of 1000 × 90:
    in:   out[i,c] = x[i,c] - ln(sum[i])
    out:  sum_ln[i] = ln(sum[i]);  out[i,c] = x[i,c] - sum_ln[i]

C compilers move sums and quotients out of loops by themselves. A function with conditions in it they move by one copy
of the loop for each condition, or not at all, and some of these loops have no vectors.
"""

from __future__ import annotations

from ilang.core.calculus.affine import axis_index
from ilang.core.ir.assignments import reading
from ilang.core.ir.ids import ValueId
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.scalar import Apply, Operand, Position, Scalar, operands_of, scalars_within
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.ops import SLOW
from ilang.core.record import mapped, mapped_inside, replace
from ilang.core.transform.extended import ExtendedProgram


def repeated_functions(shaped: Shaped, extents: Extents) -> Shaped:
    """The program in which slow functions that lack an axis of their assignment are values; itself without any."""
    new = ExtendedProgram(shaped)
    for value, node in shaped.numbered():
        if isinstance(node, Assignment) and not (node.guards or node.schedule):
            new.nodes[value] = _split(new, value, node, extents)
    return shaped if len(new.nodes) == len(shaped.nodes) else new.result()


def _split(new: ExtendedProgram, value: ValueId, node: Assignment, extents: Extents) -> Assignment:
    """An assignment that reads its functions of few axes, which are put into the program."""
    parts = (part for part in scalars_within(node.scalar) if isinstance(part, Apply))
    if all(_axes(node, part, extents) is None for part in parts):
        return node
    reads = list(node.reads)

    def put(part: Apply) -> Scalar:
        axes = _axes(node, part, extents)
        if axes is None:
            return mapped_inside(part, Apply, put)
        place = {axis: axis_index(n) for n, axis in enumerate(axes)}
        index = tuple(map(axis_index, axes))
        moved = reading(node, node.reads, part)
        whole = replace(
            moved,
            axes=tuple(node.axes[axis] for axis in axes),
            sizes=tuple(node.sizes[axis] for axis in axes),
            target=tuple(place.values()),
            reads=tuple(
                replace(r, index=tuple(p.substituted(place) for p in r.index)) for r in moved.reads
            ),
            acc=None,
            base=None,
        )
        number = new.add(whole, value, [node.sizes[axis] for axis in axes], part.primitive)
        new.tensors[number] = replace(new.tensors[number], dtype=part.dtype or "", of="")
        reads.append(Read(number, index))
        return Operand(len(reads) - 1, part.dtype)

    return reading(node, reads, mapped(node.scalar, Apply, put))


def _axes(node: Assignment, part: Apply, extents: Extents) -> list[int] | None:
    """The axes of a slow function, if its assignment has another one, of several elements."""
    if part.primitive not in SLOW:
        return None
    reads = [node.reads[number] for number in operands_of(part)]
    parts = scalars_within(part)
    if any(isinstance(each, Position) for each in parts) or any(read.guards for read in reads):
        return None
    if any(index.looked for read in reads for index in read.index):
        return None
    walked = {axis for read in reads for index in read.index for axis in index.axes()}
    others = (extents.usual(size) for axis, size in enumerate(node.sizes) if axis not in walked)
    return sorted(walked) if 3 < max(others, default=1) else None
