"""Copies of what a reader reads of an input: which dimensions they keep, and the assignment that fills them."""

from __future__ import annotations

from collections.abc import Mapping

from ilang.core.ir.affine import Affine
from ilang.core.ir.graph import Axis
from ilang.core.ir.scalar import Operand
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment, Read, Tensor
from ilang.core.passes.scope import Frame, Scope, Walk
from ilang.core.passes.storage import Storage
from ilang.core.record import record, replace


@record
class Copy:
    """The loops that fill a copy, as an assignment and its nest.

    ``kept`` and ``dims`` are the dimensions of the copy (``scope.Place``), ``source`` how the loops walk each dimension
    of the input, and ``leaves`` whether they may leave it there: then the copy has 0.
    """

    node: Assignment
    nest: Nest
    kept: tuple[Walk, ...]
    dims: list[int]
    source: tuple[Walk, ...]
    leaves: tuple[bool, ...]


@record
class _Dimension:
    """A dimension of a copy: the input's, the loops that walk it with their steps, and its extent.

    ``plain`` is the one loop part that it is, where it is no more than that, and ``step`` its step in the input.
    """

    dim: int
    walk: Walk
    size: int
    plain: Loop | None
    step: int


def copy_of(
    storage: Storage, tensor: Tensor, reader: Frame, read: Read, home: Mapping[Loop, Scope]
) -> Copy:
    """The tile that the loops below a site read, a dimension per loop, in the order in which they read it.

    An axis whose parts follow each other is one dimension, as is an affine group: the window that it reaches. Each
    loop of a group that is walked backwards has a dimension of its own.

    Args:
        storage: the sizes of the program.
        tensor: the input.
        reader: what reads it.
        read: by which indices.
        home: the loops of the reader outside the site.
    """
    nest = reader.nest
    below = [loop for loop in nest.order if loop not in home]
    found: list[_Dimension] = []
    for d, index in enumerate(read.index):
        steps = [
            (c * nest.weight(loop), loop)
            for c, axis in index.terms
            for loop in nest.parts(axis)
            if loop in below
        ]
        for walk in _walks(index, steps, below, nest):
            size = _extent(storage, reader, walk, tensor.dims[d])
            loop = walk.terms[0][1]
            falls = any(step < 0 for step, _ in steps)
            single = (falls or index.axis() is not None) and len(walk.terms) == 1
            step = {part: step for step, part in steps}[loop] if single else 1
            found.append(_Dimension(d, walk, size, loop if single else None, step))
    found.sort(key=lambda entry: max(below.index(loop) for _, loop in entry.walk.terms))
    return _copy(reader, read, tensor, found, home)


def _walks(
    index: Affine, steps: list[tuple[int, Loop]], below: list[Loop], nest: Nest
) -> list[Walk]:
    """The dimensions that the copy has for one of the input."""
    if not steps:
        return []
    axis = index.axis()
    if axis is None and all(step > 0 for step, _ in steps):
        return [Walk(tuple(steps), None)]
    if axis is None:  # a window that is walked backwards: a dimension per loop
        return [Walk(((1, loop),), None) for _, loop in steps]
    first = below.index(steps[0][1])
    if tuple(below[first : first + len(steps)]) == nest.parts(axis):
        return [Walk(tuple(steps), None)]
    return [Walk(((1, loop),), None) for _, loop in steps]


def _extent(storage: Storage, reader: Frame, walk: Walk, whole: int) -> int:
    """The extent of a dimension of a copy: of a whole axis the input's, of a window what its loops reach."""
    node, nest = reader.node, reader.nest
    if len({loop.axis for _, loop in walk.terms}) == 1:
        axis = walk.terms[0][1].axis
        if len(walk.terms) == len(nest.parts(axis)) and walk.terms[-1][0] == 1:
            return node.sizes[axis]
    reach = [
        (abs(c), storage.part(node.sizes[loop.axis], nest.factors[loop.axis], loop.part))
        for c, loop in walk.terms
    ]
    if len(reach) == 1 and reach[0][0] == 1:
        return reach[0][1]
    return storage.window(reach, storage.sizes[whole].name)


def _copy(
    reader: Frame, read: Read, tensor: Tensor, found: list[_Dimension], home: Mapping[Loop, Scope]
) -> Copy:
    """The loops that fill a copy, the reader's where a dimension is one of them, else of their own; what they read."""
    node, nest = reader.node, reader.nest
    order: list[Loop] = []
    sizes: list[int] = []
    source: list[list[tuple[int, Loop]]] = [
        [
            (c * nest.weight(loop), loop)
            for c, axis in index.terms
            for loop in nest.parts(axis)
            if loop in home
        ]
        for index in read.index
    ]
    kept = []
    for entry in found:
        loop = entry.plain
        if (
            loop is not None and loop in order
        ):  # a diagonal: one loop walks two dimensions of the input
            source[entry.dim].append((entry.step, loop))
            continue
        kept.append(entry)
        if loop is None:
            loop = Loop(len(node.axes) + len(sizes))
            sizes.append(entry.size)
        order.append(loop)
        source[entry.dim].append((entry.step, loop))
    axes = tuple(Axis(f"{tensor.name}_{e.dim}", None, node.span) for e in found if e.plain is None)
    copy = replace(
        node,
        axes=(*node.axes, *axes),
        sizes=(*node.sizes, *sizes),
        target=(),
        reads=(),
        scalar=Operand(0, tensor.dtype),
        acc=None,
    )
    factors = nest.factors + ((),) * len(sizes)
    walks = tuple(
        Walk(tuple(terms), _begin(reader, index))
        for terms, index in zip(source, read.index, strict=True)
    )
    return Copy(
        copy,
        Nest(factors, tuple(order), ()),
        tuple(entry.walk for entry in kept),
        [entry.size for entry in kept],
        walks,
        tuple(
            bool(index.terms)
            and (index.axis() is None or any(axis in reader.origin for _, axis in index.terms))
            for index in read.index
        ),
    )


def _begin(reader: Frame, index: Affine) -> Affine:
    """What an index is where all loops of the reader are at their first iteration."""
    begin = replace(index, terms=(), window=index.window or index.axis() is None)
    for c, axis in index.terms:
        if axis in reader.origin:
            origin = reader.origin[axis].index
            begin = begin.plus(((c * s, v) for s, v in origin.terms), c * origin.offset)
            begin = replace(begin, window=True)
    return begin
