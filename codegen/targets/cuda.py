"""CUDA: programs as text, C++17 with kernels, for devices from sm_75 on.

    size_t NAME_work(const NAME_sizes *sizes);
    int NAME(const NAME_sizes *sizes, const T *input..., T *output..., void *work, struct CUstream_st *stream);
    int NAME_host(const NAME_sizes *sizes, const T *input..., T *output...);
    const char *NAME_status(int status);

Arrays are row-major and contiguous, those of the first two in memory of the device. Nothing is global; ``NAME`` takes
no memory and waits for nothing. Statuses of 0 and more are those of C (``c_entry.STATUS``), others a ``cudaError_t``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ilang.codegen.targets import cuda_call, cuda_header, cuda_library
from ilang.codegen.targets.c_header import beginning_of
from ilang.codegen.targets.cuda_entry import TRY, Entry
from ilang.codegen.targets.cuda_kernel import KernelText
from ilang.codegen.targets.cuda_session import SessionsText
from ilang.codegen.targets.library import PREFIX, linked, own, prefixed
from ilang.codegen.targets.marked_lines import with_marks
from ilang.core.ir.host import Host
from ilang.core.ir.kernel import Program
from ilang.core.pipeline import host_of

if TYPE_CHECKING:
    from ilang.core.explain.marks import LineMark

INCLUDES = (
    "#include <cuda_runtime.h>",
    "#include <math.h>",
    "#include <stddef.h>",
    "#include <stdint.h>",
    "#include <initializer_list>",
)

WITHOUT_HEADERS = (
    "typedef signed int int32_t;",
    "typedef signed long int64_t;",
    "typedef unsigned char uint8_t;",
    "typedef unsigned short uint16_t;",
    "typedef unsigned int uint32_t;",
    "typedef unsigned long uint64_t;",
    "#define INT32_MIN (-2147483647 - 1)",
    "#define INT64_MIN (-9223372036854775807L - 1)",
    "#define INT64_C(value) value##L",
    "#define INFINITY __int_as_float(0x7f800000)",
    "#define NAN __int_as_float(0x7fc00000)",
)
"""Declarations that kernels take from headers, for a compiler that has none."""


def emit(program: Program) -> str:
    """A program as one self-contained CUDA text."""
    return emit_together([program])


def emit_marked(program: Program) -> list[tuple[str, LineMark]]:
    """The lines of ``emit``, each with what it is of."""
    return with_marks(emit(program), list(_program(host_of(program), marking=True)))


def emit_together(programs: Sequence[Program]) -> str:
    """Several programs as one self-contained CUDA text."""
    declared = [line for program in programs for line in (*cuda_header.declarations(program), "")]
    body = [line for program in programs for line in _program(host_of(program))]
    lines = [*INCLUDES, "", 'extern "C" {', "", *declared, "}", "", *_linked(body)]
    return "\n".join(lines) + "\n"


def emit_source(
    programs: Sequence[Program], stem: str, sessions: SessionsText | None = None
) -> str:
    """The implementation that goes with ``cuda_header.emit_header``."""
    includes, more = (sessions.includes(), [*sessions.lines()]) if sessions else ((), [])
    body = [line for program in programs for line in _program(host_of(program))] + more
    names = own("\n".join(body), cuda_library.parts(), f"{beginning_of(programs)}_{PREFIX}")
    lines = [f'#include "{stem}.h"', "", *INCLUDES, *includes, "", *names, *_linked(body)]
    return "\n".join(lines) + "\n"


def emit_kernels(hosts: Sequence[Host]) -> str:
    """The kernels of host programs alone, as they stand in ``emit``, for a compiler that has no headers."""
    body = [line for host in hosts for line in _kernels(host)]
    names = (name for host in hosts for name in cuda_call.kernels_of(host))
    started = " ".join(f"{name.removeprefix(PREFIX)}()" for name in names)
    parts = cuda_library.parts()
    lines = [*linked("\n".join([*body, started]), parts), *body]
    return "\n".join([*WITHOUT_HEADERS, "", *prefixed(lines, parts)])


def _linked(body: Sequence[str]) -> Iterator[str]:
    """The parts of the library that lines of programs use, and the lines."""
    yield TRY
    yield ""
    parts = cuda_library.parts()
    yield from prefixed([*linked("\n".join(body), parts), *body], parts)


def _program(host: Host, marking: bool = False) -> Iterator[str]:
    """The kernels of a program, and what is around them."""
    yield from _kernels(host, marking)
    yield from Entry(host).lines()


def _kernels(host: Host, marking: bool = False) -> Iterator[str]:
    for launch in host.kernels():
        yield from KernelText(host, launch, marking).lines()
