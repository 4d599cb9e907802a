"""The nest of every assignment, from the outputs to the inputs, and which values share a kernel.

Example:
    in:   t1 = in0[i,k] * in1[k,j], inlined;  out = sum t1[i,j,k] over k, tiled
    out:  t1 | i:6,j:64,k:512 | j 1 i k k' i' j'      out | i:6,j:64,k:512 | j i k k' i' j' 0
"""

from __future__ import annotations

from ilang.core.ir.schedule import Nest, Root
from ilang.core.ir.shaped import Assignment, Read
from ilang.core.record import record, replace
from ilang.core.schedule.choose.known import Analysis, Known
from ilang.core.schedule.choose.own_loops import own_nest
from ilang.core.schedule.choose.sharing import shared_inside
from ilang.core.schedule.choose.sites import adopted, site_of
from ilang.core.schedule.groups import Kernels
from ilang.core.schedule.readers import live_values, readers_of


@record
class Choice:
    """A nest per assignment, and the roots of each kernel, the one that runs first first.

    ``groups`` is None where a person wrote a nest: which kernels there are is seen when all nests are known.
    """

    nests: tuple[Nest | None, ...]
    groups: tuple[tuple[Root, ...], ...] | None


def choose_nests(analysis: Analysis) -> Choice:
    """The nest of every assignment, that of a reader before those of its producers.

    Raises:
        ScheduleError: E0320 to E0322 (a producer without a schedule cannot take that of its reader).
    """
    return _Nests(analysis).run()


class _Nests:
    """What is written down, value by value: nests, what they stage, and kernels."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.known = Known(len(analysis.shaped.nodes))
        self.kernels = Kernels(analysis.shaped, analysis.provenance)
        self.readers = readers_of(analysis.shaped)
        self.live = live_values(analysis.shaped)
        self.has_written = any(nest is not None for nest in analysis.written)

    def run(self) -> Choice:
        """All nests, the last value first."""
        nodes = self.analysis.shaped.nodes
        for value in range(len(nodes) - 1, -1, -1):
            node = nodes[value]
            if isinstance(node, Assignment):
                self._share(value, node)
                self._choose(value, node)
        groups = tuple(tuple(roots) for roots in reversed(self.kernels.groups))
        return Choice(tuple(self.known.nests), None if self.has_written else groups)

    def _share(self, value: int, node: Assignment) -> None:
        """Stage a value with several readers in all of them, where there is one place for it."""
        shared = shared_inside(self.analysis, self.known, value, node)
        if shared is None:
            return
        depth, staged = shared
        for reader, read in self.analysis.inlining.all_reads[value]:
            self._place(reader, read, depth)
        self.known.stage(staged)

    def _place(self, reader: int, read: Read, depth: int) -> None:
        """Stage a read of an assignment whose nest is chosen."""
        node, nest = self.analysis.shaped.nodes[reader], self.known.nest(reader)
        assert isinstance(node, Assignment)
        sites = tuple(
            depth if r == read else site for r, site in zip(node.reads, nest.sites, strict=True)
        )
        self.known.nests[reader] = replace(nest, sites=sites)

    def _choose(self, value: int, node: Assignment) -> None:
        """Choose the nest of a value, and what it stages."""
        nest, packed = own_nest(self.analysis, self.known, value, node)
        if packed is not None:
            self.known.packed[value] = packed
        self.known.nests[value] = nest
        if nest.written:
            for staged in [*adopted(self.analysis, self.known, value, nest)]:
                self.known.stage(staged)
            return
        self._root(value, nest)
        sites: dict[Read, int | None] = {}
        for read in dict.fromkeys(node.reads):
            sites[read], producer = site_of(self.analysis, self.known, value, read, nest)
            if producer is not None:
                self.known.stage(producer)
        self.known.nests[value] = replace(nest, sites=tuple(sites[read] for read in node.reads))

    def _root(self, value: int, nest: Nest) -> None:
        """Note where the loops of a value are that has loops of its own: some may be those of another root."""
        whole, places = value not in self.known.staged, self.known.places
        if whole:
            places[value] = {loop: (value, loop) for loop in nest.order}
        if self.has_written or value not in self.live:
            return  # which kernels there are is seen when all schedules are read
        root = self.kernels.add(value, nest, self.readers[value], whole)
        known = self.kernels.nests[root.owner].order[: root.shared]
        for own, loop in zip(nest.order, known, strict=False):
            places[value][own] = places[root.owner][loop]
