"""The project that ``i build`` writes.

STEM.h, STEM.c, STEM_support.h, STEM_example.c, Makefile, CMakeLists.txt, STEM_test.c, STEM.pc and README.md.

Everything is rendered before anything is written. The files are written to a new folder first and moved from there, so
that the project is the old one or the new one, whatever goes wrong. Files that `i build` did not write are never
replaced: its own are known by a line in their head; and those that were edited since, which their last line tells.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ilang.codegen.project.comments import MARK, formula_comment, header_comment, source_comment
from ilang.codegen.project.example import function_example, session_example
from ilang.codegen.project.exported_names import c_name, exported_function
from ilang.codegen.project.inlined import inlined_in
from ilang.codegen.project.makefile import (
    ALONE,
    MPI,
    NOTHING,
    cmake_lists,
    flags_of_variants,
    makefile,
    package,
)
from ilang.codegen.project.parts import readme
from ilang.codegen.project.selftest import TEST_PARTS, own_names, selftest
from ilang.codegen.system.files import reason_of
from ilang.codegen.system.folders import ending_in_order
from ilang.codegen.targets.c import emit_source
from ilang.codegen.targets.c_entry import STATUS_WORDS
from ilang.codegen.targets.c_header import beginning_of, emit_header
from ilang.codegen.targets.c_session import PARTS_OF_RANKS, SessionsText
from ilang.codegen.targets.c_tile import TILE_ENDINGS
from ilang.codegen.targets.c_variants import VARIANTS
from ilang.codegen.targets.identifiers import identifier
from ilang.codegen.targets.library import PREFIX
from ilang.codegen.targets.session import EmittedSession, ExportedFunction
from ilang.core.diagnostic import CommandError, DataError, Label, ShapeError, ToolError
from ilang.core.infer.fit import check_extents, fit_shaped
from ilang.core.infer.ranks import infer_ranks
from ilang.core.ir.cpu import Tile
from ilang.core.ir.graph import Graph
from ilang.core.ir.kernel import For, statements_within
from ilang.core.ir.shaped import Shaped, Size
from ilang.core.machine import MACHINES, Machine
from ilang.core.pipeline import infer
from ilang.core.record import replace
from ilang.core.suggestion import did_you_mean

OURS = "something in the generated files"
SIGNATURES = (
    ("Makefile", rf"# Makefile of lib\w+, {MARK}\."),
    (
        "_test.c",
        rf" \* Prints a line for each test; the exit status is 1 if one fails\. {MARK.capitalize()}\.",
    ),
    ("_support.h", rf"/\* \w+_support\.h: {MARK} from this program:"),
    (".h", rf"/\* \w+\.h: how to call what is in \w+\.cu?\. {MARK.capitalize()}\."),
    ("_example.c", rf"/\* \w+_example\.c: .*{MARK.capitalize()}\. \*/"),
    ("_example.cu", rf"/\* \w+_example\.cu: .*{MARK.capitalize()}\. \*/"),
    ("_bench.cu", rf" \* small\. {MARK.capitalize()}\."),
    (".c", rf"(/\*| \*) \w+\.c: {MARK} from (this program:|the program in \w+\.h\.)"),
    (".cu", rf"(/\*| \*) \w+\.cu: {MARK} from this program:"),
    ("README.md", rf"A library of (CUDA )?functions on arrays, {MARK}\."),
    ("CMakeLists.txt", rf"# CMake's file of lib\w+, {MARK}\."),
    (".pc", rf"Description: Functions on arrays, {MARK}"),
)
"""The end of the name of a file, and the whole line in its head by which a file of `i build`, of any version, is known.

The mark alone is too little: somebody's own file may well speak of what was written by `i build`.
"""

HEAD_BYTES = 1 << 13
"""Bytes from the start of a file in which its signature stands."""

BESIDE = ("README.md", "CMakeLists.txt")
"""Files that a project does without where somebody else has his own of such a name."""

TAKEN = frozenset(
    """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype omp
    alloca dirent dlfcn fcntl glob memory poll pthread regex sched semaphore strings syslog unistd utime values
    c m dl rt gcc util crypt resolv stdc z
    """.split()  # noqa: SIM905 - reads better as words
)
"""Headers and libraries of the system: installed under their names, ours would stand in front of them."""


def write_project(
    graphs: Sequence[Graph],
    out: Path,
    source_text: str,
    stem: str,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    target: str = "c",
) -> list[Path]:
    """Write the C or CUDA project of some components; the files, in the order in which to read them.

    Args:
        graphs: the components; each is built under its name.
        out: the folder, which is made if it is missing; other files in it stay as they are.
        source_text: the text of the program, repeated at the top of the C file.
        stem: what the files are called; made a C identifier first.
        shapes: shapes of inputs, by name, that fix their extents.
        target: c or cuda.

    Raises:
        CommandError: E0814 (a shape for an input that no component has).
        DataError: E0717 (a shape of the wrong rank), E0718 (two things of one name in C).
        ShapeError: E0505, E0506, E0507 (extents that do not fit), and all of inference.
        ToolError: E0911 (``out`` is no folder), E0912 (it cannot be written), E0913 (a file in it is not ours).
    """
    chosen = list({graph.name: graph for graph in graphs}.values())
    _refuse_unknown(chosen, shapes or {})
    machine = MACHINES[target]
    functions = [exported_component(graph, shapes or {}, machine) for graph in chosen]
    return write_functions(functions, out, source_text, stem)


def exported_component(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]], machine: Machine, prefix: str = ""
) -> ExportedFunction:
    """A component as a function, the extents of the inputs in ``shapes`` fixed, its name after a prefix.

    Raises:
        Error: those of ``fixed``, and of types and schedules.
    """
    return exported_function(fixed(graph, shapes), machine, prefix)


def write_functions(
    functions: Sequence[ExportedFunction],
    out: Path,
    source_text: str,
    stem: str,
    sessions: Sequence[EmittedSession] = (),
    prefix: str = "",
) -> list[Path]:
    """Write the project of some lowered programs, and of sessions, whose programs are among them.

    The functions that begin and end ranks have the ``prefix`` of the others, or else the name of the files.

    Raises:
        DataError: E0718. ToolError: E0911, E0912, E0913.
    """
    stem = file_stem(stem)
    prefix = prefix or stem
    _refuse_clashes(functions, stem, prefix, sessions)
    if functions[0].program.machine.kind == "gpu":
        from ilang.codegen.project.cuda import render_cuda

        files = render_cuda(functions, source_text, stem, sessions, prefix)
    else:
        files = render(functions, source_text, stem, sessions, prefix)
    return [out / name for name in _write(out, files)]


def file_stem(text: str) -> str:
    """A name for the files: a C identifier that starts with a letter, and no header or library of the system."""
    name = c_name(text)
    return f"{name}_model" if name.lower() in TAKEN else name


def fixed(graph: Graph, shapes: Mapping[str, tuple[int, ...]]) -> Shaped:
    """A component inferred, the extents of the inputs in ``shapes`` fixed.

    Raises:
        DataError: E0717. ShapeError: E0505, E0506, E0507, and E057 where every extent is fixed.
    """
    given = [shapes.get(graph.input_name(n)) for n in range(len(graph.inputs))]
    offered = [None if shape is None else len(shape) for shape in given]
    alone = infer_ranks(graph, None)
    assumed = any(each.assumed for each in alone.counted.values())
    for n, shape in enumerate(given):
        rank = None if assumed else alone.rank(graph.inputs[n])
        if shape is not None and rank is not None and len(shape) != rank:
            name, span = graph.input_name(n), graph.nodes[graph.inputs[n]].span
            raise DataError(
                "E0717",
                f"--shape gives {name} rank {len(shape)}, but {graph.name} reads it with rank {rank}",
                span,
                f"write {_example(name, rank)}",
            )
        check_extents(graph.input_name(n), shape or ())
    shaped = infer(graph, ranks=offered)
    names = graph.input_names()
    shaped = replace(shaped, sizes=tuple(_with_extent(size, given, names) for size in shaped.sizes))
    if any(size.is_argument() for size in shaped.sizes):
        return shaped
    inputs = [shaped.tensors[value].dims for value in shaped.inputs]
    extents = fit_shaped(shaped, [tuple(_number(shaped.sizes[n]) for n in dims) for dims in inputs])
    sizes = zip(shaped.sizes, extents, strict=True)
    return replace(shaped, sizes=tuple(replace(size, fixed=extent) for size, extent in sizes))


def _number(size: Size) -> int:
    """An extent of an input that is known to be fixed."""
    assert size.fixed is not None
    return size.fixed


def _example(name: str, rank: int) -> str:
    return f"--shape {name}=" + ("x".join(str(8 * (n + 1)) for n in range(rank)) or ".")


def _with_extent(size: Size, given: Sequence[tuple[int, ...] | None], names: Sequence[str]) -> Size:
    """A size with the one extent that shapes give it, if they do."""
    first = None
    for place in size.places:
        shape = given[place.number]
        if shape is None:
            continue
        extent, name = shape[place.dim], names[place.number]
        dimension_text = f"dimension {place.dim} of {name}"
        if size.fixed is not None and extent != size.fixed:
            message = f"axis {size.name} is fixed at {size.fixed}, but --shape makes {dimension_text} {extent}"
            raise ShapeError("E0506", message, place.span, f"write extent {size.fixed} there")
        if first is not None and extent != first[0]:
            message = f"--shape makes axis {size.name} {first[0]} ({first[1]}) and {extent} ({dimension_text})"
            help_line = "one axis goes along both dimensions: give them the same extent"
            labels = [Label(place.span, f"{extent} here, in {name}"), first[2]]
            raise ShapeError("E0505", message, place.span, help_line, labels)
        if first is None:
            first = extent, dimension_text, Label(place.span, f"{extent} here, in {name}")
    return size if first is None else replace(size, fixed=first[0])


def _refuse_unknown(graphs: Sequence[Graph], shapes: Mapping[str, tuple[int, ...]]) -> None:
    known = sorted({graph.input_name(n) for graph in graphs for n in range(len(graph.inputs))})
    for name in shapes:
        if name not in known:
            hint = did_you_mean(name, known, f"there is {', '.join(known[:20])}")
            raise CommandError("E0814", f"no input is named {name or '(empty)'}", help=hint)


def render(
    functions: Sequence[ExportedFunction],
    source_text: str,
    stem: str,
    sessions: Sequence[EmittedSession] = (),
    prefix: str = "",
) -> dict[str, str]:
    """The text of every file, by its name; functions of ranks begin with ``prefix``."""
    programs = [function.program for function in functions]
    written = SessionsText(sessions, prefix or stem)
    inlined = inlined_in(source_text, functions, sessions)
    header = header_comment(functions, written, stem, inlined)
    declared = emit_header(programs, [*written.declarations()])
    support, source = emit_source(programs, stem, written)
    source_head = source_comment(source_text, f"{stem}_support.h")
    example = (
        session_example(sessions[0], stem, prefix or stem)
        if sessions
        else function_example(functions, stem)
    )
    switch = MPI if written.of_ranks else ALONE if sessions else NOTHING
    names = [each.name() for each in functions] + [each.name for each in sessions]
    has_threads = "SHARE_LOOP(" in source
    return {
        f"{stem}.h": "\n".join([*header, declared]),
        f"{stem}.c": "\n".join([*formula_comment(functions, stem), source]),
        f"{stem}_support.h": "\n".join([*source_head, support]),
        f"{stem}_example.c": "\n".join(example) + "\n",
        "Makefile": makefile(
            "makefile_c.mk", stem, switch, VARIANT_FLAGS=flags_of_variants("FLAGS_{} = {}")
        ),
        "CMakeLists.txt": cmake_lists(stem, written.of_ranks),
        f"{stem}_test.c": selftest(functions, stem, sessions=sessions),
        f"{stem}.pc": package(stem),
        "README.md": readme(
            "readme_c.txt",
            names,
            stem,
            OF_SESSIONS if sessions else "",
            inlined,
            OF_THREADS=OF_THREADS if has_threads else "",
            FOR_CMAKE=", with `-DOPENMP=ON`" if has_threads else "",
        ),
    }


def _refuse_clashes(
    functions: Sequence[ExportedFunction],
    stem: str,
    prefix: str,
    sessions: Sequence[EmittedSession],
) -> None:
    """Refuse definitions and inputs whose C name another part of the generated files has.

    Raises:
        DataError: E0718.
    """
    guard = f"{stem.upper()}_H"
    parts = {part: function.program.name for function in functions for part in _parts(function)}
    for each in sessions:
        parts |= {f"{each.name}_{part}": each.name for part in each.parts() if part != "arrays"}
    if any(session.of_ranks() for session in sessions):
        parts |= {f"{prefix}_{part}": stem for part in PARTS_OF_RANKS}
    internal = f"{beginning_of([function.program for function in functions])}_{PREFIX}"
    for name in [session.name for session in sessions]:
        _refuse_taken(name, name, parts, stem, internal)
    for function in functions:
        name = function.program.name
        _refuse_taken(function.name(), name, parts, stem, internal)
        arrays = [
            function.program.buffers[n].name
            for n in (*function.program.inputs, *function.program.outputs)
        ]
        sizes = [size.name for size in function.program.sizes]
        for word in (*arrays, *sizes):
            if identifier(word) in (*_parts(function), guard):
                raise _clash(word, f"a part of `{name}`")
            if word.startswith(internal):
                raise _clash(word, OURS)
        for word in sizes:
            if f"n_{word}" in parts:
                raise _clash(word, f"a part of `{parts[f'n_{word}']}`")


def _refuse_taken(name: str, text: str, parts: Mapping[str, str], stem: str, internal: str) -> None:
    """Refuse a name in C, of what is so called in the text, if it is taken; ``internal`` begins what we add."""
    if name in parts:
        raise _clash(text, f"a part of `{parts[name]}`")
    if name in {*own_names(), f"{stem.upper()}_H"} or name.startswith(internal):
        raise _clash(text, OURS)


def _parts(function: ExportedFunction) -> list[str]:
    """The names that the files derive from the name of a function."""
    derived = ["sizes", "work", "plan", "layout", "host", "status", "wait", "enqueued"]
    derived += [*VARIANTS, *TEST_PARTS, *STATUS_WORDS.values()]
    for kernel in function.program.kernels:
        tiles = sum(isinstance(s, Tile) for s in statements_within(kernel.body))
        outlines = (s.outline for s in statements_within(kernel.body) if isinstance(s, For))
        derived.append(kernel.name)
        derived += [f"{kernel.name}_tile{n}{end}" for n in range(tiles) for end in TILE_ENDINGS]
        derived += [f"{kernel.name}_{each.name}" for each in outlines if each is not None]
    return [f"{function.name()}_{part}" for part in derived]


def _clash(name: str, other: str) -> DataError:
    return DataError("E0718", f"`{name}` is also the name in C of {other}", help=f"rename `{name}`")


def _write(out: Path, files: Mapping[str, str]) -> list[str]:
    """Write all files or none; the names of those that are written.

    Raises:
        ToolError: E0911, E0912, E0913.
    """
    try:
        with ending_in_order() as settle:
            return _write_whole(out, files, settle)
    except (OSError, ValueError) as trouble:
        raise ToolError(
            "E0912",
            f"the project cannot be written to {out}: {reason_of(trouble)}",
            help="name a folder that can be written, on a disk that has room",
        ) from None


def _write_whole(out: Path, files: Mapping[str, str], settle: Callable[[], None]) -> list[str]:
    """Write all files or none; ``settle`` is called before what is left over is removed."""
    if out.is_dir():
        files = {n: text for n, text in files.items() if n not in BESIDE or not _foreign(out / n)}
        _refuse_foreign(out, list(files), out)
        with _new_folder(out, settle) as folder:
            _fill(folder, files)
            _replace(folder, out, list(files))
        return list(files)
    if os.path.lexists(out):
        raise ToolError(
            "E0911", f"{out} exists and is no folder", help="name another folder, or move it away"
        )
    with _parents(out), _new_folder(out.parent, settle) as folder:
        _fill(folder, files)
        folder.rename(out)
    return list(files)


def _refuse_foreign(folder: Path, names: Sequence[str], out: Path) -> None:
    """Refuse to replace what `i build` did not write; ``folder`` has the files that stand, or stood, in ``out``.

    Raises:
        ToolError: E0913.
    """
    for name in names:
        wrong = _foreign(folder / name)
        if wrong:
            raise ToolError(
                "E0913",
                f"{out / name} {wrong}, and would be replaced",
                help="name another folder, or move it away",
            )


def _foreign(path: Path) -> str:
    """The reason why a file is not of `i build`; empty if it is, or if there is no file.

    A link is refused as well, whatever it leads to: it was put there for a reason.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return ""
    if stat.S_ISLNK(mode):
        return "is a link"
    if not stat.S_ISREG(mode):
        return "is not a file"
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
        line = next(line for ending, line in SIGNATURES if path.name.endswith(ending))
        if not re.search(rf"^{line}\r?$", head.decode("ascii", "replace"), re.MULTILINE):
            return f"was not {MARK}"
        rest = stream.read()
    return "was edited" if is_edited((head + rest).decode("ascii", "replace")) else ""


@contextlib.contextmanager
def _parents(out: Path) -> Iterator[None]:
    """Make the folders above ``out``; those that were missing are removed again if the block fails."""
    missing: list[Path] = []
    for folder in out.parents:
        if folder.exists():
            break
        missing.append(folder)
    created: list[Path] = []
    try:
        for folder in reversed(missing):
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                created.append(folder)
        yield
    except BaseException:
        for folder in reversed(created):
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


@contextlib.contextmanager
def _new_folder(parent: Path, settle: Callable[[], None]) -> Iterator[Path]:
    """A new folder with a name that nothing has, gone after the block."""
    number = 0
    while True:
        folder = parent / f".build.{os.getpid()}.{number}"
        try:
            folder.mkdir()
            break
        except FileExistsError:
            number += 1
    try:
        yield folder
    finally:
        settle()
        shutil.rmtree(folder, ignore_errors=True)


def _fill(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a new folder, down to the disk."""
    for name, text in files.items():
        with (folder / name).open("xb") as stream:
            stream.write(sealed(name, text).encode("ascii"))
            stream.flush()
            os.fsync(stream.fileno())


def _replace(folder: Path, out: Path, names: Sequence[str]) -> None:
    """Move files from ``folder`` to ``out``; what stood there stands there again if one of them cannot be moved.

    A file that is moved away is looked at once more: since the first look, somebody may have put a file of his own
    there.
    """
    kept = folder / "replaced"
    kept.mkdir()
    moved: list[str] = []
    try:
        for name in names:
            if os.path.lexists(out / name):
                (out / name).rename(kept / name)
            moved.append(name)
            _refuse_foreign(kept, [name], out)
            (folder / name).rename(out / name)
    except BaseException:
        for name in moved:
            with contextlib.suppress(OSError):
                if os.path.lexists(kept / name):
                    (kept / name).replace(out / name)
                else:
                    (out / name).unlink(missing_ok=True)
        raise


SEAL = "Hash of the lines above, by which `i build` knows its own text:"


def sealed(name: str, text: str) -> str:
    """The text of a file with its last line, a comment of the language that the name of the file tells.

    After ``int f(void);`` in ``model.h`` stands ``/* Hash of the lines above, ...: 9c7c... */``.
    """
    says = f"{SEAL} {_hash(text)}"
    if name.endswith((".c", ".cu", ".h")):
        return f"{text}/* {says} */\n"
    return f"{text}\n<!-- {says} -->\n" if name.endswith(".md") else f"{text}# {says}\n"


def is_edited(text: str) -> bool:
    """Whether a text is not what its hash is of; ends of lines may be those of another system.

    A text without a hash is that of an earlier version, of which nothing is known.
    """
    lines = text.replace("\r\n", "\n")
    above, _, last = lines.removesuffix("\n").rpartition("\n")
    return SEAL in lines and f"{SEAL} {_hash(above)}" not in last


def _hash(text: str) -> str:
    """16 hexadecimal digits; empty lines at the end of a text do not count."""
    return hashlib.sha256(text.rstrip("\n").encode()).hexdigest()[:16]


OF_THREADS = "make OPENMP=1         # the same, which uses several cores\n"
OF_SESSIONS = """\

What lasts from run to run is in memory that the caller gives `NAME_init`, as much as `NAME_bytes` says.
`NAME_run` is one run; `NAME_save` and `NAME_load` write and read a file of safetensors.
"""
