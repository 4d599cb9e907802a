"""Copies of what a reader reads: the assignment that fills one, whose dimensions the schedule says.

A copy is filled in the order of its elements. Where that would meet each line of memory several times, far apart, as in
strips that are narrower than a line, some rows of all strips are copied before the next ones:

    in:   copy [o, b, o'] of in0[b,6o+o']      out:  for b: for o: for b' < 8: for o': copy[o,8b+b',o'] = ...

The same holds where its elements run across those of what is copied:

    in:   copy [b, c, o] of in0[o,c,b]         out:  for c: for b: for o: copy[b,c,o] = ...
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence

from ilang.core.calculus.affine import Affine
from ilang.core.dtype import BYTES
from ilang.core.ir.extent import fixed
from ilang.core.ir.graph import Axis
from ilang.core.ir.ids import VariableId
from ilang.core.ir.scalar import Operand
from ilang.core.ir.schedule import Loop, LoopSteps, Nest, PackedDimension
from ilang.core.ir.shaped import Assignment, Read, Tensor
from ilang.core.passes.scope import Frame
from ilang.core.passes.storage import Storage
from ilang.core.record import record, replace


@record
class Copy:
    """The loops that fill a copy, as an assignment and its nest.

    ``kept`` and ``dims`` are the dimensions of the copy (``scope.Place``), ``at`` how the loops walk each of them,
    ``source`` each dimension of the input from where they ``begin``, and ``leaves`` whether they may leave it there:
    then the copy has 0. The ``inner`` loops of strips have a text of their own where a strip is whole.
    """

    node: Assignment
    nest: Nest
    kept: tuple[LoopSteps, ...]
    dims: list[int]
    at: tuple[LoopSteps, ...]
    begin: tuple[Affine, ...]
    source: tuple[LoopSteps, ...]
    leaves: tuple[bool, ...]
    inner: int

    def content(self, value: int, outside: Mapping[Loop, VariableId | None]) -> Hashable:
        """A key of the elements of a copy, whoever reads it: copies with one key at one place are one.

        Args:
            value: what is copied.
            outside: the variables of loops around the copy.
        """
        places = {loop: number for number, loop in enumerate(self.nest.order)}

        def walked(steps: LoopSteps) -> Hashable:
            return tuple(
                (step, (0, places[loop]) if loop in places else (1, outside[loop]))
                for step, loop in steps
            )

        lengths = tuple(
            (self.nest.factors[x.axis], self.node.sizes[x.axis], x.part) for x in places
        )
        indices = (tuple(map(walked, each)) for each in (self.at, self.source))
        return "copy", value, tuple(self.dims), lengths, *indices, self.begin, self.leaves


def copy_of(
    storage: Storage,
    tensor: Tensor,
    reader: Frame,
    read: Read,
    packed: Sequence[PackedDimension],
    home: Container[Loop],
) -> Copy:
    """The loops that fill a copy, the reader's where a dimension is one of them, else of their own; what they read.

    Args:
        storage: the sizes of the program.
        tensor: what is copied.
        reader: what reads it.
        read: by which indices.
        packed: the dimensions of the copy.
        home: the loops of the reader outside the place.
    """
    node, nest = reader.node, reader.nest
    order: list[Loop] = []
    sizes: list[int] = []
    source = [_outside(nest, index, home) for index in read.index]
    kept: list[PackedDimension] = []
    dims: list[int] = []
    for entry in packed:
        loop = entry.plain
        if (
            loop is not None and loop in order
        ):  # a diagonal: one loop walks two dimensions of the input
            source[entry.dim].append((entry.step, loop))
            continue
        kept.append(entry)
        dims.append(storage.number(entry.extent))
        if loop is None:
            loop = Loop(len(node.axes) + len(sizes))
            sizes.append(dims[-1])
        order.append(loop)
        source[entry.dim].append((entry.step, loop))
    axes = tuple(Axis(f"{tensor.name}_{e.dim}", None, node.span) for e in packed if e.plain is None)
    copy = replace(
        node,
        axes=(*node.axes, *axes),
        sizes=(*node.sizes, *sizes),
        target=(),
        reads=(),
        scalar=Operand(0, tensor.dtype),
        acc=None,
    )
    plain = Nest(nest.factors + ((),) * len(sizes), tuple(order), ())
    is_plain = len(kept) == len(packed)
    strips = _in_strips(storage, tensor, plain, kept) if is_plain else None
    filling = strips or (_across(storage, tensor, plain, kept) if is_plain else plain)
    return Copy(
        copy,
        filling,
        tuple(entry.steps for entry in kept),
        dims,
        tuple(_in_parts(plain, filling, [(1, loop)]) for loop in order),
        tuple(_begin(reader, index) for index in read.index),
        tuple(_in_parts(plain, filling, terms) for terms in source),
        tuple(
            bool(index.variables())
            and (index.axis() is None or any(axis in reader.origin for axis in index.variables()))
            for index in read.index
        ),
        2 if strips else 0,
    )


def _in_strips(
    storage: Storage, tensor: Tensor, nest: Nest, packed: Sequence[PackedDimension]
) -> Nest | None:
    """The loops of a copy in strips narrower than a line; None where it has none.

    The copy goes by as many rows at a time as the nearest cache has ways, since it keeps so many lines a page apart.

    Args:
        storage: the sizes of the program.
        tensor: what is copied.
        nest: a loop per dimension of the copy, in their order.
        packed: the dimensions of the copy.
    """
    core = storage.machine.core
    if len(packed) < 3 or core is None:
        return None
    strip, row, inside = (nest.order[-1], nest.order[-2], packed[-1].plain)
    width = fixed(storage.sizes, packed[-1].extent)
    last = len(tensor.dims) - 1
    strips = [
        loop
        for loop, entry in zip(nest.order[:-2], packed, strict=False)
        if entry.plain is not None and (entry.dim, loop.axis) == (last, strip.axis)
    ]
    narrow = width is not None and width * BYTES[tensor.dtype] < storage.machine.memory.line_bytes
    if inside is None or packed[-1].dim != last or not strips or not narrow:
        return None
    if nest.factors[row.axis] or row.axis == strip.axis:
        return None
    factors = list(nest.factors)
    factors[row.axis] = (core.cache_bytes[0] // core.way_bytes[0],)
    others = [loop for loop in nest.order[:-2] if loop not in strips]
    order = (*others, row, *strips, Loop(row.axis, 1), strip)
    return Nest(tuple(factors), order, ())


def _across(
    storage: Storage, tensor: Tensor, nest: Nest, packed: Sequence[PackedDimension]
) -> Nest:
    """The loops of a copy; what walks the memory of its source stands beside the innermost one, if that does not.

    The last lines that were read are then read to their ends, and vectors transpose what is between both loops.
    """
    last = len(tensor.dims) - 1
    walks = {
        loop: 1 if entry.plain is None else entry.step
        for loop, entry in zip(nest.order, packed, strict=True)
        if entry.dim == last
    }
    if not walks or nest.order[-1] in walks or storage.machine.device is not None:
        return nest
    others = [loop for loop in nest.order[:-1] if loop not in walks]
    along = sorted(walks, key=lambda loop: -walks[loop])
    return Nest(nest.factors, (*others, *along, nest.order[-1]), ())


def _in_parts(plain: Nest, filling: Nest, terms: Sequence[tuple[int, Loop]]) -> LoopSteps:
    """Steps of the plain loops as those of the loops that fill a copy: of parts, where these split an axis."""
    steps: list[tuple[int, Loop]] = []
    for step, loop in terms:
        if filling.factors[loop.axis] == plain.factors[loop.axis]:
            steps.append((step, loop))
        else:
            steps += ((step * filling.weight(part), part) for part in filling.parts(loop.axis))
    return tuple(steps)


def _outside(nest: Nest, index: Affine, home: Container[Loop]) -> list[tuple[int, Loop]]:
    """The loops outside the place that walk an index, with their steps."""
    return [
        (c * nest.weight(loop), loop)
        for c, axis in index.steps()
        for loop in nest.parts(axis)
        if loop in home
    ]


def _begin(reader: Frame, index: Affine) -> Affine:
    """An index where all loops of the reader are at their first iteration."""
    begin = replace(index.without(index.variables()), window=index.axis() is None)
    for c, axis in index.steps():
        if axis in reader.origin:
            origin = reader.origin[axis].index
            begin = begin + c * origin
            begin = replace(begin, window=True)
    return begin
