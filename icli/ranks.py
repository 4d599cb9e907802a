"""Several processes that train together, through MPI: who starts them, and what each of them is."""

# Importing pathlib takes as long as explaining a program does.
# ruff: noqa: PTH110, PTH118, PTH120

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import IO

from ilang.codegen.runtime.phased import Communicator, Ranks
from ilang.core.diagnostic import ToolError, plain
from ilang.icli.failure import as_error
from ilang.icli.screen import Screen

MPIRUN = "mpirun"
INSTALL = "pip install 'ilang[mpi]' has both"


def launched(count: int, place: str, screen: Screen) -> int:
    """Start this command once for each rank, and wait for all of them; the exit status of the first that fails.

    Raises:
        ToolError: E0924 (no mpirun).
    """
    beside = os.path.join(os.path.dirname(sys.executable), MPIRUN)
    program = beside if os.access(beside, os.X_OK) else shutil.which(MPIRUN)
    if program is None:
        raise ToolError("E0924", "ranks run on MPI, and there is no mpirun", help=INSTALL)
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    command = [program, *as_root, "--oversubscribe", "-n", str(count)]
    command += [sys.executable, "-m", "ilang", *sys.argv[1:]]
    environment = {**os.environ, VARIABLE: str(count)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            others = _relayed(process.stderr, screen)
        except KeyboardInterrupt:
            process.wait()
            raise
    if not process.returncode:
        return 0
    for line in others:
        screen.note(line)
    where = (
        f"{place} has the last checkpoint"
        if os.path.exists(place)
        else "there is no checkpoint yet"
    )
    screen.note(f"a rank ended with status {process.returncode}, and the others with it; {where}")
    return process.returncode if 0 < process.returncode < 126 else 1


def _relayed(stream: IO[str], screen: Screen) -> list[str]:
    """Pass on what ranks say, of several the first; what MPI says where no rank says anything."""
    first, others = None, []
    for line in stream:
        mark, _, rest = line.rstrip("\n").partition(" ")
        if not mark.startswith(MARK):
            others.append(line.rstrip("\n"))
            continue
        first = mark if first is None else first
        if mark == first:
            screen.note(rest)
    return [] if first is not None else others[-20:]


def is_rank() -> bool:
    """Whether this process is one of those that ``launched`` started."""
    return VARIABLE in os.environ


def as_rank(count: int, work: Callable[[Ranks, Screen], int]) -> int:
    """Do the work of one rank; where it fails, all of them end."""
    ranks = world(count)
    screen = _Marked(ranks.rank)
    try:
        return work(ranks, screen)
    except BaseException as failure:
        error = as_error(failure)
        screen.note(plain(error))
        ranks.abort(error.status)
        raise


class _Marked(Screen):
    """What a rank says beside results, each line marked with its number."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self._mark = f"{MARK}{rank}"

    def note(self, text: str) -> None:
        """Write lines for the process that started this one."""
        super().note("\n".join(f"{self._mark} {line}" for line in text.split("\n")))


MARK = "\x1frank"
"""Stands before lines of ranks on standard error, beside which MPI says what it does."""
VARIABLE = "I_RANKS"
"""The environment variable by which a process knows that it is a rank."""


def world(count: int) -> Communicator:
    """The ranks that this process is one of.

    Raises:
        ToolError: E0924 (no mpi4py, or another number of processes).
    """
    try:
        from mpi4py import MPI
    except ImportError:
        raise ToolError("E0924", "ranks run on MPI, and there is no mpi4py", help=INSTALL) from None
    ranks = Communicator(MPI.COMM_WORLD)
    if ranks.size != count:
        message = f"MPI runs {ranks.size} processes, and --ranks asks for {count}"
        raise ToolError("E0924", message, help="leave mpirun to `i train --ranks`")
    return ranks
