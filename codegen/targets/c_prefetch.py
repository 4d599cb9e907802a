"""Loops that prefetch: a loop over chunks of their iterations, and loops over the cache lines of a chunk.

for (int64_t j_chunk = 0; j_chunk < n_j; j_chunk += 128) {
    const int64_t j_stop = min_i64(j_chunk + 128, n_j);
    for (int64_t j = j_chunk; j < j_stop; j += 16) PREFETCH(&out[i * n_j + j + 1024], 1);
    for (int64_t j = j_chunk; j < j_stop; ++j) ...
}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.codegen.targets.c_ends import Ends
from ilang.codegen.targets.cfamily import INDENT, Spelling
from ilang.core.ir.cpu import Prefetch
from ilang.core.ir.kernel import For
from ilang.core.ir.scalar import Load


def opened(
    loop: For, prefetch: Prefetch, ends: Ends, spelling: Spelling, indent: str
) -> Iterator[str]:
    """The lines that open the chunks of a loop between two ends, and fetch the lines of one."""
    name, inside = spelling.variable(loop.variable), indent + INDENT
    of_chunk = chunk(loop, spelling)
    start, stop = of_chunk.start, of_chunk.end
    head = f"{start} = {ends.start}; {start} < {ends.end}; {start} += {prefetch.chunk}"
    yield f"{indent}for (int64_t {head}) {{"
    yield f"{inside}const int64_t {stop} = min_i64({start} + {prefetch.chunk}, {ends.end});"
    for step, loads in prefetch.lines:
        head = f"for (int64_t {name} = {start}; {name} < {stop}; {name} += {step})"
        calls = list(_calls(loads, spelling))
        if len(calls) == 1:
            yield f"{inside}{head} {calls[0]}"
            continue
        yield f"{inside}{head} {{"
        yield from (f"{inside}{INDENT}{call}" for call in calls)
        yield f"{inside}}}"


def chunk(loop: For, spelling: Spelling) -> Ends:
    """The ends of a chunk of a loop."""
    name = spelling.variable(loop.variable)
    return Ends(f"{name}_chunk", f"{name}_stop")


def _calls(loads: Sequence[Load], spelling: Spelling) -> Iterator[str]:
    """The statements that fetch a line of each row."""
    for load in loads:
        write = int(spelling.program.memory(load.buffer).role != "input")
        yield f"PREFETCH(&{spelling.element(load.buffer, load.index)}, {write});"
