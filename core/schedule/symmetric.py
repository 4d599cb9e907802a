"""Symmetric results: half of a value that stays the same where two dimensions change places is a copy of the other.

Example, ``ik*jk~ijk >> +ijk~ij`` of one matrix twice, loops j i k in blocks of 64 columns and 6 rows:
    in:   for j: for i: a tile of out
    out:  for j: for i in 0..ceil((64j+64)/6): a tile of out
          for i: for i1 in 0..64: for j in 0..64i: out[64i+i1,j] = out[j,64i+i1]

A sum or a product of two operands is the same in either order, so a copy has the bits of what it stands for.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import combinations, dropwhile, takewhile
from math import prod

from ilang.core.calculus.affine import Affine, Within, axis_index, canonical
from ilang.core.dtype import BYTES, FLOATS
from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Position, Scalar
from ilang.core.ir.schedule import Plan, Scheduled
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import Machine
from ilang.core.ops import PRIMITIVES
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.choose.tilings import Tilings

MOST = 32
"""Assignments of an expression that is compared, at most: a larger one counts as not symmetric."""


def mirror(program: Scheduled, plan: Plan) -> tuple[int, int] | None:
    """The axes, the outer one first, along which half of a root alone in its kernel is worth a copy of the other half.

    The loops of both are blocks around all that is reduced.
    """
    root, machine, shaped = plan.instances[0], program.machine, program.shaped
    node, nest = program.assigned(root.value)
    if machine.device is not None or plan.online or root.parts is not None or any(nest.roles):
        return None
    reduced = set(node.reduced_axes())
    folded = (n for n, loop in enumerate(nest.order) if loop.axis in reduced)
    around = nest.order[: next(folded, len(nest.order))]
    blocks = [loop.axis for loop in around if not loop.part and len(nest.factors[loop.axis]) == 1]
    inside = frozenset(each.value for each in plan.instances)
    walked = [index.axis() for index in node.target]
    for outer, inner in combinations([axis for axis in blocks if axis in walked], 2):
        extent = shaped.sizes[node.sizes[outer]].fixed
        if extent is None or extent <= nest.factors[outer][0]:
            continue
        dims = walked.index(outer), walked.index(inner)
        if not _pays(shaped, root.value, inside, machine):
            continue
        if is_symmetric(shaped, root.value, dims, inside):
            return outer, inner
    return None


def halved(shaped: Shaped, inlining: Inlining, tiles: Tilings, machine: Machine) -> set[int]:
    """The symmetric values of tiles that one that is not reads: stored whole, half of each can be a copy."""
    alone = frozenset(n for n, sole in enumerate(inlining.sole) if sole is not None)
    values = set[int]()
    for value, tile in enumerate(tiles.tiles):
        if tile is None or value not in alone or not _pays(shaped, value, (value,), machine, True):
            continue
        known = (
            (each, is_symmetric(shaped, each, dims, alone | {each}))
            for each, dims in _ends(shaped, inlining, value, (tile.rows, tile.lanes))
        )
        symmetric = dropwhile(lambda pair: not pair[1], known)
        *_, last = [value for value, _ in takewhile(lambda pair: pair[1], symmetric)] or [-1]
        values |= {last} & alone  # any other is stored in any case
    return values


def _ends(
    shaped: Shaped, inlining: Inlining, value: int, axes: tuple[int, int]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """A reduction, and the pointwise work on its elements, each with the dimensions that two of its axes walk."""
    node, end = shaped.assignment(value), value
    for _ in range(MOST):
        walked = [index.axis() for index in node.target]
        if not {*axes} <= {*walked}:
            return
        dims = walked.index(axes[0]), walked.index(axes[1])
        yield end, dims
        if inlining.sole[end] is None:
            return
        ((end, read),) = inlining.all_reads[end]
        node = shaped.assignment(end)
        one, other = (read.index[dim].axis() for dim in dims)
        if node.acc is not None or one is None or other is None:
            return
        axes = one, other


def is_symmetric(
    shaped: Shaped, value: int, dims: tuple[int, int], inside: Collection[int]
) -> bool:
    """Whether a value is the same where two dimensions change places, by what the values ``inside`` compute for it."""
    extents = [shaped.sizes[shaped.tensors[value].dims[dim]].fixed for dim in dims]
    if extents[0] is None or extents[0] != extents[1]:
        return False
    index = [axis_index(dim) for dim in range(len(shaped.tensors[value].dims))]
    swapped = [*index]
    swapped[dims[0]], swapped[dims[1]] = index[dims[1]], index[dims[0]]
    forms = (
        _Forms(shaped, {*inside, value}).of(value, each, len(index)) for each in (index, swapped)
    )
    return next(forms) == next(forms)


def _pays(
    shaped: Shaped, value: int, inside: Collection[int], machine: Machine, stored: bool = False
) -> bool:
    """Whether the terms of an element take longer than its copy; ``stored``: and than both in memory for that alone.

    The values ``inside`` compute the elements of ``value``; the extents of all of them must be known.
    """
    tensor, terms = shaped.tensors[value], 1
    for node in (shaped.assignment(each) for each in inside):
        extents = [shaped.sizes[size].fixed for size in node.sizes]
        if None in extents:
            return False
        terms = max(terms, prod(extents[axis] or 0 for axis in node.reduced_axes()))
    core, vector = machine.core, machine.vector_lanes(tensor.dtype)
    if core is None or tensor.dtype not in FLOATS:
        return False
    held = prod(shaped.sizes[size].fixed or 0 for size in tensor.dims) * BYTES[tensor.dtype]
    # Of a copy one line is read, one written: that one comes, and goes back. Storing moves three for both halves.
    lines = 3 + 6 * stored
    return (
        core.transposed + lines * core.cycles_of_line(held) / vector
        < terms / vector / core.multiply_adds
    )


class _Forms:
    """Values as expressions of what is stored: two are equal if they compute the same from the same elements."""

    def __init__(self, shaped: Shaped, inside: Collection[int]) -> None:
        """For expressions over stored values, which the values ``inside`` are not."""
        self.shaped, self.inside, self.left = shaped, inside, MOST

    def of(self, value: int, index: Sequence[Affine], axes: int) -> Hashable:
        """The element of a value at an index over so many axes."""
        node = self.shaped.nodes[value]
        if value not in self.inside or not isinstance(node, Assignment) or node.base is not None:
            return value, tuple(canonical(part) for part in index)
        self.left -= 1
        if self.left < 0:
            return object()  # which is like nothing else
        walked = ((target.axis(), part) for target, part in zip(node.target, index, strict=True))
        place = {axis: part for axis, part in walked if axis is not None}
        reduced = node.reduced_axes()
        place |= {axis: axis_index(axes + number) for number, axis in enumerate(reduced)}
        extents = (self.shaped.sizes[node.sizes[axis]] for axis in reduced)
        terms = tuple(extent.fixed or extent for extent in extents)
        axes += len(reduced)
        reads = [
            (
                self.of(read.value, [part.substituted(place) for part in read.index], axes),
                _conditions(read.guards, place),
            )
            for read in node.reads
        ]
        dtype, folded = self.shaped.tensors[value].dtype, (node.acc, node.acc_dtype(), terms)
        guards = _conditions(node.guards, place)
        return dtype, folded, guards, _scalar(node.scalar, reads, place)


def _conditions(guards: Sequence[Within], place: Mapping[int, Affine]) -> Hashable:
    return frozenset((canonical(each.index.substituted(place)), each.size) for each in guards)


def _scalar(scalar: Scalar, reads: Sequence[Hashable], place: Mapping[int, Affine]) -> Hashable:
    """A scalar expression of elements; the operands of a commutative primitive stand in an order of their own."""
    match scalar:
        case Operand():
            return reads[scalar.number]
        case Position():
            return "at", scalar.dtype, canonical(scalar.index.substituted(place))
        case Constant():
            return repr(scalar.value), scalar.dtype
        case Convert():
            return "as", scalar.dtype, _scalar(scalar.argument, reads, place)
        case Apply():
            parts = [_scalar(each, reads, place) for each in scalar.arguments]
            if PRIMITIVES[scalar.primitive].commutative:
                parts.sort(key=hash)
            return scalar.primitive, scalar.dtype, tuple(parts)
        case _:
            raise AssertionError(scalar)
