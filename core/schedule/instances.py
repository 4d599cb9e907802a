"""The instances that staging makes of the values of a kernel: which loops each shares, and what each keeps.

A value staged at two places is computed twice, and the two may differ in how much of a reduction they have seen; a
value staged at one place for several readers is computed there once. ``Instances`` finds them, and emits nothing.

Example, a product whose rows are normalised, ``+ij~i || i j >> ...``, all of it inside i:
    in:   m = max x[i,j] over j || i j      e = exp(x[i,j] - m[i]) || i 1 j      s = sum e[i,j] over j || i 0 j
    out:  s in its own loops; e inside i, shares i, keeps j; m inside i of s, shares i, keeps one number
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.core.calculus.extent import Extent, size
from ilang.core.diagnostic import MeaningError
from ilang.core.ir.schedule import (
    Instance,
    Interval,
    Loop,
    LoopSteps,
    Nest,
    Opened,
    Root,
    Scheduled,
    StagedSource,
    unscheduled,
)
from ilang.core.ir.shaped import Assignment, Read, Shaped

if TYPE_CHECKING:
    from ilang.core.schedule.staged import StagedReader

MOST_AGAIN = 1_000
"""Computations of values that are computed elsewhere, past one for each value, for tiles compute their edges apart.

A digit at each of two reads doubles what is staged, and in a chain it does so at each step."""


class Computations:
    """The number of computations of each value of a program, in the text of its kernels."""

    def __init__(self, shaped: Shaped) -> None:
        self.shaped = shaped
        self.count: Counter[int] = Counter()
        self.again = 0

    def add(self, value: int, times: int = 1) -> None:
        """Note that a value is computed more often.

        Raises:
            MeaningError: E0251 (the digits of schedules have too much computed again).
        """
        self.again += times if self.count[value] else times - 1
        self.count[value] += times
        limit = MOST_AGAIN + len(self.shaped.nodes)
        if self.again <= limit:
            return
        most, count = max(self.count.items(), key=lambda each: (each[1], -each[0]))
        node = self.shaped.assignment(most)
        raise MeaningError(
            "E0251",
            f"schedules have expressions computed again more than {limit:,} times, "
            f"{unscheduled(node)} alone {count:,} times",
            node.span,
            "leave out a digit of an input that is read in several ways: it is then computed once, whole",
        )


class Instances:
    """The instances of one kernel, by number; the first ones are what the kernel stores whole."""

    def __init__(
        self,
        nested: Scheduled,
        roots: Sequence[Root],
        computations: Computations,
        *,
        intervals: bool = True,
    ) -> None:
        """Find them all.

        Args:
            nested: the program, with its nests.
            roots: the values that the kernel stores whole, in the order in which its loops were shared out.
            computations: where the instances are counted.
            intervals: whether affine indices walk intervals of staged values; else those are computed whole there.

        Raises:
            MeaningError: E0251.
        """
        self.nested = nested
        self.shaped = nested.shaped
        self.computations = computations
        self.with_intervals = intervals
        self.by_number: list[Instance] = []
        self.known: dict[object, int] = {}
        numbers = {root.value: number for number, root in enumerate(roots)}
        for root in roots:
            self._root(root, numbers[root.owner])
        todo = [*reversed(range(len(self.by_number)))]
        while todo:
            todo += self._explore(todo.pop())

    def node(self, number: int) -> Assignment:
        """The assignment that an instance computes."""
        return self.nested.assigned(self.by_number[number].value)[0]

    def nest(self, number: int) -> Nest:
        """The nest of an instance."""
        return self.nested.assigned(self.by_number[number].value)[1]

    def opened(self, number: int, loop: Loop) -> Opened:
        """A loop of an instance, as a loop of the kernel."""
        return self.by_number[number].home.get(loop, Opened(number, loop))

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
        chain = self.by_number[number].chain
        shared = self.partial(number)
        return min(shared, key=chain.index) if shared else self.reduced(number)[0]

    def _root(self, root: Root, owner: int) -> None:
        """Add what is stored whole; its leading loops may be those of a root before."""
        node, nest = self.nested.assigned(root.value)
        home: dict[Loop, Opened] = {}
        if root.shared:
            leading = self.nest(owner).order[: root.shared]
            home = {
                loop_inside: self.opened(owner, loop)
                for loop_inside, loop in zip(nest.order, leading, strict=False)
            }
        extents = tuple(map(size, node.sizes))
        self.computations.add(root.value)
        self.by_number.append(
            Instance(root.value, home, tuple(home.values()), extents, {}, {}, {}, {})
        )

    def _explore(self, number: int) -> list[int]:
        """Find what an instance stages; the new instances."""
        node, nest, instance = self.node(number), self.nest(number), self.by_number[number]
        staged = [
            (0 if not site or nest.order[site - 1] in instance.home else site, n, site)
            for n, site in enumerate(nest.sites)
            if site is not None
        ]
        new: list[int] = []
        delivered: set[Read] = set()
        readers: dict[int, StagedReader] = {}
        for _, n, site in sorted(staged, key=lambda entry: entry[0]):
            read = node.reads[n]
            if read in delivered:
                continue
            if site not in readers:
                readers[site] = self._reader(number, site)
            if self._stage(number, n, readers[site], new):
                delivered.add(read)
        return new

    def _reader(self, number: int, site: int) -> StagedReader:
        """An instance as what it stages inside its first ``site`` loops sees it."""
        from ilang.core.schedule.staged import StagedReader

        nest, instance = self.nest(number), self.by_number[number]
        loops = {loop: self.opened(number, loop) for loop in nest.order}
        chain = self._chain(number, site)
        inside = len(instance.chain) <= len(chain)
        known = frozenset(chain)
        return StagedReader(nest, instance.extents, instance.intervals, loops, chain, known, inside)

    def _stage(self, number: int, n: int, reader: StagedReader, new: list[int]) -> bool:
        """Find what delivers a read, an instance or a copy; whether anything does there."""
        from ilang.core.schedule.staged import in_loop_order, kept_dims, packed_dims

        instance, read = self.by_number[number], self.node(number).reads[n]
        fusion = self.nested.fusions[instance.value][n]
        if fusion is None:  # the read copies what is there already
            tensor = self.shaped.tensors[read.value]
            copy = packed_dims(self.shaped.sizes, tensor, reader, read)
            if copy is not None:
                instance.copies[n] = copy
            return copy is not None
        shared = {inner: reader.loops[outer] for inner, outer in fusion.loops.items()}
        home = {inner: opened for inner, opened in shared.items() if opened in reader.around}
        producer, nest = self.nested.assigned(read.value)
        intervals, walks, extents = self._intervals(reader, read, producer, {x.axis for x in home})
        starts = tuple((a, *x, extents[a]) for a, x in intervals.items())
        key = (read.value, reader.chain[-1:], frozenset(home.items()), starts)
        if key not in self.known:
            for inner in {loop.axis for loop in home}:
                if fusion.pairs[inner] in reader.intervals:
                    intervals[inner] = reader.intervals[fusion.pairs[inner]]
                    extents[inner] = reader.extents[fusion.pairs[inner]]
            self.computations.add(read.value)
            self.known[key] = len(self.by_number)
            new.append(len(self.by_number))
            tensor = self.shaped.tensors[read.value]
            kept = kept_dims(self.shaped.sizes, producer, nest, tensor, extents, home)
            if self.nested.machine.device is None:
                kept = in_loop_order(kept, producer, nest)
            self.by_number.append(
                Instance(read.value, home, reader.chain, tuple(extents), intervals, kept, {}, {})
            )
        instance.sources[read] = StagedSource(self.known[key], fusion.pairs, walks)
        return True

    def _intervals(
        self, reader: StagedReader, read: Read, producer: Assignment, shared: set[int]
    ) -> tuple[dict[int, Interval], dict[int, LoopSteps], list[Extent]]:
        """The intervals that a read needs, by axis of what computes it; how the reader walks each; the extents.

        Axes that share loops of the reader walk no interval of their own.
        """
        from ilang.core.schedule.staged import interval_of

        intervals, walks = {}, {}
        extents: list[Extent] = list(map(size, producer.sizes))
        for dim, (target, index) in enumerate(zip(producer.target, read.index, strict=True)):
            axis, outer = target.axis(), index.axis()
            if axis is None or axis in shared or not self.with_intervals:
                continue
            if outer is not None and outer not in reader.intervals:
                continue
            interval = interval_of(self.shaped.sizes, reader, index, producer.sizes[axis])
            if interval is not None:
                intervals[axis], extents[axis], walks[dim] = interval
        return intervals, walks, extents

    def _chain(self, number: int, site: int) -> tuple[Opened, ...]:
        """The loops around what an instance stages inside its first ``site`` loops."""
        nest, instance = self.nest(number), self.by_number[number]
        if site == 0:
            return ()
        last = self.opened(number, nest.order[site - 1])
        if last.instance != number:
            return instance.chain[: instance.chain.index(last) + 1]
        opened = [Opened(number, loop) for loop in nest.order[:site] if loop not in instance.home]
        return (*instance.chain, *opened)
