"""The places of pointwise values that several read: computed once, or again for each reader; the cheaper one.

A value that is computed once is stored for all of its readers, or kept inside the loops that they share, or is in a
register where these are all of their loops. Computed again it is in the innermost loop of each reader, which has loops
of its own then. The price of each is in cycles of vectors: operations, loads, stores, and what lines take longer than
these, from the first cache that has room for an array as large as the value.

Example, a difference whose squares are summed by columns, and that is divided row by row, of 1768 × 19:
    in:   y[i,j] = x[i,j] - m[j];  v[j] = sum y[i,j] * y[i,j] over i;   z[i,j] = y[i,j] / s[j]
    out:  y once: 8,399 cycles;  again: 6,298, so v and z compute x[i,j] - m[j] themselves
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod

from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.scalar import Apply, scalars_within
from ilang.core.ir.schedule import Nest
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.ops import COSTS
from ilang.core.schedule.choose.inlining import Inlining, inlining
from ilang.core.schedule.fuse import mapping
from ilang.core.schedule.readers import compared, whole_values
from ilang.core.transform.again import copied

MOST = 4
"""Readers of a value that is computed again, at most: a program grows by so many times."""
QUICK = ("add", "sub", "mul")
"""Operations that tiles add to what they multiply, of which a core begins two a cycle."""
Parts = Mapping[str, float]
"""Cycles by what takes them."""


def computed_again(
    shaped: Shaped, extents: Extents, machine: Machine, nests: Sequence[Nest | None]
) -> Shaped:
    """The program in which values that are computed again are one for each reader; itself where there are none.

    The ``nests`` are those of the program as it is.
    """
    chosen = [each for each in places(shaped, extents, machine, nests) if each.is_again]
    values = [(place.value, *place.inside) for place in chosen]
    return copied(shaped, values, MOST) if values else shaped


def places(
    shaped: Shaped, extents: Extents, machine: Machine, nests: Sequence[Nest | None]
) -> list[PricedPlace]:
    """The places of the values that may be computed again, the last value first.

    There are none on a GPU, and none where no extent is known.
    """
    if machine.core is None or not any(size.fixed for size in shaped.sizes):
        return []
    return _Search(shaped, extents, machine).run(nests)


class _Search:
    """The values that may be computed again: what they compute in their innermost loops, and their prices."""

    def __init__(self, shaped: Shaped, extents: Extents, machine: Machine) -> None:
        self.shaped, self.extents, self.machine = shaped, extents, machine
        self.inside: dict[int, tuple[int, ...]] = {}

    def run(self, nests: Sequence[Nest | None]) -> list[PricedPlace]:
        """All places."""
        values = [v for v, _ in reversed([*self.shaped.numbered()]) if self._is_candidate(v)]
        if not values:
            return []
        priced = [PricedPlace(self, value, nests) for value in values]
        self._settle(priced, whole_values(self.shaped, nests))
        return priced

    @cached_property
    def readers(self) -> Inlining:
        """The readers of each value."""
        return inlining(self.shaped)

    @cached_property
    def compared(self) -> set[int]:
        """The values that are compared with a reduction of themselves: computed twice, they may differ."""
        return set[int]().union(*(values for _, values in compared(self.shaped)))

    def _settle(self, priced: Sequence[PricedPlace], stored: set[int]) -> None:
        """Leave values computed once whose sources would not stay as they are: stored, or computed again."""
        chosen = {place.value for place in priced if place.is_again}
        while True:
            left = {v for v in chosen if all(s in stored or s in chosen for s in self._sources(v))}
            if left == chosen:
                break
            chosen = left
        for place in priced:
            place.is_again = place.value in chosen

    def _sources(self, value: int) -> Iterator[int]:
        """The assignments of as many dimensions that a value is computed from, with what it computes inside."""
        for each in (value, *self.inside[value]):
            node = self.shaped.assignment(each)
            for read in node.reads:
                producer = self.shaped.nodes[read.value]
                is_whole = isinstance(producer, Assignment) and len(node.target) <= len(
                    producer.target
                )
                if is_whole and read.value not in self.inside[value]:
                    yield read.value

    def _is_candidate(self, value: int) -> bool:
        """Whether several readers of a value could compute it in their innermost loops, each by itself."""
        node, reads = self.shaped.nodes[value], self.readers.all_reads[value]
        if not isinstance(node, Assignment) or not node.axes or node.acc:
            return False
        if value in self.readers.kept:
            return False
        if not 2 <= len({reader for reader, _ in reads}) == len(reads) <= MOST:
            return False
        self.inside[value] = inside = tuple(self._computed_inside(value))
        values = (value, *inside)
        if not self.compared.isdisjoint(values) or not all(map(self._is_plain, values)):
            return False
        return all(self._may_take(reader, read) for reader, read in reads)

    def _computed_inside(self, value: int) -> Iterator[int]:
        todo = [value]
        while todo:
            for read in dict.fromkeys(self.shaped.assignment(todo.pop()).reads):
                if self.readers.inlined[read.value]:
                    yield read.value
                    todo.append(read.value)

    def _is_plain(self, value: int) -> bool:
        """Whether a value is a function of elements at plain axes, without a condition."""
        node = self.shaped.assignment(value)
        if node.base is not None or node.schedule or node.guards or node.lookups():
            return False
        parts = (part for read in node.reads for part in read.index)
        at_axes = all(part.axis() is not None or not part.variables() for part in parts)
        return at_axes and not any(read.guards for read in node.reads)

    def _may_take(self, reader: int, read: Read) -> bool:
        """Whether a reader takes a value into its innermost loop; extremes compare what they load."""
        node, producer = self.shaped.assignment(reader), self.shaped.assignment(read.value)
        pairs = mapping(producer, read)
        is_whole = len(pairs) == len(producer.output_axes())
        if not is_whole or len({*pairs.values()}) != len(node.axes) or read.guards:
            return False
        if node.base is not None or node.schedule:
            return False
        while self.readers.inlined[reader]:
            reader = self.readers.all_reads[reader][0][0]
        return self.shaped.assignment(reader).acc in (None, "+")


class PricedPlace:
    """A value with several readers, the parts of its price computed ``once`` and ``again``, and which one it is.

    ``kept`` says where it is once: "stored", "kept inside loops", "in registers". The values ``inside`` are those that
    it computes in its innermost loop.
    """

    def __init__(self, search: _Search, value: int, nests: Sequence[Nest | None]) -> None:
        """A candidate of a search, which is once where these nests have it."""
        assert search.machine.core is not None
        self.shaped, self.extents, self.core = search.shaped, search.extents, search.machine.core
        self.value, self.inside, self.kept = value, search.inside[value], "stored"
        self.readers = len(search.readers.all_reads[value])
        self.node = self.shaped.assignment(value)
        self.step = 1 / self.core.multiply_adds
        size = BYTES[self.shaped.tensors[value].dtype]
        self.vector = search.machine.vector_bytes() // size
        self.elements = prod(map(self.extents.usual, self.node.sizes))
        self.line = self.core.cycles_of_line(size * self.elements)
        vectors = self.elements / self.vector
        self.again = {name: self.readers * vectors * n for name, n in self._computing().items()}
        self.once = self._once(*search.readers.all_reads[value][0], nests)
        self.is_again = sum(self.again.values()) < sum(self.once.values())

    def _once(self, reader: int, read: Read, nests: Sequence[Nest | None]) -> Parts:
        """The cycles in which the value is computed once and read by all, where nests have it for its first reader."""
        nest, inner = nests[reader], nests[self.value]
        assert nest is not None
        assert inner is not None
        site = nest.staged(self.shaped.assignment(reader).reads.index(read))
        cycles, vectors = self._computing(), self.elements / self.vector
        if site is None:
            cycles = self._computing(is_stored=True)
            cycles["cache lines"] += self.readers * max(
                0.0, self.line - 1 / self.core.loads - self.step
            )
        elif inner.order[site:] and site < len(nest.order):
            self.kept = "kept inside loops"
        else:
            self.kept = "in registers"
        if self.kept != "in registers":
            cycles["loads"] += self.readers / self.core.loads
            vectors *= self._waste(inner)
        return {name: vectors * n for name, n in cycles.items()}

    def _waste(self, nest: Nest) -> float:
        """The vectors that a row shorter than one takes, for each that it would fill.

        A value that is larger than all that it is computed from may be in tiles of its readers, which have whole ones.
        """
        if not nest.order or any(1 <= share for share in self._shares()):
            return 1.0
        axis = nest.order[-1].axis
        row = (self.extents.usual(self.node.sizes[axis]), *nest.factors[axis])[-1]
        return max(1.0, self.vector / row)

    def _computing(self, is_stored: bool = False) -> dict[str, float]:
        """The cycles in which a vector is computed, and stored or used; of its lines what comes later than that."""
        nodes = (self.shaped.assignment(each) for each in (self.value, *self.inside))
        parts = (part for node in nodes for part in scalars_within(node.scalar))
        names = (part.primitive for part in parts if isinstance(part, Apply))
        shares = self._shares()
        cycles = {
            "arithmetic in vectors": sum(
                self.step if name in QUICK else COSTS.get(name, 1.0) for name in names
            ),
            "loads": len(shares) / self.core.loads,
        }
        lines, meanwhile = sum(shares) * self.line, sum(cycles.values())
        if is_stored:  # its line comes and goes
            cycles["results stored"], lines = self.core.stored, lines + 2 * self.line
        meanwhile += self.core.stored if is_stored else self.step
        cycles["cache lines"] = max(0.0, lines - meanwhile)
        return cycles

    def _shares(self) -> list[float]:
        """The sizes of all arrays that the value is computed from, where its own is 1."""
        nodes = (self.shaped.assignment(each) for each in (self.value, *self.inside))
        reads = (read for node in nodes for read in node.reads)
        arrays = dict.fromkeys(read for read in reads if read.value not in self.inside)
        dims = (self.shaped.tensors[read.value].dims for read in arrays)
        return [prod(map(self.extents.usual, each)) / self.elements for each in dims]
