"""Intervals of a staged value: what the loops below its place read of it through affine indices.

Example, three rows of t for each i:
    in:   t = x[p,j] || p j      out = sum t[i+u,j] over u || i 0 j u
    out:  for i: { for p in 0..3: t[p,j] = x[i+p,j];  for j: for u: out[i,j] += t[u,j] }

Through an affine index nothing fuses (SCHEDULES, section 4, rule 1): the loops of the producer walk the interval, and
its storage has the extent of one. An interval may leave the dimension at its ends; what is there is never computed.
"""

from __future__ import annotations

from collections.abc import Iterable

from ilang.core.ir.affine import Affine
from ilang.core.ir.schedule import Loop
from ilang.core.ir.shaped import Assignment, Read
from ilang.core.passes.scope import Frame, Origin, Place, Scope, Walk, Window
from ilang.core.passes.storage import Storage
from ilang.core.record import replace


def windows_of(
    storage: Storage, reader: Frame, read: Read, made: Assignment, site: Scope, shared: set[int]
) -> tuple[Window, ...]:
    """The intervals that a read needs of what is computed at a site.

    Args:
        storage: the sizes of the program.
        reader: what reads it.
        read: by which indices.
        made: what computes it.
        site: where.
        shared: the axes of the producer that have loops of the reader; they walk no interval of their own.
    """
    found = []
    for dim, (target, index) in enumerate(zip(made.target, read.index, strict=True)):
        axis, ours = target.axis(), index.axis()
        if axis is None or axis in shared or (ours is not None and ours not in reader.origin):
            continue
        window = _window(storage, reader, index, made.sizes[axis], site)
        if window is not None:
            found.append(Window(dim, axis, *window))
    return tuple(found)


def _window(
    storage: Storage, reader: Frame, index: Affine, whole: int, site: Scope
) -> tuple[Origin, int, Walk] | None:
    """The interval of an index; None where it runs backwards, or begins at what a site cannot know."""
    nest = reader.nest
    begin, below, offset, before = [], [], index.offset, index.offset < 0
    for c, axis in index.terms:
        origin = reader.origin.get(axis)
        if origin is not None:
            begin += [(c * step, variable) for step, variable in origin.index.terms]
            offset += c * origin.index.offset
            before |= origin.before or c < 0
        for loop in nest.parts(axis):
            scope = reader.home.get(loop)
            if scope is not None and site.is_inside(scope):
                begin.append((c * nest.weight(loop), reader.variable(loop)))
            else:
                below.append((c * nest.weight(loop), loop))
    known = set(_variables(site))
    if index.sizes or any(c < 0 for c, _ in below) or any(v not in known for _, v in begin):
        return None
    size = _extent(storage, reader, below, whole)
    before |= any(c < 0 for c, _ in begin)
    origin = Origin(Affine(tuple(begin), offset), whole, before)
    return origin, size, Walk(tuple(below), None)


def begins_known(reader: Frame, read: Read, site: Scope) -> bool:
    """Whether the intervals that a read walks begin at an index that is known at a site."""
    axes = {axis for index in read.index for _, axis in index.terms}
    begins = [reader.origin[axis].index for axis in axes if axis in reader.origin]
    return {v for begin in begins for _, v in begin.terms} <= set(_variables(site))


def _variables(site: Scope) -> Iterable[int]:
    """The variables of the loops open at a site."""
    here: Scope | None = site
    while here is not None:
        if here.variable is not None:
            yield here.variable
        here = here.parent


def _extent(storage: Storage, reader: Frame, below: list[tuple[int, Loop]], whole: int) -> int:
    """The size number of one more than what loops reach; that of an axis where they are all of it."""
    node, nest = reader.node, reader.nest
    if not below:
        return storage.constant(1)
    axes = {loop.axis for _, loop in below}
    if len(axes) == 1:
        (axis,) = axes
        if tuple(below) == tuple((nest.weight(loop), loop) for loop in nest.parts(axis)):
            return node.sizes[axis]
    reach = [
        (c, storage.part(node.sizes[loop.axis], nest.factors[loop.axis], loop.part))
        for c, loop in below
    ]
    if len(reach) == 1 and reach[0][0] == 1:
        return reach[0][1]
    return storage.window(reach, storage.sizes[whole].name)


def seen(place: Place, windows: tuple[Window, ...]) -> Place:
    """A place as the reader sees it: by its own loops below the site."""
    walks = {window.dim: window.walk for window in windows}
    dims = tuple(
        walks.get(entry[0], entry) if not isinstance(entry, Walk) else entry for entry in place.dims
    )
    return replace(place, dims=dims)
