"""Programs whose kernels alone are compiled: what is around them is done here, as the host program says.

A text is what its kernels are, after a line with what the compiler and a later run have to know: the kernels by the
names that C++ has for them, and the host program without what kernels do. The compiler hands that line on.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ilang.codegen.call.memory import LARGEST_SPACE
from ilang.codegen.device.driver import Driver
from ilang.codegen.device.nvrtc import MARK
from ilang.codegen.system.concurrency import ForkSafeLock
from ilang.codegen.targets import cuda, cuda_call
from ilang.core.diagnostic import ToolError
from ilang.core.ir.host import Host
from ilang.core.ir.kernel import Program
from ilang.core.pipeline import host_of
from ilang.core.record import record, replace

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array

    _Launch = tuple[Array, Sequence[tuple[int, cuda_call.Value]], Callable[[int], int]]


def text_of(program: Program) -> str:
    """The text of a program's kernels, and what is known of them."""
    host = host_of(program)
    kernels = tuple(replace(kernel, body=(), comments=()) for kernel in program.kernels)
    around = replace(host, program=replace(program, kernels=kernels))
    known = {
        "kernels": list(cuda_call.kernels_of(host)),
        "host": base64.b64encode(pickle.dumps(around)).decode(),
    }
    return f"{MARK}{json.dumps(known)}\n{cuda.emit_kernels([host])}"


@record
class CompiledKernels:
    """The result of a compiler on such a text: machine code, the names that it has for kernels, the host program."""

    code: bytes
    names: dict[str, str]
    host: Host


def kernels_in(content: bytes) -> CompiledKernels:
    """Kernels from what the compiler wrote, in a cache that nobody else can write. Raises OSError: it is broken."""
    code, _, last = content.rpartition(b"\n")
    try:
        known = json.loads(last)
        host = pickle.loads(base64.b64decode(known["host"]))
        return CompiledKernels(code, known["kernels"], host)
    except Exception as error:  # whatever a pickle of something else raises
        raise OSError(f"not what {__name__} writes: {error}") from None


class LaunchedProgram:
    """A program on a GPU, whose kernels are launched one by one. Safe to use from several threads."""

    def __init__(self, driver: Driver, kernels: CompiledKernels) -> None:
        """Load the kernels. Raises ToolError (E0922): the driver does not take them."""
        self.driver = driver
        self._host = kernels.host
        self.kernels: dict[str, int] = {}
        module = _loaded(driver, driver.module(kernels.code))
        for kernel, name in kernels.names.items():
            self.kernels[kernel] = _loaded(driver, driver.kernel(module, name))

    def at(self, sizes: Sequence[int]) -> SizedLaunches:
        """The launches at the sizes of a call."""
        return SizedLaunches(self, cuda_call.call_of(self._host, sizes))


class SizedLaunches:
    """The launches of a program at the sizes of a call, their arguments ready but for addresses."""

    def __init__(self, program: LaunchedProgram, call: cuda_call.DeviceCall | None) -> None:
        """For a call; None where an extent does not fit."""
        self._driver = program.driver
        self._call = call
        self.space = LARGEST_SPACE + 1 if call is None else call.total
        starts = () if call is None else call.starts
        self._launches = [_launch(program, each) for each in starts]
        self.looks = call is not None and call.outside is not None
        self._lock = ForkSafeLock()

    def run(self, addresses: Sequence[int], space: int, stream: int) -> int:
        """Enqueue the program; the status."""
        call = self._call
        if call is None:
            return 3
        status = call.status(addresses, space)
        if status:
            return status
        with self._lock.taken():  # the arguments of a launch are read when it is enqueued
            return -self._driver.within(lambda: self._enqueue(call, addresses, space, stream))

    def _enqueue(
        self, call: cuda_call.DeviceCall, addresses: Sequence[int], space: int, stream: int
    ) -> int:
        """Enqueue what the call has; a status of CUDA."""
        bases = {**dict(enumerate(addresses)), cuda_call.WORKSPACE: call.base(space)}
        begin, count = call.marks
        status = (
            self._driver.clear(bases[cuda_call.WORKSPACE] + begin, count, stream) if count else 0
        )
        for slots, places, start in () if status else self._launches:
            for n, (base, offset) in places:
                slots[n] = bases[base] + offset
            status = start(stream)
            if status:
                break
        return status

    def wait(self, space: int, stream: int) -> int:
        """Wait for what it looks up; the status."""
        call = self._call
        if call is None or call.outside is None:
            return 0
        outside = np.zeros(1, np.int32)
        status = self._driver.read(call.base(space) + call.outside, outside, stream)
        return -status or (4 if outside[0] else 0)


def _launch(program: LaunchedProgram, start: cuda_call.KernelStart) -> _Launch:
    """The arguments of a launch, those of them that are addresses, by number, and what enqueues it."""
    numbers = [offset if base == cuda_call.NUMBER else 0 for base, offset in start.values]
    slots = np.array(numbers, np.uint64)
    places = [(n, each) for n, each in enumerate(start.values) if each[0] != cuda_call.NUMBER]
    kernel = program.kernels[start.kernel]
    return slots, places, program.driver.starter(kernel, start.grid, start.block, slots)


def _loaded(driver: Driver, given: tuple[int, int]) -> int:
    """The handle that the driver gives. Raises ToolError (E0922) where it gives a status instead."""
    status, handle = given
    if status:
        raise ToolError(
            "E0922",
            f"the GPU does not take the kernels: {driver.error(status)} (status {status} of CUDA)",
            help="the compiler is newer than the driver: nvidia-smi shows the release of CUDA that the driver supports",
        )
    return handle
