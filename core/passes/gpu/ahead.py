"""Copies of a loop that can be loaded for the next iteration before this one computes, and what each becomes.

Example, of 512 elements that 256 threads copy:
    in:   spread i in 0..2 and j in 0..256 over the threads: copy[i,j] = a[k,i,j]
    out:  spread j: for i unrolled: copy_loaded[i] = a[k,i,j]         to registers
          spread j: for i unrolled: copy_next[i,j] = copy_loaded[i]   from there

A copy can be loaded ahead if it reads only arrays that the kernel does not write, and has no more elements for each
thread than that loads at a time. The next iteration may be the first one of the next iteration of a loop around it: if
an axis is split twice, the first inner part follows the last one, and indices continue in equal steps. The last
iteration of a block loads a copy that nothing reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

from ilang.core.calculus.affine import Affine, Within, axis_index, before
from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.rewriting import accesses, chain_of, nested, parts_of, substituted
from ilang.core.ir.scalar import Apply, Convert, Load, Local, Position, Scalar, Select
from ilang.core.matrix_unit import is_rounding, unrounded
from ilang.core.passes.gpu.numbering import Numbering
from ilang.core.record import record, replace


@record
class CopySpread:
    """A spread that copies: each thread has one iteration, in which unrolled ``loops`` stand around one ``store``.

    The innermost loop moves vectors of ``wide`` buffers. ``at`` numbers the iterations
    below ``count``: its place in the registers ``held``, from which the buffer ``filled`` takes it.
    """

    spread: ThreadLoop
    loops: tuple[ir.For, ...]
    store: ir.Store
    wide: tuple[BufferId, ...]
    at: Affine
    count: int
    held: BufferId = BufferId(-1)
    filled: BufferId = BufferId(-1)

    def loads(self) -> ir.Statement:
        """The copy into registers; what it is rounded to is computed later, from there: nothing waits for it."""
        wide = tuple(number for number in self.wide if number != self.store.buffer)
        return self._around(ir.Store(self.held, (self.at,), unrounded(self.store.value)), wide)

    def fills(self) -> ir.Statement:
        """The copy from there."""
        dtype = unrounded(self.store.value).dtype
        assert dtype is not None
        value = _rounded_as(self.store.value, Load(self.held, (self.at,), dtype))
        wide = (self.filled,) if self.store.buffer in self.wide else ()
        return self._around(ir.Store(self.filled, self.store.index, value), wide)

    def _around(self, store: ir.Store, wide: tuple[BufferId, ...]) -> ir.Statement:
        loops = self.loops
        if wide:
            loops = (*loops[:-1], replace(loops[-1], manner=ir.Vectors(wide)))
        return replace(self.spread, body=nested(loops, (store,)))


def _rounded_as(value: Scalar, loaded: Scalar) -> Scalar:
    """A loaded scalar, rounded where a value is."""
    match value:
        case Convert() if is_rounding(value):
            return replace(value, argument=loaded)
        case Apply() if is_rounding(value):
            return replace(value, arguments=(loaded,))
        case _:
            return loaded


class Copies:
    """A program with more buffers and sizes; the names of the kernel that is changed, and what it writes."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.numbering = Numbering(program)
        self.buffers = self.numbering.buffers
        self.written: set[BufferId] = set()

    def enter(self, kernel: ir.Kernel) -> None:
        """Go on with a kernel."""
        self.numbering.enter(kernel)
        inside = ir.statements_within(kernel.body)
        self.written = {self.program.owner(s.buffer) for s in inside if isinstance(s, ir.Store)}

    def of(self, loop: ir.For, number: BufferId) -> dict[ir.Statement, CopySpread]:
        """The copies of a loop into a buffer, by statement; none if it is filled in any other way."""
        copies_of_loop: dict[ir.Statement, CopySpread] = {}
        if loop.chunk is not None:
            return {}
        for s in _leaves(loop.body):
            if any(x.buffer == number for x in ir.every((s,), ir.Store)):
                copy = self._copy(s) if isinstance(s, ThreadLoop) else None
                if copy is None:
                    return {}
                copies_of_loop[s] = copy
        return copies_of_loop

    def held(
        self, copies: dict[ir.Statement, CopySpread], filled: BufferId
    ) -> dict[ir.Statement, CopySpread]:
        """Copies that share registers, and fill a buffer."""
        buffer = self.buffers[filled]
        most = max(copies.values(), key=lambda copy: copy.count)
        size = most.loops[0].size if len(most.loops) == 1 else self.numbering.size(most.count)
        dtype = unrounded(most.store.value).dtype
        assert dtype is not None
        name = f"{buffer.name.removesuffix('_next')}_loaded"
        held = self.numbering.private(name, dtype, (size,), "local", buffer.tensor)
        return {s: replace(copy, held=held, filled=filled) for s, copy in copies.items()}

    def _copy(self, spread: ThreadLoop) -> CopySpread | None:
        """The copy that a spread makes; None where it computes, or has more for a thread than that loads at a time."""
        device = self.program.machine.gpu()
        inner, body = chain_of(spread.body)
        store = body[0]
        every = (*spread.loops, *inner)
        if len(body) > 1 or not isinstance(store, ir.Store) or store.contracts or not spread.loops:
            return None
        if any(loop.within or loop.chunk or not self._extent(loop) for loop in every):
            return None
        if not all(self._stays(part) for part in parts_of(store)):
            return None
        known = prod(self._extent(loop) for loop in every)
        room = device.loads * self.program.machine.vector_bytes()
        most = room // BYTES[unrounded(store.value).dtype or ""]
        if known > spread.threads * most:
            return None
        spread, turns, instead = self._shared_out(spread)
        loops = (*turns, *(replace(x, role="u", body=(), manner=None) for x in inner))
        count = prod(self._extent(loop) for loop in loops)
        moved = substituted(store, instead)
        assert isinstance(moved, ir.Store)
        terms, step = [], count
        for loop in loops:
            step //= self._extent(loop)
            terms.append((step, loop.variable))
        vectors = inner[-1].manner if inner else None
        wide = vectors.buffers if isinstance(vectors, ir.Vectors) else ()
        at = Affine(tuple(terms))
        return CopySpread(spread, loops, moved, wide, at, count) if count <= most else None

    def _stays(self, part: Scalar) -> bool:
        """Whether a part of a scalar is the same whenever it is read."""
        if isinstance(part, Load):
            excluded = self.buffers[part.buffer].private or any(x.looked for x in part.index)
            return not excluded and self.program.owner(part.buffer) not in self.written
        return not isinstance(part, Local)

    def _shared_out(
        self, spread: ThreadLoop
    ) -> tuple[ThreadLoop, list[ir.For], dict[VariableId, Affine]]:
        """A spread of which a thread has one iteration at most, loops around its others, what variables become."""
        left, loops, turns = spread.threads, list[ir.For](), list[ir.For]()
        instead: dict[VariableId, Affine] = {}
        for loop in reversed(spread.loops):
            extent = self._extent(loop)
            part = next(n for n in range(min(extent, left), 0, -1) if extent % n == 0)
            left //= part
            if part == extent:
                loops.insert(0, loop)
                continue
            end = loop.end if part == 1 else self.numbering.fixed.extent(extent // part)
            turns.insert(0, replace(loop, role="u", end=end))
            if part > 1:
                variable = self.numbering.split(loop.variable, "t")
                instead[loop.variable] = Affine(((part, loop.variable), (1, variable)))
                loops.insert(
                    0, replace(loop, variable=variable, end=self.numbering.fixed.extent(part))
                )
        return replace(spread, loops=tuple(loops), body=()), turns, instead

    def _extent(self, loop: ir.For) -> int:
        """The number of iterations of a loop; 0 where that is known at run time only."""
        return self.numbering.sizes[loop.size].fixed or 0


class Iterations:
    """The iterations of a loop, counted on through loops ``outer`` right around it, innermost first."""

    def __init__(
        self, program: ir.Program, loop: ir.For, around: Sequence[ir.For], copies: ir.Block
    ) -> None:
        """For a loop that has ``copies``, inside other ones."""
        self.loop = loop
        self.outer: list[ir.For] = []
        counted, last, steps = [(1, loop.variable)], loop, 1
        for other in reversed(around):
            extent = program.sizes[last.size].fixed
            if extent is None or last.within or last.chunk is not None or other.within:
                break
            further = steps * extent
            if any(
                x.coefficient(other.variable) != further * x.coefficient(loop.variable)
                for x in _forms(copies)
            ):
                break
            counted.append((further, other.variable))
            self.outer.append(other)
            last, steps = other, further
        self._counted = counted[::-1]
        extent = program.sizes[last.size].fixed
        open_size = ((steps, last.size),) if extent is None else ()
        self._left = Affine((), steps * (extent or 0), sizes=open_size)

    def more(self) -> tuple[Within, ...]:
        """The conditions that an iteration is not the last one."""
        left = self._left - Affine(tuple(self._counted), 2)
        return (Within(left, None), *self._before_end(1))

    def any(self) -> tuple[Within, ...]:
        """The conditions that an iteration exists."""
        if not self._left.sizes and self._left.offset:
            return self._before_end(None)
        return (Within(self._left - 1, None), *self._before_end(None))

    def _before_end(self, on: int | None) -> tuple[Within, ...]:
        """The conditions that the first iteration, or one ``on`` from this one, is before the end of the dimension."""
        now = 0 if on is None else axis_index(self.loop.variable) + on
        limits, variable = () if self.loop.finite else self.loop.end.limits(), self.loop.variable
        return tuple(before(variable, *limit).at(variable, now) for limit in limits)


def chosen(body: ir.Block, choose: Callable[[ir.Statement], ir.Statement | None]) -> ir.Block:
    """A block with other statements for what is under conditions alone; None leaves one out."""
    out: list[ir.Statement] = []
    for s in body:
        if isinstance(s, ir.If) and ir.has_spread(s):
            within, otherwise = chosen(s.body, choose), chosen(s.otherwise, choose)
            out += [replace(s, body=within, otherwise=otherwise)] if within or otherwise else []
        else:
            changed = choose(s)
            out += [] if changed is None else [changed]
    return tuple(out)


def _leaves(body: ir.Block) -> Iterator[ir.Statement]:
    """The statements of a block, those under conditions in place of these."""
    for s in body:
        if isinstance(s, ir.If) and ir.has_spread(s):
            yield from _leaves(s.body)
            yield from _leaves(s.otherwise)
        else:
            yield s


def _forms(body: ir.Block) -> Iterator[Affine]:
    """Every index of a block, those of conditions among them."""
    for _, index in accesses(body):
        yield from index
    for s in ir.statements_within(body):
        within = list(s.within) if isinstance(s, ir.If) else []
        for part in parts_of(s):
            within += part.within if isinstance(part, Select) else ()
            if isinstance(part, Position):
                yield part.index
        yield from (each.index for each in within)
