"""Stores past the caches: results too large to stay in them are written in whole lines that are not read first.

A loop that only computes and stores elements of an output, one after the other, fills a block that stays in the
first cache; ``stream`` then moves the block. It pays only for large results, which a test of their bytes decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from ilang.codegen.targets.cfamily import C_TYPES, INDENT, LEFT_SMALL, Spelling
from ilang.core.dtype import BYTES
from ilang.core.ir.kernel import Define, For, Program, Store
from ilang.core.ir.scalar import Apply, Load, walk
from ilang.core.ops import SLOW

STREAM_FROM = 32 << 20
"""Bytes of a result from which it is written past the caches."""
BLOCK_BYTES = 16 << 10
"""Bytes of a block: a third of a first cache."""


def is_streamed(program: Program, loop: For) -> bool:
    """Whether a loop does nothing but compute and store elements of an output one after the other."""
    if (
        loop.rest is not None
        or loop.stretch is not None
        or loop.role in ("u", "v")
        or loop.lanes > 1
        or not loop.body
    ):
        return False
    *defines, store = loop.body
    if not isinstance(store, Store) or not store.index:
        return False
    if not all(isinstance(s, Define) and not s.mutable and s.lanes == 1 for s in defines):
        return False
    buffer = program.buffers[store.buffer]
    if buffer.role != "output" or buffer.dtype not in ("f32", "f64"):
        return False
    steps = [sum(c for c, v in part.terms if v == loop.variable) for part in store.index]
    if any(steps[:-1]) or steps[-1] != 1:
        return False
    fixed = program.sizes[loop.size].fixed
    if fixed is not None and fixed * BYTES[buffer.dtype] < BLOCK_BYTES:
        return False
    for s in loop.body:
        assert isinstance(s, (Define, Store))
        for part in walk(s.value):
            if isinstance(part, Load) and part.buffer == store.buffer:
                return False
            if isinstance(part, Apply) and part.primitive in SLOW:
                return False
    return True


def condition(program: Program, loop: For, spelling: Spelling) -> str:
    """Whether rows are long and the result is large."""
    store = loop.body[-1]
    assert isinstance(store, Store)
    buffer = program.buffers[store.buffer]
    size = BYTES[buffer.dtype]
    words = " * ".join(f"(double){spelling.size(n)}" for n in buffer.dims)
    row = f"{spelling.size(loop.size)} >= {BLOCK_BYTES // size}"
    return f"{row} && {words} * {size} >= {STREAM_FROM}"


def lines(
    program: Program, loop: For, spelling: Spelling, indent: str, ends: tuple[str, str]
) -> Iterator[str]:
    """The loop block by block, from its first iteration to the end."""
    *defines, store = loop.body
    assert isinstance(store, Store)
    buffer = program.buffers[store.buffer]
    c_type = C_TYPES[buffer.dtype]
    count = BLOCK_BYTES // BYTES[buffer.dtype]
    name = spelling.variable(loop.variable)
    deeper, inside = indent + INDENT, indent + INDENT + INDENT
    yield f"{indent}for (int64_t start = {ends[0]}; start < {ends[1]}; start += {count}) {{"
    yield f"{deeper}{c_type} block[{count}];"
    yield f"{deeper}const int64_t filled = min_i64({count}, {ends[1]} - start);"
    yield LEFT_SMALL
    yield f"{deeper}for (int64_t element = 0; element < filled; ++element) {{"
    yield f"{inside}const int64_t {name} = start + element;"
    for s in defines:
        assert isinstance(s, Define)
        yield f"{inside}const {C_TYPES[s.dtype]} {spelling.local(s.variable)} = {spelling.value(s.value)};"
    yield f"{inside}block[element] = {spelling.value(store.value)};"
    yield f"{deeper}}}"
    yield f"{deeper}const int64_t {name} = start;"
    element = spelling.element(store.buffer, store.index)
    yield f"{deeper}stream(&{element}, block, (size_t)filled * sizeof({c_type}));"
    yield f"{indent}}}"


PAST = (
    "#if defined(__SSE2__) && defined(__GNUC__)",
    "typedef float quad __attribute__((vector_size(16), may_alias));",
    "typedef float quad_anywhere __attribute__((vector_size(16), aligned(4), may_alias));",
    "#endif",
    "",
    "/* copy 16 bytes to where 16 divides the address, past the caches */",
    "static inline void quad_past(void *to, const void *from)",
    "{",
    "#if !defined(__SSE2__) || !defined(__GNUC__)",
    f"{INDENT}memcpy(to, from, 16);",
    "#elif defined(__clang__)",
    f"{INDENT}__builtin_nontemporal_store(*(const quad_anywhere *)from, (quad *)to);",
    "#else",
    f"{INDENT}__builtin_ia32_movntps((float *)to, *(const quad_anywhere *)from);",
    "#endif",
    "}",
    "",
    "/* what was stored past the caches comes before what is stored next */",
    "static inline void past_end(void)",
    "{",
    "#if defined(__SSE2__) && defined(__GNUC__)",
    f"{INDENT}__builtin_ia32_sfence();",
    "#endif",
    "}",
    "",
)
"""Stores past the caches, sixteen bytes at a time."""

HELPER = (
    "/* copy bytes past the caches: whole lines are written without being read first */",
    "static void stream(void *to, const void *from, size_t bytes)",
    "{",
    f"{INDENT}char *target = to;",
    f"{INDENT}const char *source = from;",
    f"{INDENT}size_t done = (64 - (uintptr_t)target % 64) % 64;",
    f"{INDENT}if (done > bytes) done = bytes;",
    f"{INDENT}memcpy(target, source, done);",
    f"{INDENT}for (; done + 16 <= bytes; done += 16) quad_past(target + done, source + done);",
    f"{INDENT}past_end();",
    f"{INDENT}memcpy(target + done, source + done, bytes - done);",
    "}",
    "",
)
