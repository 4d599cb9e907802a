"""Sessions in C: a definition with its parameters and its state, all in memory of the caller.

    size_t NAME_bytes(void);
    int NAME_init(NAME *model, void *memory, uint64_t seed);
    int NAME_run(NAME *model, const T *input..., T *output...);
    int NAME_save(const NAME *model, const char *path);
    int NAME_load(NAME *model, const char *path);

A run computes with the function of a program, which takes every array by itself (``c.py``). What it gives parameters
and state goes into a second array of each, and the two change places when the run has succeeded: one that fails changes
nothing. ``STATUS`` lists what these functions return beside what that of the program does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import prod
from typing import assert_never

from ilang.codegen.targets.c_entry import STATUS as STATUS_OF_PROGRAMS
from ilang.codegen.targets.c_entry import wrapped
from ilang.codegen.targets.c_header import parameters
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, listed, literal
from ilang.codegen.targets.identifiers import identifier
from ilang.core.dtype import BYTES
from ilang.core.ir.kernel import Program
from ilang.core.machine import Machine
from ilang.core.record import record

STATUS = {
    **STATUS_OF_PROGRAMS,
    5: "a file cannot be written or read",
    6: "a file is no safetensors that can be read",
    7: "a file lacks an array, or has it in another shape or of another type",
}
"""What the functions of a session return."""

INCLUDES = ("#include <inttypes.h>", "#include <stdio.h>")
TYPES = {"f32": "F32", "f64": "F64", "i32": "I32", "i64": "I64", "bool": "BOOL"}
"""The names of element types in files."""
PARTS = ("bytes", "init", "run", "save", "load", "arrays")
"""What the name of a session stands before: its functions, and that of its program."""
TITLES = {
    "parameter": "parameters; a run that changes one exchanges its two arrays",
    "state": "state, which lasts from run to run",
    "gradient": "gradients of the last run",
    "setting": "configuration of the next run",
    "constant": "constants",
}


@record
class Uniform:
    """Random numbers from -bound to bound, by seed and path."""

    bound: float


@record
class Listed:
    """Numbers of the text; one stands for all that are alike."""

    numbers: tuple[float | int, ...]


@record
class Kept:
    """A tensor of a session: its path, its name in C, what it begins with.

    ``role`` is one of ``TITLES``; ``next`` is the name of the array that runs write, where they give it other values.
    """

    role: str
    path: str
    name: str
    dtype: str
    dims: tuple[int, ...]
    fill: Uniform | Listed
    next: str

    def count(self) -> int:
        """How many elements it has."""
        return prod(self.dims)

    def bytes(self) -> int:
        """How many bytes they take."""
        return self.count() * BYTES[self.dtype]

    def table(self) -> bool:
        """Whether its values are a table of the C file, which a run reads where it is."""
        return self.role == "constant"


@record
class Session:
    """A definition to be written as C, and its name there.

    ``program`` computes one run. ``arguments`` are the names of its inputs and its outputs, those of a tensor that is
    kept or what a caller gives: ``inputs`` and ``outputs`` of a run, whose types and
    extents are ``tensors``.
    """

    name: str
    definition: str
    program: Program
    kept: tuple[Kept, ...]
    arguments: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: dict[str, tuple[str, tuple[int, ...]]]

    def saved(self) -> list[Kept]:
        """What a file has: parameters, then state."""
        return [each for role in ("parameter", "state") for each in self.kept if each.role == role]

    def arrays(self) -> list[tuple[str, Kept]]:
        """Every array in the memory of the caller, by its name, with the tensor that it is of."""
        own = [(each.name, each) for each in self.kept if each.role in ARRAYS]
        return own + [(each.next, each) for each in self.kept if each.next]


ARRAYS = ("parameter", "state", "gradient")
"""The roles that have arrays in the memory of the caller."""


# -- the header --------------------------------------------------------------------------------------------------------


def declarations(session: Session) -> Iterator[str]:
    """The struct and the functions of a session, for a header."""
    name = session.name
    yield f"/* {name}: its tensors, which are in memory of the caller */"
    yield f"typedef struct {name} {{"
    for role, title in TITLES.items():
        chosen = [each for each in session.kept if each.role == role and not each.table()]
        if chosen:
            yield f"{INDENT}/* {title} */"
            yield from (_field(each) for each in chosen)
    yield f"{INDENT}/* what parameters began with, and how many runs there were */"
    yield f"{INDENT}uint64_t seed, runs;"
    yield f"{INDENT}/* where the next run writes, and its workspace */"
    yield from (
        f"{INDENT}{C_TYPES[each.dtype]} *{each.next};" for each in session.kept if each.next
    )
    yield f"{INDENT}void *work;"
    yield f"}} {name};"
    yield ""
    yield "/* Bytes of memory that a session needs; SIZE_MAX if that is more than memory can be. */"
    yield f"size_t {name}_bytes(void);"
    yield ""
    yield "/* Begin: tensors are laid out in the memory, and get their first values. */"
    yield f"{_init(session)};"
    yield ""
    yield "/* One run. If its status is not 0, nothing that lasts has changed. */"
    yield f"{_run(session)};"
    yield ""
    yield "/* Write parameters and state into a file of safetensors, whole or not at all. */"
    yield f"{_save(session)};"
    yield ""
    yield "/* Go on with parameters and state of a file, where paths are equal after one common prefix. */"
    yield f"{_load(session)};"
    yield ""
    yield "/*"
    yield from (f" * returns {code}: {text}" for code, text in STATUS.items())
    yield " */"


def example_session(session: Session) -> Iterator[str]:
    """How to use a session, in C."""
    name = session.name
    words = ["&model", *session.inputs, *session.outputs]
    shown = words if len(words) <= 12 else [*words[:11], "..."]
    yield f"{name} model;"
    yield f"int status = {name}_init(&model, malloc({name}_bytes()), 0);"
    yield f"status = {name}_run({', '.join(shown)});"
    yield f'status = {name}_save(&model, "{name}.safetensors");'


def _field(each: Kept) -> str:
    """The field of a tensor."""
    if each.role == "setting":
        return f"{INDENT}{C_TYPES[each.dtype]} {each.name};"
    extents = ", ".join(map(str, each.dims))
    return f"{INDENT}{C_TYPES[each.dtype]} *{each.name}; /* {each.path}: {each.dtype}[{extents}] */"


def _init(session: Session) -> str:
    name = session.name
    return f"int {name}_init({name} *model, void *memory, uint64_t seed)"


def _run(session: Session) -> str:
    name = session.name
    words = [f"{name} *model"]
    words += [f"const {C_TYPES[session.tensors[each][0]]} *{each}" for each in session.inputs]
    words += [f"{C_TYPES[session.tensors[each][0]]} *{each}" for each in session.outputs]
    return wrapped(f"int {name}_run(", words, ")")


def _save(session: Session) -> str:
    return f"int {session.name}_save(const {session.name} *model, const char *path)"


def _load(session: Session) -> str:
    return f"int {session.name}_load({session.name} *model, const char *path)"


# -- the functions -----------------------------------------------------------------------------------------------------


def lines(session: Session, machine: Machine) -> Iterator[str]:
    """The functions of a session."""
    yield from _tables(session)
    line = machine.memory.line_bytes
    offsets, total = _layout(session, line)
    yield from _bytes_function(session, total + line)
    yield from _init_function(session, offsets, total)
    yield from _run_function(session)
    yield from _save_function(session)
    yield from _load_function(session)


def _layout(session: Session, line: int) -> tuple[list[int], int]:
    """Where each array begins, on whole cache lines, and where the workspace does."""
    offsets, total = [], 0
    for _, each in session.arrays():
        offsets.append(total)
        total += -(-each.bytes() // line) * line
    return offsets, total


def _tables(session: Session) -> Iterator[str]:
    """The numbers of the text that do not follow from one of them."""
    for each in session.kept:
        if isinstance(each.fill, Listed) and (each.table() or 1 < len(each.fill.numbers)):
            numbers = [literal(value, each.dtype) for value in each.fill.numbers]
            if len(numbers) < each.count():
                numbers *= each.count()
            yield from listed(
                f"static const {C_TYPES[each.dtype]} {_table(session, each)}[] = {{",
                numbers or ["0"],
                "};",
            )
            yield ""


def _table(session: Session, each: Kept) -> str:
    return f"{session.name}_values_of_{each.name}"


def _bytes_function(session: Session, total: int) -> Iterator[str]:
    name, program = session.name, identifier(session.program.name)
    yield f"size_t {name}_bytes(void)"
    yield "{"
    yield f"{INDENT}const {program}_sizes sizes = {{0}};"
    yield f"{INDENT}const size_t bytes = {program}_work(&sizes);"
    yield f"{INDENT}return SIZE_MAX - {total} <= bytes ? SIZE_MAX : {total} + bytes;"
    yield "}"
    yield ""


def _init_function(session: Session, offsets: Sequence[int], total: int) -> Iterator[str]:
    yield _init(session)
    yield "{"
    yield f"{INDENT}if (model == NULL || memory == NULL) return 1;"
    yield f"{INDENT}char *const base = start_in(memory);"
    for offset, (name, each) in zip(offsets, session.arrays(), strict=True):
        yield f"{INDENT}model->{name} = ({C_TYPES[each.dtype]} *)(void *)(base + {offset});"
    yield f"{INDENT}model->work = base + {total};"
    yield f"{INDENT}model->seed = seed;"
    yield f"{INDENT}model->runs = 0;"
    for each in session.kept:
        if each.count() and not each.table():
            yield from _fill(session, each)
    yield f"{INDENT}return 0;"
    yield "}"
    yield ""


def _fill(session: Session, each: Kept) -> Iterator[str]:
    """Give a tensor its first values."""
    place, fill = f"model->{each.name}", each.fill
    match fill:
        case Uniform():
            function = "fill_uniform_f64" if each.dtype == "f64" else "fill_uniform"
            words = (
                place,
                str(each.count()),
                "seed",
                json.dumps(each.path),
                f"{fill.bound.hex()}f",
            )
            yield f"{INDENT}{function}({', '.join(words)});"
        case Listed() if each.role == "setting":
            yield f"{INDENT}{place} = {literal(fill.numbers[0], each.dtype)};"
        case Listed() if 1 < len(fill.numbers):
            yield f"{INDENT}memcpy({place}, {_table(session, each)}, {each.bytes()});"
        case Listed() if str(fill.numbers[0]) in ("0", "0.0"):
            yield f"{INDENT}memset({place}, 0, {each.bytes()});"
        case Listed():
            number = literal(fill.numbers[0], each.dtype)
            yield f"{INDENT}for (size_t n = 0; n < {each.count()}; ++n) {place}[n] = {number};"
        case _:
            assert_never(fill)


def _run_function(session: Session) -> Iterator[str]:
    program = identifier(session.program.name)
    kept = {each.name: each for each in session.kept}
    words = ["&sizes"]
    for name in session.arguments:
        each = kept.get(name)
        if each is None:
            given = name in (*session.inputs, *session.outputs)
            words.append(name if given else f"model->{name}")
        elif each.table():
            words.append(_table(session, each))
        else:
            words.append(f"{'&' if each.role == 'setting' else ''}model->{name}")
    assert len(words) == len(parameters(session.program))
    yield _run(session)
    yield "{"
    yield f"{INDENT}if (model == NULL) return 1;"
    yield from (f"{INDENT}(void){each};" for each in session.inputs if each not in words)
    yield f"{INDENT}const {program}_sizes sizes = {{0}};"
    yield wrapped(f"{INDENT}const int status = {program}(", [*words, "model->work"], ");")
    yield f"{INDENT}if (status != 0) return status;"
    for each in session.kept:
        if each.next:
            yield f"{INDENT}{C_TYPES[each.dtype]} *const {each.name} = model->{each.name};"
            yield f"{INDENT}model->{each.name} = model->{each.next};"
            yield f"{INDENT}model->{each.next} = {each.name};"
    yield f"{INDENT}++model->runs;"
    yield f"{INDENT}return 0;"
    yield "}"
    yield ""


def _entries(session: Session, whole: bool) -> Iterator[str]:
    """The table of what a file has; ``whole`` with names as the file has them, else with paths alone."""
    yield f"{INDENT}{'const ' if whole else ''}struct stored_array arrays[] = {{"
    for each in session.saved():
        path = f"state.{each.path}" if whole and each.role == "state" else each.path
        shape = json.dumps(json.dumps(each.dims, separators=(",", ":")))
        place = f"model->{each.name}"
        row = f'{json.dumps(path)}, "{TYPES[each.dtype]}", {shape}, {each.bytes()}, {place}, 0, 0'
        yield f"{INDENT}{INDENT}{{{row}}},"
    yield f"{INDENT}{INDENT}{{NULL, NULL, NULL, 0, NULL, 0, 0}},"
    yield f"{INDENT}}};"


def _save_function(session: Session) -> Iterator[str]:
    yield _save(session)
    yield "{"
    yield f"{INDENT}if (model == NULL || path == NULL) return 1;"
    yield from _entries(session, whole=True)
    count = len(session.saved())
    words = [
        "path",
        json.dumps(session.definition),
        "model->runs",
        "model->seed",
        "arrays",
        str(count),
    ]
    yield f"{INDENT}return save_arrays({', '.join(words)});"
    yield "}"
    yield ""


def _load_function(session: Session) -> Iterator[str]:
    saved = session.saved()
    parameters_ = sum(each.role == "parameter" for each in saved)
    yield _load(session)
    yield "{"
    yield f"{INDENT}if (model == NULL || path == NULL) return 1;"
    yield from _entries(session, whole=False)
    words = ["path", "&model->runs", "arrays", str(parameters_), str(len(saved) - parameters_)]
    yield f"{INDENT}return load_arrays({', '.join(words)});"
    yield "}"
    yield ""
