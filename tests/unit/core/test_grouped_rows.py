"""Columns of short rows: reduced by groups of rows that are whole vectors, and right for every number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ilang import Component, einx, i
from ilang.core import pipeline
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.schedule.collapsing import shaped_to_collapsed
from tests.shares import one_in


def steps(text: str, *shapes: tuple[int, ...], machine: Machine = CPU) -> list[str]:
    """The values that the step adds to a program, each with its extents."""
    graph = pipeline.program_graph(pipeline.text_program(text))
    shaped = shaped_to_collapsed(pipeline.infer(graph, shapes=[*shapes]), machine)
    extents = [[shaped.sizes[dim].fixed for dim in tensor.dims] for tensor in shaped.tensors]
    return [
        f"{tensor.name} {'x'.join(map(str, each))}"
        for tensor, each in zip(shaped.tensors, extents, strict=True)
        if tensor.name not in ("in0", "in1", "out")
    ]


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        (">ac~c", [(992, 3)], ["in0_flat 2976", "out_rows 48"]),
        (">ac~c", [(1000, 3)], ["in0_flat 3000", "out_rows 48", "out_whole 3", "out_end 3"]),
        ("+abc~ac", [(5, 64, 2)], ["in0_flat 5x128", "out_rows 5x16"]),
        ("+bac~ac", [(5, 64, 2)], ["in0_flat 5x128", "out_flat 128"]),
        ("ac*ac~ac >> +ac~c", [(64, 4), (64, 4)], ["product 64x4"]),  # is computed where it is used
        ("+ac~c", [(64, 16)], []),  # a row is a vector already
        ("+ac~c", [(20, 3)], []),  # as many rows would be added up at the end
        ("+ac~a", [(64, 3)], []),
        ("*ac~c", [(64, 4)], []),
        ("+ca~c", [(3, 64)], []),
        ("+ac~c || c a", [(64, 4)], []),
    ],
)
def test_what_is_grouped(text: str, shapes: list[tuple[int, ...]], expected: list[str]) -> None:
    assert steps(text, *shapes) == expected
    assert not any("_rows" in each for each in steps(text, *shapes, machine=GPU))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", one_in(3, [(32, 2), (33, 3), (63, 2), (65, 4), (257, 7), (1000, 5), (2001, 15)])
)
def test_values(shape: tuple[int, int], dtype: type) -> None:
    rows, length = shape
    draw = np.random.default_rng(length)
    x: Any = draw.standard_normal((3, rows, length)).astype(dtype)
    x[0, draw.integers(rows), 0] = np.inf
    x[1, rows - 1, 1] = np.nan
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    for name, right in (
        ("sum", x.astype(np.float64).sum(1)),
        ("max", x.max(1)),
        ("min", x.min(1)),
        ("mean", x.astype(np.float64).mean(1)),
    ):
        component = getattr(einx, name)("b [a] c")
        np.testing.assert_allclose(component(x), right, tolerance, tolerance * 100)
        for given, each in zip(x, right, strict=True):
            component = getattr(einx, name)("[a] c")
            np.testing.assert_allclose(component(given), each, tolerance, tolerance * 100)


def test_zeros_keep_their_signs() -> None:
    x = np.full((1000, 3), -0.0, np.float32)
    x[999, 2] = 0.0
    assert not np.signbit(i("+ac~c")(x)).any()  # a sum begins at +0
    assert np.signbit(i(">ac~c")(x)).tolist() == np.signbit(i(">ac~c")(x, target="numpy")).tolist()


def test_threads_change_no_bit() -> None:
    x = np.random.default_rng(1).standard_normal((300_001, 3)).astype(np.float32)
    component: Component = i("+ac~c")
    assert component(x, threads=1).tobytes() == component(x, threads=2).tobytes()
