"""How many terms of an f32 sum an element of a register tile takes before they are added to what it has.

A sum of n terms, one after the other, is off by up to n/2 units in the last place of the largest partial sum. A tile
takes up to ``core.schedule.tile.MOST_TERMS``; in runs of ``RUN``, whose sums are added to each other, what it gives
stays within 1e-5 of the exact sum, relative to the sum of sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Protocol

from ilang.codegen.targets.cfamily import INDENT, Spelling
from ilang.core.ir.kernel import For, Program, Statement, Store, Tile, statements_within
from ilang.core.ir.scalar import Apply
from ilang.core.record import record, replace

RUN = 128
"""Terms that are added one after the other: 2^-17 of the sum of sizes at most."""

RUNS = "sums_of_runs"
"""The sums of the runs of terms that are over."""


@record
class Runs:
    """Terms in runs: how many loops of the core stand around the one that is taken so many iterations at a time."""

    depth: int
    step: int


class Block(Protocol):
    """What writes statements as text."""

    def __call__(self, body: Sequence[Statement], /, *, indent: str) -> Iterator[str]:
        """The lines of a block."""


def runs_of(program: Program, tile: Tile) -> Runs | None:
    """How the terms of a tile come in runs; None where they are few, or no sums of f32."""
    stores = [
        s for s in statements_within(tile.edge) if isinstance(s, Store) and s.buffer == tile.buffer
    ]
    added = [s for s in stores if isinstance(s.value, Apply) and s.value.primitive == "add"]
    if program.buffers[tile.buffer].dtype != "f32" or not added:
        return None
    elements = {variable for part in added[0].index for _, variable in part.terms}
    loops = [s for s in statements_within(tile.edge) if isinstance(s, For)]
    core = [loop for loop in loops if loop.variable not in elements]
    inside = prod(program.sizes[loop.size].fixed or 1 for loop in core)
    if inside <= RUN:
        return None
    body, depth = tile.edge, -1
    while len(body) == 1 and isinstance(body[0], For) and body[0] in core and RUN < inside:
        inside //= program.sizes[body[0].size].fixed or 1
        body, depth = body[0].body, depth + 1
    return None if depth < 0 else Runs(depth, max(1, RUN // inside))


def opened(runs: Runs, loop: For, spelling: Spelling, indent: str) -> tuple[str, str]:
    """The heads of two loops: over the runs of a loop, and over the iterations of a run."""
    name = spelling.variable(loop.variable)
    end = spelling.size(loop.size)
    if loop.rest is not None:
        end = f"min_i64({end}, {spelling.rest(loop.rest)})"
    run, stop, step = f"{name}_chunk", f"{name}_stop", runs.step
    first = f"int64_t {run} = 0, end_{name} = {end}"
    last = f"{run} + {step} < end_{name} ? {run} + {step} : end_{name}"
    return (
        f"{indent}for ({first}; {run} < end_{name}; {run} += {step}) {{",
        f"{indent}{INDENT}for (int64_t {name} = {run}, {stop} = {last}; {name} < {stop}; ++{name}) {{",
    )


def in_runs(
    runs: Runs,
    body: tuple[Statement, ...],
    spelling: Spelling,
    block: Block,
    after: str,
    indent: str,
) -> Iterator[str]:
    """The loops of a tile element by element, with a statement after each run."""
    (loop,) = body
    assert isinstance(loop, For)
    if runs.depth > 0:
        yield spelling.opened(loop, indent)
        yield from in_runs(
            replace(runs, depth=runs.depth - 1), loop.body, spelling, block, after, indent + INDENT
        )
        yield f"{indent}}}"
        return
    outer, inner = opened(runs, loop, spelling, indent)
    yield outer
    yield inner
    yield from block(loop.body, indent=indent + 2 * INDENT)
    yield f"{indent}{INDENT}}}"
    yield f"{indent}{INDENT}{after}"
    yield f"{indent}}}"
