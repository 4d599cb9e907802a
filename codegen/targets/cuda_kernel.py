"""Kernels of CUDA: each function that a grid of threads runs, statement by statement.

``cuda_spread.py`` has the loops whose iterations blocks or threads share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import assert_never

from ilang.codegen.targets import c_scalar, cuda_vectors
from ilang.codegen.targets.braces import braced, branches, indented
from ilang.codegen.targets.c_entry import several_a_line, wrapped
from ilang.codegen.targets.cfamily import INDENT, Spelling, combined, comment, product
from ilang.codegen.targets.constants import WORD, grouped, needed
from ilang.codegen.targets.cuda_phases import Phases
from ilang.codegen.targets.cuda_spread import GRID, SpreadText
from ilang.codegen.targets.identifiers import function_identifier, identifier
from ilang.codegen.targets.marked_lines import Marker
from ilang.core.diagnostic import counted
from ilang.core.ir import gpu
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile, Transpose
from ilang.core.ir.gpu import THREADS
from ilang.core.ir.host import Grid, Host, Launch
from ilang.core.ir.rewriting import named
from ilang.core.ir.scalar import Apply
from ilang.core.machine import MULTIPROCESSORS, MatrixUnit
from ilang.core.occupancy import occupancy_of, resources_of

THREAD = re.compile(r"\bthread\b")
"""The number of a thread in a block that has several dimensions."""


LEGEND = (
    "/* elements along each axis: of a block (TILE), of all threads (STRIP, of which each thread has STRIPS)"
    " or of one side by side; threads */"
)
"""The comment above the constants of a kernel."""


def constants_of(program: ir.Program, kernel: ir.Kernel) -> str:
    """The namespace that has the constants of a kernel."""
    return f"{function_identifier(program.name)}_{kernel.name}_block"


def threads_of_block(program: ir.Program, kernel: ir.Kernel) -> str:
    """The number of threads of a block of a kernel, outside of it."""
    return f"{constants_of(program, kernel)}::{THREADS}"


class KernelText:
    """The text of one kernel."""

    def __init__(self, host: Host, launch: Launch, marking: bool = False) -> None:
        """For a kernel of a host program, by its first launch; ``marking`` has lines say what they are of."""
        self.program = host.program
        self.launch = launch
        self.kernel: ir.Kernel = host.program.kernels[launch.kernel]
        spans = self.kernel.spans
        self.index = "int64_t" if spans is None else "Index" if spans else "int"
        self.spelling = Spelling(self.program, self.kernel, self.index)
        self.private = self._private(host)
        self.looks = host.outside() is not None
        spread = gpu.threads_of(self.kernel)
        self.outer = spread
        device = self.program.machine.gpu()
        self.warp = device.warp
        self.spreads = SpreadText(self)
        self.phases = Phases(self.program, self.kernel)
        self.in_phase = False
        """Whether a comment around says what statements do."""
        self.marked = Marker(self.program, self.kernel, marking).marked

    def _private(self, host: Host) -> tuple[int, ...]:
        """The buffers in scratch storage, in order."""
        kernels = [launch.kernel for launch in host.kernels() if launch.scratch]
        placed = dict(zip(kernels, host.scratch, strict=True))
        return placed.get(self.launch.kernel, ())

    def lines(self) -> Iterator[str]:
        """The kernel."""
        assert self.launch.grid is not None
        body = self.inside(self.block(self.kernel.body))
        yield from self._constants(body)
        yield "/*"
        yield " * each assignment, its expression and schedule: tiles | order of loops | what has each loop"
        lines = kernel_comment(self.program, self.kernel, self.launch.grid, self.spelling)
        yield from (comment(f" * {line}") for line in lines)
        yield " */"
        if self.index == "Index":
            yield "template <typename Index>"
        blocks = self.outer.blocks
        warps = -(-self.launch.grid.threads // self.warp)
        threads = threads_of_block(self.program, self.kernel)
        everywhere = all(unit.has_room(blocks, warps) for unit in MULTIPROCESSORS)
        at_a_time = blocks if everywhere else f"AT_A_TIME({blocks}, {threads})"
        yield f"static __global__ void __launch_bounds__({threads}, {at_a_time})"
        name = f"{function_identifier(self.program.name)}_{self.kernel.name}"
        yield wrapped(f"{name}(", self._parameters(), ")")
        yield from indented(braced("", self._body(body)))
        yield ""

    def _constants(self, body: Sequence[str]) -> Iterator[str]:
        """The constants that lines have, and those that these are made of, in a namespace of the kernel."""
        values = needed(self.kernel, body, (THREADS,))
        head, text = f"namespace {constants_of(self.program, self.kernel)} {{", ", ".join(values)
        if len(values) == 1:
            yield f"{head} constexpr int {text}; }}"
        else:
            yield LEGEND
            yield head
            yield several_a_line("constexpr int ", values, ";")
            yield "}"
        yield ""

    def _body(self, body: Sequence[str]) -> Iterator[str]:
        words = {word for line in body for word in WORD.findall(line)}
        if not words.isdisjoint(self.spelling.constants.values):
            yield f"using namespace {constants_of(self.program, self.kernel)};"
        if self.outer.shape and any(THREAD.search(line) for line in body):
            x, y, _ = self.outer.shape
            number = f"threadIdx.x + {x} * (threadIdx.y + {y} * threadIdx.z)"
            yield f"const int thread = {number};"
        if self.looks:
            yield "if (*outside != 0) return; /* an index is out of range */"
        yield from body

    def _parameters(self) -> list[str]:
        words = [f"{self.index} {self.spelling.size(n)}" for n in self.launch.sizes]
        for number in self.launch.buffers:
            const = "" if number in self.launch.writes else "const "
            words.append(f"{const}{self._type(number)} *__restrict__ {self._name(number)}")
        words += ["char *scratch", "size_t scratch_bytes"] if self.launch.scratch else []
        words += ["const int *__restrict__ outside"] if self.looks else []
        return words + (["const int *__restrict__ infinite"] * (self.launch.infinite is not None))

    def _type(self, number: int) -> str:
        return self.spelling.element_kind(number)

    def _name(self, number: int) -> str:
        return identifier(self.program.buffers[number].name)

    def inside(self, *parts: Iterator[str]) -> list[str]:
        """The lines of what stands in braces."""
        self.spreads.depth += 1
        lines = [line for part in parts for line in part]
        self.spreads.depth -= 1
        return lines

    def block(self, body: Sequence[ir.Statement]) -> Iterator[str]:
        """The statements of a block, with a comment where a phase of the kernel begins."""
        before = ""
        for s in body:
            outer, phase = self.in_phase, "" if self.in_phase else self.phases.of(s)
            if phase and phase != before:
                yield phase
            before, self.in_phase = phase, outer or bool(phase)
            yield from self.marked(self._statement(s, is_alone=len(body) == 1), s)
            self.in_phase = outer

    def _statement(self, s: ir.Statement, *, is_alone: bool) -> Iterator[str]:
        """A statement, which is the only one of its braces or has others beside it."""
        match s:
            case ir.For(manner=ir.Vectors(buffers)):
                lines = cuda_vectors.unrolled(self.spelling, s, buffers)
                yield from self.marked(lines if is_alone else braced("", lines), s, whole=True)
            case ir.For():
                yield from self.loop(s, self.block(s.body))
            case ir.If():
                bodies = (self.inside(self.block(body)) for body in (s.body, s.otherwise))
                yield from branches(self._conditions(s), s, *bodies)
            case ir.Change() | ir.Store() if s.contracts:
                assert isinstance(s.value, Apply)
                target = self.spelling.expression(s.value.arguments[0])
                yield f"{target} = {cuda_vectors.contracted(s, self.spelling)};"
            case ir.Define() | ir.Change() | ir.Store() | ir.HorizontalReduction():
                yield from c_scalar.lines(s, self.spelling)
            case gpu.ThreadLoop():
                if s.over != "threads":
                    yield from self._memory(s)
                yield from self.spreads.lines(s, is_alone)
            case gpu.CombineThreads() | gpu.SwapBuffers() | gpu.MatrixProduct():
                lanes = self.outer.lanes or self.warp
                yield from _block_operation(s, self.spelling, self.spreads.thread, lanes)
            case gpu.Barrier():
                meeting = _lane_mask(self.outer.lanes, self.warp)
                meeting = f"__syncwarp({meeting if self.outer.lanes < self.warp else ''})"
                yield f"{meeting if self.outer.over == 'warps' else '__syncthreads()'};"
            case Tile() | Transpose():
                raise AssertionError("CUDA has no statement of a CPU")
            case _:
                assert_never(s)

    def _conditions(self, s: ir.If) -> str:
        """The conditions of a statement; rows are aligned where the first one is, and all are so long."""
        words = [self.spelling.conditions(s.within)] if s.within else []
        for number in s.aligned:
            buffer = self.program.buffers[number]
            lanes = self.program.machine.vector_lanes(buffer.dtype)
            if len(buffer.dims) > 1 and self.program.sizes[buffer.dims[-1]].fixed is None:
                words.append(f"{self.spelling.size(buffer.dims[-1])} % {lanes} == 0")
            bytes_ = self.program.machine.vector_bytes()
            words.append(f"(size_t){self._name(number)} % {bytes_} == 0")
        return " && ".join(dict.fromkeys(words))

    def loop(self, loop: ir.For, body: Iterator[str]) -> Iterator[str]:
        """A loop that a thread runs, and the lines in it."""
        name, size = self.spelling.variable(loop.variable), self.spelling.count(loop)
        head = f"{self.kind(loop)} {name} = 0; {name} < {size}"
        if loop.end.operands or loop.begin.operands:
            start, end = self.ends(loop)
            head = f"{self.index} {name} = {start}, end_{name} = {end}; {name} < end_{name}"
        if loop.role == "u":
            yield "#pragma unroll"
        elif loop.copies is not None:
            yield f"#pragma unroll {loop.copies}"
        yield from braced(f"for ({head}; ++{name})", self.inside(body))

    def kind(self, loop: ir.For) -> str:
        """The type of the variable of a loop: narrow where its iterations are known, and no index is large."""
        return (
            self.index
            if self.program.sizes[loop.size].fixed is None or not self.kernel.narrow
            else "int"
        )

    def ends(self, loop: ir.For) -> tuple[str, str]:
        """The first iteration of those of a loop that run, and that after the last one."""
        first, last = map(self.spelling.bound, (loop.begin, loop.end))
        if loop.finite:
            whole = loop.whole()
            start, end = map(self.spelling.bound, (whole.begin, whole.end))
            first = first if start == first else f"(*infinite ? {start} : {first})"
            last = last if end == last else f"(*infinite ? {end} : {last})"
        return first, last

    def _memory(self, s: gpu.ThreadLoop) -> Iterator[str]:
        """The private buffers of a thread, and those of a block or of its warps."""
        yield from self._scratch(f"(int64_t){GRID}")
        inside = list(ir.statements_within(s.body))
        touched = {x.buffer for x in inside if isinstance(x, ir.Store)}
        swapped = {n for x in inside if isinstance(x, gpu.SwapBuffers) for n in (x.first, x.second)}
        for number in sorted(touched | swapped):
            buffer = self.program.buffers[number]
            if not buffer.space:
                continue
            shared = "__shared__ " if buffer.space == "shared" else ""
            if len(buffer.dims) > 1 and shared:
                shared = f"__shared__ __align__({self.program.machine.vector_bytes()}) "
            words = map(grouped, self.spelling.dimensions(number))
            name, kind, count = self._name(number), self._type(number), product(words)
            count = "1" if count == "0" else count
            if shared and s.over == "warps":
                every = f"{name}_of_warps"
                yield f"__shared__ {kind} {every}[{s.parts()}][{count}];"
                yield f"{kind} *{name} = {every}[threadIdx.x / {s.lanes}];"
            elif number in swapped:
                yield f"{shared}{kind} {name}_memory[{count}];"
                yield f"{kind} *{name} = {name}_memory;"
            else:
                yield f"{shared}{kind} {name}[{count}];"

    def _scratch(self, worker: str) -> Iterator[str]:
        """The private buffers of a thread in the workspace."""
        if not self.private:
            return
        yield f"char *own = scratch + ({worker}) * scratch_bytes;"
        for n, number in enumerate(self.private):
            c_type = self._type(number)
            yield f"{c_type} *{self._name(number)} = ({c_type} *)own;"
            if n + 1 < len(self.private):
                sizes = [self.spelling.size(size) for size in self.program.buffers[number].dims]
                product = "".join(f" * (size_t){size}" for size in sizes)
                yield f"own += padded(sizeof({c_type}){product});"


def _block_operation(
    s: gpu.CombineThreads | gpu.SwapBuffers | gpu.MatrixProduct,
    spelling: Spelling,
    thread: str,
    lanes: int,
) -> Iterator[str]:
    """A statement; ``thread`` is the number of a thread among those of a worker, ``lanes`` those of one in a warp."""
    device = spelling.program.machine.gpu()
    match s:
        case gpu.CombineThreads():
            return _combine(s, spelling, thread, (device.warp, lanes))
        case gpu.SwapBuffers():
            return _swap(s, spelling)
        case gpu.MatrixProduct():
            return _multiply(s, spelling, device.unit(s.rounding))
        case _:
            assert_never(s)


def _lane_mask(lanes: int, warp: int) -> str:
    """The lanes of a group, as a mask of those of its warp."""
    every = f"{hex((1 << lanes) - 1)}u"
    return every if lanes == warp else f"{every} << threadIdx.x % {warp} / {lanes} * {lanes}"


def _combine(
    s: gpu.CombineThreads, spelling: Spelling, thread: str, of_warp: tuple[int, int]
) -> Iterator[str]:
    """One value of what all threads have: within each warp by shuffles, then of one warp after the other.

    Where a worker is a part of a warp, its lanes alone meet: other ones may have no iteration.
    """
    warp, lanes = of_warp
    group = min(s.threads, warp)
    name, kind = spelling.local(s.variable), spelling.kind(s.variable, s.dtype)
    update = combined(s.primitive, s.dtype, name, "given")
    given = f"const {kind} given = __shfl_xor_sync({_lane_mask(min(group, lanes), warp)}, {name}, half);"
    yield from braced(f"for (int half = {group // 2}; half > 0; half /= 2)", (given, update))
    if s.threads <= warp:
        return
    is_block = s.threads == spelling.constants.values[THREADS]
    warps = f"{THREADS} / {warp}" if is_block else str(s.threads // warp)
    given = f"const {kind} given = partials[warp];"
    lines_of_warps = (
        f"__shared__ {kind} partials[{warps}];",
        "__syncthreads();",
        f"if ({thread} % {warp} == 0) partials[{thread} / {warp}] = {name};",
        "__syncthreads();",
        f"{name} = partials[0];",
        *braced(f"for (int warp = 1; warp < {warps}; ++warp)", (given, update)),
    )
    yield from braced("", lines_of_warps)


def _swap(s: gpu.SwapBuffers, spelling: Spelling) -> Iterator[str]:
    """Two pointers to what a block shares are exchanged."""
    buffers = spelling.program.buffers
    first, second = (identifier(buffers[number].name) for number in (s.first, s.second))
    other = f"{spelling.element_kind(s.first)} *const other = {first};"
    return braced("", (other, f"{first} = {second};", f"{second} = other;"))


def _multiply(s: gpu.MatrixProduct, spelling: Spelling, unit: MatrixUnit) -> Iterator[str]:
    """The product of matrices that the lanes of a warp have, added to one; registers hold terms side by side."""
    yield f"add_product_{unit.rows}x{unit.columns}x{unit.terms}("
    sides = [[*map(spelling.expression, side)] for side in (s.sums, s.left, s.right)]
    if 1 < unit.packed:
        sides[1:] = (_packed(side, unit) for side in sides[1:])
    ends = (",", ",", ");")
    yield from (f"{INDENT}{', '.join(side)}{end}" for side, end in zip(sides, ends, strict=True))


def _packed(side: Sequence[str], unit: MatrixUnit) -> list[str]:
    """Elements as registers that hold several of them."""
    several = (side[n : n + unit.packed] for n in range(0, len(side), unit.packed))
    return [f"pair_{unit.dtype}({', '.join(some)})" for some in several]


WORKERS = {"grid": "a thread", "blocks": "a block", "warps": "a warp", "threads": "a thread"}
"""A worker, by who shares iterations."""


def kernel_comment(
    program: ir.Program, kernel: ir.Kernel, grid: Grid, spelling: Spelling
) -> Iterator[str]:
    """The lines of the comment.

    Example, sums of rows of 1024 elements:
        +ij~i   || i j
        grid       a warp for each of n_i: i
        block      256 threads
        occupancy  8 blocks at a time on a multiprocessor of an H100, limited by threads
    """
    device = program.machine.gpu()
    spread = gpu.threads_of(kernel)
    yield from dict.fromkeys(kernel.comments)
    yield f"grid       {_workers(spread, grid, spelling, device.warp)}"
    shape = f", {' x '.join(map(str, grid.shape))}" if grid.shape else ""
    yield f"block      {counted(grid.threads, 'thread')}{shape}"
    taken = resources_of(program, kernel)
    if taken.shared:
        arrays = _arrays(program, kernel, "shared") or "values of warps that are combined"
        yield f"shared     {taken.shared:,} bytes: {arrays}"
    held = _arrays(program, kernel, "local")
    if held:
        yield f"registers  of each thread: {held}"
    row = occupancy_of(taken, MULTIPROCESSORS[-1], device)
    limit = f"{row.limit}{', an estimate' if row.limit == 'registers' else ''}"
    blocks = counted(row.blocks, "block")
    yield f"occupancy  {blocks} at a time on a multiprocessor of an {row.device}, limited by {limit}"


def _workers(spread: gpu.ThreadLoop, grid: Grid, spelling: Spelling, warp: int) -> str:
    """The iterations that are shared out, and who has one."""
    worker = WORKERS[spread.over]
    if spread.over == "warps" and spread.lanes < warp:
        worker = counted(spread.lanes, "lane")
    if not spread.loops:
        return f"{worker} alone"
    count = product(spelling.size(loop.size) for loop in spread.loops)
    names = ", ".join(spelling.variable(loop.variable) for loop in spread.loops)
    several = f"{grid.vector} of " if 1 < grid.vector else ""
    return f"{worker} for each {several or 'of '}{count}: {names}"


def _arrays(program: ir.Program, kernel: ir.Kernel, space: str) -> str:
    numbers = [n for n in sorted(named(kernel.body)) if program.buffers[n].space == space]
    lengths = [prod(program.sizes[n].fixed or 0 for n in program.buffers[b].dims) for b in numbers]
    pairs = zip(numbers, lengths, strict=True)
    return ", ".join(f"{identifier(program.buffers[n].name)}[{max(1, m)}]" for n, m in pairs)
