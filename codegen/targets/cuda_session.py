"""Sessions in CUDA: a definition with its parameters and its state, all in memory of a device that the caller has.

    size_t NAME_bytes(void);
    int NAME_init(NAME *model, void *memory, uint64_t seed, struct CUstream_st *stream);
    int NAME_run(NAME *model, const T *input..., T *output..., struct CUstream_st *stream);
    int NAME_run_host(NAME *model, const T *input..., T *output...);
    int NAME_save(const NAME *model, const char *path, struct CUstream_st *stream);
    int NAME_load(NAME *model, const char *path, struct CUstream_st *stream);

The functions are what those in C are (``c_session.py``), with the same numbers and the same files. The struct is the
host's; a run hands the values of its configuration to a kernel, which puts them where the others find them. Several
ranks agree on a status before every sum and before anything that lasts changes; what fails on one of them keeps it from
nothing that others wait for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ilang.codegen.targets import c_session
from ilang.codegen.targets.c_entry import wrapped
from ilang.codegen.targets.cfamily import C_TYPES, INDENT
from ilang.codegen.targets.cuda_entry import OF_CUDA, UNTOUCHED
from ilang.codegen.targets.cuda_header import LOOKS, STREAM
from ilang.codegen.targets.session import EmittedSession, Stage
from ilang.core.dtype import BYTES
from ilang.core.ir.session import KeptTensor, RankSum
from ilang.core.pipeline import host_of

RANKS_WAIT = (
    "All ranks come here. Their sums are NCCL's, on the stream; without NCCL they go through the host, and",
    "a run waits for the stream before each of them.",
)
"""The comment on a run of which ranks sum something."""


class SessionText(c_session.SessionText):
    """The text of a session, for a header and for a source."""

    memory = "memory of a device"
    stream = (STREAM,)
    statuses_of_ranks: Mapping[int, str] = {
        **c_session.SessionText.statuses_of_ranks,
        9: "NCCL has failed, and says why where NCCL_DEBUG is WARN",
    }
    other_status = OF_CUDA
    declared = ("run", "run_host", "save", "load")
    further_statuses = (" * returns less than 0: the negative number of a cudaError_t",)
    before = (f"{INDENT}{UNTOUCHED}",)
    brought = "status_before_sum(status, all_ranks, stream)"
    copied = "cudaMemcpyAsync({}, {}, {}, cudaMemcpyDeviceToDevice, stream)"
    fills: Mapping[str, str] = {
        "uniform": "TRY(fill_random<{type}>({place}, {count}, seed, {hash}u /* {path} */, {bound}, stream));",
        "number": "{place} = {number};",
        "table": "TRY(cudaMemcpyAsync({place}, {table}, {bytes}, cudaMemcpyHostToDevice, stream));",
        "zeros": "TRY(cudaMemsetAsync({place}, 0, {bytes}, stream));",
        "equal": "TRY(fill_equal<{type}>({place}, {count}, {number}, stream));",
    }
    comments: Mapping[str, str] = {
        "bytes": "Bytes of memory of the device that a session needs; SIZE_MAX if no memory is as large.",
        "init": "Begin: tensors are laid out in the memory, and get their first values on a stream of its device.",
        "run_host": "The same for arrays of the host, on the legacy stream: takes memory, copies, runs, waits, frees.",
        "save": "Wait for a stream, and write parameters and state into a file of safetensors, whole or not at all.",
        "load": "Wait for a stream, and go on with those of a file, where paths are equal after one common prefix.",
    }

    def __init__(self, session: EmittedSession) -> None:
        super().__init__(session)
        self.unless = "if (status == 0) " if session.waits() else ""
        self.settings = [each for each in session.kept if each.place]

    # -- the header ----------------------------------------------------------------------------------------------------

    def _comment(self, part: str) -> Iterator[str]:
        if part != "run":
            yield from super()._comment(part)
            return
        yield "/*"
        yield " * Enqueues one run on a stream and returns; inputs and outputs are memory of the device."
        yield " * If its status is not 0, nothing that lasts has changed."
        if any(
            host_of(stage.function.program).outside() is not None for stage in self.session.stages
        ):
            yield f" * {LOOKS}"
        if self.session.waits():
            yield from (f" * {line}" for line in RANKS_WAIT)
        yield " */"

    def example(self) -> Iterator[str]:
        """An example of the use of a session, in C."""
        name = self.name
        yield f"{name} model;"
        yield "void *memory;"
        yield f"cudaMalloc(&memory, {name}_bytes());"
        yield f"int status = {name}_init(&model, memory, 0, stream);"
        yield f"status = {name}_run({', '.join([*self._example_words(), 'stream'])});"
        yield f'status = {name}_save(&model, "{name}.safetensors", stream);'

    # -- the functions -------------------------------------------------------------------------------------------------

    def _running(self) -> Iterator[str]:
        """The run, for arrays of the device and for those of the host."""
        yield from self._settings_kernel()
        yield from super()._running()
        yield from self._host_function()

    def _settings_kernel(self) -> Iterator[str]:
        """The kernel that puts the configuration of a run, which comes with its launch, where others find it."""
        if not self.settings:
            return
        yield "/* put the configuration of a run where its kernels find it */"
        words = [f"{C_TYPES[each.dtype]} *{each.place}" for each in self.settings]
        words += [f"{C_TYPES[each.dtype]} {each.name}" for each in self.settings]
        yield wrapped(f"static __global__ void {self.name}_set(", words, ")")
        yield "{"
        yield from (f"{INDENT}*{each.place} = {each.name};" for each in self.settings)
        yield "}"
        yield ""

    def _stages(self) -> Iterator[str]:
        if self.settings:
            yield self._tried("cudaPeekAtLastError()")
            given = [f"model->{each.place}" for each in self.settings]
            given += [f"model->{each.name}" for each in self.settings]
            yield wrapped(f"{INDENT}{self.name}_set<<<1, 1, 0, stream>>>(", given, ");")
            yield self._tried("cudaGetLastError()")
        yield from super()._stages()

    def _sum(self, each: RankSum, going: int) -> Iterator[str]:
        called = "sum_over_others" if each.others else "sum_over_ranks"
        words = ["status", *self._summed(each), "stream"]
        yield wrapped(f"{INDENT}status = {called}(", words, ");")

    def _call(self, stage: Stage, number: int) -> tuple[str, list[str]]:
        program, words = super()._call(stage, number)
        if host_of(stage.function.program).outside() is None:
            return program, [*words, "stream"]
        # It waits for the check, since what lasts changes sides at the end of a run.
        return f"{program}_enqueued", [*words, "stream", "true"]

    def _kept(self, each: KeptTensor) -> str:
        return f"model->{each.place or each.name}"

    def _tried(self, call: str) -> str:
        """A call of CUDA: what it gives other than success ends a run; where ranks wait for each other, not at once."""
        if self.session.waits():
            return f"{INDENT}if (status == 0) status = -(int){call};"
        return f"{INDENT}TRY({call});"

    def _refused(self, test: str, status: int) -> str:
        """The statement that gives a status where a test holds, in the same manner."""
        if self.session.waits():
            return f"{INDENT}if (status == 0 && ({test})) status = {status};"
        return f"{INDENT}if ({test}) return {status};"

    def _host_function(self) -> Iterator[str]:
        names = (*self.session.inputs, *self.session.outputs)
        tensors = [self.session.tensors[each] for each in names]
        sizes = [self._bytes_of(name) for name in names]
        several = self.session.waits()
        yield self._signature("run_host")
        yield "{"
        yield f"{INDENT}if ({self.missing}) return 1;"
        if several:
            yield from c_session.COUNTED_RANKS
            yield f"{INDENT}int status = 0;"
        yield from self._measured(names, sizes)
        if names:
            yield f"{INDENT}Memory memory[{len(names)}];"
        for n, (name, size) in enumerate(zip(names, sizes, strict=True)):
            start = f"memory[{n}].start"
            yield self._tried(f"cudaMalloc(&{start}, {size})")
            if n < len(self.session.inputs):
                moved = f"{start}, {name}, {size}, cudaMemcpyHostToDevice"
                yield self._tried(f"cudaMemcpy({moved})")
        words = ["model", "sizes"] if self.session.is_open() else ["model"]
        for n, (dtype, _) in enumerate(tensors):
            const = "const " if n < len(self.session.inputs) else ""
            words.append(f"({const}{C_TYPES[dtype]} *)memory[{n}].start")
        if self.session.is_open():
            words.append("work.start")
            yield f"{INDENT}const size_t work_bytes = {self.session.name}_work(sizes);"
            yield self._refused("work_bytes == SIZE_MAX", 3)
            yield f"{INDENT}Memory work;"
            yield self._tried("cudaMalloc(&work.start, work_bytes)")
        if several:
            yield f"{INDENT}status = status_of_ranks(status, all_ranks);"
            yield f"{INDENT}if (status != 0) return status;"
        yield wrapped(f"{INDENT}const int done = {self.session.name}_run(", [*words, "NULL"], ");")
        yield f"{INDENT}if (done != 0) return done;"
        yield f"{INDENT}TRY(cudaDeviceSynchronize());"
        for n, (name, size) in enumerate(zip(names, sizes, strict=True)):
            if len(self.session.inputs) <= n:
                start = f"memory[{n}].start"
                yield f"{INDENT}TRY(cudaMemcpy({name}, {start}, {size}, cudaMemcpyDeviceToHost));"
        yield f"{INDENT}return 0;"
        yield "}"
        yield ""

    def _measured(self, names: Sequence[str], sizes: Sequence[str]) -> Iterator[str]:
        """The layouts that say how many bytes arrays have, and whether those that have any are there."""
        for number, stage in enumerate(self.session.stages, 1):
            if any(f"plan_{number}." in size for size in sizes):
                program = stage.function.name()
                yield from c_session.sizes_of(stage, number)
                yield f"{INDENT}{program}_layout plan_{number} = {{}};"
                yield self._refused(
                    f"!{program}_plan({c_session.sizes_word(stage, number)}, &plan_{number})", 3
                )
        needed = [
            f"{name} == NULL" if size.isdecimal() else f"({size} > 0 && {name} == NULL)"
            for name, size in zip(names, sizes, strict=True)
            if size != "0"
        ]
        if needed:
            yield self._refused(" || ".join(needed), 1)

    def _bytes_of(self, name: str) -> str:
        """The bytes of an array of a run: fixed, or by the layout of a stage that takes it."""
        dtype, dims = self.session.tensors[name]
        if None not in dims:
            return str(BYTES[dtype] * self.session.count(name))
        for number, stage in enumerate(self.session.stages, 1):
            if name in stage.run.arguments:
                host = host_of(stage.function.program)
                argument = host.program.arguments()[stage.run.arguments.index(name)]
                return f"plan_{number}.bytes[{host.in_table().index(argument)}]"
        return "0"  # no run reads it

    def _file(self, part: str) -> Iterator[str]:
        """The statements that write, or read, a file; what goes wrong with the device is told as such."""
        yield f"{INDENT}{UNTOUCHED}"
        yield from c_session.entries(self.session, part)
        yield f"{INDENT}TRY(cudaStreamSynchronize(stream));"
        yield f"{INDENT}const int done = {c_session.moving(self.session, part)};"
        yield f"{INDENT}if (done == 5) TRY(cudaGetLastError());"
        if part == "load":
            yield f"{INDENT}TRY(cudaStreamSynchronize(NULL)); /* all of it has arrived */"
        yield f"{INDENT}return done;"


class SessionsText(c_session.SessionsText):
    """The text of the sessions of a file, and of the functions that begin and end ranks, where several run it."""

    text = SessionText
    headers = (*c_session.SessionsText.headers, "#include <string.h>")
    mpi = (*c_session.SessionsText.mpi, "#ifdef WITH_NCCL", "#include <nccl.h>", "#endif")
    begin = "int"
    comment = (
        "Begin to be a rank: which one this is, and how many there are, those of MPI where the files are compiled",
        "with -DWITH_MPI (make MPI=1), or -DWITH_NCCL as well (make NCCL=1), else this process alone. Ranks on",
        "one machine take its devices in turn: all of them call this before anything of CUDA. A session counts",
        "ranks when it begins. Returns what a run returns.",
    )
    end = "End: all ranks come here, their streams waited for. A process that ends without it ends all of them."
    begun = ("const int status = begin_ranks();", "*ranks = count_ranks(rank);", "return status;")
