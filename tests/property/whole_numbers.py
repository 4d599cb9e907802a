"""Random arithmetic of whole numbers, literals and truth values, as elementwise kernels and as tensor functions.

NumPy says what it means: a literal and a truth value take the type of the array that they meet.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang.core.record import record

Array = npt.NDArray[Any]

NUMBERS: dict[str, tuple[str, Any]] = {
    "add": ("({} + {})", np.add),
    "sub": ("({} - {})", np.subtract),
    "mul": ("({} *. {})", np.multiply),
    "max": ("max({}, {})", np.maximum),
    "min": ("min({}, {})", np.minimum),
}
"""Of each primitive that gives a number its spelling in a tensor function, and what it means."""
TESTS: dict[str, tuple[str, Any]] = {
    "lt": ("({} < {})", np.less),
    "gte": ("({} >= {})", np.greater_equal),
    "eq": ("({} = {})", np.equal),
}
LITERALS = (0, 1, 3, -1, -2, -7)


@record
class Whole:
    """One expression: as a kernel, as a tensor function, and its value."""

    kernel: str
    function: str
    value: Any


def random_whole(chance: random.Random, arrays: list[Array], depth: int = 4) -> Whole:
    """A number: an array, or what a primitive makes of one and of what stands beside it."""
    if depth == 0:
        number = chance.randrange(len(arrays))
        return Whole(f"x{number}", f"x{number}", arrays[number])
    one = random_whole(chance, arrays, depth - 1)
    match chance.randrange(6):
        case 0:
            return Whole(f"-{one.kernel}", f"(-{one.function})", -one.value)
        case 1:
            test, other = _truth(chance, arrays, depth - 1), _beside(chance, arrays, depth - 1)
            texts = ([part.kernel, part.function] for part in (test, one, other))
            kernel, function = (f"where({', '.join(parts)})" for parts in zip(*texts, strict=True))
            return Whole(kernel, function, np.where(test.value, one.value, other.value))
        case _:
            return _joined(chance, NUMBERS, one, _beside(chance, arrays, depth - 1))


def _beside(chance: random.Random, arrays: list[Array], depth: int) -> Whole:
    """What may stand beside a number: another one, a literal, or a truth value."""
    match chance.randrange(3):
        case 0:
            literal = chance.choice(LITERALS)
            return Whole(str(literal), f"({literal})", literal)
        case 1:
            return _truth(chance, arrays, depth)
        case _:
            return random_whole(chance, arrays, depth)


def _truth(chance: random.Random, arrays: list[Array], depth: int) -> Whole:
    one = random_whole(chance, arrays, max(0, depth - 1))
    return _joined(chance, TESTS, one, _beside(chance, arrays, max(0, depth - 1)))


def _joined(
    chance: random.Random, table: dict[str, tuple[str, Any]], one: Whole, other: Whole
) -> Whole:
    """Two parts in either order under one primitive of a table."""
    name = chance.choice(sorted(table))
    spelling, meaning = table[name]
    left, right = chance.sample((one, other), 2)
    return Whole(
        f"{name}({left.kernel}, {right.kernel})",
        spelling.format(left.function, right.function),
        meaning(left.value, right.value),
    )
