"""The machine's limit, measured: a small C program, compiled here with the compiler that compiles our programs.

A workload cannot end sooner than the processor can do its arithmetic, nor sooner than its inputs can be read and its
output written. Both are timed among the contestants, with the very same bytes, since what a machine can do changes
from one second to the next.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.workloads import BYTES, Workload
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.compile.toolchain import OPENMP

SOURCE = Path(__file__).with_name("limits.c")
FLAGS = (
    *("-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast", "-fPIC", "-shared", "-w"),
    *("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"),
)
STEPS = 100_000
"""Steps of arithmetic in one call: about a millisecond."""

ARITHMETIC, STREAM, STREAM_PAST = "arithmetic", "stream", "stream past caches"


class Limits:
    """The compiled program, for so many threads."""

    def __init__(self, threads: int) -> None:
        """Compile it. Raises ToolError or CalledProcessError where there is no compiler, or it fails."""
        self.threads = threads
        self._library = _compiled()
        self._library.limit_step_flops.restype = ctypes.c_int64
        self._step_flops = int(self._library.limit_step_flops()) * threads

    def calls(self, workload: Workload) -> dict[str, Callable[[], Any]]:
        """The limits of a workload by name, as calls to be timed; see ``seconds``."""
        reads, writes = workload.bytes_in() // BYTES, workload.bytes_out() // BYTES
        source, target = np.ones(max(reads, 1), np.float32), np.empty(max(writes, 1), np.float32)
        calls: dict[str, Callable[[], Any]] = {
            STREAM: self._stream(source, reads, target, writes, past_caches=False),
            STREAM_PAST: self._stream(source, reads, target, writes, past_caches=True),
        }
        if workload.flops:
            steps, threads = ctypes.c_int64(STEPS), ctypes.c_int(self.threads)
            calls[ARITHMETIC] = lambda: self._library.limit_multiply_add(steps, threads)
        return calls

    def seconds(self, workload: Workload, timed: dict[str, float]) -> float:
        """The least time that a workload can take, from the times of its ``calls``."""
        moved = min(timed[STREAM], timed[STREAM_PAST])
        if ARITHMETIC not in timed:
            return moved
        return max(moved, timed[ARITHMETIC] * workload.flops / (STEPS * self._step_flops))

    def rates(self) -> dict[str, float]:
        """GFLOP/s and GB/s on arrays of 64 MiB, for the page; the best of a few tries."""
        count = 1 << 24
        one, other = np.ones(count, np.float32), np.empty(count, np.float32)
        steps, threads = ctypes.c_int64(10 * STEPS), ctypes.c_int(self.threads)

        def best(call: Callable[[], Any], work: float) -> float:
            from time import perf_counter

            call()
            times = []
            for _ in range(5):
                start = perf_counter()
                call()
                times.append(perf_counter() - start)
            return work / min(times) / 1e9

        def stream(writes: int, past_caches: bool) -> Callable[[], Any]:
            return self._stream(one, count, other, writes, past_caches=past_caches)

        return {
            "GFLOP/s": best(
                lambda: self._library.limit_multiply_add(steps, threads),
                10 * STEPS * self._step_flops,
            ),
            "read GB/s": best(stream(0, False), BYTES * count),
            "copy GB/s": best(stream(count, False), 2 * BYTES * count),
            "copy past caches GB/s": best(stream(count, True), 2 * BYTES * count),
        }

    def _stream(
        self, source: Any, reads: int, target: Any, writes: int, *, past_caches: bool
    ) -> Callable[[], Any]:
        given = (
            *(ctypes.c_void_p(source.ctypes.data), ctypes.c_int64(reads)),
            *(ctypes.c_void_p(target.ctypes.data), ctypes.c_int64(writes)),
            *(ctypes.c_int(past_caches), ctypes.c_int(self.threads)),
        )
        kept = (source, target)

        def call(_kept: Any = kept) -> Any:
            return self._library.limit_stream(*given)

        return call


def _compiled() -> ctypes.CDLL:
    """With threads where the compiler has them, else without."""
    compiler = find_compiler()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "limits.so")
        command = [*compiler.command, *FLAGS, str(SOURCE), "-o", str(path)]
        done = subprocess.run([*command, OPENMP], capture_output=True, check=False)
        if done.returncode:
            subprocess.run(command, capture_output=True, check=True)
        return ctypes.CDLL(str(path))
