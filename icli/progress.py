"""Progress of training: a line for each epoch, and on a terminal a bar with loss, speed and the time that is left."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from ilang.icli.screen import is_terminal
from ilang.icli.training import Epoch

if TYPE_CHECKING:
    from rich.progress import Progress

    from ilang.icli.screen import Screen


class EpochLines:
    """A line for each epoch, as a result."""

    def __init__(self, screen: Screen, epochs: int) -> None:
        """For so many epochs."""
        self._screen = screen
        self._epochs = epochs

    def step(self, done: int, loss: float | None) -> None:
        """Nothing is said of steps."""

    def epoch(self, epoch: Epoch) -> None:
        """Write a line."""
        self._screen.write(epoch_text(epoch, self._epochs) + "\n")


def epoch_text(epoch: Epoch, epochs: int) -> str:
    """An epoch in one line."""
    parts = [f"epoch {epoch.number} of {epochs}"]
    if epoch.loss is not None:
        parts.append(f"loss {epoch.loss:.6g}")
    if epoch.held_back is not None:
        parts.append(f"held back {epoch.held_back:.6g}")
    return "   ".join(parts)


class Nothing:
    """Says nothing: of several ranks one speaks."""

    def step(self, done: int, loss: float | None) -> None:
        """Nothing is said of steps."""

    def epoch(self, epoch: Epoch) -> None:
        """Nothing is said of epochs."""


class Bar(EpochLines):
    """Lines of epochs, and a bar below them on standard error, ten times a second at most."""

    def __init__(self, screen: Screen, epochs: int, steps: int, done: int, size: int) -> None:
        """For so many steps of batches of some size, a part of them done before."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        super().__init__(screen, epochs)
        self._size = size
        self._done, self._began, self._shown = done, time.perf_counter(), 0.0
        self._progress: Progress = Progress(
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
        if now - self._shown < 0.1:
            return
        self._shown = now
        speed = (done - self._done) * self._size / (now - self._began)
        says = f"{speed:,.0f} examples/s" + ("" if loss is None else f"   loss {loss:.4g}")
        self._progress.update(self._task, completed=done, says=says)

    def epoch(self, epoch: Epoch) -> None:
        """Write a line above the bar; where results go elsewhere, as a result."""
        if not is_terminal(sys.stdout):
            super().epoch(epoch)
            return
        text = (
            f"{epoch_text(epoch, self._epochs)}   {epoch.examples / epoch.seconds:,.0f} examples/s"
        )
        self._progress.console.print(text, highlight=False)

    def close(self) -> None:
        """Take the bar away."""
        self._progress.stop()
