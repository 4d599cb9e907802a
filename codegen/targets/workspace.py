"""The bytes of the arrays of a call, and where temporaries, marks and scratch storage stand in its workspace.

Of sizes that come when a program runs, ``headers/workspace.h`` and ``headers/cuda.cuh`` do the same.

Example: `(+ij~i & I) >> i+ij~ij` with i = 3, j = 5
    bytes 60 60 60; t1 at 0; 12 bytes in all, 64 in whole lines, and one line more to align the first
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, assert_never

from ilang.core.dtype import BYTES
from ilang.core.ir.host import Host, Step
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Derivation, Reach

INT64_MAX = (1 << 63) - 1
"""The largest ``int64_t``."""
SIZE_MAX = (1 << 64) - 1
"""The largest ``size_t``."""
MARK = BYTES["i32"]
"""Of what tells that an index is out of range, or an element infinite."""
CONSTANT = 1 << 30
"""Sizes of all arrays and the workspace together that are constants in texts: any ``size_t`` has such a number."""


class DoesNotFit(Exception):
    """An extent, or what follows from extents, does not fit."""


def demand(holds: bool) -> None:
    """Raise DoesNotFit unless something holds."""
    if not holds:
        raise DoesNotFit


class Workspace(NamedTuple):
    """The layout of a workspace.

    Fields:
        counts: bytes of each argument, in the order in which they are checked.
        at: of each temporary, where it stands.
        marks: where the marks stand.
        scratch: where scratch storage stands, of ``scratch_bytes`` for each of ``workers``.
        total: bytes of all.
    """

    counts: tuple[int, ...]
    at: Mapping[int, int]
    marks: int
    scratch: int
    scratch_bytes: int
    workers: int
    total: int


def extents_after(
    steps: Sequence[Step], program: Program, given: Mapping[int, int]
) -> dict[int, int]:
    """The extents that some steps give, where a caller gives some. Raises DoesNotFit where a step refuses."""
    sizes = enumerate(program.sizes)
    extents = {n: size.fixed for n, size in sizes if size.fixed is not None}
    limited = any(isinstance(step, Derivation) for step in steps)
    for step in steps:
        match step:
            case int():
                extents[step] = extent = given[step]
                demand(not limited or 0 <= extent <= INT64_MAX // 8)
            case Derivation():
                derived = _derived(step, extents)
                demand(not step.known or derived == extents[step.size])
                extents[step.size] = derived
            case Reach() if step.size is not None:
                demand(step.index.offset < extents[step.size])
            case Reach():
                least, most = step.ends(extents)
                demand(-step.limit <= least and most <= step.limit)
            case (size, value):
                extents[size] = value.value(extents)
            case _:
                assert_never(step)
    return extents


def _derived(rule: Derivation, extents: Mapping[int, int]) -> int:
    """An extent that follows from others, where there is one."""
    demand(0 < rule.divisor.value(extents))
    extent, rest = rule.divided(extents)
    spread = any(1 < extents[size] for size in rule.spread)
    least = int(spread) if rule.spread else rule.least
    demand(least <= extent <= INT64_MAX // 8 and not (rule.exact and rest))
    return extent


def workspace_of(host: Host, extents: Mapping[int, int]) -> Workspace:
    """The layout for the extents of all sizes. Raises DoesNotFit."""
    line, threads = host.program.machine.memory.line_bytes, host.program.machine.threads

    def measured(number: int) -> int:
        """The bytes of a buffer."""
        buffer = host.program.buffers[number]
        each = [extents[size] for size in buffer.dims]
        if buffer.whole() is not None and each[0] == 1:
            each[0] = 0
        most = BYTES[buffer.dtype]
        for extent in each:
            demand(0 <= extent <= SIZE_MAX // 4 // most)
            most *= max(1, extent)
        return 0 if 0 in each else most

    def added(total: int, count: int, times: int = 1) -> int:
        """A number of bytes, and so many more, in whole lines, so many times."""
        demand(count <= SIZE_MAX // 8)
        whole = -(-count // line) * line
        demand(whole <= (SIZE_MAX // 4 - total) // times)
        return total + whole * times

    counts = tuple(map(measured, host.in_table()))
    at: dict[int, int] = {}
    total = workers = most = 0
    for number in host.temporaries:
        at[number] = total
        total = added(total, measured(number))
    marks = total
    if host.marks:
        total = added(total, host.marks * MARK)
    scratch = total
    for private in host.scratch:
        count = 0
        for number in private:
            count = added(count, measured(number))
        most = max(most, count)
    if host.scratch:
        share = (threads.scratch_bytes >> 20 << 20) // most if most else threads.most
        workers = max(1, min(share, threads.most))
        total = added(total, most, workers)
    if host.has_workspace():
        total = added(total, 1)
    return Workspace(counts, at, marks, scratch, most, workers, total)


def constant_workspace(host: Host) -> Workspace | None:
    """The layout of a program whose every extent is known, where its numbers fit any ``size_t``; else None."""
    if any(isinstance(step, int) for step in host.checks):
        return None
    try:
        layout = workspace_of(host, extents_after(host.checks, host.program, {}))
    except DoesNotFit:
        return None
    return layout if sum(layout.counts) + layout.total <= CONSTANT else None
