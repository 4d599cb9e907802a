"""Calls on a device like an earlier one: arrays are looked at, and the program is enqueued, nothing else.

A call with arrays of a device that no plan knows goes the long way, which checks everything, tells what is wrong, and
leaves a plan for the calls after it. An array is known by its form: class, shape, element type and device.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ilang.codegen.call.arguments import Output, outputs_of
from ilang.codegen.device.device import DeviceArray
from ilang.codegen.device.streams import DEFAULT_STREAM, stream_handle
from ilang.codegen.system.concurrency import kept

if TYPE_CHECKING:
    from ilang.codegen.device.executable import SizedProgram
    from ilang.codegen.device.offload import Offloaded, Space

MOST_PLANS = 256
"""Forms of arrays that one program remembers; past it, it starts again."""


class ArrayReading(NamedTuple):
    """An array as a plan sees it.

    ``stream`` is the one that the array names, 0 for none. Of an array ``from_elsewhere``, the class does not tell
    which device has it: its address has to be looked up.
    """

    form: Hashable
    address: int
    stream: int = 0
    from_elsewhere: bool = False


Reader = Callable[[Any], ArrayReading | None]
"""Reads an array of a class; None for one that takes the long way."""


class TensorMemory(NamedTuple):
    """The memory of PyTorch on a GPU: its allocator gives it to work on its current stream, also while that records.

    ``current`` is the handle of that stream, ``new`` makes tensors for results, and ``space`` bytes; both give
    addresses, too.
    """

    current: Callable[[], int]
    new: Callable[[], tuple[tuple[Any, ...], list[int]]]
    space: Space


class DevicePlan(NamedTuple):
    """A program at the extents of some arrays; results are tensors where some arrays are."""

    offloaded: Offloaded
    program: SizedProgram
    outputs: Sequence[Output]
    tensors: TensorMemory | None


class DevicePlans:
    """The plans of one program by the forms of arrays. Safe to use from several threads."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, ...], DevicePlan] = {}

    def answer(
        self, arrays: Sequence[Any], out: Any, threads: int | str, target: str, stream: Any
    ) -> Any:
        """The results of a call like an earlier one; None for another one, which has to be looked at as a whole.

        Raises:
            DataError: E0709, E0713, E0746, E0767 (the stream). ToolError: E0922 (the device failed).
        """
        outs = () if out is None else out if type(out) is tuple else (out,)
        readings = _readings((*arrays, *outs))
        is_plain = type(target) is str and type(threads) is int and threads > 0
        if readings is None or not is_plain:
            return None
        plan = self._known.get(_key(target, outs, readings))
        if plan is None:
            return None
        offloaded, program, outputs, tensors = plan
        device, current = offloaded.device, 0 if tensors is None else tensors.current()
        for each in readings:
            if each.from_elsewhere and not device.holds(each.address):
                return None
        streams = [each.stream for each in readings if each.stream]
        asked = current if stream is None else stream_handle(stream, "cuda")
        chosen = asked or (streams[0] if streams else DEFAULT_STREAM)
        is_current = chosen == current
        results, addresses = outs, [each.address for each in readings]
        if out is None:
            if tensors is None:
                results = tuple(device.empty(shape, dtype, chosen) for shape, dtype in outputs)
                addresses += [each.address for each in results]
            elif is_current:
                results, places = tensors.new()
                addresses += places
            else:
                return None
        others = [each for each in dict.fromkeys(streams) if each != chosen] if streams else ()
        space = tensors.space if tensors is not None and is_current else None

        def enqueue() -> None:
            for other in others:
                device.order(other, chosen)
            offloaded.run(program, addresses, chosen, space)
            for other in others:
                device.order(chosen, other)

        offloaded.stoppable(enqueue)
        return out if out is not None else results[0] if len(results) == 1 else results

    def keep(
        self,
        arrays: Sequence[Any],
        out: Any,
        target: str,
        offloaded: Offloaded,
        extents: Sequence[int],
    ) -> None:
        """Keep a plan for calls with arrays like these, which were checked, and are all of the device."""
        outs = () if out is None else out if type(out) is tuple else (out,)
        readings = _readings((*arrays, *outs))
        if readings is None or not arrays:
            return
        if MOST_PLANS <= len(self._known):
            self._known.clear()
        outputs = outputs_of(offloaded.shaped, extents)
        key, program = _key(target, outs, readings), offloaded.at(extents)
        tensor = next((each for each in arrays if type(each) in _memories), None)
        memory = None if tensor is None else _memories[type(tensor)](tensor.device, outputs)
        self._known[key] = plan = DevicePlan(offloaded, program, outputs, memory)
        if memory is not None and target == "cuda":  # tensors run there under target c, too
            self._known["c", *key[1:]] = plan


def _key(
    target: str, outs: Sequence[Any], readings: Sequence[ArrayReading]
) -> tuple[Hashable, ...]:
    return (target, len(outs), *[each.form for each in readings])


_readers: dict[type, Reader] = {}
_memories: dict[type, Callable[[Any, Sequence[Output]], TensorMemory]] = {}
_left: list[type] = []


def read_tensors(
    kinds: Sequence[type], reader: Reader, memory: Callable[[Any, Sequence[Output]], TensorMemory]
) -> None:
    """Have tensors of some classes read so; ``memory`` is that of a device, for results of some shapes and types."""
    _readers.update(dict.fromkeys(kinds, reader))
    _memories.update(dict.fromkeys(kinds, memory))


def leave(kind: type) -> None:
    """Have arrays of a class, and of those that it is a base of, take the long way: their library makes the results."""
    _left.append(kind)


def _readings(arrays: Sequence[Any]) -> list[ArrayReading] | None:
    """The readings of arrays; None where one takes the long way."""
    readings = []
    for array in arrays:
        kind = type(array)
        reader = _readers.get(kind)
        if reader is None:
            reader = kept(_readers, kind, partial(_reader, array), MOST_PLANS)
        try:
            reading = reader(array)
        except Exception:  # whatever the class of somebody else raises: the long way tells
            return None
        if reading is None:
            return None
        readings.append(reading)
    return readings


def _reader(array: Any) -> Reader:
    """The function that reads arrays of the class of one, which ``read_tensors`` has none for."""
    if type(array) is DeviceArray:
        return _of_device
    takes_the_long_way = isinstance(array, (np.ndarray, *_left))
    return (lambda _: None) if takes_the_long_way else _of_interface


def _of_device(array: DeviceArray) -> ArrayReading:
    return ArrayReading((array.device, array.dtype, array.shape), array.address, array.stream)


def _of_interface(array: Any) -> ArrayReading | None:
    """An array of another library, as its ``__cuda_array_interface__`` says."""
    interface = array.__cuda_array_interface__
    address, is_readonly = interface["data"]
    strides, stream = interface.get("strides"), interface.get("stream")
    if stream is not None and (type(stream) is not int or stream < 1):
        return None
    form = (
        type(array),
        interface["typestr"],
        tuple(interface["shape"]),
        None if strides is None else tuple(strides),
        bool(is_readonly),
    )
    return ArrayReading(form, address, stream or 0, from_elsewhere=True)
