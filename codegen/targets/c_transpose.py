"""Copies that run along one dimension of what they read and along another of what they write, in squares.

    static void transpose_f32(float *restrict to, int64_t first, int64_t step,
                              const float *restrict from, int64_t origin, int64_t stride,
                              int64_t rows, int64_t columns, int past)

A square is loaded by rows, its vectors are interleaved log2(lanes) times, which transposes it, and it is stored by
columns, a whole cache line of the result at a time. ``past`` asks for stores past the caches, for large results.
"""

from __future__ import annotations

from ilang.codegen.targets.cfamily import C_TYPES, Spelling
from ilang.codegen.targets.identifiers import identifier
from ilang.core.dtype import BYTES
from ilang.core.ir.cpu import Strided, Transpose, Trips


def call(copy: Transpose, spelling: Spelling) -> str:
    """The call of the function that copies."""
    words = (
        *_strided(copy.target, spelling),
        *_strided(copy.source, spelling),
        _trips(copy.rows, spelling),
        _trips(copy.columns, spelling),
        _past(copy, spelling),
    )
    short = "_short" if copy.short else ""
    return f"transpose{short}_{copy.dtype}({', '.join(words)});"


def _strided(at: Strided, spelling: Spelling) -> tuple[str, str, str]:
    """A buffer, the position of the first element, and how many elements there are to the next."""
    words = []
    for product in at.stride:
        factors = [str(product.factor)] if product.factor != 1 or not product.sizes else []
        words.append(" * ".join([*factors, *map(spelling.size, product.sizes)]))
    buffer = spelling.program.buffers[at.buffer]
    name = identifier(buffer.name)
    name = f"({C_TYPES[buffer.dtype]} *){name}" if buffer.wrapping else name
    return name, spelling.position(at.buffer, at.first), " + ".join(words) or "0"


def _trips(trips: Trips, spelling: Spelling) -> str:
    """The number of rows or columns."""
    whole = spelling.size(trips.size)
    return whole if trips.rest is None else f"min_i64({whole}, {spelling.rest(trips.rest)})"


def _past(copy: Transpose, spelling: Spelling) -> str:
    """Whether a result is too large to stay in the caches."""
    if not copy.stream_from:
        return "0"
    dims = spelling.program.buffers[copy.target.buffer].dims
    words = " * ".join(f"(double){spelling.size(n)}" for n in dims)
    return f"{words} * {BYTES[copy.dtype]} >= {copy.stream_from}"
