"""Rows that are shorter than vectors, several of them side by side in lanes: rule 9 of the choice.

A loop along such a row is all tail, and a step that takes long, as a maximum or an exponential, waits for the last one.
Lanes take the same element of as many rows; what is read by rows is copied before, transposed in vectors.

Example, ``>ij~i`` of 1000 rows of 9:
    in:   out = max in0[i,j] over j, loops i j
    out:  out | i:32 | i 0 j i'     0: a copy of 32 rows of in0
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.ir.scalar import Apply, scalars_within
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ir.size_class import Extents
from ilang.core.machine import Machine
from ilang.core.ops import COSTS
from ilang.core.schedule.choose.accesses import Accesses, strided_order
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.choose.packing import Across
from ilang.core.schedule.choose.tile import Factors
from ilang.core.schedule.choose.tilings import Tilings
from ilang.core.schedule.fuse import mapping


def short_rows(
    shaped: Shaped,
    inlining: Inlining,
    accesses: Sequence[Accesses],
    tilings: Tilings,
    extents: Extents,
    machine: Machine,
) -> tuple[Across | None, ...]:
    """The rows that each value has in lanes: where a step takes long, and what may share a kernel with that."""
    lanes_of: list[Across | None] = []
    for value, node in enumerate(shaped.nodes):
        rows = None
        if isinstance(node, Assignment) and node.base is None and not node.scatters():
            order = strided_order(node, accesses[value], extents, machine)
            rows = _rows(node, accesses[value], order, extents, machine)
            if rows is None or not _waits(node):
                followed = _followed(shaped, inlining, lanes_of, node)
                if rows is None and order and order[-1] in followed:
                    rows = Across(-1, order[-1])
                elif rows is not None and rows.last not in followed:
                    rows = None
        lanes_of.append(rows if tilings.found(value) is None else None)
    return tuple(lanes_of)


def across(
    node: Assignment, order: Sequence[int], rows: Across, machine: Machine
) -> tuple[Factors, tuple[Loop, ...]]:
    """The splits and loops of an assignment by itself, whose ``order`` has rows innermost: blocks of them outside."""
    factors: list[tuple[int, ...]] = [()] * len(order)
    factors[rows.last] = machine.tiles.block[:1]
    reduced, last = node.reduced_axes(), len(order) - (1 if rows.other < 0 else 2)
    at = next((n for n, axis in enumerate(order) if axis in reduced), last)
    outer, inner = (map(Loop, axes) for axes in (order[:at], order[at:-1]))
    return tuple(factors), (*outer, Loop(rows.last), *inner, Loop(rows.last, 1))


def has_row_lanes(nest: Nest, rows: Across) -> bool:
    """Whether the innermost loops of a nest take an element of each row of a block, one place after the other."""
    return nest.order[-2:] == (Loop(rows.other), Loop(rows.last, 1))


def _rows(
    node: Assignment,
    accesses: Accesses,
    order: Sequence[int],
    extents: Extents,
    machine: Machine,
) -> Across | None:
    """The short rows that an assignment reads or writes element by element in its innermost loop."""
    outputs = node.output_axes()
    for index in accesses:
        if len(index) < 2 or any(part.looked for part in index):
            continue
        rows, short = index[-2].axis(), index[-1].axis()
        if rows is None or rows not in outputs or short is None or order[-1] != short:
            continue
        count, length = (extents.fixed(node.sizes[axis]) for axis in (rows, short))
        most = machine.tiles.lanes * 3 // 4
        if count and length and machine.tiles.block[0] <= count and 1 < length <= most:
            return Across(short, rows)
    return None


def _waits(node: Assignment) -> bool:
    """Whether a step takes long: an extreme compares with the one before, a function has no vectors of a few."""
    applied = (part for part in scalars_within(node.scalar) if isinstance(part, Apply))
    return node.acc in (">", "<") or any(part.primitive in COSTS for part in applied)


def _followed(
    shaped: Shaped, inlining: Inlining, lanes_of: Sequence[Across | None], node: Assignment
) -> set[int]:
    """The axes of an assignment that walk the rows of what it reads, which has them in lanes and may be staged."""
    axes = set[int]()
    for read in node.reads:
        producer, lanes = shaped.nodes[read.value], lanes_of[read.value]
        is_staged = lanes is not None and read.value not in inlining.kept
        if is_staged and lanes is not None and isinstance(producer, Assignment):
            axes |= {mapping(producer, read).get(lanes.last, -1)}
    return axes
