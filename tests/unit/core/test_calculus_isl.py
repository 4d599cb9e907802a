"""The calculus against isl, which proves what brute force samples: for every value of variables and sizes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ilang.core.calculus.affine import Affine, at_least_0, canonical
from ilang.core.calculus.extent import (
    Extent,
    Operator,
    linear,
    number,
    parts,
    quotient,
    reach,
    size,
)
from ilang.core.record import replace

isl = pytest.importorskip("islpy")

NAMES = ("x", "y", "z")
SPELLED = {
    "+": Operator(lambda *words: " + ".join(words)),
    "scaled": Operator(lambda factor, word: f"{factor} * {word}"),
    "//": Operator(lambda whole, divisor: f"floor(({whole}) / {divisor})"),
    "ceil": Operator(lambda whole, step: f"ceil(({whole}) / {step})"),
    "when": Operator(lambda then, *counts: f"{then} : {' and '.join(f'0 < {n}' for n in counts)}"),
}
"""The spellings of operations in isl."""


def text(index: Affine) -> str:
    """An index as isl reads it."""
    return " + ".join([f"{c} * {NAMES[v]}" for c, v in index.steps()] + [str(index.offset)])


def indices(seed: int) -> list[Affine]:
    """Random indices over three variables."""
    draw = random.Random(seed)
    return [
        Affine(
            tuple((draw.randint(-4, 4), draw.randrange(3)) for _ in range(draw.randint(0, 4))),
            draw.randint(-9, 9),
        )
        for _ in range(20)
    ]


def mapped(index: str) -> Any:
    """An index as a map from all variables."""
    return isl.Map(f"{{ [x, y, z] -> [{index}] }}")


def formula(extent: Extent) -> Any:
    """An extent as a function of the sizes n and m, defined where its condition holds."""
    value, _, condition = extent.text("nm".__getitem__, SPELLED).partition(" : ")
    return isl.PwAff(f"[n, m] -> {{ [({value})] : {condition or 'true'} }}")


def most(domain: str, position: str) -> Any:
    """One more than the greatest position in a domain, as a function of the sizes n and m."""
    greatest = isl.Set(f"[n, m] -> {{ [v] : exists i, j : {domain} and v = {position} }}").dim_max(
        0
    )
    return greatest.add(isl.PwAff("[n, m] -> { [(1)] }"))


@pytest.mark.parametrize("seed", range(4))
def test_algebra_and_substitution(seed: int) -> None:
    every = indices(seed)
    for one, other in zip(every, every[::-1], strict=True):
        assert mapped(text(one + other)).is_equal(mapped(f"({text(one)}) + ({text(other)})"))
        assert mapped(text(one - 3 * other)).is_equal(
            mapped(f"({text(one)}) - 3 * ({text(other)})")
        )
        moved = text(one).replace("y", f"({text(other)})")
        assert mapped(text(one.substituted({1: other}))).is_equal(mapped(moved))
        same = canonical(one) == canonical(other)
        assert same == mapped(text(one)).is_equal(mapped(text(other)))


@pytest.mark.parametrize("seed", range(4))
def test_bounds_and_conditions(seed: int) -> None:
    extents = {0: 3, 1: 1, 2: 5}
    box = "0 <= x < 3 and 0 <= y < 1 and 0 <= z < 5"
    for one in indices(seed):
        once = one.merged()
        values = isl.Set(f"{{ [v] : exists x, y, z : {box} and v = {text(once)} }}")
        least, greatest = once.minimum(extents), once.maximum(extents)
        assert least == replace(least, terms=(), offset=values.dim_min_val(0).to_python())
        assert greatest == replace(greatest, terms=(), offset=values.dim_max_val(0).to_python())
        left, relation, right = at_least_0(one)
        holds = isl.Set(f"{{ [x, y, z] : {text(left)} {relation} {text(right)} }}")
        assert holds.is_equal(isl.Set(f"{{ [x, y, z] : 0 <= {text(one)} }}"))
        assert (
            not one.is_natural()
            or isl.Set(
                f"{{ [x, y, z] : 0 <= x and 0 <= y and 0 <= z and {text(one)} < 0 }}"
            ).is_empty()
        )


@pytest.mark.parametrize("step", [1, 2, 7])
def test_parts_of_any_extent(step: int) -> None:
    counted = most("0 <= i < n and j = 0", f"floor(i / {step})")
    assert counted.is_equal(formula(parts(size(0), step)).intersect_domain(counted.domain()))


@pytest.mark.parametrize("steps", [(1, 1), (2, 3), (8, 1)])
def test_the_reach_of_any_loops(steps: tuple[int, int]) -> None:
    first, second = steps
    value = reach([(first, size(0)), (second, size(1))], 0)
    positions = f"{first} * i + {second} * j"
    assert formula(value).is_equal(most("0 <= i < n and 0 <= j < m", positions))


def test_positions_of_a_window() -> None:
    """A window of m elements has as many positions in n, each step of 2, as begin early enough to fit."""
    value = quotient(linear([(1, size(0)), (-1, size(1))], 2), number(2))
    fits = "0 <= i and 1 <= m and 2 * i + m <= n and j = 0"
    counted = most(fits, "i")
    assert counted.is_equal(formula(value).intersect_domain(counted.domain()))
