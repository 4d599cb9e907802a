"""PyTorch on the CPU, its operations called one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bench.peers import Arrays, Call, Calls
from bench.workloads import Workload

functional: Any = torch.nn.functional


def _mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:  # noqa: PLR0913, PLR0917
    first = torch.relu(torch.addmm(b1, x, w1))
    second = torch.relu(torch.addmm(b2, first, w2))
    return torch.addmm(b3, second, w3)


def _mlp_train(x: Any, *given: Any) -> Any:
    *parameters, label, _, rate = given
    with torch.enable_grad():
        leaves = [parameter.detach().requires_grad_() for parameter in parameters]
        loss = functional.cross_entropy(_mlp(x, *leaves), label.long(), reduction="sum")
        gradients = torch.autograd.grad(loss, leaves)
    return [old - rate * by for old, by in zip(parameters, gradients, strict=True)]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "matmul": lambda a, b: a @ b,
    "bmm": torch.bmm,
    "matvec": lambda a, x: a @ x,
    "row_sum": lambda x: x.sum(1),
    "column_sum": lambda x: x.sum(0),
    "full_sum": lambda x: x.sum(),
    "transpose": lambda x: x.t().contiguous(),
    "fma_relu": lambda a, b, c: torch.relu(a * b + c),
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "softmax": lambda x: torch.softmax(x, -1),
    "layer_norm": lambda x, g, b: functional.layer_norm(x, (x.shape[-1],), g, b),
    "attention": lambda q, k, v: functional.scaled_dot_product_attention(q[None], k[None], v[None])[
        0
    ],
    "conv3x3": lambda x, w: functional.conv2d(x, w, padding=1),
    "mlp": _mlp,
    "mlp_train": _mlp_train,
}
"""By program."""


def calls(threads: int) -> Calls:
    """Tensors share the memory of the arrays; no gradient is recorded."""
    torch.set_num_threads(threads)
    return {program: _prepare(function) for program, function in FUNCTIONS.items()}


def _prepare(function: Callable[..., Any]) -> Callable[[Workload, Arrays], Call]:
    def prepare(_: Workload, arrays: Arrays) -> Call:
        tensors = [torch.from_numpy(array) for array in arrays.values()]

        def call() -> Any:
            with torch.no_grad():
                return function(*tensors)

        return call

    return prepare
