"""Gradients as texts: the definition that is printed is the gradient, and what has no text is listed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ilang import i
from ilang.core import pipeline
from ilang.core.explain.assignments import assignments_text
from ilang.core.explain.written import definition_text
from ilang.core.ir.shaped import Shaped
from ilang.core.transform.reverse import gradient


def gradient_of(text: str) -> Shaped:
    shaped = pipeline.infer(pipeline.program_graph(pipeline.text_program(text)))
    return gradient(shaped, range(len(shaped.inputs)))


@pytest.mark.parametrize(
    "text",
    [
        "ik*kj~ijk >> +ijk~ij",
        "^ij~ij >> +ij~i >> $i~i",
        "(I & I) >> i*i~i >> -i~i",
        "i/i~i",
        "f(x: f64[n,m], y: f64[m]) = { z = (ij*j~ij)(x, y); w = (^ij~ij)(z); w }",
        "i/i~i >> (I & $i~i)",
    ],
)
def test_definitions_are_gradients(text: str) -> None:
    """Read again, the text computes what the gradient does."""
    component = i(text)
    written = definition_text(gradient_of(text))
    assert written is not None
    rng = np.random.default_rng(0)
    graph = component.graph()
    shaped = pipeline.infer(graph)
    sizes = {n: 3 + n for n in range(len(shaped.sizes))}
    types = {"f32": np.float32, "f64": np.float64}
    values = (*shaped.inputs, *shaped.outputs)
    arrays = [
        rng.uniform(0.5, 1.5, [sizes[s] for s in shaped.tensors[v].dims]).astype(
            types[shaped.tensors[v].dtype]
        )
        for v in values
    ]
    wanted, given = component.grad()(*arrays, target="numpy"), i(written)(*arrays, target="numpy")
    for one, other in zip(_tuple(wanted), _tuple(given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize(
    "text", [">ij~i", "+(i+k:3)~i", ">i~i", "ii~i", "i^i~i", "ij~ji", "ij*j~ij >> +ij~."]
)
def test_what_has_no_words(text: str) -> None:
    shaped = gradient_of(text)
    assert definition_text(shaped) is None
    assert len(assignments_text(shaped).splitlines()) >= len(shaped.outputs)


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
