"""The partial sums of a register tile: each is added to the sum of those before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ilang.codegen.targets.braces import braced
from ilang.codegen.targets.cfamily import Spelling, end_of
from ilang.core.ir.kernel import For, Statement
from ilang.core.ir.schedule import TilePartials
from ilang.core.record import replace

SUMS = "sums_so_far"
"""The sum of the partial sums that are complete, where registers hold it beside the tile."""
COUNT = "partial_count"
"""The counter of partial sums that have begun."""


BlockWriter = Callable[[Sequence[Statement]], Iterator[str]]
"""A function that writes statements as text."""


def counter(loop: For, spelling: Spelling) -> str:
    """The variable of the loop over the partial sums of a loop: where one begins."""
    return f"{spelling.variable(loop.variable)}_chunk"


def opened(
    partial: TilePartials, loop: For, spelling: Spelling, may_be_empty: bool = False
) -> tuple[str, str]:
    """The heads of two loops: over the partial sums of a loop, and over the terms of one.

    Where the loop ``may_be_empty``, there is one partial sum still, of no terms.
    """
    name = spelling.variable(loop.variable)
    end = end_of(spelling, loop)
    run, stop, step = counter(loop, spelling), f"{name}_stop", partial.step
    first = f"int64_t {run} = 0, end_{name} = {end}"
    last = f"{run} + {step} < end_{name} ? {run} + {step} : end_{name}"
    goes_on = f"{run} < end_{name}"
    goes_on = f"{run} == 0 || {goes_on}" if may_be_empty and not partial.depth else goes_on
    return (
        f"for ({first}; {goes_on}; {run} += {step})",
        f"for (int64_t {name} = {run}, {stop} = {last}; {name} < {stop}; ++{name})",
    )


def in_partials(
    partial: TilePartials,
    body: tuple[Statement, ...],
    spelling: Spelling,
    block: BlockWriter,
    after: str,
) -> Iterator[str]:
    """The loops of a tile element by element, with a statement after each partial sum."""
    (loop,) = body
    assert isinstance(loop, For)
    if partial.depth > 0:
        inside = replace(partial, depth=partial.depth - 1)
        lines = in_partials(inside, loop.body, spelling, block, after)
        yield from braced(spelling.opened(loop), lines)
        return
    outer, inner = opened(partial, loop, spelling)
    yield from braced(outer, (*braced(inner, block(loop.body)), after))
