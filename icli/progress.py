"""Progress of training: a line for each epoch. On a terminal there is a bar instead (``bar.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ilang.icli.training import Epoch

if TYPE_CHECKING:
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
