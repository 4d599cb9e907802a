"""Programs of a device as they are called: where a library has a program's functions, these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from ilang.codegen.call.memory import argument
from ilang.codegen.call.native import Native
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


class SizedProgram(Protocol):
    """A program at the sizes of a call; statuses are those of its text, addresses and streams are numbers.

    ``space`` counts the bytes of its workspace: more than there can be where a size does not fit. ``looks`` is whether
    it looks elements up, and so has a status to wait for.
    """

    space: int
    looks: bool

    def run(self, addresses: Sequence[int], space: int, stream: int) -> int:
        """Enqueue the program on arrays of the device, inputs before outputs; the status.

        Of calls that have a workspace, no two run at once; ``space`` is 0 where there is none.
        """

    def wait(self, space: int, stream: int) -> int:
        """Wait for what it looks up, if it does that: the status, which tells of an index out of range."""


class Executable(Protocol):
    """A program on a device."""

    def at(self, sizes: Sequence[int]) -> SizedProgram:
        """The program at the sizes that a caller gives, in order."""


class LibraryProgram:
    """A program whose functions a library has."""

    def __init__(self, native: Native, name: str, within: Within = at_once) -> None:
        self.native = native
        self.name = name
        self.within = within
        self.looks = native.has(f"{name}_wait")

    def at(self, sizes: Sequence[int]) -> SizedLibraryProgram:
        """The program at the sizes of a call."""
        return SizedLibraryProgram(self, sizes)


class SizedLibraryProgram:
    """A program of a library at the sizes of a call."""

    def __init__(self, program: LibraryProgram, sizes: Sequence[int]) -> None:
        """The function is looked up at the first call: how many arrays it takes is known then."""
        self._program = program
        self.looks = program.looks
        self._sizes = argument(np.array(sizes or [0], np.int64))
        self.space = int(program.native.function(f"{program.name}_work", "P", "size")(self._sizes))
        self._function: Callable[..., int] | None = None

    def run(self, addresses: Sequence[int], space: int, stream: int) -> int:
        """Enqueue the program; the status."""
        program, function, sizes = self._program, self._function, self._sizes
        if function is None:
            kinds = "P" + "w" * (len(addresses) + 2)
            function = self._function = program.native.function(program.name, kinds)
        enqueue = function
        return program.within(lambda: enqueue(sizes, *addresses, space, stream))

    def wait(self, space: int, stream: int) -> int:
        """Wait for what it looks up; the status."""
        program, sizes = self._program, self._sizes
        if not program.looks:
            return 0
        function = program.native.function(f"{program.name}_wait", "Pww")
        return program.within(lambda: function(sizes, space, stream))
