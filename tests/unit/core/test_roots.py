"""Which roots share a kernel, and how many loops (LANGUAGE section 3)."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ilang import i
from tests.shares import one_in

PRODUCT = "ik*kj~ijk >> (>ijk~ij & <ijk~ij)"
X = np.linspace(-2, 3, 5 * 7 * 4, dtype=np.float32).reshape(5, 7, 4)


def kernels(text: str) -> list[str]:
    """The loops of each kernel as text."""
    return i(text).loops().split("\n\n")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (">ij~i & <ij~i", 1),
        ("-ij~ij & ^ij~ij & +ij~i", 1),
        ("+ij~i & +ij~j", 2),  # the sums of columns go in strips, rows outside
        (">ij~i | >ij~i", 2),  # rows of two inputs
        ("+ij~i || i j & >ij~i || i j", 1),
        ("+ij~i | i:4 | i j i' & >ij~i || i j", 2),  # one is split
        ("+ij~i | i:4 | i j i' & >ij~i | i:4 | i i' j", 1),
        ("+ij~i || i j | i:p & >ij~i || i j", 2),  # one is parallel
        ("+ij~ij || i j & -ij~ij || j i", 2),
        ("(I & >ij~i) >> ij-i~ij", 1),
        (">ij~i || i j >> (I & -i~i || i)", 2),  # one is made from the other
        ("i*ij~ij || i j & -i~i || i", 1),  # by the dimension that both walk
        ("ii~i & -ij~ij", 1),
        ("+i(j+u:3)~ij & -ij~ij", 1),
    ],
)
def test_kernels(text: str, count: int) -> None:
    assert len(kernels(text)) == count


def test_outer_loops_only() -> None:
    """Three roots: two share both output loops, the third the outer one, where it has elements to compare."""
    found = kernels("+ijk~ij || i j k & >ijk~ij || i j k & <ijk~ik || i j k")
    assert len(found) == 1
    opens = " *((parallel )?for [ij]|if) "
    assert [line for line in found[0].split("\n") if re.match(opens, line)] == [
        "parallel for i in 0..n_i",
        "  parallel for j in 0..n_j",
        "  if 0 < n_k",
        "    for j in 0..n_j",
    ]


def test_made_for_both_once() -> None:
    (text,) = kernels(PRODUCT)
    assert text.count("in0[i,k] * in1[k,j]") == 1
    assert "product[k]" in text


def test_what_is_needed_runs_before() -> None:
    """The row maxima and the last expression walk the same rows; what the one makes, the other needs whole."""
    text = "(I & >ij~i) >> (I | (I & +i~.)) >> (ij-i~ij | I) >> (ij-.~ij)"
    assert len(kernels(text)) == 2
    x = X[0]
    np.testing.assert_allclose(i(text)(x), x - x.max(1)[:, None] - x.max(1).sum(), rtol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "+ijk~ij || i j k & >ijk~ij || i j k & <ijk~ik || i j k",
        "(>ijk~ij & <ijk~ij & +ijk~ik) >> ~(ij-ij~ij | I)",
        "+ijk~ij | i:2,j:4 | i j i' k j' & -ijk~ijk | i:2,j:4 | i j i' j' k",
        "^ijk~ijk >> (+ijk~i & >ijk~ij & ijk/ijk~ijk)",
    ],
)
@pytest.mark.parametrize(
    "shape", one_in(3, [(9, 8, 33), (5, 7, 4), (1, 1, 1), (0, 3, 2), (3, 0, 2), (2, 3, 0)])
)
def test_results(text: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(7).normal(size=shape).astype(np.float32)
    component = i(text)
    arrays = [x] * component.takes()
    found, expected = component(*arrays, threads=2), component(*arrays, target="numpy")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
