"""Sessions used by several threads, and after a fork: each run counts once, and all that is read is of one run."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import Error, load
from ilang.codegen.session.checkpoint import read
from tests.property.session_attacks import COUNTER, THREADS

pytestmark = pytest.mark.usefixtures("shared_cache")


@pytest.fixture
def module(tmp_path: Path) -> Any:
    (tmp_path / "m.i").write_text(COUNTER, "utf-8")
    return load(tmp_path / "m.i")


def in_threads(*works: Callable[[], object]) -> None:
    """Call functions at once, each in a thread of its own; what one raises is raised here."""
    failures: list[BaseException] = []
    ready = threading.Barrier(len(works))

    def guarded(work: Callable[[], object]) -> None:
        ready.wait()
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize(("target", "runs"), [("c", 500), ("numpy", 20)])
def test_each_run_counts_once(module: Any, target: str, runs: int) -> None:
    session = module.session("count", {"x": "2"}, target=target)
    x = np.array([1, 3], np.float32)
    seen: list[float] = []

    def work() -> None:
        for _ in range(runs):
            y, n = session(x)
            assert y.tolist() == [n.item(), 3 * n.item()]
            seen.append(n.item())

    in_threads(*[work] * THREADS)
    assert sorted(seen) == list(range(1, THREADS * runs + 1))
    assert session.runs == THREADS * runs
    assert session.state["twice"].item() == 2 * THREADS * runs


def test_the_first_runs_are_whole_as_well(module: Any) -> None:
    for session in [module.session("count") for _ in range(5)]:
        in_threads(*[partial(session, np.ones((1, 2), np.float32))] * THREADS)
        assert session.state["n"].item() == THREADS


def test_what_is_saved_and_loaded_is_of_one_run(module: Any, tmp_path: Path) -> None:
    session = module.session("count", {"x": "2"})
    session.save(tmp_path / "first.npz")

    def run() -> None:
        for _ in range(300):
            session(np.ones(2, np.float32))

    def save() -> None:
        place = tmp_path / f"{threading.get_ident()}.npz"
        for _ in range(20):
            session.save(place)
            saved = read(str(place))
            n, twice = saved.arrays["state.n"].item(), saved.arrays["state.twice"].item()
            assert (int(saved.notes["runs"]), twice) == (n, 2 * n)

    def restart() -> None:
        for _ in range(20):
            session.load(tmp_path / "first.npz")

    in_threads(run, run, save, save, restart)
    assert session.state["twice"].item() == 2 * session.state["n"].item() == 2 * session.runs


def test_sessions_that_share_parameters_take_turns(module: Any) -> None:
    one = module.session("add", {"x": "2|1"})
    other = module.session("add", {"x": "3|1"}, parameters=one)
    reader = module.session("sum_of", {"x": "1"}, parameters=one)

    def add(session: Any, extent: int) -> None:
        for _ in range(200):
            session(np.ones((extent, 1), np.float32))

    def look() -> None:
        for _ in range(200):
            seen = reader(np.ones(1, np.float32)).item()
            assert seen % 2 == 0, "u and v are of one run"

    in_threads(lambda: add(one, 2), lambda: add(other, 3), lambda: add(other, 3), look)
    assert one.parameters["sum_of.u"].item() == one.parameters["sum_of.v"].item() == 600


def test_parameters_that_are_shared_keep_their_place(module: Any) -> None:
    one = module.session("add")
    other = module.session("sum_of", {"x": "1"}, parameters=one)
    one(np.ones(1, np.float32))
    assert other.parameters["u"].item() == 1
    again = module.session("add")
    module.session("sum_of", {"x": "1"}, parameters=again)
    with pytest.raises(Error, match=r"u has shape \(1,\) and is shared, .* give it \(2,\)"):
        again(np.ones((4, 2), np.float32))


@pytest.mark.deep
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_fork_finds_sessions_between_two_runs(module: Any) -> None:
    session = module.session("count", {"x": "2"})
    x = np.ones(2, np.float32)
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            session(x)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        statuses = [_child(session, x) for _ in range(40)]
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not any(statuses)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.parametrize("target", ["c", "numpy", "cuda-emulated"])
@pytest.mark.parametrize("before", [0, 2])
def test_a_forked_child_has_the_session_for_itself(
    module: Any, target: str, before: int, tmp_path: Path
) -> None:
    session = module.session("count", {"x": "2"}, target=target)
    x = np.array([1, 3], np.float32)
    for _ in range(before):
        session(x)

    def runs() -> None:
        answers = [session(x) for _ in range(5)]
        assert [n.item() for _, n in answers] == [before + n for n in range(1, 6)]
        in_threads(*[partial(session, x)] * 3)
        assert _status(lambda: session(x)) == 0
        session.save(tmp_path / "child.npz")

    assert _status(runs) == 0
    saved = read(str(tmp_path / "child.npz"))
    assert (int(saved.notes["runs"]), saved.arrays["state.n"].item()) == (before + 8, before + 8)
    assert session.runs == before
    y, n = session(x)
    assert (n.item(), y.tolist()) == (before + 1, [before + 1, 3 * (before + 1)])


def _status(work: Callable[[], object]) -> int:
    """The status of a fork that does some work: 0 where it raises nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of 3.12: there are other threads
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def _child(session: Any, x: Any) -> int:
    """The status of a fork that looks at a session and runs it once."""

    def run() -> None:
        before = session.state["n"].item()
        assert session.state["twice"].item() == 2 * before == 2 * session.runs
        assert session(x)[1].item() == before + 1

    return _status(run)


def test_what_is_given_twice_is_refused(module: Any) -> None:
    session = module.session("count", {"x": "2"})
    x = np.ones(2, np.float32)
    with pytest.raises(Error, match="x of count is given by name, and in order as array 1"):
        session(x, x=2 * x)
    assert session.runs == 0


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, "1", None])
def test_seeds_that_are_none_are_refused(module: Any, seed: Any) -> None:
    with pytest.raises(Error, match="the seed is a whole number from 0 to 2\\^64 - 1"):
        module.session("count", seed=seed)


def test_every_seed_gives_other_numbers(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text('op f(x) = "w" *. x\n', "utf-8")
    library = load(tmp_path / "m.i")
    seeds = (0, 1, 2**32, 2**63, 2**64 - 1, np.uint64(5), True)
    values = {library.session("f", {"x": "9"}, seed=s).parameters["w"].tobytes() for s in seeds}
    assert len(values) == len(seeds) - 1, "True is 1"


def test_whole_numbers_that_a_float_has_not_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text('op f(x) = x + "w" 3\nop g(x: f64) = x + "w" 3\n', "utf-8")
    library = load(tmp_path / "m.i")
    f, g = library.session("f", {"x": "3"}), library.session("g", {"x": "3"})
    exact = [2**24, -(2**24), 2**62]
    assert f(exact).tolist() == exact
    assert g([2**53, -1, 2**62]).tolist() == [2**53, -1, 2**62]
    for session, number in ((f, 2**24 + 1), (f, 2**63 - 1), (g, 2**53 + 1), (g, 2**63 - 1)):
        with pytest.raises(Error, match=f"has {number}, which f(32|64) has not"):
            session([0, number, 1])
        with pytest.raises(Error, match=f"has {number}, which f(32|64) has not"):
            session.parameters["w"] = [0, number, 1]
