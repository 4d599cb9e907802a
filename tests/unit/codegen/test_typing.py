"""What a type checker knows of `einsum`, `lib`, `einx` and `einops`: mypy runs on it, and asks for each `ignore`."""

from __future__ import annotations

import ast
import inspect
from types import ModuleType
from typing import Any, assert_type

import numpy as np
import pytest
from numpy.typing import NDArray

from ilang import Error, einops, einsum, einx, lib
from ilang.codegen.components.component import Component
from ilang.codegen.components.pieces import PIECES
from ilang.core.einx_ops import EINX_OPS
from ilang.core.library.std import AXES, PLAIN

pytestmark = pytest.mark.usefixtures("shared_cache", "compiled_quickly")

X: NDArray[Any] = np.ones((2, 2), np.float32)


def declared(module: ModuleType) -> list[tuple[str, str]]:
    """The names that a module declares for type checkers alone, and their types."""
    blocks = [
        each for each in ast.parse(inspect.getsource(module)).body if isinstance(each, ast.If)
    ]
    lines = [line for block in blocks for line in block.body if isinstance(line, ast.AnnAssign)]
    return sorted((ast.unparse(line.target), ast.unparse(line.annotation)) for line in lines)


def test_the_declarations_are_the_functions() -> None:
    types = {None: "_Reduction", -1: "_AlongAxis"}
    kinds = {name: "_OfTwo" if name == "matmul" else "_OfElements" for name in PLAIN}
    kinds |= {name: types[axis] for name, axis in AXES.items()}
    kinds |= {"var": "_Spread", "std": "_Spread", "layer_norm": "_Norm", "conv2d": "_Convolution"}
    kinds |= {"max_pool2d": "_Pool", "mean_pool2d": "_Pool"}
    assert kinds.keys() == PIECES.keys()
    assert declared(lib) == sorted(kinds.items())
    names = [name for name, op in EINX_OPS.items() if op.kind != "map"]
    assert declared(einx) == sorted((name, "_Operation") for name in names)


def test_einsum() -> None:
    assert_type(einsum("ij => ji"), Component)
    assert_type(einsum("ij,jk->ik", X, X, optimize=False), NDArray[Any])
    assert_type(einsum(X, [0, 1], X, [1, 2]), NDArray[Any])
    assert_type(einsum("ij,jk->ik", *[X, X]), NDArray[Any])
    with pytest.raises(TypeError, match="optimise"):
        einsum("ij->i", X, optimise=True)  # type: ignore[call-overload]


def test_lib() -> None:
    assert_type(lib.relu(X), NDArray[Any])
    assert_type(lib.softmax(X, axis=0, threads="auto"), NDArray[Any])
    assert_type(lib.mean(X, axis=(0, 1), keepdims=True), NDArray[Any])
    assert_type(lib.matmul(X, X), NDArray[Any])
    assert_type(lib.one_hot(np.arange(3), 4), NDArray[Any])
    with pytest.raises(AttributeError, match="did you mean softmax"):
        lib.softmx(X)  # type: ignore[attr-defined]
    with pytest.raises(Error, match="softmax takes no axes"):
        lib.softmax(X, axes=1)  # type: ignore[call-overload]


def test_einx() -> None:
    sizes, arrays = {"b": 2}, [X]
    assert_type(einx.mean("a [b]"), Component)
    assert_type(einx.mean("a [b]", X, keepdims=True), NDArray[Any])
    assert_type(einx.mean("a [b]", *arrays, **sizes), NDArray[Any])
    assert_type(einx.id("a (b c) -> a b c", **sizes), Component)
    assert_type(einx.reduce("a [b]", X, op=einx.sum), NDArray[Any])
    assert_type(einx.vmap("a [b]", op="softmax"), Component)
    with pytest.raises(AttributeError, match="did you mean mean"):
        einx.meen("a [b]", X)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="op"):
        einx.reduce("a [b]", X)  # type: ignore[call-overload]


def test_einops() -> None:
    assert_type(einops.rearrange(X, "a b -> b a"), NDArray[Any])
    assert_type(einops.rearrange([X, X], "c a b -> b a c"), NDArray[Any])
    assert_type(einops.repeat(X, "a b -> a b c", c=2), NDArray[Any])
    assert_type(einops.reduce(X, "a b -> a", "mean"), NDArray[Any])
    assert_type(einops.einsum(X, X, "a b, b c -> a c"), NDArray[Any])
    together, shapes = einops.pack([X, X], "a *")
    assert_type(together, NDArray[Any])
    assert_type(einops.unpack(together, shapes, "a *"), list[NDArray[Any]])
    with pytest.raises(Error, match="no reduction median"):
        einops.reduce(X, "a b -> a", "median")  # type: ignore[call-overload]
