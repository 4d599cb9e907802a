"""No program depends on what memory held: the same bits, and nothing is computed with what was there.

``native.run`` calls every program with outputs and workspace full of zeros, of subnormal numbers and of NaN; see there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bench.workloads import PROGRAMS, QUICK, arrays_of
from ilang.codegen.call.arguments import outputs_of
from ilang.core import pipeline
from ilang.core.ir.graph import Graph
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Shaped
from ilang.core.notation.files.module import exports, parse_module
from ilang.core.record import replace
from ilang.core.source import Source
from ilang.icli.arrays import array_of
from tests.conformance.test_samples import INPUT, LESSONS
from tests.property import native
from tests.property.test_fuzz import needs_compiler
from tests.shares import share

Array = npt.NDArray[Any]

EXTENTS = (3, 5, 10, 17, 24, 31, 33, 40, 63, 65, 100)
"""Short of a vector, of a strip of 16, 32 or 64, and past one."""
DRAWN = 8
"""Shapes that each program below is run on."""

SCHEDULED = (
    "{} >> ik*kj~ijk | {splits} | j 1 i k k' i' j'{} >> +ijk~ij | {splits} | j i k k' i' j' 0"
)
RAGGED = {
    "ik*kj~ijk >> +ijk~ij": ("nm", "mp"),
    "ik*jk~ijk >> +ijk~ij": ("nm", "pm"),
    "ki*kj~ijk >> +ijk~ij": ("mn", "mp"),
    "zik*zkj~zijk >> +zijk~zij": ("znm", "zmp"),
    "ikl*klj~ijkl >> +ijkl~ij": ("nzm", "zmp"),
    "amji*ckbm~abcijkm >> +abcijkm~cbakji": ("zmyp", "ynzm"),
    "ncyx*oc~noyxc >> +noyxc~noyx": ("zmyp", "nm"),
    "nc(y+u)(x+v)*ocuv~noyxcuv >> +noyxcuv~noyx": ("znmp", "mnzy"),
    "nc(y+u-1)(x+v-1)*ocuv~noyxcuv >> +noyxcuv~noyx": ("znpm", "pnyz"),
    "((ik*kj~ijk >> +ijk~ij) | I) >> ik*kj~ijk >> +ijk~ij": ("nm", "mp", "pn"),
    # what was computed is staged in strips that end early, or packed
    SCHEDULED.format("(I | -kj~kj)", "", splits="i:6,j:64,k:512"): ("nm", "mp"),
    SCHEDULED.format("(I | -kj~kj)", " | 1:c", splits="i:6,j:64,k:512"): ("nm", "mp"),
    SCHEDULED.format("(I | -jk~kj)", "", splits="i:4,j:32,k:64"): ("nm", "pm"),
    SCHEDULED.format("(I | (kl*lj~kjl >> +kjl~kj))", "", splits="i:4,j:16,k:64"): (
        "nm",
        "my",
        "yp",
    ),
}
"""Products whose lanes or rows end inside a tile, and letters for the extents of their inputs; y and z are small."""
PADDED = {
    "+c(y+u:3-1)(x+v:3-1)~cyx": ("znm",),
    ">c(2y+u:3-1)(2x+v:3-1)~cyx": ("znm",),
    "c(y+u:5-2)(x+v:5-2)~cyxuv >> +cyxuv~cyx": ("znm",),
    "c(y+u-1)(x+v-1)*uv~cyxuv >> +cyxuv~cyx": ("znm", "yy"),
    "(x+u-1)*u~xu >> +xu~x": ("m", "y"),
    "+(3x+u:30-29)~x || u x": ("m",),
    "+(-u:7+x:50+5)~x": ("m",),
    "(y+u:3-1)*(x+v:2-1)~yxuv": ("m", "n"),
}
"""Windows that leave what they are laid over, and letters as above: GCC 12 may read what is masked there."""


def lowered(
    graph: Graph, arrays: Sequence[Array], fixed: bool, name: str
) -> tuple[Shaped, Program]:
    """A graph inferred and as kernels, for arrays like these or for these extents alone."""
    names = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "bool": "bool"}
    dtypes = [names[str(array.dtype)] for array in arrays]
    shapes = [array.shape for array in arrays]
    shaped = pipeline.infer(graph, dtypes, [len(s) for s in shapes], shapes if fixed else None)
    shaped = replace(shaped, name=name)
    return shaped, pipeline.lower(shaped)


def call_of(number: int, shaped: Shaped, arrays: Sequence[Array]) -> native.Call:
    """A call of a program of a batch."""
    extents = pipeline.fit(shaped, [array.shape for array in arrays])
    sizes = zip(shaped.sizes, extents, strict=True)
    free = tuple(extent for size, extent in sizes if size.is_argument())
    outputs = tuple(shape for shape, _ in outputs_of(shaped, extents))
    return native.Call(number, free, tuple(arrays), outputs)


def unchanged(cases: Sequence[tuple[str, Graph, Sequence[Sequence[Array]]]], mode: str) -> None:
    """No call of any program is in trouble: open programs on all their arrays, fixed ones on the first."""
    programs: list[Program] = []
    calls, told = [], []
    for title, graph, runs in cases:
        for fixed in (False, True):
            shaped, program = lowered(graph, runs[0], fixed, f"p{len(programs)}")
            for arrays in runs[:1] if fixed else runs:
                calls.append(call_of(len(programs), shaped, arrays))
                told.append((title, [array.shape for array in arrays], fixed))
            programs.append(program)
    answers = native.run(programs, calls, mode)
    wrong = [(*t, a.trouble) for t, a in zip(told, answers, strict=True) if a.trouble]
    assert not wrong, "\n".join(map(str, wrong))
    assert len(answers) == len(calls)


def module_graph(path: Path, name: str = "") -> Graph:
    """The graph of what a file exports."""
    module = parse_module(Source(path.name, path.read_text("utf-8")))
    return pipeline.module_graph(module, name or exports(module)[0].name)


def drawn(letters: Sequence[str], dtype: str, numbers: random.Random) -> list[Array]:
    """Arrays whose extents are drawn, those of y and z from 1 to 3."""
    extents = dict(zip("nmp", numbers.sample(EXTENTS, 3), strict=True))
    extents |= {"y": numbers.randrange(1, 4), "z": numbers.randrange(1, 4)}
    generator = np.random.default_rng(numbers.randrange(1 << 30))
    shapes = (tuple(extents[letter] for letter in word) for word in letters)
    return [generator.integers(1, 4, shape).astype(dtype) for shape in shapes]


def drawn_for(
    programs: Mapping[str, Sequence[str]], dtype: str, number: int
) -> Iterator[tuple[str, Graph, list[list[Array]]]]:
    """A share of programs by their text, each with arrays of several shapes."""
    numbers = random.Random(0)
    for text, letters in share([*programs.items()], number):
        runs = [drawn(letters, dtype, numbers) for _ in range(DRAWN)]
        yield text, pipeline.graph_of(pipeline.text_component(text), "f"), runs


@needs_compiler
@pytest.mark.parametrize(
    ("number", "mode", "dtype"),
    [
        *((0, "sanitized", "float32"), (1, "fast", "float32"), (2, "fast", "float64")),
        *((3, "baseline", "float64"), (4, "threads", "float32")),
        pytest.param(5, "avx2", "float32", marks=native.needs_avx2),
    ],
)
def test_ragged_products(number: int, mode: str, dtype: str) -> None:
    unchanged(list(drawn_for(RAGGED, dtype, number)), mode)


@needs_compiler
@pytest.mark.parametrize(("number", "dtype"), [(0, "float32"), (1, "float64")])
@pytest.mark.parametrize("mode", ["fast", "sanitized", native.AVX2])
def test_windows_that_leave_their_array(mode: str, number: int, dtype: str) -> None:
    unchanged(list(drawn_for(PADDED, dtype, number)), mode)


@needs_compiler
@pytest.mark.parametrize("mode", ["fast"])
def test_programs_of_the_benchmarks(mode: str) -> None:
    """Each on its small extents, which fill no vector; open, so that tiles are for many."""
    cases = []
    for workload in share(QUICK):
        path = PROGRAMS / f"{workload.program}.i"
        runs = [list(arrays_of(workload).values())]
        cases.append((workload.name, module_graph(path, workload.program), runs))
    unchanged(cases, mode)


@needs_compiler
@pytest.mark.parametrize("mode", ["fast"])
def test_samples(mode: str) -> None:
    cases = []
    for lesson in share(LESSONS):
        words = INPUT.findall(lesson.read_text("utf-8"))
        arrays = [array_of(word, None, n) for n, word in enumerate(words)]
        cases.append((lesson.stem, module_graph(lesson), [arrays]))
    unchanged(cases, mode)
