"""Kernels of CUDA: each function that a grid of threads runs, statement by statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import assert_never

from ilang.codegen.targets import c_scalar, cuda_together, cuda_vectors
from ilang.codegen.targets.c_entry import wrapped
from ilang.codegen.targets.cfamily import INDENT, Spelling, comment, product
from ilang.codegen.targets.cuda_comment import kernel_comment
from ilang.codegen.targets.identifiers import function_identifier, identifier
from ilang.codegen.targets.marked_lines import marked
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Transpose
from ilang.core.ir.gpu import (
    Barrier,
    CombineThreads,
    MatrixProduct,
    SwapBuffers,
    ThreadLoop,
    VectorAccess,
)
from ilang.core.ir.host import Host, Launch
from ilang.core.ir.scalar import Apply
from ilang.core.ir.schedule import THREAD_DIMENSIONS
from ilang.core.machine import DeviceLimits
from ilang.core.occupancy import iterations_of, loads_in_flight

AT = {"grid": "at", "blocks": "block", "warps": "warp", "threads": "element"}
"""The number of an iteration of several loops that is shared out."""
WORD = re.compile(r"\w+")
THREAD = re.compile(r"\bthread\b")
"""The number of a thread in a block that has several dimensions."""
GRID = "blockIdx.x * blockDim.x + threadIdx.x"
"""The number of a thread of the grid."""


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
        (spread,) = self.kernel.body
        assert isinstance(spread, ThreadLoop)
        self.outer = spread
        self.thread, self.threads = self._numbers()
        self.ends: set[tuple[str, str]] = set()
        self.marks = None
        if marking:
            from ilang.core.explain.marks import StatementMarks

            self.marks = StatementMarks(self.program, self.kernel)

    def _private(self, host: Host) -> tuple[int, ...]:
        """The buffers in scratch storage, in order."""
        kernels = [launch.kernel for launch in host.kernels() if launch.scratch]
        placed = dict(zip(kernels, host.layout.scratch, strict=True))
        return placed.get(self.launch.kernel, ())

    def _numbers(self) -> tuple[str, str]:
        """The number of a thread among those that share iterations, and how many these are."""
        if self.outer.over == "warps":
            return f"threadIdx.x % {self.outer.lanes}", str(self.outer.lanes)
        return (
            ("thread", str(self.outer.threads))
            if self.outer.shape
            else ("threadIdx.x", str(self.outer.threads))
        )

    def lines(self) -> Iterator[str]:
        """The kernel."""
        assert self.launch.grid is not None
        yield "/*"
        lines = kernel_comment(self.program, self.kernel, self.launch.grid, self.spelling)
        yield from (comment(f" * {line}") for line in lines)
        yield " */"
        if self.index == "Index":
            yield "template <typename Index>"
        yield f"static __global__ void __launch_bounds__({self.launch.grid.threads}, {self.outer.blocks})"
        name = f"{function_identifier(self.program.name)}_{self.kernel.name}"
        yield wrapped(f"{name}(", self._parameters(), ")")
        yield "{"
        body = list(self._block(self.kernel.body, INDENT))
        if self.outer.shape and any(THREAD.search(line) for line in body):
            x, y, _ = self.outer.shape
            number = f"threadIdx.x + {x} * (threadIdx.y + {y} * threadIdx.z)"
            yield f"{INDENT}const int thread = {number};"
        if self.looks:
            yield f"{INDENT}if (*outside != 0) return; /* an index is out of range */"
        yield from body
        yield "}"
        yield ""

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

    def _block(self, body: Sequence[ir.Statement], indent: str) -> Iterator[str]:
        for s in body:
            lines = self._statement(s, indent, is_alone=len(body) == 1)
            yield from self._marked(lines, s)

    def _marked(self, lines: Iterator[str], s: ir.Statement, whole: bool = False) -> Iterator[str]:
        """Lines of a statement, or of it and the statements in it as a ``whole``, with marks where lines have some."""
        if self.marks is None:
            return lines
        return marked(lines, self.marks.of_all((s,)) if whole else self.marks.of(s))

    def _statement(self, s: ir.Statement, indent: str, *, is_alone: bool) -> Iterator[str]:
        """A statement, which is the only one of its braces or has others beside it."""
        match s:
            case ir.For(manner=ir.Vectors(buffers)):
                lines = cuda_vectors.unrolled(
                    self.spelling, s, buffers, indent, braces=not is_alone
                )
                yield from self._marked(lines, s, whole=True)
            case ir.For():
                yield from self._opened(s, indent)
                yield from self._block(s.body, indent + INDENT)
                yield f"{indent}}}"
            case ir.If():
                words = self._conditions(s)
                yield f"{indent}if ({words if s.body else f'!({words})'}) {{"
                yield from self._block(s.body or s.otherwise, indent + INDENT)
                if s.body and s.otherwise:
                    yield f"{indent}}} else {{"
                    yield from self._block(s.otherwise, indent + INDENT)
                yield f"{indent}}}"
            case ir.Change() | ir.Store() if s.contracts:
                assert isinstance(s.value, Apply)
                target = self.spelling.expression(s.value.arguments[0])
                yield f"{indent}{target} = {cuda_vectors.contracted(s, self.spelling)};"
            case ir.Define() | ir.Change() | ir.Store() | ir.HorizontalReduction():
                yield from c_scalar.lines(s, self.spelling, indent)
            case ThreadLoop():
                yield from self._spread(s, indent, is_alone)
            case CombineThreads() | SwapBuffers() | MatrixProduct():
                lanes = self.outer.lanes or self._device().warp
                yield from cuda_together.lines(s, self.spelling, self.thread, lanes, indent)
            case Barrier():
                warp = self._device().warp
                meeting = cuda_together.meeting(self.outer.lanes, warp)
                meeting = f"__syncwarp({meeting if self.outer.lanes < warp else ''})"
                yield f"{indent}{meeting if self.outer.over == 'warps' else '__syncthreads()'};"
            case ir.Tile() | Transpose():
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

    def _opened(self, loop: ir.For, indent: str) -> Iterator[str]:
        spelling = self.spelling
        if loop.role == "u":
            yield "#pragma unroll"
        elif loop.copies is not None:
            yield f"#pragma unroll {loop.copies}"
        if loop.chunk is not None or loop.within:
            name, (start, end) = spelling.variable(loop.variable), self._ends(loop)
            end = f"min_i64({start} + 1, {end})" if loop.first else end
            first = f"{self.index} {name} = {start}, end_{name} = {end}"
            yield f"{indent}for ({first}; {name} < end_{name}; ++{name}) {{"
        else:
            name, end = spelling.variable(loop.variable), spelling.size(loop.size)
            yield f"{indent}for ({self._kind(loop)} {name} = 0; {name} < {end}; ++{name}) {{"

    def _device(self) -> DeviceLimits:
        """The device of the program, with its limits."""
        device = self.program.machine.device
        assert device is not None
        return device

    def _spread(self, s: ThreadLoop, indent: str, is_alone: bool) -> Iterator[str]:
        """Iterations that are shared out among blocks or threads."""
        if s.over != "threads":
            yield from self._memory(s, indent)
        if not s.loops:
            yield from self._alone(s, indent)
        elif (ends := self._named_ends(s)) and (ends, indent) in self.ends:
            yield f"{indent}{{"
            yield from self._spread(s, indent + INDENT, is_alone)
            yield f"{indent}}}"
        elif s.vectors is not None:
            self.ends.add((ends, indent))
            yield from self._several(s, s.vectors, indent)
        elif s.over != "threads":
            yield from self._across(s, ("z", "y"), indent)
        elif s.loops[0].role in THREAD_DIMENSIONS:
            yield from self._along(s, indent, is_alone)
        else:
            self.ends.add((ends, indent))
            yield from self._one_by_one(s, indent, is_alone)

    def _named_ends(self, s: ThreadLoop) -> str:
        """The loop of whose iterations the first or the last are variables of the block around; "" of none."""
        last = s.loops[-1]
        is_left = s.vectors is not None and self._leaves_some(last, s.vectors)
        return self.spelling.variable(last.variable) if is_left or last.chunk is not None else ""

    def _leaves_some(self, loop: ir.For, vectors: VectorAccess) -> bool:
        """Whether iterations of the last loop of a spread may be left after its groups."""
        extent = self.program.sizes[loop.size].fixed
        is_whole = extent is not None and extent % vectors.count == 0
        return loop.size not in vectors.whole and not is_whole

    def _one_by_one(
        self, s: ThreadLoop, indent: str, is_alone: bool, start: str = ""
    ) -> Iterator[str]:
        """Iterations of loops that are counted together, those from ``start`` on where one loop has some before."""
        if s.loops[0].chunk is not None:
            yield from self._chunk(s, s.loops[0], indent, start)
        elif iterations_of(self.program, s) == 1 and not start:
            yield from self._once(s, indent, is_alone)
        else:
            yield from self._turns(s, s.loops, indent, start)

    def _several(self, s: ThreadLoop, vectors: VectorAccess, indent: str) -> Iterator[str]:
        """Iterations several at a time; one by one those that are left over, or all where the others cannot be."""
        spelling, last = self.spelling, s.loops[-1]
        name, size = spelling.variable(last.variable), spelling.size(last.size)
        start = f"start_{name}" if self._leaves_some(last, vectors) else ""
        first, end = "0", size
        if last.chunk is not None:
            first, end = self._ends(last)
            yield f"{indent}const {self.index} end_{name} = {end};"
            end = f"end_{name}"
        if start:
            yield f"{indent}{self.index} {start} = {first};"
        yield f"{indent}if ({cuda_vectors.condition(spelling, vectors)}) {{"
        yield from self._groups(s, vectors, start or first, indent + INDENT)
        if start:
            yield f"{indent}{INDENT}{start} += ({end} - {start}) / {vectors.count} * {vectors.count};"
            yield f"{indent}}}"
            yield from self._one_by_one(s, indent, is_alone=False, start=start)
            return
        yield f"{indent}}} else {{"
        yield from self._one_by_one(s, indent + INDENT, is_alone=True)
        yield f"{indent}}}"

    def _vectors(self, s: ThreadLoop, vectors: VectorAccess, indent: str) -> Iterator[str]:
        """The statements of a worker for a vector, inside of the loops that an iteration is."""
        inside, body, ends = indent, s.body, list[str]()
        while len(body) == 1 and isinstance(body[0], ir.For):
            yield from self._opened(body[0], inside)
            ends.append(f"{inside}}}")
            inside, body = inside + INDENT, body[0].body
        variable = s.loops[-1].variable
        lines = cuda_vectors.together(self.spelling, vectors, variable, body, inside)
        yield from self._marked(lines, s, True)
        yield from reversed(ends)

    def _groups(
        self, s: ThreadLoop, vectors: VectorAccess, first: str, indent: str
    ) -> Iterator[str]:
        """Iterations several at a time, of those that are whole groups; of a chunk from the ``first`` one on."""
        inside, last = indent + INDENT, s.loops[-1]
        body = [*self._past(s, inside), *self._vectors(s, vectors, inside)]
        if s.over == "threads" and len(s.loops) == 1:
            name = self.spelling.variable(last.variable)
            thread = f"({self.thread})" if " " in self.thread else self.thread
            begin = (
                f"{vectors.count} * {thread}"
                if first == "0"
                else f"{first} + {vectors.count} * {thread}"
            )
            of_last = name if last.size in vectors.whole else f"{name} + {vectors.count - 1}"
            end = self.spelling.size(last.size) if last.chunk is None else f"end_{name}"
            step = int(self.threads) * vectors.count
            kind = self._kind(last) if first == "0" else self.index
            yield f"{indent}for ({kind} {name} = {begin}; {of_last} < {end}; {name} += {step}) {{"
        else:
            sizes = [self.spelling.size(loop.size) for loop in s.loops]
            extent = self.program.sizes[last.size].fixed
            groups = (
                f"{sizes[-1]} / {vectors.count}" if extent is None else str(extent // vectors.count)
            )
            sizes[-1] = f"({groups})" if extent is None and len(sizes) > 1 else groups
            at, kind = AT[s.over], self._counter(s)
            yield f"{indent}for ({self._counted(s, kind, at, product(sizes))}) {{"
            yield from self._variables(s.loops, at, body, inside, sizes, vectors.count)
        yield from body
        yield f"{indent}}}"

    def _across(self, s: ThreadLoop, dimensions: Sequence[str], indent: str) -> Iterator[str]:
        """Iterations of loops along the further dimensions of a grid, then those of all others."""
        spelling = self.spelling
        for n, dimension in enumerate(dimensions):
            for loop in s.loops:
                if loop.role != dimension:
                    continue
                name, size = spelling.variable(loop.variable), spelling.size(loop.size)
                first, step = f"blockIdx.{dimension}", f"gridDim.{dimension}"
                head = f"{self.index} {name} = {first}; {name} < {size}; {name} += {step}"
                yield f"{indent}for ({head}) {{"
                yield from self._across(s, dimensions[n + 1 :], indent + INDENT)
                yield f"{indent}}}"
                return
        others = tuple(loop for loop in s.loops if loop.role not in ("y", "z"))
        yield from self._turns(s, others, indent) if others else self._unless_past(s, indent)

    def _turns(
        self, s: ThreadLoop, loops: Sequence[ir.For], indent: str, start: str = ""
    ) -> Iterator[str]:
        """Iterations of which a worker has as many as come to its turn."""
        spelling, inside = self.spelling, indent + INDENT
        sizes = [spelling.size(loop.size) for loop in loops]
        body = [*self._past(s, inside), *self._block(s.body, inside)]
        if together := loads_in_flight(self.program, s):
            yield f"#pragma unroll {together}"
        if len(loops) == 1:
            at = spelling.variable(loops[0].variable)
            kind = self._kind(loops[0]) if s.over == "threads" else self.index
            yield f"{indent}for ({self._counted(s, kind, at, sizes[0], start)}) {{"
        else:
            at, kind = AT[s.over], self._counter(s)
            yield f"{indent}for ({self._counted(s, kind, at, product(sizes), start)}) {{"
            yield from self._variables(loops, at, body, inside)
        yield from body
        yield f"{indent}}}"

    def _past(self, s: ThreadLoop, indent: str) -> Iterator[str]:
        """Statements that pass over iterations past the end of a dimension, where a worker has several."""
        for loop in s.loops:
            name = self.spelling.variable(loop.variable)
            for end in loop.within:
                yield f"{indent}if ({name} >= {self.spelling.bound(end, loop.variable)}) continue;"

    def _along(self, s: ThreadLoop, indent: str, is_alone: bool) -> Iterator[str]:
        """Iterations of loops along the dimensions of a block: each thread has one at most."""
        spelling, inside = self.spelling, indent + INDENT
        loops = {loop.role: loop for loop in s.loops}
        conditions, lines, body = [], {}, list(self._unless_past(s, inside))
        for at, role in enumerate(THREAD_DIMENSIONS):
            count, index = self.outer.shape[at], f"threadIdx.{'xyz'[at]}"
            loop = loops.get(role)
            extent = 1 if loop is None else self.program.sizes[loop.size].fixed
            if extent != count:
                conditions.append(f"{index} < {extent}")
            if loop is not None:
                name = spelling.variable(loop.variable)
                lines[name] = f"{inside}const {self._kind(loop)} {name} = {index};"
        words = {word for line in body for word in WORD.findall(line)}
        variables = [line for name, line in lines.items() if name in words]
        declares = bool(variables) or _declares(s)
        condition = " && ".join(conditions)
        yield from _once(condition, [*variables, *body], indent, declares and not is_alone)

    def _unless_past(self, s: ThreadLoop, indent: str) -> Iterator[str]:
        """The statements of a worker for its one iteration, unless that is past the end of a dimension."""
        spelling = self.spelling
        ends = [
            f"{spelling.variable(loop.variable)} < {spelling.bound(end, loop.variable)}"
            for loop in s.loops
            for end in loop.within
        ]
        if not ends:
            yield from self._block(s.body, indent)
            return
        yield f"{indent}if ({' && '.join(ends)}) {{"
        yield from self._block(s.body, indent + INDENT)
        yield f"{indent}}}"

    def _variables(
        self,
        loops: Sequence[ir.For],
        at: str,
        body: Sequence[str],
        indent: str,
        groups: Sequence[str] = (),
        count: int = 1,
    ) -> Iterator[str]:
        """The variables of loops that are counted together, from the number of an iteration, where a body has them.

        Of ``groups`` of the last loop, that variable is the first one of ``count``.
        """
        words = {word for line in body for word in WORD.findall(line)}
        at = f"({at})" if " " in at else at
        sizes = groups or [self.spelling.size(loop.size) for loop in loops]
        for n, loop in enumerate(loops):
            inner = product(sizes[n + 1 :])
            value = at
            if inner != "1":
                value += f" / ({inner})" if " * " in inner else f" / {inner}"
            if product(sizes[:n]) != "1":
                value += f" % {sizes[n]}"
            if n == len(loops) - 1 and 1 < count:
                value = f"{count} * ({value})" if " " in value else f"{count} * {value}"
            value = "0" if sizes[n] == "1" else value
            kind = self._kind(loop) if at not in AT.values() or at == AT["threads"] else self.index
            name = self.spelling.variable(loop.variable)
            if name in words:
                yield f"{indent}const {kind} {name} = {value};"

    def _kind(self, loop: ir.For) -> str:
        """The type of the variable of a loop: narrow where its iterations are known, and no index is large."""
        return (
            self.index
            if self.program.sizes[loop.size].fixed is None or not self.kernel.narrow
            else "int"
        )

    def _once(self, s: ThreadLoop, indent: str, is_alone: bool) -> Iterator[str]:
        """Iterations of which each thread has one at most."""
        count = prod(self.program.sizes[loop.size].fixed or 0 for loop in s.loops)
        inside = indent + INDENT
        body = list(self._unless_past(s, inside))
        variables = list(self._variables(s.loops, self.thread, body, inside))
        condition = "" if count == s.threads else f"{self.thread} < {count}"
        declares = bool(variables) or _declares(s)
        yield from _once(condition, [*variables, *body], indent, declares and not is_alone)

    def _chunk(self, s: ThreadLoop, loop: ir.For, indent: str, start: str) -> Iterator[str]:
        """The iterations of one chunk of a loop, shared out among the threads of a block."""
        first, end = self._ends(loop)
        first = start or first
        name = self.spelling.variable(loop.variable)
        if s.vectors is None:
            yield f"{indent}const {self.index} end_{name} = {end};"
        step = f"{name} += {self.threads}"
        head = f"{self.index} {name} = {first} + {self.thread}; {name} < end_{name}; {step}"
        yield f"{indent}for ({head}) {{"
        yield from self._block(s.body, indent + INDENT)
        yield f"{indent}}}"

    def _ends(self, loop: ir.For) -> tuple[str, str]:
        """The first iteration of those of a loop that run, and that after the last one."""
        size, chunk = self.spelling.size(loop.size), loop.chunk
        start, end = "0", size
        if chunk is not None:
            count, block = self.spelling.size(chunk.count), self.spelling.variable(chunk.block)
            words = f"{size}, {count}, {chunk.multiple}, {block}"
            start, end = f"start_of({words})", f"start_of({words} + 1)"
        first, last = self.spelling.begin(loop, start), self.spelling.end(loop, end)
        if loop.finite:
            first = first if start == first else f"(*infinite ? {start} : {first})"
            last = last if end == last else f"(*infinite ? {end} : {last})"
        return first, last

    def _alone(self, s: ThreadLoop, indent: str) -> Iterator[str]:
        """The one iteration of no loops: the first thread's."""
        if s.over != "threads":
            yield from self._block(s.body, indent)
            return
        yield f"{indent}if ({self.thread} == 0) {{"
        yield from self._block(s.body, indent + INDENT)
        yield f"{indent}}}"

    def _counter(self, s: ThreadLoop) -> str:
        """The type of what counts iterations of several loops; unsigned ones are divided in fewer instructions."""
        narrow = s.over == "threads" and all(self._kind(loop) == "int" for loop in s.loops)
        return "unsigned" if narrow else self.index

    def _counted(self, s: ThreadLoop, kind: str, at: str, iterations: str, start: str = "") -> str:
        """The head of the loop over the iterations of one worker."""
        match s.over:
            case "grid":
                first, step = f"({self.index}){GRID}", f"({self.index})gridDim.x * blockDim.x"
            case "blocks":
                first, step = "blockIdx.x", "gridDim.x"
            case "warps":
                per_block = self.outer.parts()
                first = f"({self.index})blockIdx.x * {per_block} + threadIdx.x / {self.outer.lanes}"
                step = f"({self.index})gridDim.x * {per_block}"
            case "threads":
                first, step = self.thread, self.threads
            case _:
                assert_never(s.over)
        first = f"{start} + {first}" if start else first
        return f"{kind} {at} = {first}; {at} < {iterations}; {at} += {step}"

    def _memory(self, s: ThreadLoop, indent: str) -> Iterator[str]:
        """The private buffers of a thread, and those of a block or of its warps."""
        yield from self._scratch(f"(int64_t){GRID}", indent)
        inside = list(ir.statements_within(s.body))
        touched = {x.buffer for x in inside if isinstance(x, ir.Store)}
        swapped = {n for x in inside if isinstance(x, SwapBuffers) for n in (x.first, x.second)}
        for number in sorted(touched | swapped):
            buffer = self.program.buffers[number]
            if buffer.space:
                elements = prod(self.program.sizes[size].fixed or 0 for size in buffer.dims)
                shared = "__shared__ " if buffer.space == "shared" else ""
                if len(buffer.dims) > 1 and shared:
                    shared = f"__shared__ __align__({self.program.machine.vector_bytes()}) "
                name, kind, count = self._name(number), self._type(number), max(1, elements)
                if shared and s.over == "warps":
                    every = f"{name}_of_warps"
                    yield f"{indent}__shared__ {kind} {every}[{s.parts()}][{count}];"
                    yield f"{indent}{kind} *{name} = {every}[threadIdx.x / {s.lanes}];"
                elif number in swapped:
                    yield f"{indent}{shared}{kind} {name}_memory[{count}];"
                    yield f"{indent}{kind} *{name} = {name}_memory;"
                else:
                    yield f"{indent}{shared}{kind} {name}[{count}];"

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


def _declares(s: ThreadLoop) -> bool:
    """Whether the text of what a worker does declares anything outside of braces."""
    return any(
        isinstance(x, ir.Define) or (isinstance(x, ir.For) and isinstance(x.manner, ir.Vectors))
        for x in s.body
    )


def _once(condition: str, lines: Sequence[str], indent: str, scope: bool) -> Iterator[str]:
    """Statements that a worker runs once, under a condition if there is one, else in a scope if they need one."""
    if not condition and not scope:
        yield from (line.removeprefix(INDENT) for line in lines)
        return
    yield f"{indent}if ({condition}) {{" if condition else f"{indent}{{"
    yield from lines
    yield f"{indent}}}"
