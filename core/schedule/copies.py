"""The copies that staging makes of the values of a kernel: which loops each shares, and which loops are open there.

A value staged at two places is computed twice, and the two may differ in how much of a reduction they have seen; a
value staged at one place for several readers is computed there once. ``Copies`` finds them as lowering will, and
emits nothing.
"""

from __future__ import annotations

from ilang.core.ir.nest import Loop, Nest, Scheduled
from ilang.core.ir.shaped import Assignment, Read
from ilang.core.record import record
from ilang.core.schedule.fuse import Provenance, fuse


@record
class Opened:
    """A loop of a kernel: the copy that opens it, and which loop of that one's nest it is."""

    copy: int
    loop: Loop


@record
class Source:
    """The copy that a read is from, and the reader's axis of each axis of it that fuses."""

    copy: int
    pairs: dict[int, int]


@record
class Copy:
    """One computation of a value in a kernel.

    ``home`` are the loops that it shares, ``chain`` all loops around its place, outermost first; ``sources`` has an
    entry per staged read of an assignment.
    """

    value: int
    home: dict[Loop, Opened]
    chain: tuple[Opened, ...]
    sources: dict[Read, Source]


class Copies:
    """The copies of one kernel, by number; 0 is what the kernel computes."""

    def __init__(self, scheduled: Scheduled, provenance: Provenance, root: int) -> None:
        """Find them all.

        Raises:
            ScheduleError: E0320 to E0322: loops that cannot fuse.
        """
        self.scheduled = scheduled
        self.provenance = provenance
        self.found = [Copy(root, {}, (), {})]
        self.known: dict[object, int] = {}
        todo = [0]
        while todo:
            todo += self._explore(todo.pop())

    def node(self, number: int) -> Assignment:
        """The assignment that a copy computes."""
        node = self.scheduled.shaped.nodes[self.found[number].value]
        assert isinstance(node, Assignment)
        return node

    def nest(self, number: int) -> Nest:
        """The nest of a copy."""
        nest = self.scheduled.nests[self.found[number].value]
        assert nest is not None
        return nest

    def opened(self, number: int, loop: Loop) -> Opened:
        """A loop of a copy, as a loop of the kernel."""
        return self.found[number].home.get(loop, Opened(number, loop))

    def reduced(self, number: int) -> list[Opened]:
        """The loops of the kernel over the reduced axes of a copy, in its order."""
        node = self.node(number)
        axes = set(node.reduced_axes()) if node.base is None else set()
        order = self.nest(number).order
        return [self.opened(number, loop) for loop in order if loop.axis in axes]

    def partial(self, number: int) -> list[Opened]:
        """The loops over its reduced axes that a copy shares: it is read inside them, before it is final."""
        return [opened for opened in self.reduced(number) if opened.copy != number]

    def outermost(self, number: int) -> Opened:
        """The outermost loop over a reduced axis of a copy."""
        chain = self.found[number].chain
        shared = self.partial(number)
        return min(shared, key=chain.index) if shared else self.reduced(number)[0]

    def _explore(self, number: int) -> list[int]:
        """Find what a copy stages; the new copies."""
        node, nest, copy = self.node(number), self.nest(number), self.found[number]
        staged = [
            (0 if not site or nest.order[site - 1] in copy.home else site, read, site)
            for read, site in zip(node.reads, map(nest.staged, range(len(node.reads))), strict=True)
            if site is not None and isinstance(self.scheduled.shaped.nodes[read.value], Assignment)
        ]
        new: list[int] = []
        for _, read, site in sorted(staged, key=lambda entry: entry[0]):
            if read not in copy.sources:
                self._stage(number, read, site, new)
        return new

    def _stage(self, number: int, read: Read, site: int, new: list[int]) -> None:
        nest, made = self.nest(number), self.scheduled.nests[read.value]
        assert made is not None
        chain = self._chain(number, site)
        fusion = fuse(self.provenance, self.found[number].value, nest, read, site, made)
        shared = {own: self.opened(number, ours) for own, ours in fusion.loops.items()}
        home = {own: opened for own, opened in shared.items() if opened in chain}
        key = (read.value, chain[-1:], frozenset(home.items()))
        if key not in self.known:
            self.known[key] = len(self.found)
            new.append(len(self.found))
            self.found.append(Copy(read.value, home, chain, {}))
        self.found[number].sources[read] = Source(self.known[key], fusion.pairs)

    def _chain(self, number: int, site: int) -> tuple[Opened, ...]:
        """The loops around what a copy stages inside its first ``site`` loops."""
        nest, copy = self.nest(number), self.found[number]
        if site == 0:
            return ()
        last = self.opened(number, nest.order[site - 1])
        if last.copy != number:
            return copy.chain[: copy.chain.index(last) + 1]
        own = [Opened(number, loop) for loop in nest.order[:site] if loop not in copy.home]
        return (*copy.chain, *own)
