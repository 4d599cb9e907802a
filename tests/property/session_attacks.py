"""Sessions under attack: ``python tests/property/session_attacks.py --seed 7 --count 20``.

Each attack is drawn from its seed. Several threads run, share, save, read and fork sessions at once; and one thread is
interrupted at random moments. Each run counts once or not at all, what is read is of one run, and what is saved is
whole.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from ilang import i, load  # noqa: E402 - found through the line above
from ilang.codegen.session.checkpoint import read  # noqa: E402 - as above

COUNTER = """
op one(x[1]) = x
cd count(x[..b..|i]) {
  "n" =+ one(1)
  "twice" =+ one(2)
  y = n *+ "0; ...|i => ...|i" x
  return y, n
}
op sum_of(x) = "u" 0.0 *. x + "v" 0.0
cd add(x; by = 1) {
  y = sum_of(x)
  for p in params(y) { p =+ by }
  return y
}
"""
THREADS = 8
SOONEST, LATEST = 2e-5, 4e-3
"""Seconds until an interruption."""
AGAIN = 0.5
"""Seconds until another one, for those that Python ignores: in what it calls as an object goes."""


class Attacked:
    """Sessions that are attacked, and what each run of them gave."""

    def __init__(self, folder: Path, target: str) -> None:
        """Sessions of one file: a counter, and several that share two parameters."""
        (folder / "m.i").write_text(COUNTER, "utf-8")
        self.folder, self.target = folder, target
        self.library: Any = load(folder / "m.i")
        self.counter = self.library.session("count", {"x": "2"}, target=target)
        self.adder = self.library.session("add", {"x": "2|1"}, target=target)
        self.other = self.library.session("add", {"x": "3|1"}, parameters=self.adder)
        self.reader = self.library.session("sum_of", {"x": "1"}, parameters=self.adder)
        self.product = i("ij*j~ij >> +ij~i")
        self.seen: list[float] = []
        self.added: list[int] = []
        self.common = folder / "common.npz"

    def actions(self) -> list[Callable[[], None]]:
        """All that a thread may do; runs are the most frequent."""
        runs = [self.run] * 6 + [self.add, self.add_through_another] * 2
        return [*runs, self.look, self.save, self.save_together, self.share, self.call, self.name]

    def run(self) -> None:
        """Run the counter: its results are of one run."""
        y, n = self.counter(np.array([1, 3], np.float32))
        assert y.tolist() == [n.item(), 3 * n.item()]
        self.seen.append(n.item())

    def add(self) -> None:
        """Add 1 to both parameters."""
        self.adder(np.ones((2, 1), np.float32))
        self.added.append(1)

    def add_through_another(self) -> None:
        """Add 1 to both parameters, as a session that shares them."""
        self.other(np.ones((3, 1), np.float32))
        self.added.append(1)

    def share(self) -> None:
        """Add 1 to both parameters, as a session that begins to share them."""
        self.library.session("add", {"x": "1|1"}, parameters=self.adder)(np.ones((1, 1)))
        self.added.append(1)

    def look(self) -> None:
        """Read both parameters in one run."""
        assert self.reader(np.ones(1, np.float32)).item() % 2 == 0, "u and v are of two runs"

    def save(self) -> None:
        """Save to a file of this thread."""
        place = self.folder / f"{threading.get_ident()}.npz"
        self.counter.save(place)
        self.is_whole(place)

    def save_together(self) -> None:
        """Save to the file that every thread saves to."""
        self.counter.save(self.common)
        self.is_whole(self.common)

    def name(self) -> None:
        """Read state by its name: no run writes into what is read."""
        now = self.counter.state["n"]
        before = now.item()
        self.run()
        assert now.item() == before

    def call(self) -> None:
        """Call a component on two cores."""
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        assert self.product(x, np.ones(3, np.float32), threads=2).tolist() == [3, 12]

    def is_whole(self, place: Path) -> None:
        """What is saved is of one run."""
        saved = read(str(place))
        n, twice = saved.arrays["state.n"].item(), saved.arrays["state.twice"].item()
        assert (int(saved.notes["runs"]), twice) == (n, 2 * n)

    def check(self, exactly: bool = True) -> None:
        """Each run counted once; ``exactly``: none was interrupted, so that all that count were seen."""
        runs = self.counter.runs
        assert self.counter.state["n"].item() == runs
        assert self.counter.state["twice"].item() == 2 * runs
        u, v = (self.adder.parameters[f"sum_of.{each}"].item() for each in "uv")
        assert u == v
        assert len(set(self.seen)) == len(self.seen), "two runs gave one count"
        assert len(self.seen) == runs if exactly else len(self.seen) <= runs
        assert len(self.added) == u if exactly else len(self.added) <= u
        assert not list(self.folder.glob("*.part")), "a file half-written"

    def forked(self) -> int:
        """The status of a fork that finds all as it is between two runs, and goes on."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of 3.12: there are other threads
            child = os.fork()
        if child:
            return os.waitpid(child, 0)[1]
        status = 1
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            before = self.counter.state["n"].item()
            whole = self.counter.state["twice"].item() == 2 * before == 2 * self.counter.runs
            _, n = self.counter(np.ones(2, np.float32))
            self.look()
            status = int(not whole or n.item() != before + 1)
        finally:
            os._exit(status)


def in_threads(attacked: Attacked, seed: int, each: int) -> None:
    """Have threads do ``each`` so many random actions at once, and fork meanwhile."""
    failures: list[BaseException] = []
    ready = threading.Barrier(THREADS + 1)

    def work(number: int) -> None:
        draw = random.Random(f"{seed} {number}")
        ready.wait()
        try:
            for _ in range(each):
                draw.choice(attacked.actions())()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    ready.wait()
    statuses = []
    while any(thread.is_alive() for thread in threads):
        statuses.append(attacked.forked())
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert not any(statuses), "a fork found a run under way"
    attacked.check()


class Interruption:
    """A KeyboardInterrupt at a random moment of a block, which ends by it; another one if that one was lost."""

    def __init__(self, draw: random.Random) -> None:
        """Not before the block begins."""
        self.seconds, self.is_due = draw.uniform(SOONEST, LATEST), False

    def __enter__(self) -> None:
        """Begin to wait."""
        signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
        signal.signal(signal.SIGALRM, self._interrupt)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, AGAIN)
        self.is_due = True

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        """End what was interrupted."""
        self.is_due = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        return kind is KeyboardInterrupt

    def _interrupt(self, *_: object) -> None:
        if self.is_due:
            signal.raise_signal(signal.SIGINT)


def under_interruptions(attacked: Attacked, seed: int, each: int) -> None:
    """Do random actions, ``each`` so many times until an interruption; other threads run meanwhile."""
    draw = random.Random(f"{seed} interrupted")
    over, failures = threading.Event(), []

    def work() -> None:
        try:
            while not over.is_set():
                attacked.run()
                attacked.look()
        except BaseException as failure:
            failures.append(failure)

    others = [threading.Thread(target=work) for _ in range(draw.randrange(3))]
    for thread in others:
        thread.start()
    attacked.counter.save(attacked.common)
    try:
        for _ in range(each):
            with Interruption(draw):
                for act in iter(partial(draw.choice, attacked.actions()), None):
                    act()
            attacked.is_whole(attacked.common)
            attacked.look()
    finally:
        over.set()
        for thread in others:
            thread.join()
    if failures:
        raise failures[0]
    attacked.check(exactly=False)


def first_runs(folder: Path, seed: int, each: int) -> None:
    """Interrupt first runs, which infer shapes and compile: a session is as before, or has run."""
    draw = random.Random(f"{seed} first")
    (folder / "m.i").write_text(COUNTER, "utf-8")
    library: Any = load(folder / "m.i")
    x = np.ones((3, 2), np.float32)
    library.session("count")(x)
    for _ in range(each):
        session = library.session("count")
        with Interruption(draw):
            session(x)
        before = session.runs
        _, n = session(x)
        assert n.item() == session.runs == before + 1


def attack(seed: int, each: int) -> None:
    """One attack: everything of a seed. Raises AssertionError or whatever a session raises."""
    target = random.Random(seed).choice(["c", "c", "c", "numpy"])
    count = each if target == "c" else max(1, each // 10)
    for act in (in_threads, under_interruptions):
        with tempfile.TemporaryDirectory() as name:
            act(Attacked(Path(name), target), seed, count)
    with tempfile.TemporaryDirectory() as name:
        first_runs(Path(name), seed, max(1, each // 10))


def main() -> None:
    """Attack with some seeds; print those that find something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=10, help="seeds to attack with")
    parser.add_argument("--each", type=int, default=500, help="actions of each thread")
    asked = parser.parse_args()
    failures = 0
    for seed in range(asked.seed, asked.seed + asked.count):
        try:
            attack(seed, asked.each)
        except Exception as failure:
            failures += 1
            print(f"seed {seed}: {type(failure).__name__}: {failure}", flush=True)
    print(f"{failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
