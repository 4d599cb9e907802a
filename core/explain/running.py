"""One line on how a program runs: tiles, copies, lanes, and what cores or blocks share.

Example, of a product of matrices: ``tiles of 6 × 64 in registers; b is copied for them; cores share j``
"""

from __future__ import annotations

from collections.abc import Iterator

from ilang.core.ir.gpu import Spread
from ilang.core.ir.kernel import For, Kernel, Program, statements_within
from ilang.core.ir.schedule import Chunks, RegisterTile, Scheduled


def runs_as(scheduled: Scheduled, program: Program) -> str:
    """The line; words are said once, of whichever kernel they are."""
    words: dict[str, None] = {}
    if 1 < len(program.launched()):
        words[f"{len(program.launched())} kernels, one after the other"] = None
    for word in _tiles(scheduled):
        words[word] = None
    for kernel in program.kernels:
        for word in _blocks(kernel) if program.machine.device else _lanes(kernel):
            words[word] = None
    shared = [] if program.machine.device else list(dict.fromkeys(_shared(program)))
    if shared:
        words[f"cores share {' and '.join(shared)}"] = None
    return "; ".join(words) or "plain loops, one element after the other"


def _tiles(scheduled: Scheduled) -> Iterator[str]:
    """The tiles that sums keep in registers, and the inputs that are copied for them."""
    for group in scheduled.groups:
        for instance in group.plan.instances:
            held = instance.accumulation
            held = held.each if isinstance(held, Chunks) else held
            if isinstance(held, RegisterTile):
                yield f"tiles of {' × '.join(map(str, held.extents))} in registers"


def _lanes(kernel: Kernel) -> Iterator[str]:
    """The sums that lanes hold beside each other."""
    lanes = [s.lanes for s in statements_within(kernel.body) if isinstance(s, For) and 1 < s.lanes]
    if lanes:
        yield f"{max(lanes)} sums side by side in vectors"


def _shared(program: Program) -> Iterator[str]:
    """The outermost loops that cores share."""
    for kernel in program.kernels:
        body = kernel.body
        while len(body) == 1 and isinstance(body[0], For) and body[0].parallel:
            yield kernel.names[body[0].variable]
            body = body[0].body


def _blocks(kernel: Kernel) -> Iterator[str]:
    for s in kernel.body:
        if isinstance(s, Spread) and s.loops:
            names = " ".join(kernel.names[loop.variable] for loop in s.loops)
            each = "a thread" if s.over == "grid" else "a block"
            yield f"{each} for each {names}, blocks of {s.threads} threads"
