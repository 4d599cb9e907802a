"""Sessions of several ranks: threads of one process that meet, and add up what they have."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import Error, load

pytestmark = pytest.mark.usefixtures("shared_cache")

STEP = """
op layer(x; hid) = ?/("w" * x + "b" hid)
op mlp(x) = "v" * layer(x; 6) + "c" 2
op half_squares(p, t) { d = p - t; 0.5 *. (d *. d ++ "...|... => 0") }
cd update(p; lr) { p =- lr *. p.grad }
cd step(x, t; lr = 0.1) {
  loss = half_squares(mlp(x), t)
  backprop(loss)
  for p in params(loss) {
    MERGE
    update(p; lr = lr)
  }
  "whole" =: loss
  whole =+ whole.merge
  return whole
}
"""
SUM = "p.grad =+ p.grad.merge"
PARTS = {
    "sum": SUM,
    "others": '"all" =: p.grad + p.grad.merge; p.grad =: all',
    "parts": "p.grad =: p.grad + p.grad.merge",
}


class Team:
    """Threads that meet after each of them has given an array."""

    def __init__(self, size: int) -> None:
        self.arrays: list[Any] = [None] * size
        self.barrier = threading.Barrier(size)

    def gathered(self, rank: int, array: Any) -> list[Any]:
        self.arrays[rank] = array.copy()
        self.barrier.wait(60)
        arrays = list(self.arrays)
        self.barrier.wait(60)
        return arrays


class Member:
    """One rank of a team."""

    def __init__(self, team: Team, rank: int) -> None:
        self.team, self.rank, self.size = team, rank, len(team.arrays)

    def total(self, array: Any) -> Any:
        first, *rest = self.team.gathered(self.rank, array)
        return sum(rest, first)

    def others(self, array: Any) -> Any:
        arrays = self.team.gathered(self.rank, array)
        return sum((each for n, each in enumerate(arrays) if n != self.rank), np.zeros_like(array))


def together(size: int, run: Callable[[Member], Any]) -> list[Any]:
    """What each rank gives."""
    team = Team(size)
    results: list[Any] = [None] * size

    def one(rank: int) -> None:
        try:
            results[rank] = run(Member(team, rank))
        except BaseException:
            team.barrier.abort()
            raise

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def trained(path: Path, x: Any, t: Any, target: str, ranks: Any) -> tuple[list[float], Any]:
    rows = len(x)
    s = load(path).session(
        "step", {"x": f"{rows}|3", "t": f"{rows}|2"}, seed=4, ranks=ranks, target=target
    )
    losses = [float(s(x=x, t=t)[0]) for _ in range(4)]
    return losses, {path: array.copy() for path, array in s.parameters.items()}


@pytest.mark.deep
@pytest.mark.parametrize("target", ["c", "numpy"])
@pytest.mark.parametrize("merge", sorted(PARTS))
@pytest.mark.parametrize("size", [2, 3])
def test_ranks_train_as_one_does(size: int, merge: str, target: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    x, t = draw.standard_normal((12, 3), np.float32), draw.standard_normal((12, 2), np.float32)
    path = tmp_path / "model.i"
    path.write_text(STEP.replace("MERGE", PARTS[merge]), encoding="utf-8")
    losses, parameters = trained(path, x, t, target, None)
    assert losses[-1] < losses[0]
    share = 12 // size

    def one(member: Member) -> tuple[list[float], Any]:
        mine = slice(member.rank * share, (member.rank + 1) * share)
        return trained(path, x[mine], t[mine], target, member)

    every = together(size, one)
    for got, after in every:
        np.testing.assert_allclose(got, losses, rtol=1e-5)
        for name, values in after.items():
            np.testing.assert_allclose(values, parameters[name], rtol=1e-4, atol=1e-6)
    if merge == "sum":
        first = every[0][1]
        assert all((after[name] == first[name]).all() for _, after in every for name in first)


class Alone:
    rank, size = 0, 2


@pytest.mark.parametrize("merge", ["", "p.grad =* 2", '"all" =: p.grad.merge; all =- all'])
def test_a_gradient_of_one_rank_alone_updates_nothing(merge: str, tmp_path: Path) -> None:
    path = tmp_path / "model.i"
    path.write_text(STEP.replace("MERGE", merge), encoding="utf-8")
    with pytest.raises(Error) as caught:
        load(path).session("step", {"x": "4|3", "t": "4|2"}, ranks=Alone())
    assert caught.value.code == "E0285"
    assert "p.grad =+ p.grad.merge" in str(caught.value)


def test_what_a_function_keeps_of_a_share_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.i"
    path.write_text(
        'op f(x) { "n" =: n + 1; "m" =: (x ++ "b|i => i"); x - m *. n }\n', encoding="utf-8"
    )
    with pytest.raises(Error) as caught:
        load(path).session("f", {"x": "4|3"}, ranks=Alone())
    assert caught.value.code == "E0285"
    assert "`m`" in str(caught.value)


def test_ranks_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "model.i"
    path.write_text('cd f(x) { "c" =: x / ranks ~logic:"."; return c }\n', encoding="utf-8")
    x = np.ones(3, np.float32)
    assert load(path).session("f", {"x": "3"})(x).tolist() == [1, 1, 1]
    assert load(path).session("f", {"x": "3"}, ranks=Alone())(x).tolist() == [0.5] * 3


def test_a_sum_has_the_type_of_what_is_summed(tmp_path: Path) -> None:
    path = tmp_path / "model.i"
    path.write_text(
        'cd f(x: i64) { "h" =: x; h =+ h.merge; "k" =: max(h, 3); k =+ k.merge; return h, k }\n'
    )
    x = np.array([2**40, 1])
    for h, k in together(2, lambda rank: load(path).session("f", {"x": "2"}, ranks=rank)(x)):
        assert h.dtype == k.dtype == np.int64
        assert (h.tolist(), k.tolist()) == ([2**41, 2], [2**42, 6])


def test_of_one_rank_others_have_zeros(tmp_path: Path) -> None:
    """Of the shape and the type of what they would have summed, whatever it is."""
    path = tmp_path / "model.i"
    path.write_text(
        'cd f(x: i64, y) { "a" =: x.merge; "b" =: y + y.merge; return a, y.merge, b }\n'
    )
    x, y = np.arange(3), np.array([[np.nan, 1], [2, np.inf]], np.float32)
    zeros, floats, same = load(path).session("f", {"x": "3", "y": "2,2"})(x, y)
    assert zeros.dtype == np.int64
    assert zeros.tolist() == [0] * 3
    assert floats.tolist() == [[0] * 2] * 2
    np.testing.assert_array_equal(same, y)


NORMALISED = """
cd f(x; rows = 12) {
  "mean" =:+ x ~logic:"b,i => i"
  mean =+ mean.merge
  mean =/ rows
  d = x - mean
  "var" =:+ d * d ~logic:"b,i; b,i => i"
  var =+ var.merge
  both = einx.id("b i, b j -> b (i + j)")(d, d)
  "last" =:+ both ~logic:"b,j => j"
  last =+ last.merge
  return d, var, last
}
"""


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_sum_may_wait_for_another(size: int, tmp_path: Path) -> None:
    path = tmp_path / "model.i"
    path.write_text(NORMALISED, encoding="utf-8")
    x = np.random.default_rng(1).standard_normal((12, 3)).astype(np.float32)
    share = 12 // size

    def one(member: Member) -> Any:
        mine = x[member.rank * share :][:share]
        return load(path).session("f", {"x": f"{share},3"}, ranks=member)(mine)

    every = together(size, one)
    d = x - x.mean(axis=0)
    np.testing.assert_allclose(np.concatenate([got[0] for got in every]), d, rtol=1e-4, atol=1e-6)
    for got in every:
        np.testing.assert_allclose(got[1], (d * d).sum(axis=0), rtol=1e-4)
        np.testing.assert_allclose(got[2], np.tile(d.sum(axis=0), 2), atol=1e-5)
