"""The instances that staging makes of the values of a kernel: which loops each shares, and which loops are open there.

A value staged at two places is computed twice, and the two may differ in how much of a reduction they have seen; a
value staged at one place for several readers is computed there once. ``Instances`` finds them as lowering will, and
emits nothing.
"""

from __future__ import annotations

from ilang.core.ir.schedule import Instance, Loop, Nest, Opened, Source
from ilang.core.ir.shaped import Assignment
from ilang.core.schedule.fuse import Fusions


class Instances:
    """The instances of one kernel, by number; 0 is what the kernel computes."""

    def __init__(self, fusions: Fusions, root: int) -> None:
        """Find them all.

        Raises:
            ScheduleError: E0320 to E0322: loops that cannot fuse.
        """
        self.fusions = fusions
        self.shaped = fusions.shaped
        self.nests = fusions.nests
        self.found = [Instance(root, {}, (), {})]
        self.known: dict[object, int] = {}
        todo = [0]
        while todo:
            todo += self._explore(todo.pop())

    def node(self, number: int) -> Assignment:
        """The assignment that an instance computes."""
        node = self.shaped.nodes[self.found[number].value]
        assert isinstance(node, Assignment)
        return node

    def nest(self, number: int) -> Nest:
        """The nest of an instance."""
        nest = self.nests[self.found[number].value]
        assert nest is not None
        return nest

    def opened(self, number: int, loop: Loop) -> Opened:
        """A loop of an instance, as a loop of the kernel."""
        return self.found[number].home.get(loop, Opened(number, loop))

    def reduced(self, number: int) -> list[Opened]:
        """The loops of the kernel over the reduced axes of an instance, in its order."""
        node = self.node(number)
        axes = set(node.reduced_axes()) if node.base is None else set()
        order = self.nest(number).order
        return [self.opened(number, loop) for loop in order if loop.axis in axes]

    def partial(self, number: int) -> list[Opened]:
        """The loops over its reduced axes that an instance shares: it is read inside them, before it is final."""
        return [opened for opened in self.reduced(number) if opened.instance != number]

    def outermost(self, number: int) -> Opened:
        """The outermost loop over a reduced axis of an instance."""
        chain = self.found[number].chain
        shared = self.partial(number)
        return min(shared, key=chain.index) if shared else self.reduced(number)[0]

    def _explore(self, number: int) -> list[int]:
        """Find what an instance stages; the new instances."""
        node, nest, instance = self.node(number), self.nest(number), self.found[number]
        staged = [
            (0 if not site or nest.order[site - 1] in instance.home else site, n, site)
            for n, (read, site) in enumerate(
                zip(node.reads, map(nest.staged, range(len(node.reads))), strict=True)
            )
            if site is not None and isinstance(self.shaped.nodes[read.value], Assignment)
        ]
        new: list[int] = []
        for _, n, site in sorted(staged, key=lambda entry: entry[0]):
            if node.reads[n] not in instance.sources:
                self._stage(number, n, site, new)
        return new

    def _stage(self, number: int, n: int, site: int, new: list[int]) -> None:
        value, read = self.found[number].value, self.node(number).reads[n]
        chain = self._chain(number, site)
        fusion = self.fusions.of(value, n)
        if fusion is None:
            return  # an equal read before it copies what is computed whole
        shared = {own: self.opened(number, outer) for own, outer in fusion.loops.items()}
        home = {own: opened for own, opened in shared.items() if opened in chain}
        key = (read.value, chain[-1:], frozenset(home.items()))
        if key not in self.known:
            self.known[key] = len(self.found)
            new.append(len(self.found))
            self.found.append(Instance(read.value, home, chain, {}))
        self.found[number].sources[read] = Source(self.known[key], fusion.pairs)

    def _chain(self, number: int, site: int) -> tuple[Opened, ...]:
        """The loops around what an instance stages inside its first ``site`` loops."""
        nest, instance = self.nest(number), self.found[number]
        if site == 0:
            return ()
        last = self.opened(number, nest.order[site - 1])
        if last.instance != number:
            return instance.chain[: instance.chain.index(last) + 1]
        own = [Opened(number, loop) for loop in nest.order[:site] if loop not in instance.home]
        return (*instance.chain, *own)
