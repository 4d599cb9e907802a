"""NumPy, in place wherever it can."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peers import Arrays, Call, Calls
from bench.workloads import Workload


def calls(_: int) -> Calls:
    """NumPy's threads are those of its matrix library, set by the environment."""
    return {
        "matmul": _product,
        "bmm": _product,
        "matvec": _product,
        "row_sum": _sum(1),
        "column_sum": _sum(0),
        "full_sum": _sum(None),
        "transpose": _transpose,
        "fma_relu": _fma_relu,
        "gelu": _gelu,
        "softmax": _softmax,
        "layer_norm": _layer_norm,
        "attention": _attention,
        "conv3x3": _conv3x3,
        "mlp": _mlp,
        "mlp_train": _mlp_train,
    }


def _out(workload: Workload) -> Any:
    (shape,) = workload.outputs
    return np.empty(shape, np.float32)


def _product(workload: Workload, arrays: Arrays) -> Call:
    left, right = arrays.values()
    out = _out(workload)
    return lambda: np.matmul(left, right, out=out)


def _sum(axis: int | None) -> Any:
    def prepare(workload: Workload, arrays: Arrays) -> Call:
        x, out = arrays["x"], _out(workload)
        return lambda: np.sum(x, axis=axis, out=out)

    return prepare


def _transpose(workload: Workload, arrays: Arrays) -> Call:
    x, out = arrays["x"], _out(workload)

    def call() -> Any:
        np.copyto(out, x.T)
        return out

    return call


def _fma_relu(workload: Workload, arrays: Arrays) -> Call:
    a, b, c = arrays.values()
    out = _out(workload)

    def call() -> Any:
        np.multiply(a, b, out=out)
        np.add(out, c, out=out)
        return np.maximum(out, 0, out=out)

    return call


def _gelu(workload: Workload, arrays: Arrays) -> Call:
    x, out = arrays["x"], _out(workload)
    cubed, linear = np.float32(0.0356774081), np.float32(0.7978845608)

    def call() -> Any:
        np.multiply(x, x, out=out)
        np.multiply(out, cubed, out=out)
        np.add(out, linear, out=out)
        np.multiply(out, x, out=out)
        np.tanh(out, out=out)
        np.add(out, np.float32(1), out=out)
        np.multiply(out, x, out=out)
        return np.multiply(out, np.float32(0.5), out=out)

    return call


def _softmax_into(x: Any, out: Any) -> Any:
    np.subtract(x, x.max(-1, keepdims=True), out=out)
    np.exp(out, out=out)
    return np.divide(out, out.sum(-1, keepdims=True), out=out)


def _softmax(workload: Workload, arrays: Arrays) -> Call:
    x, out = arrays["x"], _out(workload)
    return lambda: _softmax_into(x, out)


def _layer_norm(workload: Workload, arrays: Arrays) -> Call:
    x, scale, shift = arrays.values()
    out = _out(workload)
    count = np.float32(x.shape[1])

    def call() -> Any:
        np.subtract(x, x.mean(1, keepdims=True), out=out)
        variance = np.einsum("ij,ij->i", out, out)[:, None] / count
        np.multiply(out, 1 / np.sqrt(variance + np.float32(1e-5)), out=out)
        np.multiply(out, scale, out=out)
        return np.add(out, shift, out=out)

    return call


def _attention(workload: Workload, arrays: Arrays) -> Call:
    q, k, v = arrays.values()
    heads, length, _ = q.shape
    scores, out = np.empty((heads, length, length), np.float32), _out(workload)
    turned = k.transpose(0, 2, 1)

    def call() -> Any:
        np.matmul(q, turned, out=scores)
        np.multiply(scores, np.float32(0.125), out=scores)
        _softmax_into(scores, scores)
        return np.matmul(scores, v, out=out)

    return call


def _conv3x3(workload: Workload, arrays: Arrays) -> Call:
    """As one matrix product, over a copy that holds every window."""
    x, weights = arrays.values()
    _, channels, height, width = x.shape
    flat = weights.reshape(weights.shape[0], -1)
    padded = np.zeros((channels, height + 2, width + 2), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), (1, 2))
    columns = np.empty((channels, 3, 3, height, width), np.float32)
    out = _out(workload)

    def call() -> Any:
        padded[:, 1:-1, 1:-1] = x[0]
        np.copyto(columns, windows)
        np.matmul(flat, columns.reshape(flat.shape[1], -1), out=out.reshape(len(flat), -1))
        return out

    return call


def _mlp(workload: Workload, arrays: Arrays) -> Call:
    x, w1, b1, w2, b2, w3, b3 = arrays.values()
    first = np.empty((len(x), len(b1)), np.float32)
    second = np.empty((len(x), len(b2)), np.float32)
    out = _out(workload)

    def layer(given: Any, weights: Any, bias: Any, made: Any) -> None:
        np.matmul(given, weights, out=made)
        np.add(made, bias, out=made)

    def call() -> Any:
        layer(x, w1, b1, first)
        np.maximum(first, 0, out=first)
        layer(first, w2, b2, second)
        np.maximum(second, 0, out=second)
        layer(second, w3, b3, out)
        return out

    return call


def _mlp_train(workload: Workload, arrays: Arrays) -> Call:
    x, w1, b1, w2, b2, w3, b3, label, _, rate = arrays.values()
    made = [np.empty(shape, np.float32) for shape in workload.outputs]
    values = [np.empty((len(x), len(bias)), np.float32) for bias in (b1, b2, b3)]
    rows = np.arange(len(x))

    def layer(given: Any, weights: Any, bias: Any, made: Any) -> None:
        np.matmul(given, weights, out=made)
        np.add(made, bias, out=made)

    def step(given: Any, weights: Any, bias: Any, by: Any, new: Any) -> None:
        np.matmul(given.T, by, out=new[0])
        for old, changed in ((weights, new[0]), (bias, np.sum(by, 0, out=new[1]))):
            np.multiply(changed, rate, out=changed)
            np.subtract(old, changed, out=changed)

    def call() -> Any:
        first, second, last = values
        layer(x, w1, b1, first)
        np.maximum(first, 0, out=first)
        layer(first, w2, b2, second)
        np.maximum(second, 0, out=second)
        layer(second, w3, b3, last)
        _softmax_into(last, last)
        last[rows, label] -= 1
        by_second = last @ w3.T
        by_second *= second > 0
        by_first = by_second @ w2.T
        by_first *= first > 0
        step(second, w3, b3, last, made[4:])
        step(first, w2, b2, by_second, made[2:4])
        step(x, w1, b1, by_first, made[:2])
        return made

    return call
