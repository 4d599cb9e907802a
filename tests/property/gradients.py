"""Gradients of random programs against differences, computed in float64 along a random direction.

Where two step sizes disagree the function has a kink nearby, or is too steep for differences to tell anything: such a
trial says nothing, and is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang.core import pipeline
from ilang.core.diagnostic import MeaningError
from ilang.core.dtype import FLOATS
from ilang.core.ir.graph import Graph
from ilang.core.ir.shaped import Shaped
from ilang.core.reference import evaluate
from ilang.core.transform.reverse import gradient
from tests.property import checking, mixed, specs, trial
from tests.property.tally import Tally

Array = npt.NDArray[Any]

STEP = 1e-5
"""Relative to inputs of magnitude about 1; differences are of fourth order."""
CLOSE = 1e-5
"""How far a gradient may be from differences, relative to the largest term of either."""
AGREE = 1e-6
"""How far two differences may be from each other for either to tell something."""


@dataclass(frozen=True)
class Case:
    """A program in float64 where it has floats, and its arrays."""

    seed: int
    name: str
    shaped: Shaped
    arrays: tuple[Array, ...]


def index_case(seed: int) -> Case:
    """A random program of index expressions."""
    drawn = trial.draw(seed)
    return _case(
        f"index program {seed}: {drawn.written.text}",
        checking.graph_of(drawn, "p"),
        drawn.dtypes(),
        drawn.runs[0],
        seed,
    )


def spec_case(seed: int) -> Case:
    """A random chain of specifications."""
    program = specs.generate(seed)
    graph = pipeline.graph_of(pipeline.text_component(program.text), "p")
    arrays = program.runs[0]
    types = ["f64"] * len(arrays)
    return _case(f"specifications {seed}: {program.text}", graph, types, arrays, seed)


def mixed_case(seed: int) -> Case:
    """A random graph of expressions and operations of several notations, with look-ups."""
    drawn = mixed.generate(seed)
    dtype = drawn.dtype if drawn.dtype in FLOATS else "f64"
    arrays = drawn.runs[drawn.fixed or 0]
    types = [dtype if array.dtype.kind == "f" else None for array in arrays]
    return _case(f"graph {seed}: {'; '.join(drawn.says)}", drawn.graph, types, arrays, seed)


def _case(
    name: str, graph: Graph, dtypes: Sequence[str | None], arrays: Sequence[Array], seed: int
) -> Case:
    """The case with floats of magnitude about 1, away from where most functions have kinks and poles."""
    shaped = pipeline.infer(graph, dtypes, [array.ndim for array in arrays])
    rng = np.random.default_rng(seed)
    positive = rng.random() < 0.5
    given = []
    for array, dtype in zip(arrays, dtypes, strict=True):
        smooth = rng.uniform(0.5, 1.5, array.shape) if positive else rng.normal(size=array.shape)
        given.append(smooth if dtype in FLOATS else array)
    return Case(seed, name, shaped, tuple(given))


def check(case: Case, tally: Tally) -> None:
    """Compare the gradients of one program with differences."""
    shaped, arrays = case.shaped, case.arrays
    wrt = [n for n, array in enumerate(arrays) if array.dtype == np.float64]
    try:
        backward = gradient(shaped, wrt)
    except MeaningError:  # E0260: nothing can flow back
        tally.count(refused=1)
        return
    extents = pipeline.fit(shaped, [array.shape for array in arrays])
    rng = np.random.default_rng(len(case.name))
    values = evaluate(shaped, arrays, extents, exact=True)
    weights = [rng.normal(size=value.shape) for value in values]
    extents_back = pipeline.fit(backward, [a.shape for a in (*arrays, *weights)])
    gradients = evaluate(backward, [*arrays, *weights], extents_back, exact=True)
    directions = [rng.normal(size=arrays[n].shape) for n in wrt]
    terms = [g * d for g, d in zip(gradients, directions, strict=True)]
    found = sum(float(term.sum()) for term in terms)

    def along(step: float) -> float:
        moved = list(arrays)
        for n, direction in zip(wrt, directions, strict=True):
            moved[n] = arrays[n] + step * direction
        results = evaluate(shaped, moved, extents, exact=True)
        with np.errstate(all="ignore"):
            return sum(
                float((w * np.asarray(r, np.float64)).sum())
                for w, r in zip(weights, results, strict=True)
            )

    def difference(step: float) -> float:
        near = along(step) - along(-step)
        far = along(2 * step) - along(-2 * step)
        return (8 * near - far) / (12 * step)

    with np.errstate(all="ignore"):
        one, other = difference(STEP), difference(STEP * 4)
        total = sum(
            float(abs(w * np.asarray(v, np.float64)).sum())
            for w, v in zip(weights, values, strict=True)
        )
        scale = 1 + abs(one) + sum(float(abs(term).sum()) for term in terms)
    noise = 1e-14 * total / STEP
    if (
        not np.isfinite([found, one, other, total]).all()
        or abs(one - other) > AGREE * scale + noise
    ):
        tally.count(unclear=1)
        return
    if abs(found - one) > CLOSE * scale + noise:
        bends = [(along(h) + along(-h) - 2 * along(0.0)) / h for h in (STEP, 2 * STEP)]
        if (
            abs(bends[1] - 2 * bends[0]) > AGREE * scale + noise
        ):  # at a tie winners share: no difference tells
            tally.count(unclear=1)
            return
        says = f"{case.name}\n  gradient {found!r}, differences {one!r} and {other!r}"
        tally.failures.append((case.seed, "differences", says))
    tally.count(checked=1)
