"""Windows that reach outside of what they read: which arrays are stored with what is outside, and right values."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.schedule.collapsing import shaped_to_collapsed
from tests.shares import one_in

MOST = ">nc(y+u:3-1)(x+v:3-1)~ncyx"
DEPTHWISE = "nc(y+u-1)(x+v-1)*cuv~ncyxuv >> +ncyxuv~ncyx"
IMAGES = (2, 4, 9, 10)


def padded(text: str, *shapes: tuple[int, ...], machine: Machine = CPU) -> list[str]:
    """The names of the arrays that are stored with what is outside of them."""
    graph = pipeline.program_graph(pipeline.text_program(text))
    shaped = shaped_to_collapsed(pipeline.infer(graph, shapes=shapes), machine)
    return [
        tensor.name
        for tensor, node in zip(shaped.tensors, shaped.nodes, strict=True)
        if isinstance(node, Assignment) and tensor.name.endswith("_padded")
    ]


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        (MOST, [IMAGES], ["in0_padded"]),
        (MOST.replace(">", "+"), [IMAGES], ["in0_padded"]),
        (DEPTHWISE, [IMAGES, (4, 3, 3)], ["in0_padded"]),
        (f"(^ncyx~ncyx | I) >> {DEPTHWISE}", [IMAGES, (4, 3, 3)], ["exps_padded"]),
        (">nc(y+u:3)(x+v:3)~ncyx", [IMAGES], []),  # all windows are inside
        (">n(y+u:3-1)c~nyc", [(2, 9, 10)], []),  # vectors along c ask nothing
        (">n(2y+u:2-1)~ny", [(2, 90)], []),  # an element is in one window
        (MOST, [(1, 1, 700, 800)], []),  # no cache keeps the copy
        ("(y+u:3-1)[u<y]*u~yu >> +yu~y", [(90,), (3,)], []),  # a guard of another kind
        ("nc(y+u-1)*ocu~noycu >> +noycu~noy", [(2, 8, 90), (16, 8, 3)], []),  # a tile copies it
        (f"{MOST} || n c y x u v", [IMAGES], []),  # the loops are a person's
    ],
)
def test_what_is_stored(text: str, shapes: list[tuple[int, ...]], expected: list[str]) -> None:
    assert padded(text, *shapes) == expected
    assert padded(text, *shapes, machine=GPU) == []


def test_windows_of_open_extents_ask_where_they_are() -> None:
    graph = pipeline.program_graph(pipeline.text_program(MOST))
    shaped = shaped_to_collapsed(pipeline.infer(graph), CPU)
    assert not any(tensor.name.endswith("_padded") for tensor in shaped.tensors)


@pytest.mark.parametrize("seed", one_in(3, range(12)))
def test_values(seed: int) -> None:
    """Random windows of one and two axes, of floats with infinities and of integers, and their gradients."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    for _ in range(4):
        axes = draw.choice((1, 2))
        parts, extents = [], []
        for axis, inner in (("y", "u"), ("x", "v"))[:axes]:
            window, step, dilation = (
                draw.choice((2, 3, 5)),
                draw.choice((1, 1, 2)),
                draw.choice((1, 2)),
            )
            offset = draw.randrange(1, 2 * window)
            parts.append(f"({step}{axis}+{dilation}{inner}:{window}-{offset})")
            extents.append(draw.randrange(dilation * window, 40))
        text = f"{draw.choice('>+<')}n{''.join(parts)}~n{'yx'[:axes]}"
        x = numbers.standard_normal((3, *extents)).astype(draw.choice((np.float32, np.float64)))
        if draw.random() < 0.3:
            x.flat[numbers.integers(x.size)] = draw.choice((np.inf, -np.inf, np.nan))
        component = i(text)
        want = component(x, target="numpy")
        np.testing.assert_allclose(component(x), want, rtol=1e-5, atol=1e-5, err_msg=text)
        whole = numbers.integers(-100, 100, x.shape).astype(np.int32)
        np.testing.assert_array_equal(component(whole), component(whole, target="numpy"), text)
        given = (x, np.ones_like(want))
        slope = component.grad()
        np.testing.assert_allclose(
            slope(*given), slope(*given, target="numpy"), rtol=1e-5, atol=1e-5, err_msg=text
        )
