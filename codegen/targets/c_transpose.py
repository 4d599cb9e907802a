"""Copies that run along one dimension of what they read and along another of what they write, in squares.

    static void transpose_f32(float *restrict to, int64_t first, int64_t step,
                              const float *restrict from, int64_t origin, int64_t stride,
                              int64_t rows, int64_t columns, int past)

A square is loaded by rows, its vectors are interleaved log2(lanes) times, which transposes it, and it is stored by
columns, a whole cache line of the result at a time. ``past`` asks for stores past the caches, for large results.
"""

from __future__ import annotations

from collections.abc import Collection

from ilang.codegen.targets.c_entry import FORMULAS
from ilang.codegen.targets.cfamily import C_TYPES, Spelling
from ilang.codegen.targets.cfamily import product as product_of
from ilang.codegen.targets.identifiers import identifier
from ilang.core.calculus.extent import linear, product
from ilang.core.dtype import BYTES
from ilang.core.ir.cpu import Transpose
from ilang.core.ir.kernel import For, Store
from ilang.core.ir.scalar import Load


def call(copy: Transpose, spelling: Spelling) -> str:
    """The call of the function that copies."""
    columns, rows, store = copy.nest()
    load = store.value
    assert isinstance(load, Load)
    dims = spelling.program.buffers[store.buffer].dims
    size = " * ".join(f"(double){spelling.size(n)}" for n in dims)
    variables = {loop.variable for loop in (*columns, rows)}
    words = (
        *_strided(spelling, store, columns[-1], variables),
        *_strided(spelling, load, rows, variables),
        spelling.bound(rows.end),
        product_of(spelling.bound(loop.end) for loop in columns),
        f"{size} * {BYTES[load.dtype]} >= {copy.stream_from}" if copy.stream_from else "0",
    )
    short = "_short" if copy.short else ""
    return f"transpose{short}_{load.dtype}({', '.join(words)});"


def _strided(
    spelling: Spelling, at: Store | Load, across: For, variables: Collection[int]
) -> tuple[str, str, str]:
    """A buffer, the position of the first element, and how many elements there are to the next row or column."""
    buffer = spelling.program.buffers[at.buffer]
    steps = [(part.coefficient(across.variable), d + 1) for d, part in enumerate(at.index)]
    terms = [(step, product(buffer.dims[inner:])) for step, inner in steps if step]
    stride = linear(terms, 0).text(spelling.size, FORMULAS)
    name = identifier(buffer.name)
    name = f"({C_TYPES[buffer.dtype]} *){name}" if buffer.wrapping else name
    first = tuple(part.without(variables) for part in at.index)
    return name, spelling.position(at.buffer, first), stride
