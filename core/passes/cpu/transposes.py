"""Make copies that run along one dimension of what they read and along another of what they write statements.

Example:
    in:   for j1: for i: out[j1,i] = in0[i,j1]
    out:  transpose n_i rows of n_j columns from in0[0,0] (stride n_j) to out[0,0] (stride n_i)

A target transposes squares in vector registers. A nest that does several such copies, and nothing else, becomes one
statement for each copy. The pass runs before fusion, which would separate the copies from each other, and before
vectorization, which handles copies along rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from ilang.core.calculus.affine import Affine, row_step
from ilang.core.ir.cpu import Transpose
from ilang.core.ir.ids import BufferId
from ilang.core.ir.kernel import Block, For, If, Program, Statement, Store, map_blocks
from ilang.core.ir.rewriting import nested, unless_same, with_bodies
from ilang.core.ir.scalar import Load
from ilang.core.passes.independence import apart_inside

MOVED = frozenset({"f32", "f64", "i32", "i64"})
"""Element types whose squares are transposed: what an input of bool has is no bool yet."""


def kernel_to_transposes(program: Program) -> Program:
    """The program with a statement for each copy that transposes."""
    return with_bodies(program, lambda kernel: _block(program, kernel.body))


def _block(program: Program, body: Block) -> Block:
    out: list[Statement] = []
    for s in body:
        copies = _transposing(program, s) if isinstance(s, For) else []
        if not copies and isinstance(s, (For, If)):
            out.append(map_blocks(s, lambda block: _block(program, block)))
        else:
            out += copies or [s]
    return unless_same(body, out)


def _transposing(program: Program, loop: For) -> list[Transpose]:
    """The copies that a loop and those inside it are, if they only copy, each transposing; else none."""
    columns = [loop]
    while len(columns[-1].body) == 1 and _around_loop(columns[-1].body[0]):
        columns.append(cast("For", columns[-1].body[0]))
    copies: list[tuple[For, Store, Load]] = []
    for inner in columns[-1].body:
        if not isinstance(inner, For):
            return []
        for s in inner.body:
            if not isinstance(s, Store) or not isinstance(s.value, Load):
                return []
            copies.append((inner, s, s.value))
    everywhere = [*columns, *(inner for inner, _, _ in copies)]
    for _, store, _ in copies:
        read = [load.index for _, _, load in copies if load.buffer == store.buffer]
        if not all(apart_inside(program, everywhere, store.index, index) for index in read):
            return []
    if not all(_transposes(program, columns, *copy) for copy in copies):
        return []
    return [_transpose(program, columns, inner, store) for inner, store, _ in copies]


def _around_loop(s: Statement) -> bool:
    return isinstance(s, For) and bool(s.body) and all(isinstance(each, For) for each in s.body)


def _transposes(
    program: Program, columns: Sequence[For], inner: For, store: Store, load: Load
) -> bool:
    """Whether it is a copy of many elements that vectors hold, along one dimension and along others side by side."""
    if any(x.role or x.lanes > 1 or x.chunk is not None for x in (*columns, inner)):
        return False
    counts = [program.sizes[loop.size].fixed for loop in columns]
    is_small = None not in counts and prod(n or 0 for n in counts) < program.machine.small_extent
    if is_small or _is_small(program, inner):
        return False
    if {loop.variable for loop in columns} & inner.ends():
        return False
    return (
        load.dtype in MOVED
        and _runs_along(store.index, inner, columns[-1])
        and _runs_along(load.index, columns[-1], inner)
        and all(_are_one(program, columns, at.buffer, at.index) for at in (store, load))
    )


def _are_one(
    program: Program, columns: Sequence[For], buffer: BufferId, index: Sequence[Affine]
) -> bool:
    """Whether loops walk dimensions side by side, each after the first one all of its own."""
    places = [[d for d, x in enumerate(index) if loop.variable in x.axes()] for loop in columns]
    if len(columns) == 1:
        return True
    if any(len(place) != 1 for place in places) or any(
        index[d].coefficient(loop.variable) != 1 for loop, (d,) in zip(columns, places, strict=True)
    ):
        return False
    dims = program.buffers[buffer].dims
    return all(
        place == place_before + 1 and dims[place] == loop.size and index[place].axis() is not None
        for (place_before,), (place,), loop in zip(places, places[1:], columns[1:], strict=False)
    ) and not any(loop.within for loop in columns)


def _runs_along(index: Sequence[Affine], loop: For, other: For) -> bool:
    """Whether a loop walks the last dimension, element by element, and nothing else; the other not that one."""
    if any(part.looked for part in index) or row_step(index, loop.variable) != 1:
        return False
    return not index[-1].coefficient(other.variable)


def _is_small(program: Program, loop: For) -> bool:
    fixed = program.sizes[loop.size].fixed
    return fixed is not None and fixed < program.machine.small_extent


def _transpose(program: Program, columns: Sequence[For], inner: For, store: Store) -> Transpose:
    fixed = program.sizes[inner.size].fixed
    is_output = program.memory(store.buffer).role == "output"
    (loops,) = nested((*columns, inner), (store,))
    assert isinstance(loops, For)
    return Transpose(
        loops,
        fixed is not None and fixed < program.machine.vector_lanes(store.value.dtype or ""),
        program.machine.memory.streamed_bytes if is_output else 0,
    )
