"""Assignments over other axes: what an axis was becomes an index over those that there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ilang.core.ir.affine import Affine, Within, axis_index
from ilang.core.ir.scalar import Apply, Convert, Position, Scalar
from ilang.core.ir.shaped import Assignment, Read
from ilang.core.record import replace


def walking(node: Assignment, place: Mapping[int, Affine]) -> Assignment:
    """An assignment in which some axes are indices over others, wherever they stand."""

    def put(part: Affine) -> Affine:
        return substituted(part, place)

    def held(guards: Sequence[Within]) -> tuple[Within, ...]:
        return tuple(replace(guard, index=put(guard.index)) for guard in guards)

    return replace(
        node,
        target=tuple(map(put, node.target)),
        reads=tuple(
            Read(read.value, tuple(map(put, read.index)), held(read.guards)) for read in node.reads
        ),
        scalar=_positioned(node.scalar, put),
        guards=held(node.guards),
    )


def substituted(part: Affine, place: Mapping[int, Affine]) -> Affine:
    """An index in which some axes are indices themselves."""
    if part.is_whole():
        return place.get(part.terms[0][1], part)
    terms: dict[int, int] = {}
    sizes: dict[int, int] = {}
    offset = part.offset
    looked = list(part.looking(lambda inner: substituted(inner, place)).looked)
    for c, size in part.sizes:
        sizes[size] = sizes.get(size, 0) + c
    for coefficient, axis in part.terms:
        inner = place.get(axis) or axis_index(axis)
        offset += coefficient * inner.offset
        for c, each in inner.terms:
            terms[each] = terms.get(each, 0) + coefficient * c
        for c, size in inner.sizes:
            sizes[size] = sizes.get(size, 0) + coefficient * c
        looked += [(coefficient * c, each) for c, each in inner.looked]
    return Affine(
        tuple((c, axis) for axis, c in terms.items() if c),
        offset,
        True,
        tuple((c, size) for size, c in sizes.items() if c),
        tuple(looked),
    )


def _positioned(scalar: Scalar, put: Callable[[Affine], Affine]) -> Scalar:
    """A scalar whose positions are those of changed indices."""
    match scalar:
        case Position():
            return replace(scalar, index=put(scalar.index))
        case Convert():
            return replace(scalar, argument=_positioned(scalar.argument, put))
        case Apply():
            return replace(
                scalar, arguments=tuple(_positioned(part, put) for part in scalar.arguments)
            )
        case _:
            return scalar


def without_axes(node: Assignment, axes: Sequence[int]) -> Assignment:
    """An assignment without axes that nothing in it walks."""
    kept = [axis for axis in range(len(node.axes)) if axis not in axes]
    moved = walking(node, {axis: axis_index(n) for n, axis in enumerate(kept)})
    return replace(
        moved,
        axes=tuple(node.axes[axis] for axis in kept),
        sizes=tuple(node.sizes[axis] for axis in kept),
    )
