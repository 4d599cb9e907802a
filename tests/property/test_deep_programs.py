"""Deep programs of every notation: each has its value, or is refused with a code."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ilang import Error
from tests.property.deep import KINDS

pytestmark = pytest.mark.usefixtures("compiled_quickly")  # right values are asked for

X = np.array([0.5, -2.0, 3.0], np.float32)
DEEP = {
    "index expressions in brackets",
    "brackets of a kernel",
    "calls in a kernel",
    "calls in a function",
    "functions of functions",
}
"""Kinds with brackets in brackets, or calls in calls, whose number is limited."""


def _check(kind: str, depth: int, target: str, folder: Path) -> None:
    found = KINDS[kind].program(depth, folder)(X, target=target)
    np.testing.assert_allclose(found, KINDS[kind].value(depth, X), rtol=2e-4, err_msg=kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("target", "depth"), [("numpy", 90), ("c", 50), ("cuda-emulated", 20)])
def test_a_deep_program_has_its_value(kind: str, target: str, depth: int, tmp_path: Path) -> None:
    _check(kind, depth, target, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_very_deep_program_has_its_value_or_a_code(kind: str, tmp_path: Path) -> None:
    if kind not in DEEP:
        _check(kind, 1_000, "numpy", tmp_path)
        return
    with pytest.raises(Error, match=r"nested|deep|are open|call the next") as caught:
        _check(kind, 1_000, "numpy", tmp_path)
    assert re.fullmatch(r"E\d{4}", caught.value.code)
    assert caught.value.help
