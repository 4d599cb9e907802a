"""The emulator's runtime in this process: its settings, and what it found. All programs share it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import numpy as np

from ilang.codegen.compile import cache
from ilang.codegen.device.native import Native
from ilang.codegen.emulator.findings import Finding, Traffic, read_findings, read_traffic
from ilang.codegen.emulator.recipes import heading, runtime_object, runtime_recipe
from ilang.core.diagnostic import InternalError

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
