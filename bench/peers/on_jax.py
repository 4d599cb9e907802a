"""JAX on the CPU, each workload one compiled function."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.peers import Arrays, Call, Calls
from bench.workloads import Workload


def load(threads: int) -> Any:
    """JAX sizes its pool of threads by the processors that it may use when it starts."""
    if not hasattr(os, "sched_setaffinity"):
        import jax

        return jax
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(allowed)[:threads]))
    import jax

    jax.block_until_ready(jax.numpy.ones(4) + 1)
    for task in Path("/proc/self/task").iterdir():  # then let its threads run anywhere again
        os.sched_setaffinity(int(task.name), allowed)
    return jax


def calls(threads: int) -> Calls:
    """Compiled before the first call; a call waits for its result."""
    jax = load(threads)
    return {program: _prepare(jax, function) for program, function in _functions(jax).items()}


def _prepare(jax: Any, function: Callable[..., Any]) -> Callable[[Workload, Arrays], Call]:
    def prepare(_: Workload, arrays: Arrays) -> Call:
        given = [jax.numpy.asarray(array) for array in arrays.values()]
        compiled = jax.jit(function).lower(*given).compile()
        return lambda: jax.block_until_ready(compiled(*given))

    return prepare


def _functions(jax: Any) -> dict[str, Callable[..., Any]]:
    def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
        centered = x - x.mean(-1, keepdims=True)
        variance = (centered * centered).mean(-1, keepdims=True)
        return centered * jax.lax.rsqrt(variance + 1e-5) * scale + shift

    def attention(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.softmax(jax.numpy.einsum("hqd,hkd->hqk", q, k) * 0.125, -1) @ v

    def conv3x3(x: Any, weights: Any) -> Any:
        orders = ("NCHW", "OIHW", "NCHW")
        return jax.lax.conv_general_dilated(x, weights, (1, 1), "SAME", dimension_numbers=orders)

    def mlp(x: Any, *layers: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = layers
        return jax.nn.relu(jax.nn.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3

    def mlp_train(x: Any, *given: Any) -> Any:
        *parameters, label, classes, rate = given

        def loss(layers: Any) -> Any:
            logs = jax.nn.log_softmax(mlp(x, *layers))
            return -jax.numpy.where(label[:, None] == classes, logs, 0).sum()

        gradients = jax.grad(loss)(parameters)
        return [old - rate * by for old, by in zip(parameters, gradients, strict=True)]

    return {
        "matmul": lambda a, b: a @ b,
        "bmm": lambda a, b: a @ b,
        "matvec": lambda a, x: a @ x,
        "row_sum": lambda x: x.sum(1),
        "column_sum": lambda x: x.sum(0),
        "full_sum": lambda x: x.sum(),
        "transpose": lambda x: x.T,
        "fma_relu": lambda a, b, c: jax.nn.relu(a * b + c),
        "gelu": lambda x: jax.nn.gelu(x, approximate=True),
        "softmax": lambda x: jax.nn.softmax(x, -1),
        "layer_norm": layer_norm,
        "attention": attention,
        "conv3x3": conv3x3,
        "mlp": mlp,
        "mlp_train": mlp_train,
    }
