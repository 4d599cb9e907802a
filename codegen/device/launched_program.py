"""Programs whose kernels alone are compiled: what is around them is done here, as the host program says.

A text is what its kernels are, after a line with what the compiler and a later run have to know: the kernels by the
names that C++ has for them, and the host program without what kernels do. The compiler hands that line on.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ilang.codegen.call.memory import LARGEST_SPACE
from ilang.codegen.device.driver import Driver
from ilang.codegen.device.nvrtc import MARK
from ilang.codegen.targets import cuda
from ilang.codegen.targets.cuda_call import NUMBER, WORKSPACE, DeviceCall, call_of, kernels_of
from ilang.core.diagnostic import ToolError
from ilang.core.ir.host import Host
from ilang.core.ir.kernel import Program
from ilang.core.pipeline import host_of
from ilang.core.record import record, replace


def text_of(program: Program) -> str:
    """The text of a program's kernels, and what is known of them."""
    host = host_of(program)
    kernels = tuple(replace(kernel, body=(), comments=()) for kernel in program.kernels)
    around = replace(host, program=replace(program, kernels=kernels))
    known = {
        "kernels": list(kernels_of(host)),
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
        self._driver = driver
        self._host = kernels.host
        self._count = sum(size.is_argument() for size in kernels.host.program.sizes)
        self._kernels: dict[str, int] = {}
        module = _loaded(driver, driver.module(kernels.code))
        for kernel, name in kernels.names.items():
            self._kernels[kernel] = _loaded(driver, driver.kernel(module, name))
        self._call_at = lru_cache(maxsize=8)(self._call_of)

    def _call_of(self, sizes: tuple[int, ...]) -> DeviceCall | None:
        return call_of(self._host, sizes)

    def _call(self, sizes: Any) -> DeviceCall | None:
        """The call at these sizes; an array of sizes is never empty, a program may have none."""
        return self._call_at(tuple(sizes[: self._count].tolist()))

    def space(self, sizes: Any) -> int:
        """The bytes of its workspace."""
        call = self._call(sizes)
        return LARGEST_SPACE + 1 if call is None else call.total

    def run(self, sizes: Any, arrays: Sequence[Any], space: Any, stream: int) -> int:
        """Enqueue the program; the status."""
        call = self._call(sizes)
        if call is None:
            return 3
        addresses = [array.address for array in arrays]
        work = 0 if space is None else space.address
        status = call.status(addresses, work)
        if status:
            return status
        bases = {**dict(enumerate(addresses)), WORKSPACE: call.base(work), NUMBER: 0}
        begin, count = call.marks
        if count:
            status = self._driver.clear(bases[WORKSPACE] + begin, count, stream)
        for each in () if status else call.starts:
            values = [bases[base] + offset for base, offset in each.values]
            kernel = self._kernels[each.kernel]
            status = self._driver.start(kernel, each.grid, each.block, values, stream)
            if status:
                break
        return -status

    def wait(self, sizes: Any, space: Any, stream: int) -> int:
        """Wait for what it looks up; the status."""
        call = self._call(sizes)
        if call is None or call.outside is None:
            return 0
        outside = np.zeros(1, np.int32)
        place = call.base(space.address) + call.outside
        status = self._driver.read(place, outside, stream)
        return -status or (4 if outside[0] else 0)


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
