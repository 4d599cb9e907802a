"""Random programs of matrices that go two ways, and their gradients, compiled, against the evaluator."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule
from ilang.core.transform.reverse import gradient

PRODUCTS = ("ik*jk~ijk >> +ijk~ij", "ik*kj~ijk >> +ijk~ij")
ALONE = (
    "(I | 0.5) >> ij*.~ij",
    "(I | 0) >> ij>.~ij",
    "ij+j~ij",
    "ij*i~ij",
    "ij[j<=i]~ij",
    "-ij~ij",
)
ROWS = (
    "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij",
    "(I & >ij[j<=i]~i) >> ij-i~ij >> ^ij~ij >> (I & +ij[j<=i]~i) >> ij[j<=i]/i~ij",
    "(I & (+ij~i >> (I | 0.01) >> i*.~i)) >> ij-i~ij",
    "(I & (+ij~j >> (I | 0.01) >> j*.~j)) >> ij+j~ij",
    "(I & (>ij~i >> (I | 0.1) >> i*.~i)) >> ij-i~ij",
)
START = 4_000
SHAPES = ((13, 70), (66, 9), (1, 20), (20, 0))


def program(seed: int) -> str:
    """A product of rows with rows, work on it, and what takes it to rows again."""
    draw = random.Random(seed)
    parts = [draw.choice(PRODUCTS), draw.choice(ROWS)]
    for _ in range(draw.randrange(3)):
        parts.insert(draw.randrange(1, 3), draw.choice(ROWS if draw.random() < 0.5 else ALONE))
    parts.append("ij*jd~ijd >> +ijd~id")
    parts += draw.choices(["", "(I & ^id~id) >> id*id~id"], [3, 1])
    return " >> ".join(part for part in parts if part)


def test_many_are_computed_apart() -> None:
    """Of those programs whose matrices are."""
    count = 0
    for seed in range(START, START + 40):
        shaped = pipeline.infer(pipeline.graph_of(pipeline.text_component(program(seed)), "p"))
        derived = gradient(shaped, range(len(shaped.inputs)), values=bool(seed % 2))
        count += shaped_to_schedule(derived).shaped is not derived
    assert 15 < count


@pytest.mark.parametrize("seed", range(START, START + 8))
def test_gradients_are_those_of_the_evaluator(seed: int) -> None:
    f = i(program(seed))
    shaped = pipeline.infer(pipeline.graph_of(pipeline.text_component(program(seed)), "p"))
    dims = [[shaped.sizes[size].name for size in shaped.tensors[n].dims] for n in shaped.inputs]
    derived = f.value_and_grad() if seed % 2 else f.grad()
    for rows, columns in SHAPES:
        noise = np.random.default_rng(seed)
        extents = {"i": rows, "j": columns, "k": 7, "d": 5}
        arrays = [noise.normal(size=[extents[n] for n in each]) / 2 for each in dims]
        arrays.append(noise.normal(size=(rows, 5)))
        wanted = derived(*arrays, target="numpy")
        for one, other in zip(derived(*arrays), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
