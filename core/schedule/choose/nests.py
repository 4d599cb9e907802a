"""The nest of every assignment, from the outputs to the inputs, and which values share a kernel.

Example:
    in:   t1 = in0[i,k] * in1[k,j], inlined;  out = sum t1[i,j,k] over k, tiled
    out:  t1 | i:6,j:64,k:512 | j 1 i k k' i' j'      out | i:6,j:64,k:512 | j i k k' i' j' 0
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.ir.schedule import Nest, Space
from ilang.core.ir.shaped import Assignment, Read
from ilang.core.record import record, replace
from ilang.core.schedule.choose.known import Analysis, ChosenNests
from ilang.core.schedule.choose.own_loops import own_nest, packed_rows
from ilang.core.schedule.choose.packing import packed_site
from ilang.core.schedule.choose.sharing import shared_inside
from ilang.core.schedule.choose.sites import adopted, site_of
from ilang.core.schedule.groups import Kernels
from ilang.core.schedule.readers import live_values, readers_of


@record
class Choice:
    """A nest per assignment, and the kernels of the values from ``placed`` on.

    Where a person wrote another nest than would be chosen, which kernels the values before have is seen when all nests
    are known.
    """

    nests: tuple[Nest | None, ...]
    kernels: Kernels
    placed: int


def choose_nests(analysis: Analysis) -> Choice:
    """The nest of every assignment, that of a reader before those of its producers.

    A written nest that is what would be chosen in its place is chosen, so that it changes nothing to write it down.

    Raises:
        ScheduleError: E0320 to E0322 (a producer without a schedule cannot take that of its reader).
    """
    return _ChoiceRecord(analysis).run()


def same_loops(written: Nest, chosen: Nest) -> bool:
    """Whether a written nest has the loops of a chosen one, and they run alike."""
    positions = range(len(written.order))
    return (written.factors, written.order, written.start) == (
        chosen.factors,
        chosen.order,
        chosen.start,
    ) and [*map(written.role, positions)] == [*map(chosen.role, positions)]


def _with_places(nest: Nest, places: Sequence[tuple[int | None, Space]]) -> Nest:
    """A nest whose reads have these sites and spaces."""
    spaces = tuple(space for _, space in places)
    return replace(
        nest, sites=tuple(site for site, _ in places), spaces=spaces if any(spaces) else ()
    )


class _ChoiceRecord:
    """The record of the choice, value by value, each after all that read it: nests, what they stage, and kernels.

    A nest that a person wrote is *tentative* as long as it is what would be chosen in its place. The chosen nests of
    its producers then rest on it as if nobody had written it. A written nest is *adopted* where it turns out to be
    another: from then on it decides what stands in it.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.known = ChosenNests(len(analysis.shaped.nodes))
        phases = {} if analysis.apart is None else analysis.apart.phases
        self.kernels = Kernels(analysis.shaped, analysis.provenance, phases)
        self.placed = len(analysis.shaped.nodes)
        self.readers = readers_of(analysis.shaped)
        self.live = live_values(analysis.shaped)

    def run(self) -> Choice:
        """All nests, the last value first."""
        nodes = self.analysis.shaped.nodes
        for value in range(len(nodes) - 1, -1, -1):
            node = nodes[value]
            if isinstance(node, Assignment):
                self._share(value, node)
                self._choose(value, node)
        return Choice(tuple(self.known.nests), self.kernels, self.placed)

    def _share(self, value: int, node: Assignment) -> None:
        """Stage a value with several readers in all of them, where there is one place for it.

        A reader whose written nest has it elsewhere is not what would be chosen.
        """
        if self.analysis.inlining.sole[value] is not None:
            return
        shared = shared_inside(self.analysis, self.known, value, node)
        if shared is not None and self._impose_readers(value, shared[0]):
            shared = None
        if shared is None:
            self._impose_readers(value, None)
            return
        depth, staged = shared
        for reader, read in self.analysis.inlining.all_reads[value]:
            self._place(reader, read, depth)
        self.known.stage(staged)

    def _impose_readers(self, value: int, site: int | None) -> bool:
        """Take the written nests of readers that stage a value elsewhere, the last one first; whether there are any."""
        elsewhere = [
            reader
            for reader, read in reversed(self.analysis.inlining.all_reads[value])
            if self._is_tentative(reader) and not self._stages(reader, read, site)
        ]
        for reader in elsewhere:
            self._adopt(reader)
        return bool(elsewhere)

    def _is_tentative(self, value: int) -> bool:
        """Whether a person wrote the nest of a value, sites and all, and it is what would be chosen so far."""
        written = self.analysis.written[value]
        return written is not None and written.written and value not in self.known.imposed

    def _stages(self, reader: int, read: Read, site: int | None) -> bool:
        """Whether the written nest of a reader has a read at a site; None: it reads a value that is computed whole."""
        node, written = self.analysis.shaped.assignment(reader), self.analysis.written[reader]
        assert written is not None
        wanted = self._placed(reader, read, written, site)
        return all(
            (written.sites[n], written.space(n)) == wanted
            for n, each in enumerate(node.reads)
            if each == read
        )

    def _place(self, reader: int, read: Read, depth: int | None) -> None:
        """Stage a read of an assignment whose nest is chosen, or compute it whole."""
        node, nest = self.analysis.shaped.assignment(reader), self.known.nest(reader)
        placed = self._placed(reader, read, nest, depth)
        self.known.nests[reader] = _with_places(
            nest,
            [
                placed if each == read else (nest.sites[n], nest.space(n))
                for n, each in enumerate(node.reads)
            ],
        )

    def _placed(
        self, reader: int, read: Read, nest: Nest, site: int | None
    ) -> tuple[int | None, Space]:
        """The site of a read and its space: what is computed whole is copied where an input would be."""
        if site is not None or not isinstance(self.analysis.shaped.nodes[read.value], Assignment):
            return site, ""
        if any(index.looked for index in read.index):
            return None, ""
        copied = packed_site(self.known.packed.get(reader), read, nest)
        return (None, "") if copied is None else (copied, "c")

    def _choose(self, value: int, node: Assignment) -> None:
        """Choose the nest of a value, and what it stages; or take the written one, where that is another."""
        nest, packed = own_nest(self.analysis, self.known, value, node)
        if packed is not None:
            self.known.packed[value] = packed
        written = self.analysis.written[value]
        if written is None or self._is_same(value, node, written, nest):
            self._root(value, nest)
            self._stage(value, node, nest)
            return
        self._release(value)
        packed = packed_rows(self.analysis, value, written)
        if packed is not None:
            self.known.packed[value] = packed
        self._root(value, written)
        if written.written:
            self._adopt(value)
        else:
            self._stage(value, node, written)

    def _is_same(self, value: int, node: Assignment, written: Nest, chosen: Nest) -> bool:
        """Whether a written nest is what would be chosen: its loops, and the places of what it reads.

        Places of values that others read too are compared later, when those values are shared out.
        """
        if not same_loops(written, chosen):
            return False
        if not written.written:
            return True
        for number, read in enumerate(node.reads):
            producer = self.analysis.shaped.nodes[read.value]
            several = self.analysis.inlining.sole[read.value] is None
            if isinstance(producer, Assignment) and several:
                continue
            site, _ = site_of(self.analysis, self.known, value, read, chosen)
            placed = self._placed(value, read, chosen, site)
            if placed != (written.sites[number], written.space(number)):
                return False
        return True

    def _stage(self, value: int, node: Assignment, nest: Nest) -> None:
        """Give a value its chosen nest, with a place for each read, and stage the producers that have one in it."""
        places: dict[Read, tuple[int | None, Space]] = {}
        for read in dict.fromkeys(node.reads):
            site, producer = site_of(self.analysis, self.known, value, read, nest)
            places[read] = self._placed(value, read, nest, site)
            if producer is not None:
                self.known.stage(producer)
        self.known.nests[value] = _with_places(nest, [places[read] for read in node.reads])

    def _adopt(self, value: int) -> None:
        """Take the written nest of a value, which says the loops of the producers that nobody scheduled."""
        nest = self.analysis.written[value]
        assert nest is not None
        self.known.imposed.add(value)
        self.known.nests[value] = nest
        for staged in [*adopted(self.analysis, self.known, value, nest)]:
            self.known.stage(staged)

    def _release(self, value: int) -> None:
        """Undo what was chosen for a value inside of its readers, since its own written nest has other loops.

        A reader with a tentative nest that has the value inside keeps it there, and its nest is adopted. All other
        readers read the value from memory.
        """
        self.known.imposed.add(value)
        self.known.release(value)
        for reader, read in self.analysis.inlining.all_reads[value]:
            if self._is_tentative(reader):
                if not self._stages(reader, read, None):
                    self._adopt(reader)
            elif not self.known.nest(reader).written:
                self._place(reader, read, None)

    def _root(self, value: int, nest: Nest) -> None:
        """Note the loops of a value with a nest of its own, and the kernel whose root it is.

        The first loops may be those of another root of the kernel.
        """
        whole, places = value not in self.known.staged, self.known.places
        if whole:
            places[value] = {loop: (value, loop) for loop in nest.order}
        if self.known.imposed:
            return  # which kernels there are is seen when all schedules are read
        self.placed = value
        if value not in self.live:
            return
        root = self.kernels.add(value, nest, self.readers[value], whole)
        known = self.kernels.nests[root.owner].order[: root.shared]
        for loop_inside, loop in zip(nest.order, known, strict=False):
            places[value][loop_inside] = places[root.owner][loop]
