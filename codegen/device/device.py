"""Devices of CUDA, and arrays in their memory: a GPU, or what emulates one.

A device is a way to load programs, and a runtime: all that is asked of it beside them. Where CUDA texts are compiled
to libraries, that is ``device.cu``, itself such a text, so that a GPU and its emulation go the same way; where kernels
alone are compiled, it is the driver.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.call.native import Address, Native
from ilang.codegen.device.executable import DeviceSource, Executable, Within, at_once
from ilang.codegen.device.streams import DEFAULT_STREAM
from ilang.core.diagnostic import DataError, Error, ToolError

if TYPE_CHECKING:
    from ilang.codegen.device.driver import Driver, StreamRecorder

OUT_OF_MEMORY = 2
"""The status of CUDA for it."""


@functools.lru_cache(maxsize=1)
def _text() -> str:
    from pathlib import Path

    return Path(__file__).with_name("device.cu").read_text("utf-8")


class LibraryRuntime:
    """The functions of ``device.cu``, compiled to a library; they give statuses of CUDA, the first one an address, too.

    Where kernels alone are compiled, a ``Driver`` has the same functions.
    """

    def __init__(
        self, load: Callable[[Callable[[], str], str], Native], within: Within = at_once
    ) -> None:
        """Compile and load it: ``load`` takes what gives a text, and the name of its file."""
        self._native = load(_text, "device.cu")
        self._within = within

    def _call(self, name: str, *arguments: Any) -> int:
        """Call a function of the device; its status."""
        return self._within(lambda: int(self._native.call(name, *arguments)))

    def allocate(self, count: int) -> tuple[int, int]:
        """The status, and the address of so many bytes."""
        box = np.zeros(1, np.uintp)
        return self._call("device_allocate", box, np.uint64(count)), int(box[0])

    def free(self, address: int) -> int:
        """Give memory back."""
        return self._call("device_free", Address(address))

    def write(self, address: int, array: Any, stream: int) -> int:
        """Copy a contiguous array to the device, and wait for that."""
        words = (Address(address), array, np.uint64(array.nbytes), Address(stream))
        return self._call("device_write", *words)

    def read(self, address: int, array: Any, stream: int) -> int:
        """Copy from the device into a contiguous array, and wait for that."""
        words = (array, Address(address), np.uint64(array.nbytes), Address(stream))
        return self._call("device_read", *words)

    def wait(self, stream: int) -> int:
        """Wait for all that a stream has to do."""
        return self._call("device_wait", Address(stream))

    def order(self, first: int, then: int) -> int:
        """Let a stream wait for what another one has to do now."""
        return self._call("device_order", Address(first), Address(then))

    def holds(self, address: int) -> bool:
        """Whether an address is memory of the device."""
        function = self._native.function("device_holds", "w")
        return bool(self._within(lambda: function(address)))

    def error(self, status: int) -> str:
        """The meaning of a status."""
        return str(self._native.call("device_error", status, gives="text"))


class Device:
    """A device: loads programs, has memory. Safe to use from several threads.

    ``recorder`` records what is enqueued, where the device can do that.
    """

    recorder: StreamRecorder | None = None

    def __init__(
        self,
        name: str,
        runtime: LibraryRuntime | Driver,
        load: Callable[[DeviceSource], Executable],
        report: Callable[[], str] = lambda: "",
        stop: Callable[[], None] | None = None,
        *,
        is_host: bool = False,
    ) -> None:
        """A device by its name in messages.

        Args:
            name: in messages.
            runtime: what is asked of it beside programs.
            load: compiles and loads a program.
            report: what the device says of a failure, beside its status; it then works again, if it can.
            stop: gives up what runs, where that is possible; the device fails until it has told so.
            is_host: its memory is that of the process, as other libraries see it.
        """
        self.name = name
        self.is_host = is_host
        self.load = load
        self.report = report
        self.stop = stop
        self._runtime = runtime

    def check(self, status: int) -> None:
        """Raise ToolError (E0922) for a status of CUDA that is an error."""
        if status:
            message = self._runtime.error(status)
            raise ToolError(
                "E0922",
                f"{self.name} failed: {message} (status {status} of CUDA){self.report()}",
                help="the device may be in use, or out of memory; run the program with target c to compare",
            )

    def allocate(self, count: int) -> int:
        """The address of so many bytes; 0 for none. Raises DataError (E0713): there is no room."""
        status, address = self._runtime.allocate(count) if count else (0, 0)
        if status == OUT_OF_MEMORY:
            raise DataError(
                "E0713",
                f"there is not enough memory on {self.name} for {count:,} bytes",
                help="use smaller arrays, or give up those that are not needed",
            )
        self.check(status)
        return address

    def free(self, address: int) -> None:
        """Give memory back that ``allocate`` gave; waits for what uses it."""
        if address:
            self._runtime.free(address)

    def write(self, address: int, array: Any, stream: int = DEFAULT_STREAM) -> None:
        """Copy a contiguous array to the device."""
        if array.nbytes:
            self.check(self._runtime.write(address, array, stream))

    def read(self, address: int, array: Any, stream: int = DEFAULT_STREAM) -> None:
        """Copy from the device into a contiguous array."""
        if array.nbytes:
            self.check(self._runtime.read(address, array, stream))

    def wait(self, stream: int = DEFAULT_STREAM) -> None:
        """Wait for all that a stream has to do."""
        self.check(self._runtime.wait(stream))

    def order(self, first: int, then: int) -> None:
        """Let a stream wait for what another one has to do now."""
        if first != then:
            self.check(self._runtime.order(first, then))

    def stream_apart(self, owner: object) -> int:
        """A stream of an owner's own, for as long as it lives; the default one where nothing is recorded."""
        if self.recorder is None:
            return DEFAULT_STREAM
        status, stream = self.recorder.stream()
        self.check(status)
        weakref.finalize(owner, self.recorder.end_stream, stream)
        return stream

    def recorded(self, stream: int, enqueue: Callable[[], None]) -> Recording | None:
        """The work that a call enqueues on a stream apart, which does not begin; None where it cannot be recorded.

        What a call raises is not told: it raises that as well where it is called to do its work.
        """
        if self.recorder is None or self.recorder.record(stream):
            return None
        try:
            enqueue()
        except Error:
            self.recorder.recorded(stream)
            return None
        except BaseException:
            self.recorder.recorded(stream)
            raise
        status, graph = self.recorder.recorded(stream)
        return None if status else Recording(self, self.recorder, graph, stream)

    def holds(self, address: int) -> bool:
        """Whether an address is memory of the device."""
        return self._runtime.holds(address)

    def array(self, array: Any, stream: int = DEFAULT_STREAM) -> DeviceArray:
        """A copy of a NumPy array on the device."""
        plain = np.asarray(array, order="C")
        copied = self.empty(plain.shape, plain.dtype, stream)
        self.write(copied.address, plain, stream)
        return copied

    def empty(
        self, shape: tuple[int, ...], dtype: Any, stream: int = DEFAULT_STREAM
    ) -> DeviceArray:
        """A new array on the device, which holds nothing of use."""
        return DeviceArray(self, shape, np.dtype(dtype), stream)


class Recording:
    """Work that was recorded on a stream, as one graph of CUDA."""

    def __init__(self, device: Device, recorder: StreamRecorder, graph: int, stream: int) -> None:
        """A graph, which is given back with the last reference."""
        self._device, self._recorder = device, recorder
        self._graph, self._stream = graph, stream
        weakref.finalize(self, recorder.end_graph, graph)

    def launch(self) -> None:
        """Enqueue the work once more. Raises ToolError (E0922): the device failed."""
        self._device.check(self._recorder.launch(self._graph, self._stream))


class DeviceArray:
    """A contiguous array of a device; its memory is given back with the last reference to it."""

    def __init__(
        self, device: Device, shape: tuple[int, ...], dtype: np.dtype[Any], stream: int
    ) -> None:
        """New memory, written on a stream. Raises DataError (E0713): there is no room."""
        self.device = device
        self.shape = shape
        self.dtype = dtype
        self.stream = stream
        self.nbytes = math.prod(shape) * dtype.itemsize
        self.address = device.allocate(self.nbytes)
        weakref.finalize(self, device.free, self.address)

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    def get(self) -> Any:
        """A copy as a NumPy array, once what its stream has to do is done."""
        array = np.empty(self.shape, self.dtype)
        self.device.wait(self.stream)
        self.device.read(self.address, array, self.stream)
        return array

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """The record by which CuPy, torch, Numba and others know an array of CUDA."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
            "stream": self.stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind of memory and the number of the device, as DLPack has them."""
        from ilang.codegen.device.dlpack import CPU, CUDA

        return (CPU if self.device.is_host else CUDA, 0)

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        """A capsule of DLPack, for a library that reads it on a stream; -1 for one that waits by itself.

        Raises:
            DataError: E0767 (0, which DLPack leaves open).
        """
        from ilang.codegen.device.dlpack import capsule_of

        if stream == 0:
            from ilang.codegen.device.streams import ambiguous

            raise ambiguous("__dlpack__ is asked for stream 0")
        if self.device.is_host:
            self.device.wait(self.stream)
        elif stream != -1:
            self.device.order(self.stream, stream or DEFAULT_STREAM)
        return capsule_of(self, self.__dlpack_device__()[0])

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype}{list(self.shape)} on {self.device.name}>"
