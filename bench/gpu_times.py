"""Programs on arrays of a device: ours, PyTorch's and torch.compile's, checked, then timed in the same way.

Calls are enqueued one after the other and waited for together, on inputs that take turns, so that they do not stay in
the cache of the device. What a call of Python takes counts where it is longer than what it enqueues, for everyone.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from bench import references
from bench.workloads import ON_GPU, PROGRAMS, QUICK, Array, Workload, arrays_of
from ilang import load
from ilang.codegen.runtime.offload import device_of
from ilang.core.record import record

CACHE = 200 << 20
"""Bytes of inputs that take turns: four times the cache of an H100."""
MOST_COPIES = 16
SAMPLES = 9
SAMPLE = 0.02
"""Seconds of calls that are waited for together."""
OURS = "i"


@record
class Contestant:
    """Calls on inputs that take turns, how to wait for all of them, and the outputs of the first as NumPy arrays."""

    calls: tuple[Callable[[], Any], ...]
    wait: Callable[[], None]
    result: Callable[[], tuple[Array, ...]]


Prepare = Callable[[Workload, dict[str, Array], int], Contestant]


def run(target: str, takes: Callable[[str], bool]) -> Iterator[tuple[str, bool, str]]:
    """Each workload whose name is taken: its name, whether our result is right, and the times in words."""
    is_emulated = target != "cuda"
    table: dict[str, Prepare] = {OURS: lambda *given: _ours(target, *given)}
    if not is_emulated and importlib.util.find_spec("torch") is not None:
        table |= {"PyTorch": _torch, "torch.compile": _torch_compiled}
    for workload in QUICK if is_emulated else ON_GPU:
        if takes(workload.name):
            yield _row(workload, table, is_emulated)


def _row(workload: Workload, table: dict[str, Prepare], is_quick: bool) -> tuple[str, bool, str]:
    arrays = arrays_of(workload)
    right = references.expected(workload.program, arrays)
    copies = max(1, min(MOST_COPIES, math.ceil(CACHE / max(workload.bytes_in(), 1))))
    said, taken = [], {}
    for name, prepare in table.items():
        try:
            contestant = prepare(workload, arrays, 1 if is_quick else copies)
            mistaken = references.mistake(contestant.result(), right)
            if not mistaken:
                taken[name] = _seconds(contestant, 1 if is_quick else SAMPLES)
        except Exception as error:  # whatever a device or a foreign package raises
            mistaken = f"{type(error).__name__}: {error}".splitlines()[0][:160]
        said.append(f"{name} {mistaken}" if mistaken else f"{name} {taken[name] * 1e3:.4f} ms")
    if OURS in taken:
        said += [
            f"{time / taken[OURS]:.2f} x {name}" for name, time in taken.items() if name != OURS
        ]
        said += [f"{workload.flops / taken[OURS] / 1e12:.2f} TFLOP/s"]
        said += [f"{(workload.bytes_in() + workload.bytes_out()) / taken[OURS] / 1e9:.0f} GB/s"]
    return workload.name, OURS in taken, ", ".join(said)


def _seconds(contestant: Contestant, samples: int) -> float:
    """The median time of a call."""
    turns = itertools.cycle(contestant.calls)

    def sample(count: int) -> float:
        contestant.wait()
        start = perf_counter()
        for _ in range(count):
            next(turns)()
        contestant.wait()
        return (perf_counter() - start) / count

    if samples == 1:
        return sample(1)
    one = sample(len(contestant.calls))
    count = max(3, min(10_000, math.ceil(SAMPLE / one)))
    return statistics.median(sample(count) for _ in range(samples))


def _ours(target: str, workload: Workload, arrays: dict[str, Array], copies: int) -> Contestant:
    """Our program as it stands, into arrays of the device that are given."""
    device = device_of(target)
    component = load(PROGRAMS / f"{workload.program}.i")[workload.program]
    outs = tuple(device.empty(shape, np.float32) for shape in workload.outputs)
    out = outs if len(outs) > 1 else outs[0]
    given = [[device.array(array) for array in arrays.values()] for _ in range(copies)]

    def call(inputs: Sequence[Any]) -> Callable[[], Any]:
        return lambda: component(*inputs, out=out, target=target)

    calls = tuple(call(inputs) for inputs in given)

    def result() -> tuple[Array, ...]:
        calls[0]()
        return tuple(each.get() for each in outs)

    return Contestant(calls, device.wait, result)


def _torch(
    workload: Workload, arrays: dict[str, Array], copies: int, *, is_compiled: bool = False
) -> Contestant:
    """Operations of PyTorch one by one, products of float32 in full; what it returns is new in each call."""
    import torch

    from bench.peers.on_torch import FUNCTIONS

    function = FUNCTIONS[workload.program]
    if is_compiled:
        function = torch.compile(function, dynamic=False)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    given = [[torch.from_numpy(a).cuda() for a in arrays.values()] for _ in range(copies)]

    def call(tensors: Sequence[Any]) -> Callable[[], Any]:
        def run() -> Any:
            with torch.no_grad():
                return function(*tensors)

        return run

    calls = tuple(call(tensors) for tensors in given)

    def result() -> tuple[Array, ...]:
        found = calls[0]()
        several = found if isinstance(found, tuple | list) else (found,)
        return tuple(each.cpu().numpy() for each in several)

    return Contestant(calls, torch.cuda.synchronize, result)


def _torch_compiled(workload: Workload, arrays: dict[str, Array], copies: int) -> Contestant:
    """The same, by the compiler of PyTorch: kernels of Triton."""
    return _torch(workload, arrays, copies, is_compiled=True)
