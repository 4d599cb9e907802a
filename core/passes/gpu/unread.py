"""Conditions around what a thread keeps to itself that change nothing that is read.

Example, of a thread's own sums, where copies have 0 past the ends:
    for i1: if 64i+16i1+i2 < n_i: run[i1] += copy[i1]       the same condition: what is past the end is not read
    for i1: if 64i+16i1+i2 < n_i: out[64i+16i1+i2] = run[i1]

Had the second loop no condition, or another one, the first would need its own.

Loops of two statements are the same where threads share them alike, and where they index the same dimension of the
array. A condition on a loop that other statements are in, iteration after iteration, is one for each iteration: what it
is around may then hold what an earlier one has left. The condition counts where every iteration writes before it reads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from ilang.core.calculus.affine import Affine, Within
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import Block, For, If, Statement, Store
from ilang.core.ir.rewriting import reads_of
from ilang.core.record import record


@record
class StatementSite:
    """A statement and what is around it: conditions, loops that threads share, other loops; and its number in order."""

    statement: Statement
    conditions: tuple[Within, ...]
    threads: tuple[For, ...]
    serial: frozenset[int]
    number: int


class Unread:
    """The statements of a kernel, and what they read of arrays that threads have to themselves."""

    def __init__(self, body: Block) -> None:
        self._sites: list[StatementSite] = []
        self._collect(body, (), (), frozenset())
        self._of = {id(site.statement): site for site in self._sites}
        self._reads: dict[int, list[tuple[StatementSite, tuple[Affine, ...]]]] = {}
        for site in self._sites:
            for buffer, index in reads_of(site.statement):
                self._reads.setdefault(buffer, []).append((site, index))

    def _collect(
        self,
        body: Block,
        conditions: tuple[Within, ...],
        threads: tuple[For, ...],
        serial: frozenset[int],
    ) -> None:
        for s in body:
            self._sites.append(StatementSite(s, conditions, threads, serial, len(self._sites)))
            match s:
                case For():
                    opened = serial | {s.variable}
                    self._collect(s.body, (*conditions, *s.runs()), threads, opened)
                case If():
                    self._collect(s.body, (*conditions, *s.within), threads, serial)
                    self._collect(s.otherwise, conditions, threads, serial)
                case ThreadLoop():
                    ends = tuple(end for loop in s.loops for end in loop.runs())
                    self._collect(s.body, (*conditions, *ends), s.loops, serial)
                case _:
                    pass

    def tells_nothing(self, condition: Within, store: Store) -> bool:
        """Whether all that is read of what a store writes is read where a condition around the store holds."""
        site = self._of.get(id(store))
        if site is None or condition.index.looked:
            return False
        wanted = _meaning(condition, site, store.index)
        held = [
            (other, index)
            for other, index in self._reads.get(store.buffer, ())
            if not _is_own(other.statement, store.buffer, index)
        ]
        if condition.index.axes() & site.serial - _whole_variables(store.index):
            again = any(buffer == store.buffer for buffer, _ in reads_of(store))
            if again or any(other.number < site.number for other, _ in held):
                return False
        return all(
            any(_meaning(each, other, index) == wanted for each in other.conditions)
            for other, index in held
        )


def _is_own(s: Statement, buffer: int, index: Sequence[Affine]) -> bool:
    """Whether a statement reads an element of an array to write that element alone."""
    return isinstance(s, Store) and s.buffer == buffer and tuple(s.index) == tuple(index)


def _whole_variables(index: Sequence[Affine]) -> set[int]:
    return {variable for _, variable in _dimensions(index)}


def _dimensions(index: Sequence[Affine]) -> Iterator[tuple[int, int]]:
    """The dimensions whose index is one variable, and that variable."""
    for dim, part in enumerate(index):
        axis = part.axis()
        if axis is not None:
            yield dim, axis


def _meaning(condition: Within, site: StatementSite, index: Sequence[Affine]) -> Hashable:
    """A condition on the element of an array at an index: with dimensions and threads in place of loops."""
    known: dict[int, Hashable] = {}
    shared = tuple((loop.size, loop.role) for loop in site.threads)
    for number, loop in enumerate(site.threads):
        known[loop.variable] = ("thread", number, shared)
    for dim, variable in _dimensions(index):
        known[variable] = ("dimension", dim)
    terms = frozenset((c, known.get(variable, variable)) for c, variable in condition.index.steps())
    rest = condition.index.offset, condition.index.sizes, condition.index.looked
    return terms, rest, condition.size
