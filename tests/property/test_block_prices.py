"""Blocks that a price chooses on a GPU: whatever the price says, values are right."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import pytest

from ilang.core.ir.shaped import Shaped
from ilang.core.pipeline import fit, graph_of, infer, text_component
from ilang.core.record import replace
from ilang.core.schedule.choose import gpu_blocks
from ilang.core.schedule.choose.tile_cost import Price
from tests.property import emulated
from tests.property.batch import Batch

PRODUCT = "ik*kj~ijk >> +ijk~ij"
TEXTS = (
    PRODUCT,
    "ki*jk~ijk >> +ijk~ij",
    "bik*bkj~bijk >> +bijk~bij",
    "ikl*klj~ijkl >> +ijkl~ij",
    "ik*kj~ijk >> ijk*i~ijk >> +ijk~ij",
    f"{PRODUCT} >> ij+j~ij",
    "nc(y+u-1)(x+v)*ocuv~noyxcuv >> +noyxcuv~noyx",
)
EXTENTS = (0, 1, 2, 3, 7, 8, 9, 16, 31, 33, 64, 70, 130)
WORK = 150_000
"""Terms of a program at most."""
DRAWN = 28

needs_emulator = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")


@pytest.fixture
def any_price(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Random prices, which choose a random candidate."""
    rng = random.Random(0)
    gpu_blocks.by_price.cache_clear()
    monkeypatch.setattr(Price, "cycles", lambda _: rng.random())
    yield
    gpu_blocks.by_price.cache_clear()


def trial(seed: int) -> tuple[Shaped, list[Any]]:
    """A text at random extents, known in three of four, and arrays for it."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    text = TEXTS[seed % len(TEXTS)]
    graph = graph_of(text_component(text), "f")
    ranks = [2 + ("b" in text or "l" in text)] * 2 if "c" not in text else [4, 4]
    ranks += [1] * (len(graph.inputs) - 2)
    open_program = infer(graph, ranks=ranks)
    while True:
        sizes = {
            n: rng.choice((1, 3, 5) if size.name in "uvlbn" else EXTENTS)
            for n, size in enumerate(open_program.sizes)
        }
        shapes = [
            tuple(sizes[n] for n in open_program.tensors[value].dims)
            for value in range(len(graph.inputs))
        ]
        try:
            extents = fit(open_program, shapes)
        except Exception:
            continue
        if prod(extents) <= WORK:
            break
    dtype, name = rng.choice(((np.float32, "f32"), (np.float32, "f32"), (np.float64, "f64")))
    arrays = [numbers.normal(size=shape).astype(dtype) for shape in shapes]
    known = shapes if rng.random() < 0.75 else None
    shaped = infer(graph, [name] * len(arrays), None if known else ranks, shapes=known)
    return replace(shaped, name=f"p{seed}"), arrays


@needs_emulator
@pytest.mark.batches(1)
@pytest.mark.parametrize("mode", emulated.MODES)
@pytest.mark.usefixtures("any_price")
def test_every_block_is_right(mode: str, batch: int) -> None:
    """Every access is looked at, in several orders of threads, which give the same bits."""
    programs = Batch(mode)
    for seed in emulated.of_mode(range(DRAWN * batch, DRAWN * batch + DRAWN), mode):
        shaped, arrays = trial(seed)
        programs.add(shaped)
        programs.call(shaped, arrays)
    programs.agree(1e-4)
