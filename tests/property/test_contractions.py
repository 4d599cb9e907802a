"""Random contractions, staged in one copy or two, are right on a GPU, with every access checked."""

from __future__ import annotations

import shutil

import pytest

from ilang.core.ir.gpu import SwapBuffers
from ilang.core.ir.kernel import statements_within
from tests.property.contractions import draw, failures, lowered
from tests.shares import share

SEEDS = range(4000, 4024)


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")
def test_random_contractions() -> None:
    seeds = share(SEEDS)
    count, found = failures(seeds)
    assert not found, "\n".join(found)
    assert count >= len(seeds) // 2


def test_many_take_turns() -> None:
    """Most of them have a buffer that is filled while another one is read."""
    made = [lowered(draw(seed), "f") for seed in SEEDS]
    kernels = [each[1].kernels for each in made if each is not None]
    swapped = [
        any(isinstance(s, SwapBuffers) for k in each for s in statements_within(k.body))
        for each in kernels
    ]
    assert sum(swapped) >= len(SEEDS) // 3
