"""The price of a written schedule of a reduction, by the model of the candidates that prices compare.

A reduction whose sums are a tile of rows and lanes in registers has the price of a tile, any other one that of loops.
Copies are made where they are written, and what the price lacks is said.

Example, ``ik*kj~ijk | i:4,j:16 | j 1 i k i' j' >> +ijk~ij | i:4,j:16 | j i k i' j' 0``:
    in:   the sum, a tile of 4 by 16
    out:  the price of a tile, which reads in0[i,k] in place and in1[k,j] from a copy inside of j
"""

from __future__ import annotations

from collections.abc import Iterator

from ilang.core.dtype import FLOATS
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Chunks, Nest, RegisterTile, Scheduled, unscheduled
from ilang.core.ir.shaped import Assignment, Read
from ilang.core.schedule.choose.accesses import Access
from ilang.core.schedule.choose.loop_cost import LoopPrice
from ilang.core.schedule.choose.packing import TileAxes
from ilang.core.schedule.choose.terms import MOST_TERMS
from ilang.core.schedule.choose.tile_cost import Price, TilePrice
from ilang.core.schedule.fuse import mapping

ROUGH = (
    "The price of a contraction without a tile of rows and lanes in registers is rough: it may be off"
    " by a factor of 5."
)
"""Products of 512 by 512 with written loops of five such kinds took between 0.2 and 4 times what it says."""


def written_price(
    scheduled: Scheduled, value: int, extents: Extents, may_be_tile: bool
) -> tuple[Price, bool, tuple[str, ...]]:
    """The price of the schedule that a reduction has in a program, whether a tile's, and sentences on what it lacks.

    The price is one of loops, unless the reduction ``may_be_tile``.
    """
    node, nest = scheduled.assigned(value)
    operands = _Operands(scheduled)
    operands.read(value, {}, {})
    lengths = [extents.usual(size) for size in node.sizes]
    tile = _tile(scheduled, value)
    lacks = [*operands.lacks, *_unpriced(nest)]
    pair = _rows_and_lanes(node, tile) if may_be_tile else None
    if pair is None:
        lacks += [ROUGH] if may_be_tile else []
        loops = LoopPrice(node, lengths, nest, scheduled.machine)
        price = loops.price(tuple(operands.sites), operands.sites)
        return price, False, tuple(lacks)
    if tile is not None and tile.dtype != node.scalar.dtype:
        lacks.append(
            f"More than {MOST_TERMS} terms are added in {tile.dtype}: the price counts vectors of"
            f" {node.scalar.dtype}, which have twice as many lanes."
        )
    axes = TileAxes(*pair, False, {}, 0, 0)
    tiles = TilePrice(node, lengths, nest, axes, scheduled.machine)
    price = tiles.price(tuple(operands.sites), operands.sites)
    return price, True, tuple(lacks)


class _Operands:
    """The operands of the innermost iteration of a reduction, with the loops around copies, and what is not counted."""

    def __init__(self, scheduled: Scheduled) -> None:
        self.scheduled = scheduled
        self.sites: dict[Access, int | None] = {}
        self.lacks: list[str] = []

    def read(self, value: int, axes: dict[int, int], depths: dict[int, int]) -> None:
        """Note what an assignment reads: its axes, and numbers of loops around, in those of the reduction."""
        node, nest = self.scheduled.assigned(value)
        for number, (read, site) in enumerate(zip(node.reads, nest.sites, strict=True)):
            producer = self.scheduled.shaped.nodes[read.value]
            staged = nest.staged(number) if isinstance(producer, Assignment) else None
            if isinstance(producer, Assignment) and staged == len(nest.order):
                is_plain = len(mapping(producer, read)) == len(producer.output_axes())
                if producer.acc is None and is_plain:
                    self._inside(read, producer, nest, axes, depths)
                    continue
            index = tuple(part.renamed(axes) for part in read.index) if axes else read.index
            copied = None if site is None or staged is not None else depths.get(site, site)
            self.sites.setdefault(index, copied)
            self._note(producer, staged)

    def _inside(
        self,
        read: Read,
        producer: Assignment,
        nest: Nest,
        axes: dict[int, int],
        depths: dict[int, int],
    ) -> None:
        """Note what is read by what the innermost loop computes."""
        _, inner = self.scheduled.assigned(read.value)
        pairs = mapping(producer, read)
        around, at = {0: 0}, 0
        for depth, loop in enumerate(inner.order, 1):
            outer = pairs.get(loop.axis)
            at = next(
                (
                    n
                    for n, each in enumerate(nest.order, 1)
                    if (each.axis, each.part) == (outer, loop.part)
                ),
                at,
            )
            around[depth] = depths.get(at, at)
        renamed = {axis: axes.get(outer, outer) for axis, outer in pairs.items()}
        self.read(read.value, renamed, around)

    def _note(self, producer: object, staged: int | None) -> None:
        """Note that something that the schedule places is not counted."""
        if isinstance(producer, Assignment):
            place = "before" if staged is None else "inside of its loops"
            self.lacks.append(f"`{unscheduled(producer)}`, computed {place}, is not counted.")


def _tile(scheduled: Scheduled, value: int) -> RegisterTile | None:
    for group in scheduled.groups:
        for instance in group.plan.instances:
            held = instance.accumulation
            if isinstance(held, Chunks):
                held = held.each
            if instance.value == value and isinstance(held, RegisterTile):
                return held
    return None


def _rows_and_lanes(node: Assignment, tile: RegisterTile | None) -> tuple[int, int] | None:
    """The axes of a tile of rows and lanes; None where it is another one."""
    if tile is None or len(tile.elements) != 2 or node.scalar.dtype not in FLOATS:
        return None
    rows, lanes = (loop.axis for loop in tile.elements)
    return (rows, lanes) if node.acc == "+" and rows != lanes else None


def _unpriced(nest: Nest) -> Iterator[str]:
    """The parts of a schedule that have no price."""
    roles = sorted({role for role in nest.roles if role})
    if roles:
        yield f"Roles of loops have no price: {', '.join(f'`{role}`' for role in roles)}."
    if nest.start is not None:
        yield "The start `!` has no price."
