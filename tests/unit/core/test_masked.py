"""Operands of contractions behind guards: stored once where tiles read them again, and right everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.schedule.collapsing import shaped_to_collapsed
from tests.shares import one_in

PRODUCT = "ki[i<k]*kj~ikj >> +ikj~ij"


def guarded(text: str, machine: Machine = CPU) -> list[str]:
    """The names of what contractions store behind guards."""
    graph = pipeline.program_graph(pipeline.text_program(text))
    shaped = shaped_to_collapsed(pipeline.infer(graph), machine)
    return [
        tensor.name
        for tensor, node in zip(shaped.tensors, shaped.nodes, strict=True)
        if isinstance(node, Assignment) and tensor.name.endswith("_masked")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PRODUCT, ["in0_masked"]),
        ("ki*kj[k<=j]~ikj >> +ikj~ij", ["in1_masked"]),
        ("ki[i<k]*kj[k<=j]~ikj >> +ikj~ij", ["in0_masked", "in1_masked"]),
        (f"(^ki~ki | I) >> {PRODUCT}", ["exps_masked"]),
        ("ki[i<k]*k~ik >> +ik~i", []),
        ("ki[i<k]*kj~ikj", []),
        ("ki[i<j]*kj~ikj >> +ikj~ij", []),
        ("(+kim~ki | I) >> ki[i<k]*kj~ikj >> +ikj~ij", []),
        ("ki[i<k]*kj~ikj || i k j >> +ikj~ij", []),
    ],
)
def test_what_is_stored(text: str, expected: list[str]) -> None:
    assert guarded(text, CPU) == expected
    assert guarded(text, GPU) == []  # a block leaves out the tiles in which no guard holds


@pytest.mark.parametrize("target", ["c", "cuda-emulated"])
@pytest.mark.parametrize("shape", one_in(2, [(9, 40, 70), (1, 1, 1), (0, 3, 20), (33, 64, 17)]))
def test_values(shape: tuple[int, int, int], target: str) -> None:
    k, m, n = shape
    draw = np.random.default_rng(k)
    a, b = draw.standard_normal((k, m)), draw.standard_normal((k, n))
    if k > 1:
        a[0, 0] = np.inf  # behind the guard: 0 in its place
        b[k - 1, 0] = np.inf  # times a 0 behind the guard: NaN, as the text says
    with np.errstate(invalid="ignore"):
        expected = np.einsum("ki,kj->ij", np.where(np.arange(m) < np.arange(k)[:, None], a, 0), b)
        for given in (i(PRODUCT), i(PRODUCT).dynamic("k", "i", "j")):
            np.testing.assert_allclose(given(a, b, target=target), expected, 1e-12, 1e-12)
