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
from math import prod
from typing import assert_never

from ilang.codegen.targets import c_scalar, cuda_header, cuda_library
from ilang.codegen.targets.c_entry import wrapped
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, Spelling, combined, comment
from ilang.codegen.targets.cuda_entry import TRY, Entry
from ilang.codegen.targets.identifiers import identifier
from ilang.codegen.targets.library import linked
from ilang.core.ir.cpu import Transpose
from ilang.core.ir.gpu import Barrier, Combine, Spread
from ilang.core.ir.host import Host, Launch
from ilang.core.ir.kernel import (
    Change,
    Chunk,
    Define,
    For,
    HorizontalReduction,
    If,
    Kernel,
    Program,
    Statement,
    Store,
    Tile,
    statements_within,
)
from ilang.core.machine import Device
from ilang.core.pipeline import host_of

INCLUDES = (
    "#include <cuda_runtime.h>",
    "#include <math.h>",
    "#include <stddef.h>",
    "#include <stdint.h>",
    "#include <initializer_list>",
)


AT = {"grid": "at", "blocks": "block", "threads": "lane"}
"""The number of an iteration that is shared out."""
GRID = (
    "(int64_t)blockIdx.x * blockDim.x + threadIdx.x",
    "(int64_t)gridDim.x * blockDim.x",
)
"""The number of a thread of the grid, and how many there are."""


def emit(program: Program) -> str:
    """A program as one self-contained CUDA text."""
    return emit_together([program])


def emit_together(programs: Sequence[Program]) -> str:
    """Several programs as one self-contained CUDA text."""
    declared = [line for program in programs for line in (*cuda_header.declarations(program), "")]
    lines = [*INCLUDES, "", 'extern "C" {', "", *declared, "}", "", *_implementation(programs)]
    return "\n".join(lines) + "\n"


def emit_source(programs: Sequence[Program], stem: str) -> str:
    """The implementation that goes with ``cuda_header.emit_header``."""
    lines = [f'#include "{stem}.h"', "", *INCLUDES, "", *_implementation(programs)]
    return "\n".join(lines) + "\n"


def _implementation(programs: Sequence[Program]) -> Iterator[str]:
    body = [line for program in programs for line in _program(host_of(program))]
    yield TRY
    yield ""
    yield from linked("\n".join(body), cuda_library.parts())
    yield from body


def _program(host: Host) -> Iterator[str]:
    """The kernels of a program, and what is around them."""
    for launch in host.launches:
        yield from _Kernel(host, launch).lines()
    yield from Entry(host).lines()


class _Kernel:
    """The text of one kernel."""

    def __init__(self, host: Host, launch: Launch) -> None:
        self.program = host.program
        self.launch = launch
        self.kernel: Kernel = host.program.kernels[launch.kernel]
        self.spelling = Spelling(self.program, self.kernel)
        self.private = self._private(host)

    def _private(self, host: Host) -> tuple[int, ...]:
        """The buffers in scratch storage, in order."""
        kernels = [launch.kernel for launch in host.launches if launch.scratch]
        placed = dict(zip(kernels, host.layout.scratch, strict=True))
        return placed.get(self.launch.kernel, ())

    def lines(self) -> Iterator[str]:
        """The kernel."""
        assert self.launch.grid is not None
        yield "/*"
        yield from (comment(f" * {line}") for line in self.kernel.comments)
        yield " */"
        yield f"static __global__ void __launch_bounds__({self.launch.grid.threads}, 1)"
        name = f"{identifier(self.program.name)}_{self.kernel.name}"
        yield wrapped(f"{name}(", self._parameters(), ")")
        yield "{"
        yield from self._block(self.kernel.body, INDENT)
        yield "}"
        yield ""

    def _parameters(self) -> list[str]:
        words = [f"int64_t {self.spelling.size(n)}" for n in self.launch.sizes]
        for number in self.launch.buffers:
            const = "" if number in self.launch.writes else "const "
            words.append(f"{const}{self._type(number)} *__restrict__ {self._name(number)}")
        return words + (["char *scratch", "size_t scratch_bytes"] if self.launch.scratch else [])

    def _type(self, number: int) -> str:
        return C_TYPES[self.program.buffers[number].dtype]

    def _name(self, number: int) -> str:
        return identifier(self.program.buffers[number].name)

    def _block(self, body: Sequence[Statement], indent: str) -> Iterator[str]:
        for s in body:
            yield from self._statement(s, indent)

    def _statement(self, s: Statement, indent: str) -> Iterator[str]:
        match s:
            case For():
                yield from self._for(s, indent)
            case If():
                words = self.spelling.conditions(s.within)
                yield f"{indent}if ({words if s.body else f'!({words})'}) {{"
                yield from self._block(s.body or s.otherwise, indent + INDENT)
                if s.body and s.otherwise:
                    yield f"{indent}}} else {{"
                    yield from self._block(s.otherwise, indent + INDENT)
                yield f"{indent}}}"
            case Define() | Change() | Store() | HorizontalReduction():
                yield from c_scalar.lines(s, self.spelling, indent)
            case Spread():
                yield from self._spread(s, indent)
            case Combine():
                yield from self._combine(s, indent)
            case Barrier():
                yield f"{indent}__syncthreads();"
            case Tile() | Transpose():
                raise AssertionError("CUDA has no statement of a CPU")
            case _:
                assert_never(s)

    def _for(self, loop: For, indent: str) -> Iterator[str]:
        """A loop one iteration after the other."""
        spelling = self.spelling
        if loop.role == "u":
            yield "#pragma unroll"
        elif loop.copies is not None:
            yield f"#pragma unroll {loop.copies}"
        if loop.chunk is None:
            yield spelling.opened(loop, indent)
        else:
            name, (start, end) = spelling.variable(loop.variable), self._ends(loop, loop.chunk)
            first = f"int64_t {name} = {start}, end_{name} = {end}"
            yield f"{indent}for ({first}; {name} < end_{name}; ++{name}) {{"
        yield from self._block(loop.body, indent + INDENT)
        yield f"{indent}}}"

    def _combine(self, s: Combine, indent: str) -> Iterator[str]:
        """One value of what all threads have: within each warp by shuffles, then of one warp after the other."""
        warp = self._device().warp
        name, kind = self.spelling.local(s.variable), self.spelling.kind(s.variable, s.dtype)
        update = combined(s.primitive, s.dtype, name, "given")
        yield f"{indent}for (int half = {warp // 2}; half > 0; half /= 2) {{"
        yield f"{indent}{INDENT}const {kind} given = __shfl_xor_sync(0xffffffffu, {name}, half);"
        yield f"{indent}{INDENT}{update}"
        yield f"{indent}}}"
        if s.threads <= warp:
            return
        yield f"{indent}{{"
        inside = indent + INDENT
        yield f"{inside}__shared__ {kind} sums[{s.threads // warp}];"
        yield f"{inside}__syncthreads();"
        yield f"{inside}if (threadIdx.x % {warp} == 0) sums[threadIdx.x / {warp}] = {name};"
        yield f"{inside}__syncthreads();"
        yield f"{inside}{name} = sums[0];"
        yield f"{inside}for (int part = 1; part < {s.threads // warp}; ++part) {{"
        yield f"{inside}{INDENT}const {kind} given = sums[part];"
        yield f"{inside}{INDENT}{update}"
        yield f"{inside}}}"
        yield f"{indent}}}"

    def _device(self) -> Device:
        """What the program may ask for."""
        device = self.program.machine.device
        assert device is not None
        return device

    def _spread(self, s: Spread, indent: str) -> Iterator[str]:
        """Iterations that are shared out among blocks or threads."""
        if s.over != "threads":
            yield from self._memory(s, indent)
        if not s.loops:
            yield from self._alone(s, indent)
            return
        spelling = self.spelling
        if s.over == "threads" and s.loops[0].chunk is not None:
            yield from self._chunk(s, s.loops[0], s.loops[0].chunk, indent)
            return
        if s.over == "threads" and self._count(s) <= s.threads:
            yield from self._once(s, indent)
            return
        sizes = [spelling.size(loop.size) for loop in s.loops]
        yield f"{indent}for ({self._counted(s, ' * '.join(sizes))}) {{"
        inside = indent + INDENT
        yield from self._variables(s, AT[s.over], inside)
        for loop in s.loops:
            if loop.rest is not None:
                name = spelling.variable(loop.variable)
                yield f"{inside}if ({name} >= {spelling.rest(loop.rest)}) continue;"
        yield from self._block(s.body, inside)
        yield f"{indent}}}"

    def _variables(self, s: Spread, at: str, indent: str) -> Iterator[str]:
        """The variables of the loops of a spread, from the number of an iteration."""
        sizes = [self.spelling.size(loop.size) for loop in s.loops]
        for n, loop in enumerate(s.loops):
            inner = " * ".join(sizes[n + 1 :])
            value = f"{at} / ({inner})" if len(sizes[n + 1 :]) > 1 else f"{at} / {inner}"
            value = (value if inner else at) + (f" % {sizes[n]}" if n else "")
            yield f"{indent}const int64_t {self.spelling.variable(loop.variable)} = {value};"

    def _count(self, s: Spread) -> int:
        """How many iterations a spread has; more than there are threads where that is not known."""
        extents = [self.program.sizes[loop.size].fixed for loop in s.loops]
        return prod(s.threads + 1 if extent is None else extent for extent in extents)

    def _once(self, s: Spread, indent: str) -> Iterator[str]:
        """Iterations of which each thread has one at most."""
        spelling, count = self.spelling, self._count(s)
        yield indent + ("{" if count == s.threads else f"if (threadIdx.x < {count}) {{")
        inside = indent + INDENT
        yield from self._variables(s, "threadIdx.x", inside)
        rests = [
            f"{spelling.variable(loop.variable)} < {spelling.rest(loop.rest)}"
            for loop in s.loops
            if loop.rest is not None
        ]
        if rests:
            yield f"{inside}if ({' && '.join(rests)}) {{"
            yield from self._block(s.body, inside + INDENT)
            yield f"{inside}}}"
        else:
            yield from self._block(s.body, inside)
        yield f"{indent}}}"

    def _chunk(self, s: Spread, loop: For, chunk: Chunk, indent: str) -> Iterator[str]:
        """The iterations of one chunk of a loop, shared out among the threads of a block."""
        first, end = self._ends(loop, chunk)
        name = self.spelling.variable(loop.variable)
        yield f"{indent}const int64_t end_{name} = {end};"
        head = f"int64_t {name} = {first} + threadIdx.x; {name} < end_{name}; {name} += blockDim.x"
        yield f"{indent}for ({head}) {{"
        yield from self._block(s.body, indent + INDENT)
        yield f"{indent}}}"

    def _ends(self, loop: For, chunk: Chunk) -> tuple[str, str]:
        """The first iteration of a chunk of a loop, and that after its last one."""
        size, count = self.spelling.size(loop.size), self.spelling.size(chunk.count)
        words = f"{size}, {count}, {chunk.multiple}, {self.spelling.variable(chunk.block)}"
        return f"start_of({words})", f"start_of({words} + 1)"

    def _alone(self, s: Spread, indent: str) -> Iterator[str]:
        """The one iteration of no loops: the first thread's."""
        if s.over != "threads":
            yield from self._block(s.body, indent)
            return
        yield f"{indent}if (threadIdx.x == 0) {{"
        yield from self._block(s.body, indent + INDENT)
        yield f"{indent}}}"

    def _counted(self, s: Spread, iterations: str) -> str:
        """The head of the loop over the iterations of one worker."""
        at = AT[s.over]
        match s.over:
            case "grid":
                first, step = GRID
            case "blocks":
                first, step = "blockIdx.x", "gridDim.x"
            case "threads":
                first, step = "threadIdx.x", "blockDim.x"
            case _:
                assert_never(s.over)
        return f"int64_t {at} = {first}; {at} < {iterations}; {at} += {step}"

    def _memory(self, s: Spread, indent: str) -> Iterator[str]:
        """The private buffers of a thread, and those of a block."""
        yield from self._scratch(GRID[0], indent)
        touched = {x.buffer for x in statements_within(s.body) if isinstance(x, Store)}
        for number in sorted(touched):
            buffer = self.program.buffers[number]
            if buffer.space:
                elements = prod(self.program.sizes[size].fixed or 0 for size in buffer.dims)
                shared = "__shared__ " if buffer.space == "shared" else ""
                name = f"{self._name(number)}[{max(1, elements)}]"
                yield f"{indent}{shared}{self._type(number)} {name};"

    def _scratch(self, worker: str, indent: str) -> Iterator[str]:
        """The private buffers of a thread in the workspace."""
        if not self.private:
            return
        yield f"{indent}char *own = scratch + ({worker}) * scratch_bytes;"
        for n, number in enumerate(self.private):
            c_type = self._type(number)
            yield f"{indent}{c_type} *{self._name(number)} = ({c_type} *)own;"
            if n + 1 < len(self.private):
                sizes = [self.spelling.size(size) for size in self.program.buffers[number].dims]
                product = "".join(f" * (size_t){size}" for size in sizes)
                yield f"{indent}own += padded(sizeof({c_type}){product});"
