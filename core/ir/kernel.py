"""Kernels: buffers, loops and scalar statements; what a target consumes.

Produced by ``passes/nest_to_kernel.py``, then changed by the passes of a machine (``passes/cpu/``, ``passes/gpu/``);
consumed by ``codegen/targets``.

Invariants:
    - Loop variables are numbered within a kernel; ``names`` gives each a name no other variable in scope has.
    - An index is affine in the open loop variables, one entry per dimension of the buffer, and in range wherever the
      statement runs.
    - A view has no memory of its own: that is of its owner, which is no view. A kernel that reads one writes neither;
      it is written only where the owner is an output, and then all of it.
    - Every kernel is called. The buffer that a call puts in the place of another differs from that in its name alone,
      and no two buffers of a kernel become one.
    - A temporary is written before it is read; a ``private`` one belongs to one iteration of the innermost loop
      that has all its uses inside.
    - A variable with lanes changes only in a loop in lanes, and is read elsewhere only when all of them are reduced.
    - A ``wrapping`` variable is an integer, and each change adds to it or multiplies it.
    - Only a loop with nothing shared between its iterations is ``parallel``: none touches an element that another one
      writes. Parallel loops may be inside each other; one of them at a time has several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar, get_args

from ilang.core.calculus.affine import Affine, Within, axis_index, before, left
from ilang.core.calculus.extent import ZERO, Extent, most_chunks, part_of
from ilang.core.ir.cpu import DeferredPacking, Outline, Tile, Transpose
from ilang.core.ir.gpu import Barrier, CombineThreads, MatrixProduct, SwapBuffers, ThreadLoop
from ilang.core.ir.ids import BufferId, LocalId, VariableId
from ilang.core.ir.scalar import Apply, Scalar
from ilang.core.ir.schedule import Asked, Role
from ilang.core.ir.shaped import Derivation, Reach, Size
from ilang.core.machine import CPU, Machine
from ilang.core.record import once, record, replace
from ilang.core.source import Span

S = TypeVar("S")
BufferRole = Literal["input", "output", "inout", "temporary", "view", "tile"]
"""The kind of a buffer: the arrays of a caller, or memory of the program, or another buffer under other dimensions; a
``Tile`` fills the last kind."""
Space = Literal["", "local", "shared"]
"""The memory of a private buffer: where there is room for it; on a GPU in the local memory of a thread, or a
block's."""


@record
class Buffer:
    """Storage of one tensor, row-major: ``dims`` are size numbers.

    ``role``: input, output, inout (updated in place), temporary, view (the memory is that of buffer ``owner``), or tile
    (a ``Tile`` fills it). The last dimension of a ``padded`` one has room for whole loop parts, past the end of a
    ragged dimension. ``space`` says where a private one is; of a ``double`` one a GPU reads one copy while it fills the
    other one. The elements of a ``wrapping`` one are integers that a reduction adds to or multiplies: a target may hold
    them unsigned, so that no step converts. The elements of an ``ordered`` one become the larger of themselves and
    another float, or the smaller: see ``Variable``. A temporary with an ``owner`` has results of parts, their number as
    first dimension; where there is one part, its memory is that of the owner, too. ``tensor`` is the tensor of the
    program, by its name, of which it has elements, a copy, or what a reduction has so far.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    role: BufferRole
    private: bool = False
    padded: bool = False
    space: Space = ""
    owner: BufferId | None = None
    wrapping: bool = False
    double: bool = False
    ordered: Literal["", "max", "min"] = ""
    tensor: str = ""

    def whole(self) -> BufferId | None:
        """The buffer that the results of parts are in where there is one part."""
        return None if self.role == "view" else self.owner


Chunk = tuple[int, int, VariableId]
"""A block of a loop: the size that says how many there are, of what each starts at a multiple, its number, a
variable."""


@record
class Parallel:
    """A loop whose iterations threads may share, and the function of it, or of it and loops inside it, once known."""

    outline: Outline | None = None


@record
class Lanes:
    """A loop of which iteration n belongs to lane n % ``count``: a vectorised variable is one variable per lane.

    ``are_few`` says that compilers would write out its few iterations element by element: each block of lanes stays a
    loop.
    """

    count: int
    are_few: bool = False


@record
class Unrolled:
    """A loop that is written out in so many ``copies``; 1 for one that stays a loop."""

    copies: int


@record
class Vectors:
    """A loop that is written out, its iterations the elements of a vector of each of some ``buffers``."""

    buffers: tuple[BufferId, ...]


Manner = Parallel | Lanes | Unrolled | Vectors
"""The manner in which iterations run, if not one after the other."""


@record
class For:
    """``for variable in begin..end``, which are expressions over sizes and variables of the loops around.

    A loop ends at the latest at its ``size``, one of a block where the next one begins, and begins and ends at the
    greatest and the least of what else says so: where a part of a dimension is ragged, or where all other iterations do
    nothing. All iterations run where an element of the ``finite`` arrays is not finite.

    ``role`` is u (unrolled) or v (SIMD lanes) where a schedule says so and the number of iterations is constant; p, q,
    t or "". A ``deferred`` loop only fills a copy that a ``Tile`` further down in the same block fills instead, where
    that can.

    A loop may have another version, which does the same. Of one in pieces, an ``If`` has the loop over iterations in
    the middle, which run where its conditions hold, and what all others do. With the only division of its body, by a
    number that all iterations share, it may multiply by the reciprocal of that.
    """

    __slots__ = ("__dict__", "_size", "_within")

    variable: VariableId
    end: Extent
    body: tuple[Statement, ...]
    begin: Extent = ZERO
    role: Role = ""
    manner: Manner | None = None
    deferred: DeferredPacking | None = None
    version: If | Apply | None = None
    finite: tuple[BufferId, ...] = ()

    @property
    @once
    def size(self) -> int:
        """The number of the size at which the loop ends at the latest."""
        end = self.end
        while end.operands:
            end = end.operands[-1 if self.first and end is self.end else 0]
        return end.number

    @property
    def first(self) -> bool:
        """Whether the loop has one iteration at most, the first of those that would run."""
        return self.end.operation == "min" and self.end.operands[0].operation == "+"

    @property
    def chunk(self) -> Chunk | None:
        """The block of its iterations that runs; None where all may."""
        start = self.begin.operands[0] if self.begin.operation == "max" else self.begin
        if start.operation != "start":
            return None
        _, count, multiple, block = start.operands
        ((variable,),) = (index.variables() for index in block.indices())
        return count.number, multiple.number, VariableId(variable)

    @property
    @once
    def within(self) -> tuple[Within, ...]:
        """The conditions on an iteration where the loop begins later or ends earlier than its size or block."""
        begins = (
            Within(step * axis_index(self.variable) - index, None)
            for index, step in self.begin.limits()
        )
        return (*begins, *(before(self.variable, *limit) for limit in self.end.limits()))

    def whole(self) -> For:
        """The loop over all iterations of its size, or block."""
        return replace(self, begin=self.begin.unlimited(), end=self.end.unlimited())

    @property
    def parallel(self) -> bool:
        """Whether threads may share its iterations."""
        return isinstance(self.manner, Parallel)

    @property
    def outline(self) -> Outline | None:
        """The function of a parallel loop, where it is known and the loop is the outermost one of it."""
        return self.manner.outline if isinstance(self.manner, Parallel) else None

    @property
    def lanes(self) -> int:
        """The lanes of vectors among which its iterations go."""
        return self.manner.count if isinstance(self.manner, Lanes) else 1

    @property
    def copies(self) -> int | None:
        """The number of copies in which it is written out, where that is said."""
        return self.manner.copies if isinstance(self.manner, Unrolled) else None

    @property
    def is_kept(self) -> bool:
        """Whether it stays a loop, or the loop over the lanes of each of its blocks does."""
        few = isinstance(self.manner, Lanes) and self.manner.are_few
        return few or self.copies == 1

    def runs(self) -> tuple[Within, ...]:
        """The conditions under which an iteration runs for sure."""
        return () if self.finite else self.within

    def reaches(self, iteration: int) -> tuple[Within, ...]:
        """The conditions that an iteration is none of those that its begin and end leave out."""
        return tuple(each.at(self.variable, iteration) for each in self.within)

    def part(self) -> tuple[Affine, int] | None:
        """The first index of a loop over a part of a split dimension, and the size of that; None of other loops."""
        parts = (left(index) for index, _ in self.end.limits())
        return next((part for part in parts if part is not None and part[1] != self.size), None)

    def ends(self) -> set[int]:
        """The variables that it rests on where the loop begins and ends."""
        return {
            v for bound in (self.begin, self.end) for each in bound.indices() for v in each.axes()
        }


@record
class If:
    """The body runs where every condition holds (over loop variables), else what is otherwise.

    With ``stored``, it stands after the ``Tile`` of that buffer, and runs unless the tile is stored at once. With
    ``aligned`` buffers, their rows begin where vectors may, too.
    """

    __slots__ = ("__dict__", "_kept_reads")

    within: tuple[Within, ...]
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()
    stored: BufferId | None = None
    aligned: tuple[BufferId, ...] = ()


@record
class Define:
    """A scalar variable gets its first value; ``mutable`` if a ``Change`` follows."""

    __slots__ = ("__dict__", "_kept_reads")

    variable: LocalId
    dtype: str
    value: Scalar
    mutable: bool = False


@record
class Change:
    """A scalar variable gets another value; where it ``contracts``, a product that is added is rounded with the sum.

    A change that ``corrects`` does nothing unless a reduction that the variable rests on has changed before, in the
    same iteration of every loop around.
    """

    __slots__ = ("__dict__", "_kept_reads")

    variable: LocalId
    value: Scalar
    contracts: bool = False
    corrects: bool = False


@record
class Store:
    """An element of a buffer gets a value; where it ``contracts``, a product that is added is rounded with the sum.

    A store that ``corrects`` changes nothing unless a reduction that the element rests on has changed before, in the
    same iteration of every loop around.
    """

    __slots__ = ("__dict__", "_kept_reads")

    buffer: BufferId
    index: tuple[Affine, ...]
    value: Scalar
    contracts: bool = False
    corrects: bool = False


@record
class HorizontalReduction:
    """The lanes of a variable are combined pairwise, in a fixed order, into the one value it has from here on."""

    variable: LocalId
    primitive: str
    dtype: str
    lanes: int


Statement = (
    For
    | If
    | Define
    | Change
    | Store
    | HorizontalReduction
    | Tile
    | Transpose
    | ThreadLoop
    | Barrier
    | CombineThreads
    | SwapBuffers
    | MatrixProduct
)
Block = tuple[Statement, ...]
BLOCKS: dict[type, tuple[str, ...]] = {
    kind: tuple(n for n, of in kind.__annotations__.items() if of == "tuple[Statement, ...]")
    for kind in get_args(Statement)
}
"""The fields that are blocks, of each kind of statement."""
OUTER = frozenset({If, Tile, Transpose, ThreadLoop})
"""The statements beside loops that others stand in."""


Count = tuple[int, Extent]
"""A size that follows from others when the program runs, and how: what loops count, or how many parts they go in."""


@record
class LaunchRequest:
    """Blocks and threads that a person asked for, by role or position: the expression, and the place that says so."""

    asked: Asked
    text: str
    span: Span


@record
class Variable:
    """A scalar variable of a kernel: its name, and how many ``lanes`` it has, each with a value of its own.

    A ``wrapping`` one is an integer that a reduction only adds to, or multiplies. An ``ordered`` one is a float that
    only becomes the larger of itself and another, or the smaller: a target may hold the integer that has its place in
    the order of all floats, NaN beyond the others, and then there is nothing to test. ``tensor`` is that of a buffer.
    """

    name: str
    lanes: int = 1
    wrapping: bool = False
    ordered: Literal["", "max", "min"] = ""
    tensor: str = ""


AxisPart = tuple[str, int, VariableId | None]
"""The axis that a loop variable counts, whole or in part, and what one more of it adds to an index along that; where a
pass made it from another variable 0, and that."""
Constant = tuple[str, int, tuple[int | str, ...]]
"""A number of a kernel under a name, and the factors that it is the product of: numbers, and names of constants before
it."""
Level = tuple[VariableId, str, str]
"""The names of what one more of a loop variable adds to an index, and of its iterations; "" of what has none."""


@record
class Kernel:
    """One loop nest (or several in sequence) that computes one tensor of full size.

    ``names`` names the loop variables, ``locals`` has the scalar variables; ``comments`` say what it computes, in the
    user's words, one line per assignment with its schedule, where it is called first. ``outline`` says what its
    function takes, ``requests`` which blocks and threads a person asked for: what cannot be is refused. In a ``narrow``
    one 32 bits are enough for variables of loops whose iterations are known; for all indices where each product of the
    sizes of one of ``spans`` is below what the device says, which only fixed ones are where there are none. ``spans``
    is None where that is not known. Where one of the sizes that it ``needs`` is 0, it changes nothing. ``parts`` say
    what the first variables count, None of what is no axis. ``constants`` are its numbers that have names: in the loops
    of ``levels``, and as extents of buffers in ``rows``, where one is the name of a number, or that and a few more.
    """

    name: str
    body: tuple[Statement, ...]
    names: tuple[str, ...]
    locals: tuple[Variable, ...]
    comments: tuple[str, ...]
    outline: Outline | None = None
    requests: tuple[LaunchRequest, ...] = ()
    narrow: bool = False
    spans: tuple[tuple[int, ...], ...] | None = None
    needs: tuple[int, ...] = ()
    parts: tuple[AxisPart | None, ...] = ()
    constants: tuple[Constant, ...] = ()
    levels: tuple[Level, ...] = ()
    rows: tuple[tuple[BufferId, tuple[str, ...]], ...] = ()


@record
class Call:
    """A kernel that computes fusion group number ``group``: ``arrays`` has buffers of it, and those in their place."""

    kernel: int
    group: int
    arrays: tuple[tuple[BufferId, BufferId], ...] = ()

    def array(self, buffer: BufferId) -> BufferId:
        """The buffer that is passed in the place of one of the kernel."""
        return next((other for called, other in self.arrays if called == buffer), buffer)


@record
class Program:
    """Everything a target needs: buffers (inputs and outputs by position), sizes, kernels; its machine.

    ``calls`` has the kernels in the order in which they run, some of them several times on other arrays; without any
    each runs once, in order.
    """

    __slots__ = ("__dict__", "_chunks", "_parts")

    name: str
    sizes: tuple[Size, ...]
    buffers: tuple[Buffer, ...]
    inputs: tuple[BufferId, ...]
    outputs: tuple[BufferId, ...]
    kernels: tuple[Kernel, ...]
    derived: tuple[Derivation, ...] = ()
    counts: tuple[Count, ...] = ()
    machine: Machine = CPU
    reaches: tuple[Reach, ...] = ()
    calls: tuple[Call, ...] = ()

    @once
    def parts(self) -> dict[int, tuple[int, int]]:
        """The sizes that count parts of others: of which, and how long one is."""
        parts = {size: part_of(value) for size, value in self.counts}
        return {size: part for size, part in parts.items() if part is not None}

    @once
    def chunks(self) -> dict[int, int]:
        """The sizes that count chunks of reductions, and how many there are at most."""
        most = {size: most_chunks(value) for size, value in self.counts}
        return {size: count for size, count in most.items() if count is not None}

    def launched(self) -> tuple[Call, ...]:
        """The kernels in the order in which they run."""
        return self.calls or tuple(Call(number, number) for number in range(len(self.kernels)))

    def arguments(self) -> tuple[BufferId, ...]:
        """The arrays of a caller: inputs, then outputs; one that is both stands among the inputs."""
        return (*self.inputs, *(n for n in self.outputs if n not in self.inputs))

    def numbers(self) -> Iterator[BufferId]:
        """The number of each buffer, in order."""
        return map(BufferId, range(len(self.buffers)))

    def owner(self, buffer: BufferId) -> BufferId:
        """The buffer whose memory a buffer is: that which a view is of, else itself."""
        owner = self.buffers[buffer].owner
        return buffer if owner is None or self.buffers[buffer].role != "view" else owner

    def memory(self, buffer: BufferId) -> Buffer:
        """The description of that buffer."""
        return self.buffers[self.owner(buffer)]


def blocks_of(s: Statement) -> tuple[Block, ...]:
    """The blocks of a statement; that of a transposing copy has its loops alone."""
    if isinstance(s, Transpose):
        return ((s.loops,),)
    return tuple([getattr(s, name) for name in BLOCKS[type(s)]])


def map_blocks(s: Statement, change: Callable[[Block], Block]) -> Statement:
    """A statement with other blocks; the statement itself where they stay what they are.

    A transposing copy is none of its loops, which only say what it means: it has no block to change.

    Example, where ``change`` drops what is stored in t:
        in:   for j: t[j] = x; out[j] = x      out:  for j: out[j] = x
    """
    blocks = {name: getattr(s, name) for name in BLOCKS[type(s)]}
    changes = {name: new for name, old in blocks.items() if (new := change(old)) is not old}
    return replace(s, **changes) if changes else s


def map_statements(body: Block, change: Callable[[Statement], Statement | None]) -> Block:
    """A block whose statements are changed at any depth, the inner ones first; None leaves a statement out.

    A loop or a condition that is left with nothing is left out too.
    """
    out = []
    for s in body:
        inner = map_blocks(s, lambda block: map_statements(block, change))
        empty = inner is not s and isinstance(inner, (For, If)) and not any(blocks_of(inner))
        changed = None if empty else change(inner)
        if changed is not None:
            out.append(changed)
    same = len(out) == len(body) and all(a is b for a, b in zip(body, out, strict=True))
    return body if same else tuple(out)


def has_spread(s: Statement) -> bool:
    """Whether iterations are shared out inside of a statement."""
    return any(isinstance(inner, ThreadLoop) for inner in statements_within((s,)))


def children(s: Statement) -> tuple[Statement, ...]:
    """The statements that stand directly in a statement: of its blocks, and what else it is made of."""
    body = tuple(inner for block in blocks_of(s) for inner in block)
    if isinstance(s, ThreadLoop):
        return (*s.loops, *body)
    if isinstance(s, Tile):
        return (*s.blocks, *body, *(() if s.fill is None else (s.fill,)))
    return body


def statements_within(body: Sequence[Statement]) -> Iterator[Statement]:
    """Every statement of a block at any depth, in order."""
    stack = list(reversed(body))
    while stack:
        s = stack.pop()
        yield s
        if type(s) is For:
            stack.extend(s.body[::-1])
        elif type(s) in OUTER:  # few are, and asking takes a fifth of what a match does
            stack.extend(reversed(children(s)))


def every(body: Sequence[Statement], kind: type[S]) -> Iterator[S]:
    """Every statement of one kind in a block, at any depth, in order."""
    return (s for s in statements_within(body) if isinstance(s, kind))
