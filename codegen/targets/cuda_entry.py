"""The host program in CUDA: workspace layout, argument checks, and the launches of its kernels in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.codegen.targets import c_entry
from ilang.codegen.targets.c_entry import STATUS, status_lines, wrapped
from ilang.codegen.targets.c_header import parameters
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, product
from ilang.codegen.targets.cuda_header import STREAM, host_signature, signature, wait_signature
from ilang.core.calculus.extent import Operator
from ilang.core.ir.host import Finite, Host, Launch, Ranges

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
    zeros = "{}"

    def __init__(self, host: Host) -> None:
        """For a host program."""
        super().__init__(host, signature(host.program))
        device = host.program.machine.device
        assert device is not None
        self.warp = device.warp
        self.narrow = device.narrow_elements
        self.groups = host.groups()
        self.looks = 0

    def lines(self) -> Iterator[str]:
        """All of them."""
        yield from super().lines()
        yield from self._for_host()
        yield from status_lines(self.name, STATUS, OF_CUDA)

    def _scratch(self) -> Iterator[str]:
        """Room for what tells of an index out of range, and for the private buffers of the kernel that needs most."""
        layout = self.host.layout
        if self.host.ranges:
            yield f"{INDENT}plan->outside = plan->total;"
            yield f"{INDENT}if (!add(&plan->total, {_ints(self.groups)}, 1)) return 0;"
        if self.host.finite:
            yield f"{INDENT}plan->infinite = plan->total;"
            yield f"{INDENT}if (!add(&plan->total, {_ints(len(self.host.finite))}, 1)) return 0;"
        if not layout.scratch:
            return
        yield f"{INDENT}plan->scratch = plan->total;"
        yield f"{INDENT}size_t scratch;"
        for private in layout.scratch:
            yield f"{INDENT}scratch = 0;"
            for number in private:
                measured = self._measure(number, "&bytes")
                yield f"{INDENT}if (!{measured} || !add(&scratch, bytes, 1)) return 0;"
            yield f"{INDENT}if (scratch > plan->scratch_bytes) plan->scratch_bytes = scratch;"
        limits = f"{layout.most_threads}, (size_t){layout.most_scratch >> 20} << 20"
        yield f"{INDENT}plan->workers = scratches(plan->scratch_bytes, {limits});"
        count = "(size_t)plan->workers"
        yield f"{INDENT}if (!add(&plan->total, plan->scratch_bytes, {count})) return 0;"

    def _manner(self) -> str:
        return ""

    def _fields(self) -> Iterator[str]:
        yield from super()._fields()
        if self.host.ranges:
            yield f"{INDENT}size_t outside;"
        if self.host.finite:
            yield f"{INDENT}size_t infinite;"
        if self.host.layout.scratch:
            yield f"{INDENT}int64_t workers;"

    def _is_empty(self) -> bool:
        return super()._is_empty() and not self.host.ranges and not self.host.finite

    def _added(self, bytes_: str) -> str:
        return f"add(&plan->total, {bytes_}, 1)"

    def _measure(self, number: int, target: str) -> str:
        buffer = self.program.buffers[number]
        words = [self.spelling.size(size) for size in buffer.dims]
        if buffer.instead is not None:
            words[0] = f"{words[0]} == 1 ? 0 : {words[0]}"
        extents = ", ".join(words)
        return f"measure({target}, sizeof({C_TYPES[buffer.dtype]}), {{{extents}}})"

    def _placed(self, number: int, place: str) -> str:
        buffer = self.program.buffers[number]
        if buffer.instead is None:
            return place
        return (
            f"{self.spelling.size(buffer.dims[0])} == 1 ? {self._array(buffer.instead)} : {place}"
        )

    def _terms(self, words: Sequence[str]) -> str:
        return f"{{{', '.join(words)}}}"

    def function(self) -> Iterator[str]:
        """The program's function; of one that looks elements up, what it found, too."""
        if not self.host.ranges:
            yield from super().function()
            return
        given = [*parameters(self.program), "void *work", STREAM, "bool waits"]
        yield "/* the same; where it waits, nothing is computed before all indices are known to be in range */"
        yield from self._running(wrapped(f"static int {self.name}_enqueued(", given, ")"))
        yield self.signature
        yield "{"
        names = [self._array(argument.buffer) for argument in self.host.arguments]
        words = ["sizes", *names, "work", "stream", "false"]
        yield wrapped(f"{INDENT}return {self.name}_enqueued(", words, ");")
        yield "}"
        yield ""
        yield wait_signature(self.program)
        yield "{"
        yield f"{INDENT}{self.name}_layout plan = {self.zeros};"
        yield f"{INDENT}if (sizes == NULL || work == NULL) return 1;"
        yield f"{INDENT}if (!{self.name}_plan(sizes, &plan)) return 3;"
        last = f" + {self.groups - 1}" if 1 < self.groups else ""
        flag = f"(int *)(start_in(work) + plan.outside){last}"
        yield f"{INDENT}return status_of_indices({flag}, stream);"
        yield "}"
        yield ""

    def _begun(self) -> Iterator[str]:
        """No call before has left an error; no index is out of range yet, and no element infinite."""
        self.looks = 0
        yield f"{INDENT}{UNTOUCHED}"
        if self.groups:
            yield f"{INDENT}TRY(cudaMemsetAsync(base + plan.outside, 0, {_ints(self.groups)}, stream));"
        if self.host.finite:
            bytes_ = _ints(len(self.host.finite))
            yield f"{INDENT}TRY(cudaMemsetAsync(base + plan.infinite, 0, {bytes_}, stream));"

    def _ranges(self, ranges: Sequence[Ranges]) -> Iterator[str]:
        """The launches that look at arrays of indices, before kernels that do nothing where one is out of range."""
        before = self._outside() if self.looks else "NULL"
        self.looks += 1
        for each in ranges:
            dtype, words = self._range(each)
            yield f"{INDENT}TRY(look_at_{dtype}({words}, {before}, {self._outside()}, stream));"
        yield f"{INDENT}if (waits) {{"
        yield f"{INDENT}{INDENT}if (const int done = status_of_indices({self._outside()}, stream)) return done;"
        yield f"{INDENT}}}"

    def _looked(self, mark: int, finite: Finite) -> Iterator[str]:
        """The launches that look for an element that is not finite."""
        before = self._outside() if self.looks else "NULL"
        for number in finite.buffers:
            buffer = self.program.buffers[number]
            count = " * ".join(self.spelling.size(n) for n in buffer.dims) or "1"
            words = f"{self._array(number)}, {count}, {before}, {self._infinite(mark)}, stream"
            yield f"{INDENT}TRY(look_for_infinite_{buffer.dtype}({words}));"

    def _infinite(self, mark: int) -> str:
        """The mark that tells a kernel that an element is not finite."""
        return f"(int *)(base + plan.infinite){f' + {mark}' if mark else ''}"

    def _outside(self) -> str:
        """The mark of an index out of range, set by the last kernel that has looked at indices so far."""
        further = f" + {self.looks - 1}" if 1 < self.looks else ""
        return f"(int *)(base + plan.outside){further}"

    def _launch(self, launch: Launch) -> str:
        """The launch of a kernel, unless it has nothing to do."""
        grid = launch.grid
        assert grid is not None
        words = [self.spelling.size(n) for n in launch.sizes]
        words += [self._array(n) for n in launch.buffers]
        words += ["base + plan.scratch", "plan.scratch_bytes"] if launch.scratch else []
        words += [self._outside()] if self.host.ranges else []
        words += [] if launch.finite is None else [self._infinite(launch.finite)]
        threads, most = str(grid.threads), str(grid.most_blocks)
        indent, head, tail = INDENT, [], [f"{INDENT}TRY(cudaGetLastError());"]
        sizes = product(self.spelling.size(n) for n in grid.sizes) if grid.sizes else ""
        across = [None if n is None else self.spelling.size(n) for n in grid.across]
        every = [f"{sizes} > 0"] if any(map(self._may_be_empty, grid.sizes)) else []
        further = [n for n in grid.across if n is not None and self._may_be_empty(n)]
        further += launch.needs
        every += [f"{self.spelling.size(n)} > 0" for n in further]
        if launch.parts is not None:
            parts = self.spelling.size(launch.parts)
            every.append(f"{parts} > {launch.few}")
            every += [] if launch.many is None else [f"{parts} <= {launch.many}"]
        takes_scratch = launch.scratch and sizes
        if every or takes_scratch:
            head = [f"{INDENT}if ({' && '.join(every)}) {{" if every else f"{INDENT}{{"]
            indent, tail = 2 * INDENT, [f"{2 * INDENT}TRY(cudaGetLastError());", f"{INDENT}}}"]
        if takes_scratch:
            head += [
                f"{indent}const int threads = plan.workers < {threads} ? (int)plan.workers : {threads};"
            ]
            threads, most = "threads", "plan.workers / threads"
        each = str(grid.iterations(grid.threads, self.warp))
        each = "threads" if takes_scratch and grid.over == "grid" and grid.vector == 1 else each
        blocks = f"blocks_of({sizes}, {each}, {most})" if sizes else "1"
        if any(across):
            others = [f"blocks_of({n}, 1, {grid.most_across})" if n else "1" for n in across]
            blocks = f"dim3({', '.join([blocks, *others])})"
        threads = f"dim3({', '.join(map(str, grid.shape))})" if grid.shape else threads
        kernel = f"{self.name}_{self.program.kernels[launch.kernel].name}"
        spans = self.program.kernels[launch.kernel].spans
        if not spans:
            call = wrapped(f"{indent}{kernel}<<<{blocks}, {threads}, 0, stream>>>(", words, ");")
            return "\n".join([*head, call, *tail])
        counts = [self._terms([self.spelling.size(n) for n in span]) for span in spans]
        calls = [
            wrapped(
                f"{indent}{INDENT}{kernel}<{index}><<<{blocks}, {threads}, 0, stream>>>(",
                words,
                ");",
            )
            for index in ("int", "int64_t")
        ]
        test = wrapped(f"{indent}if (are_below({self.narrow}, {{", counts, "})) {")
        return "\n".join(
            [*head, test, calls[0], f"{indent}}} else {{", calls[1], f"{indent}}}", *tail]
        )

    def _may_be_empty(self, size: int) -> bool:
        """Whether a loop over a size may have no iterations."""
        return not self.program.sizes[size].fixed

    def _for_host(self) -> Iterator[str]:
        table = self.host.in_table()
        place = {argument.buffer: n for n, argument in enumerate(table)}
        yield host_signature(self.program)
        yield "{"
        yield f"{INDENT}{self.name}_layout plan = {self.zeros};"
        yield f"{INDENT}if (sizes == NULL) return 1;"
        yield f"{INDENT}if (!{self.name}_plan(sizes, &plan)) return 3;"
        if table:
            yield from self._checked_arrays("NULL, 0")
            yield f"{INDENT}Memory memory[{len(table)}];"
        yield f"{INDENT}Memory work;"
        for n, argument in enumerate(table):
            yield f"{INDENT}TRY(cudaMalloc(&memory[{n}].start, plan.bytes[{n}]));"
            if argument.role != "output":
                moved = f"memory[{n}].start, arrays[{n}], plan.bytes[{n}], cudaMemcpyHostToDevice"
                yield f"{INDENT}TRY(cudaMemcpy({moved}));"
        yield f"{INDENT}TRY(cudaMalloc(&work.start, plan.total));"
        words = ["sizes"]
        for argument in self.host.arguments:
            const = "const " if argument.role == "input" else ""
            c_type = C_TYPES[self.program.buffers[argument.buffer].dtype]
            words.append(f"({const}{c_type} *)memory[{place[argument.buffer]}].start")
        words += ["work.start", "NULL"]
        yield wrapped(f"{INDENT}const int done = ::{self.name}(", words, ");")
        yield f"{INDENT}if (done != 0) return done;"
        yield f"{INDENT}TRY(cudaDeviceSynchronize());"
        if self.host.ranges:
            yield f"{INDENT}const int seen = {self.name}_wait(sizes, work.start, NULL);"
            yield f"{INDENT}if (seen != 0) return seen;"
        for n, argument in enumerate(table):
            if argument.role != "input":
                name = self._array(argument.buffer)
                moved = f"{name}, memory[{n}].start, plan.bytes[{n}], cudaMemcpyDeviceToHost"
                yield f"{INDENT}TRY(cudaMemcpy({moved}));"
        yield f"{INDENT}return 0;"
        yield "}"
        yield ""


def _ints(count: int) -> str:
    """The bytes of so many flags."""
    return product((str(count), "sizeof(int)"))
