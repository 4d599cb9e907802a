"""Results of which each thread has several neighbors: stored side by side, through shared memory or from it."""

from __future__ import annotations

import pytest

from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import Program, Store, statements_within
from ilang.core.machine import GPU, MULTIPROCESSORS
from ilang.core.occupancy import resources_of
from ilang.core.pipeline import graph_of, infer, lower, text_component

PRODUCT = "ik*kj~ijk >> +ijk~ij"
SQUARE = (
    "ik*kj~ijk | i:16:{0},j:16:{0},k:16 | i j k 0 1 k' i' j' i'' j'' | 0:s2,1:s2 >> "
    "+ijk~ij | i:16:{0},j:16:{0},k:16 | i j k k' i' j' i'' j'' 0 | i:p,j:p,i':t,j':t,i'':u,j'':u"
)
"""A product in blocks of 256 threads, each with some neighbors along both sides."""
OF_F64 = (
    "ik*kj~ijk | i:16:4,j:2:16:2,k:16 | i j k 0 1 k' j' i' j'' i'' j''' | 0:s2,1:s2 >> +ijk~ij"
    " | i:16:4,j:2:16:2,k:16 | i j k k' j' i' j'' i'' j''' 0 | i:p,j:p,j':u,i':t,j'':t,i'':u,j''':u"
)
"""The same of f64: two neighbors along rows fill a vector."""


def lowered(text: str, dtype: str = "f32", shapes: list[tuple[int, ...]] | None = None) -> Program:
    """A program of one type."""
    graph = graph_of(text_component(text), "f")
    return lower(infer(graph, [dtype] * len(graph.inputs), shapes=shapes), GPU)


def strides(program: Program) -> list[int]:
    """By how much the last loop of each spread steps along what it stores one by one for a caller."""
    steps: list[int] = []
    for s in statements_within(program.kernels[0].body):
        if isinstance(s, ThreadLoop) and s.over == "threads" and s.loops:
            for x in statements_within(s.body):
                buffer = program.buffers[x.buffer] if isinstance(x, Store) else None
                if (
                    isinstance(x, Store)
                    and buffer
                    and (buffer.role == "output" or buffer.whole() is not None)
                ):
                    along = {v: c for c, v in x.index[-1].terms}
                    steps.append(along.get(s.loops[-1].variable, 0))
    return steps


@pytest.mark.parametrize(
    ("text", "dtype", "shapes", "wanted"),
    [
        (PRODUCT, "f32", None, [4, 1]),  # vectors, and what no vectors fit
        (PRODUCT, "f32", [(130, 64), (64, 70)], [1]),  # rows that never are whole vectors
        (SQUARE.format(2), "f32", [(128, 64), (64, 128)], [1]),  # two neighbors are no vector
        (PRODUCT, "f32", [(1024, 64), (64, 1024)], [4]),  # rows that vectors fit
        (PRODUCT, "f32", [(1000, 64), (64, 1000)], [4, 1]),  # and tiles do not
        (PRODUCT, "f32", [(1000, 64), (64, 999)], [1]),
    ],
)
def test_threads_store_side_by_side(
    text: str, dtype: str, shapes: list[tuple[int, ...]] | None, wanted: list[int]
) -> None:
    assert sorted(set(strides(lowered(text, dtype, shapes))), reverse=True) == wanted


@pytest.mark.parametrize(
    ("text", "dtype", "shapes", "wanted"),
    [
        (SQUARE.format(4), "f32", [(1024, 64), (64, 1024)], 1),  # nothing is held
        (SQUARE.format(4), "f32", [(1000, 64), (64, 1000)], 2),
        (SQUARE.format(4), "f32", [(1000, 64), (64, 999)], 2),
        (OF_F64, "f64", [(1000, 64), (64, 999)], 2),
        (PRODUCT, "f32", [(2000, 500), (500, 1999)], 1),  # registers have no room for two before
        (PRODUCT, "f32", None, 1),  # rows of any length take registers of their own
    ],
)
def test_what_is_held_leaves_room_for_two_blocks(
    text: str, dtype: str, shapes: list[tuple[int, ...]] | None, wanted: int
) -> None:
    """Of their registers; and of shared memory on every device, where their copies leave that."""
    program = lowered(text, dtype, shapes)
    (spread,) = program.kernels[0].body
    assert isinstance(spread, ThreadLoop)
    assert spread.blocks == wanted
    taken = resources_of(program, program.kernels[0])
    assert GPU.device is not None
    assert taken.registers * spread.threads * wanted <= GPU.device.registers
    if dtype == "f32" and wanted == 2:
        assert 2 * taken.shared <= min(each.shared_bytes for each in MULTIPROCESSORS)
