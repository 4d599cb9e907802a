"""Contractions whose rows move windows, padded or not, in every way that they are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang.core.ir.known_extents import extents_of
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import CPU
from ilang.core.pipeline import graph_of, infer, text_component
from ilang.core.record import replace
from ilang.core.schedule.choose.tile import tiling
from tests.property import native
from tests.property.batch import Batch
from tests.property.meaning import TYPES
from tests.property.test_fuzz import needs_compiler
from tests.shares import share

Array = npt.NDArray[Any]

PLANE = "nc(y+u-1)(x+v-1)*ocuv~noyxcuv >> +noyxcuv~noyx"
CASES: dict[str, tuple[str, str, str, int, int, int]] = {
    PLANE: ("ncyx", "ocuv", "noyx", 1, 1, 1),
    "nc(y+u)(x+v)*ocuv~noyxcuv >> +noyxcuv~noyx": ("ncyx", "ocuv", "noyx", 0, 1, 1),
    "nc(2y+u-1)(2x+v-1)*ocuv~noyxcuv >> +noyxcuv~noyx": ("ncyx", "ocuv", "noyx", 1, 2, 1),
    "nc(y+2u-2)(x+2v-2)*ocuv~noyxcuv >> +noyxcuv~noyx": ("ncyx", "ocuv", "noyx", 2, 1, 2),
    "nc(x+v-1)*ocv~noxcv >> +noxcv~nox": ("ncx", "ocv", "nox", 1, 1, 1),
    "(x+v)*ov~oxv >> +oxv~ox": ("x", "ov", "ox", 0, 1, 1),
    "c(y+u-1)(x+v-1)*ocuv~oyxcuv >> +oyxcuv~oyx": ("cyx", "ocuv", "oyx", 1, 1, 1),
    "n(y+u-1)(x+v-1)c*uvco~nyxouvc >> +nyxouvc~nyxo": ("nyxc", "uvco", "nyxo", 1, 1, 1),
    "ngc(y+u-1)(x+v-1)*gocuv~ngoyxcuv >> +ngoyxcuv~ngoyx": ("ngcyx", "gocuv", "ngoyx", 1, 1, 1),
    "nc(y+u-1)(x+v-1)*pocuv~npoyxcuv >> +npoyxcuv~npoyx": ("ncyx", "pocuv", "npoyx", 1, 1, 1),
    "c(z+t)(y+u)(x+v)*octuv~ozyxctuv >> +ozyxctuv~ozyx": ("czyx", "octuv", "ozyx", 0, 1, 1),
    f"{PLANE} >> >noyx~noyx": ("ncyx", "ocuv", "noyx", 1, 1, 1),
}
"""Programs: the axes of the image, the weights and the result; padding, stride and dilation of the windows."""
TAPS = {"x": "v", "y": "u", "z": "t"}
SIZES = (
    {"n": 1, "c": 3, "o": 33, "p": 2, "g": 1, "x": 9, "y": 5, "z": 3, "v": 3, "u": 3, "t": 3},
    {"n": 2, "c": 35, "o": 65, "p": 1, "g": 2, "x": 17, "y": 4, "z": 2, "v": 2, "u": 3, "t": 2},
    {"n": 3, "c": 70, "o": 8, "p": 3, "g": 3, "x": 8, "y": 8, "z": 8, "v": 3, "u": 1, "t": 1},
    {"n": 1, "c": 1, "o": 1, "p": 1, "g": 1, "x": 1, "y": 1, "z": 1, "v": 1, "u": 1, "t": 1},
    {"n": 2, "c": 0, "o": 9, "p": 2, "g": 1, "x": 12, "y": 9, "z": 9, "v": 3, "u": 3, "t": 1},
    {"n": 0, "c": 4, "o": 40, "p": 8, "g": 2, "x": 30, "y": 13, "z": 2, "v": 4, "u": 5, "t": 2},
    {"n": 9, "c": 9, "o": 0, "p": 9, "g": 9, "x": 9, "y": 9, "z": 9, "v": 1, "u": 2, "t": 3},
    {"n": 1, "c": 61, "o": 16, "p": 9, "g": 8, "x": 41, "y": 1, "z": 8, "v": 3, "u": 1, "t": 1},
)


def _windows(image: Array, axes: str, sizes: dict[str, int], how: tuple[int, int, int]) -> Array:
    """An image with an axis more for each axis that windows walk: their elements."""
    pad, stride, dilation = how
    for axis in [axis for axis in axes if axis in TAPS]:
        at, taps = axes.index(axis), sizes[TAPS[axis]]
        padded = np.pad(image, [(pad * (d == at),) * 2 for d in range(image.ndim)])
        count = max(0, (padded.shape[at] - dilation * (taps - 1) - 1) // stride + 1)
        index = np.arange(count)[:, None] * stride + np.arange(taps) * dilation
        image = np.moveaxis(np.take(padded, index, at), at + 1, -1)
    return image


def _example(
    case: tuple[str, str, str, int, int, int], sizes: dict[str, int], dtype: str
) -> tuple[list[Array], Array]:
    """Inputs, of whole numbers that sum exactly, and the result."""
    image, weights, result, *how = case
    numbers = np.random.default_rng(0)
    inputs = [
        numbers.integers(-3, 4, [sizes[axis] for axis in axes]).astype(TYPES[dtype])
        for axes in (image, weights)
    ]
    seen = _windows(inputs[0], image, sizes, (how[0], how[1], how[2]))
    taps = "".join(TAPS[axis] for axis in image if axis in TAPS)
    return inputs, np.einsum(f"{image}{taps},{weights}->{result}", seen, inputs[1], optimize=True)


def _fits(case: tuple[str, str, str, int, int, int], sizes: dict[str, int]) -> bool:
    """Whether a window has a place in the image."""
    image, *_, pad, _, dilation = case
    axes = [axis for axis in image if axis in TAPS]
    return all(sizes[axis] + 2 * pad > dilation * (sizes[TAPS[axis]] - 1) for axis in axes)


@needs_compiler
@pytest.mark.parametrize(
    ("number", "mode", "dtype"),
    [
        *((n, mode, "f32") for n, mode in enumerate(("sanitized", "fast", "baseline", "threads"))),
        pytest.param(4, "avx2", "f32", marks=native.needs_avx2),
        *((n, mode, "f64") for n, mode in ((5, "fast"), (6, "baseline"))),
    ],
)
def test_windows(number: int, mode: str, dtype: str) -> None:
    """All of them sanitized, a share in each other mode."""
    batch, cases = Batch(mode), [*CASES.items()]
    for text, case in cases if mode == "sanitized" else share(cases, number):
        shaped = infer(graph_of(text_component(text), "f"), [dtype, dtype])
        batch.add(shaped)
        for sizes in SIZES:
            if _fits(case, sizes):
                inputs, result = _example(case, sizes, dtype)
                batch.call(shaped, inputs, [np.maximum(result, 0) if ">noyx" in text else result])
    batch.agree(0)


def test_thin_channels_are_no_lanes() -> None:
    """Lanes are along the channels only where they may fill a vector."""
    for width, lanes in ((16, 1), (15, 3)):
        shaped = infer(graph_of(text_component(PLANE), "f"))
        node = shaped.nodes[-1]
        assert isinstance(node, Assignment)
        axis = node.output_axes()[1]
        sizes = list(shaped.sizes)
        sizes[node.sizes[axis]] = replace(sizes[node.sizes[axis]], fixed=width)
        reads = {read.index for value in shaped.nodes[:-1] for read in getattr(value, "reads", ())}
        extents = extents_of(replace(shaped, sizes=tuple(sizes)), CPU)
        found = tiling(node, dict.fromkeys(reads, 1.0), extents, CPU)
        assert found is not None
        assert found.lanes == node.output_axes()[lanes]
