"""The GPU of this machine: programs compiled through the cache, by nvcc, or by NVRTC where there is no nvcc."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from ilang.codegen.call.native import Native
from ilang.codegen.compile import cache
from ilang.codegen.compile.compilers import Language, find_compiler
from ilang.codegen.compile.packages import Package
from ilang.codegen.compile.toolchain import Recipe
from ilang.codegen.device import nvrtc
from ilang.codegen.device.device import Device, LibraryRuntime
from ilang.codegen.device.driver import EMULATE, Driver, recorder_of
from ilang.codegen.device.executable import DeviceSource, LibraryProgram, Within, at_once
from ilang.codegen.device.launched_program import (
    CompiledKernels,
    LaunchedProgram,
    kernels_in,
    text_of,
)
from ilang.codegen.targets import cuda

WHEELS = Package("nvidia", "cu*/bin/nvcc", ("-L{root}/lib",), extra="nvcc")
"""nvcc as NVIDIA has it in the registry of Python; it does not find its own libraries there."""

NVRTC = Package(
    "nvidia",
    "cu*/lib/libnvrtc.so.*",
    (),
    extra="cuda",
    tool="nvrtc",
    script=str(Path(nvrtc.__file__).resolve()),
    machine=190,
)
"""NVIDIA's library that compiles kernels alone, from the registry of Python; 190 is EM_CUDA."""

CUDA = Language(
    "CUDA",
    "NVCC",
    ("nvcc",),
    (WHEELS, NVRTC),
    "program.cu",
    f"pip install 'ilang[cuda]', or install NVIDIA's CUDA toolkit; or {EMULATE}",
)


def gpu_recipe(capability: int, kernels: bool = False) -> Recipe:
    """The recipe of a CUDA text for one kind of GPU: 90 is a compute capability of 9.0.

    Of a library, or of ``kernels`` alone. Products and sums stay two roundings, as they are in C
    (docs/decisions/0026-cuda.md).
    """
    library = ("-O3", "--shared", "-Xcompiler", "-fPIC", "-cudart", "static")
    flags = ("-std=c++17", "-fmad=false", f"-arch=sm_{capability}")
    return Recipe(CUDA, flags if kernels else (*flags, *library))


def capability() -> int:
    """The compute capability of the first GPU, as nvcc writes it. Raises ToolError E0923: there is none."""
    return Driver().capability()


def library(text: Callable[[], str], name: str, follows_from: str = "") -> Native:
    """A CUDA text as a library; where the cache knows what it follows from, it is not written.

    Raises:
        ToolError: E0901 to E0909 (no nvcc, or it fails), E0923 (no GPU).
    """
    recipe = gpu_recipe(capability())
    return cache.library_of(follows_from, lambda: f"// {name}\n{text()}", recipe, Native)


def load_library(source: DeviceSource, within: Within = at_once) -> LibraryProgram:
    """A program that nvcc compiles."""
    native = library(lambda: cuda.emit(source.program()), f"{source.name}.cu", source.follows_from)
    return LibraryProgram(native, source.name, within)


def kernels_of(source: DeviceSource, capability: int) -> CompiledKernels:
    """The kernels of a program, which NVRTC compiles.

    Raises:
        ToolError: E0901 to E0909 (no NVRTC, or it fails).
    """
    return cache.library_of(
        source.follows_from,
        lambda: text_of(source.program()),
        gpu_recipe(capability, kernels=True),
        lambda path: kernels_in(cache.content_of(path)),
    )


@functools.lru_cache(maxsize=1)
def gpu() -> Device:
    """The first GPU of this machine.

    Raises:
        ToolError: E0901 to E0909 (no compiler, or it fails), E0923 (no GPU).
    """
    driver = Driver()
    device = _device(driver)
    device.recorder = recorder_of(driver)
    return device


def _device(driver: Driver) -> Device:
    """The GPU of a driver, with the compiler that there is. Raises ToolError: E0901 to E0909."""
    kind = driver.capability()
    if find_compiler(CUDA).package != NVRTC:
        runtime = LibraryRuntime(library, driver.within)
        return Device("the GPU", runtime, functools.partial(load_library, within=driver.within))

    def load(source: DeviceSource) -> LaunchedProgram:
        return LaunchedProgram(driver, kernels_of(source, kind))

    return Device("the GPU", driver, load)
