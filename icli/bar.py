"""The bar of training on a terminal: the last epoch, and below it steps, speed, loss and the time that is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from ilang.icli.screen import is_terminal
from ilang.icli.training import EpochLines, epoch_text

if TYPE_CHECKING:
    from ilang.icli.screen import Screen
    from ilang.icli.training import Epoch

EVERY = 0.1
"""Seconds between two changes of the bar."""


class _EpochAndBar(Progress):
    """A bar with a line above it, which may be empty."""

    line = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """The line, then the bar."""
        if self.line:
            yield Text(self.line)
        yield from super().get_renderables()


class Bar(EpochLines):
    """The line of the last epoch and a bar on standard error; the last line stays when all is done.

    Where results go elsewhere, each epoch has its line there.
    """

    def __init__(self, screen: Screen, epochs: int, steps: int, done: int, size: int) -> None:
        """For so many steps of batches of some size, a part of them done before."""
        super().__init__(screen, epochs)
        self._size = size
        self._done, self._began, self._shown = done, time.perf_counter(), 0.0
        self._progress = _EpochAndBar(
            TextColumn("step {task.completed:.0f} of {task.total:.0f}"),
            BarColumn(),
            TextColumn("{task.fields[says]}"),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self._task = self._progress.add_task("", total=steps, completed=done, says="")
        self._progress.start()

    def step(self, done: int, loss: float | None) -> None:
        """Move the bar."""
        now = time.perf_counter()
        if now - self._shown < EVERY:
            return
        self._shown = now
        speed = (done - self._done) * self._size / (now - self._began)
        says = f"{speed:,.0f} examples/s" + ("" if loss is None else f"   loss {loss:.4g}")
        self._progress.update(self._task, completed=done, says=says)

    def epoch(self, epoch: Epoch) -> None:
        """Let the line of an epoch take the place of that before; where results go elsewhere, write it there."""
        if not is_terminal(sys.stdout):
            super().epoch(epoch)
            return
        speed = f"{epoch.examples / epoch.seconds:,.0f} examples/s"
        self._progress.line = f"{epoch_text(epoch, self._epochs)}   {speed}"

    def close(self) -> None:
        """Take the bar away, and leave the line of the last epoch."""
        self._progress.stop()
        if self._progress.line:
            self._screen.write(f"{self._progress.line}\n")
