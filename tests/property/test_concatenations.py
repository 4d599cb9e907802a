"""Concatenations and functions of them, part by part, against the evaluator: random parts, extents and readers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ilang import Component, i

pytestmark = pytest.mark.usefixtures("compiled_quickly")

SEEDS = range(7100, 7130)
EXTENTS = (0, 1, 1, 2, 3, 5, 16, 33)


class Program:
    """A random program of concatenations: definitions, and the shapes of the inputs of the last one."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        before, after = rng.choice(("", "b")), rng.choice(("", "d"))
        self.before, self.after, self.axes = before, after, f"{before}c{after}"
        self.rest = {axis: rng.choice(EXTENTS[1:]) for axis in "bd"}
        self.parts = [rng.choice(EXTENTS) for _ in range(rng.choice((1, 2, 2, 3, 4, 5)))]
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.definitions: list[str] = []
        self.statements: list[str] = []
        self.read: set[str] = set()

    def text(self) -> str:
        """The definitions; ``shapes`` has those of the inputs afterwards."""
        values = [self.joined(self.parts) for _ in range(self.rng.choice((1, 1, 2)))]
        if self.rng.random() < 0.3:
            values.append(self.joined(self.parts[::-1]))
        for _ in range(self.rng.randrange(5)):
            values.append(self.function(values))
        if self.rng.random() < 0.3:
            rest = self.axes.replace("c", "") or "."
            values.append(self.applied(f"+{self.axes}~{rest}", values[-1]))
        results = ", ".join(value for value in values if value not in self.read)
        body = "\n".join(f"  {line}" for line in (*self.statements, results))
        head = f"main({', '.join(self.shapes)})"
        return "\n".join((*self.definitions, f"{head} = {{\n{body}\n}}"))

    def input(self, axes: str, extent: int) -> str:
        """A new input over some axes."""
        name = f"x{len(self.shapes)}"
        self.shapes[name] = tuple(extent if axis == "c" else self.rest[axis] for axis in axes)
        return name

    def applied(self, component: str, *values: str) -> str:
        """A component, defined by itself, of some values."""
        number = len(self.statements)
        self.definitions.append(f"f{number} = {component}")
        self.statements.append(f"t{number} = f{number}({', '.join(values)})")
        self.read.update(values)
        return f"t{number}"

    def joined(self, parts: list[int]) -> str:
        """A concatenation of inputs, or of functions of them."""
        names = [f"p{n}" for n in range(len(parts))]
        operands = ", ".join(f"{self.before} {name} {self.after}" for name in names)
        given = [self.input(self.axes, extent) for extent in parts]
        if self.rng.random() < 0.5:
            given[0] = self.applied(f"-{self.axes}~{self.axes}", given[0])
        whole = f"{self.before} ({' + '.join(names)}) {self.after}"
        return self.applied(f'einx.id("{operands} -> {whole}")', *given)

    def function(self, values: list[str]) -> str:
        """A function of two values, or of one and an input, which may lack axes."""
        one, other, operator = self.rng.choice(values), self.rng.choice(values), "+-*>"
        sign, short = self.rng.choice(operator), self.axes
        if self.rng.random() < 0.6:
            short = self.rng.choice((self.axes, "c", f"{self.before}c", f"c{self.after}"))
            other = self.input(short, sum(self.parts))
        return self.applied(f"{self.axes}{sign}{short}~{self.axes}", one, other)


def array(rng: random.Random, shape: tuple[int, ...], dtype: str) -> Any:
    """Small whole numbers, and zeros of both signs."""
    values = np.random.default_rng(rng.randrange(2**32)).integers(-3, 4, shape).astype(dtype)
    return values if dtype.startswith("i") else np.where(values == 0, np.float32(-0.0), values)


def is_right(component: Component, *given: Any, **how: Any) -> None:
    """Compare a call with the evaluator, the signs of zeros, too."""
    results, wanted = component(*given, **how), component(*given, target="numpy")
    pairs = zip(results, wanted, strict=True) if isinstance(wanted, tuple) else [(results, wanted)]
    for result, expected in pairs:
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


@pytest.mark.parametrize("seed", SEEDS)
def test_concatenations_are_right(seed: int) -> None:
    rng = random.Random(seed)
    program = Program(rng)
    component = i(program.text())
    dtype = rng.choice(("f4", "f4", "f8", "i4"))
    given = [array(rng, shape, dtype) for shape in program.shapes.values()]
    is_right(component, *given, threads=rng.choice((1, 2)))
    is_right(component.dynamic(), *given)
    if seed % 8 == 0:
        is_right(component, *given, target="cuda-emulated")


def test_parts_that_cover_all_follow_no_zeros() -> None:
    join = i('einx.id("b x, b y -> b (x + y)")')
    for loops in (join.loops((3, 20), (3, 30)), join.loops()):
        assert "= 0" not in loops, loops


def test_functions_of_concatenations_store_none() -> None:
    text = """
first = bs(d:16)~bsd
second = bs(d:16+16)~bsd
join = einx.id("b s x, b s y -> b s (x + y)")
neg = -bsd~bsd
times = bsd*sd~bsd
plus = bsd+bsd~bsd
rotary(x, c, w) = plus(times(x, c), times(join(neg(second(x)), first(x)), w))
"""
    rotary = i(text)
    shapes = (4, 20, 32), (20, 32), (20, 32)
    for loops in (rotary.loops(*shapes), rotary.loops()):
        assert "memory" not in loops, loops
