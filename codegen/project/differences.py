"""Gradients against differences: along a random direction, in float64, at extents that a self-test would take.

Differences are of fourth order, with two step sizes: where these disagree the function has a kink nearby, and they say
nothing about its gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ilang.codegen.project.cases import inputs_of, limits_of
from ilang.codegen.project.extents import extents_of
from ilang.codegen.targets.session import ExportedFunction
from ilang.core.diagnostic import InternalError
from ilang.core.dtype import FLOATS
from ilang.core.ir.shaped import Shaped
from ilang.core.pipeline import lower
from ilang.core.reference import evaluate
from ilang.core.transform.reverse import gradient

STEP = 1e-5
"""Relative to inputs of magnitude about 1."""
CLOSE = 1e-5
"""The distance that a gradient may have from differences, relative to the largest term of either."""
ATTEMPTS = 8
"""Points that are tried until differences say something."""


def check_gradient(shaped: Shaped, wrt: Sequence[int]) -> dict[str, object]:
    """Compare the gradients of a program with differences: at how many points, the largest distance, and in words.

    Raises:
        MeaningError: E0260. InternalError: E9905 (they differ: the gradient is wrong).
    """
    backward = gradient(shaped, wrt)
    runs = extents_of(ExportedFunction(shaped, lower(shaped)))[0]
    extents = runs[0] if runs else tuple(size.fixed or 1 for size in shaped.sizes)
    errors = []
    for attempt in range(ATTEMPTS):
        compared = _compared(shaped, backward, wrt, extents, attempt)
        if compared is not None:
            errors.append(compared)
        if len(errors) == 2:
            break
    if not errors:
        says = "differences say nothing here: every point has a kink nearby"
        return {"points": 0, "error": 0.0, "says": says}
    error = max(errors)
    if CLOSE < error:
        message = (
            f"the gradient of {shaped.name} is not that of differences: it is off by {error:.1e}"
        )
        raise InternalError("E9905", message, help="this is a bug in i; please report the program")
    says = f"agrees with differences in float64 at {len(errors)} points, to {error:.0e}"
    return {"points": len(errors), "error": error, "says": says}


def _compared(
    shaped: Shaped, backward: Shaped, wrt: Sequence[int], extents: Sequence[int], attempt: int
) -> float | None:
    """The relative difference at one point; None where differences say nothing."""
    rng = np.random.default_rng(attempt)
    starts = [attempt] * len(shaped.inputs)
    arrays: list[Any] = inputs_of(shaped, extents, starts, limits_of(shaped, extents))
    floats = [n for n in wrt if shaped.tensors[shaped.inputs[n]].dtype in FLOATS]
    for n, value in enumerate(shaped.inputs):
        if shaped.tensors[value].dtype in FLOATS:
            arrays[n] = rng.uniform(0.5, 1.5, arrays[n].shape)
    weights = [
        rng.normal(size=each.shape) for each in evaluate(shaped, arrays, extents, exact=True)
    ]
    more = [*extents, *(size.fixed or 1 for size in backward.sizes[len(extents) :])]
    gradients = evaluate(backward, [*arrays, *weights], more, exact=True)
    directions = {n: rng.normal(size=arrays[n].shape) for n in floats}
    terms = [gradients[list(wrt).index(n)] * directions[n] for n in floats]

    def along(step: float) -> float:
        """The weighted sum of the outputs, the inputs moved by a step along the directions."""
        moved = [
            array + step * directions[n] if n in directions else array
            for n, array in enumerate(arrays)
        ]
        results = evaluate(shaped, moved, extents, exact=True)
        return sum(
            float((weight * np.asarray(result, np.float64)).sum())
            for weight, result in zip(weights, results, strict=True)
        )

    def difference(step: float) -> float:
        """The derivative of that, by differences of fourth order."""
        near, far = along(step) - along(-step), along(2 * step) - along(-2 * step)
        return (8 * near - far) / (12 * step)

    with np.errstate(all="ignore"):
        one, other = difference(STEP), difference(4 * STEP)
        flowing = sum(float(term.sum()) for term in terms)
        scale = 1 + abs(one) + sum(float(abs(term).sum()) for term in terms)
    if not np.isfinite([one, other, flowing]).all() or CLOSE * scale < 10 * abs(one - other):
        return None
    return abs(flowing - one) / scale
