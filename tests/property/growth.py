"""How the work grows with a program: ``python tests/property/growth.py`` (or ``make growth``).

Prints the work of the row inference (constraints looked at), seconds and memory for doubling numbers of operations;
then seconds of every stage for doubling sizes of each family of programs in ``large.py``.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from ilang import tensor  # noqa: E402 - found through the line above
from tests.property.large import FAMILIES, STAGES  # noqa: E402 - as above


def layers(count: int) -> tensor.Tensor:
    """So many operations: layers whose weights are found from their inputs and biases."""
    h = tensor.data(None, (20,), (), (16,), "x")
    for n in range(count // 3):
        h = tensor.relu(tensor.param(f"w{n}") @ h + tensor.param(f"b{n}", output=(16,)))
    return h


def normalized(count: int) -> tensor.Tensor:
    """So many operations: residual blocks with a mean kept as a unit axis, and specifications."""
    h = tensor.data(None, (20,), (), (16,), "x")
    for _ in range(count // 4):
        mean = tensor.einsum("...|... => ...|0", h) / 16
        h = h + tensor.relu(h - mean)
    return h


SMALLER = 8
"""How much less the smaller of two works is that are compared."""
PROPORTIONAL = 3 * SMALLER
"""Work in proportion to its size takes ``SMALLER`` times the time, work in proportion to its square the square of it;
what lies between is noise, and logarithms."""


def times_as_long(work: Callable[[int], object], size: int) -> float:
    """The processor time of some work of a size over that of work of a smaller size, each the least of a few.

    Python's collector rests: it would go through what a long run of tests has left.
    """

    def seconds(of: int, tries: int) -> float:
        taken = []
        for _ in range(tries):
            start = time.process_time()
            work(of)
            taken.append(time.process_time() - start)
        return min(taken)

    gc.disable()
    try:
        return seconds(size, 2) / seconds(size // SMALLER, 5)
    finally:
        gc.enable()


def measured(net: tensor.Tensor) -> tuple[int, float]:
    """The steps of the solver, and the seconds of everything that inference does.

    Python's collector does not go through what was there before: a long run of tests leaves much.
    """
    gc.collect()
    gc.freeze()
    start = time.process_time()
    program = tensor.solve(net)
    seconds = time.process_time() - start
    gc.unfreeze()
    return program.steps(), seconds


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=10000, help="the largest program")
    parser.add_argument("--steps", type=int, default=2000, help="the largest program of a family")
    parser.add_argument("--family", default="", help="one family of programs only")
    asked = parser.parse_args()
    if not asked.family:
        print_rows(asked.operations)
    print_families(asked.steps, asked.family)


def print_families(most: int, name: str) -> None:
    """Seconds of every stage, and how often the seconds of half the size all of them take."""
    print("\nfamily           steps  " + "  ".join(f"{stage:>7}" for stage in STAGES) + "    times")
    for family in FAMILIES:
        before = 0.0
        for steps in (
            (most // 8, most // 4, most // 2, most) if name in ("", family.__name__) else ()
        ):
            value: object = family(steps)
            seconds = []
            for work in STAGES.values():
                start = time.process_time()
                value = work(value)
                seconds.append(time.process_time() - start)
            times = f"{sum(seconds) / before:>7.1f}" if before else ""
            before = sum(seconds)
            shown = "  ".join(f"{second:>7.2f}" for second in seconds)
            print(f"{family.__name__:<14}  {steps:>6}  {shown}  {times}", flush=True)


def print_rows(most: int) -> None:
    """The work of the row inference."""
    print("program     operations    steps  steps/op  seconds  peak MiB")
    for build in (layers, normalized):
        for count in (most // 4, most // 2, most):
            steps, seconds = measured(build(count))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{build.__name__:<10}  {count:>10}  {steps:>7}  {steps / count:>8.1f}"
                f"  {seconds:>7.2f}  {peak:>8.0f}"
            )


if __name__ == "__main__":
    main()
