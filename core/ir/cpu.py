"""Statements of kernels that only a CPU has; ``ir/kernel.py`` has those of every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ilang.core.calculus.affine import Affine, Within, variables_of
from ilang.core.calculus.extent import Extent
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.scalar import Apply, Load, Local, Scalar, scalars_within
from ilang.core.record import once, record, replace

if TYPE_CHECKING:  # a kernel has these statements, and these statements have loops
    from ilang.core.ir.kernel import Define, For, Statement, Store
    from ilang.core.ir.schedule import MicroTile, TilePartials


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
class TileTarget:
    """The target of a whole tile that is stored from registers: ``buffer`` at ``first``, its rows ``stride`` apart.

    The tile is whole where all that is ``within`` holds; elsewhere the statement after the tile copies it there.
    """

    buffer: BufferId
    first: tuple[Affine, ...]
    stride: Extent
    within: tuple[Within, ...]


@record
class Tile:
    """A register tile: ``body`` fills the elements of ``buffer``, all starting from ``start``.

    The loops over the elements are innermost, of constant size, and in the order of the buffer's dimensions; each stops
    at the end of its dimension. The loops ``blocks``, outermost first and without bodies, stand around the body: each
    iteration starts anew, and the elements are the sums, in f64, of what the iterations give. ``partial`` says how many
    terms are added one after the other. With ``fill``, a copy that the tile reads may be empty at the iteration in
    which the variables ``first`` are 0: each element is then stored there before it is read. ``target`` is where the
    tile goes at once, so that the statement after it, which copies it there, is left out.

    A tile with a ``number``, its place among those of its kernel, is a micro-kernel: vector registers hold the
    elements, the last dimension in lanes, one of the ``micro_tiles`` at a time (a tile that is no matrix has all of its
    rows in each), in vectors of ``vector`` lanes, or as many as a divisor of that which the machine has. The body is
    one nest of loops, and lanes read consecutive elements, or all the same one. Rows past the end of their dimension
    read the last row again, and lanes past it what a padded copy has there: both are computed, never used. Where one of
    the ``guards`` does not hold, the tile is computed element by element instead.
    """

    __slots__ = ("__dict__", "_nest")

    buffer: BufferId
    start: Scalar
    body: tuple[Statement, ...]
    blocks: tuple[For, ...] = ()
    partial: TilePartials | None = None
    fill: Store | None = None
    first: tuple[VariableId, ...] = ()
    target: TileTarget | None = None
    vector: int = 1
    micro_tiles: tuple[MicroTile, ...] = ()
    number: int | None = None
    guards: tuple[Within, ...] = ()

    @once
    def nest(self) -> tuple[tuple[For, ...], tuple[For, ...], tuple[Define | Store, ...]]:
        """Of a micro-kernel the loops outside, those over elements, and what an iteration does."""
        loops: list[For] = []
        body = self.body
        while hasattr(body[0], "body"):
            (loop,) = cast("tuple[For]", body)
            loops.append(replace(loop, body=()))
            body = loop.body
        inner = cast("tuple[Define | Store, ...]", body)
        outside = len(loops) - len(cast("Store", inner[-1]).index)
        return tuple(loops[:outside]), tuple(loops[outside:]), inner

    def core(self) -> tuple[For, ...]:
        """The loops of a micro-kernel around those over elements, without bodies."""
        return self.nest()[0]

    def loops(self) -> tuple[For, ...]:
        """The loops of a micro-kernel over elements, the last of them in vectors, without bodies."""
        return self.nest()[1]

    def iteration(self) -> tuple[Define | Store, ...]:
        """The statements of an iteration of a micro-kernel."""
        return self.nest()[2]

    def along(self) -> tuple[Load, ...]:
        """The elements that an iteration of a micro-kernel reads lane by lane; all lanes share any other."""
        lane = self.loops()[-1].variable
        loads = (part for s in self.iteration() for part in scalars_within(s.value))
        return tuple(
            dict.fromkeys(
                part
                for part in loads
                if isinstance(part, Load) and part.buffer != self.buffer
                if lane in variables_of(part.index)
            )
        )

    def counted(self) -> frozenset[int]:
        """The variables that count within a part: of lanes, of all rows of a matrix, and of rows that end earlier.

        Reads by these are at where the part is in the tensor; other variables count the whole tile.
        """
        *rows, lanes = self.loops()
        in_parts = (loop for loop in rows if loop.within or len(rows) == 1)
        return frozenset({lanes.variable}.union(loop.variable for loop in in_parts))

    def contracts(self) -> bool:
        """Whether products feed nothing but the sums into the tile, which may then round once."""
        sums = [
            part
            for s in self.iteration()
            for part in scalars_within(s.value)
            if isinstance(part, Apply) and part.primitive in ("add", "sub")
        ]
        stores = [s.value for s in self.iteration() if not hasattr(s, "variable")]
        return sums == stores and all(s.primitive == "add" for s in sums)


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

    The time of all iterations is in elements that one thread reads: ``time`` times the extents ``times``.
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

    ``name`` tells the function from others of the kernel: the last array that it stores to, and its loops; empty for
    the kernel itself. ``results`` are the tensors that it stores elements of, and its copies of inputs, in order. The
    function is given what is ``captured`` from around it, arrays that are ``written`` and others; ``fills`` are copies
    of which it is told whether a tile in it fills them. The ``private`` buffers stand at the start of its scratch
    storage. With ``scratch`` it is given some, with ``divided`` so that threads that share a loop in it have parts of
    their own; it ``calls`` functions of loops, or does not. ``estimate`` decides on its threads; there is none of the
    kernel, which one calls. A function with ``half_vectors`` is to have vectors of half a cache line: see
    ``passes/cpu/shifted.py``.
    """

    name: str
    results: tuple[str, ...]
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
