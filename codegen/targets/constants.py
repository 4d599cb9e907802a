"""The constants of a kernel as text: where a number of an index, of a loop or of an array has a name.

Example, where a block has 128 of axis i: ``TILE_I * i + i1`` for ``128i + i1``, ``float copy[TILE_K * (TILE_I + 4)]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ilang.core.calculus.affine import Affine
from ilang.core.ir.ids import BufferId
from ilang.core.ir.kernel import Kernel

WORD = re.compile(r"\w+")
Steps = dict[int, dict[int, str]]
"""The names of numbers, by the variable that they are the coefficient of."""


class ConstantNames:
    """The names of the constants of one kernel, none of them without one."""

    def __init__(self, kernel: Kernel | None) -> None:
        self.constants = () if kernel is None else kernel.constants
        self.values = {name: value for name, value, _ in self.constants}
        self.steps: Steps = {}
        self.counts: dict[int, str] = {}
        self.rows = {} if kernel is None else dict(kernel.rows)
        self.axes: dict[int, str] = {}
        """The axis of each loop variable."""
        self.along: dict[str, dict[int, str]] = {}
        """The names of numbers by the axes that they are along."""
        if kernel is None or not self.constants:
            return
        self.axes = {v: part[0] for v, part in enumerate(kernel.parts) if part is not None}
        for variable, step, count in kernel.levels:
            if step:
                self.steps[variable] = {self.values[step]: step}
                self.along.setdefault(self.axes[variable], {})[self.values[step]] = step
            if count:
                self.counts[variable] = count

    def count(self, variable: int, extent: str) -> str:
        """The name of the number of iterations of a loop over a variable; the number itself where it has none."""
        name = self.counts.get(variable, "")
        return name if name and str(self.values[name]) == extent else extent

    def collapsed(self, words: Sequence[str]) -> list[str]:
        """The factors of a product, the number first: those that have a name together under that."""
        words = list(words)
        for name, _, of in self.constants:
            factors = [*map(str, of)]
            at = next(
                (n for n, _ in enumerate(words) if words[n:][: len(factors)] == factors), None
            )
            if at is not None and 1 < len(factors):
                words[at : at + len(factors)] = [name]
        return sorted(words, key=lambda word: not word.isdigit())

    def number(self, part: Affine, number: int) -> str:
        """The name of a number among those of the axes along which an index goes; "" of any other."""
        axes = dict.fromkeys(self.axes.get(variable, "") for variable in part.variables())
        names = (self.along.get(axis, {}).get(number, "") for axis in axes)
        return next(filter(None, names), "")

    def extents(self, buffer: int, extents: Sequence[str]) -> list[str]:
        """The extents of a buffer, by their names where they have some."""
        names = self.rows.get(BufferId(buffer), ("",) * len(extents))
        return [name or extent for name, extent in zip(names, extents, strict=True)]

    def of_vectors(self, count: int) -> Steps:
        """The names of steps, in vectors of so many elements."""
        return {
            variable: {
                value // count: f"{name} / {count}" for value, name in of.items() if count < value
            }
            for variable, of in self.steps.items()
        }


def needed(kernel: Kernel, body: Iterable[str], others: Iterable[str] = ()) -> list[str]:
    """The constants that lines have, or others, and those that these are made of: ``TILE_K = 8 * TILE_J``."""
    words = {*others, *(word for line in body for word in WORD.findall(line))}
    for name, _, factors in reversed(kernel.constants):
        words.update(map(str, factors) if name in words else ())
    return [
        f"{name} = {' * '.join(map(str, factors))}"
        for name, _, factors in kernel.constants
        if name in words
    ]


def with_constants(kernel: Kernel, lines: Iterable[str]) -> Iterator[str]:
    """Functions in C that begin with the constants of a kernel which they use."""
    if not kernel.constants:
        yield from lines
        return
    depth, body = 0, list[str]()
    for line in lines:
        depth -= line.startswith("}")
        if depth == 0 and body:
            values = needed(kernel, body)
            yield from (f"enum {{ {', '.join(values)} }};",) if values else ()
            yield from body
            body = []
        if depth:
            body.append(line)
        else:
            yield line
        depth += line.endswith("{")


def grouped(text: str) -> str:
    """Text as an operand: in brackets where it is more than a name or a number, and has none."""
    return f"({text})" if " " in text and not text.startswith("(") else text
