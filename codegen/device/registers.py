"""Registers of kernels: nvcc is asked, where it is, for the device that schedules aim at."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from ilang.codegen.compile.compiler_process import run_compiler
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.device.gpu import CUDA, NVRTC
from ilang.codegen.targets import cuda
from ilang.codegen.targets.identifiers import function_identifier
from ilang.core.diagnostic import ToolError
from ilang.core.ir.kernel import Program
from ilang.core.machine import MULTIPROCESSORS

ENTRY = re.compile(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", re.DOTALL)


def registers_of(program: Program) -> dict[str, int] | None:
    """The registers of a thread of each kernel, by name; None where there is no nvcc, or where it fails.

    Of a kernel with indices of 32 and of 64 bits they are those that are fewer: arrays are mostly small.
    """
    try:
        compiler = find_compiler(CUDA)
    except ToolError:
        return None
    if compiler.package == NVRTC:
        return None
    flags = ["-std=c++17", "-O3", "-fmad=false", f"-arch=sm_{MULTIPROCESSORS[-1].capability}"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, CUDA.source).write_text(cuda.emit(program), "utf-8")
        command = [*compiler.command, *flags, "-cubin", "-Xptxas", "-v", CUDA.source]
        status, output = run_compiler(command, Path(folder), CUDA)
    if status != 0:
        return None
    counts = sorted(((int(count), name) for name, count in ENTRY.findall(output)), reverse=True)
    stem = function_identifier(program.name)
    return {
        kernel.name: count
        for kernel in program.kernels
        for count, name in counts
        if is_mangled(name, f"{stem}_{kernel.name}")
    }


def is_mangled(mangled: str, name: str) -> bool:
    """Whether a name, with its length before it as C++ writes it, is in a mangled one."""
    return f"{len(name)}{name}" in mangled
