"""Random programs against what they mean: ``python tests/property/fuzz.py [NAME...] --count 1000``.

Names say what is drawn from; without any, it is every notation, each as often. Programs are compiled to C and run under
sanitizers, optimised or with threads, and of a notation every seventh batch is CUDA for the emulator; results are
compared with the oracle, bit by bit where arithmetic is exact. The same seed gives the same programs. Failures are
printed with their seeds; programs of index expressions are kept in ``tests/property/cases/``, which the tests replay.

Beside the notations there are ``tensors`` (functions and routines, run beside what their text means), ``bodies``
(definitions over names, compared with their wiring), ``texts`` (all of these printed as CUDA, which nothing compiles),
and programs with schedules, which are refused by a rule or right: ``schedules``, ``contractions`` (for a GPU, whose
blocks share copies, most of them double-buffered) and ``attention`` (whose reductions may run). Gradients of what
guards, choices and indices leave out are ``left out``, those of sorts and look-ups, differentiated twice, ``pickings``;
``groups`` exchanges operands whose groups give one extent twice, ``orders`` solves sets of constraints over rows in
several orders.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import zip_longest
from multiprocessing.pool import Pool
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - as those below, after the line above

from ilang import ToolError  # noqa: E402 - found through the line above
from ilang.core.machine import CPU  # noqa: E402
from tests import shares  # noqa: E402
from tests.property import (  # noqa: E402
    body_checking,
    checking,
    contractions,
    cuda_texts,
    emulated,
    groups,
    left_out,
    mixed_checking,
    native,
    notation_checking,
    orders,
    pickings,
    schedules,
    selections,
    spec_checking,
    tensor_checking,
    trial,
)
from tests.property.tally import Failure, Tally  # noqa: E402

CASES = Path(__file__).resolve().parent / "cases"
MODES = ("sanitized", "cuda-checked", "fast", "sanitized", "threads", "sanitized", "threads")
"""How one batch after the other is compiled: sanitizers find most, the others are there for what they hide."""
KEPT = 10
"""Failures that are shown whole; more of them are mostly the same."""
COMPILED_EVERY = 10
"""Gradients of which one is compiled, by itself; the others are evaluated."""
EMULATED = 10
"""Programs in one CUDA text at most: each takes as long to compile as several in C."""

Job = tuple[int, int, str]
"""The first seed of a batch, how many, and the mode."""


def jobs(seed: int, count: int, batch: int, modes: tuple[str, ...] = MODES) -> Iterator[Job]:
    """Batches of seeds."""
    for number, start in enumerate(range(0, count, batch)):
        yield seed + start, min(batch, count - start), modes[number % len(modes)]


def take_all() -> None:
    """Check with every order of threads and both widths of indices on a GPU, as ``--fuzz 6`` does."""
    shares.fuzz = shares.SIXTHS


def work(seeds: range, mode: str) -> Tally:
    """Check one batch of index expressions."""
    return checking.check([drawn(seed, mode) for seed in seeds], mode)


def drawn(seed: int, mode: str) -> trial.Trial:
    """The trial of a seed, whose arrays fill vectors where compilers make some."""
    return trial.draw(seed, mode in native.OPTIMISED)


def work_each(check: Callable[[int, str], object], seeds: range, mode: str) -> Tally:
    """Check programs one by one; every tenth is compiled."""
    tally = Tally()
    for seed in seeds:
        compiled = "cuda-emulated" if mode in emulated.MODES else "c"
        target = compiled if seed % COMPILED_EVERY == 0 else "numpy"
        with tally.noting(seed, [f"on {target}"]), np.errstate(all="ignore"):
            check(seed, target)
            tally.count(runs=1)
    return tally


def work_tensors(seeds: range, mode: str) -> Tally:
    """Check one batch of tensor functions and routines; one that cannot be compiled in time counts as refused."""
    try:
        return tensor_checking.check(seeds, mode, session_every=len(seeds))
    except ToolError as error:
        print(f"from seed {seeds[0]}: {error.message}", flush=True)
        return Tally(Counter(refused=len(seeds)))


def work_texts(seeds: range, _: str) -> Tally:
    """Print one batch of programs as CUDA, each by turns of another notation."""
    tally, names = Tally(), [*cuda_texts.DRAWN]
    for n, name in enumerate(names):
        tally.add(cuda_texts.check(name, seeds[n :: len(names)]))
    return tally


def work_schedules(seeds: range, mode: str) -> Tally:
    """Sort one batch of programs with schedules, and check what is legal."""
    legal, refused = schedules.sorted_out(seeds)
    assert set(refused) <= schedules.RULES
    tally = checking.check(legal, "sanitized" if mode in emulated.MODES else mode)
    assert not tally.counts["refused_schedules"]
    tally.count(**refused)
    return tally


def work_contractions(seeds: range, _: str) -> Tally:
    """Check contractions on the emulator."""
    right, wrong = contractions.failures(seeds)
    return Tally(Counter(runs=right), [(seeds[0], "answer", says) for says in wrong])


def work_attention(seeds: range, _: str) -> Tally:
    """Check programs like attention."""
    from tests.property.test_online import Drawn

    batch = Drawn(random.Random(seeds[0]), len(seeds), CPU, len(seeds) + 1)
    wrong = batch.wrong(native.run(batch.programs, batch.calls, "sanitized"))
    return Tally(Counter(runs=len(batch.programs)), [(seeds[0], "answer", says) for says in wrong])


NOTATIONS: dict[str, Callable[[range, str], Tally]] = {
    "index": work,
    "einsum, extended": spec_checking.check,
    "mixed": mixed_checking.check,
    "gradients of choices": partial(work_each, selections.checked),
    **{name: partial(notation_checking.check, name) for name in notation_checking.NOTATIONS},
}
"""By what programs are drawn from: what checks a batch of them in a mode."""
DRAWN: dict[str, Callable[[range, str], Tally]] = {
    **NOTATIONS,
    "tensors": work_tensors,
    "bodies": lambda seeds, _: body_checking.check(seeds),
    "texts": work_texts,
    "schedules": work_schedules,
    "contractions": work_contractions,
    "attention": work_attention,
    "left out": partial(work_each, left_out.checked),
    "pickings": partial(work_each, pickings.checked),
    "groups": partial(work_each, lambda seed, _: groups.checked(seed)),
    "orders": partial(work_each, lambda seed, _: orders.checked(seed)),
}
AT_ONCE = ("contractions", "tensors")
"""What takes as long to compile on the emulator, or in any mode, as programs in CUDA do."""


def work_any(job: tuple[str, Job]) -> tuple[str, str, Tally]:
    """Check one batch: what it is drawn from, its mode, and what was done."""
    name, (start, size, mode) = job
    total = Tally()
    step = EMULATED if mode in emulated.MODES or name in AT_ONCE else size
    for first in range(start, start + size, step):
        seeds = range(first, min(first + step, start + size))
        total.count(drawn=len(seeds))
        try:
            total.add(DRAWN[name](seeds, mode))
        except Exception as error:  # the other batches are worth having
            total.failures.append((first, "crashed", f"a batch of {len(seeds)}: {error}"))
    return name, mode, total


def pool(jobs: int) -> Pool:
    """Processes that check batches, all that there is to check of each."""
    return multiprocessing.get_context("spawn").Pool(jobs, take_all)


def main() -> int:
    """Run from the command line; the exit status is 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Check random programs against the oracle.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(DRAWN)}")
    parser.add_argument("--count", type=int, default=1000, help="programs, of all names together")
    parser.add_argument("--seed", type=int, help="the first seed (default: a random one)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=50, help="programs in one C file")
    every = sorted((*native.MODES, *emulated.MODES))
    parser.add_argument("--mode", choices=every, help="compile every batch this way")
    parser.add_argument("--keep", type=Path, default=CASES, help="where failures are kept")
    options = parser.parse_args()
    names = options.names or [*NOTATIONS]
    if unknown := {*names} - {*DRAWN}:
        parser.error(f"nothing is drawn from {', '.join(sorted(unknown))}")
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    modes = MODES if options.mode is None else (options.mode,)
    print(f"seed {seed}", flush=True)
    share, more = divmod(options.count, len(names))
    batches = [
        [(name, batch) for batch in jobs(seed, share + (n < more), options.batch, modes)]
        for n, name in enumerate(names)
    ]
    todo = [each for some in zip_longest(*batches) for each in some if each is not None]
    counts, failures = {name: Counter[str]() for name in names}, list[tuple[str, str, Failure]]()
    with pool(options.jobs) as workers:
        for number, (name, mode, tally) in enumerate(workers.imap_unordered(work_any, todo), 1):
            counts[name] += tally.counts
            failures += [(name, mode, each) for each in tally.failures]
            say = f"{number} batches of {len(todo)}, {len(failures)} failures"
            print(f"\r{say}", end="" if sys.stdout.isatty() else "\n", flush=True)
    for name, done in counts.items():
        print(f"{name}: {', '.join(f'{count} {what}' for what, count in done.items())}")
    print(f"{len(failures)} failures")
    for number, (name, mode, (at, step, says)) in enumerate(failures):
        print(f"\n{name}, {mode}, seed {at}: {step}: {says if number < KEPT else says[:300]}")
        if name == "index" and number < KEPT:
            remark = {"step": step, "mode": mode, "message": says.splitlines()}
            print(f"kept as {trial.save(drawn(at, mode), options.keep, remark).name}")
    return 1 if failures else 0


if __name__ == "__main__":
    take_all()
    sys.exit(main())
