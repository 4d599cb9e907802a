"""Loops that prefetch: a loop over chunks of their iterations, and loops over the cache lines of a chunk.

for (int64_t j_chunk = 0; j_chunk < n_j; j_chunk += 128) {
    const int64_t j_stop = min_i64(j_chunk + 128, n_j);
    for (int64_t j = j_chunk; j < j_stop; j += 16) PREFETCH(&out[i * n_j + j + 1024], 1);
    for (int64_t j = j_chunk; j < j_stop; ++j) ...
}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ilang.codegen.targets.braces import braced
from ilang.codegen.targets.c_ends import Ends
from ilang.codegen.targets.cfamily import Spelling
from ilang.core.ir.cpu import Prefetch
from ilang.core.ir.kernel import For
from ilang.core.ir.scalar import Load


def chunked(
    loop: For, prefetch: Prefetch, ends: Ends, spelling: Spelling, lines: Iterable[str]
) -> Iterator[str]:
    """The chunks of a loop between two ends, each of which fetches its cache lines before the ``lines`` of its loop."""
    of_chunk = chunk(loop, prefetch, ends, spelling)
    if of_chunk is ends:
        yield from (*_fetches(prefetch, spelling.variable(loop.variable), ends, spelling), *lines)
        return
    start = of_chunk.start
    head = f"{start} = {ends.start}; {start} < {ends.end}; {start} += {prefetch.chunk}"
    fetches = _fetches(prefetch, spelling.variable(loop.variable), of_chunk, spelling)
    stop = f"const int64_t {of_chunk.end} = min_i64({start} + {prefetch.chunk}, {ends.end});"
    yield from braced(f"for (int64_t {head})", (stop, *fetches, *lines))


def _fetches(prefetch: Prefetch, name: str, ends: Ends, spelling: Spelling) -> Iterator[str]:
    """The loops over the cache lines of a chunk."""
    for step, loads in prefetch.lines:
        head = f"for (int64_t {name} = {ends.start}; {name} < {ends.end}; {name} += {step})"
        calls = list(_calls(loads, spelling))
        yield from [f"{head} {calls[0]}"] if len(calls) == 1 else braced(head, calls)


def chunk(loop: For, prefetch: Prefetch, ends: Ends, spelling: Spelling) -> Ends:
    """The ends of a chunk of a loop between two ends: these, where one chunk is known to have all iterations."""
    known = ends.iterations()
    if known is not None and known <= prefetch.chunk:
        return ends
    name = spelling.variable(loop.variable)
    return Ends(f"{name}_chunk", f"{name}_stop")


def _calls(loads: Sequence[Load], spelling: Spelling) -> Iterator[str]:
    """The statements that fetch a line of each row."""
    for load in loads:
        write = int(spelling.program.memory(load.buffer).role != "input")
        yield f"PREFETCH(&{spelling.element(load.buffer, load.index)}, {write});"
