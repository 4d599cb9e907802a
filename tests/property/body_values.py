"""What random definitions over names give: NumPy in f64, with a bound of what rounding in f32 may change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ilang.core.record import record
from tests.property.bodies import Twins

Array = NDArray[np.float64]
EPSILON = float(np.finfo(np.float32).eps)
SMALLEST = float(np.finfo(np.float32).tiny)
"""Below it f32 has fewer digits, or none."""
LARGEST = float(np.finfo(np.float32).max) / 4
"""Above it f32 may overflow where f64 does not: anything goes there."""


@record
class Rounded:
    """A value, and how far an evaluation in f32 may be off."""

    value: Array
    error: Array


def _done(value: Array, error: Array) -> Rounded:
    """A result rounded once more; where it may overflow nothing is known."""
    off = error + 2 * EPSILON * np.abs(value) + SMALLEST
    known = np.abs(value) + off < LARGEST
    return Rounded(value, np.where(known, off, np.inf))


def _sum(a: Rounded, b: Rounded) -> Rounded:
    return _done(a.value + b.value, a.error + b.error)


def _difference(a: Rounded, b: Rounded) -> Rounded:
    return _done(a.value - b.value, a.error + b.error)


def _product(a: Rounded, b: Rounded) -> Rounded:
    error = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
    return _done(a.value * b.value, error)


def _exponential(a: Rounded) -> Rounded:
    value = np.exp(a.value)
    return _done(value, value * np.expm1(a.error) + 2 * EPSILON * value)


def _relu(a: Rounded) -> Rounded:
    return _done(np.maximum(a.value, 0), a.error)


def _negative(a: Rounded) -> Rounded:
    return _done(-a.value, a.error)


MEANINGS: dict[str, Callable[..., tuple[Rounded, ...]]] = {
    "total": lambda a, b: (_sum(a, b),),
    "scaled": lambda a, s: (_product(a, s),),
    "both": lambda a, b: (_product(a, b), _difference(a, b)),
    "shifted": lambda a, b: (_sum(_difference(a, b), _product(a, b)),),
    "(^ij~ij)": lambda a: (_exponential(a),),
    "(-ij~ij & >ij~ij)": lambda a: (_negative(a), _relu(a)),
    "(total | scaled)": lambda a, b, c, s: (_sum(a, b), _product(c, s)),
    "(~both)": lambda a, b: (_difference(a, b), _product(a, b)),
    "(both >> total)": lambda a, b: (_sum(_product(a, b), _difference(a, b)),),
    'einsum("ij; ij => ij")': lambda a, b: (_product(a, b),),
    "f32": lambda a: (a,),
}
"""What each of ``bodies.COMPONENTS`` gives."""


def values_of(program: Twins, arrays: dict[str, Array]) -> list[Rounded]:
    """The outputs of a program on arrays by name."""
    values = {name: Rounded(array, np.zeros_like(array)) for name, array in arrays.items()}
    numbers = {"2": 2.0, "-0.5": -0.5, "half": 0.5}

    def value(name: str) -> Rounded:
        while name in program.bound and name not in values:
            name = program.bound[name]
        if name in numbers:
            return Rounded(np.asarray(numbers[name]), np.zeros(()))
        return values[name]

    with np.errstate(all="ignore"):
        for component, taken, given in program.steps:
            results = MEANINGS[component](*map(value, taken))
            values.update(zip(given, results, strict=True))
    return [value(name) for name in program.results]
