"""Processes that run a program together through MPI: who starts them, and what each of them is."""

# Importing pathlib takes as long as explaining a program does.
# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ilang.core.diagnostic import ToolError

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array

MPIRUN = "mpirun"
INSTALL = "pip install 'ilang[mpi]' has both mpirun and mpi4py"
MARK = "\x1frank"
"""Stands before lines of ranks on standard error, beside which MPI says what it does."""
FAILURE = "\x1ffailure"
"""Stands there instead before lines of a rank that say why it ends."""
VARIABLE = "I_RANKS"
"""The environment variable by which a process knows that it is a rank."""


class Communicator:
    """The ranks of an MPI communicator (mpi4py)."""

    def __init__(self, communicator: Any) -> None:
        """For a communicator, ``MPI.COMM_WORLD`` for all processes."""
        self._communicator = communicator
        self.rank: int = communicator.Get_rank()
        self.size: int = communicator.Get_size()

    def total(self, array: Array) -> Array:
        """The sum over all ranks: MPI adds in one order for all of them."""
        result = np.empty_like(array)
        self._communicator.Allreduce(array, result)
        return result

    def abort(self, status: int) -> None:
        """End all ranks, with an exit status."""
        self._communicator.Abort(status)

    def others(self, array: Array) -> Array:
        """The sum over the other ranks, in their order."""
        every = np.empty((self.size, *array.shape), array.dtype)
        self._communicator.Allgather(array, every)
        every[self.rank] = 0
        result: Array = every.sum(axis=0, dtype=array.dtype)
        return result


def is_rank() -> bool:
    """Whether this process is one of those that ``launch`` started."""
    return VARIABLE in os.environ


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


def launch(count: int, tell: Callable[[str], None]) -> int:
    """Start this command once for each rank, and wait for all of them; the exit status.

    Args:
        count: how many ranks there are.
        tell: is given the lines that a rank says on standard error, of several ranks the first, and why one ends.

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
            others = relayed(process.stderr, tell)
        except KeyboardInterrupt:
            process.wait()
            raise
    if process.returncode:
        for line in others:
            tell(line)
    return process.returncode


def relayed(stream: IO[str], tell: Callable[[str], None]) -> list[str]:
    """Pass on what ranks say, of several the first, and why one ends; what MPI says where no rank says anything.

    The rank that ends first may be another than the one that spoke first. Messages of MPI may stand before the words of
    a rank, on one line.
    """
    first: dict[str, str] = {}
    others: list[str] = []
    for line in stream:
        before, *marked = re.split(f"(?={MARK}|{FAILURE})", line.rstrip("\n"))
        others += [before] if before or not marked else []
        for words in marked:
            mark, _, rest = words.partition(" ")
            if first.setdefault(mark.rstrip("0123456789"), mark) == mark:
                tell(rest)
    return [] if first else others[-20:]
