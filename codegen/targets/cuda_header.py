"""The header of CUDA programs: plain C, without a header of CUDA's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.codegen.targets import c_header
from ilang.codegen.targets.c_entry import status_declarations, statuses, wrapped
from ilang.codegen.targets.c_header import argument_lines, parameters, sizes_lines, work_lines
from ilang.codegen.targets.identifiers import function_identifier
from ilang.core.ir.kernel import Program
from ilang.core.pipeline import host_of

STREAM_STRUCT = "struct CUstream_st; /* what a cudaStream_t points to */"
STREAM = "struct CUstream_st *stream"
"""A ``cudaStream_t``, as plain C has it."""

LOOKS = "Looks at all indices that it reads from arrays before it uses them, and waits for what it sees."
"""The sentence on what a run of a session does before anything else, where it reads indices."""


def emit_header(programs: Sequence[Program], more: Sequence[str] = ()) -> str:
    """The header of a file of programs, and of what ``more`` declares, usable from C and C++."""
    return c_header.emit_header(programs, more, declarations, (STREAM_STRUCT, ""))


def declarations(program: Program) -> Iterator[str]:
    """The extents of a program and the declarations of its functions, with comments."""
    name = function_identifier(program.name)
    yield from sizes_lines(program)
    yield from work_lines(program)
    yield "/*"
    yield " * Enqueues the work on a stream of the current device and returns; the arrays and the workspace are"
    yield " * memory of that device. Calls that share a workspace must be ordered."
    if host_of(program).outside() is not None:
        yield " * Kernels look at all indices in arrays before they are used. Where one is out of range,"
        yield f" * those after that do nothing: {name}_wait tells."
    yield from argument_lines(program)
    yield from (f" * returns {code}: {text}" for code, text in statuses(program).items())
    yield " * returns less than 0: the negative number of a cudaError_t, which a launch gave, or which an"
    yield " * earlier call of this thread left: that error stays, and nothing is enqueued"
    yield " */"
    yield f"{signature(program)};"
    yield ""
    if host_of(program).outside() is not None:
        yield "/* Waits for the stream; 4 if the last call with this workspace met an index out of range. */"
        yield f"{wait_signature(program)};"
        yield ""
    yield "/*"
    yield " * The same for arrays of the host. Each call takes memory of the device, copies on the legacy stream, runs,"
    yield " * waits for all streams of the device, copies back, and frees: to call it again and again is slow."
    yield " */"
    yield f"{host_signature(program)};"
    yield ""
    yield from status_declarations(name, statuses(program))


def signature(program: Program) -> str:
    """The declaration of the program's function, without the semicolon."""
    words = [*parameters(program), "void *work", STREAM]
    return wrapped(f"int {function_identifier(program.name)}(", words, ")")


def wait_signature(program: Program) -> str:
    """The declaration of what tells of indices that are out of range, without the semicolon."""
    name = function_identifier(program.name)
    return wrapped(f"int {name}_wait(", [f"const {name}_sizes *sizes", "void *work", STREAM], ")")


def host_signature(program: Program) -> str:
    """The declaration of the same for arrays of the host, without the semicolon."""
    return wrapped(f"int {function_identifier(program.name)}_host(", parameters(program), ")")
