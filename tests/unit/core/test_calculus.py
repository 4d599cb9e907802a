"""Affine expressions against brute force: every operation means what it says at all values of small extents."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping

import pytest

from ilang.core.calculus.affine import (
    Affine,
    Within,
    at_least_0,
    axis_index,
    before,
    canonical,
    divided,
    outermost_first,
    positive,
    row_step,
    sides,
    size_value,
    variables_of,
)
from ilang.core.record import replace

VARIABLES = range(3)
SIZES = (2, 3)
"""The extents of size numbers 0 and 1."""


def value(index: Affine, at: Mapping[int, int]) -> int:
    """What an expression is, by its definition."""
    total = index.offset + sum(c * SIZES[size] for c, size in index.sizes)
    return total + sum(c * at[variable] for c, variable in index.steps())


def expressions(seed: int, count: int = 60) -> Iterator[Affine]:
    """Random expressions, some with a variable in several terms."""
    draw = random.Random(seed)
    for _ in range(count):
        yield Affine(
            tuple((draw.randint(-3, 3), draw.choice(VARIABLES)) for _ in range(draw.randint(0, 4))),
            draw.randint(-4, 4),
            draw.random() < 0.5,
            tuple((draw.randint(-2, 2), draw.choice((0, 1))) for _ in range(draw.randint(0, 2))),
        )


def points(extents: Mapping[int, int]) -> Iterator[dict[int, int]]:
    """Every iteration over variables of some extents."""
    for values in itertools.product(*map(range, extents.values())):
        yield dict(zip(extents, values, strict=True))


ALL = dict.fromkeys(VARIABLES, 3)


@pytest.mark.parametrize("seed", range(8))
def test_sums_differences_and_products(seed: int) -> None:
    for one, other in zip(expressions(seed), expressions(seed + 100), strict=True):
        for at in points(ALL):
            assert value(one + other, at) == value(one, at) + value(other, at)
            assert value(one - other, at) == value(one, at) - value(other, at)
            assert value(-one, at) == -value(one, at)
            assert value(3 * one - 2, at) == 3 * value(one, at) - 2
            assert value(one.merged(), at) == value(one, at)
            assert value(outermost_first(one), at) == value(one, at)
            assert one.value(at) + value(replace(one, offset=0).without(VARIABLES), at) == value(
                one, at
            )


@pytest.mark.parametrize("seed", range(8))
def test_a_sum_has_each_variable_once(seed: int) -> None:
    for one, other in zip(expressions(seed), expressions(seed + 100), strict=True):
        total = one.merged() + other.merged()
        names = [variable for _, variable in total.steps()]
        assert len({*names}) == len(names)
        assert all(c for c, _ in (*total.steps(), *total.sizes))


@pytest.mark.parametrize("seed", range(8))
def test_substitution_keeps_sizes_and_offsets(seed: int) -> None:
    for one, other in zip(expressions(seed), expressions(seed + 100), strict=True):
        moved = one.substituted({1: other})
        for at in points(ALL):
            assert value(moved, at) == value(one, {**at, 1: value(other, at)})


def test_a_size_survives_substitution() -> None:
    """A coefficient multiplies the sizes of what takes the place of a variable."""
    assert (2 * axis_index(0)).substituted({0: axis_index(1) + size_value(0) + 3}) == (
        2 * axis_index(1) + 2 * size_value(0) + 6
    )


@pytest.mark.parametrize("seed", range(8))
def test_equal_expressions_have_one_canonical_form(seed: int) -> None:
    every = [*expressions(seed, 200)]
    forms: dict[object, list[int]] = {}
    for each in every:
        one = replace(each, sizes=())
        table = [value(one, at) for at in points(ALL)]
        assert forms.setdefault(canonical(one), table) == table
    tables = [tuple(table) for table in forms.values()]
    assert len({*tables}) == len(tables)


@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_met_and_never_passed(seed: int) -> None:
    for one in expressions(seed):
        extents = {0: 1 + seed % 3, 2: 3}
        once = one.merged()
        least, most = once.minimum(extents), once.maximum(extents)
        assert least is not None
        assert most is not None
        assert variables_of((least, most)) <= {1}
        for n in range(3):
            values = [value(once, {**at, 1: n}) for at in points(extents)]
            assert value(least, {1: n}) == min(values)
            assert value(most, {1: n}) == max(values)


def test_a_bound_needs_the_extents_that_it_rests_on() -> None:
    index = axis_index(0) - axis_index(1)
    assert index.minimum({0: None, 1: 4}) == Affine((), -3)
    assert index.minimum({1: None}) is None
    assert index.maximum({0: None}) is None
    assert index.maximum({0: 4, 1: 0}) == Affine((), 3)


@pytest.mark.parametrize("seed", range(8))
def test_comparisons_say_that_it_is_at_least_0(seed: int) -> None:
    """Both spellings hold where the expression is at least 0, and neither side has a minus sign before a variable."""
    relations = {"<=": int.__le__, "<": int.__lt__, ">=": int.__ge__}
    for one in expressions(seed):
        left, relation, right = at_least_0(one)
        less, more = sides(one)
        for at in points(ALL):
            holds = 0 <= value(one, at)
            assert relations[relation](value(left, at), value(right, at)) == holds
            assert (value(less, at) <= value(more, at)) == holds
        assert all(0 < c for side in (left, right, less, more) for c, _ in side.steps())


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_a_loop_to_an_end_has_the_iterations_before_it(seed: int, step: int) -> None:
    """The condition that an iteration is before an end holds for as many iterations as the end says."""
    for one in expressions(seed, 8):
        for end in (before(9, one, step), before(9, size_value(1) - positive(one), step)):
            last, divisor = end.limit(9)
            assert divisor == step
            for at, n in itertools.product(points(ALL), range(0, 12, 3)):
                condition = end.at(9, n)
                index = value(condition.index, at)
                below = condition.size is None or index < SIZES[condition.size]
                assert (0 <= index and below) == (n < -(-value(last, at) // step))


def test_an_end_is_what_is_left_of_a_dimension() -> None:
    start = Affine(((64, 0),))
    assert before(9, size_value(1) - start, 2) == Within(start + 2 * axis_index(9), 1)
    assert before(9, size_value(1) - start + 1).size is None
    assert before(9, axis_index(0)).size is None


@pytest.mark.parametrize("seed", range(8))
def test_what_is_known_to_be_natural_or_a_multiple_is(seed: int) -> None:
    for one in expressions(seed):
        for at in points(ALL):
            assert not one.is_natural() or 0 <= value(one, at)
            assert not one.is_multiple(2) or one.value(at) % 2 == 0
        doubled = 2 * replace(one, sizes=())
        assert all(value(divided(doubled, 2), at) == doubled.value(at) // 2 for at in points(ALL))


@pytest.mark.parametrize("seed", range(8))
def test_the_step_along_a_row_is_that_of_the_memory(seed: int) -> None:
    """An access moves by the step in its row exactly if no other dimension moves."""
    every = [*expressions(seed)]
    for row, column in itertools.pairwise(every):
        step = row_step((row, column), 0)
        moved = [
            (
                value(row, {**at, 0: 1}) - value(row, at),
                value(column, {**at, 0: 1}) - value(column, at),
            )
            for at in points({**ALL, 0: 1})
        ]
        rows = {r for r, _ in moved}
        if step is not None:
            assert rows == {0}
            assert {c for _, c in moved} == {step}
        else:
            assert 0 in {variable for _, variable in row.steps()}
    assert row_step((), 0) == 0
