"""The schedule of everything unscheduled, as the same value a person's schedule is.

Rules, from access patterns only:
    1. A value is computed inside its reader (staged) when one assignment reads it, always at one index,
       it is no output, has no base, and no element would be computed twice; else it is computed whole, in a kernel
       of its own.
    2. A pointwise value that its reader reads once an iteration is computed in the reader's innermost loop: a chain
       of pointwise expressions is one nest, a matrix multiply stores no product.
    3. Any other staged value is computed inside the longest run of the reader's outer loops that are also its own
       outer loops; what it keeps there is a scalar or a buffer over its remaining loops.
    4. Loops are ordered by the strides they cause: the loop that walks memory in the widest steps is outermost, the
       one that walks most tensors element by element is innermost.
    5. A value that several assignments of one kernel read is computed once, inside the loops that all of them are in.
       Values computed whole whose outer loops are the same share a kernel (``roots.py``).
    6. Contractions are tiled, transposed work is blocked, sums into rows of accumulators go in strips (``tile.py``).
    7. Where rows of a contraction are reduced before another contraction reads them, as in attention, both go block of
       rows by block of rows, and all that is between them stays there.

Runs over the program from its outputs to its inputs, so a reader's order is known before its producers'.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.dtype import BYTES
from ilang.core.ir.scalar import Operand
from ilang.core.ir.schedule import Loop, Nest, Root
from ilang.core.ir.shaped import Assignment, Input, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.record import record, replace
from ilang.core.schedule.fuse import Provenance, axis_pairs, mapping
from ilang.core.schedule.groups import Kernels
from ilang.core.schedule.readers import all_reads, live_values, readers_of
from ilang.core.schedule.tile import Access, Factors, Tiling, blocked, tiling, transposed


@record
class Choice:
    """A nest per assignment, and the roots of each kernel, the one that runs first first.

    ``groups`` is None where a person wrote a nest: which kernels there are is seen when all nests are known.
    """

    nests: tuple[Nest | None, ...]
    groups: tuple[tuple[Root, ...], ...] | None


def choose(
    shaped: Shaped, written: Sequence[Nest | None], provenance: Provenance, machine: Machine
) -> Choice:
    """A nest per assignment: the written one, with the compiler's sites where its order is not; else a chosen one.

    Args:
        shaped: the program.
        written: the nests that a person wrote, None for every other node.
        provenance: of the program.
        machine: what the loops are for.

    Raises:
        ScheduleError: E0320 to E0322 (a producer without a schedule cannot take that of its reader).
    """
    if any(nest is not None for nest in written):
        alone = _Choice(shaped, [None] * len(written), provenance, machine).run()
        pairs = zip(written, alone.nests, strict=True)
        if all(nest is None or _same(nest, chosen) for nest, chosen in pairs):
            return alone  # a printed choice, written back: what cannot have a schedule is as it was
    return _Choice(shaped, written, provenance, machine).run()


def _same(written: Nest, chosen: Nest | None) -> bool:
    """Whether a written nest is the chosen one."""
    count = len(written.order)
    return (
        chosen is not None
        and (written.factors, written.order, written.sites, written.start)
        == (chosen.factors, chosen.order, chosen.sites, chosen.start)
        and [written.role(n) for n in range(count)] == [chosen.role(n) for n in range(count)]
        and all(written.space(n) == chosen.space(n) for n in range(len(written.sites)))
    )


class _Choice:
    """One run: readers, the accesses each nest will make, and the nests chosen so far."""

    def __init__(
        self,
        shaped: Shaped,
        written: Sequence[Nest | None],
        provenance: Provenance,
        machine: Machine,
    ) -> None:
        self.shaped = shaped
        self.machine = machine
        self.written = written
        self.provenance = provenance
        self.all_reads, self.kept = all_reads(shaped)
        self.readers = [self._sole_reader(value) for value in range(len(shaped.nodes))]
        self.inlined = [self._is_inlined(value) for value in range(len(shaped.nodes))]
        self.accesses = self._accesses()
        self.tilings = [self._tiling(value) for value in range(len(shaped.nodes))]
        self.tails: list[Read | None] = []
        for value in range(len(shaped.nodes)):
            self.tails.append(self._tail(value))
        self.ends: dict[int, tuple[int, dict[int, int]] | None] = {}
        self._go_by_rows()
        self.nests: list[Nest | None] = [None] * len(shaped.nodes)
        self.given: dict[int, tuple[Factors, tuple[Loop, ...]]] = {}
        self.packs: dict[int, tuple[int, int, bool]] = {}
        self.across: dict[int, tuple[int, int]] = {}
        self.places: dict[tuple[int, Loop], tuple[int, Loop]] = {}
        self.kernels = Kernels(shaped, self.provenance)
        self.takers = readers_of(shaped)
        self.live = live_values(shaped)
        self.has_written = any(nest is not None for nest in written)

    def run(self) -> Choice:
        for value in range(len(self.shaped.nodes) - 1, -1, -1):
            node = self.shaped.nodes[value]
            if isinstance(node, Assignment):
                self._share(value, node)
                self.nests[value] = self._nest(value, node)
        groups = tuple(tuple(roots) for roots in reversed(self.kernels.groups))
        return Choice(tuple(self.nests), None if self.has_written else groups)

    def _share(self, value: int, node: Assignment) -> None:
        """Rule 5: compute a value with several readers once, inside the loops that all of them are in."""
        reads = self.all_reads[value]
        readers = {reader for reader, _ in reads}
        if (
            self.readers[value] is not None
            or value in self.kept
            or not reads
            or not (self._is_by_rows(value) or self._found(value) is None)
            or any(self.written[n] is not None for n in (value, *readers))
        ):
            return
        shared = [self._places_of(reader, read, node) for reader, read in reads]
        common = 0
        while all(common < len(s) and s[common] == shared[0][common] for s in shared):
            common += 1
        reader, read = reads[0]
        nest = self.nests[reader]
        assert nest is not None
        found = self._found(value)
        if found is not None:
            within = self._rows_site(found, mapping(node, read), nest)
            if within is None or within > common:
                return
            common = within
        elif not self._is_worth(reader, nest, common):
            return
        for other, its in reads:
            self._place(other, its, common)
        axes = {loop.axis for loop in nest.order[:common]}
        pairs = {own: ours for own, ours in mapping(node, read).items() if ours in axes}
        outer = replace(nest, order=nest.order[:common])
        tile = self._tile_of(value, node)
        self.given[value] = tile or _taken(outer, pairs, self._order(value, node))
        self._settle(value, reader, pairs, outer)

    def _places_of(self, reader: int, read: Read, made: Assignment) -> list[object]:
        """The outer loops of a reader that walk what it reads: where each is, and what it walks."""
        nest = self.nests[reader]
        assert nest is not None
        back = _inverse(mapping(made, read))
        found: list[object] = []
        for loop in nest.order:
            place = self.places.get((reader, loop))
            if place is None or loop.axis not in back:
                break
            found.append((place, tuple(back[loop.axis])))
        return found

    def _is_worth(self, reader: int, nest: Nest, depth: int) -> bool:
        """Whether loops around a place are of more than a few iterations, or the reader has no more."""
        node = self.shaped.nodes[reader]
        assert isinstance(node, Assignment)
        sizes = [self.shaped.sizes[node.sizes[loop.axis]] for loop in nest.order[:depth]]
        return any(not size.is_few() for size in sizes)

    def _place(self, reader: int, read: Read, depth: int) -> None:
        """Stage a read of an assignment whose nest is chosen."""
        node, nest = self.shaped.nodes[reader], self.nests[reader]
        assert isinstance(node, Assignment)
        assert nest is not None
        sites = tuple(
            depth if r == read else site for r, site in zip(node.reads, nest.sites, strict=True)
        )
        self.nests[reader] = replace(nest, sites=sites)

    def _settle(self, value: int, reader: int, pairs: dict[int, int], outer: Nest) -> None:
        """Note which loops of a kernel the shared loops of a staged value are."""
        for own, ours in pairs.items():
            for loop in outer.order:
                place = self.places.get((reader, loop))
                if loop.axis == ours and place is not None:
                    self.places[(value, Loop(own, loop.part))] = place

    def _nest(self, value: int, node: Assignment) -> Nest:
        nest = self.written[value]
        if nest is None and value in self.given:
            factors, order = self.given[value]
            nest = Nest(factors, order, (None,) * len(node.reads))
        tile = self._tile_of(value, node) if nest is None else None
        if tile is not None:
            nest = Nest(tile[0], tile[1], (None,) * len(node.reads))
        if nest is None:
            axes = self._order(value, node)
            plain = ((),) * len(axes), tuple(map(Loop, axes))
            across = self._transposed(value, node)
            chosen = across or blocked(node, self.shaped.sizes, axes, self.machine) or plain
            nest = Nest(*chosen, (None,) * len(node.reads))
            if across is not None:
                self.across[value] = (nest.order[-2].axis, nest.order[-1].axis)
        if nest.written:
            for number, read in enumerate(node.reads):
                self._adopt(value, nest, read, nest.staged(number))
            return nest
        own = self.tilings[value]
        if own is not None and nest.order == own.order():
            self.packs[value] = (own.rows, own.lanes, own.windows)
        self._root(value, nest)
        return replace(nest, sites=self._sites(value, node, nest))

    def _transposed(self, value: int, node: Assignment) -> tuple[Factors, tuple[Loop, ...]] | None:
        """The splits and loops of work that runs along one axis in an operand and along another in the result."""
        reads = [access for access in self.accesses[value] if access != node.target]
        least = self.machine.memory.transposed_bytes
        copies = isinstance(node.scalar, Operand) and not any(
            self.inlined[read.value] or BYTES[self.shaped.tensors[read.value].dtype] < least
            for read in node.reads
        )
        return transposed(node, self.shaped.sizes, reads, copies, self.machine)

    def _root(self, value: int, nest: Nest) -> None:
        """Note where the loops of a value are that has loops of its own: some may be those of another root."""
        whole = value not in self.given
        if whole:
            self.places.update({(value, loop): (value, loop) for loop in nest.order})
        if self.has_written or value not in self.live:
            return  # which kernels there are is seen when all schedules are read
        root = self.kernels.add(value, nest, self.takers[value], whole)
        known = self.kernels.nests[root.owner].order[: root.shared]
        for own, loop in zip(nest.order, known, strict=False):
            self.places[(value, own)] = self.places[(root.owner, loop)]

    def _tiling(self, value: int) -> Tiling | None:
        """How a reduction is tiled, if it is."""
        node = self.shaped.nodes[value]
        if not isinstance(node, Assignment):
            return None
        written = any(self.written[read.value] is not None for read in node.reads)
        reads = [access for access in self.accesses[value] if access != node.target]
        return None if written else tiling(node, self.shaped.sizes, reads, self.machine)

    def _tile_of(self, value: int, node: Assignment) -> tuple[Factors, tuple[Loop, ...]] | None:
        """The splits and loops of a tiled reduction, or of pointwise work on the elements of one."""
        found = self._found(value)
        if found is None:
            return None
        tile, pairs = found
        factors: list[tuple[int, ...]] = [()] * len(node.axes)
        for own, ours in pairs.items():
            factors[ours] = tile.factors[own]
        order = [Loop(pairs[loop.axis], loop.part) for loop in tile.order() if loop.axis in pairs]
        if node.acc is None:  # rows and lanes as they stand in the result
            outputs = node.output_axes()
            order[-2:] = sorted(order[-2:], key=lambda loop: outputs.index(loop.axis))
        return tuple(factors), tuple(order)

    def _found(self, value: int) -> tuple[Tiling, dict[int, int]] | None:
        """The tiled reduction that a value is, or is pointwise work on, and where its axes are in the value."""
        end = self._end(value)
        if end is None:
            return None
        tile = self.tilings[end[0]]
        assert tile is not None
        return tile, end[1]

    def _end(self, value: int) -> tuple[int, dict[int, int]] | None:
        """The tiled reduction that a value is, or is pointwise work on, and where its axes are in the value."""
        path = [value]
        while path[-1] not in self.ends:
            node, below = self.shaped.nodes[path[-1]], self.tails[path[-1]]
            if self.tilings[path[-1]] is not None and isinstance(node, Assignment):
                self.ends[path[-1]] = path[-1], {axis: axis for axis in range(len(node.axes))}
            elif below is None:
                self.ends[path[-1]] = None
            else:
                path.append(below.value)
        for above, under in zip(path[-2::-1], path[:0:-1], strict=True):
            end, read, made = self.ends[under], self.tails[above], self.shaped.nodes[under]
            assert read is not None
            assert isinstance(made, Assignment)
            ours = mapping(made, read)
            self.ends[above] = end and (
                end[0],
                {own: ours[at] for own, at in end[1].items() if at in ours},
            )
        return self.ends[value]

    def _is_by_rows(self, value: int) -> bool:
        """Whether a value is computed in tiles, block of rows by block of rows."""
        found = self._found(value)
        return found is not None and found[0].is_by_rows()

    def _go_by_rows(self) -> None:
        """Rule 7: give contractions that meet in blocks of rows their loops."""
        for value in range(len(self.shaped.nodes)):
            tile = self.tilings[value]
            if tile is None or tile.windows:
                continue
            for made, pairs in self._reached(value):
                found = self._found(made)
                if (
                    found is None
                    or found[0].windows
                    or not self._is_reduced(made, found[1].get(found[0].lanes))
                ):
                    continue
                ours = {own: pairs[at] for own, at in found[1].items() if at in pairs}
                below = found[0].by_rows()
                end = self._end(made)
                if end is not None and _meet(tile.by_rows(), below, ours):
                    self.tilings[value], self.tilings[end[0]] = tile.by_rows(), below

    def _is_reduced(self, value: int, axis: int | None) -> bool:
        """Whether an assignment that reads a value reduces one of its axes, and another reads it too."""
        readers = self.all_reads[value]
        if len(readers) < 2 or value in self.kept or axis is None:
            return False
        made = self.shaped.nodes[value]
        assert isinstance(made, Assignment)
        for reader, read in readers:
            node = self.shaped.nodes[reader]
            assert isinstance(node, Assignment)
            if mapping(made, read).get(axis) in node.reduced_axes():
                return True
        return False

    def _reached(self, value: int) -> list[tuple[int, dict[int, int]]]:
        """What a contraction is made of, each with its axes in those of the contraction, up to other contractions."""
        found: dict[int, dict[int, int]] = {}
        node = self.shaped.nodes[value]
        assert isinstance(node, Assignment)
        todo = [(value, {axis: axis for axis in range(len(node.axes))})]
        while todo:
            above, pairs = todo.pop()
            reader = self.shaped.nodes[above]
            assert isinstance(reader, Assignment)
            for read in dict.fromkeys(reader.reads):
                made = self.shaped.nodes[read.value]
                if not isinstance(made, Assignment) or self.written[read.value] is not None:
                    continue
                inside = mapping(made, read)
                ours = {own: pairs[at] for own, at in inside.items() if at in pairs}
                if len(ours) > len(found.get(read.value, {})):
                    found[read.value] = ours
                    if self.tilings[read.value] is None:
                        todo.append((read.value, ours))
        return list(found.items())

    def _tail(self, value: int) -> Read | None:
        """The one read of a pointwise node that delivers, element by element, what may be a tiled reduction."""
        node = self.shaped.nodes[value]
        if not isinstance(node, Assignment) or node.acc is not None or node.base is not None:
            return None
        for read in dict.fromkeys(node.reads):
            made = self.shaped.nodes[read.value]
            if (
                isinstance(made, Assignment)
                and self.readers[read.value] is not None
                and self.written[read.value] is None
                and len(set(mapping(made, read).values())) == len(node.axes) == len(read.index)
                and (self.tilings[read.value] is not None or self.tails[read.value] is not None)
            ):
                return read
        return None

    def _adopt(self, value: int, nest: Nest, read: Read, site: int | None) -> None:
        """A producer without a schedule takes the splits and the order of the reader that stages it."""
        made = self.shaped.nodes[read.value]
        if (
            site is None
            or not isinstance(made, Assignment)
            or self.written[read.value] is not None
            or read.value in self.given
        ):
            return
        axes = {loop.axis for loop in nest.order[:site]}
        pairs = {**mapping(made, read), **axis_pairs(self.provenance, value, read, axes)}
        self.given[read.value] = _taken(nest, pairs, self._order(read.value, made))

    def _sole_reader(self, value: int) -> tuple[Assignment, Read] | None:
        """The one assignment and index that reads a value; None if it cannot be staged there (rule 1)."""
        if len(self.all_reads[value]) != 1 or value in self.kept:
            return None
        reader, read = self.all_reads[value][0]
        node = self.shaped.nodes[reader]
        assert isinstance(node, Assignment)
        return node, read

    def _is_inlined(self, value: int) -> bool:
        """Rule 2: pointwise, and its reader's index has every axis of the reader."""
        node, found = self.shaped.nodes[value], self.readers[value]
        if not isinstance(node, Assignment) or node.acc is not None or found is None:
            return False
        reader, read = found
        renamed = mapping(node, read)
        return len(renamed) == len(node.output_axes()) and len(set(renamed.values())) == len(
            reader.axes
        )

    def _accesses(self) -> list[dict[Access, float]]:
        """The memory accesses of each assignment, those of what is computed in its innermost loop included."""
        all_accesses: list[dict[Access, float]] = []
        for node in self.shaped.nodes:
            accesses: dict[Access, float] = {}
            if isinstance(node, Assignment):
                accesses[node.target] = self.machine.strides.written
                for read in dict.fromkeys(node.reads):
                    for access, weight in self._through(read, all_accesses).items():
                        accesses[access] = accesses.get(access, 0.0) + weight
            all_accesses.append(accesses)
        return all_accesses

    def _through(self, read: Read, known: list[dict[Access, float]]) -> dict[Access, float]:
        """The accesses that one read causes, in the axes of the reader."""
        made = self.shaped.nodes[read.value]
        if not self.inlined[read.value] or not isinstance(made, Assignment):
            return {read.index: 1.0}
        renamed = mapping(made, read)
        found: dict[Access, float] = {}
        for access, weight in known[read.value].items():
            if access != made.target or weight != self.machine.strides.written:
                moved = tuple(index.renamed(renamed) for index in access)
                found[moved] = found.get(moved, 0.0) + weight
        return found

    def _order(self, value: int, node: Assignment) -> tuple[int, ...]:
        """Rule 4. Ties go to the order of the output, then of the reduced axes."""
        reduced = set(node.reduced_axes())
        strides = self.machine.strides
        cost = [strides.dependent_sum * (axis in reduced) for axis in range(len(node.axes))]
        for access, weight in self.accesses[value].items():
            for distance, index in enumerate(reversed(access)):
                for coefficient, axis in index.terms:
                    along = strides.unit * abs(coefficient)
                    step = strides.wide + distance if distance else along
                    cost[axis] += weight * step
        return tuple(sorted(range(len(node.axes)), key=lambda axis: -cost[axis]))

    def _sites(self, value: int, node: Assignment, nest: Nest) -> tuple[int | None, ...]:
        """Where each operand is computed; fixes the order of what is computed here."""
        sites: dict[Read, int | None] = {}
        for read in node.reads:
            if read not in sites:
                sites[read] = self._site(value, read, nest)
        return tuple(sites[read] for read in node.reads)

    def _packed(self, value: int, read: Read, nest: Nest) -> int | None:
        """Inside which loop an input is packed: what the lanes of a tile read, and its rows share.

        In a block of transposed work, what runs across is.
        """
        if value in self.across:
            other, last = self.across[value]
            walked = {axis for index in read.index[:-1] for _, axis in index.terms}
            blocks = nest.order[-1].part == 1
            is_across = last in walked and other not in walked and read.index[-1].axis() == other
            return len(nest.order) - 2 if blocks and is_across else None
        rows, lanes, windows = self.packs.get(value, (-1, -1, False))
        terms = [term for index in read.index for term in index.terms]
        axes = [axis for _, axis in terms]
        copied = lanes in axes or (windows and rows in axes)
        if not copied or {rows, lanes} <= set(axes) or any(c < 1 for c, _ in terms):
            return None
        if windows:
            return next(n for n, loop in enumerate(nest.order) if loop.axis not in axes)
        place = nest.order.index(Loop(lanes))
        return min(place + 1, nest.order.index(Loop(rows)))

    def _site(self, value: int, read: Read, nest: Nest) -> int | None:
        made = self.shaped.nodes[read.value]
        if isinstance(made, Input):
            return self._packed(value, read, nest)
        if self.readers[read.value] is None or self.written[read.value] is not None:
            return None
        pairs = mapping(made, read)
        tile = self.tilings[read.value]
        if tile is not None or self._is_by_rows(read.value):
            return self._tiled_site(value, read.value, pairs, nest)
        back = _inverse(pairs)
        if value in self.packs and self.inlined[read.value]:
            rows, lanes = (back.get(axis, [-1])[0] for axis in self.packs[value][:2])
            self.packs[read.value] = (rows, lanes, self.packs[value][2])
        if value in self.across and self.inlined[read.value]:
            other, last = (back.get(axis, [-1])[0] for axis in self.across[value])
            self.across[read.value] = (other, last)
        own = self._order(read.value, made)
        if made.acc is None or any(nest.factors):
            shared = _leading(nest.order, back)
        else:
            shared = _shared_prefix(nest.order, back, own, set(made.reduced_axes()))
        if shared == 0 and made.axes and made.target:
            return None
        outer = replace(nest, order=nest.order[:shared])
        self.given[read.value] = _taken(outer, pairs, own)
        self._settle(read.value, value, pairs, outer)
        return shared

    def _tiled_site(self, reader: int, value: int, pairs: dict[int, int], nest: Nest) -> int | None:
        """Inside the tile loops of a reader that has the same ones; elsewhere a contraction is computed whole."""
        found, made = self._found(value), self.shaped.nodes[value]
        assert found is not None
        assert isinstance(made, Assignment)
        tile, names = found
        ours = {own: pairs[at] for own, at in names.items() if at in pairs}
        outer = tuple(Loop(ours[x.axis], x.part) for x in tile.outer if x.axis in ours)
        same = all(nest.factors[at] == tile.factors[own] for own, at in ours.items())
        site: int | None = len(outer)
        if nest.order[: len(outer)] != outer or len(outer) < len(tile.outer) or not same:
            site = self._rows_site(found, pairs, nest)
        if site is None:
            return None
        self.given[value] = self._tile_of(value, made) or ((), ())
        self._settle(value, reader, pairs, replace(nest, order=nest.order[:site]))
        return site

    def _rows_site(
        self, found: tuple[Tiling, dict[int, int]], pairs: dict[int, int], nest: Nest
    ) -> int | None:
        """Inside the loop over blocks of rows, for a reader that has the same one."""
        tile, names = found
        ours = {own: pairs[at] for own, at in names.items() if at in pairs}
        outer = tile.outer[:-1]
        if not tile.is_by_rows() or any(loop.axis not in ours for loop in outer):
            return None
        loops = tuple(Loop(ours[loop.axis], loop.part) for loop in outer)
        same = all(nest.factors[ours[x.axis]] == tile.factors[x.axis] for x in outer)
        return len(loops) if same and nest.order[: len(loops)] == loops else None


def _meet(tile: Tiling, below: Tiling, ours: dict[int, int]) -> bool:
    """Whether two contractions go by the same blocks of rows, the lanes of the second being summed by the first."""
    walked = [ours.get(loop.axis) for loop in below.outer[:-1]]
    lanes = ours.get(below.lanes)
    summed = lanes is not None and lanes in {loop.axis for loop in tile.inner}
    return (
        walked == [loop.axis for loop in tile.outer[:-1]]
        and tile.factors[tile.rows] == below.factors[below.rows]
        and summed
        and lanes not in (tile.rows, tile.lanes)
    )


def _taken(
    nest: Nest, pairs: dict[int, int], own: tuple[int, ...]
) -> tuple[Factors, tuple[Loop, ...]]:
    """The splits and the order of a producer: its reader's loops in their order, then its other loops in its own."""
    back = _inverse(pairs)
    factors = tuple(nest.factors[pairs[axis]] if axis in pairs else () for axis in range(len(own)))
    outer = [Loop(axis, loop.part) for loop in nest.order for axis in back.get(loop.axis, [])]
    rest = [
        Loop(axis, part)
        for axis in own
        for part in range(len(factors[axis]) + 1)
        if Loop(axis, part) not in outer
    ]
    return factors, (*outer, *rest)


def _inverse(pairs: dict[int, int]) -> dict[int, list[int]]:
    """The producer's axes for each axis of a reader."""
    back: dict[int, list[int]] = {}
    for own, ours in pairs.items():
        back.setdefault(ours, []).append(own)
    return back


def _leading(order: tuple[Loop, ...], back: dict[int, list[int]]) -> int:
    """How many of the reader's outer loops walk the value."""
    return next((n for n, loop in enumerate(order) if loop.axis not in back), len(order))


def _shared_prefix(
    order: tuple[Loop, ...], back: dict[int, list[int]], own: tuple[int, ...], reduced: set[int]
) -> int:
    """How many of the reader's outer loops are, in order, the outer output loops of a reduction."""
    shared, position = 0, 0
    for loop in order:
        walked = back.get(loop.axis, [])
        ahead = own[position : position + len(walked)]
        if not walked or set(ahead) != set(walked) or reduced & set(ahead):
            break
        shared, position = shared + 1, position + len(walked)
    return shared
