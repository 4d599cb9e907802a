"""One process, one number of threads: each workload on everyone, checked, then timed in turns.

Every round times each contestant once, in random order, so that whatever else the machine does meets all alike. A
sample is the mean of calls that take some milliseconds together. What a contestant takes is the least of its samples;
medians and quartiles tell how far to trust it.
"""

from __future__ import annotations

import math
import random
import re
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, sleep
from typing import Any

from bench import ours, peers, references, steps
from bench.limits import Limits
from bench.workloads import FULL, QUICK, Array, Workload, arrays_of
from ilang.core.record import record

OURS = "i"
LIMIT = "limit: "

Call = Callable[[], Any]
Prepare = Callable[[Workload, Mapping[str, Array]], Call]


@record
class Effort:
    """How long to sample: seconds for a workload, rounds at least and at most, seconds of one sample."""

    seconds: float = 3.0
    least: int = 5
    most: int = 60
    sample: float = 0.002


QUICK_EFFORT = Effort(0.0, 2, 2, 0.0)

QUIET = 0.015
"""Seconds before a sample on several threads: those of OpenMP wait for ten milliseconds before they sleep."""


def run(
    names: Sequence[str], threads: int, only: Sequence[str], effort: Effort, quick: bool
) -> dict[str, Any]:
    """Time the workloads whose names match ``only`` (all, if empty) on us and on these peers.

    Returns:
        ``limits`` (rates), ``peers`` (versions), ``workloads``: by name, what ``timed`` gives; ``steps``: the same of
        steps of training, without a limit.
    """
    table = dict(_contestants(names, threads))
    limits = Limits(threads)
    found: dict[str, Any] = {}
    for workload in QUICK if quick else FULL:
        if only and not any(re.search(pattern, workload.name) for pattern in only):
            continue
        found[workload.name] = timed(workload, table, limits, effort)
        _tell(workload.name, threads, found[workload.name])
    return {
        "limits": {} if quick else limits.rates(),
        "peers": {name: peers.version_of(name) for name in names},
        "workloads": found,
        "steps": _steps(names, threads, only, effort, quick),
    }


def _steps(
    names: Sequence[str], threads: int, only: Sequence[str], effort: Effort, quick: bool
) -> dict[str, Any]:
    """Time the steps of training whose names match; see ``timed``."""
    rows: dict[str, Any] = {}
    for step in steps.QUICK if quick else steps.FULL:
        if only and not any(re.search(pattern, step.name) for pattern in only):
            continue
        calls, first, wrong = steps.begun(steps.contestants(step, names, OURS, threads), OURS)
        samples = rounds(calls, effort, pause=QUIET if 1 < threads else 0)
        times = {name: _summary(taken) | {"first": first[name]} for name, taken in samples.items()}
        rows[step.name] = {"times": times, "wrong": wrong}
        _tell(step.name, threads, rows[step.name])
    return rows


def _contestants(names: Sequence[str], threads: int) -> list[tuple[str, Mapping[str, Prepare]]]:
    """Us and the peers that load, each with what it can run by program."""

    def prepare(workload: Workload, arrays: Mapping[str, Array]) -> Call:
        return ours.call_of(workload.program, arrays, workload.outputs, threads)

    programs = {workload.program for workload in FULL}
    found: list[tuple[str, Mapping[str, Prepare]]] = [(OURS, dict.fromkeys(programs, prepare))]
    for name in names:
        try:
            found.append((name, peers.calls_of(name, threads)))
        except Exception as error:  # whatever a foreign package raises
            print(f"{name} cannot be used: {type(error).__name__}: {error}", file=sys.stderr)
    return found


def timed(
    workload: Workload, table: Mapping[str, Mapping[str, Prepare]], limits: Limits, effort: Effort
) -> dict[str, Any]:
    """A workload on every contestant that has its program.

    Returns:
        ``times``: by contestant ``min``, ``median``, ``spread`` (between the quartiles, over the median) and ``first``
        (the first call, which compiles), in seconds; ``wrong``: why a contestant was left out; ``limit``: the least
        time that the machine needs; ``rounds``.
    """
    arrays = arrays_of(workload)
    right = references.expected(workload.program, arrays)
    calls: dict[str, Call] = {}
    first: dict[str, float] = {}
    wrong: dict[str, str] = {}
    for name, programs in table.items():
        if workload.program not in programs:
            continue
        try:
            calls[name] = programs[workload.program](workload, arrays)
            start = perf_counter()
            result = calls[name]()
            first[name] = perf_counter() - start
            mistaken = references.mistake(result, right)
        except Exception as error:  # whatever a foreign package raises
            mistaken = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        if mistaken:
            wrong[name] = mistaken
            calls.pop(name, None)
    calls |= {LIMIT + name: call for name, call in limits.calls(workload).items()}
    samples = rounds(calls, effort, pause=QUIET if 1 < limits.threads else 0)
    least = {name: min(taken) for name, taken in samples.items()}
    timed_limits = {
        name.removeprefix(LIMIT): time for name, time in least.items() if name.startswith(LIMIT)
    }
    return {
        "times": {
            name: _summary(samples[name]) | {"first": first[name]}
            for name in first
            if name in calls
        },
        "wrong": wrong,
        "limit": limits.seconds(workload, timed_limits),
        "rounds": len(next(iter(samples.values()))),
    }


def rounds(calls: Mapping[str, Call], effort: Effort, pause: float) -> dict[str, list[float]]:
    """Samples of every call, in seconds, taken in turns."""
    repeats = {name: _repeats(call, effort.sample, pause) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    order, end, rounds = list(calls), perf_counter() + effort.seconds, 0
    while rounds < effort.least or (rounds < effort.most and perf_counter() < end):
        random.shuffle(order)
        for name in order:
            sleep(pause)
            samples[name].append(_sample(calls[name], repeats[name]))
        rounds += 1
    return samples


def _repeats(call: Call, seconds: float, pause: float) -> int:
    """How many calls make a sample."""
    sleep(pause)
    one = min(_time(call, 1) for _ in range(2))
    return 1 if seconds <= one else min(10_000, math.ceil(seconds / max(one, 1e-7)))


def _sample(call: Call, repeats: int) -> float:
    """One sample; where calls are short, a first one that is not counted fills the caches."""
    if 1 < repeats:
        call()
    return _time(call, repeats)


def _time(call: Call, repeats: int) -> float:
    start = perf_counter()
    for _ in range(repeats):
        call()
    return (perf_counter() - start) / repeats


def _summary(samples: Sequence[float]) -> dict[str, float]:
    median = statistics.median(samples)
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return {"min": min(samples), "median": median, "spread": (high - low) / median}


def _tell(name: str, threads: int, row: Mapping[str, Any]) -> None:
    """Progress, for whoever waits."""
    times = sorted((taken["min"], who) for who, taken in row["times"].items())
    shown = "  ".join(f"{who} {taken * 1e3:.3f}" for taken, who in times)
    print(f"{threads}t  {name}  ms: {shown}", file=sys.stderr, flush=True)
    for who, why in row["wrong"].items():
        print(f"    {who} left out: {why}", file=sys.stderr, flush=True)
