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
from collections.abc import Iterator, Mapping, Sequence

from ilang.codegen.targets.c_entry import (
    NO_STATUS,
    status_declarations,
    status_lines,
    statuses,
    wrapped,
)
from ilang.codegen.targets.c_entry import STATUS as STATUS_OF_PROGRAMS
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, listed, literal
from ilang.codegen.targets.identifiers import member_identifier
from ilang.codegen.targets.session import TITLES, EmittedSession, Stage, Struct
from ilang.core.dtype import BYTES
from ilang.core.ir.session import KeptTensor, RankSum, Uniform

STATUS = {
    5: "a file cannot be written or read",
    6: "a file is no safetensors that can be read",
    7: "a file lacks an array, or has it in another shape or of another type",
}
"""The statuses that the functions of a session return beside those of its programs."""
LETTERS = {"f32": "f", "f64": "d", "i32": "i", "i64": "l"}
"""The element types of sums, as ``headers/ranks.h`` calls them."""
TYPES = {"f32": "F32", "f64": "F64", "i32": "I32", "i64": "I64", "bool": "BOOL"}
"""The names of element types in files."""
PARTS_OF_RANKS = ("begin", "end")
"""Endings after the name of a file that ranks run together: functions."""


class SessionText:
    """The text of a session, for a header and for a source."""

    memory = "memory of the caller"
    """The place of the tensors."""
    stream: tuple[str, ...] = ()
    """The last parameters of most functions."""
    statuses_of_ranks: Mapping[int, str] = {8: "another rank has failed"}
    """The statuses that a run of several ranks may return as well."""
    other_status = NO_STATUS
    """The meaning of a number that is none of them, in C."""
    declared: tuple[str, ...] = ("run", "save", "load")
    """The functions in the header that all sessions have."""
    further_statuses: tuple[str, ...] = ()
    """The last lines of the comment on statuses."""
    before: tuple[str, ...] = ()
    """The statements before anything that may fail."""
    unless = ""
    """The test before the call of a stage."""
    brought = "status"
    """The status that a rank brings when all agree on one after a stage that sums."""
    copied = "memcpy({}, {}, {})"
    """A copy of what stays where arrays are."""
    fills: Mapping[str, str] = {
        "uniform": "fill_uniform{suffix}({place}, {count}, seed, {path}, {bound});",
        "number": "{place} = {number};",
        "table": "memcpy({place}, {table}, {bytes});",
        "zeros": "memset({place}, 0, {bytes});",
        "equal": "for (size_t n = 0; n < {count}; ++n) {place}[n] = {number};",
    }
    """The statements that give tensors their first values, by what these are."""
    comments: Mapping[str, str] = {
        "bytes": "Bytes of memory that a session needs; SIZE_MAX if that is more than memory can be.",
        "init": "Begin: tensors are laid out in the memory, and get their first values.",
        "run": "One run. If its status is not 0, nothing that lasts has changed.",
        "save": "Write parameters and state into a file of safetensors, whole or not at all.",
        "load": "Go on with parameters and state of a file, where paths are equal after one common prefix.",
    }

    def __init__(self, session: EmittedSession) -> None:
        self.session = session
        self.struct = session.struct
        self.name = session.name
        meanings = {code: STATUS_OF_PROGRAMS[code] for code in (0, 1)}
        for stage in session.stages:
            meanings |= statuses(stage.function.program)
        of_ranks = self.statuses_of_ranks if session.of_ranks() else {}
        self.statuses = dict(sorted((meanings | STATUS | dict(of_ranks)).items()))
        self.missing = f"model == NULL{' || sizes == NULL' if session.is_open() else ''}"
        """A test whether an argument is missing that a run needs."""

    # -- the header ----------------------------------------------------------------------------------------------------

    def declarations(self) -> Iterator[str]:
        """The struct and the functions of a session."""
        session = self.session
        if session.begins():
            yield from _struct(self.struct, self.memory)
            yield ""
            yield f"/* {self.comments['bytes']} */"
            yield f"size_t {self.name}_bytes(void);"
            yield ""
            yield from self._declaration("init")
        else:
            yield f"/* {self.name}: runs on a {self.struct.name}, which has its tensors, too */"
            yield ""
        if session.is_open():
            yield "/* The sizes of a run, and bytes of its workspace; SIZE_MAX if they do not fit. */"
            yield "typedef struct {"
            yield from (f"{INDENT}int64_t {member_identifier(name)};" for name in session.sizes())
            yield f"}} {self.name}_sizes;"
            yield f"size_t {self.name}_work(const {self.name}_sizes *sizes);"
            yield ""
        for part in self.declared:
            yield from self._declaration(part)
        yield "/*"
        yield from (f" * returns {code}: {text}" for code, text in self.statuses.items())
        yield from self.further_statuses
        yield " */"
        yield from status_declarations(self.name, self.statuses)

    def _declaration(self, part: str) -> Iterator[str]:
        yield from self._comment(part)
        yield f"{self._signature(part)};"
        yield ""

    def _comment(self, part: str) -> Iterator[str]:
        yield f"/* {self.comments[part]} */"

    def example(self) -> Iterator[str]:
        """An example of the use of a session, in C."""
        name = self.name
        yield f"{name} model;"
        yield f"int status = {name}_init(&model, malloc({name}_bytes()), 0);"
        yield f"status = {name}_run({', '.join(self._example_words())});"
        yield f'status = {name}_save(&model, "{name}.safetensors");'

    def _example_words(self) -> list[str]:
        """The arguments of a run in an example, a dozen words at most."""
        words = ["&model", *self.session.inputs, *self.session.outputs]
        words = [words[0], "&sizes", *words[1:], "work"] if self.session.is_open() else words
        return words if len(words) <= 12 else [*words[:11], "..."]

    def _signature(self, part: str) -> str:
        session = self.session
        words = [f"{'const ' if part == 'save' else ''}{self.struct.name} *model"]
        if part == "init":
            words += ["void *memory", "uint64_t seed"]
        elif part in ("save", "load"):
            words.append("const char *path")
        else:
            words += [f"const {self.name}_sizes *sizes"] if session.is_open() else []
            words += [f"const {C_TYPES[session.tensors[n][0]]} *{n}" for n in session.inputs]
            words += [f"{C_TYPES[session.tensors[n][0]]} *{n}" for n in session.outputs]
            words += ["void *work"] if session.is_open() and part == "run" else []
        further = () if part == "run_host" else self.stream
        return wrapped(f"int {self.name}_{part}(", [*words, *further], ")")

    # -- the functions -------------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        """The functions of a session."""
        if self.session.begins():
            yield from self._beginning()
        yield from self._running()
        for part in ("save", "load"):
            yield self._signature(part)
            yield "{"
            yield f"{INDENT}if (model == NULL || path == NULL) return 1;"
            yield from self._file(part)
            yield "}"
            yield ""
        yield from status_lines(self.name, self.statuses, self.other_status)

    def _beginning(self) -> Iterator[str]:
        """The functions that measure the memory of a session, and place and fill its arrays there."""
        struct, line = self.struct, self.struct.machine.memory.line_bytes
        places, total = struct.layout(line)
        yield from _tables(struct)
        yield f"size_t {struct.name}_bytes(void)"
        yield "{"
        yield from _most_work([each for each in struct.stages if not each.sizes()])
        yield f"{INDENT}return SIZE_MAX - {total + line} <= bytes ? SIZE_MAX : {total + line} + bytes;"
        yield "}"
        yield ""
        yield self._signature("init")
        yield "{"
        yield f"{INDENT}if (model == NULL || memory == NULL) return 1;"
        yield f"{INDENT}char *const base = start_in(memory);"
        for name, (offset, dtype) in places.items():
            yield f"{INDENT}model->{name} = ({C_TYPES[dtype]} *)(void *)(base + {offset});"
        yield f"{INDENT}model->work = base + {total};"
        yield f"{INDENT}model->seed = seed;"
        yield from (f"{INDENT}model->{each} = 0;" for each in struct.counters)
        yield from self.before
        for each in struct.kept:
            if each.role == "ranks":
                yield f"{INDENT}int this_rank;"
                yield f"{INDENT}model->{each.name} = ({C_TYPES[each.dtype]})count_ranks(&this_rank);"
            elif each.count() and each.role != "between":
                is_there = each.is_table() and not struct.on_device()
                yield from () if is_there else (f"{INDENT}{self._fill(each)}",)
        yield f"{INDENT}return 0;"
        yield "}"
        yield ""

    def _fill(self, each: KeptTensor) -> str:
        fill, dtype = each.fill, each.dtype
        words: dict[str, object] = {
            "place": f"model->{each.name}",
            "type": C_TYPES[dtype],
            "count": each.count(),
            "bytes": each.bytes(),
        }
        if isinstance(fill, Uniform):
            suffix = "_f64" if dtype == "f64" else ""
            words |= {"path": json.dumps(fill.path), "hash": fill.hash, "suffix": suffix}
            return self.fills["uniform"].format(**words, bound=f"{fill.bound.hex()}f")
        if not each.is_field() and (each.is_table() or 1 < len(fill)):
            return self.fills["table"].format(**words, table=_table(self.struct, each))
        zero = not each.is_field() and str(fill[0]) in ("0", "0.0")
        kind = "number" if each.is_field() else "zeros" if zero else "equal"
        return self.fills[kind].format(**words, number=literal(fill[0], dtype))

    def _running(self) -> Iterator[str]:
        """The function that measures the workspace of a run whose sizes come with it, and the run."""
        session = self.session
        if session.is_open():
            yield f"size_t {self.name}_work(const {self.name}_sizes *sizes)"
            yield "{"
            yield f"{INDENT}if (sizes == NULL) return SIZE_MAX;"
            yield from _most_work([each for each in session.stages if each.sizes()])
            yield f"{INDENT}return bytes;"
            yield "}"
            yield ""
        yield self._signature("run")
        yield "{"
        yield f"{INDENT}if ({self.missing}) return 1;"
        read = {name for stage in session.stages for name in stage.run.arguments}
        yield from (f"{INDENT}(void){each};" for each in session.inputs if each not in read)
        yield from COUNTED_RANKS if session.waits() else ()
        yield f"{INDENT}int status = 0;"
        yield from self._stages()
        for each in session.kept:
            if each.next:
                yield f"{INDENT}{C_TYPES[each.dtype]} *const {each.name} = model->{each.name};"
                yield f"{INDENT}model->{each.name} = model->{each.next};"
                yield f"{INDENT}model->{each.next} = {each.name};"
        yield f"{INDENT}++model->{session.counter};"
        yield f"{INDENT}return 0;"
        yield "}"
        yield ""

    def _stages(self) -> Iterator[str]:
        """The stages of a run, with what is copied and summed after each."""
        session = self.session
        count = sum(each.overlaps for stage in session.stages for each in stage.run.sums)
        if count:
            yield f"{INDENT}struct begun_sum begun_sums[{count}];"
        going = 0
        for number, stage in enumerate(session.stages, 1):
            if stage.run.ends_sums:
                yield f"{INDENT}end_sums(begun_sums, {going});"
                going = 0
            yield from sizes_of(stage, number)
            program, words = self._call(stage, number)
            yield wrapped(f"{INDENT}{self.unless}status = {program}(", words, ");")
            if not session.waits():
                yield f"{INDENT}if (status != 0) return status;"
            for copied in self._copies(stage):
                yield self._tried(self.copied.format(*copied))
            if session.waits():
                brought = self.brought if stage.run.sums else "status"
                yield f"{INDENT}status = status_of_ranks({brought}, all_ranks);"
                if going:
                    yield f"{INDENT}if (status != 0) end_sums(begun_sums, {going});"
                yield f"{INDENT}if (status != 0) return status;"
            for each in stage.run.sums:
                yield from self._sum(each, going)
                going += each.overlaps

    def _tried(self, call: str) -> str:
        """A call after that of a stage: where ranks wait for each other, unless it has failed."""
        return f"{INDENT}{'if (status == 0) ' if self.session.waits() else ''}{call};"

    def _sum(self, each: RankSum, going: int) -> Iterator[str]:
        """A sum over ranks, of which so many go on already."""
        words = self._summed(each)
        if each.others:
            yield f"{INDENT}memset({words[0]}, 0, {BYTES[each.dtype] * elements_of(self.session, each)});"
            yield wrapped(f"{INDENT}sum_over_others(", words, ");")
        elif each.overlaps:
            yield f"{INDENT}begin_sum({', '.join([f'&begun_sums[{going}]', *words])});"
        else:
            yield f"{INDENT}sum_over_ranks({', '.join(words)});"

    def _call(self, stage: Stage, number: int) -> tuple[str, list[str]]:
        words = [sizes_word(stage, number), *map(self._argument, stage.run.arguments)]
        work = "work" if stage.sizes() else "model->work"
        return stage.function.name(), [*words, work]

    def _argument(self, name: str) -> str:
        session = self.session
        each = next((each for each in session.kept if each.name == name), None)
        if each is None:
            given = name in (*session.inputs, *session.outputs)
            return name if given else f"model->{name}"
        return self._kept(each)

    def _kept(self, each: KeptTensor) -> str:
        return (
            _table(self.struct, each)
            if each.is_table()
            else f"{'&' * each.is_field()}model->{each.name}"
        )

    def _summed(self, each: RankSum) -> list[str]:
        parts, letter = f"model->{each.parts[0]}", f"'{LETTERS[each.dtype]}'"
        words = [parts, str(elements_of(self.session, each)), letter]
        if not each.others:
            return [*words, "all_ranks"]
        room = f"model->{each.room}"
        return [f"model->{each.others[0]}", parts, room, *words[1:], "this_rank", "all_ranks"]

    def _copies(self, stage: Stage) -> Iterator[tuple[str, str, int]]:
        """The copies after a stage: target, source, bytes."""
        session = self.session
        kept = {name: each for block in self.struct.blocks() for name, each in block}
        for target, source in stage.run.copies:
            given = session.tensors.get(target)
            size = BYTES[given[0]] * session.count(target) if given else kept[target].bytes()
            yield self._argument(target), self._argument(source), size

    def _file(self, part: str) -> Iterator[str]:
        yield from entries(self.session, part)
        yield f"{INDENT}return {moving(self.session, part)};"


def _struct(struct: Struct, memory: str) -> Iterator[str]:
    name = struct.name
    yield f"/* {name}: its tensors, which are in {memory} */"
    yield f"typedef struct {name} {{"
    for role, title in TITLES.items():
        of_role = [each for each in struct.kept if each.role == role]
        chosen = [each for each in of_role if struct.on_device() or not each.is_table()]
        if chosen:
            yield f"{INDENT}/* {title} */"
            yield from map(_field, chosen)
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


def _tables(struct: Struct) -> Iterator[str]:
    """The numbers of the text that do not follow from one of them."""
    for each in struct.kept:
        if isinstance(each.fill, tuple) and (each.is_table() or 1 < len(each.fill)):
            numbers = [literal(value, each.dtype) for value in each.fill]
            if len(numbers) < each.count():
                numbers *= each.count()
            head = f"static const {C_TYPES[each.dtype]} {_table(struct, each)}[] = {{"
            yield from listed(head, numbers or ["0"], "};")
            yield ""


def _table(struct: Struct, each: KeptTensor) -> str:
    return f"{struct.name}_values_of_{each.name}"


def elements_of(session: EmittedSession, summed: RankSum) -> int:
    """The number of elements of a rank that are summed at once."""
    kept = {each.name: each for each in session.kept}
    return sum(kept[name].count() for name in summed.parts)


def entries(session: EmittedSession, part: str) -> Iterator[str]:
    """The table of what a file has: to be saved with names as the file has them, else with paths alone."""
    whole = part == "save"
    yield f"{INDENT}{'const ' if whole else ''}struct stored_array arrays[] = {{"
    for each in session.saved():
        path = f"state.{each.path}" if whole and each.role == "state" else each.path
        shape = json.dumps(json.dumps(each.dims, separators=(",", ":")))
        place = f"model->{each.name}"
        row = f'{json.dumps(path)}, "{TYPES[each.dtype]}", {shape}, {each.bytes()}, {place}, 0, 0'
        yield f"{INDENT}{INDENT}{{{row}}},"
    yield f"{INDENT}{INDENT}{{NULL, NULL, NULL, 0, NULL, 0, 0}},"
    yield f"{INDENT}}};"


def moving(session: EmittedSession, part: str) -> str:
    """The call that writes the arrays of the table into a file, or reads them."""
    saved, runs = session.saved(), f"model->{session.counter}"
    if part == "save":
        definition = json.dumps(session.definition)
        return f"save_arrays(path, {definition}, {runs}, model->seed, arrays, {len(saved)})"
    parameters_ = sum(each.role == "parameter" for each in saved)
    return f"load_arrays(path, &{runs}, arrays, {parameters_}, {len(saved) - parameters_})"


def _field(each: KeptTensor) -> str:
    if each.is_field():
        return f"{INDENT}{C_TYPES[each.dtype]} {each.name};"
    extents = ", ".join(map(str, each.dims))
    return f"{INDENT}{C_TYPES[each.dtype]} *{each.name}; /* {each.path}: {each.dtype}[{extents}] */"


def _most_work(stages: Sequence[Stage]) -> Iterator[str]:
    """Declare ``bytes``: the workspace of the stage that wants most."""
    yield f"{INDENT}size_t bytes = 0;"
    for number, stage in enumerate(stages, 1):
        yield from sizes_of(stage, number)
        work = f"{stage.function.name()}_work({sizes_word(stage, number)})"
        yield f"{INDENT}if (bytes < {work}) bytes = {work};"


def sizes_of(stage: Stage, number: int) -> Iterator[str]:
    """The declaration of the sizes of a stage, by its number."""
    names = map(member_identifier, stage.sizes())
    given = ", ".join(f".{name} = sizes->{name}" for name in names)
    if given:
        yield f"{INDENT}const {stage.function.name()}_sizes sizes_{number} = {{{given}}};"


def sizes_word(stage: Stage, number: int) -> str:
    """The sizes that a stage is given: where they are, or NULL where every extent is fixed."""
    return f"&sizes_{number}" if stage.sizes() else "NULL"


COUNTED_RANKS = (
    f"{INDENT}int this_rank;",
    f"{INDENT}const int all_ranks = count_ranks(&this_rank);",
)
"""The statements that declare which rank this is, and how many there are."""


class SessionsText:
    """The text of the sessions of a file, and of the functions that begin and end ranks, where several run it."""

    text: type[SessionText] = SessionText
    headers: tuple[str, ...] = ("#include <inttypes.h>", "#include <stdio.h>")
    """The headers of the system that sessions take; ``mpi`` are further ones, of ranks."""
    mpi: tuple[str, ...] = ("#ifdef WITH_MPI", "#include <mpi.h>", "#endif")
    begin = "void"
    """The type of what the function gives that begins ranks."""
    comment: tuple[str, ...] = (
        "Begin to be a rank: which one this is, and how many there are, those of MPI where the files are compiled",
        "with -DWITH_MPI (make MPI=1), else this process alone. A session counts them when it begins.",
    )
    end = "End: all ranks come here. A process that ends without it ends all of them."
    begun: tuple[str, ...] = ("begin_ranks();", "*ranks = count_ranks(rank);")

    def __init__(self, sessions: Sequence[EmittedSession], prefix: str) -> None:
        """Texts of sessions; the functions of ranks begin with a prefix."""
        self.texts = [self.text(each) for each in sessions]
        self.prefix = prefix
        self.of_ranks = any(each.of_ranks() for each in sessions)

    def includes(self) -> tuple[str, ...]:
        """The headers that they take."""
        return (*(self.headers if self.texts else ()), *(self.mpi if self.of_ranks else ()))

    def declarations(self) -> Iterator[str]:
        """All of them, for a header."""
        for each in self.texts:
            yield from each.declarations()
            yield ""
        if self.of_ranks:
            yield "/*"
            yield from (f" * {line}" for line in self.comment)
            yield " */"
            yield f"{self.begin} {self.prefix}_begin(int *rank, int *ranks);"
            yield ""
            yield f"/* {self.end} */"
            yield f"void {self.prefix}_end(void);"
            yield ""

    def lines(self) -> Iterator[str]:
        """All functions."""
        for each in self.texts:
            yield from each.lines()
        if self.of_ranks:
            yield f"{self.begin} {self.prefix}_begin(int *rank, int *ranks)"
            yield "{"
            yield from (f"{INDENT}{statement}" for statement in self.begun)
            yield "}"
            yield ""
            yield f"void {self.prefix}_end(void)"
            yield "{"
            yield f"{INDENT}end_ranks();"
            yield "}"
            yield ""
