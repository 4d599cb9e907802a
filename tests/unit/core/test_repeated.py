"""Functions that lack an axis of their loops: values of their own, and right ones."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import Component, einx, i
from ilang.core import pipeline


def functions(program: Component, *shapes: tuple[int, ...]) -> list[str]:
    """The functions that have become values, each with its dimensions."""
    text = pipeline.shaped_stage_text(program.shaped([*shapes]), "collapsed")
    lines = [line.partition("]")[0].split(maxsplit=1) for line in text.splitlines()]
    ends = ("_ln", "_exp", "_tanh")
    return [f"{name} {dims[3:]}]" for name, dims in lines if name.endswith(ends)]


CASES = [
    ('elementwise("f: x[i,j], s[j] -> x - ln(s)")', [(30, 40), (40,)], ["out_ln [40]"]),
    ('elementwise("f: x[i,j], s[j] -> x - ln(s)")', [(3, 40), (40,)], []),  # is computed thrice
    ('elementwise("f: x[i,j], s[j] -> x * exp(s) + tanh(x)")', [(30, 40), (40,)], ["out_exp [40]"]),
    ('einx.logsumexp("i [j]")', [(30, 40)], []),  # leaves its loop
]


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize(("text", "shapes", "expected"), CASES)
def test_functions_of_few_axes(
    text: str, shapes: list[tuple[int, ...]], expected: list[str]
) -> None:
    program = i(text)
    assert functions(program, *shapes) == expected
    arrays = [np.random.default_rng(0).random(shape, np.float32) + 0.5 for shape in shapes]
    assert np.allclose(program(*arrays), program(*arrays, target="numpy"), rtol=1e-5)


@pytest.mark.usefixtures("compiled_quickly")
def test_softmax_in_the_middle() -> None:
    program = i('einx.log_softmax("b [c] h")')
    assert functions(program, (4, 17, 50)) == ["out_ln [4, 50]"]
    x = np.random.default_rng(0).standard_normal((4, 17, 50)).astype(np.float32)
    expected = x - np.log(np.exp(x.astype(np.float64)).sum(1, keepdims=True))
    assert np.allclose(einx.log_softmax("b [c] h", x), expected, atol=1e-5)
