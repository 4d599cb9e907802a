"""A compiler's process: run in a group of its own, its every way to fail turned into one coded error.

Nothing goes through a shell, and nothing that a compiler started is left behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from ilang.codegen.compile.compilers import Language
from ilang.codegen.system.concurrency import LISTEN, signals_held
from ilang.codegen.system.files import reason_of
from ilang.core.diagnostic import ToolError

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

SECONDS = 120
"""A compiler that has not ended by then is taken to hang."""

KEPT_OUTPUT = 32 * 1024
"""Bytes that are kept of the beginning of a compiler's messages, and of their end: some print gigabytes."""

LINGERING = 2
"""Seconds that what a compiler left behind may still print."""

NO_ROOM = ("No space left", "Disk quota", "Read-only file system", "File too large")
"""By what a compiler, an assembler or a linker says that the folder takes no more."""

PROBE = 1024 * 1024
"""Bytes that a folder with room for a compilation takes."""


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
        output = _Output(child)
        status = _exit_status(child)
    except OSError as error:
        if child is not None:
            raise
        raise _cannot_start(command, reason_of(error), language) from None
    except RuntimeError as error:  # no more threads
        raise _cannot_start(command, str(error), language) from None
    except subprocess.TimeoutExpired:
        raise ToolError(
            "E0905",
            f"the {language.name} compiler did not end within {SECONDS} seconds",
            help=f"see whether this ends: {again(command, folder)}",
        ) from None
    finally:
        if child is not None:
            _end(child)
    return status, output.text()


def _cannot_start(command: list[str], reason: str, language: Language) -> ToolError:
    return ToolError(
        "E0909",
        f"the {language.name} compiler {command[0]} cannot be started: {reason}",
        help="see whether it runs by itself, and whether there is memory and room for another process",
    )


class _Output:
    """The output of a compiler: a thread reads all of it, so that the compiler never waits, and keeps both ends."""

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
        """The text that is kept, once the compiler has ended; a process that it left behind is ended as well."""
        self._reader.join(LINGERING)
        if self._reader.is_alive():
            _end_group(self._child)
            self._reader.join(LINGERING)
        between = b"\n" if self._left_out else b""
        return (bytes(self._first) + between + bytes(self._last)).decode("utf-8", "replace")


def _exit_status(child: subprocess.Popen[bytes]) -> int:
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


def failure(
    command: list[str], folder: Path, status: int, output: str, language: Language
) -> ToolError:
    """The error for a compiler that ended with a status other than 0 (negative: by a signal)."""
    import signal

    full = next((words for words in NO_ROOM if words in output), "") or _no_room(folder)
    if full:
        return cannot_write(folder, full)
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return ToolError(
            "E0904",
            f"the {language.name} compiler was ended by {name}{first_lines(output)}",
            help=f"memory may have run out; to see it again: {again(command, folder)}",
        )
    return ToolError(
        "E0903",
        f"the {language.name} compiler failed with exit status {status}{first_lines(output)}",
        help=f"this is a bug in i or in the compiler; to see it again: {again(command, folder)}",
    )


def _no_room(folder: Path) -> str:
    """The reason why a folder has no room for a compilation, or nothing: a compiler may fail there without a word."""
    probe = folder / "probe"
    try:
        with probe.open("wb") as file:
            file.write(bytes(PROBE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return reason_of(error)
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
    return ""


def first_lines(output: str) -> str:
    """The first three lines that tell something, errors before warnings."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    chosen = (errors or lines)[:3]
    return ": " + "; ".join(line[:300] for line in chosen) if chosen else ", and said nothing"


def again(command: list[str], folder: Path) -> str:
    """The command with which a user sees a compiler fail once more."""
    import shlex

    return f"cd {shlex.quote(str(folder))} && {shlex.join(command)}"


def cannot_write(folder: Path, reason: str) -> ToolError:
    """The error for a working folder that does not take files."""
    return ToolError(
        "E0907",
        f"the working folder {folder} of the compiler cannot be written: {reason}",
        help="make room, or set TMPDIR to a folder that can be written",
    )
