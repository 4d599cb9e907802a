"""Loops that the threads of a GPU share: never two that touch one element."""

from __future__ import annotations

import pytest

from ilang.core import pipeline
from ilang.core.check.gpu import verify, verify_ordered
from ilang.core.diagnostic import InternalError, ScheduleError
from ilang.core.ir.gpu import Barrier, ThreadLoop
from ilang.core.ir.kernel import Program, map_statements
from ilang.core.machine import GPU
from ilang.core.record import replace


def program(text: str, **known: object) -> Program:
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    return pipeline.lower(pipeline.infer(graph, **known), GPU)  # type: ignore[arg-type]


def test_threads_that_meet_are_told() -> None:
    right = program("ij~j || i j")
    kernel = right.kernels[1]
    (spread,) = kernel.body
    assert isinstance(spread, ThreadLoop)
    (loop,) = spread.body
    wrong = replace(spread, loops=(replace(loop, body=()),), body=loop.body)  # type: ignore[union-attr]
    turned = replace(wrong, body=(replace(spread.loops[0], body=wrong.body),))
    with pytest.raises(InternalError, match="no other thread touches"):
        verify(replace(right, kernels=(replace(kernel, body=(turned,)),), calls=()))


TILES = (
    "ik*kj~ijk | i:16:4,j:16:4,k:8 | i j k 0 1 i' j' k' i'' j'' "
    ">> +ijk~ij | i:16:4,j:16:4,k:8 | i j k i' j' k' i'' j'' 0"
)


def test_a_missing_barrier_is_told() -> None:
    right = program(TILES)
    (kernel,) = right.kernels
    bare = map_statements(kernel.body, lambda s: None if isinstance(s, Barrier) else s)
    with pytest.raises(InternalError, match="wait before they meet"):
        verify_ordered(replace(right, kernels=(replace(kernel, body=bare),)))


def test_more_threads_than_a_block_has_are_refused() -> None:
    with pytest.raises(ScheduleError, match="2,048 threads"):
        program("ij+ij~ij | i:64,j:32 | i j i' j'")


def test_what_a_block_has_no_room_for_is_done_by_single_threads() -> None:
    rows = program("ij~ij | i:4 | i 0 i' j")  # four rows of any length
    assert [s.over for s in rows.kernels[0].body if isinstance(s, ThreadLoop)] == ["grid"]
