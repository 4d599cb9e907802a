"""Split full tiles from boundary tiles: a block that is inside of all dimensions tests nothing else.

Example, where blocks have 64 elements of i, and a thread four of them:
    in:   spread i2 over the threads                    out:  if 0 <= 64i+63 < n_i
            for i1: if 64i+16i1+i2 < n_i                        spread i2 over the threads
              out[64i+16i1+i2] = t[i1]                            for i1: out[64i+16i1+i2] = t[i1]
                                                              else
                                                                spread i2 over the threads
                                                                  for i1: if 64i+16i1+i2 < n_i ...

The condition is the same for all threads of a block, so the branch does not diverge. A statement that computes floats
of a thread needs no condition that also guards all reads of these floats, if it reads nothing else than
complete copies. To make copies complete, they are filled with 0 past the end of a dimension. In full tiles the terms of
a contraction are unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from functools import partial
from itertools import groupby

from ilang.core.calculus.affine import Affine, Within
from ilang.core.dtype import FLOATS
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import ThreadLoop, threads_of
from ilang.core.ir.ids import VariableId
from ilang.core.ir.rewriting import loops_of, nested, parts_of, reads_of, substituted, with_bodies
from ilang.core.ir.scalar import Apply, Constant, Load, Local, Scalar, Select
from ilang.core.passes.full_tiles import Extents, full_test
from ilang.core.record import mapped, mapped_inside, record, replace

Free = Callable[[Within, Extents], tuple[Within, ...]]
"""A function that gives what is left of a condition."""


def kernel_to_full_tiles(program: ir.Program) -> ir.Program:
    """The program with full tiles split from boundary tiles: one condition for each block, none for its elements."""
    return with_bodies(program, lambda kernel: _freed(program, kernel))


def _freed(program: ir.Program, kernel: ir.Kernel) -> ir.Block:
    spread = threads_of(kernel)
    if spread.over == "grid":
        return kernel.body
    splitter = _TileSplitter(program)
    body = splitter.filled(spread.body, spread.body)
    splitter.unread = _Unread(body)
    return (replace(spread, body=splitter.regions(body)),)


def in_regions(
    body: ir.Block,
    region: Callable[[ir.Block], ir.Block],
    branches: Callable[[ir.If], ir.Statement],
    buffers: Sequence[ir.Buffer],
) -> ir.Block:
    """A block that all threads run, in regions that nothing but threads has loops in.

    A copy to shared memory is a region of its own: what one dimension ends in concerns no other copy, nor what is
    computed from it.
    """
    if not any(isinstance(s, (ir.For, ir.If)) and ir.has_spread(s) for s in body):
        groups = groupby(body, lambda s: id(s) if _is_copy(s, buffers) else None)
        return tuple(s for _, group in groups for s in region(tuple(group)))
    out: list[ir.Statement] = []
    for s in body:
        match s:
            case ir.For() if ir.has_spread(s):
                out.append(replace(s, body=in_regions(s.body, region, branches, buffers)))
            case ir.If() if ir.has_spread(s):
                out.append(branches(s))
            case ThreadLoop():
                out += region((s,))
            case _:
                out.append(s)
    return tuple(out)


def _is_copy(s: ir.Statement, buffers: Sequence[ir.Buffer]) -> bool:
    """Whether threads copy elements of arrays to what their block shares, and do nothing else."""
    if not isinstance(s, ThreadLoop):
        return False
    inside = list(ir.statements_within(s.body))
    stores = [x for x in inside if isinstance(x, ir.Store)]
    rest = (x for x in inside if not isinstance(x, (ir.For, ir.If, ir.Store)))
    shared = all(buffers[x.buffer].space == "shared" for x in stores)
    read = (number for x in inside for number, _ in reads_of(x))
    return shared and not any(rest) and not any(buffers[number].private for number in read)


class _TileSplitter:
    """Full tiles of one kernel: where all threads of a block are together, and what they test there."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.unrolled = program.machine.tiles.terms
        self.whole: set[int] = set()
        self.fills: dict[int, ir.Store] = {}
        self.unread = _Unread(())

    def regions(self, body: ir.Block) -> ir.Block:
        """A block that all threads run, in regions that nothing but threads has loops in."""
        return in_regions(
            body, self._region, lambda s: ir.map_blocks(s, self.regions), self.program.buffers
        )

    def _region(self, body: ir.Block) -> ir.Block:
        """A region, once without conditions, where one for all of them holds, and once with them."""
        body = self._rewritten(body, {}, self._unless_own)
        asked, free = self._split(body, partial(full_test, self.program.sizes))
        passed, behind = self._split(free, _passed)  # guards that a program has written
        free = (ir.If(passed, behind, free),) if passed else free
        return (ir.If(asked, free, body),) if asked else free

    def _split(
        self, body: ir.Block, test: Callable[[Within, Extents], Within | None]
    ) -> tuple[tuple[Within, ...], ir.Block]:
        """The tests, each of all threads, behind which a region needs some conditions no longer, and the rest of it."""
        asked: dict[Within, None] = {}

        def ask(condition: Within, inner: Extents) -> tuple[Within, ...]:
            of_all = test(condition, inner)
            if of_all is None:
                return (condition,)
            asked[of_all] = None
            return ()

        free = self._rewritten(body, {}, lambda s, inner: self._without(s, inner, ask))
        return tuple(asked), free

    def _rewritten(
        self, body: ir.Block, inner: Extents, change: Callable[[ir.Statement, Extents], ir.Block]
    ) -> ir.Block:
        """A block whose statements are changed, the outer ones first, given the loops around them in the region."""
        out: list[ir.Statement] = []
        for s in body:
            for x in change(s, inner):
                opened = {**inner, **{loop.variable: self._extent(loop) for loop in loops_of(x)}}
                out.append(ir.map_blocks(x, partial(self._rewritten, inner=opened, change=change)))
        return tuple(out)

    def _extent(self, loop: ir.For) -> int | None:
        return None if loop.chunk is not None else self.program.sizes[loop.size].fixed

    # -- copies that are filled --------------------------------------------------------------------------------------

    def filled(self, body: ir.Block, every: ir.Block) -> ir.Block:
        """A block in which copies that threads share are stored whole: 0 where conditions do not hold."""
        stores = list(ir.every(every, ir.Store))
        copies = {
            store.buffer: store
            for s in ir.every(every, ThreadLoop)
            if (copy := self._copy(s)) is not None
            for store in ir.every(copy.body, ir.Store)
        }
        self.whole = {n for n in copies if sum(s.buffer == n for s in stores) == 1}
        self.fills = {n: store for n, store in copies.items() if n in self.whole}

        def change(s: ir.Statement) -> ir.Statement:
            copy = self._copy(s) if isinstance(s, ThreadLoop) else None
            one = isinstance(s, ThreadLoop) and any(
                isinstance(x, ir.Store) and x.buffer in self.whole
                for x in ir.statements_within(s.body)
            )
            return copy if copy is not None and one else s

        return ir.map_statements(body, change)

    def _copy(self, spread: ThreadLoop) -> ThreadLoop | None:
        """A spread that stores in one buffer that threads share, without loops that end early; None of any other."""
        within: list[Within] = []
        loops = [self._endless(loop, within) for loop in spread.loops]
        body, around = spread.body, []
        while len(body) == 1 and isinstance(body[0], (ir.For, ir.If)):
            s = body[0]
            if isinstance(s, ir.For):
                around.append(self._endless(s, within))
            elif s.otherwise or s.stored is not None:
                return None
            else:
                within += s.within
            body = s.body
        store = body[0]
        if spread.over != "threads" or len(body) > 1 or not isinstance(store, ir.Store):
            return None
        opened = {
            loop.variable: self._extent(loop) for loop in (*loops, *around) if not loop.within
        }
        buffer = self.program.buffers[store.buffer]
        if buffer.space != "shared" or not self._is_inside(store.buffer, store.index, opened):
            return None
        if within:
            zero = Constant(0, buffer.dtype)
            value = Select(tuple(within), store.value, zero, buffer.dtype)
            store = replace(store, value=value)
        return replace(spread, loops=tuple(loops), body=nested(around, (store,)))

    def _endless(self, loop: ir.For, within: list[Within]) -> ir.For:
        """A loop that does not end early, ``within`` taking the condition; itself where it is of another kind."""
        if self._extent(loop) is None or any(loop.begin.limits()) or loop.finite:
            return loop
        within += loop.runs()
        return loop.whole()

    # -- what needs no condition -------------------------------------------------------------------------------------

    def _unless_own(self, s: ir.Statement, inner: Extents) -> ir.Block:
        """A statement without the conditions that change nothing but floats of a thread's own that nothing reads."""
        if isinstance(s, ThreadLoop):
            inside = list(ir.statements_within(s.body))
            loops = [x for x in inside if isinstance(x, ir.For)]
            opened = {**inner, **{loop.variable: self._extent(loop) for loop in (*s.loops, *loops)}}
            stores = [x for x in inside if isinstance(x, ir.Store)]
            guards = [x for x in inside if isinstance(x, ir.If) and not x.otherwise]
            alone = len(loops) + len(stores) + len(guards) == len(inside)
            if alone and all(self._is_own(x, (), opened) for x in stores):
                return (replace(s, loops=tuple(self._unended(loop, s.body) for loop in s.loops)),)
        if isinstance(s, ir.For):
            return (s.whole() if self._adds_zeros(s, inner) else s,)
        if not isinstance(s, ir.If) or s.otherwise or s.stored is not None:
            return (s,)
        known = {x.variable for x in s.body if isinstance(x, ir.Define)}
        if not all(self._is_own(x, known, inner) for x in s.body):
            return (s,)
        left = tuple(each for each in s.within if not self._tells_nothing(each, s.body))
        return (replace(s, within=left),) if left else s.body

    def _adds_zeros(self, loop: ir.For, inner: Extents) -> bool:
        """Whether a loop that ends early would go on with products of zeros, added to sums of a thread's own."""
        if not loop.within or any(loop.begin.limits()) or loop.finite or self._extent(loop) is None:
            return False
        inside = list(ir.statements_within(loop.body))
        loops = [x for x in inside if isinstance(x, ir.For) and not any(x.begin.limits())]
        guards = [x for x in inside if isinstance(x, ir.If) and not x.otherwise and not x.stored]
        sums = [x for x in inside if isinstance(x, ir.Store) and x.contracts]
        if len(loops) + len(guards) + len(sums) < len(inside):
            return False
        opened = {**inner, **{x.variable: self._extent(x) for x in (loop, *loops)}}
        return all(
            self._is_own(x, (), opened) and all(self._is_zero(x, end) for end in loop.runs())
            for x in sums
        )

    def _is_zero(self, s: ir.Store, end: Within) -> bool:
        """Whether both factors of what a statement adds are elements of copies that are 0 where a condition fails."""
        assert isinstance(s.value, Apply)
        product = s.value.arguments[1]
        assert isinstance(product, Apply)
        return all(
            isinstance(factor, Load) and _is_filled(self.fills.get(factor.buffer), factor, end)
            for factor in product.arguments
        )

    def _unended(self, loop: ir.For, body: ir.Block) -> ir.For:
        """A loop without its end, where only floats that nothing reads are past it."""
        free = all(self._tells_nothing(end, body) for end in loop.runs())
        return self._endless(loop, []) if free else loop

    def _tells_nothing(self, condition: Within, body: ir.Block) -> bool:
        """Whether nothing that is read tells where a condition around stores does not hold."""
        stores = ir.every(body, ir.Store)
        return all(self.unread.tells_nothing(condition, x) for x in stores)

    def _is_own(self, s: ir.Statement, known: Container[int], inner: Extents) -> bool:
        """Whether a statement makes a float of a thread's own of such floats, of elements of whole copies."""
        if isinstance(s, ir.Store):
            buffer = self.program.buffers[s.buffer]
            if buffer.space != "local" or not self._is_inside(s.buffer, s.index, inner):
                return False
        elif not isinstance(s, ir.Define) or s.mutable:
            return False
        return all(self._is_known(part, known, inner) for part in parts_of(s))

    def _is_known(self, part: Scalar, known: Container[int], inner: Extents) -> bool:
        """Whether a part of a scalar is a float that is there whatever the loops are at."""
        if isinstance(part, Load):
            held = self.program.buffers[part.buffer].space == "local" or part.buffer in self.whole
            return held and self._is_inside(part.buffer, part.index, inner)
        if isinstance(part, Local):
            return part.variable in known
        return not isinstance(part, Select) and part.dtype in FLOATS

    def _is_inside(self, number: int, index: tuple[Affine, ...], inner: Extents) -> bool:
        """Whether an index of floats is inside of a buffer wherever the loops are."""
        buffer, sizes = self.program.buffers[number], self.program.sizes
        return buffer.dtype in FLOATS and all(
            Within(part, size).holds(inner, sizes[size].fixed)
            for part, size in zip(index, buffer.dims, strict=True)
        )

    # -- what a condition for all stands for -------------------------------------------------------------------------

    def _without(self, s: ir.Statement, inner: Extents, ask: Free) -> ir.Block:
        match s:
            case ThreadLoop():
                opened = {**inner, **{loop.variable: self._extent(loop) for loop in s.loops}}
                return (replace(s, loops=tuple(self._to_end(x, opened, ask) for x in s.loops)),)
            case ir.For():
                loop = self._to_end(s, inner, ask)
                extent = self._extent(loop)
                whole = not loop.within and loop.copies == 1 and extent is not None
                if whole and extent is not None and extent <= self.unrolled:
                    loop = replace(loop, manner=ir.Unrolled(extent))
                return (loop,)
            case ir.If() if not s.otherwise and s.stored is None:
                left = tuple(part for each in s.within for part in ask(each, inner))
                if left:
                    return (replace(s, within=left),)
                return tuple(each for x in s.body for each in self._without(x, inner, ask))
            case ir.Store() | ir.Define() | ir.Change():
                return (_chosen(s, inner, ask),)
            case _:
                return (s,)

    def _to_end(self, loop: ir.For, inner: Extents, ask: Free) -> ir.For:
        """A loop that does not end before its last iteration where a condition says so."""
        extent = self._extent(loop)
        if not loop.within or any(loop.begin.limits()) or loop.finite or not extent:
            return loop
        left = [each for end in loop.reaches(extent - 1) for each in ask(end, inner)]
        return loop if left else loop.whole()


def _chosen(s: ir.Statement, inner: Extents, ask: Free) -> ir.Statement:
    """A statement whose scalar is without those of its conditions that hold for all elements."""

    def side(choice: Select) -> Scalar:
        left = tuple(part for each in choice.within for part in ask(each, inner))
        if not left:
            return mapped(choice.then, Select, side)
        return replace(mapped_inside(choice, Select, side), within=left)

    return mapped_inside(s, Select, side)


def _is_filled(fill: ir.Store | None, load: Load, end: Within) -> bool:
    """Whether an element of a copy that is filled so is 0 where a condition does not hold."""
    if fill is None or not isinstance(fill.value, Select):
        return False
    places = {
        VariableId(axis): at
        for part, at in zip(fill.index, load.index, strict=True)
        if (axis := part.axis()) is not None
    }
    return end in substituted(fill.value.within, places)


def _passed(condition: Within, inner: Extents) -> Within | None:
    """A test that all elements pass a guard on one side; None of a condition that a dimension ends."""
    least = condition.index.minimum(inner)
    if least is None or least.looked or condition.size is not None:
        return None
    return Within(least, None)


# -- conditions without effect -----------------------------------------------------------------------------------------


@record
class _Site:
    """A statement and what is around it: conditions, loops that threads share, other loops; and its number in order."""

    statement: ir.Statement
    conditions: tuple[Within, ...]
    threads: tuple[ir.For, ...]
    serial: frozenset[int]
    number: int


class _Unread:
    """Conditions around what a thread keeps to itself that change nothing that is read.

    Example, of a thread's own sums, where copies have 0 past the ends:
        for i1: if 64i+16i1+i2 < n_i: run[i1] += copy[i1]       the same condition: what is past the end is not read
        for i1: if 64i+16i1+i2 < n_i: out[64i+16i1+i2] = run[i1]

    Had the second loop no condition, or another one, the first would need its own.

    Loops of two statements are the same where threads share them alike, and where they index the same dimension of the
    array. A condition on a loop that other statements are in, iteration after iteration, is one for each iteration:
    what it is around may then hold what an earlier one has left. The condition counts where every iteration writes
    before it reads.
    """

    def __init__(self, body: ir.Block) -> None:
        self._sites: list[_Site] = []
        self._collect(body, (), (), frozenset())
        self._of = {id(site.statement): site for site in self._sites}
        self._reads: dict[int, list[tuple[_Site, tuple[Affine, ...]]]] = {}
        for site in self._sites:
            for buffer, index in reads_of(site.statement):
                self._reads.setdefault(buffer, []).append((site, index))

    def _collect(
        self,
        body: ir.Block,
        conditions: tuple[Within, ...],
        threads: tuple[ir.For, ...],
        serial: frozenset[int],
    ) -> None:
        for s in body:
            self._sites.append(_Site(s, conditions, threads, serial, len(self._sites)))
            match s:
                case ir.For():
                    opened = serial | {s.variable}
                    self._collect(s.body, (*conditions, *s.runs()), threads, opened)
                case ir.If():
                    self._collect(s.body, (*conditions, *s.within), threads, serial)
                    self._collect(s.otherwise, conditions, threads, serial)
                case ThreadLoop():
                    ends = tuple(end for loop in s.loops for end in loop.runs())
                    self._collect(s.body, (*conditions, *ends), s.loops, serial)
                case _:
                    pass

    def tells_nothing(self, condition: Within, store: ir.Store) -> bool:
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


def _is_own(s: ir.Statement, buffer: int, index: Sequence[Affine]) -> bool:
    """Whether a statement reads an element of an array to write that element alone."""
    return isinstance(s, ir.Store) and s.buffer == buffer and tuple(s.index) == tuple(index)


def _whole_variables(index: Sequence[Affine]) -> set[int]:
    return {variable for _, variable in _dimensions(index)}


def _dimensions(index: Sequence[Affine]) -> Iterator[tuple[int, int]]:
    """The dimensions whose index is one variable, and that variable."""
    for dim, part in enumerate(index):
        axis = part.axis()
        if axis is not None:
            yield dim, axis


def _meaning(condition: Within, site: _Site, index: Sequence[Affine]) -> Hashable:
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
