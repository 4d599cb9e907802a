"""Map kernels to launches, loops to the threads of a GPU, one for each iteration, and private buffers to memory spaces.

Example:
    in:   for i in 0..n_i                            out:  spread i j over the grid, blocks of 256
            for j in 0..n_j                                  acc = 0
              acc = 0                                        for k in 0..n_k
              for k in 0..n_k: acc += ...                      acc += ...
              out[i,j] = acc                                 out[i,j] = acc

What stands one after the other in a kernel becomes several launches (``launches.py``). Nested loops at the top of one
are a chain. Loops of the chain with independent iterations are mapped to threads,
even inside a loop that is not: a thread then runs the iterations of that loop in order. Everything else runs in one
thread for each iteration, and a kernel without an independent loop has one thread. A kernel with loops for blocks or
threads is mapped to blocks and their threads instead (``blocks.py``), if memory has room for its buffers, whose spaces
follow from the mapping (``spaces.py``). If a written schedule asks for a mapping that is not possible, it is refused;
if the mapping only follows from the position of loops, limits of the device are errors, too.

All iterations of split loops are mapped, so a factor that exceeds its dimension adds iterations without work. A split
loop that would add more than ``MOST_PADDED`` times as many iterations is not mapped.
"""

from __future__ import annotations

from math import prod

from ilang.core.calculus.affine import Within
from ilang.core.diagnostic import Label, ScheduleError
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import (
    Block,
    Change,
    Define,
    For,
    If,
    Kernel,
    Program,
    Statement,
    every,
    map_statements,
    statements_within,
)
from ilang.core.ir.rewriting import chain_of, nested, with_bodies
from ilang.core.ir.schedule import BLOCK_ROLES, THREAD_ROLES
from ilang.core.passes.gpu.blocks import Refusal, is_for_blocks, kernel_to_blocks
from ilang.core.passes.gpu.digits import with_digits
from ilang.core.passes.gpu.launches import with_launches
from ilang.core.passes.gpu.rows_held import with_rows_held
from ilang.core.passes.gpu.spaces import Places, placed, with_spaces
from ilang.core.passes.independence import Independence
from ilang.core.record import replace

MOST_PADDED = 1 << 24
"""Iterations of a grid for each element, at most: 64 bits then count all iterations for arrays that fit memory."""


def kernel_to_bind(program: Program) -> Program:
    """The program with its loops bound, and a space for each private buffer that there is room for."""
    program = with_digits(with_launches(program))
    program = with_bodies(program, lambda kernel: _with_unrolled(program, kernel.body))
    bound = [_bound(program, kernel) for kernel in program.kernels]
    kernels = zip(program.kernels, bound, strict=True)
    mapped = tuple(replace(kernel, body=(spread,)) for kernel, (spread, _) in kernels)
    spaced = with_spaces(replace(program, kernels=mapped), [places for _, places in bound])
    return with_rows_held(spaced)


def _bound(program: Program, kernel: Kernel) -> tuple[ThreadLoop, Places]:
    """The one statement that a kernel becomes, and the places of its private buffers."""
    device = program.machine.gpu()
    if is_for_blocks(kernel):
        loops, body = _spread(program, kernel, _outside(chain_of(kernel.body)[0]))
        blocks = kernel_to_blocks(program, kernel, loops, body)
        if isinstance(blocks, ThreadLoop):
            places = placed(program, blocks)
            if not isinstance(places, Refusal):
                return blocks, places
            blocks = places
        _refuse(kernel, blocks)
    loops, body = _spread(program, kernel, chain_of(kernel.body)[0])
    spread = ThreadLoop(tuple(loops), "grid", device.block_threads if loops else 1, body)
    places = placed(program, spread)
    assert not isinstance(places, Refusal), "what a grid has no room for is in the workspace"
    return spread, places


def _refuse(kernel: Kernel, refusal: Refusal) -> None:
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


def _outside(chain: list[For]) -> list[For]:
    inner = next((n for n, loop in enumerate(chain) if loop.role in THREAD_ROLES), len(chain))
    if inner == len(chain):  # none of the chain: those for blocks are the outer ones
        inner = max(
            (n + 1 for n, loop in enumerate(chain) if loop.role in BLOCK_ROLES), default=inner
        )
    return chain[:inner]


def _spread(program: Program, kernel: Kernel, chain: list[For]) -> tuple[list[For], Block]:
    """The loops of a chain that are spread, without bodies, and what one of their iterations does."""
    chosen = _independent(program, kernel, chain)
    body = chain[-1].body if chain else kernel.body
    body = nested([loop for loop in chain if loop not in chosen], body)
    return [replace(loop, body=()) for loop in chosen], body


def _independent(program: Program, kernel: Kernel, chain: list[For]) -> list[For]:
    """The loops of a chain to spread, all of whose ends are known where only those before them are open."""
    independence = Independence(program, statements_within(kernel.body))
    independent: list[For] = []
    for n, loop in enumerate(chain):
        opened = {outer.variable for outer in independent}
        around = {outer.variable for outer in chain[:n]} - opened
        ends = loop.ends()
        plain = loop.chunk is None and loop.role != "q"
        few = _padding(program, chain, [*independent, loop]) <= MOST_PADDED
        if plain and few and ends <= opened and independence.holds(loop, around):
            independent.append(loop)
    return independent


def _padding(program: Program, chain: list[For], spread: list[For]) -> int:
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


def _with_unrolled(program: Program, body: Block) -> Block:
    """A block whose unrolled loops run as often as they say, under conditions, as far as dimensions are known.

    Example, where rows have 1,000 elements, a multiple of four, and of 10:
        in:   for j2 in 0..min(4, 1000 - (128j+4j1)) unrolled          out:  if 128j+4j1 < 1000
                run += t[j,j2]                                                 for j2 in 0..4 unrolled: run += t[j,j2]
              for j in 0..min(3, ceil((10-j1) / 4)) unrolled                 for j in 0..3 unrolled
                run += t[j]                                                    if 4j+j1 < 10: run += t[j]

    Vectors that a dimension has a whole number of are inside of it or not: nothing is tested for each element. The
    block is left as it is where threads share no rows: tiles have conditions of their own (``full_tiles.py``).
    """
    shared = (loop for loop in every(body, For) if loop.role in THREAD_ROLES)
    if not any(_accumulates(loop) for loop in shared):
        return body
    return map_statements(body, lambda s: _unrolled(program, s) if isinstance(s, For) else s)


def _accumulates(loop: For) -> bool:
    """Whether iterations of a loop change a scalar variable that stands outside of it."""
    inside = list(statements_within(loop.body))
    defined = {s.variable for s in inside if isinstance(s, Define)}
    return any(isinstance(s, Change) and s.variable not in defined for s in inside)


def _unrolled(program: Program, loop: For) -> Statement:
    known = all(
        each.size is not None and program.sizes[each.size].fixed is not None for each in loop.within
    )
    if loop.role != "u" or not loop.within or not known or loop.finite:
        return loop
    outside = tuple(
        each for w in loop.within if (each := _of_vectors(program, loop, w)) is not None
    )
    inside = tuple(w for w in loop.within if _of_vectors(program, loop, w) is None)
    body = (If(inside, loop.body),) if inside else loop.body
    whole = replace(loop.whole(), body=body)
    return If(outside, (whole,)) if outside else whole


def _of_vectors(program: Program, loop: For, condition: Within) -> Within | None:
    """The condition that all iterations of a loop share, where they are a vector; None where they are not."""
    count, size = program.sizes[loop.size].fixed, condition.size
    assert size is not None
    extent, index = program.sizes[size].fixed, condition.index
    rest = index.without((loop.variable,))
    if count is None or extent is None or extent % count or index.coefficient(loop.variable) != 1:
        return None
    plain = not (rest.sizes or rest.looked)
    return replace(condition, index=rest) if plain and rest.is_multiple(count) else None
