"""Programs of a device as they are called: where a library has a program's functions, these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ilang.codegen.device.native import Address, Native
from ilang.core.ir.kernel import Program
from ilang.core.record import record

Within = Callable[[Callable[[], int]], int]
"""Calls what gives a status where the device is the current one, and gives the status."""


def at_once(run: Callable[[], int]) -> int:
    """Call it: there is one device."""
    return run()


@record
class DeviceSource:
    """A program that is compiled for a device.

    Fields:
        name: of the program, as C has it.
        follows_from: everything that the program follows from; "": nothing of it is remembered.
        program: lowers it, where the cache does not know what it gives.
    """

    name: str
    follows_from: str
    program: Callable[[], Program]


class Executable(Protocol):
    """A program on a device, called with the sizes that a caller gives, in order; statuses are those of its text."""

    def space(self, sizes: Any) -> int:
        """The bytes of its workspace; more than there can be where a size does not fit."""

    def run(self, sizes: Any, arrays: Sequence[Any], space: Any, stream: int) -> int:
        """Enqueue the program on arrays of the device, inputs before outputs; the status."""

    def wait(self, sizes: Any, space: Any, stream: int) -> int:
        """Wait for what it looks up, if it does that: the status, which tells of an index out of range."""


class LibraryProgram:
    """A program whose functions a library has."""

    def __init__(self, native: Native, name: str, within: Within = at_once) -> None:
        """The program of this name in a library."""
        self._native = native
        self._name = name
        self._within = within
        self._looks = native.has(f"{name}_wait")

    def space(self, sizes: Any) -> int:
        """The bytes of its workspace."""
        return int(self._native.call(f"{self._name}_work", sizes, gives="size"))

    def run(self, sizes: Any, arrays: Sequence[Any], space: Any, stream: int) -> int:
        """Enqueue the program; the status."""
        words = (self._name, sizes, *arrays, space, Address(stream))
        return self._within(lambda: int(self._native.call(*words)))

    def wait(self, sizes: Any, space: Any, stream: int) -> int:
        """Wait for what it looks up; the status."""
        if not self._looks:
            return 0
        words = (f"{self._name}_wait", sizes, space, Address(stream))
        return self._within(lambda: int(self._native.call(*words)))
