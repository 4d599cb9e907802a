"""Nodes of a shaped program read and rewritten: over other axes, of values with other numbers; who reads what.

Example, where axis 1 becomes 2·axis 1 + 3 (``reindexed``):
    in:   t[0,1] = x[0,1]      out:  t[0,2·1+3] = x[0,2·1+3]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ilang.core.calculus.affine import Affine, Looked, axis_index
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Scalar, operands_of
from ilang.core.ir.scalar import renumbered as with_numbers
from ilang.core.ir.shaped import Assignment, Input, Node, Read, Shaped, View
from ilang.core.record import mapped, mapped_inside, replace
from ilang.core.walks import parts_first


def reindexed(node: Assignment, place: Mapping[int, Affine]) -> Assignment:
    """An assignment in which some axes are indices over others, wherever they stand."""
    return mapped(node, Affine, lambda index: substituted(index, place))


def reading(node: Assignment, reads: Sequence[Read], scalar: Scalar) -> Assignment:
    """An assignment of another scalar, with the reads that it needs of some."""
    used = operands_of(scalar)
    place = {number: n for n, number in enumerate(used)}
    return replace(
        node,
        reads=tuple(reads[number] for number in used),
        scalar=with_numbers(scalar, place),
        operands=(),
    )


def substituted(part: Affine, place: Mapping[int, Affine]) -> Affine:
    """An index in which some axes are indices themselves: what was no axis alone stays no axis alone."""
    moved = part.substituted(place)
    return moved if part.axis() is not None else replace(moved, window=True)


def whole_index(
    dims: Sequence[int], fixed: Callable[[int], int | None]
) -> tuple[list[int], tuple[Affine, ...]]:
    """The dimensions of extents other than 1, and the index that walks every dimension, these by an axis each."""
    long = [dim for dim, size in enumerate(dims) if fixed(size) != 1]
    place = {dim: axis_index(n) for n, dim in enumerate(long)}
    return long, tuple(place.get(dim, Affine(())) for dim in range(len(dims)))


def writes_all(node: Assignment, dims: Sequence[int], fixed: Callable[[int], int | None]) -> bool:
    """Whether an assignment alone writes every element of some dimensions, each once reduced."""
    axes = [index.axis() for index in node.target]
    plain = [axis for axis in axes if axis is not None]
    return len(set(plain)) == len(plain) and all(
        (index == Affine(()) and fixed(size) == 1)
        or (axis is not None and node.sizes[axis] == size)
        for index, axis, size in zip(node.target, axes, dims, strict=True)
    )


def without_axes(node: Assignment, axes: Sequence[int]) -> Assignment:
    """An assignment without axes that nothing in it walks."""
    kept = [axis for axis in range(len(node.axes)) if axis not in axes]
    moved = reindexed(node, {axis: axis_index(n) for n, axis in enumerate(kept)})
    return replace(
        moved,
        axes=tuple(node.axes[axis] for axis in kept),
        sizes=tuple(node.sizes[axis] for axis in kept),
    )


def renumbered(node: Node, number: Mapping[ValueId, ValueId]) -> Node:
    """A node whose values have other numbers."""
    match node:
        case Input():
            return node
        case View():
            return replace(node, value=number[node.value])
        case Assignment():
            return _reread(node, number)


def _reread(node: Assignment, number: Mapping[ValueId, ValueId]) -> Assignment:
    def moved(place: Read | Looked) -> Read | Looked:
        place = mapped_inside(place, Looked, moved)
        if isinstance(place, Read):
            return replace(place, value=number[place.value])
        return replace(place, source=number[ValueId(place.source)])

    base = None if node.base is None else number[node.base]
    return replace(mapped(node, (Read, Looked), moved), base=base)


def sources(node: Node) -> tuple[ValueId, ...]:
    """The values that a node is computed from, its base among them."""
    match node:
        case Input():
            return ()
        case View():
            return (node.value,)
        case Assignment():
            return node.values() if node.base is None else (*node.values(), node.base)


def ordered(shaped: Shaped) -> Shaped:
    """The program without what nothing reads, inputs first, each value after those that it reads."""
    order = dict.fromkeys(shaped.inputs)
    below = parts_first(shaped.outputs, lambda value: sources(shaped.nodes[value]), {*order})
    return in_order(shaped, (order | dict.fromkeys(below)).keys())


def in_order(shaped: Shaped, values: Collection[ValueId]) -> Shaped:
    """The program of some of its values, in an order."""
    number = {value: ValueId(n) for n, value in enumerate(values)}
    rows = (each for each in shaped.rows if each.value in number)
    return replace(
        shaped,
        nodes=tuple(renumbered(shaped.nodes[value], number) for value in values),
        tensors=tuple(shaped.tensors[value] for value in values),
        inputs=tuple(number[value] for value in shaped.inputs),
        outputs=tuple(number[value] for value in shaped.outputs),
        rows=tuple(replace(each, value=number[ValueId(each.value)]) for each in rows),
    )


def all_reads(shaped: Shaped) -> tuple[list[list[tuple[int, Read]]], set[int]]:
    """The readers of each value, and their indices; and the values that are stored whole in any case.

    The values that views are of are stored whole: a view has the elements of memory.
    """
    reads: list[list[tuple[int, Read]]] = [[] for _ in shaped.nodes]
    kept: set[int] = set(map(shaped.owner, shaped.outputs))
    for reader, node in enumerate(shaped.nodes):
        if not isinstance(node, Assignment):
            continue
        if node.base is not None:
            kept |= {reader, node.base}
        kept.update(shaped.owner(ValueId(each.source)) for each in node.lookups())
        for read in dict.fromkeys(node.reads):
            reads[read.value].append((reader, read))
            if shaped.owner(read.value) != read.value:
                kept.add(shaped.owner(read.value))
    return reads, kept


def fixed_values(shaped: Shaped) -> set[int]:
    """The values whose dimensions stay: of which views are, which others update or look up."""
    return viewed_values(shaped) | updated_values(shaped)


def viewed_values(shaped: Shaped) -> set[int]:
    """The values of which views are."""
    return {shaped.owner(node.value) for node in shaped.nodes if isinstance(node, View)}


def updated_values(shaped: Shaped) -> set[int]:
    """The values that others update or look up."""
    assignments = [node for node in shaped.nodes if isinstance(node, Assignment)]
    bases = {int(node.base) for node in assignments if node.base is not None}
    return bases | {each.source for node in assignments for each in node.lookups()}
