"""The last stop of every failure: one message on standard error and an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ilang.core.diagnostic import CommandError, DataError, Error, InternalError, NotationError
from ilang.icli.screen import Screen

INTERRUPTED = 130


def report(failure: BaseException, tokens: Sequence[str]) -> int:
    """Say what failed and return the exit status; standard output is never touched again."""
    try:
        return _report(failure, Screen(tokens))
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        _abandon_output()


def _report(failure: BaseException, screen: Screen) -> int:
    if isinstance(failure, BrokenPipeError):
        return 0  # the reader of standard output has seen enough
    if isinstance(failure, KeyboardInterrupt):
        screen.note("interrupted")
        return INTERRUPTED
    if os.environ.get("I_DEBUG") == "1":
        import traceback

        traceback.print_exception(failure)
    error = as_error(failure)
    screen.complain(error)
    return error.status


def as_error(failure: BaseException) -> Error:
    """The diagnostic for any exception."""
    match failure:
        case Error():
            return failure
        case MemoryError():
            message = "there is not enough memory for this program and its data"
            return DataError("E0713", message, help="use smaller arrays, or more memory")
        case RecursionError():
            message = "the program is nested too deeply"
            return NotationError("E0114", message, help="name a part of it, or group less")
        case OSError():
            return system_error(failure)
        case SystemExit():
            return CommandError("E0801", "the command ended early", help="run it again")
        case _:
            return internal_error(failure)


def internal_error(failure: BaseException) -> InternalError:
    """The diagnostic for a failure that nobody foresaw."""
    words = " ".join(str(failure).split())
    return InternalError("E9900", f"internal error: {type(failure).__name__}: {words}")


def system_error(trouble: OSError) -> DataError:
    """The diagnostic for a call that the operating system refused."""
    reason = trouble.strerror or str(trouble) or type(trouble).__name__
    named = trouble.filename
    known = isinstance(named, str | bytes)
    subject = f"{os.fsdecode(named)} cannot be used" if known else "the system refused a request"
    return DataError("E0739", f"{subject}: {reason}", help="try again when the system can do it")


def _abandon_output() -> None:
    """Point standard output at nothing, so that the interpreter's last flush cannot fail."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        try:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.close(nothing)
        except OSError:
            return
