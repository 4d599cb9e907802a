"""Copies of what a reader reads: the assignment that fills one, whose dimensions the schedule says."""

from __future__ import annotations

from collections.abc import Container, Sequence

from ilang.core.ir.affine import Affine
from ilang.core.ir.graph import Axis
from ilang.core.ir.scalar import Operand
from ilang.core.ir.schedule import Loop, Nest, Packed
from ilang.core.ir.shaped import Assignment, Read, Tensor
from ilang.core.passes.scope import Frame, LoopIndex
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
    kept: tuple[LoopIndex, ...]
    dims: list[int]
    source: tuple[LoopIndex, ...]
    leaves: tuple[bool, ...]


def copy_of(
    storage: Storage,
    tensor: Tensor,
    reader: Frame,
    read: Read,
    packed: Sequence[Packed],
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
    kept: list[Packed] = []
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
    factors = nest.factors + ((),) * len(sizes)
    walks = tuple(
        LoopIndex(tuple(terms), _begin(reader, index))
        for terms, index in zip(source, read.index, strict=True)
    )
    return Copy(
        copy,
        Nest(factors, tuple(order), ()),
        tuple(LoopIndex(entry.walk, None) for entry in kept),
        dims,
        walks,
        tuple(
            bool(index.terms)
            and (index.axis() is None or any(axis in reader.origin for _, axis in index.terms))
            for index in read.index
        ),
    )


def _outside(nest: Nest, index: Affine, home: Container[Loop]) -> list[tuple[int, Loop]]:
    """The loops outside the place that walk an index, with their steps."""
    return [
        (c * nest.weight(loop), loop)
        for c, axis in index.terms
        for loop in nest.parts(axis)
        if loop in home
    ]


def _begin(reader: Frame, index: Affine) -> Affine:
    """What an index is where all loops of the reader are at their first iteration."""
    begin = replace(index, terms=(), window=index.window or index.axis() is None)
    for c, axis in index.terms:
        if axis in reader.origin:
            origin = reader.origin[axis].index
            begin = begin.plus(((c * s, v) for s, v in origin.terms), c * origin.offset)
            begin = replace(begin, window=True)
    return begin
