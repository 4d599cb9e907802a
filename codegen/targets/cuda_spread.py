"""Loops of CUDA whose iterations blocks or threads share: each worker has some of them, one after the other.

for (int64_t at = blockIdx.x; at < n_i; at += gridDim.x) {      a block for each iteration of i
for (int j = threadIdx.x; j < n_j; j += 256) {                  its threads share those of j
if (threadIdx.x < 64) {                                         each thread has one at most
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, assert_never

from ilang.codegen.targets import cuda_vectors
from ilang.codegen.targets.braces import braced
from ilang.codegen.targets.cfamily import Spelling, product
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import THREADS, ThreadLoop, VectorAccess
from ilang.core.ir.schedule import THREAD_DIMENSIONS
from ilang.core.occupancy import iterations_of, loads_in_flight

if TYPE_CHECKING:  # a kernel has these loops, and these loops have statements of a kernel
    from ilang.codegen.targets.cuda_kernel import KernelText

AT = {"grid": "at", "blocks": "block", "warps": "warp", "threads": "element"}
"""The number of an iteration of several loops that is shared out."""
WORD = re.compile(r"\w+")
GRID = "blockIdx.x * blockDim.x + threadIdx.x"
"""The number of a thread of the grid."""


class SpreadText:
    """The text of the shared loops of one kernel; ``depth`` braces are open around what is written."""

    def __init__(self, kernel: KernelText) -> None:
        """For the text of a kernel, which writes the statements in these loops."""
        self.kernel = kernel
        self.program = kernel.program
        self.spelling = kernel.spelling
        self.index = kernel.index
        self.outer = kernel.outer
        self.thread, self.threads = self._numbers()
        self.depth = 0
        self.ends: set[tuple[str, int]] = set()

    def _numbers(self) -> tuple[str, str]:
        """The number of a thread among those that share iterations, and how many these are."""
        if self.outer.over == "warps":
            return f"threadIdx.x % {self.outer.lanes}", str(self.outer.lanes)
        return "thread" if self.outer.shape else "threadIdx.x", THREADS

    def lines(self, s: ThreadLoop, is_alone: bool) -> Iterator[str]:
        """Iterations that are shared out among blocks or threads."""
        if not s.loops:
            yield from self._by_first_thread(s)
        elif (ends := self._named_ends(s)) and (ends, self.depth) in self.ends:
            yield from braced("", self.kernel.inside(self.lines(s, is_alone)))
        elif s.vectors is not None:
            self.ends.add((ends, self.depth))
            yield from self._vector_loop(s, s.vectors)
        elif s.over != "threads":
            yield from self._across(s, ("z", "y"))
        elif s.loops[0].role in THREAD_DIMENSIONS:
            yield from self._one_per_thread(s, is_alone)
        else:
            self.ends.add((ends, self.depth))
            yield from self._one_by_one(s, is_alone)

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

    def _one_by_one(self, s: ThreadLoop, is_alone: bool, start: str = "") -> Iterator[str]:
        """Iterations of loops that are counted together, those from ``start`` on where one loop has some before."""
        if s.loops[0].chunk is not None:
            return self._chunk(s, s.loops[0], start)
        if iterations_of(self.program, s) == 1 and not start:
            return self._once_per_thread(s, is_alone)
        return self._strided_loop(s, s.loops, start)

    def _vector_loop(self, s: ThreadLoop, vectors: VectorAccess) -> Iterator[str]:
        """Iterations several at a time; one by one those that are left over, or all where the others cannot be."""
        spelling, last = self.spelling, s.loops[-1]
        name, size = spelling.variable(last.variable), spelling.size(last.size)
        start = f"start_{name}" if self._leaves_some(last, vectors) else ""
        first, end = "0", size
        if last.chunk is not None:
            first, end = self.kernel.ends(last)
            yield f"const {self.index} end_{name} = {end};"
            end = f"end_{name}"
        if start:
            yield f"{self.index} {start} = {first};"
        yield f"if ({cuda_vectors.condition(spelling, vectors)}) {{"
        yield from self.kernel.inside(self._whole_vectors(s, vectors, start or first))
        if start:
            yield f"{start} += ({end} - {start}) / {vectors.count} * {vectors.count};"
            yield "}"
            yield from self._one_by_one(s, is_alone=False, start=start)
            return
        yield "} else {"
        yield from self.kernel.inside(self._one_by_one(s, is_alone=True))
        yield "}"

    def _vectors(
        self, s: ThreadLoop, vectors: VectorAccess, body: Sequence[ir.Statement]
    ) -> Iterator[str]:
        """The statements of a worker for a vector, inside of the loops that an iteration is."""
        if len(body) == 1 and isinstance(body[0], ir.For):
            return self.kernel.loop(body[0], self._vectors(s, vectors, body[0].body))
        variable = s.loops[-1].variable
        lines = cuda_vectors.together(self.spelling, vectors, variable, body)
        return self.kernel.marked(lines, s, True)

    def _whole_vectors(self, s: ThreadLoop, vectors: VectorAccess, first: str) -> Iterator[str]:
        """Iterations several at a time, of those that are whole groups; of a chunk from the ``first`` one on."""
        last = s.loops[-1]
        body = self.kernel.inside(self._skips_past_end(s), self._vectors(s, vectors, s.body))
        if s.over == "threads" and len(s.loops) == 1:
            name = self.spelling.variable(last.variable)
            thread = f"({self.thread})" if " " in self.thread else self.thread
            begin = f"{vectors.count} * {thread}"
            begin = begin if first == "0" else f"{first} + {begin}"
            of_last = name if last.size in vectors.whole else f"{name} + {vectors.count - 1}"
            end = self.spelling.size(last.size) if last.chunk is None else f"end_{name}"
            step = product((str(vectors.count), self.threads))
            kind = self.kernel.kind(last) if first == "0" else self.index
            head = f"for ({kind} {name} = {begin}; {of_last} < {end}; {name} += {step})"
            yield from braced(head, body)
            return
        sizes = [self.spelling.size(loop.size) for loop in s.loops]
        extent = self.program.sizes[last.size].fixed
        groups = (
            f"{sizes[-1]} / {vectors.count}" if extent is None else str(extent // vectors.count)
        )
        sizes[-1] = f"({groups})" if extent is None and len(sizes) > 1 else groups
        at, kind = AT[s.over], self._counter_type(s)
        variables = self._variables(s.loops, at, body, sizes, vectors.count)
        yield from braced(self._head(s, kind, at, product(sizes)), (*variables, *body))

    def _across(self, s: ThreadLoop, dimensions: Sequence[str]) -> Iterator[str]:
        """Iterations of loops along the further dimensions of a grid, then those of all others."""
        spelling = self.spelling
        for n, dimension in enumerate(dimensions):
            for loop in s.loops:
                if loop.role != dimension:
                    continue
                name, size = spelling.variable(loop.variable), spelling.size(loop.size)
                first, step = f"blockIdx.{dimension}", f"gridDim.{dimension}"
                head = f"{self.index} {name} = {first}; {name} < {size}; {name} += {step}"
                lines = self.kernel.inside(self._across(s, dimensions[n + 1 :]))
                yield from braced(f"for ({head})", lines)
                return
        others = tuple(loop for loop in s.loops if loop.role not in ("y", "z"))
        yield from self._strided_loop(s, others) if others else self._unless_past(s)

    def _strided_loop(
        self, s: ThreadLoop, loops: Sequence[ir.For], start: str = ""
    ) -> Iterator[str]:
        """Iterations of which a worker has as many as come to its turn."""
        body = self.kernel.inside(self._skips_past_end(s), self.kernel.block(s.body))
        if together := loads_in_flight(self.program, s):
            yield f"#pragma unroll {together}"
        if len(loops) == 1:
            at = self.spelling.variable(loops[0].variable)
            kind = self.kernel.kind(loops[0]) if s.over == "threads" else self.index
            variables: Iterator[str] = iter(())
        else:
            at, kind = AT[s.over], self._counter_type(s)
            variables = self._variables(loops, at, body)
        yield from braced(
            self._head(s, kind, at, _iterations(self.spelling, loops), start), (*variables, *body)
        )

    def _skips_past_end(self, s: ThreadLoop) -> Iterator[str]:
        """Statements that pass over iterations past the end of a dimension, where a worker has several."""
        for loop in s.loops:
            name = self.spelling.variable(loop.variable)
            for end in loop.end.limits():
                yield f"if ({name} >= {self.spelling.limit(*end)}) continue;"

    def _one_per_thread(self, s: ThreadLoop, is_alone: bool) -> Iterator[str]:
        """Iterations of loops along the dimensions of a block: each thread has one at most."""
        loops = {loop.role: loop for loop in s.loops}
        conditions, lines, body = [], {}, self.kernel.inside(self._unless_past(s))
        for at, role in enumerate(THREAD_DIMENSIONS):
            count, index = self.outer.shape[at], f"threadIdx.{'xyz'[at]}"
            loop = loops.get(role)
            extent = 1 if loop is None else self.program.sizes[loop.size].fixed
            if extent != count:
                conditions.append(f"{index} < {extent}")
            if loop is not None:
                name = self.spelling.variable(loop.variable)
                lines[name] = f"const {self.kernel.kind(loop)} {name} = {index};"
        words = {word for line in body for word in WORD.findall(line)}
        variables = [line for name, line in lines.items() if name in words]
        declares = bool(variables) or _declares(s)
        return _run_once(" && ".join(conditions), [*variables, *body], declares and not is_alone)

    def _unless_past(self, s: ThreadLoop) -> Iterator[str]:
        """The statements of a worker for its one iteration, unless that is past the end of a dimension."""
        spelling = self.spelling
        ends = [
            f"{spelling.variable(loop.variable)} < {spelling.limit(*end)}"
            for loop in s.loops
            for end in loop.end.limits()
        ]
        if not ends:
            return self.kernel.block(s.body)
        return braced(f"if ({' && '.join(ends)})", self.kernel.inside(self.kernel.block(s.body)))

    def _variables(
        self,
        loops: Sequence[ir.For],
        at: str,
        body: Sequence[str],
        groups: Sequence[str] = (),
        count: int = 1,
    ) -> Iterator[str]:
        """The variables of loops that are counted together, from the number of an iteration, where a body has them.

        Of ``groups`` of the last loop, that variable is the first one of ``count``.
        """
        words = {word for line in body for word in WORD.findall(line)}
        at = f"({at})" if " " in at else at
        sizes = groups or [self.spelling.count(loop) for loop in loops]
        for n, loop in enumerate(loops):
            inner = (
                product(groups[n + 1 :]) if groups else _iterations(self.spelling, loops[n + 1 :])
            )
            value = at
            if inner != "1":
                value += f" / ({inner})" if " * " in inner else f" / {inner}"
            if product(sizes[:n]) != "1":
                value += f" % {sizes[n]}"
            if n == len(loops) - 1 and 1 < count:
                value = f"{count} * ({value})" if " " in value else f"{count} * {value}"
            value = "0" if sizes[n] == "1" else value
            narrow = at not in AT.values() or at == AT["threads"]
            kind = self.kernel.kind(loop) if narrow else self.index
            name = self.spelling.variable(loop.variable)
            if name in words:
                yield f"const {kind} {name} = {value};"

    def _once_per_thread(self, s: ThreadLoop, is_alone: bool) -> Iterator[str]:
        """Iterations of which each thread has one at most."""
        count = prod(self.program.sizes[loop.size].fixed or 0 for loop in s.loops)
        body = self.kernel.inside(self._unless_past(s))
        variables = list(self._variables(s.loops, self.thread, body))
        named = _iterations(self.spelling, s.loops)
        condition = "" if count == s.threads else f"{self.thread} < {named}"
        declares = bool(variables) or _declares(s)
        return _run_once(condition, [*variables, *body], declares and not is_alone)

    def _chunk(self, s: ThreadLoop, loop: ir.For, start: str) -> Iterator[str]:
        """The iterations of one chunk of a loop, shared out among the threads of a block."""
        first, end = self.kernel.ends(loop)
        first = start or first
        name = self.spelling.variable(loop.variable)
        if s.vectors is None:
            yield f"const {self.index} end_{name} = {end};"
        step = f"{name} += {self.threads}"
        head = f"{self.index} {name} = {first} + {self.thread}; {name} < end_{name}; {step}"
        yield from braced(f"for ({head})", self.kernel.inside(self.kernel.block(s.body)))

    def _by_first_thread(self, s: ThreadLoop) -> Iterator[str]:
        """The one iteration of no loops: the first thread's."""
        if s.over != "threads":
            return self.kernel.block(s.body)
        return braced(f"if ({self.thread} == 0)", self.kernel.inside(self.kernel.block(s.body)))

    def _counter_type(self, s: ThreadLoop) -> str:
        """The type of what counts iterations of several loops; unsigned ones are divided in fewer instructions."""
        narrow = s.over == "threads" and all(self.kernel.kind(loop) == "int" for loop in s.loops)
        return "unsigned" if narrow else self.index

    def _head(self, s: ThreadLoop, kind: str, at: str, iterations: str, start: str = "") -> str:
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
        return f"for ({kind} {at} = {first}; {at} < {iterations}; {at} += {step})"


def _iterations(spelling: Spelling, loops: Sequence[ir.For]) -> str:
    """The iterations of loops in each other: their product, as far as it has a name under that."""
    words = spelling.constants.collapsed([*map(spelling.count, loops)])
    named = [word for word in words if not word.isdigit()]
    return product([product(filter(str.isdigit, words)), *named])


def _declares(s: ThreadLoop) -> bool:
    """Whether the text of what a worker does declares anything outside of braces."""
    return any(
        isinstance(x, ir.Define) or (isinstance(x, ir.For) and isinstance(x.manner, ir.Vectors))
        for x in s.body
    )


def _run_once(condition: str, lines: Sequence[str], scope: bool) -> Iterator[str]:
    """Statements that a worker runs once, under a condition if there is one, else in a scope if they need one."""
    if not condition and not scope:
        return iter(lines)
    return braced(f"if ({condition})" if condition else "", lines)
