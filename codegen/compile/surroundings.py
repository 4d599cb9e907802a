"""The surroundings of programs: compilers, OpenMP, the cache, a GPU. ``i doctor`` prints what is there."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np

from ilang.codegen.compile.compilers import C, Language, find_compiler
from ilang.core.diagnostic import Error, ToolError

Finding = tuple[str, str, str, str]
"""A finding: what was looked at, ``ok``, ``missing`` or ``broken``, what was found, and what to do."""

NEEDED = ("Python", "C compiler", "compiled C")
"""Findings that every program rests on; all else is for some programs."""
SECONDS = 20
"""The longest time that a compiler may take to say its version."""
GIB = 1 << 30


def findings() -> Iterator[Finding]:
    """Everything that was found, one after the other."""
    yield "Python", "ok", f"{platform.python_version()}, NumPy {np.__version__}", ""
    yield "system", *_system()
    yield "C compiler", *_tried(lambda: _version(C))
    yield "compiled C", *_tried(_computed)
    yield "OpenMP", *_tried(_threads)
    yield "cache", *_cache()
    yield "GPU", *_tried(_gpu, "missing")
    yield "CUDA compiler", *_tried(_cuda_compiler, "missing")
    yield "GPU emulator", *_tried(_emulator, "missing")
    yield "several processes", *_mpi()


def _tried(find: Callable[[], tuple[str, str]], state: str = "broken") -> tuple[str, str, str]:
    """The state, the words and the remedy that a function finds, or that its error has."""
    try:
        says, remedy = find()
    except Error as error:
        missing = isinstance(error, ToolError) and error.code in ("E0901", "E0923")
        return ("missing" if missing else state), error.message, error.help
    return ("missing" if remedy else "ok"), says, remedy


def _system() -> tuple[str, str, str]:
    from ilang.codegen.call.plan import CORES

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    cores = "1 core" if CORES == 1 else f"{CORES} cores"
    says = f"{platform.system()} {platform.machine()}, {cores}, {memory:.0f} GiB of memory"
    if platform.system() == "Linux":
        return "ok", says, ""
    remedy = "i is tested on Linux alone; see Install in README.md for what is known of this system"
    return "missing", says, remedy


def _version(language: Language) -> tuple[str, str]:
    """The first line of what a compiler says of itself, after its path. Raises: ToolError E0901, E0902."""
    command = find_compiler(language).command
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return " ".join(command), ""
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    named = next((line for line in lines if "release" in line), lines[0] if lines else "")
    return f"{' '.join(command)}: {named.strip()}", ""


def _computed() -> tuple[str, str]:
    """Compile a program, and compute with it."""
    right = _sum(threads=1)
    return ("the sum of 1 to 1000 is right" if right else "a sum is wrong"), "" if right else REPORT


REPORT = "report it, with what `i doctor` prints"


def _sum(threads: int) -> bool:
    from ilang.codegen.components.component import from_text

    array = np.arange(1, 1001, dtype=np.float32)
    return bool(from_text("+i~.")(array, threads=threads) == 500500)


def _threads() -> tuple[str, str]:
    """Compile a program with threads, which a compiler without OpenMP leaves out."""
    from ilang.codegen.compile.toolchain import has_openmp
    from ilang.codegen.system import folders

    with folders.temporary_folder() as folder:
        has_threads = has_openmp(folder)
    right = _sum(threads=2)
    if not has_threads:
        command = " ".join(find_compiler().command)
        remedy = "programs run on one core; apt install libomp-dev (clang), brew install libomp, or CC=gcc"
        return f"{command} has no OpenMP", remedy
    return "programs run on several cores" if right else "a sum is wrong", "" if right else REPORT


def _cache() -> tuple[str, str, str]:
    from ilang.codegen.compile.cache import cache_folder

    folder = cache_folder()
    if folder is None:
        says = "no folder that only you can change: everything is compiled anew in each process"
        return "missing", says, "I_CACHE_DIR=FOLDER names another, such as a new one in your home"
    sizes = [entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()]
    return "ok", f"{folder}: {len(sizes)} files, {sum(sizes) >> 20} MiB", ""


def _gpu() -> tuple[str, str]:
    from ilang.codegen.device.driver import Driver

    number = Driver().capability()
    return f"compute capability {number // 10}.{number % 10}", ""


def _cuda_compiler() -> tuple[str, str]:
    from ilang.codegen.device.gpu import CUDA, NVRTC

    if find_compiler(CUDA).package == NVRTC:
        return "NVRTC, which compiles kernels", ""
    return _version(CUDA)


def _emulator() -> tuple[str, str]:
    from ilang.codegen.emulator.recipes import CPP

    return _version(CPP)


def _mpi() -> tuple[str, str, str]:
    from ilang.codegen.session.mpi import INSTALL

    if find_spec("mpi4py") is not None:
        return "ok", "mpi4py is there, for `i train --ranks`", ""
    return "missing", "mpi4py is not installed, which `i train --ranks` needs", INSTALL
