"""Commands in forks of a process that has imported the command line, and computed nothing.

Each is a process, with a status, folder, environment and streams of its own; starting Python and importing what a
command uses take most of the time of a small one, and are done once.
"""

import atexit
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300  # for one command, a cold compile included
SERVES = "forkserver" in multiprocessing.get_all_start_methods()
"""Whether this platform has forks."""
PRELOADED = (
    *("cffi", "click", "numpy"),
    *(
        f"ilang.{path.relative_to(ROOT).with_suffix('').as_posix().replace('/', '.')}"
        for folder in ("core", "codegen", "icli")
        for path in sorted((ROOT / folder).rglob("[a-z]*.py"))
    ),
)
"""Every module, which does nothing when it is imported; what a command leaves in them ends with its fork."""


def run(
    words: Sequence[str | bytes],
    env: Mapping[str, str],
    cwd: str | Path | None = None,
    given: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run `i` on some words; its streams are files, of which standard input holds what is ``given``."""
    tokens = [os.fsdecode(word) for word in words]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").write_text(given, "utf-8", "backslashreplace")
        where = os.fspath(cwd) if cwd is not None else os.getcwd()  # noqa: PTH109 - a name
        process = context.Process(target=_command, args=(tokens, dict(env), where, name))
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(tokens, SECONDS)
        out, err = (
            (folder / each).read_text("utf-8", "backslashreplace") for each in ("out", "err")
        )
        return subprocess.CompletedProcess(tokens, process.exitcode, out, err)


def _command(words: list[str], variables: dict[str, str], where: str, folder: str) -> None:
    """Run one command in this process, which ends with it as if it had been started for it."""
    os.chdir(where)
    os.environ.clear()
    os.environ.update(variables)
    writes = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, (name, flags) in enumerate((("in", os.O_RDONLY), ("out", writes), ("err", writes))):
        file = os.open(os.path.join(folder, name), flags)  # noqa: PTH118 - as the line before
        os.dup2(file, number)
        os.close(file)
    # As Python has them where LC_ALL is C.UTF-8.
    sys.stdin = os.fdopen(0, "r", -1, "utf-8", "surrogateescape", closefd=False)
    sys.stdout = os.fdopen(1, "w", -1, "utf-8", "surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", -1, "utf-8", "backslashreplace", closefd=False)
    sys.argv = ["-c", *words]
    from ilang.icli.main import main

    try:
        status = main()
    except SystemExit as end:  # a process would end with it as well
        status = end.code if isinstance(end.code, int) else 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)
