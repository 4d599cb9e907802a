"""Rows of known length on a GPU: the lanes that share one, what they keep in registers, and that results are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.rewriting import accesses
from ilang.core.machine import GPU
from ilang.core.schedule.choose.gpu_price import FULL
from ilang.core.schedule.choose.gpu_sums import SumWork, priced_lanes
from ilang.core.schedule.choose.tile import RowLanes
from tests.shares import one_in

SOFTMAX = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"


def scheduled(text: str, *shapes: tuple[int, ...]) -> list[str]:
    """The chosen schedule of a component, for arrays of some shapes."""
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    told = pipeline.explain(graph, list(shapes), machine=GPU).execution.schedule
    return [f"{row.text} {row.schedule}" for row in told]


def lanes_of_row(extent: int, rows: int | None, width: int) -> RowLanes | None:
    """The lanes of a kernel of four values of all elements and two of rows; None where registers have no room."""
    work = SumWork(FULL if rows is None else rows, (extent,), width, 4, 2, is_kept=True)
    return next((lanes for lanes, _ in priced_lanes(work, GPU)), None)


def bound(text: str, *shapes: tuple[int, ...]) -> tuple[ir.Program, ThreadLoop]:
    """A component with its loops mapped to threads, and the one kernel that it is."""
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    program = pipeline.lower(pipeline.infer(graph, shapes=list(shapes)), GPU)
    (kernel,) = program.kernels
    (spread,) = kernel.body
    assert isinstance(spread, ThreadLoop)
    return program, spread


def test_registers_keep_what_several_passes_need() -> None:
    """A softmax reads each element once, and computes each power once."""
    assert scheduled(SOFTMAX, (65536, 1024)) == [
        ">ij~i | j:32:4 | i j' j j'' | j':l,j:u,j'':u",
        "ij-i~ij | j:32:4 | i 1 j' j j''",
        "^ij~ij | j:32:4 | i j' j j'' 0 | j':l,j:u,j'':u",
        "+ij~i | j:32:4 | i 0 j' j j'' | j':l,j:u,j'':u",
        "ij/i~ij | j:32:4 | i 0 1 j' j j'' | i:p,j':l,j:u,j'':u",
    ]
    program, spread = bound(SOFTMAX, (65536, 1024))
    places = [(program.buffers[n].role, program.buffers[n].space) for n, _ in accesses(spread.body)]
    assert places.count(("input", "")) == 2  # where arrays are aligned, and where they are not
    assert {space for role, space in places if role == "temporary"} == {"local"}
    assert spread.lanes == 32


def test_rows_that_registers_cannot_keep_are_read_again() -> None:
    assert lanes_of_row(100_000, None, 4) is None
    assert scheduled(SOFTMAX, (512, 100_000))[-1] == "ij/i~ij || i 1 j 0 | i:p,j:t"


def test_few_rows_have_more_lanes() -> None:
    many, few = (lanes_of_row(1024, rows, 4) for rows in (100_000, 100))
    assert many is not None
    assert few is not None
    assert many.lanes < few.lanes


def test_rows_of_wide_elements_keep_fewer() -> None:
    narrow, wide = (lanes_of_row(1024, 100_000, width) for width in (4, 8))
    assert narrow is not None
    assert wide is not None
    assert (narrow.vector, wide.vector) == (4, 2)
    assert narrow.lanes < wide.lanes


@pytest.mark.parametrize(
    "columns", one_in(3, [1, 2, 3, 4, 7, 10, 12, 33, 64, 100, 128, 999, 1000, 1026, 4096])
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_any_length_are_right(columns: int, dtype: type) -> None:
    """Ends of rows, vectors that do not fit, groups of lanes that have no row, and arrays that begin anywhere."""
    x: Any = np.random.default_rng(columns).normal(size=(9, columns)).astype(dtype)
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(-1, keepdims=True))
    got = i(SOFTMAX)(x, target="cuda-emulated")
    np.testing.assert_allclose(got, powers / powers.sum(-1, keepdims=True), 1e-5, 1e-7)
    got = i("+ij~i")(x, target="cuda-emulated")
    np.testing.assert_allclose(got, wide.sum(-1), 1e-5, 1e-5)


def test_no_rows_are_right() -> None:
    assert np.asarray(i(SOFTMAX)(np.zeros((0, 10), np.float32), target="cuda-emulated")).size == 0
    assert np.asarray(i("+ij~i")(np.zeros((3, 0), np.float32), target="cuda-emulated")).sum() == 0


def test_few_rows_have_parts_only_where_registers_do_not_keep_them() -> None:
    assert scheduled("+ij~i", (16, 8192)) == ["+ij~i | j:256 | i j' j | i:p,j':t,j:u"]
    assert scheduled("+ij~i", (16, 131072)) == ["+ij~i | j:4096 | j i j' | j:p,i:p,j':t"]
    assert len(bound(SOFTMAX, (16, 8192))[0].kernels) == 1


def test_a_last_turn_that_few_blocks_have_is_worth_parts() -> None:
    """Of 200 rows 68 multiprocessors would have two each, and 64 one."""
    assert scheduled("+ij~i", (131, 50_000)) == ["+ij~i || i j | i:p,j:t"]
    assert scheduled("+ij~i", (200, 1_000_000)) == ["+ij~i | j:200704 | j i j' | j:p,i:p,j':t"]


@pytest.mark.parametrize("text", ["+ij~i", SOFTMAX])
def test_candidates_of_rows_are_explained(text: str) -> None:
    shaped = pipeline.infer(
        pipeline.graph_of(pipeline.text_component(text), "f"), shapes=[(4096, 1024)]
    )
    (priced,) = pipeline.why(shaped, GPU).priced
    assert len(priced.candidates) == 3
    assert scheduled(text, (4096, 1024))[-1].endswith(priced.candidates[0].schedule)
