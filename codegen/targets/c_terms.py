"""The terms of a register tile in runs: the sum of each run is added to those of the runs before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from ilang.codegen.targets.cfamily import INDENT, Spelling
from ilang.core.ir.kernel import For, Statement
from ilang.core.ir.schedule import Runs
from ilang.core.record import replace

RUNS = "sums_of_runs"
"""The sums of the runs of terms that are over, where registers hold them beside the tile."""
COUNT = "run_count"
"""The counter of runs that have begun."""


class BlockWriter(Protocol):
    """A function that writes statements as text."""

    def __call__(self, body: Sequence[Statement], /, *, indent: str) -> Iterator[str]:
        """The lines of a block."""


def opened(runs: Runs, loop: For, spelling: Spelling, indent: str) -> tuple[str, str]:
    """The heads of two loops: over the runs of a loop, and over the iterations of a run."""
    name = spelling.variable(loop.variable)
    end = spelling.trips(loop.size, loop.end)
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
    block: BlockWriter,
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
