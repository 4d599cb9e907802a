"""What instructions, caches and launches of a GPU take: what the models of docs/cuda.md count by, measured.

``bench/micro.cu`` has a function for each. The clock is that of a kernel which waits for a number of cycles; emulated,
where there are none, it follows from products and sums of f32, of which a multiprocessor begins 128 in a cycle. Whether
loads of 16 bytes cost four cycles a warp, or as many as their distinct bytes ask for, says which layout of threads a
product should have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ilang.codegen.device import gpu
from ilang.codegen.emulator import program as emulator

TEXT = Path(__file__).with_name("micro.cu")
THREADS = 256
WARP = 32
BLOCKS = 8
"""Blocks for each multiprocessor."""
ITERATIONS = 1 << 13
LAUNCHES = 1000
FMAS = 32
"""Products and sums of an iteration."""
PER_CYCLE = 128
"""Products and sums of f32 that a multiprocessor begins in a cycle."""


Micro = tuple[str, str, int]
"""A function of ``micro.cu``, what it measures, and how often an iteration of a thread does that."""
CYCLES = 1000
"""Cycles of an iteration of what waits."""
WAITING = "wait_for_cycles"
ALONE = "multiply_alone"
MICROS: tuple[Micro, ...] = (
    (ALONE, "FFMA alone", FMAS),
    *((f"multiply_{n}", f"FFMA with {n} loads for {FMAS}", FMAS) for n in (1, 2, 4)),
    *((f"load_{lanes}", f"LDS.128 by {lanes} lanes", 2) for lanes in ("1x32", "2x16", "4x8")),
    ("add_f64", "DADD", 8),
    ("add_converted", "F2F and DADD", 8),
    ("read_l2", "LDG.128 from L2", 1),
)
LAUNCHED = (("launch_plain", "launches"), ("launch_graph", "launches of a graph"))

Result = tuple[str, bool | None, str]
"""The name of what is measured, whether it ran (None: not reached), and the rest in words."""


def run(target: str, takes: Callable[[str], bool], is_over: Callable[[], bool]) -> Iterator[Result]:
    """Each measurement whose name is taken, in cycles of a multiprocessor for an instruction of a warp."""
    is_quick = target != "cuda"
    text = TEXT.read_text("utf-8")
    native = emulator.load(text, TEXT.name) if is_quick else gpu.library(lambda: text, TEXT.name)
    count = np.zeros(1, np.int32)
    native.call("multiprocessors", count)
    blocks, iterations = (2, 8) if is_quick else (BLOCKS * int(count[0]), ITERATIONS)

    def seconds_of(function: str, turns: int) -> tuple[bool, float]:
        seconds = np.zeros(1)
        status = native.call(function, np.int32(blocks), np.int32(turns), seconds)
        return status == 0, float(seconds[0])

    def instructions(each: int) -> float:
        """Instructions of warps on one multiprocessor, so many in an iteration."""
        return blocks * THREADS / WARP * iterations * each / max(1, int(count[0]))

    wanted, clock = [micro for micro in MICROS if takes(micro[1])], 0.0
    if wanted and not is_over():
        if native.has(WAITING):
            function, cycles = WAITING, float(iterations * CYCLES)
        else:
            function, cycles = ALONE, instructions(FMAS) * WARP / PER_CYCLE
        is_right, seconds = seconds_of(function, iterations)
        clock = cycles / seconds if seconds else 0.0
        yield "clock", is_right, f"{clock / 1e9:.3f} GHz"
    for function, name, each in wanted:
        if is_over():
            yield name, None, "not reached"
            continue
        is_right, seconds = seconds_of(function, iterations)
        cycles = seconds * clock / instructions(each)
        yield name, is_right, f"{cycles:.2f} cycles for one of a warp"
    for function, name in LAUNCHED:
        if takes(name) and native.has(function):
            turns = 3 if is_quick else LAUNCHES
            if is_over():
                yield name, None, "not reached"
                continue
            is_right, seconds = seconds_of(function, turns)
            yield name, is_right, f"{seconds / turns * 1e6:.2f} microseconds each"
