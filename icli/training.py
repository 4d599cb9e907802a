"""Training: steps over batches for some epochs, checkpoints, held-back data, what is said and logged of it."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.session.checkpoint import write
from ilang.codegen.system.outputs import FileKind, begins_with
from ilang.core.diagnostic import DataError
from ilang.core.record import entity, record

if TYPE_CHECKING:
    from ilang.codegen.session.batches import Batches
    from ilang.codegen.session.checkpoint import Checkpoint
    from ilang.codegen.session.session import Session
    from ilang.icli.screen import Screen


LOG = FileKind("a log of `i train`", begins_with(b'{"step": ', b'{"epoch": '), True)
"""The kind of the file that has a line of JSON for each step and each epoch."""


@record
class Epoch:
    """The result of one epoch: its number from 1 on, the mean loss of its batches, that of held-back data, its time."""

    number: int
    loss: float | None
    held_back: float | None
    seconds: float
    examples: int


@entity
class Job:
    """A job of training: what to train, on what, for how long; where checkpoints go.

    ``held_back`` gives the loss of held-back data; ``debug`` looks for the expression that a loss that is no number
    comes from. ``speaks`` is whether this process writes checkpoints and logs: of several ranks one does. A checkpoint
    is written after each ``every`` epochs, and after the last one.
    """

    session: Session
    batches: Batches
    epochs: int
    place: str
    held_back: Callable[[], float | None] | None
    log: IO[str] | None
    debug: bool
    speaks: bool = True
    every: int = 1


class StoppedError(Exception):
    """Training was interrupted; everything up to the last step is in the checkpoint."""


def loss_of(answer: Any) -> float | None:
    """The loss that a run returns: its first output, the mean of several elements; None where it returns nothing."""
    first = answer[0] if isinstance(answer, tuple) else answer
    return None if first is None else float(np.mean(first))


def loss_on(
    session: Session, batches: Batches, batch: Mapping[str, Any], option: str = "--data"
) -> float | None:
    """The loss of a run on a batch. Raises: DataError E0746, with the place in the data of what is no index."""
    try:
        return loss_of(session(**batch))
    except DataError as error:
        if error.element is None or error.element[0] not in batch:
            raise
        place, refusal = batches.place(batch, *error.element), error.message.partition(" is ")[2]
        message = f"{place} of {option} is {refusal}"
        raise DataError(error.code, message, error.span, error.help, error.labels) from None


def wrong_in_data(
    message: str, session: Session, batches: Batches, batch: Mapping[str, Any]
) -> DataError | None:
    """The error for a loss that is no number where an element of a batch is why; None where none is."""
    from ilang.codegen.session.not_finite import cause_in_data

    data = batches.not_finite(batch) or cause_in_data(session, batch, batches)
    if not data:
        return None
    help_line = "mend the data, or leave such examples out"
    return DataError("E0763", f"{message}: in the data {data}", help=help_line)


class Training:
    """One job under way. ``losses`` and ``held_back`` have what was seen, by step."""

    def __init__(self, job: Job, report: EpochLines | None, done: int = 0) -> None:
        """After so many steps that were done before; ``report`` is told of each step and each epoch."""
        self.job = job
        self.report = report
        self.done = done
        self.losses: list[tuple[float, float]] = []
        self.held_back: list[tuple[float, float]] = []
        self._stop = False
        self._writer = CheckpointWriter(job.place)

    def run(self) -> None:
        """Train to the end.

        Raises:
            StoppedError: interrupted, after the checkpoint is written. DataError: E0763 (a loss that is no number).
        """
        batches = self.job.batches
        first, within = divmod(self.done, batches.count)
        with self._interruptible():
            try:
                for epoch in range(first, self.job.epochs):
                    self._epoch(epoch, within if epoch == first else 0)
            except BaseException:
                with suppress(DataError):  # what ended training is told
                    self._writer.flush()
                raise
            self._writer.flush()

    def _epoch(self, number: int, start: int) -> None:
        job, losses = self.job, []
        began = time.perf_counter()
        for batch in job.batches.epoch(number, start):
            loss = self._step(batch, number)
            self.done += 1
            if loss is not None:
                losses.append(loss)
                self.losses.append((self.done, loss))
                self._log({"step": self.done, "epoch": number + 1, "loss": loss})
            if self.report is not None:
                self.report.step(self.done, loss)
            if self._stop:
                self.save()
                self._writer.flush()
                raise StoppedError
        held_back = job.held_back() if job.held_back is not None else None
        if held_back is not None:
            self.held_back.append((self.done, held_back))
        mean = sum(losses) / len(losses) if losses else None
        examples = (job.batches.count - start) * job.batches.size
        if (number + 1) % job.every == 0 or number + 1 == job.epochs:
            self.save()
        seconds = time.perf_counter() - began
        entry = {"epoch": number + 1, "loss": mean, "held_back": held_back, "seconds": seconds}
        self._log({key: value for key, value in entry.items() if value is not None})
        if self.report is not None:
            self.report.epoch(Epoch(number + 1, mean, held_back, seconds, examples))

    def _step(self, batch: Mapping[str, Any], epoch: int) -> float | None:
        session = self.job.session
        before = (dict(session.parameters), dict(session.state)) if self.job.debug else None
        loss = loss_on(session, self.job.batches, batch)
        if loss is None or math.isfinite(loss):
            return loss
        raise self._refusal(
            f"the loss is {loss} at step {self.done + 1}, in epoch {epoch + 1}", batch, before
        )

    def _refusal(self, message: str, batch: Mapping[str, Any], before: Any) -> DataError:
        """The error for a loss that is no number: with the data, or the expression, that it comes from."""
        from ilang.codegen.session.not_finite import first_not_finite

        wrong = wrong_in_data(message, self.job.session, self.job.batches, batch)
        if wrong is not None:
            return wrong
        if before is None:
            return DataError(
                "E0763", message, help="--debug-nan finds the expression where it appears first"
            )
        cause = first_not_finite(self.job.session, batch, *before)
        if cause is None:
            help_line = "the reference evaluator, with another order of additions, gives a number"
            return DataError("E0763", message, help=help_line)
        node, elements = cause
        return DataError("E0763", f"{message}; it appears first here", node.span, elements)

    def save(self) -> None:
        """Have a checkpoint written: where training is, beside parameters and state."""
        if self.job.speaks:
            notes = {"steps": str(self.done), "batches": str(self.job.batches.count)}
            self._writer.save(self.job.session.snapshot(notes))

    def flush(self) -> None:
        """Wait until every checkpoint is written."""
        self._writer.flush()

    def _log(self, entry: Mapping[str, object]) -> None:
        if self.job.log is not None:
            self.job.log.write(json.dumps(entry) + "\n")
            self.job.log.flush()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C stops after the step that runs; the second time at once."""

        def stop(*_: object) -> None:
            self._stop = True
            signal.signal(signal.SIGINT, before)

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


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
        parts.append(f"validation {epoch.held_back:.6g}")
    return "   ".join(parts)


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
