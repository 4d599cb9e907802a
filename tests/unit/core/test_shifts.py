"""Maxima that cancel: nothing flows back to them, and to all others what did."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.transform.reverse import gradient

DEFINITIONS = {
    "top": ">ij~i",
    "least": "<ij~i",
    "total": "+ij~i",
    "left": "ij-i~ij",
    "right": "i-ij~ij",
    "minus": "ij-ij~ij",
    "exp": "^ij~ij",
    "over": "ij/i~ij",
}

CANCELS = [
    "e = exp(left(x, m)); over(e, total(e))",
    "e = exp(left(x, m)); (ij[j<=i]/i~ij)(e, (+ij[j<=i]~i)(e))",
    "e = exp(left(x, m)); total(over(e, total(e)))",
    "e = exp(left(x, m)); (ij*i~ij)(e, (/i~i)(total(e)))",
    "e = exp(left(x, m)); (i+i~i)(m, ($i~i)(total(e)))",
    "d = left(x, m); (i-i~i)(top(d), least(d))",
    "d = right(m, x); (ij-i~ij)(d, top(d))",
    "e = exp(right(m, x)); over(e, least(e))",
    "d = left(x, m); minus(d, left(x, m))",
    "d = left(x, m); (i>=i~i)(top(d), least(d))",
]
"""Programs of a matrix x and the largest numbers m of its rows that give the same for every m."""

DEPENDS = [
    "left(x, m)",
    "over(x, m)",
    "e = exp(left(x, m)); (ij/j~ij)(e, (+ij~j)(e))",
    "e = exp(left(x, m)); (ij/j~ij)(e, total(e))",
    "e = exp(left(x, m)); (ij/ij~ij)(e, (ij*ij~ij)(e, e))",
    "e = exp(left(x, m)); (i+i~i)(m, total(e))",
    "e = exp((ij*i~ij)(x, m)); over(e, total(e))",
    "e = exp((ij[j<i]~ij)(left(x, m))); over(e, total(e))",
]
"""The same of programs that do not."""


def text_of(program: str) -> str:
    """A file whose component is one of the programs."""
    lines = ["m = top(x)", *program.split("; ")]
    body = "\n".join(f"  {line}" for line in lines)
    used = [f"{name} = {of}" for name, of in DEFINITIONS.items() if f"{name}(" in body]
    return "\n".join([*used, f"f(x[n,n]) = {{\n{body}\n}}"])


def winners(text: str) -> int:
    """How often the gradient of a program looks for the elements that are the largest of their rows."""
    graph = pipeline.program_graph(pipeline.text_program(text))
    return pipeline.shapes_text(gradient(pipeline.infer(graph), [0])).count("how many are m")


@pytest.mark.parametrize("program", CANCELS)
def test_a_maximum_that_cancels_is_constant(program: str) -> None:
    assert winners(text_of(program)) == 0


@pytest.mark.parametrize("program", DEPENDS)
def test_any_other_has_its_share(program: str) -> None:
    assert winners(text_of(program)) == 1


@pytest.mark.parametrize("program", [*CANCELS[:-1], *DEPENDS])
def test_gradients_are_those_of_forward_mode(program: str) -> None:
    """Which follows every maximum."""
    f = i(text_of(program))
    random = np.random.default_rng(1)
    x, tangent = random.normal(size=(2, 5, 5))
    value, moved = f.jvp()(x, tangent, target="numpy")
    back = random.normal(size=value.shape)
    given = f.grad()(x, back, target="numpy")
    np.testing.assert_allclose(
        (given * tangent).sum(), (back * moved).sum(), rtol=1e-10, atol=1e-12
    )
