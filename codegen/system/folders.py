"""Folders that no other user can change, and temporary ones that are gone afterwards, whatever ends the process.

A compiled library is loaded and run, so it may stand only where nobody else can put another file in its place. The path
of a folder is safe where every part of it, from the root on, belongs to this user or to root and can be written by
nobody else, or is sticky as ``/tmp`` is: what another user owns there can then be neither renamed nor removed. Nobody
but this user and root can change where such a path leads, so it is checked once and then used as a path.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

TEMPORARY = ("/tmp", "/var/tmp")


class Ended(BaseException):
    """A signal asked the process to end; raised so that what a block made is removed on the way out."""


def own_folder(folder: str, within: str = "") -> str:
    """The real path of a folder that only this user can write to, made if it is missing, with all above it.

    ``within`` is a folder on the way that belongs to this package: if it was once made open to others, it is closed.

    Raises:
        OSError: it cannot be made, or another user could change what is in it or where its path leads.
    """
    try:
        real = os.path.realpath(folder, strict=True)
    except FileNotFoundError:
        parent, name = os.path.split(folder)
        if not name:
            raise
        real = os.path.join(own_parent(parent, within), name)
        with contextlib.suppress(
            FileExistsError
        ):  # another process makes it just now, or a link leads nowhere
            os.mkdir(real, 0o700)
            os.chmod(real, 0o700)  # whatever the umask
        real = os.path.realpath(real, strict=True)
    return _checked(real, within, alone=True)


def own_parent(folder: str, within: str = "") -> str:
    """The real path of a folder in which this user's own folders are safe, made if it is missing.

    Raises:
        OSError: as for ``own_folder``.
    """
    try:
        real = os.path.realpath(folder, strict=True)
    except FileNotFoundError:
        return own_folder(folder, within)
    return _checked(real, within, alone=False)


def _checked(real: str, within: str, *, alone: bool) -> str:
    """A real path, every part of which is seen to be safe; with ``alone``, only this user writes to its end."""
    user, within = os.geteuid(), os.path.realpath(within) if within else ""
    path = os.sep
    for name in ("", *real.strip(os.sep).split(os.sep)):
        path = os.path.join(path, name)
        seen = os.lstat(path)
        if not stat.S_ISDIR(seen.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        is_end = alone and path == real
        if seen.st_uid != user and (is_end or seen.st_uid != 0):
            raise PermissionError(errno.EPERM, "it belongs to another user", path)
        if not seen.st_mode & OTHERS_WRITE or (seen.st_mode & stat.S_ISVTX and not is_end):
            continue
        if path != within or is_end:
            raise PermissionError(errno.EPERM, "other users can write to it", path)
        os.chmod(path, 0o700)
    return real


def is_own_file(status: os.stat_result) -> bool:
    """Whether an open file is a plain one that this user alone has written."""
    is_plain, is_own = stat.S_ISREG(status.st_mode), status.st_uid == os.geteuid()
    return is_plain and is_own and not status.st_mode & OTHERS_WRITE


def _temporary_parent() -> str:
    """The first of the usual folders for temporary files in which a folder of ours is safe.

    Raises:
        OSError: there is none.
    """
    import tempfile

    first = tempfile.gettempdir()
    refused: OSError | None = None
    for folder in dict.fromkeys((first, *TEMPORARY)):
        try:
            real = _checked(os.path.realpath(folder, strict=True), "", alone=False)
        except OSError as error:
            refused = refused or error
            continue
        if os.access(real, os.W_OK | os.X_OK):
            return real
    raise refused or PermissionError(errno.EACCES, os.strerror(errno.EACCES), first)


@contextlib.contextmanager
def temporary_folder(
    parent: str | None = None, keep: Callable[[BaseException], bool] = lambda _: False
) -> Iterator[Path]:
    """A new folder of this user alone, gone after the block, also where SIGTERM or SIGHUP ends the process.

    The folder is in a ``parent``, or else where temporary files are. ``keep`` says of what the block raised whether the
    folder stays for whoever wants to look at it.

    Raises:
        OSError: it cannot be made.
    """
    import shutil
    import tempfile
    from pathlib import Path

    with ending_in_order() as settle:
        work = Path(tempfile.mkdtemp(prefix="building-", dir=parent or _temporary_parent()))
        is_kept = False
        try:
            work.chmod(0o700)  # whatever the umask
            yield work
        except BaseException as raised:
            is_kept = keep(raised)
            raise
        finally:
            settle()
            if not is_kept:
                shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def ending_in_order() -> Iterator[Callable[[], None]]:
    """Let a signal that ends the process leave the block first, by an exception, and end the process then.

    The block gets a function to call before it tidies up: from then on a signal waits until the block is left. Signals
    that somebody else handles or ignores are left alone, and so are those of other threads than the main one, where
    Python allows no handlers.
    """
    import signal

    number, is_settled = 0, False

    def handle(received: int, _frame: FrameType | None) -> None:
        nonlocal number
        if number:
            return
        number = received
        if not is_settled:
            raise Ended

    def settle() -> None:
        nonlocal is_settled
        is_settled = True

    taken: list[signal.Signals] = []
    try:
        for kind in (
            signal.SIGTERM,
            signal.SIGHUP,
        ):  # leave a process a moment to put things in order
            with contextlib.suppress(ValueError):  # not the main thread
                if signal.getsignal(kind) is signal.SIG_DFL:
                    signal.signal(kind, handle)
                    taken.append(kind)
        yield settle
    finally:
        settle()
        for kind in taken:
            signal.signal(kind, signal.SIG_DFL)
        if number:
            os.kill(os.getpid(), number)
