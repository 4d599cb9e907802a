"""What a table must say beside its numbers: processor, compiler, flags, versions. No names of hosts, no paths."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

import numpy as np

from ilang.codegen.compile import toolchain
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.compile.toolchain import library_recipe

VECTORS = ("avx512f", "avx2", "fma", "avx", "sse4_2", "asimd", "sve")
"""Features that decide how wide vectors are, as Linux lists them."""


OUR_FLAGS = {"avx2": ("-march=haswell", "-mtune=native")}
"""Instruction sets that a comparison may be held to, with the flags of our compiler."""
ISAS = {
    "avx2": {
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "NUMBA_CPU_NAME": "haswell",
    }
}
"""The same for peers, as variables of their libraries. XLA has none for products of matrices, so JAX is left out."""

KIND = ("cpu family", "model")
"""What tells processors of one name apart."""


def describe() -> dict[str, str]:
    """Line by line."""
    processor, features = _processor()
    return {
        "processor": f"{processor}, {os.cpu_count()} cores",
        "vector features": " ".join(features),
        "compiler": _compiler(),
        "flags": " ".join(library_recipe(threads=True).flags),
        "load": _load(),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
    }


def _processor() -> tuple[str, list[str]]:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return platform.processor() or platform.machine(), []
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    listed = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    words = set(listed[1].split()) if listed else set()
    # A hypervisor may leave no more of the name than its maker.
    kinds = (re.search(rf"^{each}\s*:\s*(\d+)$", text, re.MULTILINE) for each in KIND)
    kind = ", ".join(f"{each} {found[1]}" for each, found in zip(KIND, kinds, strict=True) if found)
    name = named[1].strip() if named else platform.machine()
    return f"{name} ({kind})" if kind else name, [word for word in VECTORS if word in words]


def _load() -> str:
    """How busy the machine was already."""
    try:
        return f"{os.getloadavg()[0]:.1f} processes ran or waited in the minute before"
    except OSError:
        return "unknown"


def _compiler() -> str:
    """The first line of what the compiler says of its version, less the name it was called by."""
    done = subprocess.run(
        [*find_compiler().command, "--version"], capture_output=True, text=True, check=False
    )
    first = (done.stdout.splitlines() or ["unknown"])[0]
    return " ".join(word for word in first.split() if os.sep not in word)


def environment(threads: int, isa: str = "") -> dict[str, str]:
    """The environment of a process whose systems may use so many threads, and instructions up to a set of ``ISAS``.

    The C library of Linux is told to keep freed memory: peers that make a new array for each result would otherwise
    be timed on what the system needs to find pages for it. Threads of OpenBLAS are told to wait for 2^22 cycles before
    they sleep: the contestants after NumPy would otherwise share their cores with them.
    """
    names = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM")
    found = dict(os.environ, **{f"{name}_NUM_THREADS": str(threads) for name in names})
    found["JAX_PLATFORMS"] = "cpu"
    found["OPENBLAS_THREAD_TIMEOUT"] = "22"
    found["GLIBC_TUNABLES"] = ":".join(
        (
            "glibc.malloc.mmap_max=0",
            "glibc.malloc.trim_threshold=68719476736",
            "glibc.malloc.hugetlb=1",
        )
    )
    if threads == 1:
        flag = "--xla_cpu_multi_thread_eigen=false"
        found["XLA_FLAGS"] = f"{found.get('XLA_FLAGS', '')} {flag}".strip()
    return found | ISAS.get(isa, {})


def hold_to(isa: str) -> None:
    """Compile our programs, and C loops beside them, for instructions up to a set; peers follow the environment."""
    toolchain.FAST = ("-O3", *OUR_FLAGS[isa])


def pin(threads: int) -> None:
    """Keep this process on so many cores, where the system can: XLA has further threads whatever it is told."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
