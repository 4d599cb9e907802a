"""Programs on devices: arrays moved there and back, or taken and given where they are."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ilang.codegen.call import arguments
from ilang.codegen.call.load import interface_of
from ilang.codegen.call.memory import LARGEST_SPACE, too_large
from ilang.codegen.call.plan import failure
from ilang.codegen.device.device import Device, DeviceArray
from ilang.codegen.device.executable import DeviceSource, SizedProgram
from ilang.codegen.device.located import Located
from ilang.codegen.device.streams import DEFAULT_STREAM, STREAM_OF_THREAD, named_stream
from ilang.codegen.system.concurrency import ForkSafeLock, hears_signals, interruptible, kept
from ilang.codegen.targets.identifiers import function_identifier
from ilang.core import pipeline
from ilang.core.diagnostic import DataError, Error
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import GPU

T = TypeVar("T")
Space = Callable[[int], tuple[Any, int]]
"""Gives so many bytes of a device: what keeps them, and their address."""

MOST_SIZES = 256
"""Sizes that one program remembers."""


def device_of(target: str) -> Device:
    """The device that a target means.

    Raises:
        ToolError: E0901 to E0909 (a compiler), E0923 (no GPU).
    """
    if target == "cuda":
        from ilang.codegen.device.gpu import gpu

        return gpu()
    from ilang.codegen.emulator.program import emulated

    return emulated()


def located(name: str, value: Any, device: Device, stream: int | None) -> Located | None:
    """The place of an array on a device, as it says itself or hands it over by DLPack; None for what is on none.

    ``stream`` is where it will be read, if that is known.

    Raises:
        DataError: E0703 (element type), E0714 (elements that do not lie one after the other), E0767 (its stream).
    """
    if isinstance(value, np.ndarray):
        return None
    try:
        interface = getattr(value, "__cuda_array_interface__", None)
        if isinstance(interface, dict):
            at = _of_interface(name, interface, value)
        else:
            handed = _handed(name, value, device, stream)
            if handed is None:
                return None
            at = handed
    except Error:
        raise
    except Exception:  # whatever the class of somebody else raises: it is no array of a device then
        return None
    if not at.is_plain():
        raise DataError(
            "E0714",
            f"{name} is strided on its device: its elements do not lie one after the other",
            help="copy it there first: x.contiguous() of torch, cupy.ascontiguousarray(x)",
        )
    return at


def _handed(name: str, value: Any, device: Device, stream: int | None) -> Located | None:
    """The array that is handed over by DLPack; None for what is not, or not of the device.

    The owner of the array sees to it that it is written before anything further on the stream that is asked for.
    """
    from ilang.codegen.device.dlpack import CPU, CUDA, taken

    at = taken(name, value, CPU if device.is_host else CUDA, stream or DEFAULT_STREAM)
    return at if at is not None and (not device.is_host or device.holds(at.address)) else None


def _of_interface(name: str, interface: dict[str, Any], owner: Any) -> Located:
    """The place that ``__cuda_array_interface__`` says. Raises DataError (E0767): its stream."""
    address, is_readonly = interface["data"]
    shape = tuple(int(n) for n in interface["shape"])
    stream = named_stream(name, interface.get("stream"))
    dtype = np.dtype(interface["typestr"])
    strides = interface.get("strides")
    return Located(int(address or 0), shape, dtype, stream, owner, bool(is_readonly), strides)


def separated(
    names: Sequence[str], given: Sequence[Any], device: Device, stream: int | None = None
) -> tuple[list[Any], dict[int, Located]]:
    """Arrays for the checks of arguments, and by number those of them that are on the device.

    ``stream`` is where they will be read, if that is known.

    Raises:
        DataError: E0703 (element type), E0714 (on another device, or strided), E0767 (its stream).
    """
    checked, device_arrays = list(given), {}
    for n, value in enumerate(given):
        name = names[n] if n < len(names) else f"array {n}"
        at = located(name, value, device, stream)
        if at is None:
            continue
        if 0 not in at.shape and not device.holds(at.address):
            raise DataError(
                "E0714",
                f"{name} is {_place(value)}, and not in the memory of {device.name}",
                help=f"programs run on {device.name}: copy the array there, or to NumPy",
            )
        device_arrays[n], checked[n] = at, at.stand_in()
        if checked[n].dtype not in arguments.SUPPORTED:
            raise arguments.unsupported(name, checked[n].dtype)
    return checked, device_arrays


def _place(value: Any) -> str:
    """The device of an array of CUDA in words, as far as its library says which."""
    try:
        return f"an array of device {value.__dlpack_device__()[1]} of CUDA"
    except Exception:  # whatever the class of somebody else raises
        return "an array of CUDA"


class _OfThread(threading.local):
    """Workspaces of one thread, by stream: those of streams that are another one in every thread."""

    def __init__(self) -> None:
        self.spaces: dict[int, DeviceArray] = {}


class Offloaded:
    """One shaped program on one device, compiled when it is made. Safe to use from several threads."""

    def __init__(self, shaped: Shaped, device: Device) -> None:
        """Compile and load the program.

        Raises:
            ToolError: it cannot be compiled.
        """
        self.shaped = shaped
        self.device = device
        name = function_identifier(shaped.name)
        self._arguments = interface_of(shaped, GPU).arguments
        self._names = arguments.names_of(shaped)
        source = repr(("cuda", name, shaped))
        lowered = functools.partial(pipeline.lower, shaped, GPU)
        self._executable = device.load(DeviceSource(name, source, lowered))
        self._sized: dict[tuple[int, ...], SizedProgram] = {}
        self._spaces: dict[int, DeviceArray] = {}
        self._of_thread = _OfThread()
        self._lock = ForkSafeLock()

    def call(
        self,
        arrays: Sequence[Any],
        on_device: dict[int, Located],
        extents: Sequence[int],
        out: Any,
        stream: int | None = None,
    ) -> Any:
        """Run on checked arrays, those of ``on_device`` where they are; all others are copied there.

        Results are on the device where an input or ``out`` is, and are written on the ``stream``, or on that of the
        first such input; they may not be there yet. All other results are copied back. The run waits for the work of
        the streams of its arrays; work that they are given afterwards waits for the run.

        Raises:
            DataError: the outputs, and E0709, E0713. ToolError: E0922 (the device failed).
        """
        return self.stoppable(lambda: self._call(arrays, on_device, extents, out, stream))

    def stoppable(self, work: Callable[[], T]) -> T:
        """The result of what runs on the device, given up by a signal whose handler raises, where that is possible."""
        stop = self.device.stop
        if stop is None or not hears_signals():
            return work()
        try:
            return interruptible(work, stop)
        except Error:
            raise
        except BaseException:
            self.device.report()
            raise

    def _call(
        self,
        arrays: Sequence[Any],
        on_device: dict[int, Located],
        extents: Sequence[int],
        out: Any,
        asked: int | None,
    ) -> Any:
        """Run the program on the device; a signal is heard when it is over."""
        device, outputs = self.device, arguments.outputs_of(self.shaped, extents)
        outs, device_arrays = self.outs(out, extents, arrays)
        streams = [at.stream for at in (*on_device.values(), *device_arrays.values()) if at.stream]
        stream = asked or (streams[0] if streams else DEFAULT_STREAM)
        streams = [other for other in dict.fromkeys(streams) if other != stream]
        for other in streams:
            device.order(other, stream)
        inputs = [
            on_device[n] if n in on_device else device.array(arguments.contiguous(a), stream)
            for n, a in enumerate(arrays)
        ]
        results = [
            device_arrays[n] if n in device_arrays else device.empty(shape, dtype, stream)
            for n, (shape, dtype) in enumerate(outputs)
        ]
        addresses = [each.address for each in (*inputs, *results)]
        self.run(self.at(extents), addresses, stream)
        for other in streams:
            device.order(stream, other)
        if out is None and on_device:
            return results[0] if len(results) == 1 else tuple(results)
        given = [np.empty(shape, dtype) for shape, dtype in outputs] if out is None else outs
        for n, (array, result) in enumerate(zip(given, results, strict=True)):
            if n not in device_arrays:
                device.read(result.address, array, stream)
        return arguments.result_of(given, out)

    def outs(
        self, out: Any, extents: Sequence[int], arrays: Sequence[Any]
    ) -> tuple[list[Any], dict[int, Located]]:
        """The arrays of ``out=``, and those of them that are on a device. Raises DataError: they do not fit."""
        if out is None:
            return [], {}
        given = list(out) if isinstance(out, tuple) else [out]
        checked, device_arrays = separated(self._names[1], given, self.device)
        for n, at in device_arrays.items():  # never touched, so that it takes no memory
            checked[n] = np.empty(at.shape, at.dtype)
            checked[n].flags.writeable = not at.is_readonly
        arguments.checked_outs(
            tuple(checked), self._names, arguments.outputs_of(self.shaped, extents), arrays
        )
        return given, device_arrays

    def at(self, extents: Sequence[int]) -> SizedProgram:
        """The program at these extents, prepared at the first call.

        Raises:
            DataError: E0713 (its workspace is too large).
        """
        return kept(self._sized, tuple(extents), lambda: self._at(extents), MOST_SIZES)

    def _at(self, extents: Sequence[int]) -> SizedProgram:
        program = self._executable.at([extents[n] for n in self._arguments])
        if LARGEST_SPACE < program.space:
            raise too_large("the workspace", program.space)
        return program

    def run(
        self,
        program: SizedProgram,
        addresses: Sequence[int],
        stream: int,
        space: Space | None = None,
    ) -> None:
        """Enqueue the program at some sizes, and wait for what it looks up.

        ``space`` gives a workspace that this call alone has; else calls on one stream share one.

        Raises:
            DataError: E0709, E0713, E0746. ToolError: E0922 (the device failed).
        """
        if not program.space:
            status = program.run(addresses, 0, stream)
        elif space is not None:
            held, address = space(program.space)
            status = self._run(program, addresses, address, stream)
            del held
        else:
            with self._lock.taken():  # kernels of two calls would meet in the workspace
                address = self._space(program.space, stream).address
                status = self._run(program, addresses, address, stream)
        if status < 0:
            self.device.check(-status)
        if status:
            raise failure(status)

    @staticmethod
    def _run(program: SizedProgram, addresses: Sequence[int], space: int, stream: int) -> int:
        """Enqueue the program; a result that is no result is worse than a wait."""
        return program.run(addresses, space, stream) or program.wait(space, stream)

    def _space(self, count: int, stream: int) -> DeviceArray:
        """A workspace that calls on one stream share: they come one after the other."""
        spaces = self._of_thread.spaces if stream == STREAM_OF_THREAD else self._spaces
        known = spaces.get(stream)
        if known is None or known.nbytes < count:
            known = spaces[stream] = self.device.empty((count,), np.uint8, stream)
        return known
