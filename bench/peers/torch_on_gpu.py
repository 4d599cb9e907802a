"""PyTorch on a GPU: its operations one by one, and the same by torch.compile; products in TF32 or bf16 where ours are.

Of a product in bf16 it is given factors of 16 bits, which nobody rounds while it is timed, and its result has as many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from bench.gpu_rows import ATTENTION, IN_BF16, IN_TF32, GpuRow
from bench.gpu_times import Contestant, Prepare
from bench.peers.on_torch import FUNCTIONS
from bench.workloads import Array

functional: Any = torch.nn.functional

MORE: Mapping[str, Callable[..., Any]] = {
    "copy": lambda x: x.clone(),
    "causal": lambda q, k, v: functional.scaled_dot_product_attention(
        q[None], k[None], v[None], is_causal=True
    )[0],
    "matmul_written": lambda a, b: a @ b,
    "matmul_tf32": lambda a, b: a @ b,
    "matmul_bf16": lambda a, b: a @ b,
}
"""What is timed on a GPU only."""


def contestants(row: GpuRow) -> dict[str, Prepare]:
    """By name; of attention also the path that stores the scores."""
    table: dict[str, Prepare] = {"PyTorch": _prepared, "torch.compile": _compiled}
    return table | ({"PyTorch math": _mathematical} if row.goal == ATTENTION else {})


def _prepared(
    row: GpuRow,
    arrays: dict[str, Array],
    copies: int,
    change: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda function: function,
) -> Contestant:
    """What it returns is new in each call."""
    function = (FUNCTIONS | dict(MORE))[row.workload.program]
    function = change(partial(_gradients, function) if row.gradient else function)
    torch.backends.cuda.matmul.allow_tf32 = row.goal == IN_TF32
    torch.backends.cudnn.allow_tf32 = False
    dtype = torch.bfloat16 if row.goal == IN_BF16 else None
    given = [
        [torch.from_numpy(a).to("cuda", dtype) for a in arrays.values()] for _ in range(copies)
    ]

    def call(tensors: Sequence[Any]) -> Callable[[], Any]:
        def run() -> Any:
            with torch.no_grad():
                return function(*tensors)

        return run

    calls = tuple(call(tensors) for tensors in given)

    def result() -> tuple[Array, ...]:
        returned = calls[0]()
        several = returned if isinstance(returned, tuple | list) else (returned,)
        wide = (each.float() if each.dtype == torch.bfloat16 else each for each in several)
        return tuple(each.cpu().numpy() for each in wide)

    return Contestant(calls, torch.cuda.synchronize, result)


def _gradients(function: Callable[..., Any], *given: Any) -> Any:
    """What flows back to all inputs but the last, which is what flows back to the output."""
    *tensors, back = given
    with torch.enable_grad():
        leaves = [tensor.detach().requires_grad_() for tensor in tensors]
        return torch.autograd.grad(function(*leaves), leaves, back)


def _compiled(row: GpuRow, arrays: dict[str, Array], copies: int) -> Contestant:
    """By the compiler of PyTorch: kernels of Triton."""
    return _prepared(row, arrays, copies, partial(torch.compile, dynamic=False))


def _mathematical(row: GpuRow, arrays: dict[str, Array], copies: int) -> Contestant:
    """Attention by one operation after the other."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def change(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*tensors: Any) -> Any:
            with sdpa_kernel(SDPBackend.MATH):
                return function(*tensors)

        return run

    return _prepared(row, arrays, copies, change)
