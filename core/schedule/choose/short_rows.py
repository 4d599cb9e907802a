"""Rows that are shorter than vectors, several of them side by side in lanes: rule 9 of the choice.

A loop along such a row is all tail, and a step that takes long, as a maximum or an exponential, waits for the last one.
Lanes take the same element of as many rows; what is read by rows is copied before, transposed in vectors.

Example, ``>ij~i`` of 1000 rows of 9:
    in:   out = max in0[i,j] over j, loops i j
    out:  out | i:64 | i 0 j i'     0: a copy of 64 rows of in0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.ir.scalar import Apply, scalars_within
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ir.size_class import Extents
from ilang.core.machine import Machine
from ilang.core.ops import SLOW
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
    """The rows that each value has in lanes: reductions that wait, and what may share a kernel with them."""
    rows_of: list[Across | None] = []
    for value, node in enumerate(shaped.nodes):
        rows_of.append(None)
        if isinstance(node, Assignment) and _is_free(node) and tilings.found(value) is None:
            order = strided_order(node, accesses[value], extents, machine)
            rows_of[-1] = _rows(node, accesses[value], order, extents, machine)
    lanes_of = _waiting(shaped, rows_of, extents, machine)
    if not any(lanes_of):
        return tuple(lanes_of)
    for value, reader, pairs in reversed([*_pairs(shaped, inlining)]):
        rows, lanes = rows_of[value], lanes_of[reader]
        if rows is not None and lanes is not None and pairs.get(rows.last) == lanes.last:
            lanes_of[value] = rows
    for value, reader, pairs in _pairs(shaped, inlining):
        lanes, node = lanes_of[value], shaped.nodes[reader]
        axis = None if lanes is None else pairs.get(lanes.last)
        if axis is None or lanes_of[reader] is not None or tilings.found(reader) is not None:
            continue
        rows = rows_of[reader]
        assert isinstance(node, Assignment)
        if rows is None and strided_order(node, accesses[reader], extents, machine)[-1] == axis:
            rows = Across(-1, axis)
        if rows is not None and rows.last == axis and _is_free(node):
            lanes_of[reader] = rows
    return tuple(lanes_of)


def _waiting(
    shaped: Shaped, rows_of: Sequence[Across | None], extents: Extents, machine: Machine
) -> list[Across | None]:
    """The rows of reductions that wait.

    Where rows are written that rest on a reduction, these would be stored across. In a row of a vector for each
    reduction that takes longer than to wait, unless it is for functions.
    """
    linked, written = _linked(shaped), _written(shaped, rows_of)
    waiting: list[Across | None] = [None] * len(rows_of)
    for value, (node, rows) in enumerate(zip(shaped.nodes, rows_of, strict=True)):
        if rows is None or not isinstance(node, Assignment):
            continue
        if rows.other not in node.reduced_axes():
            continue
        length = extents.fixed(node.sizes[rows.other]) or 0
        is_across = written[value] and (1 + linked[value]) * machine.sum_lanes <= length
        waits = not is_across and _waits(node, length, machine.sum_lanes, linked[value])
        waiting[value] = rows if waits or _is_slow(shaped, node) else None
    return waiting


def _is_free(node: Assignment) -> bool:
    """Whether no result depends on the order of loops, as where several iterations store one element."""
    return node.base is None and not node.scatters()


def _linked(shaped: Shaped) -> list[bool]:
    """Whether each value rests on the result of a reduction, or a reduction on it."""
    reads = [
        [read.value for read in node.reads] if isinstance(node, Assignment) else []
        for node in shaped.nodes
    ]
    reduces = [isinstance(n, Assignment) and bool(n.reduced_axes()) for n in shaped.nodes]
    after, before = list[bool](), [False] * len(reads)
    for values in reads:
        after.append(any(after[value] or reduces[value] for value in values))
    for reader, values in reversed([*enumerate(reads)]):
        for value in values:
            before[value] |= reduces[reader] or before[reader]
    return [late or early for late, early in zip(after, before, strict=True)]


def _written(shaped: Shaped, rows_of: Sequence[Across | None]) -> list[bool]:
    """Whether short rows are written that rest on each value."""
    written = [False] * len(rows_of)
    for value, node in reversed([*enumerate(shaped.nodes)]):
        if isinstance(node, Assignment):
            rows = rows_of[value]
            written[value] |= rows is not None and rows.other in node.output_axes()
            for read in node.reads:
                written[read.value] |= written[value]
    return written


def _pairs(shaped: Shaped, inlining: Inlining) -> Iterator[tuple[int, int, dict[int, int]]]:
    """Values that may be staged and their readers, in the order of the readers, with the reader's axes of theirs."""
    for reader, node in enumerate(shaped.nodes):
        for read in node.reads if isinstance(node, Assignment) else ():
            producer = shaped.nodes[read.value]
            if isinstance(producer, Assignment) and read.value not in inlining.kept:
                yield read.value, reader, mapping(producer, read)


def across(
    node: Assignment, order: Sequence[int], rows: Across, machine: Machine
) -> tuple[Factors, tuple[Loop, ...]]:
    """The splits and loops of an assignment by itself, whose ``order`` has rows innermost: blocks of them outside."""
    factors: list[tuple[int, ...]] = [()] * len(order)
    factors[rows.last] = machine.tiles.block[1:]
    reduced, last = node.reduced_axes(), len(order) - (1 if rows.other < 0 else 2)
    at = next((n for n, axis in enumerate(order) if axis in reduced), last)
    outer, inner = (map(Loop, axes) for axes in (order[:at], order[at:-1]))
    return tuple(factors), (*outer, Loop(rows.last), *inner, Loop(rows.last, 1))


def has_row_lanes(nest: Nest, rows: Across) -> bool:
    """Whether the innermost loops of a nest take an element of each row of a block, one place after the other."""
    is_inside = rows.other < 0 or nest.order[-2] == Loop(rows.other)
    return nest.order[-1] == Loop(rows.last, 1) and is_inside


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


def _waits(node: Assignment, length: int, lanes: int, is_linked: bool) -> bool:
    """Whether a reduction along rows of a length, 0 if that is not known, waits for the result so far.

    A sum waits where it ``is_linked`` with another reduction, and where vectors do not divide the row: the terms that
    they leave over are added one after the other. So does an extreme, unless its row has a vector or more.
    """
    if not length:
        return False
    if node.acc == "+":
        return is_linked or 0 < min(length % lanes, lanes % length)
    is_part = length < lanes and 0 < length % (lanes // 2)
    return node.acc in (">", "<") and (is_linked or is_part)


def _is_slow(shaped: Shaped, node: Assignment) -> bool:
    """Whether a reduction waits for functions, of which few make no vector."""
    nodes = (shaped.nodes[read.value] for read in node.reads)
    scalars = [node.scalar, *(each.scalar for each in nodes if isinstance(each, Assignment))]
    applied = (part for each in scalars for part in scalars_within(each) if isinstance(part, Apply))
    return any(part.primitive in SLOW for part in applied)
