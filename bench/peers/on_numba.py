"""numba: loops written by hand, compiled with relaxed arithmetic; products of matrices are not its business."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import prange

from bench.peers import Arrays, Call, Calls
from bench.workloads import Workload

FLOAT = np.float32
BLOCK = 32


def _fma_relu(a: Any, b: Any, c: Any, out: Any) -> None:
    for i in prange(a.size):
        value = a[i] * b[i] + c[i]
        out[i] = value if value > 0 else FLOAT(0)


def _gelu(x: Any, out: Any) -> None:
    for i in prange(x.size):
        value = x[i]
        inner = value * (FLOAT(0.7978845608) + FLOAT(0.0356774081) * value * value)
        out[i] = FLOAT(0.5) * value * (FLOAT(1) + math.tanh(inner))


def _softmax(x: Any, out: Any) -> None:
    for i in prange(x.shape[0]):
        most = x[i, 0]
        for j in range(x.shape[1]):
            most = max(most, x[i, j])
        total = FLOAT(0)
        for j in range(x.shape[1]):
            power = math.exp(x[i, j] - most)
            out[i, j] = power
            total += power
        share = FLOAT(1) / total
        for j in range(x.shape[1]):
            out[i, j] *= share


def _layer_norm(x: Any, scale: Any, shift: Any, out: Any) -> None:
    count = FLOAT(x.shape[1])
    for i in prange(x.shape[0]):
        total = FLOAT(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / count
        squares = FLOAT(0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        by = FLOAT(1) / np.sqrt(squares / count + FLOAT(1e-5))
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * by * scale[j] + shift[j]


def _row_sum(x: Any, out: Any) -> None:
    for i in prange(x.shape[0]):
        total = FLOAT(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total


def _column_sum(x: Any, out: Any) -> None:
    out[:] = 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j] += x[i, j]


def _transpose(x: Any, out: Any) -> None:
    m, n = x.shape
    for block in prange((m + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        for start in range(0, n, BLOCK):
            for j in range(start, min(start + BLOCK, n)):
                for i in range(first, min(first + BLOCK, m)):
                    out[j, i] = x[i, j]


PARALLEL = {
    "fma_relu": _fma_relu,
    "gelu": _gelu,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "row_sum": _row_sum,
    "transpose": _transpose,
}
SERIAL = {"column_sum": _column_sum}


def calls(threads: int) -> Calls:
    """Compiled at the first call; loops over rows are parallel where there are threads."""
    numba.set_num_threads(threads)
    found = {}
    for functions, parallel in ((PARALLEL, 1 < threads), (SERIAL, False)):
        for program, function in functions.items():
            found[program] = _prepare(numba.njit(function, fastmath=True, parallel=parallel))
    return found


def _prepare(compiled: Callable[..., None]) -> Callable[[Workload, Arrays], Call]:
    def prepare(workload: Workload, arrays: Arrays) -> Call:
        given = tuple(arrays.values())
        out = np.empty(workload.outputs[0], np.float32)

        def call() -> Any:
            compiled(*given, out)
            return out

        return call

    return prepare
