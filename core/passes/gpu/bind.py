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

from ilang.core.diagnostic import Label, ScheduleError
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import Block, For, Kernel, Program, statements_within
from ilang.core.ir.rewriting import chain_of, nested, with_bodies
from ilang.core.ir.schedule import BLOCK_ROLES, THREAD_ROLES
from ilang.core.passes.gpu.blocks import Refusal, is_for_blocks, kernel_to_blocks
from ilang.core.passes.gpu.digits import with_digits
from ilang.core.passes.gpu.launches import with_launches
from ilang.core.passes.gpu.rows_held import with_rows_held
from ilang.core.passes.gpu.spaces import Places, placed, with_spaces
from ilang.core.passes.gpu.unrolled import with_unrolled
from ilang.core.passes.independence import Independence
from ilang.core.record import replace

MOST_PADDED = 1 << 24
"""Iterations of a grid for each element, at most: 64 bits then count all iterations for arrays that fit memory."""


def kernel_to_bind(program: Program) -> Program:
    """The program with its loops bound, and a space for each private buffer that there is room for."""
    program = with_digits(with_launches(program))
    program = with_bodies(program, lambda kernel: with_unrolled(program, kernel.body))
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
