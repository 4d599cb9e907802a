"""Gradients of random programs against differences, and what is compiled of them against the evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ilang.codegen.call.specialization import Specialization
from ilang.core import pipeline
from ilang.core.diagnostic import MeaningError
from ilang.core.reference import NUMPY_TYPES, evaluate
from ilang.core.transform.forward import directional
from ilang.core.transform.reverse import gradient
from tests.property.gradients import Case, check, index_case, mixed_case, spec_case
from tests.property.tally import Tally

KINDS: dict[str, Callable[[int], Case]] = {
    "index": index_case,
    "specifications": spec_case,
    "mixed": mixed_case,
}
START = 50_000

pytestmark = pytest.mark.usefixtures("compiled_quickly")  # right values are asked for


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_differences(kind: str) -> None:
    tally = Tally()
    for seed in range(START, START + 40):
        check(KINDS[kind](seed), tally)
    assert not tally.failures, tally.told()
    assert tally.counts["checked"] > 30
    assert tally.counts["refused"] < 5


@pytest.mark.parametrize("kind", KINDS)
def test_forward_and_reverse_agree(kind: str) -> None:
    """What moves an output along a direction is what flows back from it to that direction."""
    for seed in range(START + 200, START + 240):
        case = KINDS[kind](seed)
        arrays = case.arrays
        wrt = [n for n, array in enumerate(arrays) if array.dtype == np.float64]
        try:
            backward, forward = gradient(case.shaped, wrt), directional(case.shaped, wrt)
        except MeaningError:  # E0260: nothing can flow back
            continue
        extents = pipeline.fit(case.shaped, [array.shape for array in arrays])
        rng = np.random.default_rng(seed)
        results = evaluate(case.shaped, arrays, extents, exact=True)
        weights = [rng.normal(size=result.shape) for result in results]
        directions = [rng.normal(size=arrays[n].shape) for n in wrt]
        sides = []
        for program, more, pairs in (
            (backward, weights, directions),
            (forward, directions, weights),
        ):
            given = [*arrays, *more]
            at = pipeline.fit(program, [array.shape for array in given])
            found = evaluate(program, given, at, exact=True)[-len(pairs) :] if pairs else []
            with np.errstate(all="ignore"):
                sides.append([float((a * b).sum()) for a, b in zip(found, pairs, strict=True)])
        if np.isfinite([*sides[0], *sides[1]]).all():
            scale = 1 + max(map(abs, sides[0] + sides[1]), default=0.0)
            assert abs(sum(sides[0]) - sum(sides[1])) <= 1e-8 * scale, case.name


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_compiled(kind: str) -> None:
    for seed in range(START + 100, START + 104):
        case = KINDS[kind](seed)
        wrt = [n for n, array in enumerate(case.arrays) if array.dtype == np.float64]
        try:
            backward = gradient(case.shaped, wrt, values=True)
        except MeaningError:  # E0260: nothing can flow back
            continue
        types = [NUMPY_TYPES[backward.tensors[value].dtype] for value in backward.inputs]
        arrays = [np.asarray(a, dtype) for a, dtype in zip(case.arrays, types, strict=False)]
        extents = pipeline.fit(case.shaped, [array.shape for array in arrays])
        rng = np.random.default_rng(seed)
        results = evaluate(case.shaped, arrays, extents)
        arrays += [
            np.asarray(rng.normal(size=result.shape), dtype)
            for result, dtype in zip(results, types[len(arrays) :], strict=True)
        ]
        extents = pipeline.fit(backward, [array.shape for array in arrays])
        program = Specialization(backward)
        wanted = program.evaluate(arrays, extents, None)
        given = program.plan(extents).call(arrays, arrays, None, 1)
        for one, other in zip(_tuple(wanted), _tuple(given), strict=True):
            scale = 1 + np.abs(one[np.isfinite(one)]).max(initial=0)
            np.testing.assert_allclose(other, one, rtol=2e-3, atol=1e-5 * scale)


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
