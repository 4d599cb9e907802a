"""The emulator's runtime in this process: one device, its memory, its settings, what it found."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, Final

import _cffi_backend as backend

from ilang.codegen.emulator.findings import Finding, Traffic, read_findings, read_traffic
from ilang.codegen.emulator.recipes import RuntimeRecipe, runtime_text
from ilang.codegen.runtime import cache
from ilang.codegen.runtime.memory import argument
from ilang.core.diagnostic import DataError, InternalError

SETTINGS = (
    *("order", "streams", "devices", "memory", "capability"),
    *("multiprocessors", "failing", "profile", "quiet"),
)
"""What ``Runtime.set`` knows; ``cpp/settings.h`` says what each means."""

OUT_OF_MEMORY = 2
"""The status of CUDA for it."""
TO_DEVICE, TO_HOST = 1, 2
"""Directions of copies, as CUDA counts them."""

_VOID: Final = backend.new_void_type()
_POINTER: Final = backend.new_pointer_type(_VOID)
_INT: Final = backend.new_primitive_type("int")
_LONG: Final = backend.new_primitive_type("long long")
_SIZE: Final = backend.new_primitive_type("size_t")
_CHARS: Final = backend.new_pointer_type(backend.new_primitive_type("char"))
_ADDRESS: Final = backend.new_primitive_type("uintptr_t")
_ADDRESSES: Final = backend.new_pointer_type(_POINTER)


class Runtime:
    """The emulated device. Safe to use from several threads: one kernel runs at a time."""

    def __init__(self, path: str) -> None:
        """Load the library. Raises OSError where that fails."""
        self._library = backend.load_library(path, backend.RTLD_NOW | backend.RTLD_LOCAL)
        with open(path, "rb") as file:  # noqa: PTH123 - as the cache reads it
            self.content = file.read()
        self._set = self._function("emulator_set", (_CHARS, _LONG), _INT)
        self._findings = self._function("emulator_findings", (), _CHARS)
        self._profile = self._function("emulator_profile", (), _CHARS)
        self._reset = self._function("emulator_reset", (), _VOID)
        self._live = self._function("emulator_live_allocations", (), _INT)
        self._is_device = self._function("emulator_is_device", (_POINTER, _LONG), _INT)
        self._malloc = self._function("cudaMalloc", (_POINTER, _SIZE), _INT)
        self._free = self._function("cudaFree", (_POINTER,), _INT)
        self._memcpy = self._function("cudaMemcpy", (_POINTER, _POINTER, _SIZE, _INT), _INT)
        self._synchronize = self._function("cudaDeviceSynchronize", (), _INT)
        self._name = self._function("cudaGetErrorName", (_INT,), _CHARS)
        self.set("quiet", 1)

    def _function(self, name: str, takes: tuple[Any, ...], gives: Any) -> Any:
        try:
            return self._library.load_function(backend.new_function_type(takes, gives, False), name)
        except AttributeError as error:
            raise OSError(str(error)) from None

    def set(self, name: str, value: int) -> None:
        """Change a setting for what runs from now on."""
        text = backend.newp(_TEXT, name.encode())
        if self._set(text, value):
            raise InternalError("E9900", f"the emulator has no setting {name}")

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
        """What was found since the last time; the device is as new afterwards, whatever fault a kernel had."""
        text = backend.string(self._findings()).decode("utf-8", "replace")
        self._reset()
        return tuple(read_findings(text))

    def take_profile(self) -> tuple[Traffic, ...]:
        """What accesses cost since the last time, a record a line of the program."""
        return tuple(read_traffic(backend.string(self._profile()).decode("utf-8", "replace")))

    def live_allocations(self) -> int:
        """How many allocations, of the device and of pinned memory, were not freed yet."""
        return int(self._live())

    def is_device(self, address: int, count: int) -> bool:
        """Whether ``count`` bytes from an address on lie in one live allocation of the device."""
        return bool(self._is_device(backend.cast(_POINTER, address), count))

    def allocate(self, count: int) -> int:
        """The address of so many bytes of device memory; 0 for none. Raises DataError (E0713): there is no room."""
        box = backend.newp(_ADDRESSES)
        status = self._malloc(backend.cast(_POINTER, box), count)
        if status == OUT_OF_MEMORY:
            raise DataError(
                "E0713",
                f"there is not enough memory on the device for {count:,} bytes",
                help="use smaller arrays",
            )
        self._check(status)
        return int(backend.cast(_ADDRESS, box[0]))

    def free(self, address: int) -> None:
        """Give memory back that ``allocate`` gave."""
        self._check(self._free(backend.cast(_POINTER, address)))

    def write(self, address: int, array: Any) -> None:
        """Copy a contiguous array to the device."""
        self._copy(backend.cast(_POINTER, address), argument(array), array.nbytes, TO_DEVICE)

    def read(self, address: int, array: Any) -> None:
        """Copy from the device into a contiguous array."""
        self._copy(argument(array), backend.cast(_POINTER, address), array.nbytes, TO_HOST)

    def _copy(self, to: Any, origin: Any, count: int, direction: int) -> None:
        if count:
            self._check(self._memcpy(to, origin, count, direction))

    def synchronize(self) -> None:
        """Wait for all that was queued."""
        self._check(self._synchronize())

    def error_name(self, status: int) -> str:
        """What CUDA calls a status: ``cudaErrorIllegalAddress``."""
        return str(backend.string(self._name(status)).decode())

    def _check(self, status: int) -> None:
        if status:
            raise InternalError("E9911", f"the emulated device failed: {self.error_name(status)}")


_TEXT: Final = backend.new_array_type(_CHARS, None)

DEFAULTS = {
    **dict.fromkeys(("order", "streams", "failing", "profile"), 0),
    "devices": 1,
    "memory": 8 << 30,
    "capability": 90,
    "multiprocessors": 4,
    "quiet": 1,
}
"""What settings are in this process, where nobody changes them."""


@functools.lru_cache(maxsize=1)
def emulated_device() -> Runtime:
    """The runtime of this process, compiled if the cache has none.

    Raises:
        ToolError: E0901 to E0909 (no C++ compiler, or it fails).
    """
    return cache.library(runtime_text(), RuntimeRecipe(), Runtime)
