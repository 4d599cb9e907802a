"""``python -m bench.fills``: whether the time of a program depends on what its workspace and outputs held before.

python -m bench.fills                        programs of ``bench/programs``, samples, and products of ragged extents
python -m bench.fills --only 'bmm,conv'      those whose names match one of these patterns

Each is called with both full of zeros, of subnormal numbers and of NaN, in turns; printed is the least time of each,
and the longest of these over the shortest. The exit status is 1 where that is more than 1.2. Processors differ in what
subnormal numbers cost: tests/property/test_fills.py asks whether any was computed with, which shows on all x86.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

from bench.workloads import PROGRAMS, QUICK, Array, arrays_of
from ilang.codegen.call.arguments import SUPPORTED, outputs_of
from ilang.codegen.call.load import Compiled, interface_of
from ilang.codegen.call.memory import NO_SPACE, argument
from ilang.codegen.targets import c
from ilang.core import pipeline
from ilang.core.ir.graph import Graph
from ilang.core.ir.syntax import Module
from ilang.core.machine import CPU
from ilang.core.notation.files.module import exports, parse_module
from ilang.core.source import Source
from ilang.icli.arrays import array_of

SAMPLES = Path(__file__).parents[1] / "samples"
INPUT = re.compile(r"^# in \w+ = (.+)$", re.MULTILINE)
FILLS = {"zeros": 0, "subnormal": 0x55, "NaN": 0xFFFFFFFF}
"""Words of four bytes that memory is full of: subnormal in f32 and in f64."""
MOST, ROUNDS, SAMPLE = 1.2, 20, 0.0005
"""The largest ratio that passes; samples of each fill, and seconds of one at least."""

RAGGED = {
    "convolution 1x1, 64 to 256 channels, 56 x 56": (
        "ncyx*oc~noyxc >> +noyxc~noyx",
        ((1, 64, 56, 56), (256, 64)),
    ),
    "bmm 64 x 24": ("zik*zkj~zijk >> +zijk~zij", ((64, 24, 24), (64, 24, 24))),
    "abcijk-ijmb-mkac": (
        "bmji*cakm~abcijkm >> +abcijkm~kjicba",
        ((12, 24, 16, 24), (12, 24, 16, 24)),
    ),
    "matmul 500": ("ik*kj~ijk >> +ijk~ij", ((500, 500), (500, 500))),
    "matmul 512 x 512 x 10": ("ik*kj~ijk >> +ijk~ij", ((512, 512), (512, 10))),
}
"""Programs whose lanes end inside a vector."""


def cases() -> Iterator[tuple[str, Graph, list[Array]]]:
    """Everything that is timed: a title, a graph and its arrays."""
    for workload in QUICK:
        module = module_of(PROGRAMS / f"{workload.program}.i")
        graph = pipeline.module_graph(module, workload.program)
        yield workload.name, graph, [*arrays_of(workload).values()]
    for lesson in sorted(SAMPLES.glob("[0-9]*.i")):
        words = INPUT.findall(lesson.read_text("utf-8"))
        module = module_of(lesson)
        graph = pipeline.module_graph(module, exports(module)[0].name)
        yield lesson.stem, graph, [array_of(word, None, n) for n, word in enumerate(words)]
    generator = np.random.default_rng(0)
    for title, (text, shapes) in RAGGED.items():
        graph = pipeline.graph_of(pipeline.text_component(text), "program")
        yield title, graph, [generator.standard_normal(s, np.float32) for s in shapes]


def module_of(path: Path) -> Module:
    """A file, read."""
    return parse_module(Source(path.name, path.read_text("utf-8")))


def filled_call(graph: Graph, arrays: Sequence[Array]) -> Callable[[int, int], float]:
    """A function of a fill and a number of calls that gives their mean time; memory is filled before each."""
    dtypes, ranks = [SUPPORTED[a.dtype] for a in arrays], [a.ndim for a in arrays]
    shaped = pipeline.infer(graph, dtypes, ranks)
    extents = pipeline.fit(shaped, [a.shape for a in arrays])
    text, interface = c.emit(pipeline.lower(shaped)), interface_of(shaped, CPU)
    library = Compiled(interface, lambda: text, text).library(threads=False)
    sizes = np.array([extents[n] for n in interface.arguments] or [0], np.int64)
    outputs = [np.empty(shape, dtype) for shape, dtype in outputs_of(shaped, extents)]
    count = int(library.work(argument(sizes)))
    room = np.empty(count + 64, np.uint8)
    start = -room.ctypes.data % 64
    work = room[start : start + count]
    given = [argument(a) for a in (sizes, *map(np.ascontiguousarray, arrays), *outputs)]
    given.append(argument(work) if count else NO_SPACE)
    held = [work, *(out.reshape(-1).view(np.uint8) for out in outputs)]

    def timed(fill: int, calls: int) -> float:
        total = 0.0
        for _ in range(calls):
            for memory in held:
                memory[: len(memory) // 4 * 4].view(np.uint32)[:] = fill
            begin = perf_counter()
            status = library.function(*given)
            total += perf_counter() - begin
            assert status == 0, f"the program returned {status}"
        return total / calls

    return timed


def least(timed: Callable[[int, int], float]) -> dict[str, float]:
    """The least time of each fill, taken in turns."""
    calls = min(1000, 1 + int(SAMPLE / max(timed(0, 3), 1e-7)))
    found = dict.fromkeys(FILLS, float("inf"))
    for _ in range(ROUNDS):
        for name in random.sample(list(FILLS), len(FILLS)):
            found[name] = min(found[name], timed(FILLS[name], calls))
    return found


def main() -> int:
    """Run from the command line."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m bench.fills", description=__doc__, formatter_class=shape
    )
    parser.add_argument("--only", default="", metavar="PATTERNS", help="regular expressions")
    patterns = [word for word in parser.parse_args().only.split(",") if word]
    worst = 1.0
    for title, graph, arrays in cases():
        if patterns and not any(re.search(pattern, title) for pattern in patterns):
            continue
        times = least(filled_call(graph, arrays))
        ratio = max(times.values()) / min(times.values())
        worst = max(worst, ratio)
        shown = "  ".join(f"{name} {taken * 1e6:.2f}" for name, taken in times.items())
        print(f"{title:46s} µs: {shown}  ratio {ratio:.2f}", flush=True)
    print(f"largest ratio {worst:.2f}")
    return int(MOST < worst)


if __name__ == "__main__":
    sys.exit(main())
