"""How soon long calls stop: ``python tests/property/interruptions.py [NAME...]``.

Each workload runs in a process of its own, which gets SIGINT while all of its threads compute. The table has the time
from the signal to the exception in Python (the median and the longest of several trials), and the processor time that
other threads took after it: what computes on would show there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import ilang  # noqa: E402 - found through the line above
from ilang import Error, i  # noqa: E402 - as above
from ilang.codegen.call.plan import CallPlan  # noqa: E402 - as above
from ilang.core.machine import CPU  # noqa: E402 - as above

COMPUTED = 0.2
"""Seconds of processor time after which a call is interrupted, and for which one that goes on is looked for."""

FIXED = 64
"""The largest extent that is written in one of the programs."""

Workload = Callable[[], tuple[Any, tuple[Any, ...]]]


def _ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


WORKLOADS: dict[str, Workload] = {
    "full sum": lambda: (i("i*j~ij >> +ij~."), (_ones(10**6), _ones(10**6))),
    "one long reduction": lambda: (i("ij*k~ijk >> >ijk~i"), (_ones(4, 10**5), _ones(25_000))),
    "sum over rows": lambda: (i("i*j~ij >> +ij~j"), (_ones(10**7), _ones(5000))),
    "matmul": lambda: (i("ik*kj~ijk >> +ijk~ij"), (_ones(4000, 4000), _ones(4000, 4000))),
    "elementwise": lambda: (i(" >> ".join(["^i~i"] * 40)), (_ones(2 * 10**7).astype(np.float64),)),
    "attention": lambda: (
        ilang.load(str(ROOT / "bench" / "programs" / "attention.i"))["attention"],
        (_ones(8, 16000, 64), _ones(8, 16000, 64), _ones(8, 16000, 64)),
    ),
    "convolution": lambda: (
        ilang.load(str(ROOT / "bench" / "programs" / "conv3x3.i"))["conv3x3"],
        (_ones(8, 128, 128, 128), _ones(256, 128, 3, 3)),
    ),
    "integers": lambda: (
        i("ik*kj~ijk >> +ijk~ij"),
        (np.ones((3000, 3000), np.int64), np.ones((3000, 3000), np.int64)),
    ),
}


def _less(extent: int) -> int:
    """A smaller extent; one that a program may fix stays."""
    return extent if extent <= FIXED else 2 * CPU.small_extent


def trial(name: str, threads: int) -> tuple[float, float, list[int], bool]:
    """Interrupt a call of a workload.

    Returns the seconds from the signal to the exception, the processor time that others took after that, what the
    compiled function returned, and whether anything was written to the output after the exception.
    """
    component, arrays = WORKLOADS[name]()
    out = np.empty(component.shapes(*(array.shape for array in arrays))[0], arrays[0].dtype)
    sent: list[float] = []
    small = tuple(
        array[tuple(slice(0, 2 * CPU.small_extent) for _ in array.shape)] for array in arrays
    )
    with contextlib.suppress(Error):  # compile, but for programs with fixed extents
        component(*small, threads=threads)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    begun = threading.Event()
    threading.Thread(target=_shoot, args=(begun, sent), daemon=True).start()
    with _watched(begun) as statuses, contextlib.suppress(KeyboardInterrupt):
        component(*arrays, out=out, threads=threads)
    took = time.perf_counter() - sent[0]
    after = _of_others()
    seen = out.reshape(-1)[:: max(1, out.size // 10**6)].copy()
    while_waiting(COMPUTED)
    same = np.array_equal(seen, out.reshape(-1)[:: max(1, out.size // 10**6)], equal_nan=True)
    return took, _of_others() - after, statuses, not same


@contextlib.contextmanager
def _watched(begun: threading.Event) -> Iterator[list[int]]:
    """What every call of a compiled function returns meanwhile; ``begun`` is set as the first begins."""
    statuses: list[int] = []
    call = CallPlan._with_threads

    def noted(plan: CallPlan, *arguments: Any) -> int:
        begun.set()
        statuses.append(call(plan, *arguments))
        return statuses[-1]

    with mock.patch.object(CallPlan, "_with_threads", noted):
        yield statuses


def _of_others() -> float:
    """The processor time of all threads but this one."""
    return time.process_time() - time.thread_time()


def while_waiting(seconds: float) -> None:
    """Take so much processor time."""
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        pass


def _shoot(begun: threading.Event, sent: list[float]) -> None:
    """Send SIGINT once a call has begun and this process has computed for a while."""
    begun.wait()
    start = time.process_time()
    while time.process_time() - start < COMPUTED:
        time.sleep(0.005)
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)


def main() -> None:
    """Print the table."""
    names = sys.argv[1:] or list(WORKLOADS)
    print(f"{'':24} {'threads':>7} {'median':>10} {'longest':>10} {'after':>10}")
    for name in names:
        for threads in (1, 2):
            code = (
                f"from tests.property.interruptions import trial; print(trial({name!r}, {threads}))"
            )
            found = []
            for _ in range(5):
                done = subprocess.run(
                    [sys.executable, "-c", code],
                    check=True,
                    capture_output=True,
                    text=True,
                    cwd=ROOT,
                )
                took, after = done.stdout.strip("()\n").split(", ")[:2]
                found.append((float(took), float(after)))
            times = sorted(took for took, _ in found)
            words = (times[2], times[-1], max(after for _, after in found))
            row = " ".join(f"{1000 * word:7.2f} ms" for word in words)
            print(f"{name:24} {threads:7} {row}", flush=True)


if __name__ == "__main__":
    main()
