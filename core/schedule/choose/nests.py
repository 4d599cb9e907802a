"""Nests and sites, from the outputs to the inputs: rules 3 and 5 of the choice.

Example:
    in:   t1 = in0[i,k] * in1[k,j], inlined;  out = sum t1[i,j,k] over k, tiled
    out:  t1 | i:6,j:64,k:512 | j 1 i k k' i' j'      out | i:6,j:64,k:512 | j i k k' i' j' 0
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.dtype import BYTES
from ilang.core.ir.scalar import Operand
from ilang.core.ir.schedule import Loop, Nest, Root
from ilang.core.ir.shaped import Assignment, Input, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.record import record, replace
from ilang.core.schedule.choose.accesses import Accesses, loop_order, reads_of
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.choose.packing import Across, Packed, packed_site
from ilang.core.schedule.choose.taking import inverse, leading, shared_prefix, taken
from ilang.core.schedule.choose.tile import Factors, Tiling, blocked, transposed
from ilang.core.schedule.choose.tilings import Tilings
from ilang.core.schedule.extents import Extents
from ilang.core.schedule.fuse import Provenance, axis_pairs, mapping
from ilang.core.schedule.groups import Kernels
from ilang.core.schedule.readers import live_values, readers_of


@record
class Analysis:
    """What nests are chosen from: who reads what, the accesses, the tilings, the extents."""

    inlining: Inlining
    accesses: tuple[Accesses, ...]
    tilings: Tilings
    extents: Extents


@record
class Choice:
    """A nest per assignment, and the roots of each kernel, the one that runs first first.

    ``groups`` is None where a person wrote a nest: which kernels there are is seen when all nests are known.
    """

    nests: tuple[Nest | None, ...]
    groups: tuple[tuple[Root, ...], ...] | None


def choose_nests(
    shaped: Shaped,
    written: Sequence[Nest | None],
    provenance: Provenance,
    machine: Machine,
    analysis: Analysis,
) -> Choice:
    """The nest of every assignment, that of a reader before those of its producers.

    Args:
        shaped: the program.
        written: the nests that a person wrote, None for every other node.
        provenance: of the program.
        machine: what the loops are for.
        analysis: of the program.

    Raises:
        ScheduleError: E0320 to E0322 (a producer without a schedule cannot take that of its reader).
    """
    return _Nests(shaped, written, provenance, machine, analysis).run()


class _Nests:
    """The nests chosen so far, and what they say of the producers to come.

    ``given`` has the loops that a staged value takes, ``packed`` the tile or block around an assignment, ``places`` the
    loop of a root that each loop of a kernel is.
    """

    def __init__(
        self,
        shaped: Shaped,
        written: Sequence[Nest | None],
        provenance: Provenance,
        machine: Machine,
        analysis: Analysis,
    ) -> None:
        self.shaped = shaped
        self.written = written
        self.provenance = provenance
        self.machine = machine
        self.inlining = analysis.inlining
        self.accesses = analysis.accesses
        self.tilings = analysis.tilings
        self.extents = analysis.extents
        self.nests: list[Nest | None] = [None] * len(shaped.nodes)
        self.given: dict[int, tuple[Factors, tuple[Loop, ...]]] = {}
        self.packed: dict[int, Packed | Across] = {}
        self.places: dict[tuple[int, Loop], tuple[int, Loop]] = {}
        self.kernels = Kernels(shaped, provenance)
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

    def _order(self, value: int, node: Assignment) -> tuple[int, ...]:
        """The axes of an assignment in the order of rule 4; their own order where the last store counts."""
        if node.scatters() and node.acc is None:
            return tuple(range(len(node.axes)))
        return loop_order(node, self.accesses[value], self.machine)

    def _share(self, value: int, node: Assignment) -> None:
        """Rule 5: compute a value with several readers once, inside the loops that all of them are in."""
        reads = self.inlining.all_reads[value]
        readers = {reader for reader, _ in reads}
        if (
            self.inlining.sole[value] is not None
            or value in self.inlining.kept
            or not reads
            or not (self.tilings.is_by_rows(value) or self.tilings.found(value) is None)
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
        found = self.tilings.found(value)
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
        tile = self.tilings.loops(value, node)
        self.given[value] = tile or taken(outer, pairs, self._order(value, node))
        self._settle(value, reader, pairs, outer)

    def _places_of(self, reader: int, read: Read, made: Assignment) -> list[object]:
        """The outer loops of a reader that walk what it reads: where each is, and what it walks."""
        nest = self.nests[reader]
        assert nest is not None
        back = inverse(mapping(made, read))
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
        sizes = (node.sizes[loop.axis] for loop in nest.order[:depth])
        return any(not self.extents.is_small(size) for size in sizes)

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
        tile = self.tilings.loops(value, node) if nest is None else None
        if tile is not None:
            nest = Nest(tile[0], tile[1], (None,) * len(node.reads))
        if nest is None:
            axes = self._order(value, node)
            plain = ((),) * len(axes), tuple(map(Loop, axes))
            across = self._transposed(value, node)
            chosen = across or blocked(node, self.extents, axes, self.machine) or plain
            nest = Nest(*chosen, (None,) * len(node.reads))
            if across is not None:
                self.packed[value] = Across(nest.order[-2].axis, nest.order[-1].axis)
        if nest.written:
            for number, read in enumerate(node.reads):
                self._adopt(value, nest, read, nest.staged(number))
            return nest
        own = self.tilings.tiles[value]
        if own is not None and nest.order == own.order():
            self.packed[value] = Packed(own.rows, own.lanes, own.windows)
        self._root(value, nest)
        return replace(nest, sites=self._sites(value, node, nest))

    def _transposed(self, value: int, node: Assignment) -> tuple[Factors, tuple[Loop, ...]] | None:
        """The splits and loops of work that runs along one axis in an operand and along another in the result."""
        reads = reads_of(node, self.accesses[value])
        least = self.machine.memory.transposed_bytes
        copies = isinstance(node.scalar, Operand) and not any(
            self.inlining.inlined[read.value]
            or BYTES[self.shaped.tensors[read.value].dtype] < least
            for read in node.reads
        )
        return transposed(node, self.extents, reads, copies, self.machine)

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
        self.given[read.value] = taken(nest, pairs, self._order(read.value, made))

    def _sites(self, value: int, node: Assignment, nest: Nest) -> tuple[int | None, ...]:
        """Where each operand is computed; fixes the order of what is computed here."""
        sites: dict[Read, int | None] = {}
        for read in node.reads:
            if read not in sites:
                sites[read] = self._site(value, read, nest)
        return tuple(sites[read] for read in node.reads)

    def _site(self, value: int, read: Read, nest: Nest) -> int | None:
        made = self.shaped.nodes[read.value]
        if any(index.looked for index in read.index):
            return None
        if isinstance(made, Input):
            return packed_site(self.packed.get(value), read, nest)
        if self.inlining.sole[read.value] is None or self.written[read.value] is not None:
            return None
        pairs = mapping(made, read)
        tile = self.tilings.tiles[read.value]
        if tile is not None or self.tilings.is_by_rows(read.value):
            return self._tiled_site(value, read.value, pairs, nest)
        back = inverse(pairs)
        if value in self.packed and self.inlining.inlined[read.value]:
            self.packed[read.value] = self.packed[value].inside(back)
        own = self._order(read.value, made)
        if made.acc is None or any(nest.factors):
            shared = leading(nest.order, back)
        else:
            shared = shared_prefix(nest.order, back, own, set(made.reduced_axes()))
        if shared == 0 and made.axes and made.target:
            return None
        outer = replace(nest, order=nest.order[:shared])
        self.given[read.value] = taken(outer, pairs, own)
        self._settle(read.value, value, pairs, outer)
        return shared

    def _tiled_site(self, reader: int, value: int, pairs: dict[int, int], nest: Nest) -> int | None:
        """Inside the tile loops of a reader that has the same ones; elsewhere a contraction is computed whole."""
        found, made = self.tilings.found(value), self.shaped.nodes[value]
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
        self.given[value] = self.tilings.loops(value, made) or ((), ())
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
