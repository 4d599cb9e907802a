"""Pointwise work on the elements of a contraction is part of its kernel on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ilang import i
from ilang.codegen.emulator.program import emulated
from tests.unit.core.test_gpu_rows import scheduled

PRODUCT = "bi*io~bio >> +bio~bo"
LAYER = f"{PRODUCT} >> bo+o~bo >> >bo~bo"
CONVOLUTION = "nc(h+r)(w+s)*kcrs~nkhwcrs >> +nkhwcrs~nkhw >> nkhw+k~nkhw >> >nkhw~nkhw"
TILE = "b:2:16:4,o:16:4,i:8:16 | b o i i' i'' b' b'' o' b''' o'' 0"


@pytest.mark.parametrize(
    ("program", "kernels"),
    [
        (f"f(x[4096,784], w[784,512], c[512]) = {LAYER}", 1),
        (f"f(x[4096,784], w[784,512], y[4096,512]) = {PRODUCT} >> bo*bo~bo", 1),
        (f"f(x[8,64,58,58], w[64,64,3,3], c[64]) = {CONVOLUTION}", 1),
        (f"f(x[4096,784], w[784,512]) = {PRODUCT} >> >bo~ob", 2),  # stored in columns
        (
            f"f(x[4096,784], w[784,512], y[512,3]) = {PRODUCT} >> bo*ou~bou",
            2,
        ),  # read again and again
        (f"f(x[64,65536], w[65536,64], c[64]) = {LAYER}", 2),  # blocks share the terms
        (f"f(x[b,i], w[i,o], c[o]) = {LAYER}", 2),  # so may they here
        (f"f(x[4096,784], w[784,512]) = {{ t = ({PRODUCT})(x, w); r = (>bo~bo)(t); t, r }}", 2),
        (f"f(x[4096,784], w[784,512]) = {PRODUCT} | {TILE} >> >bo~bo", 2),  # written
        (
            f"f(x[2048,2048], w[2048,2048]) = {{ t = ({PRODUCT})(x, w); (bo*bo~bo)(t, ({PRODUCT})(w, x)) }}",
            2,  # ends one of the two
        ),
    ],
)
def test_kernels(program: str, kernels: int) -> None:
    assert len(scheduled(program).groups) == kernels


def test_a_layer_is_computed_inside_of_its_blocks() -> None:
    """The schedule is one that a person may write, and is read back as it is."""
    chosen = scheduled(f"f(x[4096,784], w[784,512], c[512]) = {LAYER}")
    product, total, biased, result = [nest for nest in chosen.nests if nest is not None]
    assert biased.staged(0) == 2  # inside of b and o
    assert total.factors[:2] == biased.factors == result.factors
    assert product.factors == ((2, 16, 4), (8, 16), (2, 16, 4))
    assert [result.role(n) for n in range(len(result.order))] == [*"ppuuttuu"]


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (LAYER, ((130, 65), (65, 67), (67,))),
        (LAYER, ((257, 33), (33, 260), (260,))),
        (LAYER, ((256, 64), (64, 256), (256,))),
        (LAYER, ((64, 1), (1, 64), (64,))),
        (LAYER, ((0, 5), (5, 64), (64,))),
        (LAYER, ((70, 0), (0, 64), (64,))),
        (f"{PRODUCT} >> bo-bo~bo", ((200, 100), (100, 150), (200, 150))),
        ("abi*aio~abio >> +abio~abo >> ^abo~abo", ((3, 130, 64), (3, 64, 140))),
        (CONVOLUTION, ((2, 8, 20, 20), (16, 8, 3, 3), (16,))),
    ],
)
def test_results_are_those_of_the_reference(text: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal(shape).astype(np.float32) / 4 for shape in shapes]
    f = i(text)
    wanted, device = f(*arrays, target="numpy"), emulated(checked=True)
    result: Any = f(*map(device.array, arrays), target="cuda-emulated")
    np.testing.assert_allclose(result.get(), wanted, rtol=1e-5, atol=1e-5)
