"""Statements of kernels that only a GPU has; ``ir/kernel.py`` has those of every machine.

Invariants of a kernel for a GPU:
    - The body is one ``ThreadLoop``, over the grid, over blocks or over warps. Only over the last two are others
      inside, all over threads, those of a block or the lanes of a warp, and none inside another one.
    - What one worker of a spread writes, no other worker of it reads or writes.
    - What is inside a spread over blocks or warps and outside of those over threads is done by every thread alike: it
      stores nothing, and its loops and conditions are the same for all of them.
    - A ``Barrier`` stands there too, so that all threads of a block, or lanes of a warp, arrive; between two accesses
      by different threads to one element, one of them a write, there is one.
    - Buffers that are swapped are two that a block shares, alike but for their names; all threads swap them.
    - A ``MatrixProduct`` stands in a spread over threads whose last two loops count the lanes of a warp. No condition
      or loop around it depends on these: a warp is there with all of its lanes, or not at all.
    - A scalar variable that changes in a spread over threads is combined right after it, and started right before.
    - A ``VectorAccess`` leaves alone what threads keep or share.
    - A private buffer stands in the local memory of a thread, which alone touches it, in memory that a block shares,
      or, in a spread over the grid, in scratch storage of the thread that owns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ilang.core.ir.ids import BufferId, LocalId
from ilang.core.ir.scalar import Load, Scalar
from ilang.core.record import record

if TYPE_CHECKING:  # a kernel has these statements, and these statements have loops
    from ilang.core.ir.kernel import For, Kernel, Statement

THREADS = "THREADS"
"""The constant that is the number of threads of a block."""

Over = Literal["grid", "blocks", "warps", "threads"]
"""The workers that share iterations: all threads of all blocks, the blocks, their warps, the threads of a block or of a
warp."""


@record
class VectorAccess:
    """Vectorized access of a spread: one worker has ``count`` consecutive iterations of its last loop.

    Iterations go in groups where rows of the ``moved`` buffers begin at multiples of that, and extents of the sizes
    ``whole`` are multiples of it; else each is a worker's. Vectors of the moved buffers are read before, and stored
    after, what is done for the iterations of a group, in the loops that each of them is. Iterations of the last loop
    that are left after its groups are one worker's each.
    """

    count: int
    moved: tuple[BufferId, ...]
    whole: tuple[int, ...]


@record
class ThreadLoop:
    """Thread-mapped loops: each iteration of ``loops``, outermost first and without bodies, is one worker's.

    ``over`` says who the workers are, ``threads`` how many a block has at most. Worker n does iteration n, as the loops
    count them, and every further one as far on as there are workers. An iteration past the ``rest`` of one of the loops
    does nothing. Without loops there is one iteration. Over warps, a worker is a group of so many adjacent ``lanes``.

    A grid has up to three dimensions: iterations of loops with the roles y and z are those along them, all others are
    counted along x. A block of ``shape`` has that many threads along x, y and z, ``threads`` together; iterations of
    loops with the roles tx, ty and tz are those along them. ``vectors`` says how else the iterations may go. Registers
    of a thread are to be so few that a multiprocessor has room for so many ``blocks`` at a time.
    """

    loops: tuple[For, ...]
    over: Over
    threads: int
    body: tuple[Statement, ...]
    shape: tuple[int, ...] = ()
    vectors: VectorAccess | None = None
    blocks: int = 1
    lanes: int = 0

    def parts(self) -> int:
        """The workers of a block, each of which has memory of its own: groups of lanes, or the block."""
        return self.threads // self.lanes if self.over == "warps" else 1


def threads_of(kernel: Kernel) -> ThreadLoop:
    """The one statement of a kernel of a GPU."""
    (spread,) = kernel.body
    assert isinstance(spread, ThreadLoop)
    return spread


@record
class CombineThreads:
    """Combine a scalar variable of the threads of a block, or of the lanes of a warp, to one value, which all get.

    The values are combined in an order that is always the same: lanes of a warp pairwise, then warp after warp.
    """

    variable: LocalId
    primitive: str
    dtype: str
    threads: int


@record
class MatrixProduct:
    """The lanes of a warp add the product of two matrices to a third: one instruction of the matrix unit of a device.

    Each lane has elements of all three: it gives those of ``left`` and ``right``, which are rounded by the primitive
    ``rounding``, and has the ``sums`` in its registers. The machine says which of the matrices these are
    (``MatrixUnit``); the lane is that of the last two loops of the spread around.
    """

    rounding: str
    sums: tuple[Load, ...]
    left: tuple[Scalar, ...]
    right: tuple[Scalar, ...]


@record
class Barrier:
    """All threads of a block, or of a warp, wait for each other, and see what they wrote before."""


@record
class SwapBuffers:
    """Two buffers that a block shares exchange their names: from here on each is the memory that the other one was."""

    first: BufferId
    second: BufferId
