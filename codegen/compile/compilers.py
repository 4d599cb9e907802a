"""Compilers: what each is called, and where it is.

Order of search, for C: ``$CC`` (a path, or a command with arguments), ``cc``, ``gcc``, ``clang``, the ziglang package.
Finding the compiler is a part of every first call: what that does not need is imported where it is used.
"""

from __future__ import annotations

import functools
import os

from ilang.codegen.compile.packages import Package
from ilang.core.diagnostic import ToolError, enumerated
from ilang.core.record import record


@record
class Language:
    """A language that compilers read.

    Fields:
        name: in messages.
        variable: of the environment, which names the compiler.
        programs: the compilers to look for, in this order.
        packages: of Python, to look for in this order where none of them is.
        source: the file of a text.
        install: what to do where there is none.
    """

    name: str
    variable: str
    programs: tuple[str, ...]
    packages: tuple[Package, ...]
    source: str
    install: str


C = Language(
    "C",
    "CC",
    ("cc", "gcc", "clang"),
    (Package("ziglang", "", ("cc",)),),
    "program.c",
    "install one: apt install gcc, or xcode-select --install, or pip install ziglang",
)


@record
class Compiler:
    """A compiler: its command, what tells it apart from any other (paths, sizes, dates), the package that has it."""

    command: tuple[str, ...]
    identity: str
    package: Package | None = None


def find_compiler(language: Language = C) -> Compiler:
    """The compiler of this process; looked for again only when its variable or ``$PATH`` change.

    Raises:
        ToolError: E0901 (none found), E0902 (the variable names none).
    """
    return _find(language, os.environ.get(language.variable, "").strip(), os.environ.get("PATH"))


@functools.lru_cache(maxsize=16)
def _find(language: Language, wanted: str, path: str | None) -> Compiler:
    packages = language.packages
    looked = [f"${language.variable} (not set)", *language.programs]
    if wanted:
        packages = tuple(package for package in packages if package.tool == wanted)
        looked = []
        if not packages:
            command = _wanted(language, wanted, path)
            return Compiler(command, _identity(command))
    for name in () if wanted else language.programs:
        program = _program(name, path)
        if program is not None:
            return Compiler((program,), _identity((program,)))
    for package in packages:
        packaged = package.command()
        if packaged is not None:
            command, file = packaged
            return Compiler(command, _identity((*command, file)), package)
        looked.append(package.says())
    raise ToolError(
        "E0901",
        f"no {language.name} compiler was found: looked for {enumerated(looked)}",
        help=language.install,
    )


def _wanted(language: Language, wanted: str, path: str | None) -> tuple[str, ...]:
    """The command that a variable spells: one program, its path may hold blanks, or a program and arguments."""
    whole = _program(wanted, path)
    if whole is not None:
        return (whole,)
    import shlex  # here and below: most calls need none of it

    try:
        words = shlex.split(wanted)
    except ValueError:
        words = []
    program = _program(words[0], path) if words else None
    if program is None:
        named = words[0] if words else wanted
        raise ToolError(
            "E0902",
            f"${language.variable} names {named}, which is not a program that can run here",
            help=f"unset {language.variable} to let {enumerated(language.programs, 'or')} be found,"
            f" or set it to a {language.name} compiler",
        )
    return (program, *words[1:])


def _program(name: str, path: str | None) -> str | None:
    """The absolute path of a program (a compiler runs in another folder), or None."""
    program = _which(name, path)
    if program is None or os.path.isabs(program):
        return program
    try:
        return os.path.abspath(program)
    except OSError:  # the current folder is gone
        return None


def _which(name: str, path: str | None) -> str | None:
    """The path that ``shutil.which`` would find; importing that takes longer than looking."""
    if path is None:
        import shutil

        return shutil.which(name, path=path)
    folders = [""] if os.sep in name else path.split(os.pathsep)
    for folder in folders:
        file = os.path.join(folder, name)
        if os.access(file, os.F_OK | os.X_OK) and not os.path.isdir(file):
            return file
    return None


def _identity(command: tuple[str, ...]) -> str:
    """The command, and path, size and modification time of every file it names."""
    parts = []
    for word in command:
        parts.append(word)
        if os.sep in word:
            real = os.path.realpath(word)
            try:
                seen = os.stat(real)
            except OSError:
                continue
            parts.append(f"{real}:{seen.st_size}:{seen.st_mtime_ns}")
    return "\n".join(parts)
