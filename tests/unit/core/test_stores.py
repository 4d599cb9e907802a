"""Results of which each thread has several neighbors: stored side by side, through shared memory or from it."""

from __future__ import annotations

import pytest

from ilang.core.ir.gpu import Spread
from ilang.core.ir.kernel import Program, Store, statements_within
from ilang.core.machine import GPU
from ilang.core.passes.gpu.stores import kernel_to_stores
from ilang.core.pipeline import graph_of, infer, lower, text_component

PRODUCT = "ik*kj~ijk >> +ijk~ij"


def lowered(text: str, dtype: str = "f32", shapes: list[tuple[int, ...]] | None = None) -> Program:
    """A program of one type."""
    graph = graph_of(text_component(text), "f")
    return lower(infer(graph, [dtype] * len(graph.inputs), shapes=shapes), GPU)


def strides(program: Program) -> list[int]:
    """By how much the last loop of each spread steps along what it stores one by one for a caller."""
    steps: list[int] = []
    for s in statements_within(program.kernels[0].body):
        if isinstance(s, Spread) and s.over == "threads" and s.loops:
            for x in statements_within(s.body):
                if isinstance(x, Store) and program.buffers[x.buffer].role == "output":
                    along = {v: c for c, v in x.index[-1].terms}
                    steps.append(along.get(s.loops[-1].variable, 0))
    return steps


@pytest.mark.parametrize(
    ("text", "dtype", "shapes", "wanted"),
    [
        (PRODUCT, "f32", None, [4, 1]),  # vectors, and what no vectors fit
        (PRODUCT, "f32", [(130, 64), (64, 70)], [1]),  # rows that never are whole vectors
        (PRODUCT, "f32", [(128, 64), (64, 128)], [1]),  # two neighbors are no vector
    ],
)
def test_threads_store_side_by_side(
    text: str, dtype: str, shapes: list[tuple[int, ...]] | None, wanted: list[int]
) -> None:
    assert sorted(set(strides(lowered(text, dtype, shapes))), reverse=True) == wanted


def test_rows_of_what_is_held_have_banks_of_their_own() -> None:
    """Threads write side by side, and read four rows across."""
    program = lowered(PRODUCT)
    (held,) = (b for b in program.buffers if b.name == "out_stored")
    *_, count, row = (program.sizes[size].fixed or 0 for size in held.dims)
    assert (count, held.space) == (4, "shared")
    assert 256 <= row
    assert len({(n % 4 * row + n // 4) % 32 for n in range(32)}) == 32


def test_nothing_is_done_twice() -> None:
    program = lowered(PRODUCT)
    assert kernel_to_stores(program) == program
