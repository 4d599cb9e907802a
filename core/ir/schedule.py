"""The schedule: for every assignment its loops and where its operands' producers are computed; which share a kernel.

Produced by ``schedule/shaped_to_schedule.py`` (by a person's schedule or by ``schedule/choose``: the same value either
way), consumed by ``passes/nest_to_kernel.py``, which follows it and chooses nothing of that again.

An axis of extent n with the factors f1 .. fm has the loops part 0 (ceil(n / (f1 ... fm)) iterations), part 1 (f1), ...,
part m (fm); its index is the sum of part times weight, the weight of a part being the product of the factors after it.

Invariants:
    - ``order`` names every loop part of every axis exactly once, outermost first.
    - ``sites[n]`` is the number of loops outside the place where the producer of read n is computed (0: the start of
      the kernel), or None: then it is computed whole, in a kernel of its own, before. A site on a read of an input, or
      of what has the space ``c``, places a copy of what is read below.
    - What is looked up, and what is read at an index that is looked up, is computed whole.
    - ``start`` is the number of loops outside the written start of a reduction, or None.
    - ``roles`` has a role or "" per loop of the order, ``spaces`` one or "" per read.
    - A fusion stands at each read of a live assignment that stages what another assignment computes, and nowhere else;
      it maps loops of the producer to loops of the reader outside the site, part to part.
    - Every live value that some reader does not stage, and every output, is a root of one group, and of one only. The
      owner of a root is a root of its group; it shares no more loops than either has.
    - The first instances of a plan compute the roots of its group, in order. Any other instance is the source of a
      read.
    - An instance shares loops that its chain has, and every loop of a chain is opened by the instance that it names.
    - Parts are those of a root that shares no loops, outermost of its reduced ones.
    - An accumulation has the instance's own loops from the outermost reduced one inside of parts on, in order. The core
      of a tile and of partial sums are reduced loops, and what is held in registers is constant. An instance that
      shares a reduced loop has none.
    - The loop along a scan is an output loop right outside its outermost reduced one, which goes over a triangle.
    - An instance has a source or a copy for every distinct read that its nest stages, unless an interval begins inside.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import takewhile
from math import prod
from typing import Literal, TypeGuard, assert_never, get_args

from ilang.core.calculus.affine import Within
from ilang.core.calculus.extent import Extent
from ilang.core.ir import syntax
from ilang.core.ir.scalar import Scalar
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.record import record, replace
from ilang.core.source import Span

Role = Literal["", "p", "t", "v", "u", "q", "x", "y", "z", "tx", "ty", "tz", "l", "m", "m16"]
"""The role of a loop: as it is best, parallel, by threads, in lanes, unrolled, one after the other.

On a GPU x, y and z are the dimensions of the grid, tx, ty and tz those of a block, l the lanes of a warp, and m
and m16 loops are a product of matrices by a matrix unit.
"""
UNIT_ROLES: tuple[Role, ...] = ("m", "m16")
BLOCK_ROLES: tuple[Role, ...] = ("x", "y", "z")
THREAD_DIMENSIONS: tuple[Role, ...] = ("tx", "ty", "tz")
THREAD_ROLES: tuple[Role, ...] = ("t", *THREAD_DIMENSIONS, "l")
Asked = Literal["", "position", "role"]
"""Whether a person said which loops are for blocks and threads: not at all, by where loops stand, by name."""
Space = Literal["", "s", "s2", "r", "c", "c2"]
"""The memory of a staged value: where it is best, shared, shared twice, in registers, computed whole and copied."""


@record
class Loop:
    """Part ``part`` of an axis: 0 is the outermost."""

    __slots__ = ("__dict__", "_hash")

    axis: int
    part: int = 0


@record
class Nest:
    """The schedule of one assignment; ``written`` where a person wrote its order.

    Where blocks and threads are ``asked`` for, what they cannot do is refused; else they do what they can.
    """

    factors: tuple[tuple[int, ...], ...]
    order: tuple[Loop, ...]
    sites: tuple[int | None, ...]
    start: int | None = None
    roles: tuple[Role, ...] = ()
    spaces: tuple[Space, ...] = ()
    written: bool = False
    asked: Asked = ""

    def weight(self, loop: Loop) -> int:
        """The step that one iteration of a loop adds to the index of its axis."""
        return prod(self.factors[loop.axis][loop.part :])

    def parts(self, axis: int) -> tuple[Loop, ...]:
        """The loops of an axis, outermost part first."""
        return tuple(Loop(axis, part) for part in range(len(self.factors[axis]) + 1))

    def role(self, position: int) -> Role:
        """The role of the loop at a position of the order, or ""."""
        return self.roles[position] if self.roles else ""

    def staged(self, read: int) -> int | None:
        """The site at which the producer of a read is computed; None where it is computed whole, before.

        The roles ``c`` and ``c2`` of a staged input compute it whole, and copy at the site what the loops below read.
        """
        space = self.space(read)
        match space:
            case "c" | "c2":
                return None
            case "" | "s" | "s2" | "r":
                return self.sites[read]
            case _:
                assert_never(space)

    def space(self, read: int) -> Space:
        """The role of a staged read, or ""."""
        return self.spaces[read] if self.spaces else ""


@record
class Fusion:
    """The loops of a producer that are loops of its reader; ``pairs`` gives the reader's axis of each fused axis."""

    loops: dict[Loop, Loop]
    pairs: dict[int, int]


@record
class Root:
    """A value that is stored whole, and how many of its leading loops are those of another root of its kernel."""

    value: int
    owner: int
    shared: int


@record
class Opened:
    """A loop of a kernel: the instance that opens it, and which loop of that one's nest it is."""

    __slots__ = ("__dict__", "_hash")

    instance: int
    loop: Loop


LoopSteps = tuple[tuple[int, Loop], ...]
"""An index as steps of loops: the sum of step times loop."""


Interval = tuple[tuple[tuple[int, Opened], ...], int]
"""The part of a dimension that an axis walks, from a first index on: the sum of step times loop, plus an offset.

The first index may be before the dimension, and the last one past it.
"""


Kept = dict[int | Loop, Extent]
"""The dimensions of the storage of a staged value: each a whole dimension, or the part of one; their extents."""


@record
class PackedDimension:
    """A dimension of a copy: what the loops below walk of dimension ``dim`` of what is copied; its extent.

    ``plain`` is the one loop that it is, where it is no more than that, and ``step`` its step in what is copied.
    """

    dim: int
    steps: LoopSteps
    extent: Extent
    plain: Loop | None
    step: int


@record
class TilePartials:
    """The partial sums of a tile: of ``step`` iterations of the loop in its core that is ``depth`` loops deep.

    A micro-kernel adds them ``apart``, in other registers, or where the tile will be.
    """

    depth: int
    step: int
    apart: bool = False


@record
class MicroTile:
    """The part of a tile that is computed at a time where registers hold ``held`` bytes of it.

    ``lanes`` of each row, and ``rows`` of them: most often the first number; of what is left at the end of a dimension
    one of the others, which are smaller.
    """

    held: int
    lanes: int
    rows: tuple[int, int, int]


@record
class RegisterTile:
    """A reduction whose accumulators are a tile in registers: its own loops from the outermost reduced one on.

    ``outer`` are those outside the tile, ``core`` the reduced ones in it, ``elements`` the innermost ones, one per
    accumulator, of these ``extents``. Where all outside are reduced, and nothing is computed between them, they are
    ``blocks`` instead: what each sums is added in the wider type. A tile is ``kept`` where the storage of the value is
    the tile itself. Vectors hold ``vector`` elements of a row, or a divisor of that, where the program does nothing but
    what vectors can: then one of the ``micro_tiles`` is computed at a time.
    """

    outer: tuple[Loop, ...]
    blocks: tuple[Loop, ...]
    core: tuple[Loop, ...]
    elements: tuple[Loop, ...]
    extents: tuple[int, ...]
    dtype: str
    kept: bool
    partial: TilePartials | None
    vector: int
    micro_tiles: tuple[MicroTile, ...]


@record
class PartialSums:
    """A reduction that folds a few terms in one variable, those of the loops ``core``, before they meet an accumulator.

    The reduction's own loops from the outermost reduced one on: ``outer``, ``outputs`` and ``core``.
    """

    outer: tuple[Loop, ...]
    outputs: tuple[Loop, ...]
    core: tuple[Loop, ...]
    dtype: str


@record
class Chunks:
    """A reduction outside all loops in blocks of its outermost ``loop``, each by itself, then all of them in order.

    There are as many as have ``work`` iterations each, ``most`` at most; each starts at a multiple of ``multiple``.
    Where output loops are inside, a chunk has accumulators of its own for all of their iterations, and ``each`` says
    how those accumulate. Loops ``around`` are in each chunk, and where one is enough they are outside: then the
    reduction stands in the program with chunks and without.
    """

    loop: Loop
    most: int
    work: int
    multiple: int
    each: RegisterTile | PartialSums | None = None
    around: tuple[Loop, ...] = ()


@record
class ThreadTile:
    """A reduction of which a thread adds few terms at a time in variables of its own, in the type of the result.

    The reduction's own loops from the outermost reduced one on: ``outer`` are those around all that is added in that
    type, ``runs`` those over runs, ``core`` the reduced ones of a run, and ``elements``, innermost, have a variable
    each; those for threads tell threads apart. The sums of a few runs are added, and what they give meets the
    accumulators of the wider type; without ``outer`` loops it is all. Where the first of ``runs`` may have more than
    ``most`` iterations, so many at a time are added; 0 where all are.
    """

    outer: tuple[Loop, ...]
    runs: tuple[Loop, ...]
    core: tuple[Loop, ...]
    elements: tuple[Loop, ...]
    dtype: str
    most: int = 0

    def is_all(self) -> bool:
        """Whether nothing meets accumulators of a wider type."""
        return not self.outer and not self.most


@record
class Parts:
    """A reduction in parts: each iteration of its ``loops``, outermost of the reduced ones, has a result of its own.

    All results are combined in their order after that, each element by the ``threads`` of a block, or by one. With a
    ``least`` number, iterations that follow each other share a result, so many at least: as many as leave a device
    ``most`` blocks; where a thread has each element of a part, as many threads, and ``by_count`` says that a block
    combines many parts and a thread few.
    """

    loops: tuple[Loop, ...]
    threads: bool
    least: int = 0
    most: int = 0
    by_count: bool = False


Accumulation = RegisterTile | PartialSums | Chunks | ThreadTile
"""The storage of what a reduction has folded so far, beside an accumulator for each of its elements."""


@record
class StagedSource:
    """The instance that a read is from, and the reader's axis of each axis of it that fuses.

    ``walks`` has, for each dimension of which the instance has an interval, how the loops of the reader walk that.
    """

    instance: int
    pairs: dict[int, int]
    walks: dict[int, LoopSteps]


@record
class Instance:
    """One computation of a value in a kernel.

    ``home`` are the loops that it shares, ``chain`` all loops around its place, outermost first; ``extents`` those of
    its axes, and ``intervals`` what an axis walks that does not walk the whole dimension. ``kept`` are the dimensions
    of its storage, none of which a root has, nor a value with one element. ``sources`` has an entry per staged read of
    an assignment, ``copies`` one per number of a read that copies what is there already. ``accumulation`` is how a
    reduction, or each of its ``parts``, folds, None where each term meets its accumulator at once. Of a scan ``along``
    is the loop from one iteration of which to the next its accumulators are kept.
    """

    value: int
    home: dict[Loop, Opened]
    chain: tuple[Opened, ...]
    extents: tuple[Extent, ...]
    intervals: dict[int, Interval]
    kept: Kept
    sources: dict[Read, StagedSource]
    copies: dict[int, tuple[PackedDimension, ...]]
    accumulation: Accumulation | None = None
    parts: Parts | None = None
    along: Loop | None = None


Axes = dict[int, int]
"""The output axes of a reduction, and the axis of another assignment that each is there."""


@record
class Link:
    """An instance, and where the output axes of one side of a correction are on the other.

    The sum that is corrected rests on the other side in rows where ``live`` holds, conditions on its output axes: in
    any other row guards leave out, or make 0, each term that would.
    """

    instance: int
    axes: Axes
    live: tuple[Within, ...] = ()


@record
class OnlineReduction:
    """The state of a reduction while loops run: a partial reduction, a sum that is corrected, or both in one.

    ``outer`` is the outermost loop over its reduced axes: it starts before that, and keeps the elements ``kept``.
    ``shifts`` are the maxima whose growth scales it, ``divisors`` divide it in the end,
    ``scales`` are the sums that it scales when it grows. ``exact`` says that where a divisor ends as 0, so does the
    sum, since the divisor sums the numerators themselves; if not, of the terms where the guards ``divided`` hold each
    is infinite or NaN then, and any other is 0 by a guard of the quotient.
    """

    partial: bool
    outer: Opened
    kept: Kept
    shifts: tuple[Link, ...] = ()
    divisors: tuple[Link, ...] = ()
    scales: tuple[Link, ...] = ()
    exact: bool = True
    divided: tuple[Within, ...] = ()


@record
class Plan:
    """The instances of a kernel, its roots first; what runs among them, and the scalars that are computed instead.

    The only root is symmetric in the axes ``mirror``, where there are any: of the elements beyond the block of the
    first one that the second one is in, each is a copy of the one on the other side.
    """

    instances: tuple[Instance, ...]
    online: dict[int, OnlineReduction]
    scalars: dict[int, Scalar]
    mirror: tuple[int, int] | None = None


@record
class Group:
    """A fusion group: the values that one kernel computes, in the order in which its loops were shared out.

    A kernel with an online reduction has one root.
    """

    roots: tuple[Root, ...]
    plan: Plan


@record
class Scheduled:
    """A shaped program and everything that is chosen for it on a machine.

    ``nests`` has the loops of each assignment, None for inputs; ``fusions``, per read of an assignment, the loops that
    the staged producer shares, None where nothing is computed for the read; ``groups`` the kernels in the order in
    which they run. ``is_apart`` says that the program has assignments more than its text, for matrices that kernels
    compute again.
    """

    shaped: Shaped
    nests: tuple[Nest | None, ...]
    fusions: tuple[tuple[Fusion | None, ...], ...]
    groups: tuple[Group, ...]
    machine: Machine
    is_apart: bool = False

    def assigned(self, value: int) -> tuple[Assignment, Nest]:
        """The assignment that computes a value, and its nest."""
        node, nest = self.shaped.assignment(value), self.nests[value]
        assert nest is not None
        return node, nest

    def whole(self) -> list[int]:
        """The values that are stored whole, in order."""
        return sorted(root.value for group in self.groups for root in group.roots)


def is_role(word: str) -> TypeGuard[Role]:
    """Whether a word is the role of a loop."""
    return word in get_args(Role)


def is_space(word: str) -> TypeGuard[Space]:
    """Whether a word says where a staged value is kept."""
    return word in get_args(Space)


def parted(node: Assignment, nest: Nest) -> tuple[Loop, ...]:
    """The parallel loops over reduced axes, outermost of all of these: each iteration has a result of its own."""
    reduced = node.reduced_axes() if node.acc is not None and node.base is None else ()
    loops = [n for n, loop in enumerate(nest.order) if loop.axis in reduced]
    return tuple(nest.order[n] for n in takewhile(lambda n: nest.role(n) == "p", loops))


def loop_text(node: Assignment, loop: Loop) -> str:
    """A loop as it is written: the axis with a prime per part."""
    return node.axes[loop.axis].name + "'" * loop.part


def schedule_text(node: Assignment, nest: Nest) -> str:
    """The nest in the notation of schedules: ``| i:8 | i k i' j 0 | i:p``."""
    words = []
    for depth in range(len(nest.order) + 1):
        words += [str(node.operand(n)) for n, site in enumerate(nest.sites) if site == depth]
        words += ["!"] if nest.start == depth else []
        if depth < len(nest.order):
            words.append(loop_text(node, nest.order[depth]))
    splits = ",".join(
        ":".join([node.axes[axis].name, *map(str, factors)])
        for axis, factors in enumerate(nest.factors)
        if factors
    )
    roles = [
        f"{loop_text(node, loop)}:{role}"
        for loop, role in zip(nest.order, nest.roles, strict=False)
        if role
    ]
    roles += [f"{node.operand(n)}:{space}" for n, space in enumerate(nest.spaces) if space]
    text = (f"| {splits} | " if splits else "|| ") + " ".join(words)
    return f"{text} | {','.join(roles)}" if roles else text.rstrip()


def unscheduled(node: Assignment) -> str:
    """The text of an expression without its schedule."""
    if node.schedule is None:
        return node.text
    if node.text.startswith("einsum("):
        return node.text[: node.text.index('")') + 2]
    form, tilde, rest = node.text.partition("~")
    return f"{form}~{rest.partition('|')[0].rstrip()}" if tilde else node.text


def resolved(schedule: syntax.Schedule, axes: Collection[str]) -> syntax.Schedule:
    """A schedule whose axes were read as words: a word that is no axis is its characters, axes and digits.

    Example: with the axes ``b0``, ``i`` and ``k``, the order ``b0 ik1`` is ``b0 i k 1``.
    """
    order: list[syntax.LoopPart | syntax.Site | syntax.Start] = []
    for atom in schedule.order:
        order += _spread(atom, axes) if isinstance(atom, syntax.LoopPart) else [atom]
    return replace(schedule, order=tuple(order))


def named_axes(schedule: syntax.Schedule, axes: Collection[str]) -> frozenset[str]:
    """The axes that a schedule names in any of its parts; ``axes`` are all that its assignment may have."""
    order = resolved(schedule, axes).order
    loops = [atom for atom in order if isinstance(atom, syntax.LoopPart)]
    loops += [loop for loop, _ in schedule.loops()]
    return frozenset(split.axis for split in schedule.splits) | {loop.axis for loop in loops}


def _spread(
    loop: syntax.LoopPart, axes: Collection[str]
) -> list[syntax.LoopPart | syntax.Site | syntax.Start]:
    """One word of an order; the primes after it belong to its last axis."""
    word, start = loop.axis, loop.span.start
    if word in axes or not all(c in axes or c.isdigit() for c in word):
        return [loop]
    if word[-1].isdigit() and loop.part:
        return [loop]
    atoms: list[syntax.LoopPart | syntax.Site | syntax.Start] = []
    for n, c in enumerate(word):
        last = n == len(word) - 1
        span = Span(loop.span.source, start + n, loop.span.end if last else start + n + 1)
        part = syntax.LoopPart(c, loop.part if last else 0, span)
        atoms.append(syntax.Site(int(c), span) if c.isdigit() else part)
    return atoms


def asks_for_unit(node: Assignment) -> bool:
    """Whether a schedule gives loops of an assignment to a matrix unit."""
    return node.schedule is not None and any(x.role in UNIT_ROLES for x in node.schedule.roles)


def has_units(shaped: Shaped) -> bool:
    """Whether a schedule in a program gives loops to a matrix unit."""
    return any(isinstance(node, Assignment) and asks_for_unit(node) for node in shaped.nodes)
