"""Every element type, conversion, operator and axis on extents that fill vectors: ``python tests/property/matrix.py``.

Optimising compilers turn loops into vectors, and have faults of their own there, which depend on how wide an element
is, on what it is converted to, and on how many elements are left over. So all of these meet here, many programs in one
C file, optimised for each instruction set. Values are small whole numbers, or powers of two in products: every result
is exact and must have the bits of the reference evaluator.

``--part 5/40`` runs the fifth of forty parts, which the test suite does with a few.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from ilang.core import pipeline  # noqa: E402 - found through the line above
from ilang.core.diagnostic import Error  # noqa: E402
from ilang.core.dtype import INTEGERS  # noqa: E402
from ilang.core.ir import kernel  # noqa: E402
from ilang.core.ir.shaped import Shaped  # noqa: E402
from ilang.core.notation.components.combinator import parse_program  # noqa: E402
from ilang.core.reference import evaluate  # noqa: E402
from ilang.core.source import Source  # noqa: E402
from tests.property import native  # noqa: E402
from tests.property.meaning import TYPES  # noqa: E402

Array = npt.NDArray[Any]

MODES = ("baseline", "avx2", "fast", "wide", "neon")
DTYPES = ("f32", "f64", "i32", "i64", "bool")
REDUCTIONS = ("+", "*", ">", "<", "&&", "||", "^^")
COMPARISONS = (">>", ">=", "<<", "<=", "==", "!=")
POINTWISE = ("+", "*", "-", ">", "<", "&&", "||", "^^", "==", "<<")
EXTENTS = (16, 31, 32, 33, 64, 100, 1024, 4128)
"""Extents that fill vectors of any width, miss them by one, or leave something over; and more than one chunk."""
FIXED = (32, 100, 1024)
"""Extents that are also known to the compiler."""
ACROSS = 5
"""The other extent of a matrix whose rows or columns are reduced; 33 where the result is to fill vectors."""
BATCH = 48


@dataclass(frozen=True)
class Cell:
    """A program of the matrix: its text, the types of its inputs, their shapes in each run, whether they are fixed."""

    text: str
    dtypes: tuple[str, ...]
    runs: tuple[tuple[tuple[int, ...], ...], ...]
    fixed: bool = False


def cells() -> Iterator[Cell]:
    """The matrix."""
    for dtype, to, op in itertools.product(DTYPES, ("", *DTYPES), REDUCTIONS):
        if to != dtype:
            yield from _reduced(f"{to} >> " if to else "", op, (dtype,))
    for dtype, to, op in itertools.product(DTYPES, ("", "i32", "i64"), ("+", "*", "^^")):
        if to != dtype:
            yield from _scheduled(f"{to} >> " if to else "", op, dtype)
    for dtype, op in itertools.product(INTEGERS, ("+", "*")):
        for shape in ((8, 8, 8), (8, 32, 4)):
            text = f"(I & {op}ijk~ik) >> ijk*ik~ijk"
            yield Cell(text, (dtype,), ((shape,),), fixed=True)
    yield from nested()
    for rows, terms, lanes in itertools.product(range(5, 17), (3, 5), (40, 72, 76, 104)):
        yield product((rows, terms), (terms, lanes))
    counted = ("", "i32", "i64", "f64")
    for dtype, op, to in itertools.product(DTYPES, COMPARISONS, counted):
        into = f"{to} >> " if to else ""
        yield from _reduced(f"ij{op}j~ij >> {into}", "+", (dtype, dtype), vector=True)
    for dtype, to in itertools.product(DTYPES, DTYPES):
        yield Cell(f"{to} >> i~i", (dtype,), tuple(((n,),) for n in EXTENTS))
    for one, other, op in itertools.product(DTYPES, DTYPES, POINTWISE):
        yield Cell(f"i{op}i~i", (one, other), tuple(((n,), (n,)) for n in EXTENTS))


def nested() -> Iterator[Cell]:
    """Small loops of known extents around each other, of which GCC 12.2 made wrong vectors."""
    for dtype in ("f32", "f64", "i32", "i64"):
        for shape, lesser in (((4, 4, 3), "j,k"), ((5, 4, 3), "i,j,k")):
            text = f'elementwise("f: x[i,j,k], y[{lesser}] -> where(gt(x, 0), x, y)")'
            yield Cell(text, (dtype, dtype), ((shape, shape[-len(lesser.split(",")) :]),), True)
    product = "i32 >> (I & *mnopq~mopq) >> mnopq*mopq~mnopq"
    yield Cell(product, ("i64",), (((16, 8, 8, 8, 8),),), fixed=True)


def product(left: tuple[int, int], right: tuple[int, int]) -> Cell:
    """A product of matrices whose extents are known."""
    return Cell("ik*kj~ijk >> +ijk~ij", ("f32", "f32"), ((left, right),), fixed=True)


def _reduced(before: str, op: str, dtypes: tuple[str, ...], vector: bool = False) -> Iterator[Cell]:
    """A reduction of rows, of columns, and of everything; of a matrix, and a vector beside it where there is one."""
    for result in ("i", "j", "."):
        shapes = [(n, 33) if result == "j" else (ACROSS, n) for n in EXTENTS]
        runs = [(shape, shape[1:]) if vector else (shape,) for shape in shapes]
        text = f"{before}{op}ij~{result}"
        yield Cell(text, dtypes, tuple(runs))
        for n, run in zip(EXTENTS, runs, strict=True):
            if n in FIXED and not vector:
                yield Cell(text, dtypes, (run,), fixed=True)


def _scheduled(before: str, op: str, dtype: str) -> Iterator[Cell]:
    """A reduction into several elements that its innermost loop, of known extent, has at once."""
    for split, to in (("j | j:16 | j i j'", (32, 48)), ("i | i:8 | i j i'", (64, 100))):
        yield Cell(f"{before}{op}ij~{split}", (dtype,), ((to,),), fixed=True)


def arrays(cell: Cell, run: Sequence[tuple[int, ...]], seed: int) -> tuple[Array, ...]:
    """The inputs of a run: all ones in the first half of the seeds, else small numbers."""
    numbers = np.random.default_rng(seed)
    found = []
    for dtype, shape in zip(cell.dtypes, run, strict=True):
        if seed % 2 == 0:
            values = np.ones(shape)
        elif "*" in cell.text:
            values = numbers.choice([-1.0, 1.0], shape)
            rare = numbers.random(shape) < 8 / max(shape)
            values = np.where(rare, 2 * values, values)
        else:
            values = numbers.integers(-3, 4, shape).astype(np.float64)
        if dtype == "bool":
            values = np.maximum(values, 0)
        found.append(values.astype(TYPES[dtype]))
    return tuple(found)


def lowered(cell: Cell, name: str) -> tuple[Shaped, kernel.Program] | None:
    """A program of the matrix with kernels; None where the language has no such program (an integer beside a float)."""
    shapes = [*cell.runs[0]]
    try:
        graph = pipeline.graph_of(parse_program(Source("<matrix>", cell.text)), name)
        ranks = [len(shape) for shape in shapes]
        shaped = pipeline.infer(graph, cell.dtypes, ranks, shapes if cell.fixed else None)
    except Error:
        return None
    return shaped, pipeline.lower(shaped)


def check(chosen: Sequence[Cell], mode: str) -> tuple[int, list[str]]:
    """How many results were compared, and what is wrong with the others, in words."""
    batch: list[kernel.Program] = []
    calls: list[native.Call] = []
    expected: list[tuple[Cell, tuple[tuple[int, ...], ...], list[Array]]] = []
    for cell in chosen:
        pair = lowered(cell, f"p{len(batch)}")
        if pair is None:
            continue
        shaped, program = pair
        for run, seed in itertools.product(cell.runs, (0, 1)):
            inputs = arrays(cell, run, seed)
            extents = pipeline.fit(shaped, [array.shape for array in inputs])
            with np.errstate(all="ignore"):
                answers = evaluate(shaped, inputs, extents)
            sizes = zip(shaped.sizes, extents, strict=True)
            free = tuple(extent for size, extent in sizes if size.is_argument())
            shapes = tuple(answer.shape for answer in answers)
            calls.append(native.Call(len(batch), free, inputs, shapes))
            expected.append((cell, run, answers))
        batch.append(program)
    if not batch:
        return 0, []
    wrong = []
    for (cell, run, answers), answer in zip(expected, native.run(batch, calls, mode), strict=True):
        told = answer.trouble or _difference(answer.outputs, answers)
        if told:
            fixed = " fixed" if cell.fixed else ""
            wrong.append(f"{mode}: {cell.text}  {','.join(cell.dtypes)} {run}{fixed}: {told}")
    return len(calls), wrong


def _difference(outputs: Sequence[Array], answers: Sequence[Array]) -> str:
    """How results differ; "" where they do not."""
    for output, answer in zip(outputs, answers, strict=True):
        if not np.array_equal(output, answer.astype(output.dtype)):
            return f"{output.ravel()[:4]} in place of {answer.ravel()[:4]}"
    return ""


def part(number: int, count: int) -> list[Cell]:
    """A part of the matrix: every cell is in one of so many, and each has cells from everywhere."""
    return list(cells())[number::count]


def modes() -> tuple[str, ...]:
    """The modes whose programs this machine can run."""
    return tuple(mode for mode in MODES if native.runs_here(mode))


def _work(job: tuple[int, int, str]) -> tuple[int, list[str]]:
    number, count, mode = job
    return check(part(number, count), mode)


def main() -> int:
    """Run the matrix; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="", help="as 5/40: one part of so many")
    parser.add_argument("--modes", default=",".join(modes()))
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    options = parser.parse_args()
    total = len(list(cells()))
    count = -(-total // BATCH)
    chosen: Sequence[int] = range(count)
    if options.part:
        number, count = (int(word) for word in options.part.split("/"))
        chosen = [number - 1]
    jobs = [(n, count, mode) for mode in options.modes.split(",") for n in chosen]
    compared, wrong = 0, []
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for number, (runs, told) in enumerate(pool.imap(_work, jobs), 1):
            compared += runs
            wrong += told
            say = "\n".join([*told, f"{number} of {len(jobs)} batches"])
            print(say, flush=True)
    print(f"{total} programs, {compared} runs, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
