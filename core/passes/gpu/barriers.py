"""Place barriers where a thread reads or writes what another one of its block wrote, or writes what it read.

Example:
    in:   for k                                          out:  for k
            spread k1 j1 over the threads: copy = ...            barrier
            spread i1 j1 over the threads: acc += copy           spread k1 j1 over the threads: copy = ...
                                                                 barrier
                                                                 spread i1 j1 over the threads: acc += copy

Statements that all threads of a block run are traversed in order, with the set of accesses since the last barrier; a
loop is traversed until this set no longer changes. Two loops with the same mapping to threads need no barrier for
elements that only one thread accesses, such as the maximum of a row and its correction factor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import Barrier, SwapBuffers, ThreadLoop, threads_of
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import accesses, parts_of, with_bodies
from ilang.core.ir.scalar import Load
from ilang.core.passes.gpu.spaces import owned_dimensions
from ilang.core.record import record, replace

ALL = 0
"""Stands for a spread where none touches a buffer, or it has another name."""
Users = frozenset[tuple[BufferId, int]]
"""Buffers, each with the identity of the spread that touches it."""


@record
class Touched:
    """The buffers that were read and written since the last barrier, and where."""

    read: Users = frozenset()
    written: Users = frozenset()

    def meetings(self, other: Touched) -> Iterator[tuple[int, int, int]]:
        """The buffers for which what comes next has to wait, and the spreads that touch them, before and then."""
        for earlier, later in (
            (self.written, other.read | other.written),
            (self.read, other.written),
        ):
            for number, first in earlier:
                yield from ((number, first, then) for n, then in later if n == number)

    def swapped(self, s: SwapBuffers) -> Touched:
        """The accesses after two buffers have exchanged their names."""
        other = {s.first: s.second, s.second: s.first}
        read, written = (
            {(other[n], ALL) if n in other else (n, at) for n, at in each}
            for each in (self.read, self.written)
        )
        return Touched(frozenset(read), frozenset(written))

    def joined(self, other: Touched) -> Touched:
        """Both."""
        return Touched(self.read | other.read, self.written | other.written)


def kernel_to_barriers(program: ir.Program) -> ir.Program:
    """The program with barriers."""
    return with_bodies(program, lambda kernel: _with_barriers(program, kernel))


def _with_barriers(program: ir.Program, kernel: ir.Kernel) -> ir.Block:
    spread = threads_of(kernel)
    if spread.over == "grid":
        return kernel.body
    placement = BarrierPlacement(program, spread)
    _, after = placement.block(spread.body, Touched())
    body, _ = placement.block(spread.body, placement.of_block(after))
    return (replace(spread, body=body),)


class BarrierPlacement:
    """One kernel: the buffers that threads may meet in."""

    def __init__(self, program: ir.Program, spread: ThreadLoop) -> None:
        self.program = program
        inside = list(ir.every(spread.body, ThreadLoop))
        self.spreads = {id(s): s for s in inside}
        self.owned: dict[tuple[int, int, int], bool] = {}
        self.alone: set[int] = set()
        uses = [(s, Counter(buffer for buffer, _ in accesses(s.body))) for s in inside]
        for number, everywhere in Counter(buffer for buffer, _ in accesses(spread.body)).items():
            users = [s for s, used in uses if used[number]]
            inner = sum(used[number] for _, used in uses)
            apart = inner == everywhere and owned_dimensions(program, users, number) is not None
            if program.buffers[number].space == "local" or (users and apart):
                self.alone.add(number)

    def of_block(self, touched: Touched) -> Touched:
        """The accesses to the memory of a block, which its next iteration uses again."""
        shared = {n for n, b in enumerate(self.program.buffers) if b.space == "shared"}
        read, written = (
            frozenset(each for each in users if each[0] in shared)
            for users in (touched.read, touched.written)
        )
        return Touched(read, written)

    def block(self, body: ir.Block, touched: Touched) -> tuple[ir.Block, Touched]:
        """A block with barriers, and what was touched since its last one, given that before it."""
        out: list[ir.Statement] = []
        for s in body:
            if isinstance(s, Barrier):
                out.append(s)
                touched = Touched()
            elif isinstance(s, ir.For) and ir.has_spread(s):
                inner, touched = self._loop(s, touched)
                out.append(inner)
            elif isinstance(s, SwapBuffers):
                out.append(s)
                touched = touched.swapped(s)
            elif isinstance(s, ir.If) and ir.has_spread(s):
                within, one = self.block(s.body, touched)
                otherwise, other = self.block(s.otherwise, touched)
                out.append(replace(s, body=within, otherwise=otherwise))
                touched = one.joined(other)
            else:
                place = self.of(s)
                if any(not self._is_owned(*meeting) for meeting in touched.meetings(place)):
                    out.append(Barrier())
                    touched = Touched()
                out.append(s)
                touched = touched.joined(place)
        return tuple(out), touched

    def _loop(self, loop: ir.For, touched: Touched) -> tuple[ir.For, Touched]:
        """A loop with barriers: every iteration begins with no more than ``touched`` and what some iteration left."""
        while True:
            body, after = self.block(loop.body, touched)
            if touched.joined(after) == touched:
                return replace(loop, body=body), touched
            touched = touched.joined(after)

    def _is_owned(self, number: int, first: int, then: int) -> bool:
        """Whether each element of a buffer is one thread's in two spreads, the same one's."""
        if ALL in (first, then):
            return False
        key = (number, first, then)
        if key not in self.owned:
            users = [self.spreads[first], self.spreads[then]]
            self.owned[key] = owned_dimensions(self.program, users, number) is not None
        return self.owned[key]

    def of(self, s: ir.Statement) -> Touched:
        """The accesses of a statement where threads may meet."""
        inside = list(ir.statements_within((s,)))
        read = {part.buffer for x in inside for part in parts_of(x) if isinstance(part, Load)}
        written = {x.buffer for x in inside if isinstance(x, ir.Store)}
        at = id(s) if isinstance(s, ThreadLoop) else ALL
        return Touched(
            frozenset((n, at) for n in read - self.alone),
            frozenset((n, at) for n in written - self.alone),
        )
