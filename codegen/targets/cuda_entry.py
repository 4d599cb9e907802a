"""The host program in CUDA: workspace layout, argument checks, and the launches of its kernels in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.codegen.targets import c_entry
from ilang.codegen.targets.c_entry import (
    at,
    field,
    planned,
    several_a_line,
    status_lines,
    statuses,
    wrapped,
)
from ilang.codegen.targets.c_header import parameters
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, product
from ilang.codegen.targets.cuda_header import STREAM, host_signature, signature, wait_signature
from ilang.codegen.targets.cuda_kernel import threads_of_block
from ilang.core.calculus.extent import Operator
from ilang.core.dtype import INTEGER_ENDS
from ilang.core.ir.host import Condition, Grid, Host, Launch, Look
from ilang.core.ir.kernel import Kernel

TRY = "#define TRY(call) do { const int status = (int)(call); if (status != 0) return -status; } while (0)"
"""A call of CUDA's: what it gives other than success is returned."""
OF_CUDA = 'status < 0 ? cudaGetErrorString((cudaError_t)-status) : "no such status"'
"""The meaning of a status that is none of ours."""
UNTOUCHED = "TRY(cudaPeekAtLastError());"
"""The first statement of a function that asks for errors of its launches: one that a caller left is told, and stays."""


FORMULAS = c_entry.FORMULAS | {
    "chunks": Operator(lambda terms, _, most, work, *_others: f"blocks({terms}, {most}, {work})"),
    "shares": Operator(
        lambda whole, least, most, *tiles: (
            f"parts_of({whole}, {least}, {{{', '.join(tiles)}}}, {most})"
        )
    ),
}


class Entry(c_entry.Entry):
    """Text of ``NAME_plan``, ``NAME_work``, ``NAME``, ``NAME_host`` and ``NAME_status``: a host program in CUDA."""

    formulas = FORMULAS
    added = "add({}, {}, 1)"
    zeros = "{}"

    def __init__(self, host: Host) -> None:
        super().__init__(host, signature(host.program))
        device = host.program.machine.gpu()
        if self.constant is not None:
            self.total = str(self.constant.total)
        self.narrow = device.narrow_elements
        self.outside = host.outside()
        self.manner = ""
        self.fields += ["size_t marks;"] if host.marks else []
        self.fields += ["int64_t workers;"] if host.scratch else []

    def lines(self) -> Iterator[str]:
        """All of them."""
        yield from super().lines()
        yield from self._for_host()
        yield from status_lines(self.name, statuses(self.program), OF_CUDA)

    def _copies_of_scratch(self) -> Iterator[str]:
        threads = self.program.machine.threads
        limits = f"{threads.most}, (size_t){threads.scratch_bytes >> 20} << 20"
        yield f"{INDENT}plan->workers = scratches(plan->scratch_bytes, {limits});"
        count = "(size_t)plan->workers"
        yield f"{INDENT}if (!add(&plan->total, plan->scratch_bytes, {count})) return 0;"

    def _measure(self, number: int, target: str) -> str:
        buffer = self.program.buffers[number]
        words = [self.spelling.size(size) for size in buffer.dims]
        if buffer.whole() is not None:
            words[0] = f"{words[0]} == 1 ? 0 : {words[0]}"
        extents = ", ".join(words)
        return f"measure({target}, sizeof({C_TYPES[buffer.dtype]}), {{{extents}}})"

    def _placed(self, number: int, place: str) -> str:
        buffer = self.program.buffers[number]
        whole = buffer.whole()
        if whole is None:
            return place
        return f"{self.spelling.size(buffer.dims[0])} == 1 ? {self._array(whole)} : {place}"

    def _terms(self, words: Sequence[str]) -> str:
        return f"{{{', '.join(words)}}}"

    def function(self) -> Iterator[str]:
        """The program's function; of one that looks elements up, what it found, too."""
        if self.outside is None:
            yield from super().function()
            return
        given = [*parameters(self.program), "void *work", STREAM, "bool waits"]
        yield "/* the same; where it waits, nothing is computed before all indices are known to be in range */"
        yield from self._running(wrapped(f"static int {self.name}_enqueued(", given, ")"))
        yield self.signature
        yield "{"
        names = [self._array(n) for n in self.program.arguments()]
        words = ["sizes", *names, "work", "stream", "false"]
        yield wrapped(f"{INDENT}return {self.name}_enqueued(", words, ");")
        yield "}"
        yield ""
        yield wait_signature(self.program)
        yield "{"
        yield from planned(self)
        yield f"{INDENT}if (work == NULL) return 1;"
        mark = self._mark(self.outside, "start_in(work)")
        yield f"{INDENT}return status_of_indices({mark}, stream);"
        yield "}"
        yield ""

    def _mark(self, number: int, base: str = "base") -> str:
        """The mark of a number, in a workspace that begins there."""
        marks = at(field(self, "marks"), base)
        return f"(int *)({marks}){f' + {number}' if number else ''}"

    def _begun(self) -> Iterator[str]:
        """No call before has left an error; no index is out of range yet, and no element infinite."""
        yield f"{INDENT}{UNTOUCHED}"
        if self.host.marks:
            marks = at(field(self, "marks"))
            yield f"{INDENT}TRY(cudaMemsetAsync({marks}, 0, {self.marks_bytes}, stream));"

    def _look(self, look: Look) -> Iterator[str]:
        """The launches that look at arrays, before kernels that read their marks."""
        marks = (
            f"{'NULL' if look.before is None else self._mark(look.before)}, {self._mark(look.mark)}"
        )
        for number, size in look.arrays:
            dtype, words = self.program.buffers[number].dtype, self._elements(number)
            if size is None:
                call = f"look_for_infinite_{dtype}({words}, {marks}, stream)"
            else:
                call = f"look_at_{dtype}({words}, {self.spelling.size(size)}, {marks}, stream)"
            yield f"{INDENT}TRY({call});"
        if look.is_of_indices():
            done = f"status_of_indices({self._mark(look.mark)}, stream)"
            yield f"{INDENT}if (waits) {{"
            yield f"{INDENT}{INDENT}if (const int done = {done}) return done;"
            yield f"{INDENT}}}"

    def _launch(self, launch: Launch) -> Iterator[str]:
        """The launch of a kernel, unless it has nothing to do."""
        grid, kernel = launch.grid, self.program.kernels[launch.kernel]
        assert grid is not None
        words = [self.spelling.size(n) for n in launch.sizes]
        words += [self._array(n) for n in launch.buffers]
        if launch.scratch:
            words += [at(field(self, "scratch")), field(self, "scratch_bytes")]
        words += [self._mark(n) for n in (launch.outside, launch.infinite) if n is not None]
        tests = [self._condition(c) for c in launch.every_condition() if not self._is_known(c)]
        takes_scratch = launch.scratch and bool(grid.sizes)
        indent = INDENT
        in_braces = bool(tests or takes_scratch or kernel.spans)
        if in_braces:
            yield f"{INDENT}if ({' && '.join(tests)}) {{" if tests else f"{INDENT}{{"
            indent = 2 * INDENT
        if takes_scratch:
            workers = field(self, "workers")
            most = f"{workers} < {grid.threads} ? (int){workers} : {grid.threads}"
            if self.constant is not None:
                most = str(min(self.constant.workers, grid.threads))
            yield f"{indent}const int threads = {most};"
        name = f"{self.name}_{kernel.name}"
        shape = f"{self._blocks(grid, kernel, takes_scratch)}, 0, stream>>>("
        if not kernel.spans:
            yield several_a_line(f"{indent}{name}<<<{shape}", words, ");")
        else:
            counts = [self._terms([self.spelling.size(n) for n in span]) for span in kernel.spans]
            yield f"{indent}const auto launch = [&](auto index) {{"
            yield several_a_line(f"{indent}{INDENT}{name}<decltype(index)><<<{shape}", words, ");")
            yield f"{indent}}};"
            narrow = f"are_below({_limit(self.narrow)}, {{{', '.join(counts)}}})"
            yield f"{indent}{narrow} ? launch(0) : launch((int64_t)0);"
        yield f"{indent}TRY(cudaGetLastError());"
        if in_braces:
            yield f"{INDENT}}}"

    def _blocks(self, grid: Grid, kernel: Kernel, takes_scratch: bool) -> str:
        """The blocks of a launch, and the threads of each; scratch storage limits both."""
        threads, most = threads_of_block(self.program, kernel), _limit(grid.most_blocks)
        if takes_scratch:
            threads, most = "threads", f"{field(self, 'workers')} / threads"
        each = threads if grid.each in (None, grid.threads) else str(grid.each)
        count = product(self.spelling.size(n) for n in grid.sizes)
        blocks = f"blocks_of({count}, {each}, {most})" if grid.sizes else "1"
        if any(n is not None for n in grid.across):
            others = [
                "1" if n is None else f"blocks_of({self.spelling.size(n)}, 1, {grid.most_across})"
                for n in grid.across
            ]
            blocks = f"dim3({', '.join([blocks, *others])})"
        shape = f"dim3({', '.join(map(str, grid.shape))})" if grid.shape else threads
        return f"{blocks}, {shape}"

    def _is_known(self, condition: Condition) -> bool:
        """Whether it holds of numbers alone, each more than 0."""
        extent, few, _ = condition
        return not few and all(self.program.sizes[n].fixed for n in extent.sizes())

    def _for_host(self) -> Iterator[str]:
        table, buffers = self.host.in_table(), self.program.buffers
        counts = "plan.bytes" if self.constant is None else "bytes"
        yield host_signature(self.program)
        yield "{"
        yield from planned(self)
        if table:
            yield from self._checked_arrays("NULL, 0")
            yield f"{INDENT}Memory memory[{len(table)}];"
        if self.total != "0":
            yield f"{INDENT}Memory work;"
        for n, number in enumerate(table):
            yield f"{INDENT}TRY(cudaMalloc(&memory[{n}].start, {counts}[{n}]));"
            if buffers[number].role != "output":
                moved = f"memory[{n}].start, arrays[{n}], {counts}[{n}], cudaMemcpyHostToDevice"
                yield f"{INDENT}TRY(cudaMemcpy({moved}));"
        if self.total != "0":
            yield f"{INDENT}TRY(cudaMalloc(&work.start, {self.total}));"
        words = ["sizes"]
        for number in self.program.arguments():
            const = "const " if buffers[number].role == "input" else ""
            c_type = C_TYPES[buffers[number].dtype]
            words.append(f"({const}{c_type} *)memory[{table.index(number)}].start")
        words += ["NULL" if self.total == "0" else "work.start", "NULL"]
        yield wrapped(f"{INDENT}const int done = ::{self.name}(", words, ");")
        yield f"{INDENT}if (done != 0) return done;"
        yield f"{INDENT}TRY(cudaDeviceSynchronize());"
        if self.outside is not None:
            yield f"{INDENT}const int seen = {self.name}_wait(sizes, work.start, NULL);"
            yield f"{INDENT}if (seen != 0) return seen;"
        for n, number in enumerate(table):
            if buffers[number].role != "input":
                name = self._array(number)
                moved = f"{name}, memory[{n}].start, {counts}[{n}], cudaMemcpyDeviceToHost"
                yield f"{INDENT}TRY(cudaMemcpy({moved}));"
        yield f"{INDENT}return 0;"
        yield "}"
        yield ""


def _limit(number: int) -> str:
    """A large number as one would write it."""
    if number == INTEGER_ENDS["i32"][1]:
        return "INT32_MAX"
    power = number.bit_length() - 1
    return f"1 << {power}" if number == 1 << power else str(number)
