"""Copies, on a device, of the arrays that a session keeps: sent once, and read back when somebody asks for one.

Example, a step that trains ``w`` on a GPU, a thousand times:
    before the first run:  w is sent
    each run:              inputs are sent, results that are returned are read back
    s.parameters["w"]      reads w back

Runs on the same copies enqueue the same work: the second one is recorded, and from then on launched as one graph, where
the device can do that. An array that a caller has got may be changed by that caller, so it is sent again before each
run that reads it. Arrays of one element, such as numbers of the configuration, are compared with what was sent last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array
    from ilang.codegen.call.specialization import Specialization
    from ilang.codegen.device.device import Device, DeviceArray, Recording
    from ilang.codegen.device.executable import SizedProgram
    from ilang.codegen.device.offload import Offloaded


class _Copy:
    """The copy of an array of the host.

    ``is_new`` is whether the array has values that the copy has not, ``is_newer`` the opposite, ``is_given`` whether a
    caller has got the array; ``sent`` are the values of an array of one element that were sent last.
    """

    __slots__ = ("array", "device", "is_given", "is_new", "is_newer", "sent")

    def __init__(self, array: Array, device: DeviceArray) -> None:
        self.array = array
        self.device = device
        self.is_new = True
        self.is_newer = self.is_given = False
        self.sent = b""


class DeviceCopies:
    """The copies of one session's arrays on a device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._stream = device.stream_apart(self)
        self._copies: dict[int, _Copy] = {}
        self._rooms: dict[object, DeviceArray] = {}
        self._begun: set[object] = set()
        self._recordings: dict[object, Recording | None] = {}

    def keep(self, arrays: Iterable[Array]) -> None:
        """Let copies be of these arrays; what others had is read back."""
        before, self._copies = self._copies, {}
        self._begun.clear()
        self._recordings.clear()
        for number, array in {id(array): array for array in arrays}.items():
            known = before.pop(number, None)
            if known is None:
                known = _Copy(array, self._new(array))
            self._copies[number] = known
        for copy in before.values():
            self._fetch(copy)

    def fetch(self, array: Array, *, for_caller: bool = False) -> None:
        """Read an array back, where its copy is newer; a caller who gets it may write into it."""
        copy = self._copies.get(id(array))
        if copy is not None:
            self._fetch(copy)
            copy.is_given = copy.is_given or for_caller

    def run(
        self, program: Specialization, extents: tuple[int, ...], arrays: Sequence[Array]
    ) -> None:
        """Run a program on copies of its arrays, inputs before outputs; those that are not kept are copied each time.

        Raises:
            DataError: E0709, E0713, E0746. ToolError: it cannot be compiled, the device failed.
        """
        offloaded = program.on(self._device)
        count = len(offloaded.shaped.inputs)
        places = [
            self._sent(array, (program, n)) if n < count else self._room(array, (program, n))
            for n, array in enumerate(arrays)
        ]
        addresses = tuple(place.address for place in places)
        sized = offloaded.at(extents)
        offloaded.stoppable(lambda: self._enqueue(offloaded, sized, addresses))
        for array, place in zip(arrays[count:], places[count:], strict=True):
            copy = self._copies.get(id(array))
            if copy is None:
                self._device.read(place.address, array, self._stream)
            else:
                copy.is_new, copy.is_newer, copy.is_given = False, True, False

    def _enqueue(
        self, offloaded: Offloaded, sized: SizedProgram, addresses: tuple[int, ...]
    ) -> None:
        """Enqueue a program: the first time by itself, then as it was recorded the second time."""

        def enqueue() -> None:
            offloaded.run(sized, addresses, self._stream)

        work = (offloaded, addresses)
        if sized.looks or work not in self._begun:  # what looks elements up is waited for
            enqueue()
            self._begun.add(work)
            return
        if work not in self._recordings:
            self._recordings[work] = self._device.recorded(self._stream, enqueue)
        recording = self._recordings[work]
        if recording is None:
            enqueue()
        else:
            recording.launch()

    def _new(self, array: Array) -> DeviceArray:
        return self._device.empty(array.shape, array.dtype, self._stream)

    def _fetch(self, copy: _Copy) -> None:
        if copy.is_newer:
            self._device.read(copy.device.address, copy.array, self._stream)
            copy.is_newer = False
            copy.sent = copy.array.tobytes() if copy.array.size == 1 else b""

    def _sent(self, array: Array, place: object) -> DeviceArray:
        copy = self._copies.get(id(array))
        if copy is None:
            room = self._room(array, place)
            self._device.write(room.address, array, self._stream)
            return room
        if not copy.is_newer:
            values = array.tobytes() if array.size == 1 else b""
            if copy.is_new or copy.is_given or copy.sent != values:
                self._device.write(copy.device.address, array, self._stream)
                copy.is_new, copy.sent = False, values
        return copy.device

    def _room(self, array: Array, place: object) -> DeviceArray:
        """Memory for an array: that of its copy, or else that of a place in a program."""
        copy = self._copies.get(id(array))
        if copy is not None:
            return copy.device
        known = self._rooms.get(place)
        if known is None:
            known = self._rooms[place] = self._new(array)
        return known
