"""Axes over one element left out: a window of 1 x 1 is none, so that its image has one long axis.

Example, a convolution of 1 x 1 whose r and s have one element each:
    in:   t1[n,k,h,w,c,r,s] = x[n,c,h + r,w + s] * weights[k,c,r,s];  out = sum t1[n,k,h,w,c,r,s] over c r s
    out:  t1[n,k,h,w,c] = x[n,c,h,w] * weights[k,c,0,0];              out = sum t1[n,k,h,w,c] over c

Arrays of a caller keep their dimensions, and what has a written schedule its axes. A reduction of one element is that
element; a sum adds 0 to it, so that -0 becomes 0.
"""

from __future__ import annotations

from typing import TypeVar

from ilang.core.calculus.affine import Affine, is_inside
from ilang.core.dtype import FLOATS
from ilang.core.ir.assignments import fixed_values
from ilang.core.ir.scalar import Apply, Constant, Position, scalars_within
from ilang.core.ir.shaped import Assignment, Input, Node, Read, Shaped
from ilang.core.record import mapped, replace

T = TypeVar("T")


def without_units(shaped: Shaped) -> Shaped:
    """The program without axes over one element, where they can be left out; itself where there are none."""
    if all(size.fixed != 1 for size in shaped.sizes):
        return shaped
    stays = fixed_values(shaped) | {*shaped.outputs}
    for value, node in shaped.numbered():
        if not isinstance(node, Assignment):
            stays.add(value)
        elif _is_kept(node):
            stays |= {value, *node.values()}
    outside = _outside(shaped)
    kept = {
        value: [
            dim
            for dim, size in enumerate(tensor.dims)
            if shaped.sizes[size].fixed != 1 or (value, dim) in outside
        ]
        for value, tensor in enumerate(shaped.tensors)
        if value not in stays
    }
    nodes = tuple(_over_longer(shaped, kept, value, node) for value, node in shaped.numbered())
    if all(one is other for one, other in zip(nodes, shaped.nodes, strict=True)):
        return shaped
    tensors = tuple(
        tensor
        if len(kept.get(value, tensor.dims)) == len(tensor.dims)
        else replace(tensor, dims=_at(tensor.dims, kept.get(value)), order=())
        for value, tensor in enumerate(shaped.tensors)
    )
    return _with_whole(replace(shaped, nodes=nodes, tensors=tensors))


def _outside(shaped: Shaped) -> set[tuple[int, int]]:
    """The dimensions, by value and number, that something may leave, or that a condition on their axis needs."""
    assignments = ((v, node) for v, node in shaped.numbered() if isinstance(node, Assignment))
    accesses = (
        access
        for value, node in assignments
        for access in ((value, node.target), *((read.value, read.index) for read in node.reads))
    )
    outside: set[tuple[int, int]] = {
        (value, dim)
        for value, index in accesses
        for dim, part in enumerate(index)
        if not is_inside(part)
    }
    for value, node in shaped.numbered():
        if isinstance(node, Assignment):
            axes = _restricted_axes(node)
            outside |= {(value, d) for d, part in enumerate(node.target) if part.axes() & axes}
    return outside


def _restricted_axes(node: Assignment) -> set[int]:
    """The axes that conditions and positions of an assignment name."""
    guards = (*node.guards, *(guard for read in node.reads for guard in read.guards))
    places = (part for part in scalars_within(node.scalar) if isinstance(part, Position))
    indices = (*(guard.index for guard in guards), *(part.index for part in places))
    return {axis for index in indices for axis in index.axes()}


def _is_kept(node: Assignment) -> bool:
    return node.schedule is not None or node.base is not None or bool(node.lookups())


def _at(items: tuple[T, ...], numbers: list[int] | None) -> tuple[T, ...]:
    return items if numbers is None else tuple(items[number] for number in numbers)


def _over_longer(shaped: Shaped, kept: dict[int, list[int]], value: int, node: Node) -> Node:
    """A node without axes over one element; of what it reads and stores only the ``kept`` dimensions are there."""
    if not isinstance(node, Assignment) or _is_kept(node):
        return node
    target = _at(node.target, kept.get(value))
    reads = tuple(_narrowed(read, kept) for read in node.reads)
    units = {axis for axis, size in enumerate(node.sizes) if shaped.sizes[size].fixed == 1}
    units -= _restricted_axes(node)
    is_one = node.acc is not None and units.issuperset(node.reduced_axes())
    if is_one and node.guards:  # an iteration that they leave out keeps the neutral element
        is_one, units = False, units - {*node.reduced_axes()[:1]}
    if not units and target == node.target and reads == node.reads:
        return node
    left = [axis for axis in range(len(node.axes)) if axis not in units]
    numbers = {axis: n for n, axis in enumerate(left)}

    def over_left(value: T) -> T:
        return mapped(value, Affine, lambda part: part.without(units).renamed(numbers))

    node = _of_one(node) if is_one else node
    return replace(
        node,
        axes=_at(node.axes, left),
        sizes=_at(node.sizes, left),
        target=over_left(target),
        reads=over_left(reads),
        scalar=over_left(node.scalar),
        guards=over_left(node.guards),
    )


def _of_one(node: Assignment) -> Assignment:
    """A reduction of one element as pointwise work."""
    scalar, dtype = node.scalar, node.scalar.dtype
    if node.acc == "+" and dtype in FLOATS:
        scalar = Apply("add", (scalar, Constant(0, dtype)), dtype)
    return replace(node, acc=None, scalar=scalar)


def _narrowed(read: Read, kept: dict[int, list[int]]) -> Read:
    """A read of a value that has only its ``kept`` dimensions."""
    return replace(read, index=_at(read.index, kept[read.value])) if read.value in kept else read


def _with_whole(shaped: Shaped) -> Shaped:
    """The program in which a window over one axis, as long as the dimension, is that axis."""
    same: dict[int, int] = {}

    def number(size: int) -> int:
        while size in same:
            size = same[size]
        return size

    nodes: list[Node] = []
    for node in shaped.nodes:
        if not isinstance(node, Assignment) or _is_kept(node):
            nodes.append(node)
            continue
        reads = []
        for read in node.reads:
            index = []
            for part, dim in zip(read.index, shaped.tensors[read.value].dims, strict=True):
                plain = replace(part, window=False)
                axis, extent = plain.axis(), shaped.sizes[dim].fixed
                is_whole = (
                    axis is not None
                    and extent is not None
                    and shaped.sizes[node.sizes[axis]].fixed == extent
                )
                if axis is not None and is_whole:
                    one, other = number(node.sizes[axis]), number(dim)
                    same |= {one: other} if one != other else {}
                index.append(plain if is_whole else part)
            reads.append(replace(read, index=tuple(index)))
        nodes.append(replace(node, reads=tuple(reads)))
    if not same:
        return replace(shaped, nodes=tuple(nodes))
    numbered = (
        node if isinstance(node, Input) else replace(node, sizes=tuple(map(number, node.sizes)))
        for node in nodes
    )
    tensors = tuple(
        replace(tensor, dims=tuple(map(number, tensor.dims))) for tensor in shaped.tensors
    )
    return replace(shaped, nodes=tuple(numbered), tensors=tensors)
