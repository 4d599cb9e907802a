"""Compiled libraries, kept by what made them: the same text, flags, compiler and processor are compiled once.

An entry is one file, ``KEY.so``: the library, then a trailer with a hash of it that the loader does not look at. An
entry is checked before it is loaded, since loading a library that was cut short kills the process; so no entry waits
for the disk, and what a power failure cuts short is built again. Entries appear by renaming a whole file, so readers
need no lock; the lock per key only keeps processes from doing the same work.

The source from which a text follows has a key as well. A link of that name leads to the entry, so that a program of an
earlier run needs no text at all.

A cache that cannot be used never fails a run: the library is then built in a temporary folder. Neither folder is shared
with another user: ``folders`` says where what is loaded may stand.

The first call of a program comes through here, so modules that only a build needs are imported where it does.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ilang.codegen.compile import toolchain
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.compile.toolchain import Recipe
from ilang.codegen.system import files, folders
from ilang.core.diagnostic import ToolError

T = TypeVar("T")

FORMAT = "1"
"""Part of every key, and of the folder's name; raised when a trailer or a key changes."""

MAGIC = b"\ni-entry\n"
TRAILER = len(MAGIC) + 32
"""The mark, and a SHA-256."""

LINK_BYTES = 4096
"""Bytes that a link counts for in the size of the cache: about what it takes on disk."""

MOST_BYTES = 512 * 1024 * 1024
"""The cache's limit; past it, the entries that were not used for longest go."""

SWEEP_EVERY = 64
"""Entries that one process stores between two looks at the size of the cache."""

STALE_SECONDS = 24 * 3600
"""Age of working folders that a killed process must have left."""

LOCK_SECONDS = 30
"""The time to wait for another process that compiles the same text before doing so as well."""

WRITERS = (".py", ".h", ".cuh", ".txt")
"""Files that a text follows from: programs, and the parts of texts that they take whole."""


def library_of(source: str, text: Callable[[], str], recipe: Recipe, load: Callable[[str], T]) -> T:
    """The library of ``text()``, which is only asked for where the cache does not know what it gives for ``source``.

    ``source`` is everything that the text follows from, the code that writes it aside; if it is empty, nothing of it
    is remembered. The rest is as for ``library``.
    """
    folder = cache_folder() if source else None
    writer = _writer() if folder is not None else None
    if folder is None or writer is None:
        return library(text(), recipe, load)
    link = os.path.join(folder, f"{key_of(source, recipe, writer)}.link")
    entry = _led_to(link)
    if entry is not None and is_whole(entry):
        with contextlib.suppress(OSError):  # removed just now to keep the cache small
            loaded = _used(entry, load)
            _touch(link)
            return loaded
    written = text()
    loaded = library(written, recipe, load)
    _point(link, f"{key_of(written, recipe)}.so")
    return loaded


def _led_to(link: str) -> str | None:
    """The entry that a link leads to, which stands beside it; None where there is no such link."""
    try:
        name = os.readlink(link)
    except OSError:
        return None
    return None if os.path.basename(name) != name else os.path.join(os.path.dirname(link), name)


def _point(link: str, entry: str) -> None:
    """Let a link lead to an entry beside it, in one step.

    Some file systems have no links: then every text is written anew, which is slower and no error.
    """
    temporary = f"{link}-{os.getpid()}"
    with contextlib.suppress(OSError):
        if os.path.exists(os.path.join(os.path.dirname(link), entry)):
            os.symlink(entry, temporary)
            os.replace(temporary, link)


def library(text: str, recipe: Recipe, load: Callable[[str], T]) -> T:
    """The result of ``load`` on the compiled text; ``load`` takes a path and raises OSError where it cannot be loaded.

    Raises:
        ToolError: any of ``toolchain.build``, or E0908 (compiled, but no folder allows to load it).
    """
    key = key_of(text, recipe)
    folder = cache_folder()
    if folder is not None:
        with contextlib.suppress(OSError):
            return _shared(folder, key, text, recipe, load)
    return _private(text, recipe, load)


def entry_of(text: str, recipe: Recipe) -> str | None:
    """The path of the entry of a text that was compiled before; None where there is none.

    Raises:
        ToolError: E0901, E0902 (no compiler).
    """
    folder = cache_folder()
    entry = None if folder is None else os.path.join(folder, f"{key_of(text, recipe)}.so")
    return entry if entry is not None and is_whole(entry) else None


def key_of(text: str, recipe: Recipe, writer: str = "") -> str:
    """The name of an entry: a hash of everything that the library depends on, in hexadecimal.

    With a ``writer``, ``text`` is what the C text follows from when that writer writes it.
    """
    parts = (
        *(FORMAT, text, " ".join((*recipe.flags, *recipe.libraries))),
        *(find_compiler(recipe.language).identity, _processor(), writer),
    )
    return _sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hex()


def digest(content: bytes) -> str:
    """A SHA-256 in hexadecimal."""
    return _sha256(content).hex()


def _sha256(content: bytes) -> bytes:
    digest: bytes = _hasher()(content).digest()
    return digest


@functools.lru_cache(maxsize=1)
def _hasher() -> Callable[[bytes], Any]:
    """SHA-256 of Python's own, as ``random`` takes it: ``hashlib`` loads all of OpenSSL, which takes milliseconds."""
    for name in ("_sha2", "_sha256", "hashlib"):
        with contextlib.suppress(ImportError, AttributeError):
            hasher: Callable[[bytes], Any] = importlib.import_module(name).sha256
            return hasher
    raise ImportError("this Python has no SHA-256")


@functools.lru_cache(maxsize=1)
def _writer() -> str | None:
    """Names, sizes and dates of the files that turn a program into C: Python itself trusts the same of its modules."""
    runtime = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(runtime))
    seen = [root]
    folders = [os.path.join(root, layer) for layer in ("core", "codegen")]
    try:
        while folders:
            with os.scandir(folders.pop()) as items:
                for item in sorted(items, key=lambda item: item.name):
                    if item.name.endswith(WRITERS):
                        status = item.stat()
                        seen.append(f"{item.path}:{status.st_size}:{status.st_mtime_ns}")
                    elif item.is_dir() and item.name != "__pycache__":
                        folders.append(item.path)
    except OSError:  # not in files of their own
        return None
    return "\n".join(seen) if 1 < len(seen) else None


@functools.lru_cache(maxsize=1)
def _processor() -> str:
    """The processor that ``-march=native`` depends on: the features of the first processor, or the kind of machine."""
    machine = os.uname().machine
    try:
        with open("/proc/cpuinfo", "rb") as file:
            text = file.read(16 * 1024).decode("ascii", "replace")
    except OSError:
        return machine
    words = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part", "isa")
    lines = [line for line in text.split("\n\n")[0].splitlines() if line.startswith(words)]
    return machine + _sha256("\n".join(lines).encode()).hex()


def cache_folder() -> str | None:
    """The folder of the entries, made if need be; None where there is none that only this user can change."""
    chosen = os.environ.get("I_CACHE_DIR") or ""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    if chosen:
        root = chosen
    elif base and os.path.isabs(base):
        root = os.path.join(base, "i")
    else:
        home = os.path.expanduser("~")
        if not os.path.isabs(home):
            return None
        root = os.path.join(home, ".cache", "i")
    try:
        folder = os.path.join(os.path.abspath(root), f"compiled-{FORMAT}")
        return folders.own_folder(folder, "" if chosen else root)
    except (OSError, ValueError):
        return None


def _shared(folder: str, key: str, text: str, recipe: Recipe, load: Callable[[str], T]) -> T:
    """Load the entry, built first if it is not there or not whole. Raises OSError where the folder is of no use."""
    entry = os.path.join(folder, f"{key}.so")
    if is_whole(entry):
        with contextlib.suppress(OSError):  # removed just now to keep the cache small
            return _used(entry, load)
    with _turn(folder, key):
        if not is_whole(entry):  # nobody built it while we waited
            _store(folder, entry, text, recipe)
        return _used(entry, load)


def _used(entry: str, load: Callable[[str], T]) -> T:
    loaded = load(entry)
    _touch(entry)
    return loaded


def _touch(path: str) -> None:
    """Note that an entry, or a link itself, was used just now.

    A cache that is read-only forgets sooner what was used: no error.
    """
    with contextlib.suppress(OSError):
        os.utime(path, follow_symlinks=False)


def is_whole(entry: str) -> bool:
    """Whether a file is an entry as this user stored it: its own, no link, its trailer has the hash of the rest."""
    try:
        with open(os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not folders.is_own_file(os.fstat(file.fileno())):
                return False
            content = file.read()
    except OSError:
        return False
    body, trailer = content[:-TRAILER], content[-TRAILER:]
    return trailer == MAGIC + _sha256(body)


def content_of(path: str) -> bytes:
    """The compiled bytes, from an entry or as the compiler wrote them: for what the system does not load."""
    with open(path, "rb") as file:
        content = file.read()
    return content[:-TRAILER] if content[-TRAILER:].startswith(MAGIC) else content


def _store(folder: str, entry: str, text: str, recipe: Recipe) -> None:
    """Build an entry beside the others and put it in place in one step."""
    sweep_now = _count_store()
    if sweep_now:
        sweep(folder)
    with folders.temporary_folder(folder, recipe.is_kept) as work:
        try:
            content = toolchain.build(text, work, recipe)
        except ToolError as error:
            if error.code == "E0907":
                raise OSError(error.message) from error
            raise
        if not content.startswith(b"\x7fELF"):
            raise OSError("a trailer is known to be harmless for this format only")
        built = work / "entry.so"
        built.write_bytes(content + MAGIC + _sha256(content))
        built.chmod(0o600)
        built.replace(entry)


def _private(text: str, recipe: Recipe, load: Callable[[str], T]) -> T:
    """Build and load in a temporary folder that is gone afterwards: a loaded library needs its file no more."""
    try:
        with folders.temporary_folder(keep=recipe.is_kept) as work:
            toolchain.build(text, work, recipe)
            try:
                return load(str(work / "program.so"))
            except OSError as error:
                raise ToolError(
                    "E0908",
                    f"the compiled program cannot be loaded from {work}: {files.reason_of(error)}",
                    help="set I_CACHE_DIR or TMPDIR to a folder of your own on a file system that allows to run files",
                ) from None
    except OSError as error:
        place = f" ({error.filename})" if isinstance(error.filename, str) else ""
        raise no_folder(f"{files.reason_of(error)}{place}") from None


def no_folder(reason: str) -> ToolError:
    """The error where nothing can be compiled, since no folder takes files."""
    return ToolError(
        "E0907",
        f"there is no folder to compile in: {reason}",
        help="set TMPDIR to a folder of your own that can be written and has room",
    )


@contextlib.contextmanager
def _turn(folder: str, key: str) -> Iterator[None]:
    """Wait, for a while, until no other process or thread builds this entry (or one of its few neighbours)."""
    import fcntl

    with open(os.path.join(folder, f"lock-{key[:2]}"), "ab") as file:
        end, pause = time.monotonic() + LOCK_SECONDS, 0.001
        held = False
        while not held and time.monotonic() < end:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except BlockingIOError:
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
            except OSError:  # a file system without locks
                break
        try:
            yield
        finally:
            if held:  # explicitly: a process forked meanwhile holds the same open file
                fcntl.flock(file, fcntl.LOCK_UN)


_stored = 0


def _count_store() -> bool:
    """Whether it is time to look at the size of the cache: at the first entry, then now and then."""
    global _stored  # noqa: PLW0603 - a counter; nothing depends on its value but when to tidy up
    _stored += 1
    return _stored % SWEEP_EVERY == 1


def sweep(folder: str, most_bytes: int = MOST_BYTES) -> None:
    """Remove what killed processes left, and the entries not used for longest until ``most_bytes`` are left.

    Safe while others read: a loaded library keeps its file, and an entry that is gone is built again.
    """
    import shutil

    entries: list[tuple[float, int, str]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as items:
        for item in items:
            with contextlib.suppress(OSError):
                seen = item.stat(follow_symlinks=False)
                if item.name.startswith("building-"):
                    if STALE_SECONDS < time.time() - seen.st_mtime:
                        shutil.rmtree(item.path, ignore_errors=True)
                elif item.name.endswith(".so"):
                    entries.append((seen.st_mtime, seen.st_size, item.path))
                elif ".link" in item.name:
                    entries.append((seen.st_mtime, LINK_BYTES, item.path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= most_bytes:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
