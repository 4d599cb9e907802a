"""Copies of what a reader reads of an input: which dimensions they keep, and the assignment that fills them."""

from __future__ import annotations

from collections.abc import Mapping

from ilang.core.ir.affine import walks
from ilang.core.ir.graph import Axis
from ilang.core.ir.nest import Loop, Nest
from ilang.core.ir.scalar import Operand
from ilang.core.ir.shaped import Assignment, Read, Tensor
from ilang.core.passes.scope import Frame, Scope
from ilang.core.passes.storage import Storage
from ilang.core.record import record, replace

Entry = tuple[int, int | None] | Loop


@record
class Copy:
    """The assignment of a copy and its nest; ``kept`` and ``dims`` are the dimensions of the copy (``scope.Place``)."""

    node: Assignment
    nest: Nest
    kept: tuple[Entry, ...]
    dims: list[int]


def copy_of(
    storage: Storage, tensor: Tensor, reader: Frame, read: Read, home: Mapping[Loop, Scope]
) -> Copy:
    """The tile that the loops below a site read, a dimension per loop, in the order in which they read it.

    An axis whose parts follow each other is one dimension, as is a dimension that an affine group indexes.

    Args:
        storage: the sizes of the program.
        tensor: the input.
        reader: what reads it.
        read: by which indices.
        home: the loops of the reader outside the site.
    """
    node, nest = reader.node, reader.nest
    walked = {index.axis(): d for d, index in enumerate(read.index)}
    used = {axis for index in read.index for _, axis in index.terms}
    below = [loop for loop in nest.order if loop not in home and loop.axis in used]
    kept: list[Entry] = []
    dims: list[int] = []
    for position, loop in enumerate(below):
        whole: list[int] = []
        if loop.axis not in walked:
            whole = [
                d
                for d, index in enumerate(read.index)
                if index.axis() is None and any(axis == loop.axis for _, axis in index.terms)
            ]
        elif nest.factors[loop.axis] and _follow(below, position - loop.part, nest, loop.axis):
            whole = [walked[loop.axis]]
        else:
            kept.append(loop)
            dims.append(storage.part(node.sizes[loop.axis], nest.factors[loop.axis], loop.part))
        new: list[Entry] = [(d, None) for d in whole if (d, None) not in kept]
        kept += new
        dims += [tensor.dims[d] for d in whole if (d, None) in new]
    number = {
        entry[0]: len(node.axes) + n
        for n, entry in enumerate(e for e in kept if isinstance(e, tuple))
    }
    index = tuple(walks(number[d]) if d in number else part for d, part in enumerate(read.index))
    copy = replace(
        node,
        axes=(*node.axes, *(Axis(f"{tensor.name}_{d}", None, node.span) for d in number)),
        sizes=(*node.sizes, *(tensor.dims[d] for d in number)),
        target=(),
        reads=(Read(read.value, index),),
        scalar=Operand(0, tensor.dtype),
        acc=None,
    )
    order = tuple(e if isinstance(e, Loop) else Loop(number[e[0]]) for e in kept)
    factors = nest.factors + ((),) * len(number)
    return Copy(copy, Nest(factors, order, (None,)), tuple(kept), dims)


def _follow(below: list[Loop], start: int, nest: Nest, axis: int) -> bool:
    """Whether all parts of an axis stand one after the other from a position on."""
    parts = nest.parts(axis)
    return start >= 0 and tuple(below[start : start + len(parts)]) == parts
