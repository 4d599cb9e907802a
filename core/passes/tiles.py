"""Register tiles: which loops of a reduction can keep its accumulators in registers.

Example:
    in:   for k: for i' in 0..8: for j' in 0..32: acc[i',j'] += ...
    out:  tile t[8,32] = 0;  for k: for i': for j': t[i',j'] += ...;  then acc[i',j'] += t[i',j']

Output loops of constant extent inside the reduced loops are the tile; the reduced loops around them are its core.
"""

from __future__ import annotations

from math import prod

from ilang.core.dtype import FLOATS
from ilang.core.ir.affine import Affine, Within
from ilang.core.ir.schedule import Loop
from ilang.core.passes.scope import Frame
from ilang.core.passes.storage import Storage
from ilang.core.record import record, replace
from ilang.core.schedule.choose.tile import MOST_TERMS


@record
class Shape:
    """The loops of a tiled reduction, outermost first: those outside, the reduced core, and those of the tile.

    Where all outside are reduced, and nothing is computed between them, they are ``blocks`` of the tile instead.
    """

    head: tuple[Loop, ...]
    blocks: tuple[Loop, ...]
    core: tuple[Loop, ...]
    lanes: tuple[Loop, ...]
    dims: tuple[int, ...]
    dtype: str

    def with_head(self) -> Shape:
        """The same without blocks."""
        return replace(self, head=self.head + self.blocks, blocks=())


def tile_shape(frame: Frame, storage: Storage, loops: list[Loop], dtype: str) -> Shape | None:
    """How a reduction over ``loops``, the first of them reduced, is tiled; None where it is not.

    Args:
        frame: the reduction.
        storage: the sizes of the program.
        loops: its own loops from the outermost reduced one on.
        dtype: the element type of its result.
    """
    node, nest = frame.node, frame.nest
    reduced = set(node.reduced_axes())
    last = max(n for n, loop in enumerate(loops) if loop.axis in reduced)
    sizes = [storage.part(node.sizes[x.axis], nest.factors[x.axis], x.part) for x in loops]
    fixed = [storage.sizes[size].fixed for size in sizes]
    first = _core(loops, fixed, reduced, last)
    core, lanes = tuple(loops[first : last + 1]), tuple(loops[last + 1 :])
    most = storage.machine.tiles.most_elements
    elements = prod(extent or most + 1 for extent in fixed[last + 1 :])
    between = {nest.order.index(loop) + 1 for loop in lanes[:-1]}
    if any(loop.axis in frame.origin for loop in (*core, *lanes)):
        return None
    if not lanes or elements > most or between & set(nest.sites):
        return None
    ragged = [
        x.axis for x in lanes if not storage.divides(node.sizes[x.axis], nest.factors[x.axis])
    ]
    if len(set(ragged)) < len(ragged):
        return None  # where the inner part ends depends on the outer one, which the tile has no name for outside
    terms = prod(extent or MOST_TERMS + 1 for extent in fixed[first : last + 1])
    exact = terms > MOST_TERMS or dtype not in FLOATS
    head = tuple(loops[:first])
    staged = {nest.order.index(loop) + 1 for loop in head} & set(nest.sites)
    apart = len({x.axis for x in head}) == len(head)  # else one ends where the other says
    added = node.acc == "+" and not exact and not staged and apart
    added = added and all(x.axis in reduced for x in head)
    return Shape(
        () if added else head,
        head if added else (),
        core,
        lanes,
        tuple(sizes[last + 1 :]),
        node.acc_dtype if exact else dtype,
    )


def _core(loops: list[Loop], fixed: list[int | None], reduced: set[int], last: int) -> int:
    """Where the core starts: reduced loops up to ``last`` that sum few terms, or all where that is not known."""
    start = last
    while start > 0 and loops[start - 1].axis in reduced:
        start -= 1
    first, terms = last + 1, 1
    while first > start:
        terms *= fixed[first - 1] or MOST_TERMS + 1
        if terms > MOST_TERMS:
            break
        first -= 1
    return first if first <= last else start


@record
class Strand:
    """A reduction whose innermost loops are reduced, few and constant: those outside, output loops, the few."""

    head: tuple[Loop, ...]
    outputs: tuple[Loop, ...]
    core: tuple[Loop, ...]
    dtype: str


def strand_shape(frame: Frame, storage: Storage, loops: list[Loop], dtype: str) -> Strand | None:
    """How the innermost terms of a reduction are summed before they meet the accumulator; None where they are not.

    The arguments are those of ``tile_shape``.
    """
    node, nest = frame.node, frame.nest
    reduced = set(node.reduced_axes())
    sizes = [storage.part(node.sizes[x.axis], nest.factors[x.axis], x.part) for x in loops]
    first, terms = len(loops), 1
    while first > 0 and loops[first - 1].axis in reduced:
        terms *= storage.sizes[sizes[first - 1]].fixed or MOST_TERMS + 1
        if terms > storage.machine.tiles.unrolled_terms:
            break
        first -= 1
    start = first
    while start > 0 and loops[start - 1].axis not in reduced:
        start -= 1
    between = {nest.order.index(loop) + 1 for loop in loops[start:-1]}
    if first in (0, len(loops)) or start in (0, first) or between & set(nest.sites):
        return None
    if dtype not in FLOATS or any(loop.axis in frame.origin for loop in loops[start:]):
        return None
    return Strand(tuple(loops[:start]), tuple(loops[start:first]), tuple(loops[first:]), dtype)


def full(frame: Frame, storage: Storage, loops: tuple[Loop, ...]) -> tuple[Within, ...]:
    """That every iteration of constant loops is inside its dimension, given the parts in scope."""
    found = []
    for axis in dict.fromkeys(loop.axis for loop in loops):
        nest, size = frame.nest, frame.node.sizes[axis]
        if not nest.factors[axis] or storage.divides(size, nest.factors[axis]):
            continue
        inside = [loop for loop in nest.parts(axis) if loop in loops]
        extents = [storage.part(size, nest.factors[axis], loop.part) for loop in inside]
        reach = sum(
            nest.weight(loop) * ((storage.sizes[n].fixed or 1) - 1)
            for loop, n in zip(inside, extents, strict=True)
        )
        outside = [loop for loop in nest.parts(axis) if loop not in loops]
        terms = tuple((nest.weight(loop), frame.variable(loop)) for loop in outside)
        found.append(Within(Affine(terms, reach), size))
    return tuple(found)
