"""Random specifications as NumPy writes them, and what NumPy makes of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilang.core.record import record

Array = NDArray[Any]

LETTERS = "ijklmnABZ"
MOST = 3_000
"""Iterations of the nest of all axes."""
SEARCHES: tuple[Any, ...] = (True, False, "greedy", "optimal")


@record
class Trial:
    """A specification, its arrays, the order that is asked for, and the result."""

    text: str
    arrays: tuple[Array, ...]
    optimize: Any
    result: Array


def random_trial(chance: random.Random) -> Trial:
    """Up to five operands of up to four axes: diagonals, ellipses, axes of extent 1 that repeat, implicit results."""
    while True:
        names = chance.sample(LETTERS, chance.randint(1, 5))
        size = {
            name: chance.choice((1, 2, 3, 3, 4, 0 if chance.random() < 0.1 else 2))
            for name in names
        }
        dotted = [chance.choice((2, 3)) for _ in range(chance.choice((0, 0, 1, 2)))]
        terms, shapes = [], []
        for _ in range(chance.choice((1, 2, 2, 3, 4, 5))):
            axes = [chance.choice(names) for _ in range(chance.randint(0, 4))]
            extents = [size[axis] for axis in axes]
            if dotted and chance.random() < 0.7:
                at, held = chance.randint(0, len(axes)), chance.randint(0, len(dotted))
                axes.insert(at, "...")
                extents[at:at] = [
                    n if chance.random() < 0.8 else 1 for n in dotted[len(dotted) - held :]
                ]
            terms.append("".join(axes))
            shapes.append(tuple(extents))
        if np.prod([max(1, n) for n in (*size.values(), *dotted)]) <= MOST:
            return _trial(chance, terms, shapes)


def _trial(chance: random.Random, terms: list[str], shapes: list[tuple[int, ...]]) -> Trial:
    """The specification of some operands."""
    numbers = np.random.default_rng(chance.getrandbits(32))
    arrays = tuple(np.asarray(numbers.integers(-3, 4, shape), float) for shape in shapes)
    used = sorted(set("".join(terms).replace(".", "")))
    text = ",".join(terms)
    if chance.random() < 0.75:
        result = chance.sample(used, chance.randint(0, len(used)))
        if "..." in text:
            result.insert(chance.randint(0, len(result)), "...")
        text += f"->{''.join(result)}"
    if chance.random() < 0.2:
        text = text.replace(",", ", ").replace("->", " -> ")
    optimize = chance.choice(SEARCHES)
    return Trial(text, arrays, optimize, np.asarray(np.einsum(text, *arrays)))
