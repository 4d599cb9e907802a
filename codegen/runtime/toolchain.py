"""Compilers: found once, run in a process group of their own, their every way to fail turned into one coded error.

Order of search, for C: ``$CC`` (a path, or a command with arguments), ``cc``, ``gcc``, ``clang``, the ziglang package.
Nothing goes through a shell. Finding the compiler is a part of every first call, running it is not: modules for that
are imported there.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ilang.codegen.runtime.concurrency import LISTEN, signals_held
from ilang.codegen.runtime.packages import Package
from ilang.core.diagnostic import ToolError
from ilang.core.record import record

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

SECONDS = 120
"""A compiler that has not ended by then is taken to hang."""

STANDARD = (
    *("-std=gnu11", "-fPIC", "-shared", "-ffp-contract=off"),
    *("-fno-math-errno", "-fno-trapping-math"),
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

KEPT_OUTPUT = 32 * 1024
"""Bytes that are kept of the beginning of a compiler's messages, and of their end: some print gigabytes."""

LINGERING = 2
"""Seconds that what a compiler left behind may still print."""

NO_ROOM = ("No space left", "Disk quota", "Read-only file system", "File too large")
"""By what a compiler, an assembler or a linker says that the folder takes no more."""
OBJECT = 1
"""The type of file of an object, which has no program headers."""
PROBE = 1024 * 1024
"""Bytes that a folder with room for a compilation takes."""


@record
class Language:
    """What a compiler reads.

    Fields:
        name: in messages.
        variable: of the environment, which names the compiler.
        programs: the compilers to look for, in this order.
        package: of Python, where none of them is; None: no package has one.
        source: the file of a text.
        install: what to do where there is none.
    """

    name: str
    variable: str
    programs: tuple[str, ...]
    package: Package | None
    source: str
    install: str


C = Language(
    "C",
    "CC",
    ("cc", "gcc", "clang"),
    Package("ziglang", "", ("cc",)),
    "program.c",
    "install one: apt install gcc, or xcode-select --install, or pip install ziglang",
)


class Recipe(Protocol):
    """How a text is compiled."""

    @property
    def language(self) -> Language:
        """Which compiler."""

    def flags(self) -> tuple[str, ...]:
        """What stands before the source file; optional ones may yet be dropped."""

    def libraries(self) -> tuple[str, ...]:
        """What stands after it."""

    def files(self) -> Mapping[str, bytes]:
        """What has to lie beside it; their names or the text tell what is in them."""


@record
class Compiler:
    """A compiler: the command that runs it, and what tells it apart from any other (paths, sizes, dates)."""

    command: tuple[str, ...]
    identity: str


@record
class Variant:
    """How a library is compiled: serial, with threads, or for tests with sanitizers."""

    threads: bool = False
    sanitize: bool = False

    @property
    def language(self) -> Language:
        """C."""
        return C

    def flags(self) -> tuple[str, ...]:
        """The flags before the source file; optional ones may yet be dropped."""
        speed = SANITIZED if self.sanitize else FAST
        return (*STANDARD, *speed, *((OPENMP,) if self.threads else ()))

    def libraries(self) -> tuple[str, ...]:
        """The mathematical one."""
        return ("-lm",)

    def files(self) -> Mapping[str, bytes]:
        """None."""
        return {}


def find_compiler(language: Language = C) -> Compiler:
    """The compiler of this process; looked for again only when its variable or ``$PATH`` change.

    Raises:
        ToolError: E0901 (none found), E0902 (the variable names none).
    """
    return _find(language, os.environ.get(language.variable, "").strip(), os.environ.get("PATH"))


@functools.lru_cache(maxsize=16)
def _find(language: Language, wanted: str, path: str | None) -> Compiler:
    if wanted:
        command = _wanted(language, wanted, path)
        return Compiler(command, _identity(command))
    for name in language.programs:
        found = _program(name, path)
        if found is not None:
            return Compiler((found,), _identity((found,)))
    looked = [f"${language.variable} (not set)", *language.programs]
    if language.package is not None:
        packaged = language.package.command()
        if packaged is not None:
            command, file = packaged
            return Compiler(command, _identity((*command, file)))
        looked.append(language.package.said())
    raise ToolError(
        "E0901",
        f"no {language.name} compiler was found: looked for {', '.join(looked[:-1])} and {looked[-1]}",
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
            help=f"unset {language.variable} to let {' or '.join(_listed(language.programs))} be found,"
            f" or set it to a {language.name} compiler",
        )
    return (program, *words[1:])


def _listed(names: Sequence[str]) -> Sequence[str]:
    """Names for a list whose last two are joined by a word."""
    return [", ".join(names[:-1]), names[-1]] if 1 < len(names) else names


def _program(name: str, path: str | None) -> str | None:
    """The absolute path of a program (a compiler runs in another folder), or None."""
    found = _which(name, path)
    if found is None or os.path.isabs(found):
        return found
    try:
        return os.path.abspath(found)
    except OSError:  # the current folder is gone
        return None


def _which(name: str, path: str | None) -> str | None:
    """What ``shutil.which`` finds; importing that takes longer than looking."""
    if os.name != "posix" or path is None:
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


def build(text: str, folder: Path, variant: Recipe) -> bytes:
    """Compile a text to a shared library; its content, checked to be whole and for this machine.

    ``folder`` is empty and writable; the source and the library are left in it.

    Raises:
        ToolError: E0901, E0902 (no compiler), E0903 (it fails), E0904 (a signal ends it), E0905 (it hangs), E0906 (it
            writes no library, or a broken one), E0907 (the folder cannot be written), E0909 (it cannot be started).
    """
    language = variant.language
    compiler = find_compiler(language)
    try:
        (folder / language.source).write_text(text, "utf-8")
        for name, content in variant.files().items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise cannot_write(folder, _why(error)) from None
    while True:
        flags = [flag for flag in variant.flags() if (compiler, flag) not in _refused]
        libraries = variant.libraries()
        command = [*compiler.command, *flags, language.source, "-o", "program.so", *libraries]
        status, said = run_compiler(command, folder, language)
        if status == 0:
            return _result(command, folder, said, language)
        dropped = [flag for flag in flags if _refuses(said, flag)]
        if status < 0 or not dropped:
            raise failure(command, folder, status, said, language)
        _refused.update((compiler, flag) for flag in dropped)


def build_program(
    folder: Path, sources: Sequence[str], name: str, *, sanitize: bool = True
) -> bool:
    """Compile C files of a folder to a program; whether it has sanitizers, which it gets where the compiler has them.

    Raises:
        ToolError: E0901 to E0905, E0907, E0909.
    """
    compiler, standard = find_compiler(), [f for f in STANDARD if f not in ("-shared", "-fPIC")]
    command: list[str] = []
    status, said = 0, ""
    checked = (*SANITIZED, "-fno-sanitize-recover=all")
    for speed in (checked, FAST[:1]) if sanitize else (FAST[:1],):
        command = [*compiler.command, *standard, *speed, *sources, "-o", name, "-lm"]
        status, said = run_compiler(command, folder, C)
        if status == 0:
            return speed == checked
    raise failure(command, folder, status, said, C)


_refused: set[tuple[Compiler, str]] = set()
"""Optional flags a compiler of this process was seen to refuse: asked once, not for every program."""


def _refuses(said: str, flag: str) -> bool:
    return any(word in said for word in OPTIONAL.get(flag, ()))


def run_compiler(command: list[str], folder: Path, language: Language) -> tuple[int, str]:
    """Run a compiler in ``folder``: its exit status (negative: a signal), beginning and end of what it said."""
    import subprocess

    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)}
    if not folder.is_dir():
        raise cannot_write(folder, os.strerror(errno.ENOENT))
    child = None
    try:
        with signals_held():  # from its start on, the compiler is ended below
            child = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        said = _Said(child)
        status = _ended(child)
    except OSError as error:
        if child is not None:
            raise
        raise _cannot_start(command, _why(error), language) from None
    except RuntimeError as error:  # no more threads
        raise _cannot_start(command, str(error), language) from None
    except subprocess.TimeoutExpired:
        raise ToolError(
            "E0905",
            f"the {language.name} compiler did not end within {SECONDS} seconds",
            help=f"see whether this ends: {_again(command, folder)}",
        ) from None
    finally:
        if child is not None:
            _end(child)
    return status, said.text()


def _cannot_start(command: list[str], reason: str, language: Language) -> ToolError:
    return ToolError(
        "E0909",
        f"the {language.name} compiler {command[0]} cannot be started: {reason}",
        help="see whether it runs by itself, and whether there is memory and room for another process",
    )


class _Said:
    """What a compiler prints: a thread reads all of it, so that the compiler never waits, and keeps both ends."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        """Read until the compiler, and whatever it started, has closed its output."""
        import threading

        self._first, self._last, self._left_out = bytearray(), bytearray(), False
        self._child = child
        self._reader = threading.Thread(target=self._read, name="ilang-messages", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        with self._child.stdout as pipe:
            while part := os.read(pipe.fileno(), KEPT_OUTPUT):
                room = KEPT_OUTPUT - len(self._first)
                self._first += part[:room]
                self._last += part[room:]
                if KEPT_OUTPUT < len(self._last):
                    self._left_out = True
                    del self._last[:-KEPT_OUTPUT]

    def text(self) -> str:
        """What is kept, once the compiler has ended; a process that it left behind is ended as well."""
        self._reader.join(LINGERING)
        if self._reader.is_alive():
            _end_group(self._child)
            self._reader.join(LINGERING)
        between = b"\n" if self._left_out else b""
        return (bytes(self._first) + between + bytes(self._last)).decode("utf-8", "replace")


def _ended(child: subprocess.Popen[bytes]) -> int:
    """The exit status of a compiler, the moment it ends. Raises subprocess.TimeoutExpired after ``SECONDS``.

    ``subprocess`` itself looks whether it has ended every 50 ms, a third of what a short text takes to compile.
    """
    import select

    left: float = SECONDS
    with contextlib.suppress(AttributeError, OSError):  # only Linux can wait for a process so
        handle = os.pidfd_open(child.pid)
        try:
            ends = select.poll()
            ends.register(handle, select.POLLIN)
            looks = int(SECONDS / LISTEN)  # a signal that comes just before a wait does not end it
            left = 1 if any(ends.poll(LISTEN * 1000) for _ in range(looks)) else 0
        finally:
            os.close(handle)
    return child.wait(timeout=left)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Leave no process of the group behind, whatever interrupted the wait."""
    if child.returncode is None:
        _end_group(child)
        child.wait()


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """End a compiler and everything that it started."""
    import signal

    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        child.kill()


def _result(command: list[str], folder: Path, said: str, language: Language) -> bytes:
    """What the compiler wrote, if it is a whole library for this machine."""
    library = folder / "program.so"
    try:
        content = library.read_bytes() if library.exists() else None
    except OSError as error:
        raise cannot_write(folder, _why(error)) from None
    wrong = "wrote no library" if content is None else broken(content)
    if content is not None and not wrong:
        return content
    raise ToolError(
        "E0906",
        f"the {language.name} compiler reported success but {wrong}{_first_lines(said)}",
        help=f"try another compiler with {_others(language)}, or look at: {_again(command, folder)}",
    )


def _others(language: Language) -> str:
    """How to name another compiler of a language, in its variable."""
    names = language.programs[1:] or language.programs
    return " or ".join(f"{language.variable}={name}" for name in names)


def broken(content: bytes) -> str:
    """What is wrong with the content of a shared library, or of an object, or nothing.

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

    ours = _machine()
    if ours is not None and number(18, 2) != ours:
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


def failure(
    command: list[str], folder: Path, status: int, said: str, language: Language
) -> ToolError:
    """The error for a compiler that ended with a status other than 0 (negative: by a signal)."""
    import signal

    full = next((words for words in NO_ROOM if words in said), "") or _no_room(folder)
    if full:
        return cannot_write(folder, full)
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return ToolError(
            "E0904",
            f"the {language.name} compiler was ended by {name}{_first_lines(said)}",
            help=f"memory may have run out; to see it again: {_again(command, folder)}",
        )
    return ToolError(
        "E0903",
        f"the {language.name} compiler failed with exit status {status}{_first_lines(said)}",
        help=f"the program is right, its compilation is not; to see it again: {_again(command, folder)}",
    )


def _no_room(folder: Path) -> str:
    """Why a folder does not take what a compilation needs, or nothing: a compiler may fail there without a word."""
    probe = folder / "probe"
    try:
        with probe.open("wb") as file:
            file.write(bytes(PROBE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return _why(error)
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
    return ""


def _first_lines(said: str) -> str:
    """The first three lines that tell something, errors before warnings."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    chosen = (errors or lines)[:3]
    return ": " + "; ".join(line[:300] for line in chosen) if chosen else ", and said nothing"


def _again(command: list[str], folder: Path) -> str:
    import shlex

    return f"cd {shlex.quote(str(folder))} && {shlex.join(command)}"


def cannot_write(folder: Path, reason: str) -> ToolError:
    """The error for a working folder that does not take files."""
    return ToolError(
        "E0907",
        f"the working folder {folder} of the compiler cannot be written: {reason}",
        help="make room, or set TMPDIR to a folder that can be written",
    )


def _why(error: OSError) -> str:
    return error.strerror or type(error).__name__
