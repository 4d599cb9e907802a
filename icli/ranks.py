"""Several processes that train together: the one that starts them, and each of them."""

# Importing pathlib takes as long as explaining a program does.
# ruff: noqa: PTH110

from __future__ import annotations

import os
from collections.abc import Callable

from ilang.codegen.session.mpi import FAILURE, MARK, launch, world
from ilang.codegen.session.step import Processes
from ilang.core.diagnostic import plain
from ilang.icli.failure import as_error
from ilang.icli.screen import Screen


def launched(count: int, place: str, screen: Screen) -> int:
    """Start this command once for each rank, and wait for all of them; the exit status."""
    status = launch(count, screen.note)
    if not status:
        return 0
    kept = f"{place} has the last checkpoint" if os.path.exists(place) else "there is no checkpoint"
    screen.note(f"a rank ended with status {status}, and the others with it; {kept}")
    return status if 0 < status < 126 else 1


def as_rank(count: int, work: Callable[[Processes, Screen], int]) -> int:
    """Do the work of one rank; where it fails, all of them end."""
    ranks = world(count)
    screen = _Marked(ranks.rank)
    try:
        return work(ranks, screen)
    except BaseException as failure:
        error = as_error(failure)
        screen.fail(plain(error))
        ranks.abort(error.status)
        raise


class _Marked(Screen):
    """A screen for what a rank says beside results, each line marked with its number."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self._rank = rank

    def note(self, text: str) -> None:
        """Write lines for the process that started this one."""
        self._say(MARK, text)

    def fail(self, text: str) -> None:
        """Write lines that say why this rank ends."""
        self._say(FAILURE, text)

    def _say(self, mark: str, text: str) -> None:
        super().note("\n".join(f"{mark}{self._rank} {line}" for line in text.split("\n")))
