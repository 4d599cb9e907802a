"""NVIDIA's driver, by way of its own library: the first GPU of this machine, its memory, streams and kernels.

Functions give its statuses, whose numbers are those of CUDA's runtime. All work is done in the context that the
runtimes of other libraries share, and the one of the calling thread is as it was afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.call.memory import argument
from ilang.codegen.call.native import Address, Native
from ilang.core.diagnostic import ToolError

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array

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
APART = 1
"""A kind of stream: it does not wait for the default stream, nor that for it."""
OF_THREAD = 1
"""A way to record a stream: calls of other threads are of no concern."""


def _no_gpu(reason: str) -> ToolError:
    return ToolError("E0923", f"there is no GPU that CUDA can use: {reason}", help=EMULATE)


class Driver:
    """The driver, and the first GPU that it knows of."""

    def __init__(self) -> None:
        """Load the driver and ask for a GPU. Raises ToolError E0923: there is none."""
        self.native = _library()
        count = np.zeros(1, np.int32)
        self._ask("cuInit", 0)
        self._ask("cuDeviceGetCount", count)
        if not count[0]:
            raise _no_gpu("the driver of NVIDIA knows of none")

    def _ask(self, name: str, *arguments: Any) -> None:
        """Call a function without which there is no GPU. Raises ToolError E0923 where it fails."""
        try:
            status = self.native.call(name, *arguments)
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

    @cached_property
    def _switch(self) -> tuple[Callable[..., int], int, Callable[..., int], Any]:
        """The function that makes a context the current one, that of the GPU, and the function that leaves it."""
        push = self.native.function("cuCtxPushCurrent_v2", "w")
        pop = self.native.function("cuCtxPopCurrent_v2", "P")
        return push, int(self._context), pop, argument(np.zeros(1, np.uintp))

    def within(self, run: Callable[[], int]) -> int:
        """Call what gives a status in the context of the GPU, whatever device the thread has chosen; the status."""
        push, context, pop, box = self._switch
        status = push(context)
        if status:
            return status
        try:
            return run()
        finally:
            pop(box)

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function in the context of the GPU; its status."""
        return self.within(lambda: int(self.native.call(name, *arguments)))

    def new(self, name: str, *arguments: Any) -> tuple[int, int]:
        """Call a function that writes an address before it reads its arguments: its status, and the address."""
        box = np.zeros(1, np.uintp)
        return self.call(name, box, *arguments), int(box[0])

    def allocate(self, count: int) -> tuple[int, int]:
        """The status, and the address of so many bytes."""
        return self.new("cuMemAlloc_v2", np.uint64(count))

    def free(self, address: int) -> int:
        """Give memory back."""
        return self.call("cuMemFree_v2", Address(address))

    def write(self, address: int, array: Any, stream: int) -> int:
        """Copy a contiguous array to the device, and wait for that."""
        size = np.uint64(array.nbytes)
        copy = ("cuMemcpyHtoDAsync_v2", Address(address), array, size, Address(stream))
        return self.call(*copy) or self.wait(stream)

    def read(self, address: int, array: Any, stream: int) -> int:
        """Copy from the device into a contiguous array, and wait for that."""
        size = np.uint64(array.nbytes)
        copy = ("cuMemcpyDtoHAsync_v2", array, Address(address), size, Address(stream))
        return self.call(*copy) or self.wait(stream)

    def clear(self, address: int, count: int, stream: int) -> int:
        """Enqueue that so many bytes become 0, in the context of the GPU."""
        return int(self.native.function("cuMemsetD8Async", "wiww")(address, 0, count, stream))

    def wait(self, stream: int) -> int:
        """Wait for all that a stream has to do."""
        return self.call("cuStreamSynchronize", Address(stream))

    def order(self, first: int, then: int) -> int:
        """Let a stream wait for what another one has to do now."""
        status, event = self.new("cuEventCreate", WITHOUT_TIME)
        if status:
            return status
        status = self.call("cuEventRecord", Address(event), Address(first))
        status = status or self.call("cuStreamWaitEvent", Address(then), Address(event), 0)
        self.call("cuEventDestroy_v2", Address(event))
        return status

    def holds(self, address: int) -> bool:
        """Whether an address is memory of the GPU, and of nothing else."""
        box = np.zeros(1, np.int32)
        function, at = self.native.function("cuPointerGetAttribute", "Piw"), argument(box)

        def asked(attribute: int) -> int | None:
            return None if function(at, attribute, address) else int(box[0])

        def is_other() -> int:
            is_here = asked(ORDINAL) == 0 and asked(MEMORY_TYPE) == ON_DEVICE
            return not (is_here and not asked(IS_MANAGED))

        return not self.within(is_other)

    def error(self, status: int) -> str:
        """The meaning of a status."""
        box = np.zeros(1, np.uintp)
        if self.native.call("cuGetErrorString", status, box):
            return "unknown error"
        return self.native.text_at(int(box[0]))

    def module(self, code: bytes) -> tuple[int, int]:
        """The status, and a handle of kernels in machine code."""
        return self.new("cuModuleLoadData", np.frombuffer(code, np.uint8))

    def kernel(self, module: int, name: str) -> tuple[int, int]:
        """The status, and a handle of a kernel by the name that the machine code has for it."""
        text = np.frombuffer(name.encode() + b"\0", np.uint8)
        return self.new("cuModuleGetFunction", Address(module), text)

    def starter(
        self, kernel: int, grid: Sequence[int], block: Sequence[int], slots: Array
    ) -> Callable[[int], int]:
        """A function that enqueues a kernel on a stream, in the context of the GPU; none shares more than it says.

        ``slots`` are its arguments when that is called, of 8 bytes each: a narrower one is read at its start.
        """
        places = slots.ctypes.data + slots.itemsize * np.arange(len(slots), dtype=np.uintp)
        launch = self.native.function("cuLaunchKernel", "wiiiiiiiwPw")
        shape, pointers = (*grid, *block, 0), argument(places)

        def start(stream: int) -> int:
            return int(launch(kernel, *shape, stream, pointers, 0))

        return start


class StreamRecorder:
    """Streams of the driver apart from the default one, and graphs of what is enqueued on them."""

    def __init__(self, driver: Driver) -> None:
        """For the GPU of a driver that makes graphs."""
        self.driver = driver

    def stream(self) -> tuple[int, int]:
        """The status, and a new stream, which does not wait for the default one."""
        return self.driver.new("cuStreamCreate", APART)

    def end_stream(self, stream: int) -> int:
        """Give a stream back, once it has nothing to do."""
        return self.driver.call("cuStreamDestroy_v2", Address(stream))

    def record(self, stream: int) -> int:
        """From now on, record what this thread enqueues on a stream, in place of doing it."""
        return self.driver.call("cuStreamBeginCapture_v2", Address(stream), OF_THREAD)

    def recorded(self, stream: int) -> tuple[int, int]:
        """The status, and what was recorded of a stream, as a graph that can be launched."""
        box = np.zeros(1, np.uintp)
        status = self.driver.call("cuStreamEndCapture", Address(stream), box)
        if status:
            return status, 0
        graph = Address(int(box[0]))
        status, launched = self.driver.new("cuGraphInstantiateWithFlags", graph, np.uint64(0))
        return self.driver.call("cuGraphDestroy", graph) or status, launched

    def launch(self, graph: int, stream: int) -> int:
        """Enqueue all that a graph has."""
        function = self.driver.native.function("cuGraphLaunch", "ww")
        return self.driver.within(lambda: function(graph, stream))

    def end_graph(self, graph: int) -> int:
        """Give a graph back."""
        return self.driver.call("cuGraphExecDestroy", Address(graph))


def recorder_of(driver: Driver) -> StreamRecorder | None:
    """The recorder of a driver; None where it makes no graphs."""
    return StreamRecorder(driver) if driver.native.has("cuStreamBeginCapture_v2") else None


def _library() -> Native:
    for name in DRIVERS:
        try:
            return Native(name)
        except OSError:
            continue
    raise _no_gpu(f"no driver of NVIDIA is installed ({DRIVERS[0]})")
