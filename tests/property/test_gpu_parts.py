"""Reductions with few results on a GPU: right at random extents, in parts that fill it, in whole sectors and banks."""

from __future__ import annotations

import functools
import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import gpu_rows
from ilang.codegen.call.native import Native
from ilang.codegen.emulator.program import load
from ilang.codegen.targets import cuda
from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import Count, Program
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU, GPU
from ilang.core.notation.files.module import parse_module
from ilang.core.pipeline import (
    explain,
    fit,
    graph_of,
    infer,
    loops_text,
    lower,
    module_graph,
    text_component,
)
from ilang.core.record import replace
from ilang.core.source import Source
from tests.property import emulated
from tests.property.batch import Batch, traffic_of
from tests.property.meaning import TYPES
from tests.property.test_fuzz import needs_compiler
from tests.shares import share

Shapes = tuple[tuple[int, ...], ...]

PRODUCT = "ik*kj~ijk >> +ijk~ij"
FEW: dict[str, tuple[str, Shapes]] = {
    "square": (PRODUCT, ((16, 65536), (65536, 16))),
    "tiny": (PRODUCT, ((8, 4096), (4096, 8))),
    "small": (PRODUCT, ((4, 4096), (4096, 4))),
    "wide": (PRODUCT, ((8, 4096), (4096, 4096))),
    "high": (PRODUCT, ((4096, 4096), (4096, 8))),
    "narrow": (PRODUCT, ((4, 4096), (4096, 4096))),
    "middle": (PRODUCT, ((512, 4096), (4096, 512))),
    "turned": ("ki*jk~ijk >> +ijk~ij", ((16384, 16), (16, 16384))),
    "batch": ("bik*bkj~bijk >> +bijk~bij", ((4, 8, 4096), (4, 4096, 8))),
    "vector": (PRODUCT, ((1, 4096), (4096, 4096))),
    "rows": ("ik*k~ik >> +ik~i", ((8, 1 << 20), (1 << 20,))),
    "columns": ("+ij~j", ((65536, 16),)),
    "largest": (">ij~j", ((65536, 16),)),
    "weights": ("nihw*nohw~noihw >> +noihw~oi", ((16, 8, 32, 32), (16, 8, 32, 32))),
}
"""Texts, and shapes of which results have few elements."""

ONE_SHORT = {
    "two": "f(a[m,k], b[k,2]) = ik*kj~ijk >> +ijk~ij",
    "three": "f(a[3,k], b[k,n]) = ik*kj~ijk >> +ijk~ij",
    "sixteen": "f(a[m,k], b[k,16]) = ik*kj~ijk >> +ijk~ij",
    "most": "f(a[m,700], b[700,31]) = ik*kj~ijk >> +ijk~ij",
}
"""Products one side of whose result is known and short, while the other one comes at run time."""

RAGGED: tuple[Shapes, ...] = (
    ((2000, 500), (500, 1999)),
    ((1000, 1000), (1000, 999)),
    ((1000, 1000), (1000, 1000)),
    ((300, 100), (100, 301)),
)
"""Shapes of products whose rows end inside of a tile: what threads hold when they store is asked to leave room."""


def shaped_of(text: str, shapes: Shapes) -> Shaped:
    """A program for arrays of these shapes."""
    return infer(graph_of(text_component(text), "f"), shapes=shapes)


@functools.cache
def lowered(name: str) -> Program:
    """One of the programs above."""
    return lower(shaped_of(*FEW[name]), GPU)


def blocks(program: Program, number: int) -> int:
    """How many blocks a kernel has something to do for."""
    (spread,) = program.kernels[number].body
    assert isinstance(spread, ThreadLoop)
    count = prod(program.sizes[loop.size].fixed or 0 for loop in spread.loops)
    return count if spread.over == "blocks" else -(-count // spread.threads)


@pytest.mark.parametrize("name", FEW)
def test_every_multiprocessor_has_something_to_do(name: str) -> None:
    """What has too few terms for that has parts of as many as are worth a result of their own."""
    assert GPU.device is not None
    few = {"tiny": 64, "small": 64}
    most = GPU.device.multiprocessors
    assert few.get(name, 9 * most // 10) <= blocks(lowered(name), 0) <= 8 * most
    assert len(lowered(name).kernels) == 2


@pytest.mark.parametrize("name", FEW)
def test_what_is_chosen_gives_the_same_text_when_it_is_written(name: str) -> None:
    text, shapes = FEW[name]
    graph = graph_of(text_component(text), "f")
    again = text
    for row in explain(graph, shapes=shapes, machine=GPU).execution.schedule:
        again = again.replace(row.text, f"{row.text} {row.schedule}")
    assert again != text
    written = shaped_of(again, shapes)
    assert loops_text(lower(written, GPU)) == loops_text(lowered(name))
    assert "_parts" in loops_text(lower(written, CPU))


TERMS, TILE = "i:4:2,j:4:2,k:4:4", "i j k k' 0 1 k'' i' j' i'' j'' | 0:s2,1:s2"
WRITTEN = (
    f"ik*kj~ijk | {TERMS} | {TILE} >> {{}}ijk~ij | {TERMS} | i j k k' k'' i' j' i'' j'' 0 | {{}}"
)
ROLES = ("i:p,j:p,k:p,i':t,j':t,i'':u,j'':u", "i:y,j:x,k:p,i':ty,j':tx,i'':u,j'':u")
AT_RUN_TIME = (
    PRODUCT,
    "ki*kj~ijk >> +ijk~ij",
    "bik*bkj~bijk >> +bijk~bij",
    "ikl*klj~ijkl >> +ijkl~ij",
    "ik*kj~ijk >> +ijk~ij >> (I & >ij~i) >> ij-i~ij",
    *(WRITTEN.format("+", roles) for roles in ROLES),
    WRITTEN.format(">", ROLES[0]),
    (
        "ik*kj~ijk | i:4:2,j:4:2,k:4 | i j k 0 1 k' i' j' i'' j'' | 0:s2,1:s2"
        f" >> +ijk~ij | i:4:2,j:4:2,k:4 | i j k k' i' j' i'' j'' 0 | {ROLES[0]}"
    ),
)
"""Texts with parts whose number follows from extents: chosen, and written with copies in one loop and in two."""


def shares_of(program: Program) -> list[Count]:
    """How many parts reductions have at run time."""
    return [each for each in program.counts if each[1].operation == "shares"]


def parts_of(program: Program, extents: dict[str, int]) -> list[int]:
    """How many that are, of sizes by name."""
    sizes: dict[int, int] = {
        n: size.fixed if size.fixed is not None else extents.get(size.name, 0)
        for n, size in enumerate(program.sizes)
    }
    counts: list[int] = []
    for number, value in program.counts:
        sizes[number] = value.value(sizes)
        if value.operation == "shares":
            counts.append(sizes[number])
    return counts


@pytest.mark.parametrize(
    ("extents", "wanted"),
    [
        ({"i": 16, "k": 65536, "j": 16}, 128),
        ({"i": 512, "k": 4096, "j": 512}, 4),
        ({"i": 512, "k": 1024, "j": 512}, 2),  # of 512 terms at least
        ({"i": 1024, "k": 65536, "j": 1024}, 1),  # 128 tiles
        *(({"i": n, "k": n, "j": n}, 1) for n in (1, 64, 512, 700, 736, 1000, 4096)),
        ({"i": 0, "k": 4096, "j": 3}, 8),
        ({"i": 3, "k": 0, "j": 3}, 1),
    ],
)
def test_parts_at_run_time_are_as_many_as_fill_the_device(
    extents: dict[str, int], wanted: int
) -> None:
    """Square products have one: what they compute, and where, is what it is without parts."""
    program = lower(infer(graph_of(text_component(PRODUCT), "f")), GPU)
    assert parts_of(program, extents) == [wanted]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("f(a[16,k], b[k,16]) = ik*kj~ijk >> +ijk~ij", "k:p"),
        ("f(a[256,k], b[k,256]) = ik*kj~ijk >> +ijk~ij", "k:p"),
        ("f(a[m,9000], b[9000,n]) = ik*kj~ijk >> +ijk~ij", "k:p"),
        ("f(a[m,500], b[500,n]) = ik*kj~ijk >> +ijk~ij", ""),  # too few terms for two
        ("f(a[4096,k], b[k,4096]) = ik*kj~ijk >> +ijk~ij", ""),  # enough tiles for one
    ],
)
def test_where_parts_are_counted_at_run_time(text: str, parts: str) -> None:
    graph = module_graph(parse_module(Source("f.i", text)), "f")
    program = lower(infer(graph), GPU)
    assert bool(shares_of(program)) is bool(parts)
    *_, row = explain(graph, machine=GPU).execution.schedule
    assert ("k:p" in row.schedule) is bool(parts)


@pytest.mark.parametrize(
    ("name", "tile"),
    [
        ("two", "i:128,j:1:2,k:8:16"),
        ("three", "i:1:4,j:256,k:8:16"),
        ("sixteen", "i:32:4,j:4:4,k:8:16"),
        ("most", "i:2:16:4,j:8:4,k:8:16"),
    ],
)
def test_a_known_short_side_is_enough_for_a_tile_that_fits_it(name: str, tile: str) -> None:
    graph = module_graph(parse_module(Source("f.i", ONE_SHORT[name])), "f")
    *_, row = explain(graph, machine=GPU).execution.schedule
    assert row.schedule.startswith(f"| {tile} |")


@pytest.mark.parametrize(("terms", "copied"), [(2, 2), (3, 4), (15, 8), (17, 8)])
def test_no_more_terms_are_copied_than_there_are(terms: int, copied: int) -> None:
    text = f"f(a[m,{terms}], b[{terms},n]) = {PRODUCT}"
    *_, row = explain(
        module_graph(parse_module(Source("f.i", text)), "f"), machine=GPU
    ).execution.schedule
    assert f",k:{copied} |" in row.schedule


MEASURED: tuple[tuple[str, Shapes, float], ...] = (
    (PRODUCT, ((8, 4096), (4096, 8)), 1.0),
    (PRODUCT, ((16, 4096), (4096, 16)), 1.0),
    (PRODUCT, ((4, 1024), (1024, 256)), 1.0),
    (PRODUCT, ((256, 1024), (1024, 8)), 1.0),
    (PRODUCT, ((8, 512), (512, 512)), 1.0),
    ("ki*kj~ijk >> +ijk~ij", ((2048, 16), (2048, 16)), 1.0),
    ("ki*jk~ijk >> +ijk~ij", ((2048, 8), (8, 2048)), 1.0),
    (PRODUCT, ((1, 1024), (1024, 512)), 1.0),
    (PRODUCT, ((64, 1024), (1024, 1)), 1.0),
    ("+ij~j", ((2048, 16),), 1.0),
    ("+ij~j", ((512, 96),), 1.0),
    ("+ij~i", ((8, 16384),), 1.0),
    (">ij~i", ((4, 16384),), 1.0),
)
"""Texts, shapes, and what banks of shared memory may cost beside the least."""

needs_emulator = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")


@functools.cache
def measured() -> tuple[str, Native]:
    """All of these as one text, each named by its number, and what was compiled of it."""
    shaped = [shaped_of(text, shapes) for text, shapes, _ in MEASURED]
    programs = [replace(lower(each, GPU), name=f"m{n}") for n, each in enumerate(shaped)]
    source = emulated.of_one_width(programs, cuda.emit_together(programs))
    return source, load(source, "f.cu", checked=True)


@needs_emulator
@pytest.mark.parametrize("number", range(len(MEASURED)), ids=lambda n: MEASURED[n][0])
def test_memory_is_read_and_written_in_whole_sectors(number: int) -> None:
    """But for the results of parts of which a block combines those of one element: a sector of each."""
    text, shapes, conflicts = MEASURED[number]
    shaped = shaped_of(text, shapes)
    source, loaded = measured()
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    _, traffic = traffic_of(loaded, f"m{number}", shaped, arrays)
    lines = source.splitlines()
    for each in traffic:
        line = lines[each.line - 1].split("=")
        is_part = each.space == "global" and each.access == "read" and "_parts[" in line[-1]
        most = conflicts if each.space == "shared" else 1.1
        assert each.ratio() <= most or is_part, lines[each.line - 1]


TEXTS = (
    PRODUCT,
    "ki*kj~ijk >> +ijk~ij",
    "ik*jk~ijk >> +ijk~ij",
    "bik*bkj~bijk >> +bijk~bij",
    "ikl*klj~ijkl >> +ijkl~ij",
    "nihw*nohw~noihw >> +noihw~oi",
    "+ij~j",
    "+ij~i",
    ">ij~j",
    "<ij~i",
    "+ijk~j",
    "+ijk~ik",
    "ik*k~ik >> +ik~i",
    "ik*kj~ijk >> +ijk~ij >> (I & >ij~i) >> ij-i~ij",
)
SHORT = (0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 33, 70)
LONG = (0, 1, 63, 512, 700, 1024, 1500, 5000, 9001)
WORK = 300_000
"""Terms of a program at most."""
MOST_ELEMENTS = 1_000_000
"""Elements of an input at most, of which there may be many where another extent is 0 and there are no terms."""
DRAWN = 24
"""Programs of a batch."""


def trial(seed: int) -> tuple[Shaped, list[Any]]:
    """A random text at random extents, known or not when it is compiled, and arrays for it."""
    rng = random.Random(seed)
    while True:
        text, numbers = rng.choice(TEXTS), np.random.default_rng(seed)
        inputs = text.split("~", 1)[0].lstrip("+<>").split("*")
        reduced = set("".join(inputs)) - set(text.split(" >> (")[0].rsplit("~", 1)[1])
        letters = sorted(set("".join(inputs)))
        sizes = {c: rng.choice(LONG if c in reduced else SHORT) for c in letters}
        elements = [prod(sizes[c] for c in each) for each in inputs]
        if prod(sizes.values()) <= WORK and max(elements) <= MOST_ELEMENTS:
            break
    dtype = rng.choice((np.float32, np.float32, np.float64))
    arrays = [numbers.normal(size=[sizes[c] for c in each]).astype(dtype) for each in inputs]
    graph = graph_of(text_component(text), "f")
    names = [{"float32": "f32", "float64": "f64"}[array.dtype.name] for array in arrays]
    shapes = [array.shape for array in arrays] if rng.random() < 0.8 else None
    return replace(infer(graph, names, shapes=shapes), name=f"p{seed}"), arrays


@needs_emulator
@pytest.mark.batches(1)
@pytest.mark.parametrize("mode", emulated.MODES)
def test_random_extents(mode: str, batch: int) -> None:
    """Every access is looked at, in several orders of threads, which give the same bits."""
    batch_of = Batch(mode)
    for seed in emulated.of_mode(range(DRAWN * batch, DRAWN * batch + DRAWN), mode):
        shaped, arrays = trial(seed)
        batch_of.add(shaped)
        batch_of.call(shaped, arrays)
    programs = batch_of.programs
    several = sum("_parts" in buffer.name for each in programs for buffer in each.buffers)
    assert several >= len(programs) // 4 or mode == "cuda"
    batch_of.agree(1e-4)


RAGGED_PARTS = (
    "+ij~j | i:4 | j i i' | j:p,i:p,i':p",
    "+ij~j | i:4 | j i' i | j:p,i:p,i':p",
    ">ij~j | i:4:2 | j i i' i'' | j:p,i:p,i':p,i'':p",
    "+ij~j | i:4:2 | j i i' i'' | j:p,i:p,i':p",
    "+ij~j | i:4,j:3:2 | j i i' j' j'' | j:p,i:p,i':p,j':u,j'':t",
    "+ij~. | i:4 | i i' j | i:p,i':p,j:p",
    "+ij[i<=j]~j | i:4 | j i i' | j:p,i:p,i':p",
)
"""Schedules in which parts of an axis end where it does, inside of the last iteration of a loop around them."""


@needs_emulator
@needs_compiler
@pytest.mark.parametrize("mode", [*emulated.MODES, "sanitized"])
def test_there_are_no_parts_past_the_end_of_an_axis(mode: str) -> None:
    """What a second kernel combines, the first one has written."""
    batch = Batch(mode)
    for number, text in enumerate(RAGGED_PARTS):
        shaped = infer(graph_of(text_component(text), "f"))
        batch.add(shaped)
        for shape in ((9, 5), (1, 8), (8, 4), (0, 3), (5, 300)):
            array = np.random.default_rng(number).normal(size=shape).astype(np.float32)
            batch.call(shaped, [array])
    batch.agree(1e-4)


def trial_at_run_time(seed: int) -> tuple[Shaped, list[Any]]:
    """A text at random extents that are not known when it is compiled, most of them with many terms."""
    rng = random.Random(seed)
    text, numbers = AT_RUN_TIME[seed % len(AT_RUN_TIME)], np.random.default_rng(seed)
    inputs = [each.split()[0] for each in text.split("~", 1)[0].split("*")]
    kept = text.split(" >> ")[1].split("~")[1].split()[0]
    while True:
        sizes = {
            c: rng.choice((0, 1, 3, 8, 17, 70) if c in kept else (0, 511, 1024, 1100, 1300))
            for c in sorted(set("".join(inputs)) - {"l"})
        } | {"l": rng.choice((1, 3))}
        if prod(sizes.values()) <= WORK // 20:
            break
    arrays = [numbers.normal(size=[sizes[c] for c in each]).astype(np.float32) for each in inputs]
    shaped = infer(graph_of(text_component(text), "f"), ["f32"] * len(arrays))
    return replace(shaped, name=f"r{seed}"), arrays


@needs_emulator
@pytest.mark.parametrize("mode", emulated.MODES)
def test_random_extents_at_run_time(mode: str) -> None:
    """On a device of few multiprocessors by turns, where few parts have many iterations each."""
    assert GPU.device is not None
    few = replace(GPU, device=replace(GPU.device, multiprocessors=7))
    batch, several = Batch(mode), 0
    for seed in emulated.of_mode(range(len(AT_RUN_TIME)), mode):
        program = batch.add(trial_at_run_time(seed)[0], few if seed % 2 else GPU)
        for number in (seed, seed + len(AT_RUN_TIME)):
            shaped, arrays = trial_at_run_time(number)
            batch.call(shaped, arrays)
            named = zip(shaped.sizes, fit(shaped, [array.shape for array in arrays]), strict=True)
            several += 1 < max(parts_of(program, {size.name: n for size, n in named}))
    assert all(shares_of(program) for program in batch.programs)
    assert len(batch.programs) // 2 <= several < len(batch.calls) or mode == "cuda"
    batch.agree(1e-4)


ROWS = ("+ij~i", ">ij~i", "ij*j~ij >> +ij~i", "+ijk~ij", "ij*ij~ij >> >ij~i")
"""Sums and maxima of rows, whose extents come at run time."""
COLUMNS = ("+ij~j", ">ij~j", "ij*i~ij >> +ij~j", "+ijk~jk", "<ij~j")
LENGTHS = (0, 1, 5, 1023, 1024, 4097, 8192, 30001)


@needs_emulator
@pytest.mark.parametrize("mode", emulated.MODES)
@pytest.mark.parametrize(("texts", "kernels"), [(ROWS, 2), (COLUMNS, 3)], ids=["rows", "columns"])
def test_at_run_time_blocks_share_what_is_long(
    texts: Sequence[str], kernels: int, mode: str
) -> None:
    """At ragged extents, of f32 and f64, on the usual device and on one of few multiprocessors.

    Many parts of a column are combined by a block, few by a thread; those of a row by a block.
    """
    assert GPU.device is not None
    few = replace(GPU, device=replace(GPU.device, multiprocessors=3))
    batch = Batch(mode)
    for number, text in enumerate(texts):
        dtype = "f64" if number == 1 else "f32"
        kind, leaves = np.dtype(TYPES[dtype]), text.split("~", 1)[0].lstrip("+<>").split("*")
        shaped = infer(graph_of(text_component(text), "f"), [dtype] * len(leaves))
        program = batch.add(shaped, few if number % 2 else GPU)
        assert len(shares_of(program)) == 1
        assert len(program.kernels) == kernels
        reduced = set(leaves[0]) - set(text.rsplit("~", 1)[1])
        for turn, length in enumerate(LENGTHS):
            sizes = dict(zip("ijk", ((3, 1, 0, 9)[turn % 4], 2, 2), strict=True))
            sizes |= {"j": sizes["i"], "k": 2} if "i" in reduced else {}
            sizes |= dict.fromkeys(reduced, length)
            draw = np.random.default_rng(turn)
            shapes = [[sizes[c] for c in each] for each in leaves]
            batch.call(shaped, [draw.normal(size=each).astype(kind) for each in shapes])
    batch.agree(1e-4)


@pytest.mark.parametrize(
    ("text", "extents", "wanted"),
    [
        ("f(x[m,n]) = +ij~i", {"m": 16, "n": 131072}, [16]),
        ("f(x[m,n]) = +ij~i", {"m": 65536, "n": 1024}, [1]),
        ("f(x[m,n]) = +ij~i", {"m": 1, "n": 4095}, [1]),
        ("f(x[m,n]) = +ij~i", {"m": 1, "n": 1 << 24}, [264]),
        ("f(x[m,n]) = +ij~i", {"m": 0, "n": 8192}, [2]),
        ("f(x[16,n]) = +ij~i", {"n": 131072}, [16]),
        ("f(x[m,4096]) = +ij~i", {}, []),  # too short
        ("f(x[132,n]) = +ij~i", {}, []),  # enough for the device
        ("f(x[m,n]) = +ij~j", {"m": 65536, "n": 1024}, [256]),
        ("f(x[m,n]) = +ij~j", {"m": 1 << 24, "n": 4}, [65536]),
        ("f(x[m,n]) = +ij~j", {"m": 1 << 20, "n": 100_000}, [2]),
        ("f(x[m,n]) = +ij~j", {"m": 5000, "n": 300_000}, [1]),
        ("f(x[m,16]) = +ij~j", {"m": 131072}, [512]),
        ("f(x[m,n]) = (I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij", {}, []),
    ],
)
def test_rows_and_columns_have_as_many_parts_as_fill_the_device(
    text: str, extents: dict[str, int], wanted: list[int]
) -> None:
    """A row that is read beside its reductions stays one block's."""
    program = lower(infer(module_graph(parse_module(Source("f.i", text)), "f")), GPU)
    assert parts_of(program, extents) == wanted


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the path")
@pytest.mark.parametrize(("number", "arch"), [(0, "sm_75"), (1, "sm_80"), (2, "sm_90")])
def test_nvcc_spills_nothing(tmp_path: Path, number: int, arch: str) -> None:
    every = [(name, shaped_of(*FEW[name])) for name in FEW]
    every += [(f"ragged{n}", shaped_of(PRODUCT, shapes)) for n, shapes in enumerate(RAGGED)]
    every += [
        (f"counted{n}", infer(graph_of(text_component(text), "f")))
        for n, text in enumerate([*AT_RUN_TIME[:4], "+ij~i", "+ij~j"])
    ]
    every += [
        (
            f"wide{n}",
            infer(graph_of(text_component(PRODUCT), "f"), ["f64", "f64"], shapes=RAGGED[n]),
        )
        for n in (0, 2)
    ]
    every += [
        (name, infer(module_graph(parse_module(Source("f.i", text)), "f")))
        for name, text in ONE_SHORT.items()
    ]
    programs = [replace(lower(each, GPU), name=name) for name, each in share(every, number)]
    (row,) = (row for row in gpu_rows.FULL if row.workload.program == "matmul_written")
    written = module_graph(parse_module(Source("w.i", gpu_rows.text_of(row))), "matmul_written")
    programs.append(lower(infer(written), GPU))  # which takes nearly all registers of a thread
    first = 32 if number % 2 else 64
    text = emulated.of_widths(programs[:-1], cuda.emit_together(programs), first)
    (tmp_path / "f.cu").write_text(text)
    command = ["nvcc", "-std=c++17", f"-arch={arch}", "--fmad=false", "-Xptxas", "-v"]
    done = subprocess.run(
        [*command, "-Werror", "all-warnings", "-cubin", "-o", "f.cubin", "f.cu"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    each = re.findall(r"properties for (\S+)\n.* (\d+) bytes spill stores", done.stderr)
    assert each
    spilled = {name: int(count) for name, count in each if count != "0"}
    # While runs are added in f32, 64 accumulators of f64 wait in local memory: 512 bytes, written and read again.
    # A product of f64 has one register too few for sm_80.
    most = {"matmul_written": 1024, "wide2": 4}
    assert all(
        any(word in name and count <= room for word, room in most.items())
        for name, count in spilled.items()
    )


@pytest.mark.parametrize(
    "text",
    [
        "(+kj~k || k j | j:p) >> (I & +j~. || j 0)",
        "+hk~h || h k 0 | k:p >> (I & ||m~. || m 0)",
        "(+kj~k || j k | j:p) >> (I & -k~k || k 0)",
    ],
)
def test_what_a_reader_stages_has_no_parts(text: str) -> None:
    """Even where another one reads it whole."""
    with pytest.raises(ScheduleError, match="meet in the same elements"):
        lower(infer(graph_of(text_component(text), "f")), CPU)
