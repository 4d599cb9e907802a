"""Work that runs along one axis in an operand and along another in the result, in every way that it is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang.core.machine import CPU, Machine
from ilang.core.pipeline import graph_of, infer, text_component
from ilang.core.record import replace
from tests.property import native
from tests.property.batch import Batch
from tests.property.meaning import TYPES
from tests.property.test_fuzz import needs_compiler
from tests.shares import share

Array = npt.NDArray[Any]

AVX2 = pytest.param(2, "avx2", marks=native.needs_avx2)
EXTENTS = (0, 1, 7, 8, 15, 16, 17, 33, 64, 67, 100, 129)
CASES: dict[str, tuple[int, Callable[..., Array]]] = {
    "ij~ji": (2, lambda x: x.T),
    "-ij~ji": (2, lambda x: -x.T),
    "-ij~ij >> +ij~ij >> ij~ji": (2, lambda x: -x.T),
    "iji~ij": (-3, lambda x: np.einsum("iji->ij", x)),
    "ijj~ji": (-3, lambda x: np.einsum("ijj->ji", x)),
    "jij~ji": (-3, lambda x: np.einsum("jij->ji", x)),
    "ijk~kji": (3, lambda x: x.transpose(2, 1, 0)),
    "ijk~kij": (3, lambda x: x.transpose(2, 0, 1)),
    "ijk~ikj": (3, lambda x: x.transpose(0, 2, 1)),
}


Runs = Sequence[Sequence[Array]]
"""The inputs of each call, or the results that are wanted of each."""


def _are_right(
    mode: str, examples: Sequence[tuple[str, str, Runs, Runs]], machine: Machine = CPU
) -> None:
    """Programs of inputs of a type, compiled together, give on several inputs each all that is wanted."""
    batch = Batch(mode)
    for text, dtype, runs, wanted in examples:
        dtypes: list[str | None] = [dtype] * len(runs[0])
        shaped = infer(graph_of(text_component(text), "f"), dtypes)
        batch.add(shaped, machine)
        for run, want in zip(runs, wanted, strict=True):
            batch.call(shaped, run, want)
    batch.agree(0)


def _shapes(rank: int) -> list[tuple[int, ...]]:
    """Every extent meets others, ragged and whole; of rank -3, those whose first or last two may be walked at once."""
    if rank == -3:
        return [(n, n, n) for n in EXTENTS]
    count = len(EXTENTS)
    pairs = [
        (EXTENTS[n], EXTENTS[(n * step + step) % count]) for step in (1, 5, 7) for n in range(count)
    ]
    return [(m, 3, n) if rank == 3 else (m, n) for m, n in pairs]


@needs_compiler
@pytest.mark.parametrize(
    ("number", "mode"), [(0, "sanitized"), (1, "fast"), AVX2, (3, "baseline"), (4, "threads")]
)
def test_transposed(number: int, mode: str) -> None:
    """A share of all texts and types in each mode, every text once and more."""
    examples = []
    numbers = np.random.default_rng(0)
    every = [*product(CASES, ("f32", "f64", "i32", "i64", "bool"))]
    for text, dtype in share(every, number):
        if dtype == "bool" and "-" in text:
            continue
        rank, meaning = CASES[text]
        shapes = _shapes(rank)
        runs = [[numbers.integers(0, 100, shape).astype(TYPES[dtype])] for shape in shapes]
        examples.append((text, dtype, runs, [[meaning(*run)] for run in runs]))
    _are_right(mode, examples)


@needs_compiler
@pytest.mark.parametrize("mode", ["fast", "baseline", "threads"])
def test_beside_an_operand_that_runs_along(mode: str) -> None:
    numbers = np.random.default_rng(0)
    runs = [[numbers.normal(size=(n, n)).astype(np.float32)] * 2 for n in EXTENTS]
    sums, products = [[x + y.T] for x, y in runs], [[(x * y.T).T] for x, y in runs]
    examples = [("ij+ji~ij", "f32", runs, sums), ("ij*ji~ij >> ij~ji", "f32", runs, products)]
    _are_right(mode, examples)


@needs_compiler
def test_two_results_of_one_operand() -> None:
    examples = []
    for text in ("ij~ji & ij~ji", "ij~ji & -ij~ji", "ijk~kij & ijk~kji"):
        numbers = np.random.default_rng(0)
        meanings = [CASES[part][1] for part in text.split(" & ")]
        rank = 3 if "k" in text else 2
        runs = [[numbers.integers(0, 100, shape).astype(np.float32)] for shape in _shapes(rank)]
        examples.append((text, "f32", runs, [[of(x) for of in meanings] for (x,) in runs]))
    _are_right("fast", examples)


@needs_compiler
@pytest.mark.parametrize("mode", ["sanitized", "fast", native.AVX2, "baseline"])
def test_past_the_caches(mode: str) -> None:
    """Whole lines, wherever an array begins; where rows of the result begin elsewhere in a line, as usual."""
    small = replace(CPU, memory=replace(CPU.memory, streamed_bytes=1))
    shapes = [*_shapes(2), (96, 33), (160, 160), (32, 7), (48, 64)]
    examples = []
    for dtype in ("f32", "f64"):
        numbers = np.random.default_rng(0)
        runs = [[numbers.integers(0, 100, shape).astype(TYPES[dtype])] for shape in shapes]
        examples.append(("ij~ji", dtype, runs, [[x.T] for (x,) in runs]))
    _are_right(mode, examples, small)


@needs_compiler
@pytest.mark.parametrize("mode", ["sanitized", "fast", native.AVX2, "baseline"])
def test_packed_across(mode: str) -> None:
    """A contraction whose lanes run across what it reads packs them transposed."""
    numbers = np.random.default_rng(0)
    runs = []
    for n, k in zip(EXTENTS, reversed(EXTENTS), strict=True):
        runs.append([numbers.integers(-4, 5, (rows, k)).astype(np.float32) for rows in (n, n + 3)])
    products = [[x @ y.T] for x, y in runs]
    _are_right(mode, [("ik*jk~ijk >> +ijk~ij", "f32", runs, products)])


@needs_compiler
@pytest.mark.parametrize(("turn", "mode"), [(0, "sanitized"), (1, "fast"), AVX2, (3, "baseline")])
def test_rows_known_to_be_shorter_than_a_vector(turn: int, mode: str) -> None:
    """A share of them in each mode."""
    batch, numbers = Batch(mode), np.random.default_rng(0)
    every = [*product((8, 9, 12, 15), ("f32", "f64"))]
    for rows, dtype in share(every, turn):
        shaped = infer(graph_of(text_component("ij~ji"), "f"), [dtype])
        size = shaped.tensors[0].dims[0]
        sizes = tuple(
            replace(s, fixed=rows) if n == size else s for n, s in enumerate(shaped.sizes)
        )
        shaped = replace(shaped, sizes=sizes)
        batch.add(shaped)
        for columns in EXTENTS:
            x = numbers.integers(0, 100, (rows, columns)).astype(TYPES[dtype])
            batch.call(shaped, [x], [x.T])
    batch.agree(0)
