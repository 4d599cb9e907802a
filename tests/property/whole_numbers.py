"""Random arithmetic of whole numbers, literals and truth values, in four notations.

These are elementwise kernels, tensor functions, routines with a name for each part, and index expressions. NumPy says
what it means: a literal, a value of literals alone and a truth value take the type of the array that they meet.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang.core.record import record

Array = npt.NDArray[Any]

NUMBERS: dict[str, tuple[str, str, Any]] = {
    "add": ("({} + {})", "+", np.add),
    "sub": ("({} - {})", "-", np.subtract),
    "mul": ("({} *. {})", "*", np.multiply),
    "max": ("max({}, {})", ">", np.maximum),
    "min": ("min({}, {})", "<", np.minimum),
}
"""Of each primitive that gives a number its spelling in a tensor function, its operator, and what it means."""
TESTS: dict[str, tuple[str, str, Any]] = {
    "lt": ("({} < {})", "<<", np.less),
    "gte": ("({} >= {})", ">=", np.greater_equal),
    "eq": ("({} = {})", "==", np.equal),
}
LITERALS = (0, 1, 3, -1, -2, -7)


@record
class Whole:
    """One expression: as a kernel, a tensor function, lines of a routine and a component, and its value.

    ``lines`` are the routine's statements and ``name`` what the last one gives. ``index`` has the letter of its axis,
    ``.`` if it has none, and reads the arrays ``reads`` in their order; None of what index expressions lack.
    """

    kernel: str
    function: str
    value: Any
    lines: tuple[str, ...]
    name: str
    index: str | None
    letter: str = "i"
    reads: tuple[int, ...] = ()


class Drawing:
    """Expressions over some arrays of one type."""

    def __init__(self, seed: int, arrays: list[Array]) -> None:
        self.chance = random.Random(seed)
        self.arrays = arrays
        self.names = 0

    def number(self, depth: int = 4) -> Whole:
        """A number: an array, or what a primitive makes of one and of what stands beside it."""
        if depth == 0:
            n = self.chance.randrange(len(self.arrays))
            return Whole(f"x{n}", f"x{n}", self.arrays[n], (), f"x{n}", "I", "i", (n,))
        one = self.number(depth - 1)
        match self.chance.randrange(6):
            case 0:
                return self._negated(one)
            case 1:
                return self._chosen(one, depth)
            case _:
                return self._joined(NUMBERS, one, self._beside(depth - 1))

    def _beside(self, depth: int) -> Whole:
        """What may stand beside a number: another one, a literal or a value of some, or a truth value."""
        match self.chance.randrange(3):
            case 0:
                return self._literal(min(depth, 2))
            case 1:
                return self._truth(depth)
            case _:
                return self.number(depth)

    def _literal(self, depth: int) -> Whole:
        """A literal, or a value of literals, and of a truth value that chooses among them or is added."""
        literal = self.chance.choice(LITERALS)
        text, value = str(literal), self.arrays[0].dtype.type(literal)
        plain = Whole(text, f"({text})", value, (), f"({text})", text, ".")
        if depth == 0:
            return plain
        match self.chance.randrange(5):
            case 0:
                return self._negated(self._literal(depth - 1))
            case 1:
                return self._chosen(self._literal(depth - 1), 1, literal=True)
            case 2:
                return self._joined(NUMBERS, self._literal(depth - 1), self._truth(0))
            case 3:
                return self._joined(NUMBERS, self._literal(depth - 1), self._literal(depth - 1))
            case _:
                return plain

    def _truth(self, depth: int) -> Whole:
        one = self.number(max(0, depth - 1))
        return self._joined(TESTS, one, self._beside(max(0, depth - 1)))

    def _negated(self, one: Whole) -> Whole:
        index = one.index and f"{one.index} >> -{one.letter}~{one.letter}"
        name, lines = self._named(one.lines, f"-({one.name})")
        kernel, function = f"-{one.kernel}", f"(-{one.function})"
        return Whole(kernel, function, -one.value, lines, name, index, one.letter, one.reads)

    def _chosen(self, one: Whole, depth: int, literal: bool = False) -> Whole:
        """One of two by a test; index expressions have no choice."""
        test = self._truth(depth - 1)
        other = self._literal(0) if literal else self._beside(depth - 1)
        parts = (test, one, other)
        texts = ([part.kernel, part.function, part.name] for part in parts)
        kernel, function, named = (f"where({', '.join(t)})" for t in zip(*texts, strict=True))
        name, lines = self._named([line for part in parts for line in part.lines], named)
        value = np.where(test.value, one.value, other.value)
        return Whole(kernel, function, value, lines, name, None)

    def _joined(self, table: dict[str, tuple[str, str, Any]], one: Whole, other: Whole) -> Whole:
        """Two parts in either order under one primitive of a table."""
        primitive = self.chance.choice(sorted(table))
        spelling, operator, meaning = table[primitive]
        left, right = self.chance.sample((one, other), 2)
        name, lines = self._named(
            (*left.lines, *right.lines), spelling.format(left.name, right.name)
        )
        letter = "i" if "i" in (left.letter, right.letter) else "."
        index = f"{left.letter}{operator}{right.letter}~{letter}"
        has_index = left.index is not None and right.index is not None
        return Whole(
            f"{primitive}({left.kernel}, {right.kernel})",
            spelling.format(left.function, right.function),
            meaning(left.value, right.value),
            lines,
            name,
            f"(({left.index}) | ({right.index})) >> {index}" if has_index else None,
            letter,
            (*left.reads, *right.reads),
        )

    def _named(self, lines: Any, text: str) -> tuple[str, tuple[str, ...]]:
        """A name for an expression, and the lines up to where it gets it."""
        self.names += 1
        return f"v{self.names}", (*lines, f"v{self.names} = {text}")
