"""PyTorch on a GPU: its operations one by one, and the same by torch.compile; products in TF32 or bf16 where ours are.

It also draws the inputs of all contestants on the device, computes what is right in float64, and records calls.

Of a product in bf16 it is given factors of 16 bits, which nobody rounds while it is timed, and its result has as many.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch

from bench.gpu_rows import ATTENTION, IN_BF16, IN_TF32, GpuRow
from bench.gpu_times import MOST_SECONDS, SAMPLES, Contestant, Prepare
from bench.peers.on_torch import FUNCTIONS
from bench.workloads import SEED, Array, Workload, arrays_of, scale_of

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


EXACT: Mapping[str, Callable[[Any], Any]] = {
    "matmul_tf32": lambda x: ((x.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32),
    "matmul_bf16": lambda x: x.bfloat16(),
}
"""How a program rounds its factors: to 11 bits, further from zero of two nearest ones; to 8, the even one."""


def given(row: GpuRow) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """The inputs of a row on the device, and what is right, in float64; rows of known extents have the same."""
    workload = row.workload
    return _given(workload.program, tuple(workload.inputs.items()), row.gradient)


@lru_cache(maxsize=1)
def _given(
    program: str, inputs: tuple[tuple[str, tuple[int, ...]], ...], is_gradient: bool
) -> tuple[dict[str, Any], tuple[Any, ...]]:
    torch.manual_seed(SEED)
    small = {name: shape for name, shape in inputs if len(shape) < 2}
    found = {
        name: torch.randn(shape, device="cuda") * scale_of(name, shape) for name, shape in inputs
    }
    if "label" in small:  # numbers of classes, and a rate of learning
        listed = arrays_of(Workload("", program, small, (), 0))
        found |= {n: torch.as_tensor(listed[n], device="cuda") for n in ("label", "class", "rate")}
    rounded = map(EXACT.get(program, lambda x: x), found.values())
    wide = [x.double() if x.is_floating_point() else x for x in rounded]
    function = (FUNCTIONS | dict(MORE))[program]
    with torch.no_grad():
        right = (partial(_gradients, function) if is_gradient else function)(*wide)
    return found, tuple(right) if isinstance(right, tuple | list) else (right,)


def empty(shape: tuple[int, ...]) -> Any:
    """An array of the device that nobody has written: all of it is NaN."""
    return torch.full(shape, float("nan"), device="cuda")


def array_of(tensor: Any) -> Array:
    """A copy of a tensor as a NumPy array."""
    return np.asarray(tensor.cpu().numpy())


def tensor_of(array: Any) -> Any:
    """An array of ours on the device as a tensor that shares its memory."""
    return torch.as_tensor(array, device="cuda")


def stream() -> int | None:
    """The handle of the current stream; None for the legacy one."""
    return torch.cuda.current_stream().cuda_stream or None


def wait() -> None:
    """Wait for all that the device has to do."""
    torch.cuda.synchronize()


def recorded(calls: Sequence[Callable[[], Any]]) -> float:
    """The median seconds of a call in a graph of CUDA that has all of them, one after the other."""
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        for call in calls:  # what a first call takes, such as memory, is taken before
            call()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=side):
        for call in calls:
            call()

    def sample() -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3

    sample()
    few = max(1, min(SAMPLES, int(MOST_SECONDS / max(sample(), 1e-6))))
    return statistics.median(sample() for _ in range(few)) / len(calls)


def contestants(row: GpuRow) -> dict[str, Prepare]:
    """By name; of attention also the path that stores the scores."""
    table: dict[str, Prepare] = {"PyTorch": _prepared}
    return table | ({"PyTorch math": _mathematical} if row.goal == ATTENTION else {})


def _prepared(
    row: GpuRow,
    arrays: dict[str, Any],
    copies: int,
    change: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda function: function,
) -> Contestant:
    """What it returns is new in each call."""
    function = (FUNCTIONS | dict(MORE))[row.workload.program]
    function = change(partial(_gradients, function) if row.gradient else function)
    torch.backends.cuda.matmul.allow_tf32 = row.goal == IN_TF32
    torch.backends.cudnn.allow_tf32 = False
    dtype = torch.bfloat16 if row.goal == IN_BF16 else None
    inputs = [[a.to(dtype or a.dtype, copy=True) for a in arrays.values()] for _ in range(copies)]

    def call(tensors: Sequence[Any]) -> Callable[[], Any]:
        def run() -> Any:
            with torch.no_grad():
                return function(*tensors)

        return run

    calls = tuple(call(tensors) for tensors in inputs)

    def result() -> tuple[Any, ...]:
        returned = calls[0]()
        return tuple(returned) if isinstance(returned, tuple | list) else (returned,)

    return Contestant(calls, wait, result, partial(recorded, calls))


def _gradients(function: Callable[..., Any], *given: Any) -> Any:
    """What flows back to all inputs but the last, which is what flows back to the output."""
    *tensors, back = given
    with torch.enable_grad():
        leaves = [tensor.detach().requires_grad_() for tensor in tensors]
        return torch.autograd.grad(function(*leaves), leaves, back)


def compiled(row: GpuRow, arrays: dict[str, Any], copies: int) -> Contestant:
    """By the compiler of PyTorch: kernels of Triton."""
    return _prepared(row, arrays, copies, partial(torch.compile, dynamic=False))


def _mathematical(row: GpuRow, arrays: dict[str, Any], copies: int) -> Contestant:
    """Attention by one operation after the other."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def change(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*tensors: Any) -> Any:
            with sdpa_kernel(SDPBackend.MATH):
                return function(*tensors)

        return run

    return _prepared(row, arrays, copies, change)
