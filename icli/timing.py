"""Times of calls, and how much of this machine they use: ``:time`` of the REPL.

The peak of arithmetic is what a product of two square matrices reaches, that of memory what a copy of as many bytes
reaches; both are measured when they are asked for. A program that would be limited by neither takes the time of a call.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ilang.core.diagnostic import counted
from ilang.core.dtype import BYTES

if TYPE_CHECKING:
    from ilang.codegen.components.component import Component
    from ilang.core.explain.explanation import Cost

SECONDS = 0.3
"""The time for which a call is measured."""
PEAK_SECONDS = 0.2
"""The time for which a peak is measured."""
CALL_SECONDS = 0.02
"""The time for which a call alone is measured."""
SIDE = 512
"""Rows and columns of the matrices of the product that gives the peak."""
MOST_BYTES = 1 << 27
"""Bytes of the largest copy that is measured: no cache holds more."""
LIKE_A_CALL = 1.5
"""A program that takes less than so many times a call on one element is limited by calling it."""


def best_time(run: Callable[[], object], seconds: float) -> tuple[float, int]:
    """The least time of a call, in seconds, and the number of calls that were made; the first one is not timed."""
    run()
    best, calls, begin = float("inf"), 0, time.perf_counter()
    while not calls or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        calls += 1
    return best, calls


def timing_text(seconds: float, calls: int, cost: Cost | None, dtype: str) -> str:
    """A time in words; where the cost of the program is known in numbers, with its share of this machine."""
    parts = [duration(seconds)]
    if cost is not None and isinstance(cost.flops, int) and isinstance(cost.bytes, int):
        parts += _share(seconds, cost.flops, cost.bytes, dtype)
    return f"{', '.join(parts)}   (best of {counted(calls, 'call')})"


def _share(seconds: float, flops: int, size: int, dtype: str) -> list[str]:
    """The speed of a call, its share of what this machine can do, and what limits it."""
    if seconds < LIKE_A_CALL * call_seconds():
        return ["limited by calling it"]
    arithmetic = flops / peak_flops(dtype)
    memory = size / peak_bytes(_class_of(size)) if size else 0.0
    share = max(arithmetic, memory) / seconds
    is_arithmetic = memory < arithmetic
    speed = (
        f"{_scaled(flops / seconds)}FLOP/s" if is_arithmetic else f"{_scaled(size / seconds)}B/s"
    )
    limit = "arithmetic" if is_arithmetic else "memory"
    return [speed, f"{min(100, round(100 * share))} % of this machine", f"limited by {limit}"]


def _class_of(size: int) -> int:
    """The size of the copy that is measured for a program that moves so many bytes: a power of two."""
    return int(min(MOST_BYTES, 1 << max(12, (size - 1).bit_length())))


@functools.cache
def peak_flops(dtype: str) -> float:
    """Operations a second of a product of two matrices."""
    array = np.ones((SIDE, SIDE), np.float64 if dtype == "f64" else np.float32)
    product = _component("ik*kj~ijk >> +ijk~ij")
    seconds, _ = best_time(lambda: product(array, array, threads="auto"), PEAK_SECONDS)
    return 2 * SIDE**3 / seconds


@functools.cache
def call_seconds() -> float:
    """The time of a call that computes nearly nothing."""
    array = np.ones(1, np.float32)
    out, copy = np.empty_like(array), _component("-i~i")
    return best_time(lambda: copy(array, out=out, threads="auto"), CALL_SECONDS)[0]


@functools.cache
def peak_bytes(size: int) -> float:
    """Bytes a second of a copy that moves so many bytes, half of which it reads."""
    array = np.ones(size // (2 * BYTES["f32"]), np.float32)
    out, copy = np.empty_like(array), _component("-i~i")
    seconds, _ = best_time(lambda: copy(array, out=out, threads="auto"), PEAK_SECONDS)
    return size / seconds


def _component(text: str) -> Component:
    from ilang.core.pipeline import text_component
    from ilang.icli.programs import expressed

    return expressed(text_component(text)).component()


def _scaled(number: float) -> str:
    """A number with three digits and the letter of its size: ``77.1 G``."""
    for letter, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if scale <= number:
            return f"{number / scale:.3g} {letter}"
    return f"{number:.3g} "


def duration(seconds: float) -> str:
    """A time with three digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if scale <= seconds:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
