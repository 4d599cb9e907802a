"""Rows that are shorter than vectors, several of them side by side in lanes: rule 9 of the choice.

A loop along such a row is all tail, and a step that takes long, as a maximum or an exponential, waits for the last one.
Lanes take the same element of as many rows; what is read by rows is copied before, transposed in vectors. Values that
may share a kernel have a price for both ways, in cycles of one core.

Example, ``>ij~i`` of 1000 rows of 9:
    in:   out = max in0[i,j] over j, loops i j
    out:  out | i:64 | i 0 j i'     0: a copy of 64 rows of in0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, prod

from ilang.core.calculus.affine import variables_of
from ilang.core.cost import cycles_of
from ilang.core.dtype import BYTES
from ilang.core.ir.scalar import Apply, scalars_within
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ir.size_class import Extents
from ilang.core.machine import Machine
from ilang.core.ops import SLOW
from ilang.core.schedule.choose.accesses import Accesses, loop_order, reads_of, strided_order
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.choose.loops import priced_loops
from ilang.core.schedule.choose.packing import Across
from ilang.core.schedule.choose.tile import Factors, narrowed
from ilang.core.schedule.choose.tilings import Tilings
from ilang.core.schedule.fuse import mapping

Link = tuple[int, int, dict[int, int]]
"""A value that may be staged, a reader, and the reader's axes of its own."""
Group = tuple[Mapping[int, Across], int | None]
"""The rows of values that are linked, and how many rows a block has where they go by blocks of them."""


def short_rows(
    shaped: Shaped,
    inlining: Inlining,
    accesses: Sequence[Accesses],
    tilings: Tilings,
    extents: Extents,
    machine: Machine,
) -> tuple[Across | None, ...]:
    """The rows that each value has in lanes: reductions of rows, and what may share a kernel with them, if it pays."""
    rows_of: list[Across | None] = []
    lanes_of: list[Across | None] = []
    for value, node in enumerate(shaped.nodes):
        rows_of.append(None)
        lanes_of.append(None)
        if isinstance(node, Assignment) and _is_free(node) and tilings.found(value) is None:
            order = strided_order(node, accesses[value], extents, machine)
            rows = rows_of[-1] = _rows(node, accesses[value], order, extents, machine)
            lanes_of[-1] = rows if rows and rows.other in node.reduced_axes() else None
    if not any(lanes_of):
        return tuple(lanes_of)
    links, tiled = [*_links(shaped, inlining)], _read_by_tiles(shaped, inlining, tilings)
    for value, reader, axes in reversed(links):
        rows, lanes = rows_of[value], lanes_of[reader]
        if (
            value in tiled
        ):  # it is computed before the blocks of rows in which copies are transposed
            continue
        if rows is not None and lanes is not None and axes.get(rows.last) == lanes.last:
            lanes_of[value] = rows
    for value, reader, axes in links:
        lanes, node = lanes_of[value], shaped.assignment(reader)
        axis = None if lanes is None else axes.get(lanes.last)
        if axis is None or lanes_of[reader] is not None or tilings.found(reader) is not None:
            continue
        rows = rows_of[reader]
        if rows is None and strided_order(node, accesses[reader], extents, machine)[-1] == axis:
            rows = Across(-1, axis)
        if rows is not None and rows.last == axis and _is_free(node):
            lanes_of[reader] = rows
    groups = [(each, _block(shaped, tilings, each)) for each in _together(lanes_of, links)]
    paying = [each for each in groups if _pays(shaped, inlining, accesses, each, extents, machine)]
    chosen = {value: rows for each, _ in paying for value, rows in each.items()}
    return tuple(map(chosen.get, range(len(rows_of))))


def _is_free(node: Assignment) -> bool:
    """Whether no result depends on the order of loops, as where several iterations store one element."""
    return node.base is None and not node.scatters()


def _read_by_tiles(shaped: Shaped, inlining: Inlining, tilings: Tilings) -> set[int]:
    """The values that tiles read, but for those by blocks of rows, also in what their innermost loops compute."""
    values, tiles = set[int](), enumerate(tilings.tiles)
    todo = [value for value, tile in tiles if tile is not None and not tile.is_by_rows()]
    while todo:
        node = shaped.nodes[todo.pop()]
        for read in node.reads if isinstance(node, Assignment) else ():
            if inlining.inlined[read.value]:
                todo.append(read.value)
            else:
                values.add(read.value)
    return values


def _links(shaped: Shaped, inlining: Inlining) -> Iterator[Link]:
    """Values that may be staged and their readers, in the order of the readers."""
    for reader, node in enumerate(shaped.nodes):
        for read in node.reads if isinstance(node, Assignment) else ():
            producer = shaped.nodes[read.value]
            if isinstance(producer, Assignment) and read.value not in inlining.kept:
                yield read.value, reader, mapping(producer, read)


def _together(lanes_of: Sequence[Across | None], links: Iterable[Link]) -> list[dict[int, Across]]:
    """The rows of values with lanes across them that are linked with each other."""
    groups = {value: {value: lanes} for value, lanes in enumerate(lanes_of) if lanes is not None}
    for value, reader, _ in links:
        if value in groups and reader in groups and groups[value] is not groups[reader]:
            groups[value] |= groups[reader]
            groups |= dict.fromkeys(groups[reader], groups[value])
    return list({min(each): each for each in groups.values()}.values())


def _block(shaped: Shaped, tilings: Tilings, lanes_of: Iterable[int]) -> int | None:
    """The number of rows at a time where values read a contraction that goes by blocks of them; None elsewhere."""
    values = {read for value in lanes_of for read in shaped.assignment(value).values()}
    tiles = [tiling[0] for value in values if (tiling := tilings.found(value)) is not None]
    return min((tile.factors[tile.rows][-1] for tile in tiles if tile.is_by_rows()), default=None)


def _pays(
    shaped: Shaped,
    inlining: Inlining,
    accesses: Sequence[Accesses],
    group: Group,
    extents: Extents,
    machine: Machine,
) -> bool:
    """Whether lanes across rows take fewer cycles than lanes along them.

    Along rows a reduction waits for its lanes where others rest on it, unless longer rows are written meanwhile, and
    functions make it wait in any case. Across them what is read by rows is transposed, and so is what is stored.
    """
    lanes_of, block = group
    nodes = {value: shaped.assignment(value) for value in lanes_of}
    core, wide = machine.core, machine.sum_lanes
    assert core is not None
    scalars = [part for node in nodes.values() for part in scalars_within(node.scalar)]
    is_slow = any(isinstance(part, Apply) and part.primitive in SLOW for part in scalars)
    is_written = any(lanes_of[v].other in node.output_axes() for v, node in nodes.items())
    is_linked = 1 < sum(bool(node.reduced_axes()) for node in nodes.values())
    along, moved = 0.0, dict[tuple[int, bool], int]()
    for value, node in nodes.items():
        lanes, axes = lanes_of[value], range(len(node.axes))
        lengths = [extents.usual(node.sizes[axis]) for axis in axes]
        count, rows = prod(lengths), lengths[lanes.last]
        at_once = block or rows
        vectors = count // rows * ceil(rows / at_once) * ceil(at_once / wide)
        length = lengths[lanes.other] if 0 <= lanes.other else 1
        time = cycles_of(node)
        step = core.ordered[0] if node.acc in (">", "<") else 1 / core.multiply_adds
        along -= vectors * (time + step)
        if node.reduced_axes():
            reads = reads_of(node, accesses[value])
            order = loop_order(node, accesses[value], machine)
            along += priced_loops(node, extents, order, reads, machine)[0][1].cycles()
            part = min(length, wide) / wide
            if is_slow or (length <= wide if is_written else is_linked):
                along += count / length * wide.bit_length() * core.latency * part
            time -= 1
        along += count / wide * time
        for read in node.reads:
            if read.value not in nodes and {lanes.last, lanes.other} <= variables_of(read.index):
                moved[read.value, False] = vectors * wide
        if lanes.other in node.output_axes() and value in inlining.kept:
            moved[value, True] = vectors * wide
    return 0 < along - sum(core.transposed * (1 + out) * n for (_, out), n in moved.items())


def across(
    node: Assignment, order: Sequence[int], rows: Across, extents: Extents, machine: Machine
) -> tuple[Factors, tuple[Loop, ...]]:
    """The splits and loops of an assignment by itself, whose ``order`` has rows innermost: blocks of them outside."""
    factors: list[tuple[int, ...]] = [()] * len(order)
    count = extents.fixed(node.sizes[rows.last])
    factors[rows.last] = (narrowed(count, machine.tiles.block[1], machine),)
    reduced, last = node.reduced_axes(), len(order) - (1 if rows.other < 0 else 2)
    at = next((n for n, axis in enumerate(order) if axis in reduced), last)
    outer, inner = (map(Loop, axes) for axes in (order[:at], order[at:-1]))
    return tuple(factors), (*outer, Loop(rows.last), *inner, Loop(rows.last, 1))


def has_row_lanes(nest: Nest, rows: Across) -> bool:
    """Whether the innermost loops of a nest take an element of each row of a block, one place after the other."""
    is_inside = rows.other < 0 or nest.order[-2] == Loop(rows.other)
    return nest.order[-1] == Loop(rows.last, 1) and is_inside


def _rows(
    node: Assignment, accesses: Accesses, order: Sequence[int], extents: Extents, machine: Machine
) -> Across | None:
    """The rows that an assignment reads or writes element by element in its innermost loop, if a cache has a block."""
    if machine.core is None:
        return None
    outputs = node.output_axes()
    for index in accesses:
        if len(index) < 2 or any(part.looked for part in index):
            continue
        rows, short = index[-2].axis(), index[-1].axis()
        if rows is None or rows not in outputs or short is None or order[-1] != short:
            continue
        count, length = (extents.fixed(node.sizes[axis]) for axis in (rows, short))
        most = machine.core.cache_bytes[0] // (machine.tiles.block[1] * BYTES["f64"])
        if count and length and machine.sum_lanes <= count and 1 < length <= most:
            return Across(short, rows)
    return None
