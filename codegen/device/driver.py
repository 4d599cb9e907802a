"""NVIDIA's driver, by way of its own library: the first GPU of this machine, its memory, streams and kernels.

Functions give its statuses, whose numbers are those of CUDA's runtime. All work is done in the context that the
runtimes of other libraries share, and the one of the calling thread is as it was afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ilang.codegen.device.native import Address, Native
from ilang.core.diagnostic import ToolError

EMULATE = 'emulate one, slowly: --emulate on the command line, target="cuda-emulated" in Python'
"""Help for a machine without a GPU."""

DRIVERS = ("libcuda.so.1", "libcuda.so")
MAJOR, MINOR = 75, 76
"""The driver's numbers of the two parts of a compute capability."""
MEMORY_TYPE, IS_MANAGED, ORDINAL = 2, 8, 9
"""The driver's numbers of attributes of an address: the last one is the number of its device."""
ON_DEVICE = 2
"""The type of memory of a device."""
WITHOUT_TIME = 2
"""A kind of event."""


def _no_gpu(reason: str) -> ToolError:
    return ToolError("E0923", f"there is no GPU that CUDA can use: {reason}", help=EMULATE)


class Driver:
    """The driver, and the first GPU that it knows of."""

    def __init__(self) -> None:
        """Load the driver and ask for a GPU. Raises ToolError E0923: there is none."""
        self._native = _library()
        count = np.zeros(1, np.int32)
        self._ask("cuInit", 0)
        self._ask("cuDeviceGetCount", count)
        if not count[0]:
            raise _no_gpu("the driver of NVIDIA knows of none")

    def _ask(self, name: str, *arguments: Any) -> None:
        """Call a function without which there is no GPU. Raises ToolError E0923 where it fails."""
        try:
            status = self._native.call(name, *arguments)
        except AttributeError:
            raise _no_gpu(f"the driver of NVIDIA has no {name}") from None
        if status:
            raise _no_gpu(f"{name} of the driver gave status {status}")

    def capability(self) -> int:
        """The compute capability of the GPU, as compilers write it: 90 is 9.0. Raises ToolError E0923."""
        major, minor = np.zeros(1, np.int32), np.zeros(1, np.int32)
        self._ask("cuDeviceGetAttribute", major, MAJOR, 0)
        self._ask("cuDeviceGetAttribute", minor, MINOR, 0)
        return int(major[0]) * 10 + int(minor[0])

    @cached_property
    def _context(self) -> Address:
        """The context of the GPU that runtimes share, which is kept from now on. Raises ToolError E0923."""
        device, context = np.zeros(1, np.int32), np.zeros(1, np.uintp)
        self._ask("cuDeviceGet", device, 0)
        self._ask("cuDevicePrimaryCtxRetain", context, int(device[0]))
        return Address(int(context[0]))

    def within(self, run: Callable[[], int]) -> int:
        """Call what gives a status in the context of the GPU, whatever device the thread has chosen; the status."""
        status = int(self._native.call("cuCtxPushCurrent_v2", self._context))
        if status:
            return status
        try:
            return run()
        finally:
            self._native.call("cuCtxPopCurrent_v2", np.zeros(1, np.uintp))

    def _call(self, name: str, *arguments: Any) -> int:
        """Call a function in the context of the GPU; its status."""
        return self.within(lambda: int(self._native.call(name, *arguments)))

    def _new(self, name: str, *arguments: Any) -> tuple[int, int]:
        """Call a function that writes an address before it reads its arguments: its status, and the address."""
        box = np.zeros(1, np.uintp)
        return self._call(name, box, *arguments), int(box[0])

    def allocate(self, count: int) -> tuple[int, int]:
        """The status, and the address of so many bytes."""
        return self._new("cuMemAlloc_v2", np.uint64(count))

    def free(self, address: int) -> int:
        """Give memory back."""
        return self._call("cuMemFree_v2", Address(address))

    def write(self, address: int, array: Any, stream: int) -> int:
        """Copy a contiguous array to the device, and wait for that."""
        size = np.uint64(array.nbytes)
        copy = ("cuMemcpyHtoDAsync_v2", Address(address), array, size, Address(stream))
        return self._call(*copy) or self.wait(stream)

    def read(self, address: int, array: Any, stream: int) -> int:
        """Copy from the device into a contiguous array, and wait for that."""
        size = np.uint64(array.nbytes)
        copy = ("cuMemcpyDtoHAsync_v2", array, Address(address), size, Address(stream))
        return self._call(*copy) or self.wait(stream)

    def clear(self, address: int, count: int, stream: int) -> int:
        """Enqueue that so many bytes become 0."""
        return self._call("cuMemsetD8Async", Address(address), 0, np.uint64(count), Address(stream))

    def wait(self, stream: int) -> int:
        """Wait for all that a stream has to do."""
        return self._call("cuStreamSynchronize", Address(stream))

    def order(self, first: int, then: int) -> int:
        """Let a stream wait for what another one has to do now."""
        status, event = self._new("cuEventCreate", WITHOUT_TIME)
        if status:
            return status
        status = self._call("cuEventRecord", Address(event), Address(first))
        status = status or self._call("cuStreamWaitEvent", Address(then), Address(event), 0)
        self._call("cuEventDestroy_v2", Address(event))
        return status

    def holds(self, address: int) -> bool:
        """Whether an address is memory of the GPU, and of nothing else."""

        def asked(attribute: int) -> int | None:
            box = np.zeros(1, np.int32)
            status = self._call("cuPointerGetAttribute", box, attribute, Address(address))
            return None if status else int(box[0])

        return asked(MEMORY_TYPE) == ON_DEVICE and not asked(IS_MANAGED) and asked(ORDINAL) == 0

    def error(self, status: int) -> str:
        """The meaning of a status."""
        box = np.zeros(1, np.uintp)
        if self._native.call("cuGetErrorString", status, box):
            return "unknown error"
        return self._native.text_at(int(box[0]))

    def module(self, code: bytes) -> tuple[int, int]:
        """The status, and a handle of kernels in machine code."""
        return self._new("cuModuleLoadData", np.frombuffer(code, np.uint8))

    def kernel(self, module: int, name: str) -> tuple[int, int]:
        """The status, and a handle of a kernel by the name that the machine code has for it."""
        text = np.frombuffer(name.encode() + b"\0", np.uint8)
        return self._new("cuModuleGetFunction", Address(module), text)

    def start(
        self,
        kernel: int,
        grid: Sequence[int],
        block: Sequence[int],
        values: Sequence[int],
        stream: int,
    ) -> int:
        """Enqueue a kernel, whose arguments are numbers and addresses; none shares more than it says itself."""
        slots = np.array(values, np.uint64)  # of 8 bytes each: a narrower one is read at its start
        places = slots.ctypes.data + slots.itemsize * np.arange(len(values), dtype=np.uintp)
        shape = (*grid, *block, 0)
        return self._call("cuLaunchKernel", Address(kernel), *shape, Address(stream), places, None)


def _library() -> Native:
    for name in DRIVERS:
        try:
            return Native(name)
        except OSError:
            continue
    raise _no_gpu(f"no driver of NVIDIA is installed ({DRIVERS[0]})")
