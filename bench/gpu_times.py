"""Programs on arrays of a device: ours, PyTorch's and torch.compile's, checked, then timed in the same way.

Calls are enqueued one after the other and waited for together, on inputs that take turns, so that they do not stay in
the cache of the device. What a call of Python takes counts where it is longer than what it enqueues, for everyone.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from bench import gpu_rows, references, steps
from bench.workloads import Array, arrays_of
from ilang.codegen.emulator import program as emulator
from ilang.codegen.runtime import gpu
from ilang.codegen.runtime.library import library
from ilang.codegen.runtime.offload import device_of
from ilang.core.notation.module import parse_module
from ilang.core.record import record
from ilang.core.source import Source

CACHE = 200 << 20
"""Bytes of inputs that take turns: four times the cache of an H100."""
MOST_COPIES = 16
SAMPLES = 9
SAMPLE = 0.02
"""Seconds of calls that are waited for together."""
OURS = "i"
DRIVER = "cudaMemcpy"
COPYING = """#include <cuda_runtime.h>
#include <stddef.h>
extern "C" int copy(void *to, const void *from, size_t bytes)
{
    return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, 0);
}
"""
"""What NVIDIA's own copy is called by: a copy of ours would reach its own bandwidth, whatever that is."""


@record
class Contestant:
    """Calls on inputs that take turns, how to wait for all of them, and the outputs of the first as NumPy arrays."""

    calls: tuple[Callable[[], Any], ...]
    wait: Callable[[], None]
    result: Callable[[], tuple[Array, ...]]


Prepare = Callable[[gpu_rows.GpuRow, dict[str, Array], int], Contestant]


def run(target: str, takes: Callable[[str], bool]) -> Iterator[tuple[str, bool, str]]:
    """Each row whose name is taken: its name, whether our result is right, and the times and the goal in words."""
    is_emulated = target != "cuda"
    has_torch = not is_emulated and importlib.util.find_spec("torch") is not None
    copied = 0.0
    for row in gpu_rows.QUICK if is_emulated else gpu_rows.FULL:
        if takes(row.workload.name):
            table: dict[str, Prepare] = {OURS: partial(_ours, target)}
            if row.workload.program == gpu_rows.COPY:
                table[DRIVER] = partial(_copied, target)
            if has_torch:
                from bench.peers import torch_on_gpu

                table |= torch_on_gpu.contestants(row)
            right, said, taken = _timed(row, table, is_emulated)
            if row.workload.program == gpu_rows.COPY and not is_emulated:
                copied = max((_bandwidth(row, time) for time in taken.values()), default=0.0)
            yield row.workload.name, right, ", ".join([*said, *reached(row, taken, copied)])
    for step in steps.QUICK if is_emulated else steps.FULL:
        if takes(step.name):
            yield step_row(step, target, has_torch)


def _bandwidth(row: gpu_rows.GpuRow, seconds: float) -> float:
    """Bytes of inputs and outputs in a second."""
    return (row.workload.bytes_in() + row.workload.bytes_out()) / seconds


def reached(row: gpu_rows.GpuRow, taken: Mapping[str, float], copied: float) -> Iterator[str]:
    """What a row is to reach, and what it has."""
    goal = row.goal
    if goal is None or OURS not in taken:
        return
    share = None
    if goal.of == gpu_rows.COPY and copied:
        share = _bandwidth(row, taken[OURS]) / copied
    elif goal.of in taken:
        share = taken[goal.of] / taken[OURS]
    verdict = "not known" if share is None else f"{share:.0%}"
    if share is not None:
        verdict += ", reached" if goal.least <= share else ", MISSED"
    yield f"goal {goal.text}: {verdict}"


def _timed(
    row: gpu_rows.GpuRow, table: Mapping[str, Prepare], is_quick: bool
) -> tuple[bool, list[str], dict[str, float]]:
    """Whether our result is right, the times in words, and in seconds by contestant."""
    workload = row.workload
    arrays = arrays_of(workload)
    right = gpu_rows.expected(row, arrays)
    copies = max(1, min(MOST_COPIES, math.ceil(CACHE / max(workload.bytes_in(), 1))))
    said, taken = [], dict[str, float]()
    for name, prepare in table.items():
        try:
            contestant = prepare(row, arrays, 1 if is_quick else copies)
            mistaken = references.mistake(contestant.result(), right, row.tolerance)
            if not mistaken:
                taken[name] = seconds(contestant, 1 if is_quick else SAMPLES)
        except Exception as error:  # whatever a device or a foreign package raises
            mistaken = f"{type(error).__name__}: {error}".splitlines()[0][:160]
        said.append(f"{name} {mistaken}" if mistaken else f"{name} {taken[name] * 1e3:.4f} ms")
    if OURS in taken:
        said += _ratios(taken)
        said += [f"{workload.flops / taken[OURS] / 1e12:.2f} TFLOP/s"]
        said += [f"{_bandwidth(row, taken[OURS]) / 1e9:.0f} GB/s"]
    return OURS in taken, said, taken


def _ratios(taken: Mapping[str, float]) -> list[str]:
    """How much longer others take."""
    return [f"{time / taken[OURS]:.2f} x {name}" for name, time in taken.items() if name != OURS]


def step_row(step: steps.Step, target: str, has_torch: bool) -> tuple[str, bool, str]:
    """A step of training on a device, inputs and losses of the host: right where its losses are those of C."""
    host, samples = "C on the host", 1 if target != "cuda" else SAMPLES
    first = steps.session_of(step, 1)
    arrays, start = steps.arrays_of(first), steps.start_of(first)
    session = steps.session_of(step, 1, target)
    table: dict[str, Callable[[], steps.Call]] = {
        host: lambda: lambda: first(**arrays),
        OURS: lambda: lambda: session(**arrays),
    }
    if has_torch:
        from bench.peers import torch_steps

        for name in ("PyTorch", "torch.compile"):
            table[name] = partial(torch_steps.call_of, name, step, start, arrays, 1, "cuda")
    calls, _, wrong = steps.begun(table, host)
    taken = {
        name: seconds(Contestant((call,), device_of(target).wait, tuple), samples)
        for name, call in calls.items()
        if name != host
    }
    said = [f"{name} {time * 1e3:.4f} ms" for name, time in taken.items()]
    said += [f"{name} {mistaken}" for name, mistaken in wrong.items()]
    said += _ratios(taken) if OURS in taken else []
    return step.name, OURS in taken, ", ".join(said)


def seconds(contestant: Contestant, samples: int) -> float:
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


def _copied(target: str, row: gpu_rows.GpuRow, arrays: dict[str, Array], copies: int) -> Contestant:
    """The copy that NVIDIA's runtime makes from one array of the device to another one."""
    device = device_of(target)
    native = (
        gpu.library(lambda: COPYING, "copy.cu")
        if target == "cuda"
        else emulator.load(COPYING, "copy.cu")
    )
    (array,) = arrays.values()
    (shape,) = row.workload.outputs
    out = device.empty(shape, array.dtype)
    given = [device.array(array) for _ in range(copies)]

    def call(origin: Any) -> Callable[[], Any]:
        return lambda: device.check(native.call("copy", out, origin, np.uint64(array.nbytes)))

    calls = tuple(map(call, given))

    def result() -> tuple[Array, ...]:
        calls[0]()
        return (out.get(),)

    return Contestant(calls, device.wait, result)


def _ours(target: str, row: gpu_rows.GpuRow, arrays: dict[str, Array], copies: int) -> Contestant:
    """Our program as it stands, into arrays of the device that are given."""
    device, name = device_of(target), row.workload.program
    component = library(parse_module(Source(f"{name}.i", gpu_rows.text_of(row))))[name]
    component = component.grad() if row.gradient else component
    outs = tuple(device.empty(shape, np.float32) for shape in row.workload.outputs)
    out = outs if len(outs) > 1 else outs[0]
    given = [[device.array(array) for array in arrays.values()] for _ in range(copies)]

    def call(inputs: Sequence[Any]) -> Callable[[], Any]:
        return lambda: component(*inputs, out=out, target=target)

    calls = tuple(call(inputs) for inputs in given)

    def result() -> tuple[Array, ...]:
        calls[0]()
        return tuple(each.get() for each in outs)

    return Contestant(calls, device.wait, result)
