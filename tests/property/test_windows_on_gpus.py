"""Convolutions by blocks of a GPU: right at the ends of dimensions, and read without bank conflicts."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import i
from ilang.codegen.emulator.program import load
from ilang.codegen.emulator.runtime import emulator
from ilang.codegen.targets import cuda
from ilang.core.machine import GPU
from ilang.core.pipeline import explain, graph_of, infer, lower, text_component

PADDED = "nc(y+u-1)(x+v-1)*ocuv~noyxcuv >> +noyxcuv~noyx"
TEXTS = {
    "padded": (PADDED, ("n", "c", "h", "w"), ("o", "c", 3, 3)),
    "strides": (
        "nc(2y+u)(2x+v)*ocuv~noyxcuv >> +noyxcuv~noyx",
        ("n", "c", "h", "w"),
        ("o", "c", 3, 3),
    ),
    "spread taps": (
        "nc(y+2u)(x+2v)*ocuv~noyxcuv >> +noyxcuv~noyx",
        ("n", "c", "h", "w"),
        ("o", "c", 2, 3),
    ),
    "one dimension": ("nc(x+v)*ocv~noxcv >> +noxcv~nox", ("n", "c", "w"), ("o", "c", 5)),
    "one channel": ("n(y+u)(x+v)*ouv~noyxuv >> +noyxuv~noyx", ("n", "h", "w"), ("o", 3, 3)),
    "groups": (
        "ngc(y+u)(x+v)*gocuv~ngoyxcuv >> +ngoyxcuv~ngoyx",
        ("n", 2, "c", "h", "w"),
        (2, "o", "c", 3, 3),
    ),
    "channels last": (
        "n(y+u-1)(x+v-1)c*uvco~nyxouvc >> +nyxouvc~nyxo",
        ("n", "h", "w", "c"),
        (3, 3, "c", "o"),
    ),
}
EXTENTS = ({"n": 1, "c": 5, "o": 19, "h": 21, "w": 37}, {"n": 2, "c": 40, "o": 8, "h": 9, "w": 70})
EMPTY = ({"n": 0, "c": 3, "o": 9, "h": 9, "w": 9}, {"n": 1, "c": 0, "o": 9, "h": 9, "w": 9})


@pytest.mark.parametrize("name", TEXTS)
def test_blocks_of_windows_are_right(name: str) -> None:
    text, *dims = TEXTS[name]
    random, program = np.random.default_rng(0), i(text)
    for extents in (*EXTENTS, *(EMPTY if name == "padded" else ())):
        shapes = [tuple(extents.get(str(n), n) for n in each) for each in dims]
        arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
        exact = program(*(each.astype(np.float64) for each in arrays), target="numpy")
        sizes = program(*(abs(each).astype(np.float64) for each in arrays), target="numpy")
        result = program(*arrays, target="cuda-emulated")
        assert result.shape == exact.shape
        assert (abs(result - exact) <= 1e-5 * sizes + 1e-30).all(), extents


def schedule_of(text: str, *shapes: tuple[int, ...]) -> str:
    """The schedule that is chosen for the sum of a convolution."""
    graph = graph_of(text_component(text), "f")
    *_, row = explain(graph, shapes=shapes or None, machine=GPU).execution.schedule
    return row.schedule


def test_a_block_computes_channels_and_windows() -> None:
    chosen = schedule_of(PADDED, (1, 64, 224, 224), (64, 64, 3, 3))
    assert "x'':t,o'':t,o''':u,x''':u" in chosen


def test_few_results_have_a_thread_each() -> None:
    assert schedule_of(PADDED, (1, 2, 5, 5), (3, 2, 3, 3)).startswith("|| n o y x c u v")


def test_operands_are_read_without_conflicts() -> None:
    """And results stored in whole sectors; weights, which are copied across, meet in few banks."""
    shapes = ((1, 8, 32, 64), (16, 8, 3, 3))
    program = lower(infer(graph_of(text_component(PADDED), "f"), shapes=[*shapes]), GPU)
    text = cuda.emit(program)
    arrays = [np.ones(shape, np.float32) for shape in (*shapes, (1, 16, 32, 64))]
    with emulator().settings(profile=1):
        load(text, "f.cu", checked=True).call("f_host", np.zeros(1, np.int64), *arrays)
        lines = [line.strip() for line in text.splitlines()]
        counted = [(each, lines[each.line - 1]) for each in emulator().take_profile()]
    reads = [each.ratio() for each, _ in counted if (each.space, each.access) == ("shared", "read")]
    assert reads
    assert max(reads) == 1.0
    stores = [
        each.ratio() for each, _ in counted if (each.space, each.access) == ("global", "write")
    ]
    assert max(stores) == 1.0
    written = [
        each.ratio() for each, _ in counted if (each.space, each.access) == ("shared", "write")
    ]
    assert max(written) < 4
