"""Map kernels to launches, loops to the threads of a GPU, one for each iteration, and private buffers to memory spaces.

Example:
    in:   for i in 0..n_i                            out:  spread i j over the grid, blocks of 256
            for j in 0..n_j                                  acc = 0
              acc = 0                                        for k in 0..n_k
              for k in 0..n_k: acc += ...                      acc += ...
              out[i,j] = acc                                 out[i,j] = acc

What stands one after the other in a kernel becomes several launches (``with_launches``). Nested loops at the top are a
chain. Loops of the chain with independent iterations are mapped to threads, even inside a loop that is not: a thread
then runs the iterations of that loop in order. Everything else runs in one thread for each iteration, and a kernel
without an independent loop has one thread. A kernel with loops for blocks or threads is mapped to blocks and their
threads instead (``blocks.py``), if memory has room for its buffers, whose spaces follow from the mapping
(``spaces.py``). If a written schedule asks for a mapping that is not possible, it is refused; if the mapping only
follows from the position of loops, limits of the device are errors, too.

All iterations of split loops are mapped, so a factor that exceeds its dimension adds iterations without work. A split
loop that would add more than ``MOST_PADDED`` times as many iterations is not mapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from math import prod

from ilang.core.calculus.affine import Affine, Within, axis_index
from ilang.core.diagnostic import Label, ScheduleError
from ilang.core.ir import kernel as ir
from ilang.core.ir import rewriting
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.scalar import Local, scalars_within
from ilang.core.ir.schedule import BLOCK_ROLES, THREAD_ROLES
from ilang.core.passes.gpu.blocks import Refusal, is_for_blocks, kernel_to_blocks
from ilang.core.passes.gpu.numbering import Numbering, renumbered
from ilang.core.passes.gpu.rows_held import with_rows_held
from ilang.core.passes.gpu.spaces import Places, placed, with_spaces
from ilang.core.passes.independence import Independence
from ilang.core.record import replace

MOST_PADDED = 1 << 24
"""Iterations of a grid for each element, at most: 64 bits then count all iterations for arrays that fit memory."""


def kernel_to_bind(program: ir.Program) -> ir.Program:
    """The program with its loops bound, and a space for each private buffer that there is room for."""
    program = with_digits(with_launches(program))
    program = rewriting.with_bodies(program, lambda kernel: _with_unrolled(program, kernel.body))
    bound = [_bound(program, kernel) for kernel in program.kernels]
    kernels = zip(program.kernels, bound, strict=True)
    mapped = tuple(replace(kernel, body=(spread,)) for kernel, (spread, _) in kernels)
    spaced = with_spaces(replace(program, kernels=mapped), [places for _, places in bound])
    return with_rows_held(spaced)


def _bound(program: ir.Program, kernel: ir.Kernel) -> tuple[ThreadLoop, Places]:
    """The one statement that a kernel becomes, and the places of its private buffers."""
    device = program.machine.gpu()
    if is_for_blocks(kernel):
        loops, body = _spread(program, kernel, _outside(rewriting.chain_of(kernel.body)[0]))
        blocks = kernel_to_blocks(program, kernel, loops, body)
        if isinstance(blocks, ThreadLoop):
            places = placed(program, blocks)
            if not isinstance(places, Refusal):
                return blocks, places
            blocks = places
        _refuse(kernel, blocks)
    loops, body = _spread(program, kernel, rewriting.chain_of(kernel.body)[0])
    spread = ThreadLoop(tuple(loops), "grid", device.block_threads if loops else 1, body)
    places = placed(program, spread)
    assert not isinstance(places, Refusal), "what a grid has no room for is in the workspace"
    return spread, places


def _refuse(kernel: ir.Kernel, refusal: Refusal) -> None:
    """Tell a person that blocks and threads cannot be what they were asked to be.

    Raises:
        ScheduleError: E0332 to E0336.
    """
    requests = [request for request in kernel.requests if refusal.limit or request.asked == "role"]
    if not requests:
        return
    last = requests[-1]
    labels = [Label(other.span, "asks for them too") for other in requests[:-1]]
    message = f"{last.text} cannot have the blocks and threads that it asks for: {refusal.problem}"
    raise ScheduleError(refusal.code, message, last.span, refusal.help, labels)


def _outside(chain: list[ir.For]) -> list[ir.For]:
    inner = next((n for n, loop in enumerate(chain) if loop.role in THREAD_ROLES), len(chain))
    if inner == len(chain):  # none of the chain: those for blocks are the outer ones
        inner = max(
            (n + 1 for n, loop in enumerate(chain) if loop.role in BLOCK_ROLES), default=inner
        )
    return chain[:inner]


def _spread(
    program: ir.Program, kernel: ir.Kernel, chain: list[ir.For]
) -> tuple[list[ir.For], ir.Block]:
    """The loops of a chain that are spread, without bodies, and what one of their iterations does."""
    chosen = _independent(program, kernel, chain)
    body = chain[-1].body if chain else kernel.body
    body = rewriting.nested([loop for loop in chain if loop not in chosen], body)
    return [replace(loop, body=()) for loop in chosen], body


def _independent(program: ir.Program, kernel: ir.Kernel, chain: list[ir.For]) -> list[ir.For]:
    """The loops of a chain to spread, all of whose ends are known where only those before them are open."""
    independence = Independence(program, ir.statements_within(kernel.body))
    independent: list[ir.For] = []
    for n, loop in enumerate(chain):
        opened = {outer.variable for outer in independent}
        around = {outer.variable for outer in chain[:n]} - opened
        ends = loop.ends()
        plain = loop.chunk is None and loop.role != "q"
        few = _padding(program, chain, [*independent, loop]) <= MOST_PADDED
        if plain and few and ends <= opened and independence.holds(loop, around):
            independent.append(loop)
    return independent


def _padding(program: ir.Program, chain: list[ir.For], spread: list[ir.For]) -> int:
    """The number of iterations of loops for each element, at most: a product over split dimensions.

    Parts that are blocks along a dimension of the grid are left out, which has a limit of its own (E0334).
    """
    padding = 1
    for last in chain:
        if not last.within:
            continue
        parts, (condition,) = {last.variable, *last.ends()}, last.runs()
        assert condition.size is not None
        counts = [
            program.sizes[loop.size].fixed or 1
            for loop in spread
            if loop.variable in parts and loop.role not in BLOCK_ROLES
        ]
        padding *= max(1, prod(counts) // max(1, program.sizes[condition.size].fixed or 1))
    return padding


# -- loops that are unrolled -------------------------------------------------------------------------------------------


def _with_unrolled(program: ir.Program, body: ir.Block) -> ir.Block:
    """A block whose unrolled loops run as often as they say, under conditions, as far as dimensions are known.

    Example, where rows have 1,000 elements, a multiple of four, and of 10:
        in:   for j2 in 0..min(4, 1000 - (128j+4j1)) unrolled          out:  if 128j+4j1 < 1000
                run += t[j,j2]                                                 for j2 in 0..4 unrolled: run += t[j,j2]
              for j in 0..min(3, ceil((10-j1) / 4)) unrolled                 for j in 0..3 unrolled
                run += t[j]                                                    if 4j+j1 < 10: run += t[j]

    Vectors that a dimension has a whole number of are inside of it or not: nothing is tested for each element. The
    block is left as it is where threads share no rows: tiles have conditions of their own (``full_tiles.py``).
    """
    shared = (loop for loop in ir.every(body, ir.For) if loop.role in THREAD_ROLES)
    if not any(_accumulates(loop) for loop in shared):
        return body
    return ir.map_statements(body, lambda s: _unrolled(program, s) if isinstance(s, ir.For) else s)


def _accumulates(loop: ir.For) -> bool:
    """Whether iterations of a loop change a scalar variable that stands outside of it."""
    inside = list(ir.statements_within(loop.body))
    defined = {s.variable for s in inside if isinstance(s, ir.Define)}
    return any(isinstance(s, ir.Change) and s.variable not in defined for s in inside)


def _unrolled(program: ir.Program, loop: ir.For) -> ir.Statement:
    known = all(
        each.size is not None and program.sizes[each.size].fixed is not None for each in loop.within
    )
    if loop.role != "u" or not loop.within or not known or loop.finite:
        return loop
    outside = tuple(
        each for w in loop.within if (each := _of_vectors(program, loop, w)) is not None
    )
    inside = tuple(w for w in loop.within if _of_vectors(program, loop, w) is None)
    body = (ir.If(inside, loop.body),) if inside else loop.body
    whole = replace(loop.whole(), body=body)
    return ir.If(outside, (whole,)) if outside else whole


def _of_vectors(program: ir.Program, loop: ir.For, condition: Within) -> Within | None:
    """The condition that all iterations of a loop share, where they are a vector; None where they are not."""
    count, size = program.sizes[loop.size].fixed, condition.size
    assert size is not None
    extent, index = program.sizes[size].fixed, condition.index
    rest = index.without((loop.variable,))
    if count is None or extent is None or extent % count or index.coefficient(loop.variable) != 1:
        return None
    plain = not (rest.sizes or rest.looked)
    return replace(condition, index=rest) if plain and rest.is_multiple(count) else None


def with_launches(program: ir.Program) -> ir.Program:
    """The program with a kernel for each part.

    Example:
        in:   k0   for i: for j: acc[j] += in0[i,j]      out:  k0_0   for i: for j: acc[j] += in0[i,j]
                   for j: out[j] = acc[j]                      k0_1   for j: out[j] = acc[j]

    A buffer outside of all loops is in the workspace, which all launches see. A scalar variable is not, so statements
    from its definition to its last use stay in one launch.
    """
    parts = [tuple(_parts(program, kernel)) for kernel in program.kernels]
    first = [0, *accumulate(map(len, parts))]
    if first[-1] == len(parts):
        return program
    calls = tuple(
        replace(call, kernel=first[call.kernel] + number)
        for call in program.launched()
        for number in range(len(parts[call.kernel]))
    )
    return replace(program, kernels=tuple(chain.from_iterable(parts)), calls=calls)


def _parts(program: ir.Program, kernel: ir.Kernel) -> Iterator[ir.Kernel]:
    parts = list(_together(kernel.body))
    if len(parts) == 1:
        yield kernel
        return
    for number, body in enumerate(parts):
        written = {s.buffer for s in ir.every(body, ir.Store)}
        read = [program.buffers[n] for n in sorted(rewriting.named(body) - written)]
        partial = [each.name for each in read if each.name.startswith(f"{each.tensor}_parts")]
        comments = (*kernel.comments, *(f"combines the parts in {name}" for name in partial))
        yield replace(kernel, name=f"{kernel.name}_{number}", body=body, comments=comments)


def _together(body: ir.Block) -> Iterator[ir.Block]:
    """Runs of statements that no scalar variable of their block leaves."""
    used = [set(_locals(s)) for s in body]
    last = {variable: n for n, variables in enumerate(used) for variable in variables}
    first, end = 0, 0
    for n, s in enumerate(body):
        if isinstance(s, ir.Define):
            end = max(end, last[s.variable])
        if n >= end:
            yield body[first : n + 1]
            first = end = n + 1


def _locals(s: ir.Statement) -> Iterator[int]:
    for inner in ir.statements_within((s,)):
        if isinstance(inner, (ir.Define, ir.Change, ir.HorizontalReduction)):
            yield inner.variable
        if isinstance(inner, (ir.Define, ir.Change, ir.Store)):
            yield from (
                part.variable for part in scalars_within(inner.value) if isinstance(part, Local)
            )


Steps = tuple[int, ...]
"""The distances of the digits of a dimension, outermost first: 128, 4, 1."""
WHOLE: Steps = (1,)
"""The distances of a dimension that stays as it is."""


def with_digits(program: ir.Program) -> ir.Program:
    """The program with dimensions split in which each thread has elements of its own.

    Example, where j1 is for the 32 lanes of a warp:
        in:   memory t f32[1024]                       out:  memory t f32[8,32,4]
              t[128j+4j1+j2] = ...                           t[j,j1,j2] = ...

    A thread that has elements of its own then keeps them in registers (``spaces.py``), although they are not adjacent.
    """
    return renumbered(program, _split)


def _split(program: ir.Program, kernel: ir.Kernel, numbering: Numbering) -> ir.Kernel:
    loops = {loop.variable: loop for loop in ir.every(kernel.body, ir.For)}
    if not any(loop.role in THREAD_ROLES for loop in loops.values()):
        return kernel
    split: dict[BufferId, list[Steps]] = {}
    for number in dict.fromkeys(buffer for buffer, _ in rewriting.accesses(kernel.body)):
        if not program.buffers[number].private:
            continue
        indices = [index for buffer, index in rewriting.accesses(kernel.body) if buffer == number]
        extents = (program.sizes[size].fixed for size in program.buffers[number].dims)
        steps = [
            WHOLE if extent is None else _steps(program, loops, [index[d] for index in indices])
            for d, extent in enumerate(extents)
        ]
        if any(1 < len(each) for each in steps):
            split[number] = steps
            numbering.buffers[number] = replace(
                program.buffers[number], dims=tuple(_dims(program, number, steps, numbering))
            )
    return replace(kernel, body=_indexed(kernel.body, split)) if split else kernel


def _steps(
    program: ir.Program, loops: Mapping[VariableId, ir.For], parts: Sequence[Affine]
) -> Steps:
    """The digits that all indices of a dimension have, one of them the same loop for threads; one digit where not."""
    ordered = [sorted(part.steps(), reverse=True) for part in parts]
    steps = tuple(step for step, _ in ordered[0])
    plain = all(not (part.offset or part.sizes or part.looked) for part in parts)
    if len(steps) < 2 or not plain or any(tuple(s for s, _ in o) != steps for o in ordered):
        return WHOLE
    if steps[-1] != 1 or any(variable not in loops for o in ordered for _, variable in o):
        return WHOLE
    for terms in ordered:
        inner = [program.sizes[loops[VariableId(v)].size].fixed for _, v in terms[1:]]
        if any(
            extent is None or step * extent != outer
            for extent, (outer, step) in zip(inner, pairwise(steps), strict=True)
        ):
            return WHOLE
    places = [
        {n for n, (_, v) in enumerate(terms) if loops[VariableId(v)].role in THREAD_ROLES}
        for terms in ordered
    ]
    return steps if set.intersection(*places) else WHOLE


def _dims(
    program: ir.Program, number: BufferId, steps: Sequence[Steps], numbering: Numbering
) -> Iterator[int]:
    """The sizes of the dimensions of a buffer, of which each digit is one."""
    for size, each in zip(program.buffers[number].dims, steps, strict=True):
        extent = program.sizes[size].fixed
        if len(each) == 1 or extent is None:  # an open extent has one digit
            yield size
            continue
        yield numbering.size(-(-extent // each[0]))
        yield from (numbering.size(outer // step) for outer, step in pairwise(each))


def _indexed(body: ir.Block, split: Mapping[BufferId, Sequence[Steps]]) -> ir.Block:
    def index_of(access: rewriting.Access) -> tuple[Affine, ...]:
        buffer, index = access
        if buffer not in split:
            return index
        out: list[Affine] = []
        for part, steps in zip(index, split[buffer], strict=True):
            digits = [axis_index(variable) for _, variable in sorted(part.steps(), reverse=True)]
            out += digits if 1 < len(steps) else [part]
        return tuple(out)

    return rewriting.with_indices(body, index_of)
