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

import json
from collections.abc import Iterator, Sequence
from typing import assert_never

from ilang.codegen.targets import c_session
from ilang.codegen.targets.c_entry import wrapped
from ilang.codegen.targets.c_session import (
    STATUS,
    argument,
    beginning,
    begun,
    copies,
    counted_ranks,
    end_lines,
    entries,
    exchanged,
    loading,
    missing,
    saving,
    shared,
    shown_words,
    signature,
    sizes_lines,
    sizes_of,
    struct_lines,
    summed,
    table_name,
    work_of,
)
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, literal
from ilang.codegen.targets.cuda_entry import UNTOUCHED, status_lines
from ilang.codegen.targets.cuda_header import LOOKS, STREAM
from ilang.codegen.targets.identifiers import function_identifier
from ilang.codegen.targets.session import (
    EmittedSession,
    KeptTensor,
    Stage,
    Struct,
    Uniform,
)
from ilang.core.dtype import BYTES
from ilang.core.pipeline import host_of

STATUS_OF_RANKS = {
    **c_session.STATUS_OF_RANKS,
    9: "NCCL has failed, and says why where NCCL_DEBUG is WARN",
}
"""The statuses that a run of several ranks may return as well."""
INCLUDES_OF_RANKS = (
    *("#ifdef WITH_MPI", "#include <mpi.h>", "#endif"),
    *("#ifdef WITH_NCCL", "#include <nccl.h>", "#endif"),
)

# -- the header --------------------------------------------------------------------------------------------------------


def declarations(session: EmittedSession) -> Iterator[str]:
    """The struct and the functions of a session, for a header."""
    name = session.name
    if session.begins():
        yield from struct_lines(session.struct, "memory of a device")
        yield ""
        yield "/* Bytes of memory of the device that a session needs; SIZE_MAX if no memory is as large. */"
        yield f"size_t {name}_bytes(void);"
        yield ""
        yield "/* Begin: tensors are laid out in the memory, and get their first values on a stream of its device. */"
        yield f"{_signature(session, 'init')};"
    else:
        yield shared(session)
    yield ""
    yield from sizes_lines(session)
    yield "/*"
    yield " * Enqueues one run on a stream and returns; inputs and outputs are memory of the device."
    yield " * If its status is not 0, nothing that lasts has changed."
    if any(host_of(stage.program).ranges for stage in session.stages):
        yield f" * {LOOKS}"
    if session.waits():
        yield " * All ranks come here. Their sums are NCCL's, on the stream; without NCCL they go through the host, and"
        yield " * a run waits for the stream before each of them."
    yield " */"
    yield f"{_signature(session, 'run')};"
    yield ""
    yield "/* The same for arrays of the host, on the legacy stream: takes memory, copies, runs, waits, frees. */"
    yield f"{_signature(session, 'run_host')};"
    yield ""
    yield "/* Wait for a stream, and write parameters and state into a file of safetensors, whole or not at all. */"
    yield f"{_signature(session, 'save')};"
    yield ""
    yield "/* Wait for a stream, and go on with those of a file, where paths are equal after one common prefix. */"
    yield f"{_signature(session, 'load')};"
    yield ""
    yield "/*"
    yield from (f" * returns {code}: {text}" for code, text in _statuses(session).items())
    yield " * returns less than 0: the negative number of a cudaError_t"
    yield " */"
    yield f"const char *{name}_status(int status);"


def example_session(session: EmittedSession) -> Iterator[str]:
    """An example of the use of a session, in C."""
    name = session.name
    yield f"{name} model;"
    yield "void *memory;"
    yield f"cudaMalloc(&memory, {name}_bytes());"
    yield f"int status = {name}_init(&model, memory, 0, stream);"
    yield f"status = {name}_run({', '.join([*shown_words(session), 'stream'])});"
    yield f'status = {name}_save(&model, "{name}.safetensors", stream);'


def _statuses(session: EmittedSession) -> dict[int, str]:
    return {**STATUS, **STATUS_OF_RANKS} if session.of_ranks() else STATUS


def ranks_declarations(prefix: str) -> Iterator[str]:
    """The functions of a file that several ranks run, for a header."""
    yield "/*"
    yield " * Begin to be a rank: which one this is, and how many there are, those of MPI where the files are compiled"
    yield " * with -DWITH_MPI (make MPI=1), or -DWITH_NCCL as well (make NCCL=1), else this process alone. Ranks on"
    yield " * one machine take its devices in turn: all of them call this before anything of CUDA. A session counts"
    yield " * ranks when it begins. Returns what a run returns."
    yield " */"
    yield f"int {prefix}_begin(int *rank, int *ranks);"
    yield ""
    yield "/* End: all ranks come here, their streams waited for. A process that ends without it ends all of them. */"
    yield f"void {prefix}_end(void);"
    yield ""


def _signature(session: EmittedSession, part: str) -> str:
    return signature(session, part, () if part == "run_host" else (STREAM,))


# -- the functions -----------------------------------------------------------------------------------------------------


def lines(session: EmittedSession) -> Iterator[str]:
    """The functions of a session."""
    if session.begins():
        yield from beginning(session, _signature(session, "init"), _fill, [UNTOUCHED])
    yield from _settings_kernel(session)
    yield from _run_function(session)
    yield from _host_function(session)
    yield from _files(session)
    yield from status_lines(session.name, _statuses(session))


def ranks_lines(prefix: str) -> Iterator[str]:
    """The functions of a file that several ranks run."""
    yield f"int {prefix}_begin(int *rank, int *ranks)"
    yield "{"
    yield f"{INDENT}const int status = begin_ranks();"
    yield f"{INDENT}*ranks = count_ranks(rank);"
    yield f"{INDENT}return status;"
    yield "}"
    yield ""
    yield from end_lines(prefix)


def _settings(session: EmittedSession) -> list[KeptTensor]:
    return [each for each in session.kept if each.place]


def _settings_kernel(session: EmittedSession) -> Iterator[str]:
    """The kernel that puts the configuration of a run where its kernels find it: its values come with the launch."""
    settings = _settings(session)
    if not settings:
        return
    yield "/* put the configuration of a run where its kernels find it */"
    words = [f"{C_TYPES[each.dtype]} *{each.place}" for each in settings]
    words += [f"{C_TYPES[each.dtype]} {each.name}" for each in settings]
    yield wrapped(f"static __global__ void {session.name}_set(", words, ")")
    yield "{"
    yield from (f"{INDENT}*{each.place} = {each.name};" for each in settings)
    yield "}"
    yield ""


def _fill(struct: Struct, each: KeptTensor) -> Iterator[str]:
    place, fill, count = f"model->{each.name}", each.fill, each.count()
    c_type = C_TYPES[each.dtype]
    match fill:
        case Uniform():
            number = f"{fill.hash}u /* {json.dumps(fill.path)} */"
            words = [place, str(count), "seed", number, f"{fill.bound.hex()}f", "stream"]
            yield f"TRY(fill_random<{c_type}>({', '.join(words)}));"
        case tuple() if each.role == "setting":
            yield f"{place} = {literal(fill[0], each.dtype)};"
        case tuple() if each.table() or 1 < len(fill):
            words = [place, table_name(struct, each), str(each.bytes()), "cudaMemcpyHostToDevice"]
            yield f"TRY(cudaMemcpyAsync({', '.join([*words, 'stream'])}));"
        case tuple() if str(fill[0]) in ("0", "0.0"):
            yield f"TRY(cudaMemsetAsync({place}, 0, {each.bytes()}, stream));"
        case tuple():
            number = literal(fill[0], each.dtype)
            yield f"TRY(fill_equal<{c_type}>({place}, {count}, {number}, stream));"
        case _:
            assert_never(fill)


def _run_function(session: EmittedSession) -> Iterator[str]:
    settings = _settings(session)
    yield from begun(session, _signature(session, "run"))
    if settings:
        yield _tried(session, "cudaPeekAtLastError()")
        given = [f"model->{each.place}" for each in settings]
        given += [f"model->{each.name}" for each in settings]
        yield wrapped(f"{INDENT}{session.name}_set<<<1, 1, 0, stream>>>(", given, ");")
        yield _tried(session, "cudaGetLastError()")
    for number, stage in enumerate(session.stages, 1):
        yield from _stage(session, stage, number)
    yield from exchanged(session)
    yield "}"
    yield ""


def _stage(session: EmittedSession, stage: Stage, number: int) -> Iterator[str]:
    """A stage, and what is copied and summed after it."""
    several = session.waits()
    program = function_identifier(stage.program.name)
    words = [f"&sizes_{number}", *(argument(session, name) for name in stage.arguments)]
    unless = "if (status == 0) " if several else ""
    words += [work_of(stage), "stream"]
    if host_of(stage.program).ranges:
        # It waits for the check, since what lasts changes sides at the end of a run.
        program, words = f"{program}_enqueued", [*words, "true"]
    yield sizes_of(stage, number)
    yield wrapped(f"{INDENT}{unless}status = {program}(", words, ");")
    if not several:
        yield f"{INDENT}if (status != 0) return status;"
    for target, source, size in copies(session, stage):
        moved = f"{target}, {source}, {size}, cudaMemcpyDeviceToDevice, stream"
        yield _tried(session, f"cudaMemcpyAsync({moved})")
    if several:
        given = "status_before_sum(status, all_ranks, stream)" if stage.sums else "status"
        yield f"{INDENT}status = status_of_ranks({given}, all_ranks);"
        yield f"{INDENT}if (status != 0) return status;"
    for each in stage.sums:
        called = "sum_over_others" if each.others else "sum_over_ranks"
        words = ["status", *summed(session, each), "stream"]
        yield wrapped(f"{INDENT}status = {called}(", words, ");")


def _tried(session: EmittedSession, call: str) -> str:
    """A call of CUDA: what it gives other than success ends a run; where ranks wait for each other, not at once."""
    if session.waits():
        return f"{INDENT}if (status == 0) status = -(int){call};"
    return f"{INDENT}TRY({call});"


def _refused(session: EmittedSession, test: str, status: int) -> str:
    """The statement that gives a status where a test holds, in the same manner."""
    if session.waits():
        return f"{INDENT}if (status == 0 && ({test})) status = {status};"
    return f"{INDENT}if ({test}) return {status};"


def _host_function(session: EmittedSession) -> Iterator[str]:
    names = (*session.inputs, *session.outputs)
    tensors = [session.tensors[each] for each in names]
    sizes = [_bytes_of(session, name) for name in names]
    several = session.waits()
    yield _signature(session, "run_host")
    yield "{"
    yield f"{INDENT}if ({missing(session)}) return 1;"
    if several:
        yield from counted_ranks()
        yield f"{INDENT}int status = 0;"
    yield from _measured(session, names, sizes)
    if names:
        yield f"{INDENT}Memory memory[{len(names)}];"
    for n, (name, size) in enumerate(zip(names, sizes, strict=True)):
        start = f"memory[{n}].start"
        yield _tried(session, f"cudaMalloc(&{start}, {size})")
        if n < len(session.inputs):
            moved = f"{start}, {name}, {size}, cudaMemcpyHostToDevice"
            yield _tried(session, f"cudaMemcpy({moved})")
    words = ["model", "sizes"] if session.is_open() else ["model"]
    for n, (dtype, _) in enumerate(tensors):
        const = "const " if n < len(session.inputs) else ""
        words.append(f"({const}{C_TYPES[dtype]} *)memory[{n}].start")
    if session.is_open():
        words.append("work.start")
        yield f"{INDENT}const size_t work_bytes = {session.name}_work(sizes);"
        yield _refused(session, "work_bytes == SIZE_MAX", 3)
        yield f"{INDENT}Memory work;"
        yield _tried(session, "cudaMalloc(&work.start, work_bytes)")
    if several:
        yield f"{INDENT}status = status_of_ranks(status, all_ranks);"
        yield f"{INDENT}if (status != 0) return status;"
    yield wrapped(f"{INDENT}const int done = {session.name}_run(", [*words, "NULL"], ");")
    yield f"{INDENT}if (done != 0) return done;"
    yield f"{INDENT}TRY(cudaDeviceSynchronize());"
    for n, (name, size) in enumerate(zip(names, sizes, strict=True)):
        if len(session.inputs) <= n:
            start = f"memory[{n}].start"
            yield f"{INDENT}TRY(cudaMemcpy({name}, {start}, {size}, cudaMemcpyDeviceToHost));"
    yield f"{INDENT}return 0;"
    yield "}"
    yield ""


def _measured(session: EmittedSession, names: Sequence[str], sizes: Sequence[str]) -> Iterator[str]:
    """The layouts that say how many bytes arrays have, and whether those that have any are there."""
    for number, stage in enumerate(session.stages, 1):
        if any(f"plan_{number}." in size for size in sizes):
            program = function_identifier(stage.program.name)
            yield sizes_of(stage, number)
            yield f"{INDENT}{program}_layout plan_{number} = {{}};"
            yield _refused(session, f"!{program}_plan(&sizes_{number}, &plan_{number})", 3)
    needed = [
        f"{name} == NULL" if size.isdecimal() else f"({size} > 0 && {name} == NULL)"
        for name, size in zip(names, sizes, strict=True)
        if size != "0"
    ]
    if needed:
        yield _refused(session, " || ".join(needed), 1)


def _bytes_of(session: EmittedSession, name: str) -> str:
    """The bytes of an array of a run; where its sizes come with the run, a layout has them of a stage that takes it."""
    dtype, dims = session.tensors[name]
    if None not in dims:
        return str(BYTES[dtype] * session.count(name))
    for number, stage in enumerate(session.stages, 1):
        if name in stage.arguments:
            host = host_of(stage.program)
            argument = host.arguments[stage.arguments.index(name)]
            return f"plan_{number}.bytes[{host.in_table().index(argument)}]"
    return "0"  # no run reads it


def _files(session: EmittedSession) -> Iterator[str]:
    """The functions that write and read a file; what goes wrong with the device is told as such."""
    for part, call in (("save", saving(session)), ("load", loading(session))):
        yield _signature(session, part)
        yield "{"
        yield f"{INDENT}if (model == NULL || path == NULL) return 1;"
        yield f"{INDENT}{UNTOUCHED}"
        yield from entries(session, whole=part == "save")
        yield f"{INDENT}TRY(cudaStreamSynchronize(stream));"
        yield f"{INDENT}const int done = {call};"
        yield f"{INDENT}if (done == 5) TRY(cudaGetLastError());"
        if part == "load":
            yield f"{INDENT}TRY(cudaStreamSynchronize(NULL)); /* all of it has arrived */"
        yield f"{INDENT}return done;"
        yield "}"
        yield ""
