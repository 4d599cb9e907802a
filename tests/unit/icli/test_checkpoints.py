"""Checkpoints beside training: which are written, in which order, and what becomes of trouble."""

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang.codegen.session.checkpoint import Checkpoint, read
from ilang.core.diagnostic import DataError
from ilang.icli import training
from ilang.icli.training import CheckpointWriter, Job, Training


def checkpoint(number: int) -> Checkpoint:
    return Checkpoint({"w": np.full(3, number, np.float32)}, {"definition": "f", "n": str(number)})


def test_of_several_that_wait_the_last_one_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, written = threading.Event(), threading.Event(), []

    def write(_place: str, _arrays: object, notes: Mapping[str, str]) -> None:
        begun.set()
        assert go_on.wait(300)
        written.append(notes["n"])

    monkeypatch.setattr(training, "write", write)
    writer = CheckpointWriter("place")
    writer.save(checkpoint(1))
    assert begun.wait(300)
    writer.save(checkpoint(2))
    writer.save(checkpoint(3))
    go_on.set()
    writer.flush()
    assert written == ["1", "3"]
    writer.save(checkpoint(4))
    writer.flush()
    assert written == ["1", "3", "4"]


def test_a_checkpoint_is_whole(tmp_path: Path) -> None:
    writer = CheckpointWriter(str(tmp_path / "c.safetensors"))
    writer.save(checkpoint(7))
    writer.flush()
    assert read(str(tmp_path / "c.safetensors")).arrays["w"].tolist() == [7, 7, 7]


def test_trouble_is_told_once(tmp_path: Path) -> None:
    writer = CheckpointWriter(str(tmp_path / "no" / "c.npz"))
    writer.save(checkpoint(1))
    with pytest.raises(DataError, match="E0731"):
        writer.flush()
    writer.flush()


class OneStep:
    """Batches and a session of one step an epoch."""

    count, size = 1, 4

    def __init__(self) -> None:
        self.saved: list[str] = []
        self.runs = 0

    def epoch(self, _number: int, start: int) -> Iterator[dict[str, Any]]:
        yield from [{}][start:]

    def __call__(self) -> float:
        self.runs += 1
        return 1.0 / self.runs

    def snapshot(self, notes: Mapping[str, str]) -> Checkpoint:
        self.saved.append(notes["steps"])
        return Checkpoint({}, {"definition": "f", **notes})


@pytest.mark.parametrize(("every", "saved"), [(1, "1234567"), (3, "367"), (7, "7"), (100, "7")])
def test_save_every(every: int, saved: str, tmp_path: Path) -> None:
    fake: Any = OneStep()
    place = str(tmp_path / "c.safetensors")
    job = Job(fake, fake, 7, place, None, None, debug=False, every=every)
    Training(job, None).run()
    assert "".join(fake.saved) == saved
    assert read(place).notes["steps"] == "7"
