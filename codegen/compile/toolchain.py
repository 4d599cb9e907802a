"""Compilation: a text to a shared library or a program, with the flags that a compiler knows, checked to be whole."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.codegen.compile.compiler_process import (
    again,
    cannot_write,
    failure,
    first_lines,
    run_compiler,
)
from ilang.codegen.compile.compilers import C, Compiler, Language, find_compiler
from ilang.codegen.system.files import reason_of
from ilang.core.diagnostic import ToolError
from ilang.core.record import record

if TYPE_CHECKING:
    from pathlib import Path


STANDARD = (
    *("-std=gnu11", "-fPIC", "-shared", "-ffp-contract=off"),
    *("-fno-math-errno", "-fno-trapping-math", "-pipe"),
)
FAST = ("-O3", "-march=native", "-mprefer-vector-width=512")
SANITIZED = ("-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined")
OPENMP = "-fopenmp"

OPTIONAL = {
    "-march=native": ("march", "mcpu"),
    "-mprefer-vector-width=512": ("prefer-vector-width",),
    OPENMP: ("openmp", "gomp", "libomp", "-lomp"),
}
"""Flags that a compiler may do without, and the words by which its message tells that it does not know them."""


KEPT = {"E0903", "E0904", "E0905", "E0906"}
"""The errors of a compiler that fails."""

OBJECT = 1
"""The type of file of an object, which has no program headers."""


@record
class Recipe:
    """A recipe to compile a text: by the compiler of a language, with flags before it and libraries after it.

    Optional flags may be dropped. ``files`` lie beside the text; their names or the text tell what is in them.
    ``is_quiet``: nobody looks at the source if the compiler fails.
    """

    language: Language
    flags: tuple[str, ...]
    libraries: tuple[str, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()
    is_quiet: bool = False

    def is_kept(self, raised: BaseException) -> bool:
        """Whether the working folder stays after this error, for whoever wants to look at the source."""
        return isinstance(raised, ToolError) and raised.code in KEPT and not self.is_quiet


def library_recipe(threads: bool = False, sanitize: bool = False) -> Recipe:
    """The recipe of a library in C: serial, with threads, or for tests with sanitizers."""
    speed = SANITIZED if sanitize else FAST
    return Recipe(C, (*STANDARD, *speed, *((OPENMP,) if threads else ())), ("-lm",))


def build(text: str, folder: Path, recipe: Recipe) -> bytes:
    """Compile a text to a shared library; its content, checked to be whole and for this machine.

    ``folder`` is empty and writable; the source and the library are left in it.

    Raises:
        ToolError: E0901, E0902 (no compiler), E0903 (it fails), E0904 (a signal ends it), E0905 (it hangs), E0906 (it
            writes no library, or a broken one), E0907 (the folder cannot be written), E0909 (it cannot be started).
    """
    language = recipe.language
    compiler = find_compiler(language)
    try:
        (folder / language.source).write_text(text, "utf-8")
        for name, content in recipe.files:
            (folder / name).write_bytes(content)
    except OSError as error:
        raise cannot_write(folder, reason_of(error)) from None
    while True:
        flags = [flag for flag in recipe.flags if (compiler, flag) not in _refused]
        libraries = recipe.libraries
        command = [*compiler.command, *flags, language.source, "-o", "program.so", *libraries]
        status, output = run_compiler(command, folder, language)
        if status == 0:
            return _result(command, folder, output, language, compiler)
        dropped = [flag for flag in flags if any(word in output for word in OPTIONAL.get(flag, ()))]
        if status < 0 or not dropped:
            raise failure(command, folder, status, output, language)
        _refused.update((compiler, flag) for flag in dropped)


def has_openmp(folder: Path) -> bool:
    """Whether the compiler of C knows OpenMP; a small program is compiled in a folder. Raises: ToolError."""
    build("int one(void) { return 1; }\n", folder, library_recipe(threads=True))
    return (find_compiler(), OPENMP) not in _refused


def build_test(folder: Path, sources: Sequence[str], *, sanitize: bool = True) -> bool:
    """Compile C files of a folder to the program ``test``; whether it has sanitizers, as where the compiler has them.

    Raises:
        ToolError: E0901 to E0905, E0907, E0909.
    """
    compiler, standard = find_compiler(), [f for f in STANDARD if f not in ("-shared", "-fPIC")]
    command: list[str] = []
    status, output = 0, ""
    checked = (*SANITIZED, "-fno-sanitize-recover=all")
    for speed in (checked, FAST[:1]) if sanitize else (FAST[:1],):
        command = [*compiler.command, *standard, *speed, *sources, "-o", "test", "-lm"]
        status, output = run_compiler(command, folder, C)
        if status == 0:
            return speed == checked
    raise failure(command, folder, status, output, C)


_refused: set[tuple[Compiler, str]] = set()
"""Optional flags a compiler of this process was seen to refuse: asked once, not for every program."""


def _result(
    command: list[str], folder: Path, output: str, language: Language, compiler: Compiler
) -> bytes:
    """The library that the compiler wrote, if it is whole and for the machine that it compiles for."""
    machine = None if compiler.package is None else compiler.package.machine
    library = folder / "program.so"
    try:
        content = library.read_bytes() if library.exists() else None
    except OSError as error:
        raise cannot_write(folder, reason_of(error)) from None
    wrong = "wrote no library" if content is None else broken(content, machine)
    if content is not None and not wrong:
        return content
    raise ToolError(
        "E0906",
        f"the {language.name} compiler reported success but {wrong}{first_lines(output)}",
        help=f"try another compiler with {_others(language)}, or look at: {again(command, folder)}",
    )


def _others(language: Language) -> str:
    """Help to name another compiler of a language, in its variable."""
    names = language.programs[1:] or language.programs
    return " or ".join(f"{language.variable}={name}" for name in names)


def broken(content: bytes, machine: int | None = None) -> str:
    """The fault in the content of a shared library, or of an object, or nothing; ``machine`` None is this one.

    A library cut short is found here: loading one ends the process with a signal that nobody can catch.
    """
    if not content:
        return "wrote an empty file"
    if not content.startswith(b"\x7fELF"):
        return "wrote a file that is no library" if sys.platform == "linux" else ""
    if len(content) < 64 or content[4] != 2 or content[5] != 1:
        # Other word sizes and byte orders are left to the loader.
        return "wrote half a library" if len(content) < 64 else ""

    def number(at: int, width: int) -> int:
        return int.from_bytes(content[at : at + width], "little")

    machine = _machine() if machine is None else machine
    if machine is not None and number(18, 2) != machine:
        return "wrote a library for another machine"
    headers, size, count = number(32, 8), number(54, 2), number(56, 2)
    is_object = number(16, 2) == OBJECT
    if (not count and not is_object) or len(content) < headers + size * count:
        return "wrote half a library"
    for at in range(headers, headers + size * count, size or 1):
        if len(content) < number(at + 8, 8) + number(at + 32, 8):
            return "wrote half a library"
    sections = number(40, 8) + number(58, 2) * number(60, 2)
    return "wrote half a library" if len(content) < sections else ""


@functools.lru_cache(maxsize=1)
def _machine() -> int | None:
    """The machine number in the header of the running Python, or None where it has no such header."""
    try:
        with open(sys.executable, "rb") as program:
            header = program.read(20)
    except OSError:
        return None
    known = header.startswith(b"\x7fELF\x02\x01") and len(header) == 20
    return int.from_bytes(header[18:20], "little") if known else None
