"""Copies that run along one dimension of what they read and along another of what they write, in squares.

    static void transpose_f32(float *restrict to, int64_t first, int64_t step,
                              const float *restrict from, int64_t origin, int64_t stride,
                              int64_t rows, int64_t columns, int past)

A square is loaded by rows, its vectors are interleaved log2(lanes) times, which transposes it, and it is stored by
columns, a whole cache line of the result at a time. ``past`` asks for stores past the caches, for large results.
"""

from __future__ import annotations

from collections.abc import Iterator

from ilang.codegen.targets.c_vector import vector_type
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, Spelling
from ilang.codegen.targets.identifiers import identifier
from ilang.core.dtype import BYTES
from ilang.core.ir.cpu import Strided, Transpose, Trips
from ilang.core.machine import CPU


def lanes_in(dtype: str) -> int:
    """The lanes of the longest vectors."""
    return CPU.vector_lanes(dtype)


def call(copy: Transpose, spelling: Spelling) -> str:
    """The call of the function that copies: see ``helper``."""
    words = (
        *_strided(copy.target, spelling),
        *_strided(copy.source, spelling),
        _trips(copy.rows, spelling),
        _trips(copy.columns, spelling),
        _past(copy, spelling),
    )
    return f"transpose_{copy.dtype}({', '.join(words)});"


def _strided(at: Strided, spelling: Spelling) -> tuple[str, str, str]:
    """A buffer, the position of the first element, and how many elements there are to the next."""
    words = []
    for product in at.stride:
        factors = [str(product.factor)] if product.factor != 1 or not product.sizes else []
        words.append(" * ".join([*factors, *map(spelling.size, product.sizes)]))
    name = identifier(spelling.program.buffers[at.buffer].name)
    return name, spelling.position(at.buffer, at.first), " + ".join(words) or "0"


def _trips(trips: Trips, spelling: Spelling) -> str:
    """How many rows or columns there are."""
    whole = spelling.size(trips.size)
    return whole if trips.rest is None else f"min_i64({whole}, {spelling.rest(trips.rest)})"


def _past(copy: Transpose, spelling: Spelling) -> str:
    """Whether a result is too large to stay in the caches."""
    if not copy.stream_from:
        return "0"
    dims = spelling.program.buffers[copy.target.buffer].dims
    words = " * ".join(f"(double){spelling.size(n)}" for n in dims)
    return f"{words} * {BYTES[copy.dtype]} >= {copy.stream_from}"


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

SHUFFLED = (
    "/* elements of two vectors, by constant numbers */",
    "#ifdef __clang__",
    "#define SHUFFLED(mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)",
    "#else",
    "#define SHUFFLED(mask, a, b, ...) __builtin_shuffle(a, b, (mask){__VA_ARGS__})",
    "#endif",
    "",
)


def _interleaved(dtype: str) -> Iterator[str]:
    """The halves of two vectors interleaved, for vectors of every length."""
    kind = vector_type(dtype, lanes_in(dtype))
    yield f"/* the first and the second halves of two vectors interleaved; {kind}_stages of it transpose a square */"
    for number, length in enumerate((64, 32, 16)):
        yield ("#if VECTOR == 64", "#elif VECTOR == 32", "#else")[number]
        lanes = length // BYTES[dtype]
        pairs = [str(n) for lane in range(lanes) for n in (lane, lane + lanes)]
        low, high = ", ".join(pairs[:lanes]), ", ".join(pairs[lanes:])
        yield f"enum {{ {kind}_stages = {lanes.bit_length() - 1} }};"
        yield f"#define {kind}_low(a, b) SHUFFLED({kind}m, a, b, {low})"
        yield f"#define {kind}_high(a, b) SHUFFLED({kind}m, a, b, {high})"
    yield "#endif"
    yield ""


def _square(dtype: str) -> Iterator[str]:
    """A function that transposes a square in registers."""
    kind, c_type = vector_type(dtype, lanes_in(dtype)), C_TYPES[dtype]
    most, quad = lanes_in(dtype), 16 // BYTES[dtype]
    text = f"""\
/* a square in registers: to[c * step + r] = from[r * stride + c] */
static inline void transpose_square_{dtype}(
    {c_type} *restrict to, int64_t step, const {c_type} *restrict from, int64_t stride, int past)
{{
    {kind} square[lanes_{kind}], next[lanes_{kind}];
#pragma GCC unroll {most}
    for (int row = 0; row < lanes_{kind}; ++row) square[row] = *(const {kind}u *)&from[row * stride];
#pragma GCC unroll {most.bit_length() - 1}
    for (int stage = 0; stage < {kind}_stages; ++stage) {{
#pragma GCC unroll {most // 2}
        for (int row = 0; row < lanes_{kind} / 2; ++row) {{
            next[2 * row] = {kind}_low(square[row], square[row + lanes_{kind} / 2]);
            next[2 * row + 1] = {kind}_high(square[row], square[row + lanes_{kind} / 2]);
        }}
#pragma GCC unroll {most}
        for (int row = 0; row < lanes_{kind}; ++row) square[row] = next[row];
    }}
#pragma GCC unroll {most}
    for (int row = 0; row < lanes_{kind}; ++row) {{
        if (!past) *({kind}u *)&to[row * step] = square[row];
        for (int piece = 0; past && piece < lanes_{kind}; piece += {quad}) {{
            quad_past(&to[row * step + piece], (const {c_type} *)&square[row] + piece);
        }}
    }}
}}
"""
    yield from text.split("\n")


def _half(dtype: str) -> Iterator[str]:
    """A function that transposes half a square in registers."""
    kind, c_type, most = vector_type(dtype, lanes_in(dtype)), C_TYPES[dtype], lanes_in(dtype)
    text = f"""\
/* the same of half as many rows: two columns are a vector */
static inline void transpose_half_{dtype}(
    {c_type} *restrict to, int64_t step, const {c_type} *restrict from, int64_t stride)
{{
    {kind} half[lanes_{kind} / 2], next[lanes_{kind} / 2];
#pragma GCC unroll {most // 2}
    for (int row = 0; row < lanes_{kind} / 2; ++row) half[row] = *(const {kind}u *)&from[row * stride];
#pragma GCC unroll {most.bit_length() - 2}
    for (int stage = 1; stage < {kind}_stages; ++stage) {{
#pragma GCC unroll {most // 4}
        for (int row = 0; row < lanes_{kind} / 4; ++row) {{
            next[2 * row] = {kind}_low(half[row], half[row + lanes_{kind} / 4]);
            next[2 * row + 1] = {kind}_high(half[row], half[row + lanes_{kind} / 4]);
        }}
#pragma GCC unroll {most // 2}
        for (int row = 0; row < lanes_{kind} / 2; ++row) half[row] = next[row];
    }}
#pragma GCC unroll {most}
    for (int column = 0; column < lanes_{kind}; ++column) {{
        memcpy(&to[column * step], (const {c_type} *)half + column * (lanes_{kind} / 2), sizeof({kind}) / 2);
    }}
}}
"""
    yield from text.split("\n")


def _low(dtype: str) -> str:
    """What copies rows that are shorter than a line."""
    kind, c_type = vector_type(dtype, lanes_in(dtype)), C_TYPES[dtype]
    return f"""\
    if (rows >= lanes_{kind} / 2 && columns >= lanes_{kind}) {{
        const int64_t high = rows >= lanes_{kind} ? lanes_{kind} : lanes_{kind} / 2;
        for (int64_t row = 0; row < rows; row += high) {{
            for (int64_t column = 0; column < columns; column += lanes_{kind}) {{
                const int64_t r = min_i64(row, rows - high), c = min_i64(column, columns - lanes_{kind});
                {c_type} *const target = to + first + c * step + r;
                const {c_type} *const source = from + origin + r * stride + c;
                if (rows >= lanes_{kind}) transpose_square_{dtype}(target, step, source, stride, 0);
                else transpose_half_{dtype}(target, step, source, stride);
            }}
        }}
        return;
    }}
"""


def helper(dtype: str, short: bool) -> Iterator[str]:
    """The functions that copy elements of a type, transposing; ``short`` where rows of results may be."""
    c_type, line = C_TYPES[dtype], lanes_in(dtype)
    kind = vector_type(dtype, line)
    yield "#ifdef __GNUC__"
    yield from _interleaved(dtype)
    yield from _square(dtype)
    yield from _half(dtype) if short else ()
    yield "#endif"
    yield ""
    text = f"""\
/* to[first + c * step + r] = from[origin + r * stride + c], past the caches if whole lines of all columns are */
static void transpose_{dtype}(
    {c_type} *restrict to, int64_t first, int64_t step,
    const {c_type} *restrict from, int64_t origin, int64_t stride, int64_t rows, int64_t columns, int past)
{{
#ifdef __GNUC__
    if (rows >= {line} && columns >= lanes_{kind}) {{
        /* a line of the result at a time; the last lines and squares overlap those before them */
        const int lines = past && step % {line} == 0;
        const int64_t left = lines ? (int64_t)((64 - (uintptr_t)(to + first) % 64) % 64 / sizeof({c_type})) : 0;
        for (int64_t row = left > 0 ? left - {line} : 0; row < rows; row += {line}) {{
            const int64_t r = row < 0 ? 0 : min_i64(row, rows - {line});
            for (int64_t column = 0; column < columns; column += lanes_{kind}) {{
                const int64_t c = min_i64(column, columns - lanes_{kind});
                for (int part = 0; part < {line}; part += lanes_{kind}) {{
                    {c_type} *const target = to + first + c * step + r + part;
                    const {c_type} *const source = from + origin + (r + part) * stride + c;
                    if (lines && r == row) transpose_square_{dtype}(target, step, source, stride, 1);
                    else transpose_square_{dtype}(target, step, source, stride, 0);
                }}
            }}
        }}
        if (lines) past_end();
        return;
    }}
{_low(dtype) if short else ""}#else
    (void)past;
#endif
    for (int64_t row = 0; row < rows; row += {line}) {{
        for (int64_t c = 0; c < columns; ++c) {{
            for (int64_t r = row; r < min_i64(row + {line}, rows); ++r) {{
                to[first + c * step + r] = from[origin + r * stride + c];
            }}
        }}
    }}
}}
"""
    yield from text.split("\n")
