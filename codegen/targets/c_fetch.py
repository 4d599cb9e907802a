"""Loops that store along memory fetch what they store next: a line that is far away is there when it is written.

    for each chunk of a loop
        fetch the lines of out that are a page further on, and those of what is read beside it
        for the iterations of the chunk: out[j] = ...

The processor fetches by itself as far as a page goes; a row of a matrix is often a page. ``For.ahead`` is the same for
what a loop in lanes will need; what it fetches is not fetched twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from ilang.codegen.targets.cfamily import INDENT, Spelling
from ilang.core.dtype import BYTES
from ilang.core.ir.kernel import Define, For, Program, Store, statements_within
from ilang.core.ir.scalar import Apply, Load, walk
from ilang.core.ops import SLOW

FETCH = (
    "/* move a cache line nearer, to be written or read; any address will do */",
    "#ifdef __GNUC__",
    "#define FETCH(address, write) __builtin_prefetch(address, write)",
    "#else",
    "#define FETCH(address, write) ((void)0)",
    "#endif",
    "",
)


class Fetching:
    """The loops of a program that fetch what they store."""

    def __init__(self, program: Program) -> None:
        """Find out what loops in lanes fetch."""
        self.program = program
        self.memory = program.machine.memory
        self.known = {
            load.buffer
            for kernel in program.kernels
            for s in statements_within(kernel.body)
            if isinstance(s, For)
            for load in s.ahead
        }

    def rows(self, loop: For) -> tuple[Load, ...]:
        """What a loop stores and reads alike, one element after the other; nothing where it does not pay.

        It does where a loop only computes and stores elements of an output, without an exponential or the like, which
        takes longer than the memory, and where another loop has not fetched them.
        """
        store = loop.body[-1] if loop.body else None
        if loop.rest or loop.stretch or loop.role in ("u", "v") or loop.lanes > 1:
            return ()
        if not isinstance(store, Store) or not store.index or store.buffer in self.known:
            return ()
        buffer, fixed = self.program.buffers[store.buffer], self.program.sizes[loop.size].fixed
        steps = [sum(c for c, v in part.terms if v == loop.variable) for part in store.index]
        if buffer.role != "output" or any(steps[:-1]) or steps[-1] != 1:
            return ()
        if fixed is not None and fixed * BYTES[buffer.dtype] < self.memory.page_bytes:
            return ()
        found = {store.buffer: Load(store.buffer, store.index, buffer.dtype)}
        for s in loop.body:
            if not isinstance(s, (Define, Store)) or (isinstance(s, Define) and s.mutable):
                return ()
            for part in walk(s.value):
                if isinstance(part, Apply) and part.primitive in SLOW:
                    return ()
                if not isinstance(part, Load):
                    continue
                if part.buffer == store.buffer:
                    return ()
                alike = part.index == store.index and part.buffer not in self.known
                if alike and not self.program.buffers[part.buffer].private:
                    found[part.buffer] = part
        return tuple(found.values())

    def opened(
        self, loop: For, ends: tuple[str, str], spelling: Spelling
    ) -> tuple[tuple[str, ...], tuple[str, str]]:
        """What opens the chunks of a loop between two ends, and where the loop over one of them begins and ends.

        Nothing where a loop does not fetch what it stores.
        """
        rows = self.rows(loop)
        if not rows:
            return (), ("", "")
        name, count = spelling.variable(loop.variable), self._chunk(rows[0])
        start, stop = f"{name}_chunk", f"{name}_stop"
        lines = (
            f"for (int64_t {start} = {ends[0]}; {start} < {ends[1]}; {start} += {count}) {{",
            f"{INDENT}const int64_t {stop} = min_i64({start} + {count}, {ends[1]});",
            *(INDENT + line for line in self._fetches(rows, name, spelling)),
        )
        return lines, (f"int64_t {name} = {start}", stop)

    def _chunk(self, row: Load) -> int:
        """How many elements of a row are fetched at a time."""
        return self.memory.fetched_bytes // BYTES[row.dtype]

    def _fetches(self, rows: tuple[Load, ...], name: str, spelling: Spelling) -> Iterator[str]:
        """A loop over lines for each row."""
        for load in rows:
            size = BYTES[load.dtype]
            further = (*load.index[:-1], load.index[-1].plus((), self.memory.page_bytes // size))
            head = f"{name} = {name}_chunk; {name} < {name}_stop; {name} += {self.memory.line_bytes // size}"
            write = int(self.program.buffers[load.buffer].role != "input")
            element = spelling.element(load.buffer, further)
            yield f"for (int64_t {head}) FETCH(&{element}, {write});"
