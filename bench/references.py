"""What each program computes, in NumPy with float64: every timed result is compared with it first."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

TOLERANCE = 1e-4
"""How far a float32 result may be off, relative to the largest value of the right one."""


def expected(program: str, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
    """The outputs of a program, from the inputs that it is timed with, computed in float64."""
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    return _outputs(REFERENCES[program](**wide))


def _outputs(result: Any) -> tuple[Array, ...]:
    """The arrays of a result, or tensors of a device: several are a tuple or a list."""
    several = result if isinstance(result, tuple | list) else (result,)
    return tuple(each if hasattr(each, "is_cuda") else np.asarray(each) for each in several)


def mistake(result: object, right: tuple[Array, ...], tolerance: float = TOLERANCE) -> str | None:
    """What is wrong with a result, if anything; elements may be off by so much of the largest one."""
    found = _outputs(result)
    if len(found) != len(right):
        return f"there are {len(found)} outputs, not {len(right)}"
    mistakes = (_mistake(*pair, tolerance) for pair in zip(found, right, strict=True))
    return next((mistaken for mistaken in mistakes if mistaken), None)


def _mistake(found: Array, right: Array, tolerance: float) -> str | None:
    if found.shape != right.shape:
        return f"the shape is {tuple(found.shape)}, not {tuple(right.shape)}"
    if 0 in right.shape:
        return None
    most, off = tolerance * float(abs(right).max()), float(abs(found - right).max())
    return None if off <= most else f"off by {off:.3g}, where {most:.3g} is allowed"


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _gelu(x: Array) -> Array:
    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return np.asarray(x / 2 * (1 + np.tanh(u)))


def _layer_norm(x: Array, scale: Array, shift: Array) -> Array:
    centered = x - x.mean(-1, keepdims=True)
    variance = (centered * centered).mean(-1, keepdims=True)
    return np.asarray(centered / np.sqrt(variance + 1e-5) * scale + shift)


def _attention(q: Array, k: Array, v: Array) -> Array:
    return np.asarray(_softmax(q @ k.transpose(0, 2, 1) / 8) @ v)


def _conv3x3(x: Array, weights: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    height, width = x.shape[2:]
    return np.asarray(
        sum(
            np.einsum("nchw,oc->nohw", padded[:, :, u : u + height, v : v + width], tap)
            for u in range(3)
            for v in range(3)
            for tap in [weights[:, :, u, v]]
        )
    )


def _mlp(x: Array, **layers: Array) -> Array:
    first = np.maximum(x @ layers["w1"] + layers["b1"], 0)
    second = np.maximum(first @ layers["w2"] + layers["b2"], 0)
    return np.asarray(second @ layers["w3"] + layers["b3"])


def _mlp_train(x: Array, label: Array, rate: Array, **given: Array) -> tuple[Array, ...]:
    w1, b1, w2, b2, w3, b3 = (given[name] for name in ("w1", "b1", "w2", "b2", "w3", "b3"))
    first = np.maximum(x @ w1 + b1, 0)
    second = np.maximum(first @ w2 + b2, 0)
    by_last = _softmax(second @ w3 + b3) - (label[:, None] == given["class"])
    by_second = (by_last @ w3.T) * (second > 0)
    by_first = (by_second @ w2.T) * (first > 0)
    steps = ((x, w1, b1, by_first), (first, w2, b2, by_second), (second, w3, b3, by_last))
    return tuple(
        new
        for values, weights, bias, by in steps
        for new in (weights - rate * (values.T @ by), bias - rate * by.sum(0))
    )


REFERENCES: Mapping[str, Callable[..., Array | tuple[Array, ...]]] = {
    "matmul": lambda a, b: np.asarray(a @ b),
    "bmm": lambda a, b: np.asarray(a @ b),
    "matvec": lambda a, x: np.asarray(a @ x),
    "row_sum": lambda x: np.asarray(x.sum(1)),
    "column_sum": lambda x: np.asarray(x.sum(0)),
    "full_sum": lambda x: np.asarray(x.sum()),
    "transpose": lambda x: x.T,
    "fma_relu": lambda a, b, c: np.asarray(np.maximum(a * b + c, 0)),
    "gelu": _gelu,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "attention": _attention,
    "conv3x3": _conv3x3,
    "mlp": _mlp,
    "mlp_train": _mlp_train,
}
"""By program."""
