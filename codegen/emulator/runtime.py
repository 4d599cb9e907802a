"""The emulator's runtime in this process: its settings, and what it found. All programs share it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import numpy as np

from ilang.codegen.call.native import Native
from ilang.codegen.compile import cache
from ilang.codegen.emulator.recipes import heading, runtime_object, runtime_recipe
from ilang.core.diagnostic import InternalError
from ilang.core.record import record

DEFAULTS = {
    "order": 0,
    "streams": 0,
    "failing": 0,
    "profile": 0,
    "devices": 1,
    "memory": 8 << 30,
    "capability": 90,
    "multiprocessors": 4,
    "quiet": 1,
}
"""The settings, as they are in this process where nobody changes them; ``cpp/settings.h`` says what they mean."""


class Emulator:
    """The emulated machine. Safe to use from several threads: one kernel runs at a time."""

    def __init__(self, path: str) -> None:
        """Load the library. Raises OSError where that fails."""
        self._native = Native(path)
        with open(path, "rb") as file:  # noqa: PTH123 - as the cache reads it
            self.content = file.read()
        for name, value in DEFAULTS.items():
            self.set(name, value)

    def set(self, name: str, value: int) -> None:
        """Change a setting for what runs from now on."""
        text = np.frombuffer(name.encode() + b"\0", np.uint8)
        if self._native.call("emulator_set", text, np.int64(value)):
            raise InternalError("E9911", f"the emulator has no setting {name}")

    @contextlib.contextmanager
    def settings(self, **values: int) -> Iterator[None]:
        """Settings for a block; afterwards they are what they are without it."""
        for name, value in values.items():
            self.set(name, value)
        try:
            yield
        finally:
            for name in values:
                self.set(name, DEFAULTS[name])

    def take_findings(self) -> tuple[Finding, ...]:
        """The findings since the last time; the device is as new afterwards, whatever fault a kernel had."""
        text = self._native.call("emulator_findings", gives="text")
        self._native.call("emulator_reset")
        return tuple(read_findings(text))

    def stop(self) -> None:
        """Give up the kernel that runs; the device fails until findings are taken."""
        self._native.call("emulator_stop")

    def threads_run(self) -> int:
        """The number of threads of CUDA that have run so far."""
        return int(self._native.call("emulator_threads_run", gives="size"))

    def take_profile(self) -> tuple[Traffic, ...]:
        """The cost of accesses since the last time, a record a line of the program."""
        return tuple(read_traffic(self._native.call("emulator_profile", gives="text")))

    def live_allocations(self) -> int:
        """The number of allocations, of the device and of pinned memory, that were not freed yet."""
        return int(self._native.call("emulator_live_allocations"))


@functools.lru_cache(maxsize=1)
def emulator() -> Emulator:
    """The runtime of this process, compiled if the cache has none.

    Raises:
        ToolError: E0901 to E0909 (no C++ compiler, or it fails).
    """
    return cache.library(heading(), runtime_recipe(runtime_object()), Emulator)


Index = tuple[int, int, int]


@record
class Finding:
    """Something wrong.

    Fields:
        kind: what, in the words of ``docs/emulator.md``: "shared-memory race", "illegal read", ...
        file, line: of the text; "" and 0 where they are not known.
        kernel: "" for host code.
        block, thread: which; None where no single one is to blame.
        text: what happened there.
    """

    kind: str
    file: str
    line: int
    kernel: str
    block: Index | None
    thread: Index | None
    text: str

    def says(self) -> str:
        """The finding as one line."""
        at = f" at {self.file}:{self.line}" if self.line else ""
        block = f", block {self.block}" if self.block else ""
        thread = f", thread {self.thread}" if self.thread else ""
        place = f" [{self.kernel}{block}{thread}]" if self.kernel else " [host code]"
        return f"{self.kind}{at}: {self.text}{place}"


@record
class Traffic:
    """The cost of the accesses of one line to one kind of memory.

    Fields:
        file, line: of the text.
        space: "global" or "shared".
        access: "read" or "write".
        requests: of warps.
        lanes: that took part, over all requests.
        bytes: that they asked for.
        cost: 32-byte sectors of global memory, cycles of the banks of shared memory.
        ideal: the least that so many bytes could cost.
    """

    file: str
    line: int
    space: str
    access: str
    requests: int
    lanes: int
    bytes: int
    cost: int
    ideal: int

    def ratio(self) -> float:
        """The cost of the accesses as a multiple of the least."""
        return self.cost / self.ideal


def read_findings(text: str) -> Iterator[Finding]:
    """Findings as the runtime writes them: a line each, fields between tabs; a lone number counts those left out."""
    for line in text.splitlines():
        kind, *rest = line.split("\t")
        if not rest:
            yield Finding("more", "", 0, "", None, None, f"{kind} further findings were not kept")
            continue
        file, number, kernel, *indices, message = rest
        block, thread = _index(indices[:3]), _index(indices[3:])
        yield Finding(kind, file, int(number or 0), kernel, block, thread, message)


def _index(fields: list[str]) -> Index | None:
    x, y, z = fields
    return (int(x), int(y), int(z)) if x else None


def read_traffic(text: str) -> Iterator[Traffic]:
    """A profile as the runtime writes it: a line each, fields between tabs."""
    for line in text.splitlines():
        file, number, space, access, *counts = line.split("\t")
        requests, lanes, count, cost, ideal = map(int, counts)
        yield Traffic(file, int(number), space, access, requests, lanes, count, cost, ideal)
