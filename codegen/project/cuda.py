"""The CUDA project that ``i build --target cuda`` writes: a library with its self-test, a benchmark and an example.

STEM.h, STEM.cu, Makefile, STEM_test.c, STEM_bench.cu, STEM_example.c, STEM.pc and README.md. The header is plain C; the
self-test calls every function on arrays of the host, and is the one of a C project. A program with a session keeps
memory of the device, and its example is STEM_example.cu.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ilang.codegen.project.comments import header_comment, whole_comment
from ilang.codegen.project.example import function_example
from ilang.codegen.project.extents import settled_extents
from ilang.codegen.project.inlined import inlined_in
from ilang.codegen.project.makefile import ALONE_ON_DEVICE, MPI_AND_NCCL, NOTHING, makefile, package
from ilang.codegen.project.parts import fixed_text, readme
from ilang.codegen.project.selftest import selftest
from ilang.codegen.project.steps import tested_dims, tested_sizes
from ilang.codegen.targets.braces import braced, indented
from ilang.codegen.targets.cfamily import C_TYPES
from ilang.codegen.targets.cuda import emit_source
from ilang.codegen.targets.cuda_header import emit_header
from ilang.codegen.targets.cuda_session import SessionsText
from ilang.codegen.targets.session import EmittedSession, ExportedFunction
from ilang.core.dtype import BYTES
from ilang.core.ir.gpu import MatrixProduct
from ilang.core.ir.kernel import Program, statements_within
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import GPU, MULTIPROCESSORS

LIMITS = {"large": (1 << 26, 1 << 36), "small": (1 << 10, 1 << 13)}
"""Elements of all arrays of a case of the benchmark, and iterations of one assignment of it, at most."""
LARGEST_EXTENT, SMALLEST_EXTENT = 1 << 24, 2
"""Extents that are tried for it, from large to small."""


def render_cuda(
    functions: Sequence[ExportedFunction],
    source_text: str,
    stem: str,
    sessions: Sequence[EmittedSession] = (),
    prefix: str = "",
) -> dict[str, str]:
    """The text of every file, by its name; functions of ranks begin with ``prefix``."""
    prefix = prefix or stem
    programs = [function.program for function in functions]
    written = SessionsText(sessions, prefix)
    inlined = inlined_in(source_text, functions, sessions)
    switch = MPI_AND_NCCL if written.of_ranks else ALONE_ON_DEVICE if sessions else NOTHING
    example, rules = (
        (f"{stem}_example.cu", EXAMPLE_IN_CUDA) if sessions else (f"{stem}_example.c", EXAMPLE_IN_C)
    )
    devices = _devices(programs)
    names = [each.name() for each in functions] + [each.name for each in sessions]
    return {
        f"{stem}.h": "\n".join(header_comment(functions, written, stem, inlined))
        + "\n"
        + emit_header(programs, [*written.declarations()]),
        f"{stem}.cu": "\n".join(whole_comment(functions, source_text, f"{stem}.cu"))
        + "\n"
        + emit_source(programs, stem, written),
        "Makefile": makefile(
            "makefile_cuda.mk", stem, switch, EXAMPLE=rules, DEVICES=" ".join(devices)
        ),
        f"{stem}_test.c": selftest(functions, stem, on_device=True, sessions=sessions),
        f"{stem}_bench.cu": "\n".join(_bench(functions, stem)) + "\n",
        example: "\n".join(
            _session_example(sessions[0], stem, prefix)
            if sessions
            else function_example(functions, stem, True)
        )
        + "\n",
        f"{stem}.pc": package(stem, "-lcudart -lstdc++"),
        "README.md": readme(
            "readme_cuda.txt",
            names,
            stem,
            OF_SESSIONS if sessions else "",
            inlined,
            DEVICE=devices[0],
        ),
    }


def _devices(programs: Sequence[Program]) -> list[str]:
    """The architectures of `make compile`: of each kind of device, but those that lack instructions of the kernels."""
    device = GPU.gpu()
    roundings = {
        s.rounding
        for program in programs
        for kernel in program.kernels
        for s in statements_within(kernel.body)
        if isinstance(s, MatrixProduct)
    }
    least = max((device.unit(each).capability for each in roundings), default=0)
    return [f"sm_{each.capability}" for each in MULTIPROCESSORS if least <= each.capability]


def _bench(functions: Sequence[ExportedFunction], stem: str) -> Iterator[str]:
    """The benchmark: each function at small extents, and at extents that fill a device."""
    yield from fixed_text("bench.cuh", STEM=stem).split("\n")
    yield from indented(_bench_calls(functions), breaks=False)


def _bench_calls(functions: Sequence[ExportedFunction]) -> Iterator[str]:
    """The functions behind the one face of the benchmark, and the program that runs them."""
    cases = [
        (size, function, extents)
        for function in functions
        for size in LIMITS
        if (extents := _extents(function, *LIMITS[size]))
    ]
    for size, function, extents in cases:
        yield from _bench_call(f"bench_{size}_{function.name()}", function, extents)
    yield "int main(int argc, char **argv)"
    yield "{"
    yield 'const bool small = argc > 1 && strcmp(argv[1], "small") == 0;'
    yield "int failed = 0;"
    for size, function, extents in cases:
        run = _bench_case(f"bench_{size}_{function.name()}", function, extents)
        yield from braced(f"if ({'small' if size == 'small' else '!small'})", run)
    yield "return failed;"
    yield "}"


def _bench_call(bench: str, function: ExportedFunction, extents: Sequence[int]) -> Iterator[str]:
    """A function behind the one face that the benchmark calls, which is called ``bench``, and its sizes."""
    name, program, shaped = function.name(), function.program, function.shaped
    fields = ", ".join(map(str, function.arguments(extents).values())) or "0"
    yield f"static const {name}_sizes {bench}_sizes = {{{fields}}};"
    yield ""
    yield f"static int {bench}(void **arrays, void *work, cudaStream_t stream)"
    yield "{"
    words = [f"&{bench}_sizes"]
    for number, buffer in enumerate((*program.inputs, *program.outputs)):
        const = "const " if number < len(shaped.inputs) else ""
        words.append(f"({const}{C_TYPES[program.buffers[buffer].dtype]} *)arrays[{number}]")
    yield f"return {name}({', '.join([*words, 'work', 'stream'])});"
    yield "}"
    yield ""


def _bench_case(bench: str, function: ExportedFunction, extents: Sequence[int]) -> Iterator[str]:
    """The run of a case: a ``bench_case`` of what is called, and of how many bytes each array has."""
    name, shaped = function.name(), function.shaped
    values = (*shaped.inputs, *shaped.outputs)
    sizes = [function.count(n, extents) * BYTES[shaped.tensors[n].dtype] for n in values]
    listed = ", ".join(map(str, sizes or [0]))
    called = f"{bench}, {name}_status, {name}_work(&{bench}_sizes), {len(values)}, bytes"
    fields = f'"{name}", "{function.arguments_text(extents)}", {called}'
    yield f"static const size_t bytes[] = {{{listed}}};"
    yield f"const struct bench_case one = {{{fields}}};"
    yield "failed |= bench_run(&one);"


def _extents(function: ExportedFunction, elements: int, points: int) -> tuple[int, ...] | None:
    """The largest extents of a function with so many elements and iterations at most; None where none fit."""
    shaped, extent = function.shaped, LARGEST_EXTENT
    while extent >= SMALLEST_EXTENT:
        chosen = tuple(extent if s.is_argument() else s.fixed or 0 for s in shaped.sizes)
        extents = settled_extents(function, chosen)
        if extents is not None and _fits(function, extents, elements, points):
            return extents
        extent //= 2
    return None


def _fits(function: ExportedFunction, extents: Sequence[int], elements: int, points: int) -> bool:
    """Whether a function has so many elements and iterations at most at some extents, and any."""
    shaped = function.shaped
    domains = [
        math.prod(extents[n] for n in node.sizes)
        for node in shaped.nodes
        if isinstance(node, Assignment)
    ]
    stored = [b.dims for b in function.program.buffers if not b.private]
    arrays = sum(
        math.prod(extents[n] for n in dims)
        for dims in stored
        if all(n < len(extents) for n in dims)
    )
    return 0 < arrays <= elements and max(domains, default=0) <= points


def _session_example(session: EmittedSession, stem: str, prefix: str) -> Iterator[str]:
    """A program that runs a session a few times, its arrays in memory of the device."""
    yield from _session_example_head(session, stem).split("\n")
    yield "int main(void)"
    yield from indented(braced("", _session_runs(session, prefix)), breaks=False)


def _session_runs(session: EmittedSession, prefix: str) -> Iterator[str]:
    """Three runs of a session on zeros, and the first element of each result printed."""
    name, dims = session.name, tested_dims(session)
    counts = {each: math.prod(extents) for each, extents in dims.items()}
    words = ["&model", *session.inputs, *session.outputs]
    if session.of_ranks():
        yield "int rank = 0, ranks;"
        yield f"TRY({prefix}_begin(&rank, &ranks));"
    yield f"{name} model;"
    yield "cudaStream_t stream;"
    yield "void *memory;"
    yield "CUDA(cudaStreamCreate(&stream));"
    yield f"CUDA(cudaMalloc(&memory, {name}_bytes()));"
    yield f"TRY({name}_init(&model, memory, 0, stream));"
    if session.is_open():
        words = [words[0], "&sizes", *words[1:], "work"]
        fields = ", ".join(str(tested_sizes(session)[each]) for each in session.sizes())
        yield f"const {name}_sizes sizes = {{{fields}}};"
        yield "void *work;"
        yield f"CUDA(cudaMalloc(&work, {name}_work(&sizes)));"
    for each in (*session.inputs, *session.outputs):
        dtype = session.tensors[each][0]
        yield f"{C_TYPES[dtype]} *{each};"
        yield f"CUDA(cudaMalloc(&{each}, {BYTES[dtype] * counts[each]}));"
        if each in session.inputs:
            yield f"CUDA(cudaMemset({each}, 0, {BYTES[dtype] * counts[each]}));"
    yield f"while (model.runs < 3) TRY({name}_run({', '.join([*words, 'stream'])}));"
    yield "CUDA(cudaStreamSynchronize(stream));"
    yield f'printf("{name}: %d runs\\n", (int)model.runs);'
    for each in session.outputs:
        dtype = session.tensors[each][0]
        if counts[each]:
            given = ["&first", each, str(BYTES[dtype]), "cudaMemcpyDeviceToHost"]
            yield "{"
            yield f"{C_TYPES[dtype]} first;"
            yield f"CUDA(cudaMemcpy({', '.join(given)}));"
            yield f'printf("{each}[0]: %g\\n", (double)first);'
            yield "}"
    freed = (*session.inputs, *session.outputs, *(["work"] if session.is_open() else []), "memory")
    yield from (f"cudaFree({each});" for each in freed)
    if session.of_ranks():
        yield f"{prefix}_end();"
    yield "return 0;"


def _session_example_head(session: EmittedSession, stem: str) -> str:
    stopped = STOPPED_RANK if session.of_ranks() else STOPPED
    return SESSION_EXAMPLE_HEAD.replace("STEM", stem) + stopped.replace("NAME", session.name)


EXAMPLE_IN_C = """\
STEM_example.o: STEM_example.c STEM.h STEM.flags
	$(CC) -std=gnu11 $(CFLAGS) -c STEM_example.c -o $@

STEM_example: STEM_example.o libSTEM.a
	$(NVCC) $(FLAGS) $(DEVICE) STEM_example.o libSTEM.a -o $@MPI_LINK"""

EXAMPLE_IN_CUDA = """\
STEM_example: STEM_example.cu STEM.h libSTEM.a
	$(NVCC) $(FLAGS) $(DEVICE) STEM_example.cu libSTEM.a -o $@MPI_LINK"""

SESSION_EXAMPLE_HEAD = """\
/* STEM_example.cu: a few runs of a session of STEM.h, on arrays of the device. Written by `i build`. */

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>

#include "STEM.h"

"""

STOPPED = """\
/* what a call gives other than 0 ends the program; an error of CUDA's is its negative number, as in the library */
#define TRY(call) do { const int status = (int)(call); if (status != 0) return stopped(status); } while (0)
#define CUDA(call) TRY(-(int)(call))

static int stopped(int status)
{
    fprintf(stderr, "%s\\n", NAME_status(status));
    return 1;
}
"""

STOPPED_RANK = """\
/* what a call gives other than 0 ends the program, on all ranks; the one that fails tells of it; an error of CUDA's is
 * its negative number, as in the library */
#define TRY(call) do { const int status = (int)(call); if (status != 0) return stopped(rank, status); } while (0)
#define CUDA(call) TRY(-(int)(call))

static int stopped(int rank, int status)
{
    if (status != 8) fprintf(stderr, "rank %d: %s\\n", rank, NAME_status(status));
    return 1;
}
"""

OF_SESSIONS = """\

What lasts from run to run is in memory of the device that the caller gives `NAME_init`, as much as `NAME_bytes` says.
`NAME_run` is one run on arrays of the device, `NAME_run_host` on arrays of the host.
`NAME_save` and `NAME_load` write and read a file of safetensors.
"""
