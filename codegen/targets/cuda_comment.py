"""The comment above a kernel of CUDA: expressions and schedules, grid, block, memory, and what limits the blocks.

Example, sums of rows of 1024 elements:
    +ij~i   || i j
    grid       a warp for each of n_i: i
    block      256 threads
    occupancy  8 blocks at a time on a multiprocessor of an H100, limited by threads
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ilang.codegen.targets.cfamily import Spelling, product
from ilang.codegen.targets.identifiers import identifier
from ilang.core.diagnostic import counted
from ilang.core.ir.gpu import ThreadLoop, threads_of
from ilang.core.ir.host import Grid
from ilang.core.ir.kernel import Kernel, Program
from ilang.core.ir.rewriting import named
from ilang.core.machine import MULTIPROCESSORS
from ilang.core.occupancy import occupancy_of, resources_of

WORKERS = {"grid": "a thread", "blocks": "a block", "warps": "a warp", "threads": "a thread"}
"""A worker, by who shares iterations."""


def kernel_comment(
    program: Program, kernel: Kernel, grid: Grid, spelling: Spelling
) -> Iterator[str]:
    """The lines of the comment."""
    device = program.machine.gpu()
    spread = threads_of(kernel)
    yield from dict.fromkeys(kernel.comments)
    yield f"grid       {_workers(spread, grid, spelling, device.warp)}"
    shape = f", {' x '.join(map(str, grid.shape))}" if grid.shape else ""
    yield f"block      {counted(grid.threads, 'thread')}{shape}"
    taken = resources_of(program, kernel)
    if taken.shared:
        arrays = _arrays(program, kernel, "shared") or "values of warps that are combined"
        yield f"shared     {taken.shared:,} bytes: {arrays}"
    held = _arrays(program, kernel, "local")
    if held:
        yield f"registers  of each thread: {held}"
    row = occupancy_of(taken, MULTIPROCESSORS[-1], device)
    limit = f"{row.limit}{', an estimate' if row.limit == 'registers' else ''}"
    blocks = counted(row.blocks, "block")
    yield f"occupancy  {blocks} at a time on a multiprocessor of an {row.device}, limited by {limit}"


def _workers(spread: ThreadLoop, grid: Grid, spelling: Spelling, warp: int) -> str:
    """The iterations that are shared out, and who has one."""
    worker = WORKERS[spread.over]
    if spread.over == "warps" and spread.lanes < warp:
        worker = counted(spread.lanes, "lane")
    if not spread.loops:
        return f"{worker} alone"
    count = product(spelling.size(loop.size) for loop in spread.loops)
    names = ", ".join(spelling.variable(loop.variable) for loop in spread.loops)
    several = f"{grid.vector} of " if 1 < grid.vector else ""
    return f"{worker} for each {several or 'of '}{count}: {names}"


def _arrays(program: Program, kernel: Kernel, space: str) -> str:
    """The private arrays of a kernel in a space, with their lengths."""
    numbers = [n for n in sorted(named(kernel.body)) if program.buffers[n].space == space]
    lengths = [prod(program.sizes[n].fixed or 0 for n in program.buffers[b].dims) for b in numbers]
    pairs = zip(numbers, lengths, strict=True)
    return ", ".join(f"{identifier(program.buffers[n].name)}[{max(1, m)}]" for n, m in pairs)
