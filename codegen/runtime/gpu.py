"""The GPU of this machine: asked of NVIDIA's driver, programs compiled by nvcc through the cache."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import _cffi_backend as backend

from ilang.codegen.runtime import cache
from ilang.codegen.runtime.compilers import Language
from ilang.codegen.runtime.device import Device
from ilang.codegen.runtime.native import Native
from ilang.codegen.runtime.packages import Package
from ilang.core.diagnostic import ToolError
from ilang.core.record import record

EMULATE = 'emulate one, slowly: --emulate on the command line, target="cuda-emulated" in Python'

WHEELS = Package("nvidia", "cu*/bin/nvcc", ("-L{root}/lib",), extra="cuda")
"""nvcc as NVIDIA has it in the registry of Python; it does not find its own libraries there."""

CUDA = Language(
    "CUDA",
    "NVCC",
    ("nvcc",),
    WHEELS,
    "program.cu",
    f"install NVIDIA's CUDA toolkit, or pip install 'ilang[cuda]'; or {EMULATE}",
)

DRIVERS = ("libcuda.so.1", "libcuda.so")
MAJOR, MINOR = 75, 76
"""What the driver calls the two numbers of a compute capability."""

_INT = backend.new_primitive_type("int")
_UNSIGNED = backend.new_primitive_type("unsigned int")
_INTS = backend.new_pointer_type(_INT)


@record
class GpuRecipe:
    """A CUDA text for one kind of GPU: 90 is a compute capability of 9.0."""

    capability: int

    @property
    def language(self) -> Language:
        """CUDA."""
        return CUDA

    def flags(self) -> tuple[str, ...]:
        """Products and sums stay two roundings, as they are in C (docs/decisions/0026-cuda.md)."""
        return (
            *("-std=c++17", "-O3", "-fmad=false", f"-arch=sm_{self.capability}"),
            *("--shared", "-Xcompiler", "-fPIC", "-cudart", "static"),
        )

    def libraries(self) -> tuple[str, ...]:
        """None."""
        return ()

    def files(self) -> Mapping[str, bytes]:
        """None."""
        return {}


def capability() -> int:
    """The compute capability of the first GPU, as nvcc writes it.

    Raises:
        ToolError: E0923 (no driver, or no GPU).
    """
    driver = _driver()
    count, major, minor = (backend.newp(_INTS, 0) for _ in range(3))
    _ask(driver, "cuInit", (_UNSIGNED,), 0)
    _ask(driver, "cuDeviceGetCount", (_INTS,), count)
    if not count[0]:
        raise _no_gpu("the driver of NVIDIA knows of none")
    takes = (_INTS, _INT, _INT)
    _ask(driver, "cuDeviceGetAttribute", takes, major, MAJOR, 0)
    _ask(driver, "cuDeviceGetAttribute", takes, minor, MINOR, 0)
    return int(major[0]) * 10 + int(minor[0])


def _driver() -> Any:
    for name in DRIVERS:
        try:
            return backend.load_library(name, backend.RTLD_NOW | backend.RTLD_LOCAL)
        except OSError:
            continue
    raise _no_gpu(f"no driver of NVIDIA is installed ({DRIVERS[0]})")


def _ask(driver: Any, name: str, takes: tuple[Any, ...], *arguments: Any) -> None:
    """Call a function of the driver. Raises ToolError E0923 where it fails."""
    try:
        function = driver.load_function(backend.new_function_type(takes, _INT, False), name)
    except AttributeError:
        raise _no_gpu(f"the driver of NVIDIA has no {name}") from None
    status = function(*arguments)
    if status:
        raise _no_gpu(f"{name} of the driver gave status {status}")


def _no_gpu(reason: str) -> ToolError:
    return ToolError("E0923", f"there is no GPU that CUDA can use: {reason}", help=EMULATE)


@functools.lru_cache(maxsize=1)
def gpu() -> Device:
    """The first GPU of this machine.

    Raises:
        ToolError: E0901 to E0909 (no nvcc, or it fails), E0923 (no GPU).
    """
    recipe = GpuRecipe(capability())

    def load(text: Callable[[], str], name: str, source: str) -> Native:
        return cache.library_of(source, lambda: f"// {name}\n{text()}", recipe, Native)

    return Device("the GPU", load)
