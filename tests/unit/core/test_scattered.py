"""Products that are summed and scattered: which are summed first, and right values."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ilang import i
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.schedule.collapsing import shaped_to_collapsed

STRIDED = "nc(2y+u-1)(2x+v-1)*ocuv~noyxcuv >> +noyxcuv~noyx"


def summed(text: str, *shapes: tuple[int, ...], machine: Machine = CPU) -> list[str]:
    """The names of the sums that the gradient of a program scatters."""
    shaped = i(text).grad().program.shaped(shapes, None)
    collapsed = shaped_to_collapsed(shaped, machine)
    return [
        tensor.name
        for tensor, node in zip(collapsed.tensors, collapsed.nodes, strict=True)
        if isinstance(node, Assignment) and tensor.name.endswith("_terms")
    ]


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        (STRIDED, [(2, 3, 9, 9), (8, 3, 3, 3)], ["dout_terms"]),
        (STRIDED.replace("2", ""), [(2, 3, 9, 9), (8, 3, 3, 3)], []),  # windows are gathered
        ("nc(2y+u)*cu~ncyu >> +ncyu~ncy", [(2, 3, 9), (3, 3)], []),  # nothing is summed
        (STRIDED, [(2, 3, 9, 9), (1, 3, 3, 3)], []),  # of one term
    ],
)
def test_what_is_summed_first(
    text: str, shapes: list[tuple[int, ...]], expected: list[str]
) -> None:
    assert summed(text, *shapes) == expected
    assert summed(text, *shapes, machine=GPU) == []


@pytest.mark.parametrize("seed", range(4))
def test_values(seed: int) -> None:
    """Random strides, dilations and paddings, in both types; those of open extents are scattered as they were."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    step, dilation = draw.choice((2, 3)), draw.choice((1, 2))
    offset, dtype = draw.choice(("", "-1", "-2")), draw.choice((np.float32, np.float64))
    text = f"nc({step}y+{dilation}u{offset})*ocu~nocyu >> +nocyu~noy"
    x = numbers.standard_normal((2, 3, draw.randrange(9, 30))).astype(dtype)
    k = numbers.standard_normal((draw.choice((2, 5, 16)), 3, 3)).astype(dtype)
    given = (x, k, np.ones_like(i(text)(x, k)))
    slope = i(text).grad()
    for got, want in zip(slope(*given), slope(*given, target="numpy"), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
