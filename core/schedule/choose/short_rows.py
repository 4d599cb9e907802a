"""Rows that are shorter than vectors, several of them side by side in lanes: rule 9 of the choice.

A loop along such a row is all tail, and a step that takes long, as a maximum or an exponential, waits for the last one.
Lanes take the same element of as many rows; what is read by rows is copied before, transposed in vectors. Values that
may share a kernel have a price for both ways, in cycles of one core.

Example, ``>ij~i`` of 1000 rows of 9:
    in:   out = max in0[i,j] over j, loops i j
    out:  out | i:64 | i 0 j i'     0: a copy of 64 rows of in0
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import ceil, prod

from ilang.core.calculus.affine import variables_of
from ilang.core.cost import cycles_of
from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.scalar import Apply, scalars_within
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import Machine
from ilang.core.ops import SLOW
from ilang.core.record import replace
from ilang.core.schedule.choose.accesses import Accesses, loop_order, reads_of, strided_order
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.choose.loops import priced_loops
from ilang.core.schedule.choose.packing import Across
from ilang.core.schedule.choose.tile import Factors, narrowed
from ilang.core.schedule.choose.tilings import Tilings
from ilang.core.schedule.fuse import mapping

Link = tuple[int, int, dict[int, int]]
"""A value that may be staged, a reader, and the reader's axes of its own."""
Group = tuple[Mapping[int, Across], int | None, Collection[int]]
"""The rows of values that are linked, how many rows a block has where they go by blocks of them, and what tiles read.
"""


def short_rows(
    shaped: Shaped,
    inlining: Inlining,
    accesses: Sequence[Accesses],
    tilings: Tilings,
    extents: Extents,
    machine: Machine,
) -> tuple[tuple[Across | None, ...], float]:
    """The rows that each value has in lanes: reductions of rows, and what may share a kernel with them, if it pays.

    Then the cycles that these lanes save.
    """
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
        return tuple(lanes_of), 0.0
    links, tiled = [*_links(shaped, inlining)], _read_by_tiles(shaped, inlining, tilings)
    for value, reader, axes in reversed(links):
        rows, lanes = rows_of[value], lanes_of[reader]
        if value in tiled:  # computed before the blocks of rows in which copies are transposed
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
    chosen, saved = dict[int, Across](), 0.0
    for each in _together(lanes_of, links):
        block = _block(shaped, tilings, each)
        group = each, block, tiled if block is None else ()
        blocks = BlocksOfRows(shaped, inlining, accesses, group, extents, machine)
        rows_chosen, cycles = blocks.chosen()
        chosen |= rows_chosen
        saved += cycles
    return tuple(map(chosen.get, range(len(rows_of)))), saved


def _is_free(node: Assignment) -> bool:
    """Whether no result depends on the order of loops, as where several iterations store one element."""
    return node.base is None and not node.scatters()


def _read_by_tiles(shaped: Shaped, inlining: Inlining, tilings: Tilings) -> set[int]:
    """The values that tiles read, but for those by blocks of rows, also in what their innermost loops compute."""
    values, tiles = set[int](), enumerate(tilings.tiles)
    todo = [value for value, tile in tiles if tile is not None and not tile.is_by_rows]
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
    return min((tile.factors[tile.rows][-1] for tile in tiles if tile.is_by_rows), default=None)


class BlocksOfRows:
    """Values that are linked, and what blocks of their rows take and save with lanes across them, in cycles.

    Along rows a reduction waits for its lanes where others rest on it, unless longer rows are written meanwhile, and
    functions make it wait in any case. Across them what is read by rows is transposed, and so is what is stored.
    """

    def __init__(
        self,
        shaped: Shaped,
        inlining: Inlining,
        accesses: Sequence[Accesses],
        group: Group,
        extents: Extents,
        machine: Machine,
    ) -> None:
        assert machine.core is not None
        self.inlining, self.accesses = inlining, accesses
        self.extents, self.machine, self.core = extents, machine, machine.core
        self.lanes_of, self.block, self.tiled = group
        self.nodes = {value: shaped.assignment(value) for value in self.lanes_of}
        nodes = self.nodes.items()
        scalars = [part for _, node in nodes for part in scalars_within(node.scalar)]
        self.is_slow = any(isinstance(p, Apply) and p.primitive in SLOW for p in scalars)
        self.is_written = any(self.lanes_of[v].other in n.output_axes() for v, n in nodes)
        self.is_linked = 1 < sum(bool(node.reduced_axes()) for _, node in nodes)

    def chosen(self) -> tuple[dict[int, Across], float]:
        """The rows of the values, if lanes across them pay, and what these save.

        What goes row by row does so at the end of each block.
        """
        ends = {value: self._end(value) for value in self.nodes if self._may_end(value)}
        across, by_row = self.nodes.keys() - set[int]().union(*ends.values()), dict[int, float]()
        for value, end in ends.items():
            by_itself = self._saved_by_row(value)
            if self.saved(across) + by_itself < self.saved(across | end):
                across |= end
            else:
                by_row[value] = by_itself
        saved = self.saved(across) + sum(by_row.values())
        if saved <= 0:
            return {}, 0.0
        ending = {value: replace(self.lanes_of[value], by_row=True) for value in by_row}
        return {value: self.lanes_of[value] for value in across} | ending, saved

    def _may_end(self, value: int) -> bool:
        """Whether a value is stored along its rows, and reads of other values what its rows have reduced."""
        node, other = self.nodes[value], self.lanes_of[value].other
        is_along = bool(node.target) and node.target[-1].axis() == other
        if node.acc or not is_along or value not in self.inlining.kept:
            return False
        inside = self._end(value)
        reads = ((each, read) for each in inside for read in self.nodes[each].reads)
        return not any(
            reader in self.nodes for reader, _ in self.inlining.all_reads[value]
        ) and not any(
            read.value in self.nodes.keys() - inside
            and self.lanes_of[each].other in variables_of(read.index)
            for each, read in reads
        )

    def _end(self, value: int) -> set[int]:
        """A value with those of the group that it computes in its innermost loop."""
        values, todo = set[int](), [value]
        while todo:
            values.add(todo[-1])
            reads = self.nodes[todo.pop()].reads
            todo += (
                r.value for r in reads if self.inlining.inlined[r.value] and r.value in self.nodes
            )
        return values

    def saved(self, values: Collection[int]) -> float:
        """The cycles that lanes across the rows of some values save."""
        moved = dict[tuple[int, bool], float]()
        for value in values:
            node, lanes = self.nodes[value], self.lanes_of[value]
            elements = self._vectors(value) * self.machine.sum_lanes
            for read in node.reads:
                axes = variables_of(read.index)
                is_inside = read.value in self.nodes
                if {lanes.last, lanes.other} <= axes and (not is_inside or value in self.tiled):
                    moved[read.value, False] = elements
                    moved |= {(read.value, True): elements} if is_inside else {}
            if lanes.other in node.output_axes() and value in self.inlining.kept:
                moved[value, True] = elements
        transposed = sum(self.core.transposed * (1 + out) * n for (_, out), n in moved.items())
        return sum(map(self._saved_by, values)) - transposed - self._late(values)

    def _late(self, values: Collection[int]) -> float:
        """The cycles in which lines come that some values read by rows from outside, and store by rows.

        Squares of rows longer than a line take lines out of order, from the cache that holds all of them.
        """
        line = self.machine.memory.line_bytes // BYTES["f32"]
        read, stored = dict[int, float](), dict[int, float]()
        for value in values:
            node, lanes, lengths = self.nodes[value], self.lanes_of[value], self._lengths(value)
            if lanes.other < 0 or lengths[lanes.other] <= line:
                continue
            both, lines = {lanes.last, lanes.other}, prod(lengths) / line
            read |= {r.value: lines for r in node.reads if both <= variables_of(r.index)}
            if lanes.other in node.output_axes() and value in self.inlining.kept:
                stored[value] = lines
        inputs = sum(n for value, n in read.items() if value not in self.nodes)
        outputs = sum(stored.values())
        whole = (inputs + outputs) * self.machine.memory.line_bytes
        costs = zip(self.core.cache_bytes, self.core.scattered, self.core.written, strict=True)
        return sum(
            inputs * late + outputs * written for held, late, written in costs if held < whole
        )

    def _saved_by_row(self, value: int) -> float:
        """The cycles that rows save at the end of a block: none, as lanes are idle, or vectors shorter, at their ends.

        Along rows they are loaded and stored while reductions wait.
        """
        lengths, wide = self._lengths(value), self.machine.sum_lanes
        count, length = prod(lengths), lengths[self.lanes_of[value].other]
        whole, left = divmod(length, wide)
        vectors = count // length * (whole + left.bit_count() if whole else 1)
        time = sum(cycles_of(self.nodes[each]) - 1 for each in self._end(value))
        moved = self.core.stored + 1 / self.core.loads
        return (count / wide - vectors) * time - vectors * moved

    def _lengths(self, value: int) -> list[int]:
        return [self.extents.usual(size) for size in self.nodes[value].sizes]

    def _vectors(self, value: int) -> float:
        """The vectors across the rows of a value, of whole blocks.

        Compilers make none of fewer rows, two of which a core computes in the time of a vector.
        """
        lengths, wide = self._lengths(value), self.machine.sum_lanes
        rows = lengths[self.lanes_of[value].last]
        at_once = self.block or rows
        lanes = ceil(at_once / wide) if wide <= at_once else at_once / 2
        return prod(lengths) // rows * ceil(rows / at_once) * lanes

    def _saved_by(self, value: int) -> float:
        """The cycles along the rows of a value, less those across them."""
        node, lanes, lengths = self.nodes[value], self.lanes_of[value], self._lengths(value)
        core, wide, count = self.core, self.machine.sum_lanes, prod(lengths)
        length = lengths[lanes.other] if 0 <= lanes.other else 1
        time = cycles_of(node)
        step = core.ordered[0] if node.acc in (">", "<") else 1 / core.multiply_adds
        across = self._vectors(value) * (time + step)
        if not node.reduced_axes():
            is_row = 0 <= lanes.other and lanes.other in node.output_axes()
            return count / (wide if is_row else 1) * time - across
        reads = reads_of(node, self.accesses[value])
        order = loop_order(node, self.accesses[value], self.machine)
        priced = priced_loops(node, self.extents, order, reads, self.machine)
        along = priced[0][1].cycles() + count / wide * (time - 1)
        waits = node.acc != "+" or self.is_linked  # for a whole vector of lanes
        is_short = length <= wide if waits else length < wide
        if self.is_slow or (is_short if self.is_written else self.is_linked):
            part = min(length, wide) / wide
            along += count / length * wide.bit_length() * core.latency * part
        return along - across


def across(
    node: Assignment, order: Sequence[int], rows: Across, extents: Extents, machine: Machine
) -> tuple[Factors, tuple[Loop, ...]]:
    """The splits and loops of an assignment by itself, whose ``order`` has rows innermost: blocks of them outside."""
    factors: list[tuple[int, ...]] = [()] * len(order)
    count = extents.fixed(node.sizes[rows.last])
    factors[rows.last] = (narrowed(count, machine.tiles.block[1], machine),)
    reduced, last = node.reduced_axes(), len(order) - (1 if rows.other < 0 else 2)
    at = next((n for n, axis in enumerate(order) if axis in reduced), last)
    outer, inner = ([*map(Loop, axes)] for axes in (order[:at], order[at:-1]))
    lanes = Loop(rows.last, 1)
    inner = [lanes, *inner] if rows.by_row else [*inner, lanes]
    return tuple(factors), (*outer, Loop(rows.last), *inner)


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
