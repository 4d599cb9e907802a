"""Count the iterations of each thread of a block, and those whose loads it keeps in flight at a time.

Example, 256 threads, of which each loads four elements before it waits for them:
    in:   spread i in 0..2048 over the threads    out:  spread i in 0..2048 over the threads, 8 each, up to 4 at a time
          spread i in 0..200 over the threads           spread i in 0..200 over the threads, 1 each

Loops whose iterations are not known, chunks of one, and loops along a dimension of a block are left as they are.
"""

from __future__ import annotations

from math import prod

from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import Program, Statement, map_statements
from ilang.core.ir.rewriting import with_bodies
from ilang.core.ir.schedule import THREAD_DIMENSIONS
from ilang.core.machine import DeviceLimits
from ilang.core.record import replace


def kernel_to_iterations(program: Program) -> Program:
    """The program whose thread-mapped loops have a number of iterations per thread."""
    device = program.machine.device
    assert device is not None

    def changed(s: Statement) -> Statement:
        return _with_iterations(program, s, device) if isinstance(s, ThreadLoop) else s

    return with_bodies(program, lambda kernel: map_statements(kernel.body, changed))


def _with_iterations(program: Program, spread: ThreadLoop, device: DeviceLimits) -> ThreadLoop:
    """A thread-mapped loop with the iterations per thread, where the number of all is known."""
    extents = [program.sizes[loop.size].fixed for loop in spread.loops]
    known = [extent for extent in extents if extent is not None]
    if spread.over != "threads" or not extents or len(known) < len(extents):
        return spread
    first = spread.loops[0]
    if first.chunk is not None or first.role in THREAD_DIMENSIONS:
        return spread
    iterations = max(1, -(-prod(known) // spread.threads))
    whole = all(not loop.end for loop in spread.loops)
    several = 1 < iterations or spread.vectors is not None
    return replace(
        spread, iterations=iterations, in_flight=device.loads if whole and several else None
    )
