"""PyTorch on a GPU: its operations one by one, and the same by torch.compile; products in TF32 or bf16 where ours are.

It also draws the inputs of all contestants on the device, computes what is right in float64, and records calls. Beside
an emulated device it runs on the CPU, so that all but the records of calls is tried without a GPU.

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
from ilang.codegen.device.offload import device_of

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


def is_there(target: str) -> bool:
    """Whether PyTorch can run where a target does."""
    return target != "cuda" or bool(torch.cuda.is_available())


class Torch:
    """PyTorch on the GPU that a target means, or on the CPU beside the emulated one."""

    def __init__(self, target: str) -> None:
        """For a target."""
        self.target = target
        self.is_emulated = target != "cuda"
        self.place = "cpu" if self.is_emulated else "cuda"

    def given(self, row: GpuRow) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """The inputs of a row, and what is right, in float64; rows of known extents have the same."""
        workload = row.workload
        shapes = tuple(workload.inputs.items())
        return _given(self.place, workload.program, shapes, row.gradient)

    def ours(self, tensor: Any) -> Any:
        """A copy of a tensor in the memory of the device, where our programs read and write it.

        It is a tensor on a GPU. Emulated, it is an array of the device: a tensor would be one of the CPU.
        """
        if not self.is_emulated:
            return tensor.clone()
        return device_of(self.target).array(array_of(tensor))

    def empty(self, shape: tuple[int, ...]) -> Any:
        """An array of the device that nobody has written: all of it is NaN."""
        return self.ours(torch.full(shape, float("nan"), device=self.place))

    def tensor_of(self, array: Any) -> Any:
        """An array on the device as a tensor that shares its memory."""
        return array if isinstance(array, torch.Tensor) else torch.from_dlpack(array)

    def stream(self) -> int | None:
        """The handle of the current stream; None for the legacy one."""
        return None if self.is_emulated else torch.cuda.current_stream().cuda_stream or None

    def wait(self) -> None:
        """Wait for all that the device has to do."""
        device_of(self.target).wait() if self.is_emulated else torch.cuda.synchronize()

    def recorded(self, calls: Sequence[Callable[[], Any]]) -> Callable[[], float] | None:
        """What gives the seconds of a call without Python; None on an emulated device, which records nothing."""
        return None if self.is_emulated else partial(_recorded, calls)

    def contestants(self, row: GpuRow) -> dict[str, Prepare]:
        """By name; of attention also the path that stores the scores."""
        table: dict[str, Prepare] = {"PyTorch": partial(_prepared, self)}
        more: dict[str, Prepare] = {"PyTorch math": partial(_mathematical, self)}
        return table | (more if row.goal == ATTENTION else {})

    def compiled(self, row: GpuRow, arrays: dict[str, Any], copies: int) -> Contestant:
        """By the compiler of PyTorch: kernels of Triton."""
        return _prepared(self, row, arrays, copies, partial(torch.compile, dynamic=False))


@lru_cache(maxsize=1)
def _given(
    place: str, program: str, inputs: tuple[tuple[str, tuple[int, ...]], ...], is_gradient: bool
) -> tuple[dict[str, Any], tuple[Any, ...]]:
    torch.manual_seed(SEED)
    small = {name: shape for name, shape in inputs if len(shape) < 2}
    found = {
        name: torch.randn(shape, device=place) * scale_of(name, shape) for name, shape in inputs
    }
    if "label" in small:  # numbers of classes, and a rate of learning
        listed = arrays_of(Workload("", program, small, (), 0))
        found |= {n: torch.as_tensor(listed[n], device=place) for n in ("label", "class", "rate")}
    rounded = map(EXACT.get(program, lambda x: x), found.values())
    wide = [x.double() if x.is_floating_point() else x for x in rounded]
    function = (FUNCTIONS | dict(MORE))[program]
    with torch.no_grad():
        right = (partial(_gradients, function) if is_gradient else function)(*wide)
    return found, tuple(right) if isinstance(right, tuple | list) else (right,)


def array_of(tensor: Any) -> Array:
    """A copy of a tensor as a NumPy array."""
    return np.asarray(tensor.cpu().numpy())


def _recorded(calls: Sequence[Callable[[], Any]]) -> float:
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


def _prepared(
    device: Torch,
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

    return Contestant(calls, device.wait, result, device.recorded(calls))


def _gradients(function: Callable[..., Any], *given: Any) -> Any:
    """What flows back to all inputs but the last, which is what flows back to the output."""
    *tensors, back = given
    with torch.enable_grad():
        leaves = [tensor.detach().requires_grad_() for tensor in tensors]
        return torch.autograd.grad(function(*leaves), leaves, back)


def _mathematical(device: Torch, row: GpuRow, arrays: dict[str, Any], copies: int) -> Contestant:
    """Attention by one operation after the other."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def change(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*tensors: Any) -> Any:
            with sdpa_kernel(SDPBackend.MATH):
                return function(*tensors)

        return run

    return _prepared(device, row, arrays, copies, change)
