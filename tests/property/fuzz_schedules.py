"""Random schedules against the oracle: ``python tests/property/fuzz_schedules.py --programs 10000``.

Each program with its schedule is refused by a rule, or compiled, run and compared. A failure is printed whole; the
same seed gives the same programs. For every twenty of them there is a contraction for a GPU, whose blocks share copies,
most of them double-buffered, and for every five one like attention, with guards or without, whose reductions may run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from ilang.core.machine import CPU  # noqa: E402 - found through the line above
from tests.property import contractions, native, schedules  # noqa: E402
from tests.property.checking import Tally, check  # noqa: E402
from tests.property.test_online import Drawn  # noqa: E402

MODES = ("sanitized", "sanitized", "threads", "sanitized", "fast")
BATCH = 100
TOGETHER = 20
"""Contractions in one CUDA text."""

Job = tuple[int, int, str]


def work(job: Job) -> tuple[Tally, Counter[str]]:
    """Sort one batch, and check what is legal."""
    start, size, mode = job
    legal, refused = schedules.sorted_out(range(start, start + size))
    tally = check(legal, mode, with_loops=False)
    assert set(refused) <= schedules.RULES
    assert tally.refused_schedules == 0
    return tally, refused


def emulated(seeds: range) -> tuple[int, list[str]]:
    """How many contractions of these seeds ran as CUDA, a few in one text, and what was wrong with which."""
    count, found = 0, list[str]()
    for start in range(0, len(seeds), TOGETHER):
        right, wrong = contractions.failures(seeds[start : start + TOGETHER])
        count, found = count + right, found + wrong
    return count, found


def running(seeds: range) -> tuple[int, list[str]]:
    """How many programs like attention ran of as many drawings, and what was wrong with which."""
    count, found = 0, list[str]()
    for start in range(0, len(seeds), BATCH):
        size = min(BATCH, len(seeds) - start)
        drawn = Drawn(random.Random(seeds[start]), size, CPU, size + 1)
        count += len(drawn.programs)
        found += drawn.wrong(native.run(drawn.programs, drawn.calls, "sanitized"))
    return count, found


def main() -> int:
    """Run from the command line; the exit status is 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Check random schedules against the oracle.")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, help="the first seed (default: a random one)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--mode", choices=sorted(native.MODES), help="compile every batch this way")
    options = parser.parse_args()
    modes = MODES if options.mode is None else (options.mode,)
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    total, refused, started = Tally(), Counter[str](), time.monotonic()
    todo = [
        (seed + at, min(BATCH, options.programs - at), modes[number % len(modes)])
        for number, at in enumerate(range(0, options.programs, BATCH))
    ]
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for tally, codes in pool.imap(work, todo):
            total.add(tally)
            refused += codes
            for failure in tally.failures:
                said = f"{failure.step} ({failure.mode}), seed {failure.trial.seed}"
                print(f"\n{said}:\n{failure.trial.written.text}\n{failure.message}", flush=True)
            say = (
                f"{total.programs} legal, {refused.total()} refused, {len(total.failures)} failures"
            )
            print(f"\r{say}", end="" if sys.stdout.isatty() else "\n", flush=True)
    blocks, wrong = emulated(range(seed, seed + options.programs // 20))
    attentions, others = running(range(seed, seed + options.programs // 5))
    wrong += others
    print("".join(f"\n{each}\n" for each in wrong), end="")
    print(f"\nlegal       {total.programs}, in {total.runs} calls, each twice")
    listed = ", ".join(f"{code} {count}" for code, count in sorted(refused.items()))
    print(f"refused     {refused.total()}: {listed}")
    print(f"on a GPU    {blocks}, emulated")
    print(f"running     {attentions}, like attention")
    print(f"failures    {len(total.failures) + len(wrong)}")
    print(f"seconds     {time.monotonic() - started:.0f}")
    return 1 if total.failures or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
