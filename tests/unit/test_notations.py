"""Every line of docs/notations.md gives what the last line of its table gives."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ilang

PAGE = Path(__file__).parents[2] / "docs" / "notations.md"
PROGRAMS = {
    title: re.findall(r"^\| (?P<notation>[^|]+) \| `(?P<text>.+)` \|$", body, re.MULTILINE)
    for title, body in re.findall(
        r"^## (.+)\n((?:(?!^## ).*\n)+)", PAGE.read_text("utf-8"), re.MULTILINE
    )
}
RANDOM = np.random.default_rng(7)
ARRAYS = {
    "x": RANDOM.random((5, 4), np.float32),
    "y": RANDOM.random((4, 3), np.float32),
    "a": RANDOM.random(5, np.float32),
    "b": RANDOM.random(4, np.float32),
    "v": RANDOM.random(9, np.float32),
    "ids": np.array([4, 0, 0, 2]),
}


class _Evaluated:
    """``einx``, whose operations are evaluated with NumPy: compiling them is tested elsewhere."""

    def __getattr__(self, name: str) -> Any:
        return partial(getattr(ilang.einx, name), target="numpy")


WORDS: dict[str, Any] = {
    "i": lambda text: partial(ilang.i(text), target="numpy"),
    "elementwise": lambda *given: partial(ilang.elementwise(*given), target="numpy"),
    "einsum": partial(ilang.einsum, target="numpy"),
    "einx": _Evaluated(),
}


def test_there_are_ten_programs() -> None:
    assert len(PROGRAMS) == 10
    assert all(lines[-1][0] == "NumPy" and len(lines) > 2 for lines in PROGRAMS.values())


@pytest.mark.parametrize("title", PROGRAMS)
def test_program(title: str) -> None:
    *lines, (_, numpy) = PROGRAMS[title]
    wanted = eval(numpy, {"np": np, **ARRAYS})
    for notation, text in lines:
        given = eval(text, {"np": np, **WORDS, **ARRAYS})
        assert given.shape == wanted.shape, notation
        np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-6, err_msg=notation)
