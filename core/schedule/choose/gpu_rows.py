"""Values that a GPU computes row by row, in one kernel: reductions along memory, and what is made of them.

Example, a softmax, none of whose values is stored but the last:
    in:   t1 = max x[i,j] over j;  t2 = x[i,j] - t1[i];  t3 = exp(t2);  t4 = sum t3 over j;  out = t3[i,j] / t4[i]
    out:  out || i 1 j 0 | i:p,j:t   a block for each row, t1 and t4 inside i, shared by its threads,
          t3 and t2 where they are read: computed once for t4, and again for out

What is computed again reads its operands again, a row that is in a cache then: cheaper than a row of its own in memory.
A value is in the kernel where all that reads it is, by plain axes, and where the rows are theirs; one that is compared
with a reduction of it is not computed twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from operator import attrgetter

from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop, Role
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.record import record, replace
from ilang.core.schedule.choose.gpu_price import FULL, cheapest_first
from ilang.core.schedule.choose.gpu_sums import SumWork, priced_lanes, priced_parts, sum_work
from ilang.core.schedule.choose.gpu_tiles import SEQUENTIAL, in_parts
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.choose.tile import BlockTile, Factors, RowLanes
from ilang.core.schedule.choose.tile_cost import Price
from ilang.core.schedule.fuse import mapping
from ilang.core.schedule.readers import compared, live_values

MOST_COPIES = 4
"""Computations of the elements of a value in a kernel at most: as many passes over a row."""

Axes = tuple[int, ...]
PricedRows = Sequence[tuple[BlockTile, Price]]


@record
class Member:
    """A value of the kernel that stores ``root``.

    Fields:
        rows, order: its axes that walk the rows, and all of them as its loops are.
        copies: how often its elements are computed.
        is_whole: whether all loops of its readers are around it, not only those over rows.
        lanes: what the lanes of a row have of it, where registers keep rows.
    """

    root: int
    rows: Axes
    order: Axes
    copies: int
    is_whole: bool
    lanes: RowLanes | None = None

    def nest(self) -> tuple[Factors, tuple[Loop, ...], tuple[Role, ...]]:
        """The splits, the loops and their roles: lanes outside of what each of them has."""
        factors: list[tuple[int, ...]] = [()] * (1 + max(self.order))
        if self.lanes is None or len(self.order) == len(self.rows):
            return tuple(factors), tuple(map(Loop, self.order)), ()
        (column,) = self.order[len(self.rows) :]
        split = self.lanes.lanes, self.lanes.vector
        factors[column] = split if 1 < split[1] else split[:1]
        inner: list[tuple[Loop, Role]] = [(Loop(column, 1), self.lanes.role), (Loop(column), "u")]
        inner += [(Loop(column, 2), "u")] if 1 < split[1] else []
        plain: list[Role] = ["" for _ in self.rows]
        order = (*map(Loop, self.rows), *(loop for loop, _ in inner))
        return tuple(factors), order, (*plain, *(role for _, role in inner))


def gpu_rows(
    shaped: Shaped,
    readers: Inlining,
    tiles: Sequence[BlockTile | None],
    extents: Extents,
    machine: Machine,
) -> tuple[Mapping[int, Member], tuple[BlockTile | None, ...], Mapping[int, PricedRows]]:
    """The members of all kernels that go row by row, by value, and the tiles of a program, with a row for each kernel.

    The last are the rows that prices compared, by the value that is stored, the cheapest first.

    Args:
        shaped: the program.
        readers: who reads each value.
        tiles: how each value goes block by block, were it stored.
        extents: of the program.
        machine: what the blocks belong to.
    """
    finder = _Finder(shaped, readers, tiles, extents, machine)
    members: dict[int, Member] = {}
    tiles_of_rows = list(tiles)
    for value in sorted(live_values(shaped), reverse=True):
        if value not in members and not readers.inlined[value]:
            kernel = finder.kernel(value)
            members |= kernel
            tiles_of_rows[value] = finder.row(kernel[value]) if kernel else finder.alone(value)
    return members, tuple(tiles_of_rows), finder.priced


class _Finder:
    """A program, and what is asked of it."""

    def __init__(
        self,
        shaped: Shaped,
        readers: Inlining,
        tiles: Sequence[BlockTile | None],
        extents: Extents,
        machine: Machine,
    ) -> None:
        self.shaped = shaped
        self.readers = readers
        self.tiles = tiles
        self.extents = extents
        self.machine = machine
        self.compared = set[int]().union(*(values for _, values in compared(shaped)))
        self.priced: dict[int, PricedRows] = {}
        self.gathering: set[int] = set()
        for value, node in enumerate(shaped.nodes):
            if isinstance(node, Assignment) and (
                any(index.looked for read in node.reads for index in read.index)
                or any(r.value in self.gathering and readers.inlined[r.value] for r in node.reads)
            ):
                self.gathering.add(value)

    def kernel(self, root: int) -> dict[int, Member]:
        """The values of the kernel that stores a value, itself among them; none where no reduction would be in it.

        Registers keep what several passes need, where rows are so short; else each pass computes that again.
        """
        kept = self._members(root, kept=True)
        asked, lanes = self.tiles[root], self._lanes(kept)
        if lanes:
            self.priced[root] = [(self.row(replace(kept[root], lanes=x)), p) for x, p in lanes]
            by = asked.lanes if asked is not None and asked.lanes is not None else lanes[0][0]
            return {value: replace(each, lanes=by) for value, each in kept.items()}
        if not kept or not self._are_enough(kept[root]):
            return {}
        return self._members(root, kept=False)

    def _lanes(self, members: Mapping[int, Member]) -> list[tuple[RowLanes, Price]]:
        """The lanes of the rows of a kernel with prices; none where registers cannot keep what passes need."""
        columns = dict[int, int | None]()
        for value, each in members.items():
            node, inner = self.shaped.assignment(value), each.order[len(each.rows) :]
            if inner:
                columns[value] = (
                    self.extents.fixed(node.sizes[inner[0]]) if len(inner) == 1 else None
                )
        extents = {*columns.values()}
        if len(extents) != 1 or None in extents:
            return []
        root = next(iter(members.values()))
        node = self.shaped.assignment(root.root)
        known = [self.extents.fixed(node.sizes[axis]) for axis in root.rows]
        combined = sum(map(self._is_row, members))
        work = SumWork(
            results=FULL if None in known else prod(max(1, count or 0) for count in known),
            counts=tuple(max(1, extent) for extent in extents if extent is not None),
            width=max(BYTES[self.shaped.tensors[value].dtype] for value in members),
            values=len(columns),
            combined=combined,
            is_kept=1 < combined or not self._is_row(root.root),
        )
        return priced_lanes(work, self.machine)

    def _members(self, root: int, *, kept: bool) -> dict[int, Member]:
        """The values of the kernel that stores a value, with those ``kept`` that several passes need, or not."""
        node = self._plain(root)
        tile = self.tiles[root]
        if node is None or (tile is not None and tile.lanes is None and not tile.is_row):
            return {}
        outputs = tuple(node.output_axes())
        count = len(outputs) if self._is_row(root) else self._rows_below(root, outputs)
        rows = outputs[:count]
        if not rows:
            return {}
        members = {root: Member(root, rows, (*outputs, *node.reduced_axes()), 1, False)}
        todo = {read.value for read in node.reads}
        while todo:
            value = max(todo)
            todo.remove(value)
            member = self._member(value, members, kept=kept)
            if member is not None:
                members[value] = member
                producer = self.shaped.assignment(value)
                todo |= {read.value for read in producer.reads}
        is_gained = any(self._is_row(value) for value in members if value != root)
        return members if is_gained else {}

    def row(self, member: Member) -> BlockTile:
        """The loops of a value that is stored row by row: blocks have the first ones, threads share all others."""
        tile, node = self.tiles[member.root], self._plain(member.root)
        if member.lanes is not None:
            factors, order, roles = member.nest()
            return BlockTile(factors, order, roles, len(order), lanes=member.lanes)
        if tile is not None:
            return tile
        assert node is not None
        outputs, terms = node.output_axes(), node.reduced_axes()
        rows = len(member.rows)
        blocks: list[Role] = ["" for _ in outputs[:rows]]
        threads: list[Role] = ["t" for _ in outputs[rows:]]
        alone: list[Role] = [SEQUENTIAL for _ in terms]
        order = tuple(map(Loop, (*outputs, *terms)))
        return BlockTile(((),) * len(node.axes), order, (*blocks, *threads, *alone), len(order))

    def alone(self, value: int) -> BlockTile | None:
        """The tile of a value that is in no kernel of others: the cheapest of lanes, blocks, and parts of a row."""
        tile, node = self.tiles[value], self.shaped.nodes[value]
        if tile is None or not tile.is_row:
            return tile
        assert isinstance(node, Assignment)
        outputs = tuple(dict.fromkeys(node.output_axes()))
        if not outputs:
            return tile
        member = Member(value, outputs, (*outputs, *node.reduced_axes()), 1, False)
        lanes = [] if node.guards else self._lanes({value: member})
        priced = [(self.row(replace(member, lanes=each)), price) for each, price in lanes]
        work = sum_work(node, self.extents)
        for part, price in [] if work is None else priced_parts(work, self.machine):
            each = None if part is None else in_parts(node, outputs, (part,), "t", is_known=True)
            priced.append((each or replace(tile, is_row=False), price))
        if priced:
            self.priced[value] = priced = cheapest_first(priced, attrgetter("merged"))
            return priced[0][0]
        device = self.machine.gpu()
        rows = [self.extents.fixed(node.sizes[axis]) for axis in outputs]
        are_many = None not in rows and device.multiprocessors <= prod(n or 0 for n in rows)
        if are_many or len(node.reduced_axes()) > 1:
            return tile
        part = device.block_threads * device.vector_elements  # what threads add at a time
        tile = in_parts(node, outputs, (part,), "t", is_known=False)
        blocks: list[Role] = ["p" for _ in tile.order[1:]]
        return replace(tile, roles=(*blocks, "t"))

    def _plain(self, value: int) -> Assignment | None:
        """An assignment that stores each element once, at axes of its own, and looks up none; None if it is another."""
        node = self.shaped.nodes[value]
        if not isinstance(node, Assignment) or node.base is not None or node.guards:
            return None
        outputs = node.output_axes()
        is_plain = len(set(outputs)) == len(node.target) and value not in self.gathering
        return node if is_plain else None

    def _is_row(self, value: int) -> bool:
        """Whether a value is a reduction along memory, which the threads of a block share."""
        tile = self.tiles[value]
        return tile is not None and tile.is_row

    def _rows_below(self, root: int, outputs: Axes) -> int:
        """The number of first axes of a value that walk rows of the last reduction that it is made of; 0 if none."""
        reached: dict[int, dict[int, int]] = {root: {axis: axis for axis in outputs}}
        for value in range(root, -1, -1):
            node = self._plain(value) if value in reached else None
            if node is None:
                continue
            names = reached[value]
            if self._is_row(value):
                rows = {names[axis] for axis in node.output_axes() if axis in names}
                if rows and rows == set(outputs[: len(rows)]):
                    return len(rows)
            elif value == root or self.tiles[value] is None:
                for read in node.reads:
                    producer = self._plain(read.value)
                    if producer is not None:
                        inner = mapping(producer, read)
                        reached[read.value] = {
                            produced: names[at] for produced, at in inner.items() if at in names
                        }
        return 0

    def _are_enough(self, root: Member) -> bool:
        """Whether there are rows for all multiprocessors, as far as that is known, or none is long."""
        node = self.shaped.assignment(root.root)
        known = [self.extents.fixed(node.sizes[axis]) for axis in root.rows]
        if None in known:
            return not all(self.extents.is_small(node.sizes[axis]) for axis in root.rows)
        if self.machine.gpu().multiprocessors <= prod(n or 0 for n in known):
            return True
        others = [self.extents.fixed(n) for a, n in enumerate(node.sizes) if a not in root.rows]
        work = prod(n or 0 for n in others)
        return None not in others and work <= self.machine.threads.block_work

    def _member(self, value: int, members: Mapping[int, Member], *, kept: bool) -> Member | None:
        """A value as one of a kernel, all of whose readers are; None where it is stored, or given."""
        producer, reads = self._plain(value), self.readers.all_reads[value]
        if (
            producer is None
            or value in self.readers.kept
            or any(n not in members for n, _ in reads)
        ):
            return None
        if not self._is_row(value) and (producer.acc is not None or self.tiles[value] is not None):
            return None
        places = {self._read_by(producer, members[reader], read) for reader, read in reads}
        if len(places) != 1:
            return None
        (place,) = places
        if place is None:
            return None
        rows, order = place
        root, copies = members[reads[0][0]].root, sum(members[reader].copies for reader, _ in reads)
        if len(order) == len(rows) or self._is_row(value):
            return Member(root, rows, order, 1, False)
        if kept and 1 < len(reads):
            return Member(root, rows, order, 1, False)
        most = 1 if value in self.compared else MOST_COPIES
        return Member(root, rows, order, copies, True) if copies <= most else None

    def _read_by(
        self, producer: Assignment, reader: Member, read: Read
    ) -> tuple[Axes, Axes] | None:
        """The axes of a value that walk the rows, and the order of all, as one of its readers has them.

        None where the reader does not walk it as it walks itself, or walks its rows by rows.
        """
        pairs = mapping(producer, read)
        back = {outer: inner for inner, outer in pairs.items()}
        if read.guards or len(back) < len(producer.target):
            return None
        if not set(reader.rows) <= back.keys():
            return None
        rows = tuple(back[axis] for axis in reader.rows)
        if back.keys() == set(reader.rows):
            return rows, (*rows, *producer.reduced_axes())
        if producer.acc is None and back.keys() == set(reader.order):
            return rows, tuple(back[axis] for axis in reader.order)
        return None
