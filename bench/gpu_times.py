"""Programs on arrays of a device: ours, PyTorch's and torch.compile's, checked, then timed in the same way.

Calls are enqueued one after the other and waited for together, on inputs that take turns, so that they do not stay in
the cache of the device. With PyTorch there, inputs and results in float64 are computed on the device, and calls are
recorded as a graph of CUDA, which has no Python in it; what a call of Python takes is told apart. Without it, that
counts where it is longer than what the call enqueues.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from time import perf_counter
from typing import Any

import numpy as np

from bench import gpu_rows, references, steps
from bench.workloads import Array, arrays_of, kind_of
from ilang.codegen.call.native import Address
from ilang.codegen.components.library import library
from ilang.codegen.device import gpu
from ilang.codegen.device.offload import device_of
from ilang.codegen.emulator import program as emulator
from ilang.core.notation.files.module import parse_module
from ilang.core.record import record
from ilang.core.source import Source

CACHE = 200 << 20
"""Bytes of inputs that take turns: four times the cache of an H100."""
MOST_COPIES = 16
SAMPLES = 9
SAMPLE = 0.02
"""Seconds of calls that are waited for together."""
MOST_SECONDS = 0.3
"""Seconds of all samples of a row together, where one call is not longer."""
OURS = "i"
DRIVER = "cudaMemcpy"
LAYERS = ("mlp", "mlp_train")
"""Programs that torch.compile is tried on although products take most of their time."""
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
    """Calls on inputs that take turns, how to wait for all of them, and the outputs of the first as arrays.

    ``recorded`` gives seconds of one call without Python; None where that cannot be said.
    """

    calls: tuple[Callable[[], Any], ...]
    wait: Callable[[], None]
    result: Callable[[], tuple[Any, ...]]
    recorded: Callable[[], float] | None = None


Prepare = Callable[[gpu_rows.GpuRow, dict[str, Any], int], Contestant]
Verdict = tuple[str, bool | None, str]
"""The name of a row, whether our result is right (None: the row was not reached), and the rest in words."""


def run(
    target: str, takes: Callable[[str], bool], is_over: Callable[[], bool]
) -> Iterator[Verdict]:
    """Each row whose name is taken, those first that are worth most; then steps of training."""
    is_emulated, torch = target != "cuda", _torch(target)
    rows = [row for row in rows_of(target) if takes(row.workload.name)]
    compile_all(rows, target)
    copied = 0.0
    for row in rows:
        if is_over():
            yield not_reached(row.workload.name)
            continue
        table: dict[str, Prepare] = {OURS: partial(_ours, target)}
        if row.workload.program == gpu_rows.COPY:
            table[DRIVER] = partial(_copied, target)
        table |= {} if torch is None else torch.contestants(row)
        right, said, taken = _timed(row, table, target)
        if row.workload.program == gpu_rows.COPY and not is_emulated:
            copied = max((_bandwidth(row, time) for time in taken.values()), default=0.0)
        yield row.workload.name, right, ", ".join([*said, *reached(row, taken, copied)])
    for step in steps.QUICK if is_emulated else steps.FULL:
        if takes(step.name):
            yield not_reached(step.name) if is_over() else step_row(step, target, torch is not None)


def run_compiled(
    target: str, takes: Callable[[str], bool], is_over: Callable[[], bool]
) -> Iterator[Verdict]:
    """Rows beside torch.compile, which takes long to compile: what memory bounds, layers and a step of training."""
    torch = _torch(target)
    if torch is None:
        return
    for row in rows_of(target):
        is_worth = row.goal == gpu_rows.BANDWIDTH or row.workload.program in LAYERS
        if row.workload.program == gpu_rows.COPY or not (is_worth and takes(row.workload.name)):
            continue
        if is_over():
            yield not_reached(row.workload.name)
            continue
        table = {OURS: partial(_ours, target), "torch.compile": torch.compiled}
        right, said, _ = _timed(row, table, target)
        yield row.workload.name, right, ", ".join(said)


def not_reached(name: str) -> Verdict:
    """The verdict on what the time did not suffice for."""
    return name, None, "not reached"


@cache
def _torch(target: str) -> Any:
    """PyTorch on the device of a target as a contestant; None where it is not there, or knows no GPU."""
    if importlib.util.find_spec("torch") is None:
        return None
    from bench.peers import torch_on_gpu

    return torch_on_gpu.Torch(target) if torch_on_gpu.is_there(target) else None


def rows_of(target: str) -> Sequence[gpu_rows.GpuRow]:
    """The rows of a device, tiny where it is emulated."""
    return gpu_rows.FULL if target == "cuda" else gpu_rows.QUICK


def call_once(row: gpu_rows.GpuRow, target: str) -> None:
    """Call our program of a row on arrays of the device, and wait for it."""
    torch = _torch(target)
    contestant = _ours(
        target, row, arrays_of(row.workload) if torch is None else torch.given(row)[0], 1
    )
    contestant.calls[0]()
    contestant.wait()


def compile_all(rows: Sequence[gpu_rows.GpuRow], target: str) -> None:
    """Compile the programs of rows, as many at a time as there are processors; what fails does so again in its row."""

    def compiled(row: gpu_rows.GpuRow) -> None:
        inputs = row.workload.inputs
        stand_ins = [
            np.broadcast_to(np.zeros((), kind), shape)
            for shape, kind in zip(inputs.values(), map(kind_of, inputs), strict=True)
        ]
        component_of(row).program.fitting(stand_ins)[0].on(device_of(target))

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done in [pool.submit(compiled, row) for row in rows]:
            done.exception()


def component_of(row: gpu_rows.GpuRow) -> Any:
    """The program of a row, the same each time; that of a gradient is what gives the gradients."""
    return _component(row.workload.program, gpu_rows.text_of(row), row.gradient)


@cache
def _component(name: str, text: str, is_gradient: bool) -> Any:
    component = library(parse_module(Source(f"{name}.i", text)))[name]
    return component.grad() if is_gradient else component


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
    row: gpu_rows.GpuRow, table: Mapping[str, Prepare], target: str
) -> tuple[bool, list[str], dict[str, float]]:
    """Whether our result is right, the times in words, and in seconds by contestant."""
    workload, is_quick, torch = row.workload, target != "cuda", _torch(target)
    if torch is None:
        arrays = arrays_of(workload)
        right = gpu_rows.expected(row, arrays)
    else:
        arrays, right = torch.given(row)
    copies = max(1, min(MOST_COPIES, math.ceil(CACHE / max(workload.bytes_in(), 1))))
    said, taken = list[str](), dict[str, float]()
    for name, prepare in table.items():
        try:
            contestant = prepare(row, arrays, 1 if is_quick else copies)
            mistaken = references.mistake(contestant.result(), right, row.tolerance)
            if mistaken:
                said.append(f"{name} {mistaken}")
                continue
            called = seconds(contestant, 1 if is_quick else SAMPLES)
        except Exception as error:  # whatever a device or a foreign package raises
            said.append(f"{name} {type(error).__name__}: {error}".splitlines()[0][:160])
            continue
        taken[name] = _without_python(contestant, called)
        said.append(f"{name} {taken[name] * 1e3:.4f} ms")
        if called != taken[name]:
            said.append(f"{called * 1e3:.4f} ms called from Python")
    if OURS in taken:
        said += _ratios(taken)
        said += [f"{workload.flops / taken[OURS] / 1e12:.2f} TFLOP/s"]
        said += [f"{_bandwidth(row, taken[OURS]) / 1e9:.0f} GB/s"]
    return OURS in taken, said, taken


def _without_python(contestant: Contestant, called: float) -> float:
    """The seconds of a call that is recorded; those of one that Python makes where it cannot be."""
    try:
        return called if contestant.recorded is None else contestant.recorded()
    except Exception:  # whatever a device or a foreign package raises
        return called


def _ratios(taken: Mapping[str, float]) -> list[str]:
    """How much longer others take."""
    return [f"{time / taken[OURS]:.2f} x {name}" for name, time in taken.items() if name != OURS]


def step_row(step: steps.Step, target: str, has_torch: bool) -> Verdict:
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

        place = _torch(target).place
        table["PyTorch"] = partial(torch_steps.call_of, "PyTorch", step, start, arrays, 1, place)
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
    count = max(1, min(10_000, math.ceil(SAMPLE / one)))
    few = max(1, min(samples, int(MOST_SECONDS / (one * count))))
    return statistics.median(sample(count) for _ in range(few))


def _copied(target: str, row: gpu_rows.GpuRow, arrays: dict[str, Any], copies: int) -> Contestant:
    """The copy that NVIDIA's runtime makes from one array of the device to another one."""
    device, torch = device_of(target), _torch(target)
    native = (
        gpu.library(lambda: COPYING, "copy.cu")
        if target == "cuda"
        else emulator.load(COPYING, "copy.cu")
    )
    (shape,) = row.workload.outputs
    size = np.uint64(row.workload.bytes_in())
    (array,) = arrays.values()
    out = device.empty(shape, np.float32)
    given = [device.array(array) if torch is None else torch.ours(array) for _ in range(copies)]

    def call(origin: Any) -> Callable[[], Any]:
        if torch is None:
            return lambda: device.check(native.call("copy", out, origin, size))
        address = torch.tensor_of(origin).data_ptr()
        return lambda: device.check(native.call("copy", out, Address(address), size))

    calls = tuple(map(call, given))

    def result() -> tuple[Array, ...]:
        calls[0]()
        return (out.get() if torch is None else torch.tensor_of(out),)

    return Contestant(calls, device.wait, result)


def _ours(target: str, row: gpu_rows.GpuRow, arrays: dict[str, Any], copies: int) -> Contestant:
    """Our program as it stands, into arrays of the device that are given."""
    component, torch, device = component_of(row), _torch(target), device_of(target)
    outs: tuple[Any, ...]
    if torch is None:
        outs = tuple(device.empty(shape, np.float32) for shape in row.workload.outputs)
        given = [[device.array(array) for array in arrays.values()] for _ in range(copies)]
        here, wait, stream = [each.get for each in outs], device.wait, _no_stream
    else:
        outs = tuple(map(torch.empty, row.workload.outputs))
        given = [[torch.ours(array) for array in arrays.values()] for _ in range(copies)]
        here = [partial(_cloned, torch, each) for each in outs]
        wait, stream = torch.wait, torch.stream
    out = outs if len(outs) > 1 else outs[0]

    def call(inputs: Sequence[Any]) -> Callable[[], Any]:
        return lambda: component(*inputs, out=out, target=target, stream=stream())

    calls = tuple(call(inputs) for inputs in given)

    def result() -> tuple[Any, ...]:
        calls[0]()
        return tuple(each() for each in here)

    recorded = None if torch is None else torch.recorded(calls)
    return Contestant(calls, wait, result, recorded)


def _cloned(torch: Any, array: Any) -> Any:
    """A copy of an array of the device as a tensor."""
    return torch.tensor_of(array).clone()


def _no_stream() -> None:
    """No stream is asked for."""
