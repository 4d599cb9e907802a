"""Vectorize loads and stores of whole spreads: consecutive elements move by one instruction.

Example, of f32:
    in:   spread i in 0..n_i and j in 0..n_j over the grid      out:  the same, 4 of in0 out together: where their rows
            out[i,j] = exp(in0[i,j])                                  are aligned, a thread has j, j+1, j+2 and j+3, and
                                                                      reads a float4 and stores one

A spread is a worker's every so many iterations, in any order: its loops stay what they are, and say how elements go
where arrays begin elsewhere, or rows are no whole number of vectors. The rest at the end of a loop without others goes
that way, too. Every element that moves with the last loop of a spread is then right before the next one's; what does
not move is the same for all of them. Guards, and memory that threads keep or share, leave a spread as it is; so do
loops inside of one over the grid, whose workers would be fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from ilang.core.calculus.affine import Affine, row_step
from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import ThreadLoop, VectorAccess, threads_of
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import Access, accesses, chain_of, parts_of, reads_of, strides
from ilang.core.ir.scalar import Load, Select, scalars_within
from ilang.core.passes.gpu.blocks import counted
from ilang.core.record import replace

Ends = Mapping[int | None, int]
"""Of loop variables, the sizes that they are below."""
PLAIN = ("p", "x", "t", "l")
"""The roles of loops that are counted together."""


def with_vector_access(program: ir.Program, kernel: ir.Kernel) -> ir.Kernel:
    """A kernel whose spreads have vectorized accesses."""
    spread = threads_of(kernel)
    if spread.over == "grid":
        body: ir.Block = (replace(spread, vectors=_vectors(program, spread, kernel.body)),)
        return kernel if body == kernel.body else replace(kernel, body=body)

    def change(s: ir.Statement) -> ir.Statement:
        if not isinstance(s, ThreadLoop):
            return s
        return replace(s, vectors=_vectors(program, s, kernel.body))

    inside = ir.map_statements(spread.body, change)
    if inside == spread.body:
        return kernel
    moving = replace(spread, body=inside)
    threads = _threads(program, kernel, moving)
    if threads < spread.threads:
        moving = replace(moving, threads=threads, body=counted(inside, threads))
    return replace(kernel, body=(moving,))


def _threads(program: ir.Program, kernel: ir.Kernel, spread: ThreadLoop) -> int:
    """The threads of a block: one for each vector, where all that they do is known and goes in groups."""
    device = program.machine.gpu()
    inner = list(ir.every(spread.body, ThreadLoop))
    named = spread.shape or any(request.asked == "role" for request in kernel.requests)
    groups = [
        -(-prod(program.sizes[loop.size].fixed or 0 for loop in s.loops) // s.vectors.count)
        for s in inner
        if s.vectors is not None
    ]
    if named or spread.over != "blocks" or len(groups) < len(inner) or 0 in groups:
        return spread.threads
    return min(spread.threads, -(-max(groups) // device.warp) * device.warp)


def _vectors(program: ir.Program, spread: ThreadLoop, every: ir.Block) -> VectorAccess | None:
    """The groups in which the iterations of a spread go several at a time; None where they do not.

    Args:
        program: the program.
        spread: over the grid, or over threads.
        every: the body of the kernel.
    """
    inner, _ = chain_of(spread.body)
    body = inner[-1].body if inner else spread.body
    device = program.machine.gpu()
    if not spread.loops or device.most_statements < len(body):
        return None
    last = spread.loops[-1]
    plain = not last.within and all(loop.role in ("", *PLAIN) for loop in spread.loops)
    inside = spread.over == "threads" or not inner
    ends = {v for loop in inner for v in loop.ends()}
    if not plain or not inside or last.variable in ends:
        return None
    if not _is_plain(program, body) or not _is_alone(program, body, every):
        return None
    moved = _moved(program, body, last.variable, _ends(every))
    if not moved:
        return None
    widest = max(BYTES[program.buffers[number].dtype] for number in moved)
    count = min(device.vector_elements, program.machine.vector_bytes() // widest)
    whole = _whole(program, spread, moved, count)
    if whole is None or not _begins(spread, moved, count):
        return None
    return VectorAccess(count, moved, whole)


def _ends(every: ir.Block) -> Ends:
    inside = [*ir.statements_within(every)]
    return {s.variable: s.size for s in inside if isinstance(s, ir.For)}


def _is_plain(program: ir.Program, body: ir.Block) -> bool:
    """Whether an iteration computes and stores, and reads nothing that it has stored before."""
    stored: set[BufferId] = set()
    for s in body:
        if not isinstance(s, (ir.Define, ir.Change, ir.Store)):
            return False
        if stored & {program.owner(number) for number, _ in reads_of(s)}:
            return False
        if isinstance(s, ir.Store):
            if program.owner(s.buffer) in stored:
                return False
            stored.add(program.owner(s.buffer))
    buffers = (program.buffers[number] for number, _ in accesses(body))
    return not any(each.private or each.space or each.wrapping for each in buffers)


def _is_alone(program: ir.Program, body: ir.Block, every: ir.Block) -> bool:
    """Whether what is written anywhere is touched by one spread only: others may have other workers for an element."""
    written = {program.owner(s.buffer) for s in ir.every(every, ir.Store)}
    inside, anywhere = (
        [program.owner(number) for number, _ in accesses(part)] for part in (body, every)
    )
    touched = {*inside} & written
    return all(inside.count(number) == anywhere.count(number) for number in touched)


def _moved(program: ir.Program, body: ir.Block, variable: int, ends: Ends) -> tuple[BufferId, ...]:
    """The buffers whose elements are consecutive; none where something moves with the loop and is none."""
    every = {*accesses(body)}
    moving = {at for at in every if any(variable in part.axes() for part in at[1])}
    buffers = {number for number, _ in moving}
    elements = {*_elements(program, body, ends)}
    if not moving <= elements or not all(_is_along(index, variable) for _, index in moving):
        return ()
    still = any(number in buffers for number, _ in every - moving)
    return () if still else tuple(sorted(buffers))


def _elements(program: ir.Program, body: ir.Block, ends: Ends) -> Iterator[Access]:
    """The accesses of statements, less those of lookups; under a condition those without it, too."""
    for s in body:
        guarded = {
            part
            for each in parts_of(s)
            if isinstance(each, Select)
            for part in (*scalars_within(each.then), *scalars_within(each.otherwise))
        }
        for part in parts_of(s):
            if isinstance(part, Load) and (part not in guarded or _is_there(program, part, ends)):
                yield part.buffer, part.index
        if isinstance(s, ir.Store):
            yield s.buffer, s.index


def _is_there(program: ir.Program, load: Load, ends: Ends) -> bool:
    """Whether a caller has an element wherever the loops are: each index is a variable that ends with its dimension."""
    axes = [part.axis() for part in load.index]
    buffer = program.buffers[load.buffer]
    inside = all(
        axis in ends and ends[axis] == n for axis, n in zip(axes, buffer.dims, strict=True)
    )
    return inside and buffer.role == "input"


def _is_along(index: Sequence[Affine], variable: int) -> bool:
    return row_step(index, variable) == 1 and not index[-1].looked and not index[-1].sizes


def _begins(spread: ThreadLoop, moved: Sequence[BufferId], count: int) -> bool:
    """Whether the first element of a vector stands at a multiple of its length, in rows that begin at one."""
    last = spread.loops[-1]
    ends = [index[-1] for number, index in accesses(spread.body) if number in moved]
    chunk = last.chunk
    return (chunk is None or chunk[1] % count == 0) and all(
        part.without((last.variable,)).is_multiple(count) for part in ends
    )


def _whole(
    program: ir.Program, spread: ThreadLoop, moved: Sequence[BufferId], count: int
) -> tuple[int, ...] | None:
    """The sizes that have to be multiples of a number; None where one is not."""
    last, sizes = spread.loops[-1], dict[int, None]()
    for number, index in accesses(spread.body):
        dims = program.buffers[number].dims
        if number in moved and dims[-1] in strides(dims, index):
            sizes[dims[-1]] = None
    if len(spread.loops) > 1:
        sizes[last.size] = None
    fixed = {size: program.sizes[size].fixed for size in sizes}
    if any(extent is not None and extent % count for extent in fixed.values()):
        return None
    extent = program.sizes[last.size].fixed
    if extent is not None and extent < count:
        return None
    return tuple(size for size in sizes if fixed[size] is None)
