"""Stages of runs that ranks sum in: buckets cut them, and change no value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ilang import load
from ilang.codegen.project import steps
from ilang.codegen.project.sessions import exported, solved
from ilang.codegen.session.model import rows_of
from ilang.codegen.targets.session import EmittedSession
from ilang.core.machine import CPU
from ilang.core.record import replace

DEEP = """
op layer(x; hid) = tanh("w" * x + "b" hid)
op net(x) = "v" * layer(layer(layer(x; 3); 4); 5) + "c" 2
cd update(p; lr) { "velocity" =: 0.5 *. velocity + p.grad; p =- lr *. velocity }
cd step(x, t; lr = 0.1) {
  d = net(x) - t
  loss = d *. d ++ "...|... => 0"
  backprop(loss)
  for p in params(loss) { p.grad =+ p.grad.merge; update(p; lr) }
  "whole" =: loss + loss.merge
  return whole
}
"""
TWICE = """
cd step(x, t; lr = 0.1) {
  "mean" =:+ x ~logic:"b|i => i"
  mean =+ mean.merge
  "total" =:+ t ~logic:"b|i => i"
  total =+ total.merge
  d = "w" * (x - mean) + "b" 2 - (t - total)
  loss = d *. d ++ "...|... => 0"
  backprop(loss)
  for p in params(loss) { p.grad =+ p.grad.merge; p =- lr *. p.grad }
  return loss
}
"""
"""Sums that others wait for."""
SHAPES = {"x": "6|3", "t": "6|2"}


def bucketed(
    text: str, folder: Path, bucket_bytes: int | None, shapes: dict[str, str]
) -> EmittedSession:
    """A session whose sums are in buckets of so many bytes."""
    (folder / "model.i").write_text(text)
    rows = {name: rows_of(name, shape, words=True) for name, shape in shapes.items()}
    one = solved(load(folder / "model.i").model, "step", rows, {})
    _, (built,) = exported([one], replace(CPU, bucket_bytes=bucket_bytes))
    return built


def summed(session: EmittedSession) -> list[list[str]]:
    """What is summed over all ranks after each stage."""
    return [
        [name for each in stage.run.sums if not each.others for name in each.parts]
        for stage in session.stages
    ]


@pytest.mark.deep
@pytest.mark.parametrize("text", [DEEP, TWICE], ids=["deep", "twice"])
@pytest.mark.parametrize("bucket_bytes", [1, 8, 1 << 30])
def test_buckets_change_no_value(text: str, bucket_bytes: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    whole, cut = (bucketed(text, tmp_path, limit, SHAPES) for limit in (None, bucket_bytes))
    count, most = len(whole.stages), len(cut.stages)
    assert most == count if bucket_bytes == 1 << 30 else most > count
    given = {
        name: draw.standard_normal(dims).astype(np.float32)
        for name, dims in steps.tested_dims(whole).items()
    }
    once, apart = (
        steps._one(each, given | {k.name: steps.first_values(k, 3) for k in each.kept}, False)
        for each in (whole, cut)
    )
    names = [*whole.outputs, *(each.next for each in whole.kept if each.next)]
    for name in names:
        assert once[name].tobytes() == apart[name].tobytes(), name


def test_gradients_come_last_layer_first(tmp_path: Path) -> None:
    session = bucketed(DEEP, tmp_path, 1, SHAPES)
    names = [name for each in summed(session) for name in each]
    layers = [int(n.rpartition("_")[2]) for n in names if n.startswith("w_grad_merge_")]
    assert layers == [3, 2]
    assert names[:2] == ["c_grad_merge", "v_grad_merge"]
    assert names[-1] == "w_grad_merge"
    going = [
        each.overlaps for stage in session.stages for each in stage.run.sums if not each.others
    ]
    assert going == [True] * (len(going) - 1) + [False], "the last is waited for at once"
    assert [stage.run.ends_sums for stage in session.stages] == [False] * len(going) + [True]


def test_a_bucket_has_as_many_bytes_as_are_asked_for(tmp_path: Path) -> None:
    session = bucketed(DEEP, tmp_path, 50, SHAPES)
    sizes = {each.name: each.bytes() for each in session.kept}
    filled = [sum(sizes[name] for name in names) for names in summed(session) if names]
    assert all(50 <= each for each in filled[:-1])
    assert 1 < len(filled) < 8


def test_sizes_of_a_run_are_between_no_stages(tmp_path: Path) -> None:
    """What crosses from stage to stage is kept, and has sizes that are known: such runs are not cut further."""
    shapes = {"x": "n|3", "t": "n|2"}
    cut, whole = (bucketed(DEEP, tmp_path, bytes_, shapes) for bytes_ in (1, None))
    assert len(cut.stages) == len(whole.stages)
