"""Sessions in C: a definition with its parameters and its state, all in memory of the caller.

    size_t NAME_bytes(void);
    int NAME_init(NAME *model, void *memory, uint64_t seed);
    int NAME_run(NAME *model, const T *input..., T *output...);
    int NAME_save(const NAME *model, const char *path);
    int NAME_load(NAME *model, const char *path);

A run computes with the function of a program, which takes every array by itself (``c.py``). New values of parameters
and state go into a second array of each, and the two change places when the run has succeeded: one that fails changes
nothing. ``STATUS`` lists what these functions return beside what that of the program does.

Where ranks sum something, a run is several programs, one after the other, and the sums are between them. All ranks have
one status after each program: none waits for one that has failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import assert_never

from ilang.codegen.targets.c_entry import STATUS as STATUS_OF_PROGRAMS
from ilang.codegen.targets.c_entry import wrapped
from ilang.codegen.targets.c_header import parameters
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, listed, literal
from ilang.codegen.targets.identifiers import function_identifier, member_identifier
from ilang.codegen.targets.session import (
    TITLES,
    EmittedSession,
    KeptTensor,
    RankSum,
    Stage,
    Struct,
    Uniform,
)
from ilang.core.dtype import BYTES

STATUS = {
    **STATUS_OF_PROGRAMS,
    5: "a file cannot be written or read",
    6: "a file is no safetensors that can be read",
    7: "a file lacks an array, or has it in another shape or of another type",
}
"""The statuses that the functions of a session return."""
STATUS_OF_RANKS = {8: "another rank has failed"}
"""The statuses that a run of several ranks may return as well."""

INCLUDES = ("#include <inttypes.h>", "#include <stdio.h>")
INCLUDES_OF_RANKS = ("#ifdef WITH_MPI", "#include <mpi.h>", "#endif")
LETTERS = {"f32": "f", "f64": "d", "i32": "i", "i64": "l"}
"""The element types of sums, as ``headers/ranks.h`` calls them."""
TYPES = {"f32": "F32", "f64": "F64", "i32": "I32", "i64": "I64", "bool": "BOOL"}
"""The names of element types in files."""
PARTS_OF_RANKS = ("begin", "end")
"""Endings after the name of a file that ranks run together: functions."""


# -- the header --------------------------------------------------------------------------------------------------------


def declarations(session: EmittedSession) -> Iterator[str]:
    """The struct and the functions of a session, for a header."""
    if session.begins():
        yield from struct_lines(session.struct, "memory of the caller")
        yield ""
        yield "/* Bytes of memory that a session needs; SIZE_MAX if that is more than memory can be. */"
        yield f"size_t {session.name}_bytes(void);"
        yield ""
        yield "/* Begin: tensors are laid out in the memory, and get their first values. */"
        yield f"{signature(session, 'init')};"
    else:
        yield shared(session)
    yield ""
    yield from sizes_lines(session)
    yield "/* One run. If its status is not 0, nothing that lasts has changed. */"
    yield f"{signature(session, 'run')};"
    yield ""
    yield "/* Write parameters and state into a file of safetensors, whole or not at all. */"
    yield f"{signature(session, 'save')};"
    yield ""
    yield "/* Go on with parameters and state of a file, where paths are equal after one common prefix. */"
    yield f"{signature(session, 'load')};"
    yield ""
    yield "/*"
    codes = {**STATUS, **STATUS_OF_RANKS} if session.of_ranks() else STATUS
    yield from (f" * returns {code}: {text}" for code, text in codes.items())
    yield " */"


def sizes_lines(session: EmittedSession) -> Iterator[str]:
    """The sizes that come with a run, where there are any, and what measures its workspace, for a header."""
    if session.is_open():
        yield "/* The sizes of a run, and bytes of its workspace; SIZE_MAX if they do not fit. */"
        yield "typedef struct {"
        yield from (f"{INDENT}int64_t {member_identifier(name)};" for name in session.sizes())
        yield f"}} {session.name}_sizes;"
        yield f"size_t {session.name}_work(const {session.name}_sizes *sizes);"
        yield ""


def shared(session: EmittedSession) -> str:
    """A comment: what a session runs on that another one begins."""
    return f"/* {session.name}: runs on a {session.struct.name}, which has its tensors, too */"


def struct_lines(struct: Struct, memory: str) -> Iterator[str]:
    """A struct, whose arrays are in some memory."""
    name = struct.name
    yield f"/* {name}: its tensors, which are in {memory} */"
    yield f"typedef struct {name} {{"
    for role, title in TITLES.items():
        of_role = [each for each in struct.kept if each.role == role]
        chosen = [each for each in of_role if struct.on_device() or not each.table()]
        if chosen:
            yield f"{INDENT}/* {title} */"
            yield from (_field(each) for each in chosen)
    yield f"{INDENT}/* what parameters began with, and how many runs there were */"
    yield f"{INDENT}uint64_t {', '.join(('seed', *struct.counters))};"
    settings = any(each.place for each in struct.kept)
    reads = ", where it finds its configuration" if settings else ""
    yield f"{INDENT}/* where the next run writes{reads}, and its workspace */"
    for each in struct.kept:
        if each.next or each.place:
            yield f"{INDENT}{C_TYPES[each.dtype]} *{each.next or each.place};"
    between = [each for each in struct.kept if each.role == "between"]
    if between:
        yield f"{INDENT}/* what is between two parts of a run: sums over ranks, and what is computed before */"
        yield from (f"{INDENT}{C_TYPES[each.dtype]} *{each.name};" for each in between)
    yield f"{INDENT}void *work;"
    yield f"}} {name};"


def example_session(session: EmittedSession) -> Iterator[str]:
    """An example of the use of a session, in C."""
    name, shown = session.name, shown_words(session)
    yield f"{name} model;"
    yield f"int status = {name}_init(&model, malloc({name}_bytes()), 0);"
    yield f"status = {name}_run({', '.join(shown)});"
    yield f'status = {name}_save(&model, "{name}.safetensors");'


def shown_words(session: EmittedSession) -> list[str]:
    """The arguments of a run in an example, a dozen words at most."""
    words = ["&model", *session.inputs, *session.outputs]
    words = [words[0], "&sizes", *words[1:], "work"] if session.is_open() else words
    return words if len(words) <= 12 else [*words[:11], "..."]


def _field(each: KeptTensor) -> str:
    if each.number():
        return f"{INDENT}{C_TYPES[each.dtype]} {each.name};"
    extents = ", ".join(map(str, each.dims))
    return f"{INDENT}{C_TYPES[each.dtype]} *{each.name}; /* {each.path}: {each.dtype}[{extents}] */"


def signature(session: EmittedSession, part: str, further: Sequence[str] = ()) -> str:
    """The declaration of a function of a session, without the semicolon; ``further`` are its last parameters."""
    words = [f"{'const ' if part == 'save' else ''}{session.struct.name} *model"]
    if part == "init":
        words += ["void *memory", "uint64_t seed"]
    elif part in ("save", "load"):
        words.append("const char *path")
    else:
        words += [f"const {session.name}_sizes *sizes"] if session.is_open() else []
        words += [f"const {C_TYPES[session.tensors[each][0]]} *{each}" for each in session.inputs]
        words += [f"{C_TYPES[session.tensors[each][0]]} *{each}" for each in session.outputs]
        words += ["void *work"] if session.is_open() and part == "run" else []
    return wrapped(f"int {session.name}_{part}(", [*words, *further], ")")


# -- the functions -----------------------------------------------------------------------------------------------------


def lines(session: EmittedSession) -> Iterator[str]:
    """The functions of a session."""
    if session.begins():
        yield from beginning(session, signature(session, "init"), _fill)
    yield from _run_function(session)
    yield from _save_function(session)
    yield from _load_function(session)


def layout(struct: Struct, line: int) -> tuple[dict[str, tuple[int, str]], int]:
    """The beginning and the type of each array, blocks on whole cache lines; and the beginning of the workspace."""
    places, total = {}, 0
    for block in struct.blocks():
        for name, each in block:
            places[name] = total, each.dtype
            total += each.bytes()
        total = -(-total // line) * line
    return places, total


def tables(struct: Struct) -> Iterator[str]:
    """The numbers of the text that do not follow from one of them."""
    for each in struct.kept:
        if isinstance(each.fill, tuple) and (each.table() or 1 < len(each.fill)):
            numbers = [literal(value, each.dtype) for value in each.fill]
            if len(numbers) < each.count():
                numbers *= each.count()
            yield from listed(
                f"static const {C_TYPES[each.dtype]} {table_name(struct, each)}[] = {{",
                numbers or ["0"],
                "};",
            )
            yield ""


def table_name(struct: Struct, each: KeptTensor) -> str:
    """The name of the numbers of a tensor."""
    return f"{struct.name}_values_of_{each.name}"


def bytes_function(struct: Struct, total: int) -> Iterator[str]:
    """The function that measures the memory of a session, and the workspace of runs whose sizes are known."""
    yield f"size_t {struct.name}_bytes(void)"
    yield "{"
    yield from most_work([each for each in struct.stages if not each.sizes()])
    yield f"{INDENT}return SIZE_MAX - {total} <= bytes ? SIZE_MAX : {total} + bytes;"
    yield "}"
    yield ""


def most_work(stages: Sequence[Stage]) -> Iterator[str]:
    """Declare ``bytes``: the workspace of the stage that wants most."""
    yield f"{INDENT}size_t bytes = 0;"
    for number, stage in enumerate(stages, 1):
        program = function_identifier(stage.program.name)
        yield sizes_of(stage, number)
        work = f"{program}_work(&sizes_{number})"
        yield f"{INDENT}if (bytes < {work}) bytes = {work};"


def beginning(
    session: EmittedSession,
    declared: str,
    fill: Callable[[Struct, KeptTensor], Iterable[str]],
    tests: Sequence[str] = (),
) -> Iterator[str]:
    """The functions that measure the memory of a session, and place and fill its arrays there.

    Args:
        session: the one that begins its struct.
        declared: the declaration of ``init``.
        fill: gives the statements that give an array its first values.
        tests: statements before those.
    """
    struct, line = session.struct, session.struct.machine.memory.line_bytes
    places, total = layout(struct, line)
    yield from tables(struct)
    yield from bytes_function(struct, total + line)
    yield declared
    yield "{"
    yield f"{INDENT}if (model == NULL || memory == NULL) return 1;"
    yield f"{INDENT}char *const base = start_in(memory);"
    for name, (offset, dtype) in places.items():
        yield f"{INDENT}model->{name} = ({C_TYPES[dtype]} *)(void *)(base + {offset});"
    yield f"{INDENT}model->work = base + {total};"
    yield f"{INDENT}model->seed = seed;"
    yield from (f"{INDENT}model->{each} = 0;" for each in struct.counters)
    yield from (f"{INDENT}{test}" for test in tests)
    for each in struct.kept:
        if each.role == "ranks":
            yield f"{INDENT}int this_rank;"
            yield f"{INDENT}model->{each.name} = ({C_TYPES[each.dtype]})count_ranks(&this_rank);"
        elif each.count() and each.role != "between":
            yield from (f"{INDENT}{statement}" for statement in fill(struct, each))
    yield f"{INDENT}return 0;"
    yield "}"
    yield ""


def _fill(struct: Struct, each: KeptTensor) -> Iterator[str]:
    place, fill = f"model->{each.name}", each.fill
    match fill:
        case _ if each.table():
            return
        case Uniform():
            function = "fill_uniform_f64" if each.dtype == "f64" else "fill_uniform"
            words = (
                place,
                str(each.count()),
                "seed",
                json.dumps(fill.path),
                f"{fill.bound.hex()}f",
            )
            yield f"{function}({', '.join(words)});"
        case tuple() if each.number():
            yield f"{place} = {literal(fill[0], each.dtype)};"
        case tuple() if 1 < len(fill):
            yield f"memcpy({place}, {table_name(struct, each)}, {each.bytes()});"
        case tuple() if str(fill[0]) in ("0", "0.0"):
            yield f"memset({place}, 0, {each.bytes()});"
        case tuple():
            number = literal(fill[0], each.dtype)
            yield f"for (size_t n = 0; n < {each.count()}; ++n) {place}[n] = {number};"
        case _:
            assert_never(fill)


def _run_function(session: EmittedSession) -> Iterator[str]:
    yield from begun(session, signature(session, "run"))
    yield from _room_for_sums(session)
    going = 0
    for number, stage in enumerate(session.stages, 1):
        program = function_identifier(stage.program.name)
        words = [f"&sizes_{number}", *(argument(session, name) for name in stage.arguments)]
        assert len(words) == len(parameters(stage.program))
        if stage.ends:
            yield f"{INDENT}end_sums(begun_sums, {going});"
            going = 0
        yield sizes_of(stage, number)
        yield wrapped(f"{INDENT}status = {program}(", [*words, work_of(stage)], ");")
        if session.waits():
            yield f"{INDENT}status = status_of_ranks(status, all_ranks);"
        if going:
            yield f"{INDENT}if (status != 0) end_sums(begun_sums, {going});"
        yield f"{INDENT}if (status != 0) return status;"
        yield from _between(session, stage, going)
        going += sum(each.goes_on for each in stage.sums)
    yield from exchanged(session)
    yield "}"
    yield ""


def _room_for_sums(session: EmittedSession) -> Iterator[str]:
    """Declare what sums have that go on while stages run."""
    count = sum(each.goes_on for stage in session.stages for each in stage.sums)
    if count:
        yield f"{INDENT}struct begun_sum begun_sums[{count}];"


def begun(session: EmittedSession, head: str) -> Iterator[str]:
    """The function that counts the workspace of a run, and the beginning of the one that runs it."""
    yield from work_function(session)
    yield head
    yield "{"
    yield f"{INDENT}if ({missing(session)}) return 1;"
    read = {name for stage in session.stages for name in stage.arguments}
    yield from (f"{INDENT}(void){each};" for each in session.inputs if each not in read)
    yield from counted_ranks() if session.waits() else ()
    yield f"{INDENT}int status = 0;"


def missing(session: EmittedSession) -> str:
    """A test, in C, whether an argument is missing that a run needs."""
    return "model == NULL || sizes == NULL" if session.is_open() else "model == NULL"


def counted_ranks() -> Iterator[str]:
    """Declare which rank this is, and how many there are."""
    yield f"{INDENT}int this_rank;"
    yield f"{INDENT}const int all_ranks = count_ranks(&this_rank);"


def sizes_of(stage: Stage, number: int) -> str:
    """The sizes of a stage, by its number."""
    names = map(member_identifier, stage.sizes())
    given = ", ".join(f".{name} = sizes->{name}" for name in names) or "0"
    return f"{INDENT}const {function_identifier(stage.program.name)}_sizes sizes_{number} = {{{given}}};"


def work_of(stage: Stage) -> str:
    """The workspace of a stage."""
    return "work" if stage.sizes() else "model->work"


def work_function(session: EmittedSession) -> Iterator[str]:
    """The function that measures the workspace of a run whose sizes come with it, where any do."""
    if not session.is_open():
        return
    yield f"size_t {session.name}_work(const {session.name}_sizes *sizes)"
    yield "{"
    yield f"{INDENT}if (sizes == NULL) return SIZE_MAX;"
    yield from most_work([each for each in session.stages if each.sizes()])
    yield f"{INDENT}return bytes;"
    yield "}"
    yield ""


def exchanged(session: EmittedSession) -> Iterator[str]:
    """The statements by which what a run has written becomes what the next one reads."""
    for each in session.kept:
        if each.next:
            yield f"{INDENT}{C_TYPES[each.dtype]} *const {each.name} = model->{each.name};"
            yield f"{INDENT}model->{each.name} = model->{each.next};"
            yield f"{INDENT}model->{each.next} = {each.name};"
    yield f"{INDENT}++model->{session.counter};"
    yield f"{INDENT}return 0;"


def argument(session: EmittedSession, name: str) -> str:
    """The argument for an array in the function of a run."""
    each = next((each for each in session.kept if each.name == name), None)
    if each is None:
        given = name in (*session.inputs, *session.outputs)
        return name if given else f"model->{name}"
    if session.on_device():
        return f"model->{each.place or name}"
    if each.table():
        return table_name(session.struct, each)
    return f"{'&' if each.number() else ''}model->{name}"


def _between(session: EmittedSession, stage: Stage, going: int) -> Iterator[str]:
    """The copies and sums after a stage; so many sums go on already."""
    for copied in copies(session, stage):
        yield f"{INDENT}memcpy({', '.join(copied)});"
    for each in stage.sums:
        words = summed(session, each)
        if each.others:
            size = BYTES[each.dtype] * count_of(session, each)
            yield f"{INDENT}memset({words[0]}, 0, {size});"
            yield wrapped(f"{INDENT}sum_over_others(", words, ");")
        elif each.goes_on:
            begun = [f"&begun_sums[{going}]", *words]
            yield f"{INDENT}begin_sum({', '.join(begun)});"
            going += 1
        else:
            yield f"{INDENT}sum_over_ranks({', '.join(words)});"


def count_of(session: EmittedSession, summed: RankSum) -> int:
    """The number of elements of a rank that are summed at once."""
    kept = {each.name: each for each in session.kept}
    return sum(kept[name].count() for name in summed.parts)


def summed(session: EmittedSession, each: RankSum) -> list[str]:
    """The arguments of a sum over ranks."""
    parts, letter = f"model->{each.parts[0]}", f"'{LETTERS[each.dtype]}'"
    words = [parts, str(count_of(session, each)), letter]
    if not each.others:
        return [*words, "all_ranks"]
    room = f"model->{each.room}"
    return [f"model->{each.others[0]}", parts, room, *words[1:], "this_rank", "all_ranks"]


def copies(session: EmittedSession, stage: Stage) -> Iterator[tuple[str, str, str]]:
    """The copies after a stage: target, source, bytes."""
    kept = {name: each for block in session.struct.blocks() for name, each in block}
    for target, source in stage.copies:
        given = session.tensors.get(target)
        size = BYTES[given[0]] * session.count(target) if given else kept[target].bytes()
        yield argument(session, target), argument(session, source), str(size)


def entries(session: EmittedSession, whole: bool) -> Iterator[str]:
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


def _save_function(session: EmittedSession) -> Iterator[str]:
    yield signature(session, "save")
    yield "{"
    yield f"{INDENT}if (model == NULL || path == NULL) return 1;"
    yield from entries(session, whole=True)
    yield f"{INDENT}return {saving(session)};"
    yield "}"
    yield ""


def _load_function(session: EmittedSession) -> Iterator[str]:
    yield signature(session, "load")
    yield "{"
    yield f"{INDENT}if (model == NULL || path == NULL) return 1;"
    yield from entries(session, whole=False)
    yield f"{INDENT}return {loading(session)};"
    yield "}"
    yield ""


def saving(session: EmittedSession) -> str:
    """The call that writes the arrays of ``entries`` into a file."""
    definition, count = json.dumps(session.definition), len(session.saved())
    runs = f"model->{session.counter}"
    return f"save_arrays(path, {definition}, {runs}, model->seed, arrays, {count})"


def loading(session: EmittedSession) -> str:
    """The call that reads the arrays of ``entries`` from a file."""
    saved = session.saved()
    parameters_ = sum(each.role == "parameter" for each in saved)
    runs = f"&model->{session.counter}"
    return f"load_arrays(path, {runs}, arrays, {parameters_}, {len(saved) - parameters_})"


def ranks_declarations(prefix: str) -> Iterator[str]:
    """The functions of a file that several ranks run, for a header."""
    yield "/*"
    yield " * Begin to be a rank: which one this is, and how many there are, those of MPI where the files are compiled"
    yield " * with -DWITH_MPI (make MPI=1), else this process alone. A session counts them when it begins."
    yield " */"
    yield f"void {prefix}_begin(int *rank, int *ranks);"
    yield ""
    yield "/* End: all ranks come here. A process that ends without it ends all of them. */"
    yield f"void {prefix}_end(void);"
    yield ""


def ranks_lines(prefix: str) -> Iterator[str]:
    """These functions."""
    yield f"void {prefix}_begin(int *rank, int *ranks)"
    yield "{"
    yield f"{INDENT}begin_ranks();"
    yield f"{INDENT}*ranks = count_ranks(rank);"
    yield "}"
    yield ""
    yield from end_lines(prefix)


def end_lines(prefix: str) -> Iterator[str]:
    """The function that ends the work of all ranks."""
    yield f"void {prefix}_end(void)"
    yield "{"
    yield f"{INDENT}end_ranks();"
    yield "}"
    yield ""
