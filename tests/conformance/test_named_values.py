"""The samples that are written over names: the graph of each is that of its wiring, and NumPy gives its results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import load
from ilang.core import pipeline
from ilang.core.ir.graph import Graph
from ilang.core.ir.syntax import over_names
from ilang.core.notation.components.arity import wires_of_all
from ilang.core.notation.files.module import only_export, parse_module
from ilang.core.source import Source
from tests.property.body_checking import same_graph
from tests.property.wiring import wired

Array = np.ndarray[Any, np.dtype[Any]]
SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def twins(text: str) -> tuple[Graph, Graph]:
    """The graph of a file, and of the same file with every body over names wired."""
    module = parse_module(Source("m.i", text))
    known = wires_of_all({definition.name: definition for definition in module.definitions})
    lines = [
        wired(each, known) if over_names(each.body) else f"{each.span.text()}\n"
        for each in module.definitions
    ]
    twin = parse_module(Source("m.i", "".join(lines)))
    assert not any(over_names(each.body) for each in twin.definitions)
    name = only_export(module).name
    return pipeline.module_graph(module, name), pipeline.module_graph(twin, name)


def test_wiring_is_shown() -> None:
    module = parse_module(Source("m.i", "g = -i~i\nf(x, y) = { a = g(x); (i-i~i)(a, y), 2, a }"))
    known = wires_of_all({definition.name: definition for definition in module.definitions})
    assert wired(module.definitions[-1], known) == (
        "f(x, y) = (I | I) >> ((g) | I) >> ((I & I) | I) >> (I | ~(I | I)) >> ((i-i~i) | I)"
        " >> (I | I | 2) >> (I | ~(I | I))\n"
    )


OVER_NAMES = [
    path.stem
    for path in sorted(SAMPLES.glob("[0-9]*.i"))
    if any(
        over_names(each.body)
        for each in parse_module(Source("m.i", path.read_text("utf-8"))).definitions
    )
]


def test_samples_are_found() -> None:
    assert {"29_transformer", "30_lstm", "31_waves", "32_heads"} <= set(OVER_NAMES)


@pytest.mark.parametrize("sample", OVER_NAMES)
def test_samples_mean_their_wiring(sample: str) -> None:
    named, twin = twins((SAMPLES / f"{sample}.i").read_text("utf-8"))
    assert named.called
    assert same_graph(named, twin)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))


def norm(x: Array) -> Array:
    return np.asarray(x / np.sqrt((x**2).mean(1, keepdims=True)))


def transformer(*given: Array) -> tuple[Array, ...]:
    x, wq, wk, wv, wo, up, down = given
    h = norm(x)
    y = x + softmax((h @ wq) @ (h @ wk).T / np.sqrt(2)) @ (h @ wv) @ wo
    return (y + np.maximum(norm(y) @ up, 0) @ down,)


def lstm(*given: Array) -> tuple[Array, ...]:
    x, h, c, w, u, bias = given
    enter, forget, new, leave = x @ w + h @ u + bias[:, None]
    state = sigmoid(forget) * c + sigmoid(enter) * np.tanh(new)
    return sigmoid(leave) * np.tanh(state), state


def waves(*given: Array) -> tuple[Array, ...]:
    e, hx, hy, dt = given
    bx = hx - dt * np.diff(e, axis=1, append=0)
    by = hy + dt * np.diff(e, axis=0, append=0)
    return e + dt * (np.diff(by, axis=0, prepend=0) - np.diff(bx, axis=1, prepend=0)), bx, by


def heads(*given: Array) -> tuple[Array, ...]:
    q, k, v = (x.reshape(len(x), 2, -1).swapaxes(0, 1) for x in given)
    weights = [softmax(one @ other.T) for one, other in zip(q, k, strict=True)]
    return (np.concatenate([w @ x for w, x in zip(weights, v, strict=True)], 1),)


@pytest.mark.parametrize(
    ("sample", "shapes", "reference"),
    [
        ("29_transformer", [(5, 2), *[(2, 2)] * 4, (2, 7), (7, 2)], transformer),
        ("30_lstm", [(3, 4), (3, 5), (3, 5), (4, 4, 5), (4, 5, 5), (4, 5)], lstm),
        ("31_waves", [(6, 9), (6, 9), (6, 9), ()], waves),
        ("32_heads", [(3, 6), (5, 6), (5, 6)], heads),
    ],
)
def test_numpy_gives_the_same(
    sample: str, shapes: list[tuple[int, ...]], reference: Callable[..., tuple[Array, ...]]
) -> None:
    path = SAMPLES / f"{sample}.i"
    component = load(path)[only_export(parse_module(Source("m.i", path.read_text("utf-8")))).name]
    random = np.random.default_rng(0)
    arrays = [np.asarray(random.standard_normal(shape)) for shape in shapes]
    results: Any = component(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    for got, wanted in zip(results, reference(*arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-7)
