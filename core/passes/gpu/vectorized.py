"""Vectorize and coalesce loads and stores: 16 bytes at a time, where arrays are aligned for that.

Example, of f32:
    in:   spread i and k in 0..16 over the threads      out:  if the rows of a are aligned
            copy[k,i] = a[i,k]                                  spread i and k in 0..4 over the threads
                                                                  for kv in 0..4, a together
                                                                    copy[4k+kv,i] = a[i,4k+kv]
                                                              else ...

The start of an array and the length of its rows are known at run time only, so the text tests them; the test is the
same for all threads of a block. If there is a test for full tiles, both are one condition. Loops that do not copy to
shared memory are vectorized as ``vector_access.py`` says. Before, copies that transpose are shared out without bank
conflicts (``transposes.py``), and operands are held in registers; results that no vector moves are
stored through shared memory (``coalesced.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.calculus.affine import Affine, axis_index, row_step
from ilang.core.dtype import HELD_FLOATS
from ilang.core.ir import kernel as ir
from ilang.core.ir import rewriting
from ilang.core.ir.gpu import ThreadLoop, threads_of
from ilang.core.ir.ids import BufferId
from ilang.core.ir.scalar import Load, Local
from ilang.core.passes.gpu.coalesced import with_coalesced_stores
from ilang.core.passes.gpu.full_tiles import in_regions
from ilang.core.passes.gpu.numbering import Numbering
from ilang.core.passes.gpu.transposes import CopyMapper
from ilang.core.passes.gpu.vector_access import with_vector_access
from ilang.core.record import replace

Index = tuple[Affine, ...]


def kernel_to_vectorized(program: ir.Program) -> ir.Program:
    """The program with vectorized and coalesced loads and stores."""
    numbering = Numbering(program)
    kernels = tuple(_vectorized(numbering, kernel) for kernel in program.kernels)
    same = all(a is b for a, b in zip(kernels, program.kernels, strict=True))
    return program if same else replace(numbering.program(), kernels=kernels)


def _vectorized(numbering: Numbering, kernel: ir.Kernel) -> ir.Kernel:
    """A kernel whose accesses are chosen; threads of a grid share nothing that others hold."""
    spread = threads_of(kernel)
    numbering.enter(kernel)
    if spread.over != "grid":
        for step in (CopyMapper, _HeldOperands, _Vectorizer):
            body = step(numbering).body(spread.body)
            spread = spread if body is spread.body else replace(spread, body=body)
        kernel = numbering.left(kernel, rewriting.unless_same(kernel.body, (spread,)))
    moving = with_vector_access(numbering.program(), kernel)
    return with_coalesced_stores(numbering, moving)


class _Vectorizer:
    """Vectorized accesses of one kernel: its names, and the buffers that a region moves."""

    def __init__(self, numbering: Numbering) -> None:
        self.program = numbering.program()
        self.numbering = numbering

    def body(self, body: ir.Block) -> ir.Block:
        """The body of the kernel's spread with loops that move vectors."""
        moving = ir.map_statements(body, self._of_block)
        regions = in_regions(moving, self._region, self._branches, self.program.buffers)
        return body if regions == body else regions

    def _branches(self, s: ir.If) -> ir.If:
        """A condition that tells full tiles from boundary tiles, whose full tiles move vectors.

        The arrays that these move must begin where vectors may: the condition asks that, too.
        """
        if not s.body or not s.otherwise or s.stored is not None:
            return s
        within = ir.map_statements(s.body, self._moved)
        return replace(s, body=within, aligned=_moves(self.program, within))

    def _region(self, body: ir.Block) -> ir.Block:
        """A region in two versions: with vectors, where arrays are aligned, and as it is."""
        within = ir.map_statements(body, self._moved)
        moved = _moves(self.program, within)
        return (ir.If((), within, body, aligned=moved),) if moved else body

    def _of_block(self, s: ir.Statement) -> ir.Statement:
        """A loop that moves vectors between what a block shares and registers, wherever arrays begin."""
        if not isinstance(s, ir.For) or not isinstance(s.body[0], ir.Store):
            return s
        return s if [*self._runs(s.body, s.variable, "")] else self._together(s, "shared")

    # -- loops that move vectors -------------------------------------------------------------------------------------

    def _moved(self, s: ir.Statement) -> ir.Statement:
        """A statement whose loops move vectors, those inside of it first."""
        if isinstance(s, ir.For):
            return self._together(s)
        if isinstance(s, ThreadLoop) and s.over == "threads" and s.loops:
            return self._grouped(s)
        return s

    def _together(self, loop: ir.For, space: ir.Space = "") -> ir.For:
        """An unrolled loop as one that moves vectors; itself where it has another number of iterations than these.

        Vectors are moved of a buffer in ``space`` at least ("" for arrays of a caller), else the loop stays, too.
        """
        if loop.role != "u" or loop.within or not _stores_one(loop.body):
            return loop
        extent = self.numbering.sizes[loop.size].fixed
        if extent is None or not [*self._runs(loop.body, loop.variable, space)]:
            return loop
        spaces: tuple[ir.Space, ...] = ("", "shared")
        wide = [n for each in spaces for n in self._runs(loop.body, loop.variable, each)]
        if any(self._lanes(number) != extent for number in wide):
            return loop
        return replace(loop, manner=ir.Vectors(tuple(sorted(wide))))

    def _grouped(self, spread: ThreadLoop) -> ThreadLoop:
        """A copy that the threads of a block share element by element, as one that they share vector by vector.

        Which thread copies an element makes no difference, since the block waits for all of them.
        """
        last, store = spread.loops[-1], spread.body[0]
        if any(
            self.program.buffers[number].space == "local"
            for number, _ in rewriting.accesses((store,))
        ):
            return spread
        extent = self.numbering.sizes[last.size].fixed
        if len(spread.body) > 1 or not isinstance(store, ir.Store) or extent is None:
            return spread
        loads = list(self._runs(spread.body, last.variable, ""))
        if any(isinstance(part, Local) for part in rewriting.parts_of(store)):
            return spread
        lanes = self._lanes(store.buffer)
        plain = not last.within and last.chunk is None and last.role in ("", "t")
        if not loads or not plain or extent % lanes or any(self._lanes(n) != lanes for n in loads):
            return spread
        many = extent > lanes
        group, variable = (self.numbering.split(last.variable, "v") for _ in range(2))
        first = Affine(((lanes, group),) if many else ())
        inside = rewriting.substituted(store, {last.variable: first + axis_index(variable)})
        loop = ir.For(variable, self.numbering.fixed.extent(lanes), (inside,), role="u")
        loops = spread.loops[:-1]
        if many:
            loops = (
                *loops,
                replace(last, variable=group, end=self.numbering.fixed.extent(extent // lanes)),
            )
        whole = self._together(loop)
        if not isinstance(whole.manner, ir.Vectors) or not loops:
            return spread
        return replace(spread, loops=loops, body=(whole,))

    def _runs(self, body: ir.Block, variable: int, space: ir.Space) -> Iterator[BufferId]:
        """The buffers along whose rows statements go with a loop, beginning where a vector does.

        The buffers are those of a caller and of the workspace, or those that a block shares. A read under a condition
        is none of them: a vector is read whatever holds.
        """
        chosen = {load.buffer for s in body for load in rewriting.chosen_loads(s)}
        touched = list(rewriting.accesses(body))
        for number in dict.fromkeys(number for number, _ in touched):
            indices = [index for buffer, index in touched if buffer == number]
            buffer = self.program.buffers[number]
            plain = buffer.private == bool(space)
            plain = plain and buffer.space == space and buffer.dtype in HELD_FLOATS
            plain = plain and number not in chosen
            if plain and all(self._is_along(number, index, variable) for index in indices):
                yield number

    def _is_along(self, number: BufferId, index: Index, variable: int) -> bool:
        """Whether an index goes along a row with a loop variable, from where a vector begins."""
        lanes, dims = self._lanes(number), self.program.buffers[number].dims
        if not index or any(part.looked or part.sizes for part in index):
            return False
        if row_step(index, variable) != 1:
            return False
        length = self.numbering.sizes[dims[-1]].fixed
        if len(dims) > 1 and length is not None and length % lanes:
            return False
        return index[-1].without((variable,)).is_multiple(lanes)

    def _lanes(self, number: BufferId) -> int:
        return self.program.machine.vector_lanes(self.program.buffers[number].dtype)


def _stores_one(body: ir.Block) -> bool:
    """Whether an iteration stores an element, after it has computed what that takes."""
    *before, last = body
    plain = all(isinstance(s, ir.Define) and not s.mutable for s in before)
    return plain and isinstance(last, ir.Store)


def _moves(program: ir.Program, body: ir.Block) -> tuple[BufferId, ...]:
    """The arrays that the loops of a block move vectors of; what a block shares is aligned."""
    moving = (s.manner for s in ir.every(body, ir.For) if isinstance(s.manner, ir.Vectors))
    wide = {number for each in moving for number in each.buffers}
    return tuple(sorted(number for number in wide if not program.buffers[number].space))


# -- operands in registers ---------------------------------------------------------------------------------------------


class _HeldOperands:
    """Operands of one kernel that registers hold: those that a thread would read several times from shared memory.

    Example:
        in:   for i unrolled                                 out:  for i unrolled: a_held[i] = a_copy[k,4i2+i]
                for j unrolled                                     for j unrolled: b_held[j] = b_copy[k,4j2+j]
                  run[i,j] += a_copy[k,4i2+i] * b_copy[k,4j2+j]    for i unrolled
                                                                     for j unrolled
                                                                       run[i,j] += a_held[i] * b_held[j]

    An operand is held if it does not depend on one of the unrolled loops and goes along a row of shared memory with
    another one: vectorized loads follow. A value that is computed under a condition stays where it is, since the
    condition may guard what it reads.
    """

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.registers: dict[tuple[int, tuple[int, ...]], BufferId] = {}

    def body(self, body: ir.Block) -> ir.Block:
        """A block whose nests of unrolled loops read what they hold."""
        out: list[ir.Statement] = []
        for s in body:
            nest = _nest(s) if isinstance(s, ir.For) else []
            held = self._held(nest) if len(nest) > 1 else ()
            out += held or (ir.map_blocks(s, self.body),)
        return rewriting.unless_same(body, out)

    def _held(self, nest: Sequence[ir.For]) -> ir.Block:
        """The loads of a nest into registers, and the nest that reads these; nothing where it stays as it is."""
        parts = [part for s in nest[-1].body for part in rewriting.parts_of(s)]
        chosen = [load for s in nest[-1].body for load in rewriting.chosen_loads(s)]
        reads: dict[Load, Load] = {}
        before: list[ir.Statement] = []
        for load in dict.fromkeys(part for part in parts if isinstance(part, Load)):
            loops = [loop for loop in nest if _reads_along(load, loop)]
            shared = self.numbering.buffers[load.buffer].space == "shared"
            if not shared or not loops or len(loops) == len(nest) or load in chosen:
                continue
            if not _reads_along(replace(load, index=load.index[-1:]), loops[-1]):
                continue
            sizes = tuple(loop.size for loop in loops)
            index = tuple(Affine(((1, loop.variable),)) for loop in loops)
            reads[load] = replace(load, buffer=self._buffer(load, sizes), index=index)
            before += rewriting.nested(loops, (ir.Store(reads[load].buffer, index, load),))
        if not reads:
            return ()
        rest = tuple(
            replace(s, value=rewriting.replaced_loads(s.value, lambda load: reads.get(load, load)))
            for s in nest[-1].body
            if isinstance(s, (ir.Define, ir.Store))
        )
        return (*before, *rewriting.nested(nest, rest))

    def _buffer(self, load: Load, sizes: tuple[int, ...]) -> BufferId:
        key = load.buffer, sizes
        if key not in self.registers:
            tensor = self.numbering.buffers[load.buffer].tensor
            name = f"{self.numbering.buffers[load.buffer].name}_held"
            self.registers[key] = self.numbering.private(name, load.dtype, sizes, "local", tensor)
        return self.registers[key]


def _nest(loop: ir.For) -> list[ir.For]:
    """Unrolled loops, each right inside the one before, around a store and scalars for it; none for any other loop."""
    nest, (*scalars, last) = rewriting.chain_of((loop,))
    stores = isinstance(last, ir.Store) and all(isinstance(s, ir.Define) for s in scalars)
    is_unrolled = all(each.role == "u" and not each.within for each in nest)
    return nest if stores and is_unrolled else []


def _reads_along(load: Load, loop: ir.For) -> bool:
    return any(loop.variable in part.axes() for part in load.index)
