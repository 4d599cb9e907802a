"""Statements of kernels that only a CPU has; ``ir/kernel.py`` has those of every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ilang.core.calculus.affine import Affine, Within
from ilang.core.calculus.extent import Extent
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.scalar import Apply, Load, Local, scalars_within
from ilang.core.record import record

if TYPE_CHECKING:  # a kernel has these statements, and these statements have loops
    from ilang.core.ir.kernel import Define, For, Store


@record
class Transpose:
    """A copy of rows to columns, in squares that registers hold: ``to[c * stride + r] = source[r * stride + c]``.

    ``loops`` say what is copied, one element at a time: the loops of the columns around the rows' around the one
    store. Several loops of columns are one: each walks all of what it walks, which lies side by side in the source.
    ``short`` where the rows are known to be shorter than the longest vector. Where all of the target has
    ``stream_from`` bytes or more, whole cache lines go past the caches; 0 for never.
    """

    loops: For
    short: bool
    stream_from: int

    def nest(self) -> tuple[tuple[For, ...], For, Store]:
        """The loops over columns, that over rows, and the store."""
        columns, inner = [self.loops], cast("For", self.loops.body[0])
        while hasattr(inner.body[0], "body"):
            columns.append(inner)
            inner = cast("For", inner.body[0])
        return tuple(columns), inner, cast("Store", inner.body[0])


@record
class Captured:
    """The values that a function uses from around it, by number: sizes, buffers, loop variables, scalar variables."""

    sizes: tuple[int, ...]
    buffers: tuple[BufferId, ...]
    variables: tuple[VariableId, ...]
    locals: tuple[Local, ...]


@record
class Registers:
    """A tile in vector registers; ``number`` is its place among the tiles of its kernel.

    ``loops`` are those over its ``extents``, the last of them in vectors; ``core`` the loops outside, all of them
    without bodies. ``body`` is what an iteration does: it reads the loads ``along`` lane by lane, and all others once
    for all lanes; ``vectors`` are its variables that have a value per lane. The loops end where ragged dimensions do.
    Rows past that read the last row again, and lanes past it what a padded copy has there (``past``): both are
    computed, never used. Where one of the ``guards`` does not hold, the tile is computed element by element instead.
    Sums of runs are held ``apart`` in other registers, or are added where the tile will be. ``part`` is what some rows
    and lanes capture, ``whole`` all of it.
    """

    number: int
    extents: tuple[int, ...]
    core: tuple[For, ...]
    loops: tuple[For, ...]
    body: tuple[Define | Store, ...]
    along: tuple[Load, ...]
    vectors: tuple[int, ...]
    guards: tuple[Within, ...]
    past: bool
    apart: bool
    part: Captured
    whole: Captured

    def counted(self) -> frozenset[int]:
        """The variables that count within a part: of lanes, of all rows of a matrix, and of rows that end earlier.

        Reads by these are at where the part is in the tensor; other variables count the whole tile.
        """
        *rows, lanes = self.loops
        in_parts = (loop for loop in rows if loop.within or len(rows) == 1)
        return frozenset({lanes.variable}.union(loop.variable for loop in in_parts))

    def contracts(self) -> bool:
        """Whether products feed nothing but the sums into the tile, which may then round once."""
        sums = [
            part
            for s in self.body
            for part in scalars_within(s.value)
            if isinstance(part, Apply) and part.primitive in ("add", "sub")
        ]
        stores = [s.value for s in self.body if not hasattr(s, "variable")]
        return sums == stores and all(s.primitive == "add" for s in sums)


@record
class TileTarget:
    """The target of a whole tile that is stored from registers: ``buffer`` at ``first``, its rows ``stride`` apart.

    The tile is whole where all that is ``within`` holds; elsewhere the statement after the tile copies it there.
    """

    buffer: BufferId
    first: tuple[Affine, ...]
    stride: Extent
    within: tuple[Within, ...]


@record
class DeferredPacking:
    """Packing that a tile further down in the block does: it fills the ``copy`` where whole vectors of lanes are left.

    ``alone`` where that has to be one thread's tile: threads may share the block.
    """

    copy: BufferId
    guards: tuple[Within, ...]
    alone: bool


@record
class ThreadEstimate:
    """The estimate of how many threads share some loops: how often they run together, and how long that takes.

    The time of all iterations is in elements that one thread reads and adds: ``time`` times the extents ``times``.
    ``inside`` says the same of the loops inside that take longest: where those have more to share, one thread is enough
    here; of ``uneven`` loops, by whose iterations those inside end, where those have anything to share.
    """

    loops: tuple[For, ...]
    time: float
    times: tuple[int, ...]
    inside: ThreadEstimate | None
    uneven: bool = False


@record
class Outline:
    """The function of a kernel, or of so many parallel ``loops`` with nothing between them, as one loop.

    ``number`` is the place of the loops among those of the kernel, -1 for the kernel itself. The function is given what
    is ``captured`` from around it, arrays that are ``written`` and others; ``fills`` are copies of which it is told
    whether a tile in it fills them. The ``private`` buffers stand at the start of its scratch storage. With ``scratch``
    it is given some, with ``divided`` so that threads that share a loop in it have parts of their own; it ``calls``
    functions of loops, or does not. ``estimate`` decides on its threads; there is none of the kernel, which one calls.
    A function with ``half_vectors`` is to have vectors of half a cache line: see ``passes/cpu/shifted.py``.
    """

    number: int
    loops: int
    captured: Captured
    written: frozenset[BufferId]
    fills: tuple[BufferId, ...]
    private: tuple[BufferId, ...]
    scratch: bool
    divided: bool
    calls: bool
    estimate: ThreadEstimate | None
    half_vectors: bool = False


CacheLines = tuple[int, tuple[Load, ...]]
"""Cache lines, by an element of each of them, and at how many iterations of a loop there is one."""


@record
class Prefetch:
    """Software prefetches of a loop: before each ``chunk`` iterations, the ``lines`` of as many.

    The elements may be past the end of their buffer.
    """

    chunk: int
    lines: tuple[CacheLines, ...]
