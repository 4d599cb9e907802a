"""Whether the loops and formulas that ``i explain`` prints of a program compute what the program does.

The oracle (``core/reference.py``) says what that is, in f64, on small random arrays.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ilang.codegen.call.arguments import SUPPORTED
from ilang.core import pipeline
from ilang.core.diagnostic import Error, ScheduleError
from ilang.core.explain.meaning import LoopLine, Meaning, meaning
from ilang.core.explain.simple_loops import simple_loops
from ilang.core.ir.kernel import Buffer, Program
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import CPU, GPU
from ilang.core.reference import NUMPY_TYPES, evaluate, values_of
from tests.property import (
    checking,
    mixed,
    notations,
    specs,
    tensor_checking,
    tensor_programs,
    trial,
)
from tests.property.plain_loops import run_formulas, run_loops
from tests.property.plain_values import State, Unclear

TRIES = 60
MOST = 3_000
"""Points of all loops of a program together at most: each is read on its own."""
LONG = (9, 17, 70)
"""Extents of some dimensions: loops that run have steps of 6, 16 or 64."""
CLOSE = 1e-9
LARGE = 2**29
"""Whole numbers from which on some are drawn anew: a page does not say where they wrap."""


def wrong(shaped: Shaped, seed: int, given: Sequence[Any] | None = None) -> list[str] | None:
    """What the page says of a program that the oracle does not; None where there are no arrays to try.

    ``given`` are arrays for where none can be drawn.
    """
    chance = random.Random(seed)
    drawn = arrays_of(shaped, chance)
    if drawn is None and given is not None:
        extents = pipeline.fit(shaped, [array.shape for array in given])
        drawn = (list(given), extents) if points(shaped, extents) <= MOST else None
    if drawn is None:
        return None
    arrays, extents = drawn
    wanted = evaluate(shaped, arrays, extents, exact=True)
    page, running = written(shaped)
    found = []
    known = {size.name: n for size, n in zip(shaped.sizes, extents, strict=True)}
    for kind in ("formulas", "loops", *running):
        state = State(known, page.notes)
        loops: Sequence[LoopLine] = ()
        if kind in running:
            program, loops = running[kind]
            state = State(all_extents(program, known, chance))
        for value, array in zip(shaped.inputs, arrays, strict=True):
            state.give(shaped.tensors[value].name, array)
        try:
            with np.errstate(all="ignore"):
                _run(kind, page, loops, state)
                for value, want in zip(shaped.outputs, wanted, strict=True):
                    name = shaped.tensors[value].name
                    got = state.array(name, want.shape)
                    if not _is_close(got, want):
                        found.append(f"{kind}: {name} is\n{want}\nand not\n{got}")
        except Unclear as unclear:
            found.append(f"{kind}: {unclear}")
    return found


@functools.lru_cache(maxsize=1)
def written(shaped: Shaped) -> tuple[Meaning, dict[str, tuple[Program, Sequence[LoopLine]]]]:
    """What a page says of a program, and for each kind of machine the loops that run; arrays change nothing of it."""
    page = meaning(shaped)
    programs: dict[str, Program] = {}
    with suppress(ScheduleError):  # of a definition that only others give its place
        programs = {machine.kind: pipeline.lower(shaped, machine) for machine in (CPU, GPU)}
        if any(map(_is_of_threads, programs["gpu"].buffers)):
            del programs["gpu"]
    names = dict(page.names)
    return page, {
        kind: (program, simple_loops(program, names)) for kind, program in programs.items()
    }


def _run(kind: str, page: Meaning, running: Sequence[LoopLine], state: State) -> None:
    if kind == "formulas":
        run_formulas([(each.text, each.extents) for each in page.formulas], state)
    else:
        lines = page.loops if kind == "loops" else running
        remarks = ["" if kind == "loops" else line.definition for line in lines]
        run_loops([(e.depth, e.text, r) for e, r in zip(lines, remarks, strict=True)], state)


def _is_of_threads(buffer: Buffer) -> bool:
    """Whether each thread has such an array of its own, or a block: the page has one name for all of them."""
    return buffer.role == "tile" or buffer.private


def all_extents(
    program: Program, known: Mapping[str, int], chance: random.Random
) -> dict[str, int]:
    """The extents of a program by name: those of its arrays, what follows from them, and any number of blocks."""
    counts = {n: size.fixed or known.get(size.name, 0) for n, size in enumerate(program.sizes)}
    for rule in program.derived:
        if program.sizes[rule.size].name not in known:
            counts[rule.size] = rule.value().value(counts)
    for number, value in program.counts:
        is_drawn = value.operation in ("chunks", "shares")
        counts[number] = chance.randint(1, 3) if is_drawn else value.value(counts)
    return {size.name: counts[n] for n, size in enumerate(program.sizes)}


def _is_close(got: Any, want: Any) -> bool:
    """Whether two arrays are equal, but for the order of sums; an extreme of nothing is the end of its type."""
    if want.dtype.kind in "iu":
        ends = np.iinfo(want.dtype)
        rows = [min(max(x, ends.min), ends.max) for x in got.flat]
        return rows == [int(x) for x in want.flat]
    numbers = np.array([float(x) for x in got.flat]).reshape(want.shape)
    return np.allclose(numbers, want.astype(float), CLOSE, CLOSE, equal_nan=True)


def points(shaped: Shaped, extents: Sequence[int]) -> int:
    """The iterations of all assignments together."""
    nodes = [node for node in shaped.nodes if isinstance(node, Assignment)]
    return sum(int(np.prod([extents[s] for s in node.sizes], dtype=int)) for node in nodes)


def arrays_of(
    shaped: Shaped, chance: random.Random
) -> tuple[list[np.ndarray[Any, Any]], tuple[int, ...]] | None:
    """Small arrays that a program takes, and its extents; None where none are found."""
    limits = {
        each.source: each.size
        for node in shaped.nodes
        if isinstance(node, Assignment)
        for each in node.lookups()
    }
    for _ in range(TRIES):
        sizes = [size.fixed or chance.randint(1, 5) for size in shaped.sizes]
        for n, size in enumerate(shaped.sizes):
            if size.fixed is None and not chance.randrange(2 * len(sizes)):
                sizes[n] = chance.choice(LONG)
        shapes = [tuple(sizes[d] for d in shaped.tensors[v].dims) for v in shaped.inputs]
        try:
            extents = pipeline.fit(shaped, shapes)
        except Error:
            continue
        if MOST < points(shaped, extents):
            continue
        arrays = [
            _array(shaped.tensors[v].dtype, shape, extents[limits[v]] if v in limits else None, chance)
            for v, shape in zip(shaped.inputs, shapes, strict=True)
        ]  # fmt: skip
        try:
            values = values_of(shaped, arrays, extents, exact=True)
        except Error:
            continue
        if not any(value.dtype.kind == "i" and (LARGE < abs(value)).any() for value in values):
            return arrays, tuple(extents)
    return None


def _array(
    dtype: str, shape: tuple[int, ...], limit: int | None, chance: random.Random
) -> np.ndarray[Any, Any]:
    """Small numbers of both signs, quarters among them; positions below a limit."""
    numbers = np.random.default_rng(chance.getrandbits(32))
    if limit is not None:
        return numbers.integers(0, max(limit, 1), shape).astype(NUMPY_TYPES[dtype])
    whole = numbers.integers(-4, 5, shape)
    if dtype == "bool":
        return np.asarray(whole > 0)
    if dtype in ("i32", "i64"):
        return whole.astype(NUMPY_TYPES[dtype])
    return (whole * chance.choice((1.0, 0.5, 0.25))).astype(NUMPY_TYPES[dtype])


def index(seed: int) -> tuple[Shaped, Sequence[Any]]:
    """A program of index expressions."""
    drawn = trial.draw(seed)
    shapes = [array.shape for array in drawn.runs[0]] if drawn.fixed else None
    graph = checking.graph_of(drawn, "f")
    return pipeline.infer(graph, drawn.dtypes(), drawn.ranks(), shapes), drawn.runs[-1]


def spec(seed: int) -> tuple[Shaped, Sequence[Any]]:
    """A chain of einsum specifications, rows, windows and parts of axes among them."""
    drawn = specs.generate(seed)
    graph = pipeline.graph_of(pipeline.text_component(drawn.text), "f")
    ranks = [array.ndim for array in drawn.runs[0]]
    return pipeline.infer(graph, [drawn.dtype] * len(ranks), ranks), drawn.runs[0]


def mix(seed: int) -> tuple[Shaped, Sequence[Any]]:
    """A graph of operations between tensors."""
    drawn = mixed.generate(seed)
    arrays = drawn.runs[drawn.fixed or 0]
    ranks = [array.ndim for array in arrays]
    return pipeline.infer(drawn.graph, [drawn.dtype] * len(ranks), ranks), arrays


def tensor(seed: int) -> tuple[Shaped, None]:
    """A tensor function or a routine, with its gradients."""
    session = tensor_checking.session_of(tensor_programs.generate(seed), "numpy")
    return session._solved.shaped(), None


def called(notation: str) -> Callable[[int], tuple[Shaped, Sequence[Any]]]:
    """A program of one of the notations that are called."""

    def draw(seed: int) -> tuple[Shaped, Sequence[Any]]:
        drawn = notations.generate(notation, seed)
        dtypes = [SUPPORTED[array.dtype] for array in drawn.arrays]
        ranks = [array.ndim for array in drawn.arrays]
        return pipeline.infer(drawn.component.graph(), dtypes, ranks), drawn.arrays

    return draw


DRAWN: dict[str, Callable[[int], tuple[Shaped, Sequence[Any] | None]]] = {
    "index": index,
    "einsum, extended": spec,
    "mixed": mix,
    "op, cd": tensor,
    **{notation: called(notation) for notation in notations.NOTATIONS},
}
"""What draws a program of a seed in each notation, with arrays that it takes."""


def check(notation: str, seeds: Sequence[int]) -> tuple[int, list[str]]:
    """The number of programs of some seeds whose page was read, and what is wrong with these."""
    count, failures = 0, list[str]()
    for seed in seeds:
        try:
            shaped, arrays = DRAWN[notation](seed)
        except Error as error:
            if error.code not in tensor_checking.EXPECTED:
                raise
            continue
        found = wrong(shaped, seed, arrays)
        count += found is not None
        failures += [f"{notation}, seed {seed}: {each}\n{page_of(shaped)}" for each in found or ()]
    return count, failures


def page_of(shaped: Shaped) -> str:
    """The formulas and loops of a page, to be shown."""
    page = meaning(shaped)
    running = simple_loops(pipeline.lower(shaped), dict(page.names))
    loops, runs = (
        ["  " * each.depth + each.text for each in lines] for lines in (page.loops, running)
    )
    formulas = [each.text for each in page.formulas]
    return "\n".join([*formulas, "", *loops, "", *runs, "", *page.notes])
