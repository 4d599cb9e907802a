"""Checkpoints that a thread writes while training goes on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ilang.codegen.session.checkpoint import write

if TYPE_CHECKING:
    from ilang.codegen.session.checkpoint import Checkpoint


class CheckpointWriter:
    """Writes checkpoints to one place, one after the other; of several that wait, the last one alone.

    What goes wrong is raised by the next call of ``save`` or ``flush``.
    """

    def __init__(self, place: str) -> None:
        """Nothing is written yet, and no thread runs."""
        self._place = place
        self._waiting: Checkpoint | None = None
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def save(self, checkpoint: Checkpoint) -> None:
        """Have a checkpoint written soon. Raises: DataError E0731, E0732, E0768 (of an earlier one)."""
        self._raise_failure()
        with self._lock:
            self._waiting = checkpoint
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="ilang-checkpoints")
                self._thread.start()

    def flush(self) -> None:
        """Wait until everything is written. Raises: DataError E0731, E0732, E0768."""
        thread = self._thread
        if thread is not None:
            thread.join()
        self._raise_failure()

    def _write(self) -> None:
        """Write what waits, until nothing does."""
        while True:
            with self._lock:
                checkpoint, self._waiting = self._waiting, None
                if checkpoint is None:
                    self._thread = None
                    return
            try:
                write(self._place, checkpoint.arrays, checkpoint.notes)
            except BaseException as failure:
                self._failure = failure

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
