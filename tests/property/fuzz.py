"""Random programs against the oracle: ``python tests/property/fuzz.py --programs 1000``.

Every program is compiled to C and run under sanitizers, optimised, or with threads, and compared with the oracle bit
by bit where arithmetic is exact. Failures are made small and kept in ``tests/property/cases/``, which the test suite
replays. The same seed gives the same programs.

``--specs 1000`` checks as many chains of einsum specifications and expressions (``specs.py``) in the same modes, and
``--mixed 1000`` as many graphs that operations between tensors are in as well (``mixed.py``); ``--bodies 1000``
compares definitions over names with their wiring (``bodies.py``). A failure is printed with its seed.

``--tensors 2000`` runs random tensor functions and routines (``tensor_programs.py``) beside what their text means.

``--notations 10000`` draws from all of these and from what is called beside them (``notations.py``: einx, elementwise
kernels, NumPy's einsum, named values), compiled as C and, every seventh batch, as CUDA for the emulator. ``--texts
10000`` prints as many of these, tensor functions and routines among them, as CUDA and compiles none.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import zip_longest
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from ilang.core.diagnostic import ToolError  # noqa: E402 - found through the line above
from tests import shares  # noqa: E402 - as above
from tests.property import (  # noqa: E402 - as above
    body_checking,
    cuda_texts,
    emulated,
    mixed_checking,
    native,
    notation_checking,
    selections,
    spec_checking,
    tensor_checking,
    trial,
)
from tests.property.checking import Failure, Tally, check  # noqa: E402
from tests.property.failing import noted  # noqa: E402
from tests.property.shrinking import shrink  # noqa: E402

CASES = Path(__file__).resolve().parent / "cases"
MODES = ("sanitized", "sanitized", "fast", "sanitized", "threads", "sanitized", "sanitized")
"""How one batch after the other is compiled: sanitizers find most, the others are there for what they hide."""
LOOPS_EVERY = 4
"""Batches of which one is also computed by plain loops."""
KEPT = 10
"""Failures that are made small and kept; more of them are mostly the same."""

NOTATION_MODES = (
    "sanitized",
    "cuda-checked",
    "fast",
    "sanitized",
    "threads",
    "sanitized",
    "threads",
)
"""The same for programs of all notations."""
COMPILED_EVERY = 10
"""Gradients of which one is compiled, by itself; the others are evaluated."""
EMULATED = 10
"""Programs in one CUDA text at most: each takes as long to compile as several in C."""

Job = tuple[int, int, str, bool]
Told = tuple[int, str, str]
"""A failure: the seed, the step, words."""


def jobs(seed: int, count: int, batch: int, modes: tuple[str, ...] = MODES) -> Iterator[Job]:
    """Batches of seeds: the first, how many, the mode, and whether plain loops run too."""
    for number, start in enumerate(range(0, count, batch)):
        size = min(batch, count - start)
        yield seed + start, size, modes[number % len(modes)], number % LOOPS_EVERY == 0


def take_all() -> None:
    """Check with every order of threads and both widths of indices on a GPU, as ``--fuzz 6`` does."""
    shares.fuzz = shares.SIXTHS


def checkers(jobs: int) -> Pool:
    """Processes that check batches, all that there is to check of each."""
    return multiprocessing.get_context("spawn").Pool(jobs, take_all)


def work(job: Job) -> Tally:
    """Check one batch."""
    start, size, mode, with_loops = job
    filling = mode in native.OPTIMISED
    trials = [trial.draw(seed, filling) for seed in range(start, start + size)]
    return check(trials, mode, with_loops)


def work_specs(job: Job) -> spec_checking.Tally:
    """Check one batch of specifications."""
    start, size, mode, _ = job
    return spec_checking.check(range(start, start + size), mode)


def fuzz_specs(seed: int, count: int, options: argparse.Namespace, modes: tuple[str, ...]) -> bool:
    """Check so many programs of specifications; whether none failed."""
    total = spec_checking.Tally()
    todo = list(jobs(seed, count, options.batch, modes))
    with checkers(options.jobs) as pool:
        for tally in pool.imap(work_specs, todo):
            total.add(tally)
    print(f"specifications    {total.programs}, {total.runs} calls, each three times")
    print(f"elements compared {total.elements}; by the solver of rows too: {total.by_rows} runs")
    print(f"refused alike     {total.misfits}")
    print(f"with a schedule   {total.schedules}; refused by a rule: {total.refused}")
    print(f"failures          {len(total.failures)}")
    for number, step, message in total.failures[:KEPT]:
        print(f"\nseed {number}: {step}: {message}")
    return not total.failures


def work_mixed(job: Job) -> mixed_checking.Tally:
    """Check one batch of mixed graphs."""
    start, size, mode, _ = job
    return mixed_checking.check(range(start, start + size), mode)


def fuzz_mixed(seed: int, count: int, options: argparse.Namespace, modes: tuple[str, ...]) -> bool:
    """Check so many mixed graphs; whether none failed."""
    total = mixed_checking.Tally()
    with checkers(options.jobs) as pool:
        for tally in pool.imap(work_mixed, list(jobs(seed, count, options.batch, modes))):
            total.add(tally)
    kinds = ", ".join(f"{number} {kind}" for kind, number in total.kinds.most_common())
    print(f"mixed graphs      {total.programs}, {total.fixed} of fixed extents; {total.runs} calls")
    print(f"elements compared {total.elements}")
    print(f"operations        {kinds}")
    print(f"failures          {len(total.failures)}")
    for number, step, message in total.failures[:KEPT]:
        print(f"\nseed {number}: {step}: {message}")
    return not total.failures


def work_notation(notation: str, job: Job) -> notation_checking.Tally:
    """Check one batch of a notation that is called."""
    start, size, mode, _ = job
    return notation_checking.check(notation, range(start, start + size), mode)


def work_selections(job: Job) -> notation_checking.Tally:
    """Check the gradients of one batch of functions that choose; every tenth is compiled."""
    start, size, mode, _ = job
    tally = notation_checking.Tally()
    for seed in range(start, start + size):
        tally.runs += 1
        compiled = "cuda-emulated" if mode in emulated.MODES else "c"
        target = compiled if seed % COMPILED_EVERY == 0 else "numpy"
        with noted(tally.failures, seed, [f"on {target}"]):
            tally.elements += selections.checked(seed, target)
    return tally


def told_of(failure: Failure) -> Told:
    """A failure of an index expression as the others are told."""
    return failure.trial.seed, failure.step, f"{failure.trial.written.text}\n{failure.message}"


def keep(failure: Failure, folder: Path) -> Path:
    """Make a failure small and keep it."""

    def fails(candidate: trial.Trial) -> bool:
        found = check([candidate], failure.mode).failures
        return any(other.step == failure.step for other in found)

    small = shrink(failure.trial, fails)
    found = [other for other in check([small], failure.mode).failures if other.step == failure.step]
    message = found[0].message if found else failure.message
    remark = {"step": failure.step, "mode": failure.mode, "message": message.splitlines()}
    path = trial.save(small, folder, remark)
    print(
        f"\n{failure.step} ({failure.mode}), kept as {path.name}:\n{small.written.text}\n{message}\n"
    )
    return path


def work_bodies(job: Job) -> list[body_checking.Failure]:
    """Check one batch of definitions over names."""
    start, size, _, _ = job
    return body_checking.check(range(start, start + size))


def fuzz_bodies(seed: int, count: int, options: argparse.Namespace) -> bool:
    """Check so many definitions over names; whether none failed."""
    with checkers(options.jobs) as pool:
        found = pool.imap(work_bodies, list(jobs(seed, count, options.batch)))
        failures = [failure for batch in found for failure in batch]
    print(f"bodies over names {count}")
    print(f"failures          {len(failures)}")
    for number, step, message in failures[:KEPT]:
        print(f"\nseed {number}: {step}\n{message}")
    return not failures


def work_tensors(job: Job) -> tensor_checking.Tally:
    """Check one batch of tensor functions and routines; one that cannot be compiled in time counts as refused."""
    start, size, mode, _ = job
    try:
        return tensor_checking.check(range(start, start + size), mode, session_every=size)
    except ToolError as error:
        print(f"from seed {start}: {error.message}", flush=True)
        return tensor_checking.Tally(refused=size)


def fuzz_tensors(
    seed: int, count: int, options: argparse.Namespace, modes: tuple[str, ...]
) -> bool:
    """Check so many tensor functions and routines; whether none failed."""
    total = tensor_checking.Tally()
    with checkers(options.jobs) as pool:
        for tally in pool.imap(work_tensors, list(jobs(seed, count, options.batch, modes))):
            total.add(tally)
    kinds = ", ".join(f"{number} {kind}" for kind, number in total.programs.most_common())
    print(
        f"tensor programs   {total.programs.total()}: {kinds}; {total.sessions} in C sessions too"
    )
    print(f"runs compared     {total.runs}, {total.elements} elements; with meaning {total.meant}")
    print(f"gradients         {total.gradients} by differences; unclear {total.unclear} programs")
    print(f"refused           {total.refused}")
    print(f"failures          {len(total.failures)}")
    for number, step, message in total.failures[:KEPT]:
        print(f"\nseed {number}: {step}: {message}")
    return not total.failures


def work_texts(job: tuple[str, Job]) -> cuda_texts.Tally:
    """Print one batch of programs of a notation as CUDA."""
    notation, (start, size, _, _) = job
    return cuda_texts.check(notation, range(start, start + size))


def fuzz_texts(seed: int, count: int, options: argparse.Namespace) -> bool:
    """Print so many programs of all notations as CUDA; whether none failed."""
    share = -(-count // len(cuda_texts.DRAWN))
    todo = [(name, job) for name in cuda_texts.DRAWN for job in jobs(seed, share, options.batch)]
    total = cuda_texts.Tally()
    with checkers(options.jobs) as pool:
        for tally in pool.imap(work_texts, todo):
            total.add(tally)
    print(f"texts of CUDA     {total.programs}, {total.lines} lines")
    print(f"failures          {len(total.failures)}")
    for number, step, message in total.failures[:KEPT]:
        print(f"\nseed {number}: {step}: {message}")
    return not total.failures


DRAWN: dict[str, Callable[[Job], Any]] = {
    "index": work,
    "einsum, extended": work_specs,
    "mixed": work_mixed,
    "gradients of choices": work_selections,
    **{name: partial(work_notation, name) for name in notation_checking.NOTATIONS},
}
"""By what programs are drawn from: what checks a batch of them. Each is as often drawn from."""


def work_any(job: tuple[str, Job]) -> tuple[str, str, int, int, list[Told]]:
    """Check one batch of a notation: what it is, its mode, programs, runs, and what failed."""
    notation, (start, size, mode, with_loops) = job
    runs, told = 0, list[Told]()
    step = EMULATED if mode in emulated.MODES else size
    for first in range(start, start + size, step):
        part = (first, min(step, start + size - first), mode, with_loops)
        try:
            tally = DRAWN[notation](part)
        except Exception as error:  # the other batches are worth having
            told.append((first, "crashed", f"a batch of {part[1]}: {error}"))
            continue
        runs += tally.runs
        told += [each if isinstance(each, tuple) else told_of(each) for each in tally.failures]
    return notation, mode, size, runs, told


def fuzz_notations(
    seed: int, count: int, options: argparse.Namespace, modes: tuple[str, ...]
) -> bool:
    """Check so many programs of all notations; whether none failed."""
    share, more = divmod(count, len(DRAWN))
    batches = [
        [(name, batch) for batch in jobs(seed, share + (n < more), options.batch, modes)]
        for n, name in enumerate(DRAWN)
    ]
    todo = [each for some in zip_longest(*batches) for each in some if each is not None]
    programs, runs, failures = Counter[tuple[str, bool]](), 0, list[tuple[str, str, Told]]()
    with checkers(options.jobs) as pool:
        for notation, mode, drawn, calls, told in pool.imap_unordered(work_any, todo):
            programs[notation, mode in emulated.MODES] += drawn
            runs += calls
            failures += [(notation, mode, each) for each in told]
            say = f"{programs.total()} programs, {runs} calls, {len(failures)} failures"
            print(f"\r{say}", end="" if sys.stdout.isatty() else "\n", flush=True)
    print()
    for notation in DRAWN:
        by_c, by_cuda = (programs[notation, emulated] for emulated in (False, True))
        print(f"{notation:<18}{by_c + by_cuda}, of which {by_cuda} as CUDA")
    print(f"all notations     {programs.total()}, {runs} calls")
    print(f"failures          {len(failures)}")
    for notation, mode, (number, step, message) in failures[:KEPT]:
        print(f"\n{notation}, {mode}, seed {number}: {step}: {message}")
    return not failures


def main() -> int:
    """Run from the command line; the exit status is 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Check random programs against the oracle.")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--specs", type=int, default=0, help="chains of einsum specifications")
    parser.add_argument("--mixed", type=int, default=0, help="graphs with tensor operations")
    parser.add_argument("--notations", type=int, default=0, help="programs of every notation")
    parser.add_argument("--texts", type=int, default=0, help="programs printed as CUDA alone")
    parser.add_argument("--tensors", type=int, default=0, help="tensor functions and routines")
    parser.add_argument("--bodies", type=int, default=0, help="definitions over names")
    parser.add_argument("--seed", type=int, help="the first seed (default: a random one)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=50, help="programs in one C file")
    parser.add_argument(
        "--mode",
        choices=sorted((*native.MODES, *emulated.MODES)),
        help="compile every batch this way",
    )
    parser.add_argument("--keep", type=Path, default=CASES, help="where failures are kept")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    modes = MODES if options.mode is None else (options.mode,)
    print(f"seed {seed}", flush=True)
    fine = not options.specs or fuzz_specs(seed, options.specs, options, modes)
    fine &= not options.mixed or fuzz_mixed(seed, options.mixed, options, modes)
    fine &= not options.texts or fuzz_texts(seed, options.texts, options)
    fine &= not options.bodies or fuzz_bodies(seed, options.bodies, options)
    if options.tensors:
        chosen = NOTATION_MODES if options.mode is None else modes
        fine &= fuzz_tensors(seed, options.tensors, options, chosen)
    if options.notations:
        chosen = NOTATION_MODES if options.mode is None else modes
        fine &= fuzz_notations(seed, options.notations, options, chosen)
    if not options.programs:
        return 0 if fine else 1
    total, batches, started = Tally(), Counter[str](), time.monotonic()
    todo = list(jobs(seed, options.programs, options.batch, modes))
    with checkers(options.jobs) as pool:
        for number, tally in enumerate(pool.imap(work, todo)):
            total.add(tally)
            batches[todo[number][2]] += 1
            rate = total.programs / (time.monotonic() - started)
            say = f"{total.programs} programs, {len(total.failures)} failures, {rate:.1f} a second"
            print(f"\r{say}", end="" if sys.stdout.isatty() else "\n", flush=True)
    report(total, batches, time.monotonic() - started)
    for failure in total.failures[:KEPT]:
        keep(failure, options.keep)
    for failure in total.failures[KEPT:]:
        print(
            f"seed {failure.trial.seed}: {failure.step} ({failure.mode}): {failure.message[:300]}"
        )
    return 0 if fine and not total.failures else 1


def report(total: Tally, batches: Counter[str], seconds: float) -> None:
    """Totals, a line each."""
    steps = Counter(failure.step for failure in total.failures)
    listed = ", ".join(f"{count} {mode}" for mode, count in sorted(batches.items()))
    print(f"\nprograms          {total.programs} in {seconds:.0f} s")
    print(f"batches           {sum(batches.values())}: {listed}")
    print(f"calls             {total.runs}, each three times; by plain loops too: {total.by_loops}")
    share = total.open_elements / max(total.elements, 1)
    print(f"elements compared {total.elements}, of which {share:.2%} may be anything")
    print(f"refused schedules {total.refused_schedules}")
    print(f"mismatches        {steps['answer'] + steps['oracle'] + steps['inference']}")
    print(f"sanitizer reports {steps['died']}")
    print(f"other failures    {sum(steps.values()) - sum(steps[s] for s in COUNTED)}")


COUNTED = ("answer", "oracle", "inference", "died")

if __name__ == "__main__":
    take_all()
    sys.exit(main())
