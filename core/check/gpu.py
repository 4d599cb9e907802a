"""Invariants of ``ir/gpu.py``: that threads which nothing orders do not meet."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ilang.core.calculus.affine import row_step
from ilang.core.check import kernel as kernels
from ilang.core.diagnostic import InternalError
from ilang.core.dtype import BYTES, FLOATS
from ilang.core.ir import gpu
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile, Transpose
from ilang.core.ir.ids import LocalId
from ilang.core.ir.rewriting import Access, accesses, chosen_loads, named, strides, vector_stores
from ilang.core.ir.scalar import Load, Scalar, scalars_within
from ilang.core.ir.schedule import THREAD_DIMENSIONS
from ilang.core.matrix_unit import rounding_in
from ilang.core.passes.gpu.barriers import kernel_to_barriers
from ilang.core.passes.independence import Independence
from ilang.core.record import replace

TOGETHER = (gpu.ThreadLoop, gpu.Barrier, gpu.SwapBuffers)
"""Statements that the threads of a block do together."""


def verify(program: ir.Program, before: ir.Program | None = None) -> None:
    """Raise an InternalError (E9905) naming the first invariant that does not hold; ``before`` as for kernels."""
    kernels.verify(program, before)
    for kernel in program.kernels:
        whole = len(kernel.body) == 1 and isinstance(kernel.body[0], gpu.ThreadLoop)
        _demand(program, kernel, whole, "a kernel is one spread")
    for kernel in program.kernels if before is None else kernels.changed(program, before):
        _kernel(program, kernel)


def verify_ordered(program: ir.Program, before: ir.Program | None = None) -> None:
    """Check kernels of a GPU, and that barriers stand where they have to."""
    verify(program, before)
    for kernel in program.kernels:
        ordered = kernel_to_barriers(replace(program, kernels=(kernel,))).kernels[0]
        _demand(program, kernel, ordered == kernel, "threads of a block wait before they meet")
        within = named(kernel.body)
        spread, device = gpu.threads_of(kernel), program.machine.gpu()
        room = (
            sum(_bytes(program, program.buffers[n]) for n in within)
            <= device.shared_bytes // spread.parts()
        )
        _demand(program, kernel, room, "a block shares as much as it may")


def _are_products(constants: Sequence[ir.Constant]) -> bool:
    """Whether each constant is the product of numbers and of those before it, and no two have a name."""
    values: dict[str, int] = {}
    for name, value, factors in constants:
        if name in values or any(f not in values for f in factors if isinstance(f, str)):
            return False
        values[name] = prod(values[f] if isinstance(f, str) else f for f in factors)
        if values[name] != value:
            return False
    return True


def _bytes(program: ir.Program, buffer: ir.Buffer) -> int:
    if buffer.space != "shared":
        return 0
    return BYTES[buffer.dtype] * prod(program.sizes[size].fixed or 0 for size in buffer.dims)


def _kernel(program: ir.Program, kernel: ir.Kernel) -> None:
    """Verify a kernel: who shares the iterations of its loops, what they share, and that these are independent."""
    spread, device = gpu.threads_of(kernel), program.machine.gpu()
    every = list(ir.statements_within(spread.body))
    together = [s for s in every if isinstance(s, TOGETHER)]
    blocks = spread.over in ("blocks", "warps")
    alone = blocks or (spread.over == "grid" and not together)
    _demand(program, kernel, alone, "grids hold no others")
    _demand(program, kernel, _are_products(kernel.constants), "constants are products")
    _loops(program, kernel, every)
    threads = spread.lanes if spread.over == "warps" else spread.threads
    combined = {s.variable for s in every if isinstance(s, gpu.CombineThreads)}
    for s in together:
        if isinstance(s, gpu.ThreadLoop):
            inside = list(ir.statements_within(s.body))
            alone = not any(isinstance(x, TOGETHER) for x in inside)
            right = alone and s.over == "threads" and s.threads == threads
            _demand(program, kernel, right, "threads of a block share what nobody else shares")
            _independent(program, kernel, s, inside, combined)
        elif isinstance(s, gpu.SwapBuffers):
            first, second = program.buffers[s.first], program.buffers[s.second]
            alike = s.first != s.second and replace(second, name=first.name) == first
            right = alike and first.space == "shared"
            _demand(program, kernel, right, "buffers that are swapped are alike, a block's")
    if blocks:
        _alike(program, kernel, spread.body)
    few = 0 < spread.threads <= device.most_block_threads
    _demand(program, kernel, few, "a block has as many threads as it may")
    several = spread.blocks == 1 or (1 < spread.blocks and blocks)
    _demand(program, kernel, several, "blocks are several at a time, grids are not")
    _shaped(program, kernel, spread, together)
    _together(program, kernel, kernel.body, frozenset())
    others = any(isinstance(s, (Tile, Transpose)) for s in every)
    _demand(program, kernel, not others, "what only a CPU has is not on a GPU")
    _independent(program, kernel, spread, every, set())
    if any(isinstance(s, gpu.MatrixProduct) for s in every):
        _products(program, kernel)


def _loops(program: ir.Program, kernel: ir.Kernel, every: Sequence[ir.Statement]) -> None:
    """Loops that one thread runs begin and end in steps, and rest on arrays of floats that the kernel only reads."""
    written = {program.owner(s.buffer) for s in every if isinstance(s, ir.Store)}
    for loop in (s for s in every if isinstance(s, ir.For)):
        arrays = [program.buffers[number] for number in loop.finite]
        floats = all(each.dtype in FLOATS and not each.private for each in arrays)
        kept = floats and written.isdisjoint(map(program.owner, loop.finite))
        _demand(program, kernel, kept, "what has to be finite is arrays that stay as they are")
        limits = (*loop.begin.limits(), *loop.end.limits())
        _demand(
            program, kernel, all(0 < step for _, step in limits), "loops begin and end in steps"
        )


def _shaped(
    program: ir.Program, kernel: ir.Kernel, spread: gpu.ThreadLoop, inside: Sequence[ir.Statement]
) -> None:
    """A block has the threads of its dimensions, and loops along these no more iterations."""
    shape = spread.shape
    whole = not shape or (spread.over == "blocks" and prod(shape) == spread.threads)
    _demand(program, kernel, whole, "a block has as many threads as its dimensions say")
    for s in inside:
        named = (
            [x for x in s.loops if x.role in THREAD_DIMENSIONS]
            if isinstance(s, gpu.ThreadLoop)
            else []
        )
        if isinstance(s, gpu.ThreadLoop) and named:
            _demand(
                program, kernel, len(named) == len(s.loops), "all loops have dimensions, or none"
            )
        for loop in named:
            extent, at = program.sizes[loop.size].fixed, THREAD_DIMENSIONS.index(loop.role)
            fits = extent is not None and at < len(shape) and extent <= shape[at]
            _demand(program, kernel, fits, "a loop along a dimension of a block fits there")


def _alike(program: ir.Program, kernel: ir.Kernel, body: ir.Block) -> None:
    """Verify that the statements that all threads of a block run store nothing: they run alike."""
    for s in body:
        _demand(program, kernel, not isinstance(s, ir.Store), "what all threads do stores nothing")
        if not isinstance(s, gpu.ThreadLoop):
            for block in ir.blocks_of(s):
                _alike(program, kernel, block)


def _together(
    program: ir.Program, kernel: ir.Kernel, body: ir.Block, aligned: frozenset[int]
) -> None:
    """Elements that are moved together are a vector's, along a row of an aligned buffer."""
    for s in body:
        if isinstance(s, ir.For) and isinstance(s.manner, ir.Vectors):
            wide = s.manner.buffers
            arrays = {number for number in wide if program.buffers[number].space != "shared"}
            _demand(program, kernel, arrays <= aligned, "vectors are of aligned rows")
            *before, last = s.body
            simple = all(isinstance(x, ir.Define) and not x.mutable for x in before)
            simple = simple and isinstance(last, ir.Store)
            _demand(program, kernel, simple, "an iteration stores an element of a vector")
            chosen = {load.buffer for x in s.body for load in chosen_loads(x)}
            _demand(program, kernel, chosen.isdisjoint(wide), "vectors are read whatever holds")
            for number in wide:
                widest = program.machine.vector_lanes(program.buffers[number].dtype)
                lanes = program.sizes[s.size].fixed or 0
                whole = lanes in (2, widest) and not s.within
                _demand(program, kernel, whole, "a vector has all of its elements")
                ends = [index[-1] for buffer, index in accesses(s.body) if buffer == number]
                along = all(
                    part.coefficient(s.variable) == 1
                    and part.without((s.variable,)).is_multiple(lanes)
                    for part in ends
                )
                _demand(program, kernel, along, "vectors begin at multiples of their length")
        if isinstance(s, gpu.ThreadLoop) and s.vectors is not None:
            _vectors(program, kernel, s, s.vectors)
        if isinstance(s, ir.If):
            _together(program, kernel, s.body, aligned | set(s.aligned))
            _together(program, kernel, s.otherwise, aligned)
        else:
            for block in ir.blocks_of(s):
                _together(program, kernel, block, aligned)


def _vectors(
    program: ir.Program, kernel: ir.Kernel, s: gpu.ThreadLoop, vectors: gpu.VectorAccess
) -> None:
    """Vectors do what their iterations do, each in a place of its own, and are of memory that nobody keeps."""
    last = s.loops[-1]
    chunk = last.chunk
    plain = not last.within and (chunk is None or chunk[1] % vectors.count == 0)
    _demand(program, kernel, plain, "loops over vectors end where dimensions do")
    for number, index in accesses(s.body):
        buffer = program.buffers[number]
        kept = buffer.private or bool(buffer.space) or buffer.wrapping
        _demand(program, kernel, not kept, "vectors are of memory that nobody keeps")
        moves = any(last.variable in part.axes() for part in index)
        _demand(program, kernel, moves == (number in vectors.moved), "all that moves is vectors")
        if moves:
            part = index[-1]
            along = (
                row_step(index, last.variable) == 1
                and not part.looked
                and part.without((last.variable,)).is_multiple(vectors.count)
            )
            _demand(program, kernel, along, "vectors begin at multiples of their length")
            rows = {buffer.dims[-1]} & strides(buffer.dims, index)
            fixed = (program.sizes[n].fixed for n in rows - set(vectors.whole))
            known = all(extent is not None and extent % vectors.count == 0 for extent in fixed)
            _demand(program, kernel, known, "rows are whole vectors")


def _independent(
    program: ir.Program,
    kernel: ir.Kernel,
    spread: gpu.ThreadLoop,
    inside: Sequence[ir.Statement],
    combined: set[LocalId],
) -> None:
    """Each loop of a spread, as if it stood alone around the rest, has independent iterations."""
    if spread.loops:
        independence = Independence(program, (*spread.loops, *inside))
        apart = independence.all_hold(spread.loops, inside, (), combined)
        _demand(program, kernel, apart, "what a thread writes, no other thread touches")


def _demand(program: ir.Program, kernel: ir.Kernel, holds: bool, invariant: str) -> None:
    if not holds:
        raise InternalError("E9905", f"kernel {kernel.name} of {program.name}: {invariant}")


def _products(program: ir.Program, kernel: ir.Kernel) -> None:
    """Products of a matrix unit: whole warps come to them, with what the machine says each lane has."""
    _MatrixVerifier(program, kernel).block(kernel.body, (), frozenset())


class _MatrixVerifier:
    def __init__(self, program: ir.Program, kernel: ir.Kernel) -> None:
        self.program = program
        self.kernel = kernel
        self.device = program.machine.gpu()
        self.rounded = _rounded(kernel)
        self.held: dict[Access, Scalar] = {}

    def demand(self, holds: bool, invariant: str) -> None:
        """Raise an InternalError unless an invariant holds."""
        _demand(self.program, self.kernel, holds, invariant)

    def block(self, body: ir.Block, lanes: Sequence[ir.For], apart: frozenset[int]) -> None:
        """Check a block inside loops that threads share; variables ``apart`` tell the lanes of a warp apart."""
        for s in body:
            if isinstance(s, gpu.MatrixProduct):
                self.demand(bool(lanes), "threads share what a matrix unit does")
                self._product(s, lanes)
            elif isinstance(s, gpu.ThreadLoop) and s.over == "threads":
                inside = list(ir.statements_within(s.body))
                stores = [x for x in inside if isinstance(x, ir.Store)]
                loops = [x for x in inside if isinstance(x, ir.For)]
                vectors = [x for x in loops if isinstance(x.manner, ir.Vectors)]
                stores += [store for x in vectors for store in vector_stores(self.program, x)]
                self.held = {(x.buffer, x.index): x.value for x in stores}
                self.block(s.body, s.loops, frozenset(loop.variable for loop in s.loops[-2:]))
            elif any(isinstance(x, gpu.MatrixProduct) for x in ir.statements_within((s,))):
                around = s.ends() if isinstance(s, ir.For) else set()
                if isinstance(s, ir.If):
                    around = {v for each in s.within for v in each.index.axes()}
                self.demand(not around & apart, "the lanes of a warp come to a product together")
                for block in ir.blocks_of(s):
                    self.block(block, lanes, apart)

    def _product(self, s: gpu.MatrixProduct, lanes: Sequence[ir.For]) -> None:
        unit, (group, place) = self.device.unit(s.rounding), (loop for loop in lanes[-2:])
        groups = self.device.warp // unit.across
        counts = [self.program.sizes[loop.size].fixed for loop in (group, place)]
        plain = all(loop.role in ("", "t") and not loop.within for loop in (group, place))
        self.demand(plain and counts == [groups, unit.across], "the last loops are of lanes")
        rows, terms = unit.rows // groups, unit.terms_of(0)
        sizes = (rows * unit.columns // unit.across, len(terms) * rows, len(terms))
        counted = len(s.sums), len(s.left), len(s.right)
        self.demand(counted == sizes, "lanes have as many elements as the machine says")
        self.demand(len(set(s.sums)) == len(s.sums), "a lane adds to each of its sums once")
        local = all(self.program.buffers[load.buffer].space == "local" for load in s.sums)
        self.demand(local, "a lane adds to sums of its own")
        left, right = (tuple(map(self._read, side)) for side in (s.left, s.right))
        factors = (*left, *right)
        self.demand(all(x.dtype == "f32" for x in s.sums), "sums are of f32")
        self.demand(all(x.dtype == unit.dtype for x in factors), "factors are of the unit's type")
        right_way = all(self._is_rounded(x, s.rounding) for x in factors)
        self.demand(right_way, "a matrix unit multiplies what is rounded")
        several = [terms[n : n + unit.packed] for n in range(0, len(terms), unit.packed)]
        steps = [(n, row * groups) for some in several for row in range(rows) for n in some]
        at = group.variable, place.variable, unit.packed
        self.demand(_is_laid_out(left, steps, *at), "lanes have rows by group and terms by place")
        steps = [(n, 0) for n in terms]
        self.demand(_is_laid_out(right, steps, *at), "lanes have columns by group, terms by place")

    def _read(self, scalar: Scalar) -> Scalar:
        """The scalar that a read of copies or arrays has; where registers hold it, the one that is stored there."""
        if isinstance(scalar, Load) and self.program.buffers[scalar.buffer].space == "local":
            return self.held.get((scalar.buffer, scalar.index), scalar)
        return scalar

    def _is_rounded(self, scalar: Scalar, rounding: str) -> bool:
        if isinstance(scalar, Load):
            return self.rounded.get(scalar.buffer) == {rounding}
        return rounding_in(scalar) == rounding


def _rounded(kernel: ir.Kernel) -> dict[int, set[str | None]]:
    """The roundings of all values that are stored in a buffer, by its number, or in one that it is swapped with."""
    inside = list(ir.statements_within(kernel.body))
    rounded: dict[int, set[str | None]] = {}
    for s in inside:
        if isinstance(s, ir.Store):
            rounded.setdefault(s.buffer, set()).add(rounding_in(s.value))
    for s in inside:
        if isinstance(s, gpu.SwapBuffers):
            both = rounded.get(s.first, set()) | rounded.get(s.second, set())
            rounded |= {s.first: both, s.second: both}
    return rounded


def _is_laid_out(
    side: Sequence[Scalar], steps: Sequence[tuple[int, int]], group: int, place: int, packed: int
) -> bool:
    """Whether the loads of a side of a product are where the instruction of a matrix unit wants them in each lane.

    Args:
        side: what a lane holds of the side.
        steps: for each of these, how many terms, and how many groups of lanes, it is further on than the first one.
        group: the variable that counts groups of lanes.
        place: the variable that counts lanes in a group.
        packed: the terms that a lane holds side by side: a step of ``place`` is as many.
    """
    loads = [part for scalar in side for part in scalars_within(scalar) if isinstance(part, Load)]
    if len(loads) != len(side) or len({load.buffer for load in loads}) != 1:
        return False
    first = loads[0].index
    if not {group, place} <= {v for part in first for v in part.axes()}:
        return False
    for load, (terms, groups) in zip(loads, steps, strict=True):
        for part, start in zip(load.index, first, strict=True):
            step = terms * start.coefficient(place) // packed + groups * start.coefficient(group)
            if (part - start).constant() != step:
                return False
    return True
