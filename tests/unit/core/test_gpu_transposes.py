"""Copies that are transposed as they are written: rows and threads so that no two of a warp are in one bank."""

from __future__ import annotations

import pytest

from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import Program, statements_within
from ilang.core.machine import GPU
from ilang.core.passes.gpu.transposes import rows_for
from ilang.core.pipeline import graph_of, infer, lower, text_component

TILES = (
    "ik*kj~ijk | i:32,j:32,k:16 | i j k 0 1 k' i' j' "
    ">> +ijk~ij | i:32,j:32,k:16 | i j k k' i' j' 0 | i:y,j:x,i':ty,j':tx"
)


def program(dtype: str) -> Program:
    """A product of blocks of 32 by 32, of one type."""
    return lower(infer(graph_of(text_component(TILES), "f"), [dtype, dtype]), GPU)


def copied(dtype: str) -> int:
    """The number of the copy of the first operand."""
    names = [buffer.name for buffer in program(dtype).buffers]
    return names.index("in0_copy")


@pytest.mark.deep
@pytest.mark.parametrize(("dtype", "lanes"), [("f32", 32), ("f64", 16)])
@pytest.mark.parametrize("row", [1, 16, 33, 128])
@pytest.mark.parametrize("sector", [2, 4, 8])
def test_threads_down_columns_have_banks_of_their_own(
    dtype: str, lanes: int, row: int, sector: int
) -> None:
    """As many threads as banks have elements at a time, so many of them down the columns."""
    length = rows_for(program(dtype), copied(dtype), sector, row)
    assert row <= length
    assert length % (16 // (4 if dtype == "f32" else 8)) == 0  # rows are read 16 bytes at a time
    places = {(n % sector * length + n // sector) % lanes for n in range(lanes)}
    assert len(places) == lanes


def test_threads_with_vectors_have_banks_of_their_own_too() -> None:
    """Two vectors of four elements along a sector, sixteen rows: one element of each at a time."""
    length = rows_for(program("f32"), copied("f32"), 8, 128)
    assert len({(n % 2 * 4 * length + n // 2) % 32 for n in range(32)}) == 32


@pytest.mark.parametrize("row", [4, 8, 16, 32])
def test_rows_that_are_shorter_than_a_warp_are_told_apart(row: int) -> None:
    """Two vectors along a sector, all rows there are, and as many sectors as threads are left for."""
    length = rows_for(program("f32"), copied("f32"), 8, row)
    down = [(n % 2 * 4 + n // 2 // row * 8, n // 2 % row) for n in range(32)]
    assert len({(column * length + element) % 32 for column, element in down}) == 32


@pytest.mark.parametrize(("dtype", "row"), [("f32", 36), ("f64", 36)])
def test_only_transposed_copies_have_longer_rows(dtype: str, row: int) -> None:
    shapes = {
        buffer.name: [program(dtype).sizes[size].fixed for size in buffer.dims]
        for buffer in program(dtype).buffers
        if buffer.space == "shared"
    }
    assert shapes == {"in0_copy": [16, row], "in1_copy": [16, 32]}


def test_a_sector_is_shared_out_before_the_next_row() -> None:
    loops = [
        [program("f32").sizes[loop.size].fixed for loop in s.loops]
        for kernel in program("f32").kernels
        for s in statements_within(kernel.body)
        if isinstance(s, ThreadLoop) and s.over == "threads"
    ]
    assert [2, 32, 2] in loops  # vectors of four
    assert [2, 32, 8] in loops
