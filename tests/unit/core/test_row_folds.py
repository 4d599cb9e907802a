"""Rows of tiles that adjacent lanes reduce together: values of rows are in registers, and results are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import CombineThreads, ThreadLoop
from ilang.core.machine import GPU

SCORES = "ik*jk~ijk >> +ijk~ij"
SOFTMAX = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"
CAUSAL = "(I & >ij[j<=i]~i) >> ij-i~ij >> ^ij~ij >> (I & +ij[j<=i]~i) >> ij[j<=i]/i~ij"
MIX = "ij*jd~ijd >> +ijd~id"


def lowered(text: str) -> ir.Program:
    """A component for a GPU, with open extents."""
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    return pipeline.lower(pipeline.infer(graph), GPU)


@pytest.mark.parametrize("softmax", [SOFTMAX, CAUSAL])
def test_lanes_reduce_the_rows_of_a_tile(softmax: str) -> None:
    """The maximum and the sum of each row, in the 16 lanes that have it, and nothing of a row is in shared memory."""
    program = lowered(f"{SCORES} >> {softmax} >> {MIX}")
    kernel = program.kernels[-1]
    spreads = list(ir.every(kernel.body, ThreadLoop))[1:]
    combined = [s for spread in spreads for s in ir.every(spread.body, CombineThreads)]
    assert {(s.primitive, s.dtype, s.threads) for s in combined} == {
        ("max", "f32", 16),
        ("add", "f32", 16),
    }
    rows = [b for b in program.buffers if b.name.endswith(("_run", "_factor"))]
    assert rows
    assert all(buffer.space == "local" for buffer in rows)


def attention(q: Any, k: Any, v: Any, *, is_causal: bool) -> Any:
    scores = q @ k.T
    if is_causal:
        scores = np.where(np.tri(*scores.shape) > 0, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (70, 33), (64, 64), (130, 65), (5, 200)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_tiles_of_any_size_are_right(rows: int, columns: int, is_causal: bool) -> None:
    """Ends of rows and columns, guards, and lanes beyond them that combine nothing."""
    columns = rows if is_causal else columns
    random = np.random.default_rng(rows)
    q, k, v = (random.normal(size=(n, 8)).astype(np.float32) for n in (rows, columns, columns))
    text = f"{SCORES} >> {CAUSAL if is_causal else SOFTMAX} >> {MIX}"
    got = i(text).dynamic()(q, k, v, target="cuda-emulated")
    wide: list[Any] = [each.astype(np.float64) for each in (q, k, v)]
    np.testing.assert_allclose(got, attention(*wide, is_causal=is_causal), 1e-4, 1e-5)


def test_tiles_beyond_a_guard_are_left_out() -> None:
    """Lanes that have nothing of a row combine to nothing."""
    graph = pipeline.graph_of(pipeline.text_component(f"{SCORES} >> {CAUSAL} >> {MIX}"), "f")
    text = pipeline.stage_text(graph, "tightened", machine=GPU)
    assert "ceil((64i+64) / 64)" in text
