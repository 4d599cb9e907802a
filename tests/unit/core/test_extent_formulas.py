"""Formulas of extents against brute force: each means what it says wherever the extents are small."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from ilang.core.calculus.extent import (
    PLAIN,
    Extent,
    large_product,
    linear,
    most_chunks,
    number,
    part_of,
    parts,
    product,
    quotient,
    reach,
    size,
)

EXTENTS = tuple(itertools.product(range(6), repeat=2))
"""The extents of two sizes."""


def test_parts_are_counted() -> None:
    for n, step in itertools.product(range(20), range(1, 6)):
        assert parts(size(0), step).value([n]) == len(range(0, n, step))
        assert part_of(parts(size(0), step)) == (0, step)
    assert part_of(size(0)) is None
    assert part_of(parts(parts(size(0), 2), 3)) is None


@pytest.mark.parametrize("steps", [(1, 1), (2, 1), (3, 2), (1, 4)])
@pytest.mark.parametrize("known", [None, 0, 1, 4])
def test_a_reach_is_one_more_than_the_last_position(
    steps: tuple[int, int], known: int | None
) -> None:
    for n, m in EXTENTS:
        second = size(1) if known is None else number(known)
        positions = [
            steps[0] * a + steps[1] * b
            for a, b in itertools.product(range(n), range(m if known is None else known))
        ]
        value = reach([(steps[0], size(0)), (steps[1], second)], 0).value([n, m])
        assert value == max(positions, default=-1) + 1


def test_linear_forms_products_and_quotients() -> None:
    for n, m in EXTENTS:
        whole = linear([(2, size(0)), (-1, size(1))], 3)
        assert whole.value([n, m]) == 2 * n - m + 3
        assert quotient(whole, number(4)).value([n, m]) == (2 * n - m + 3) // 4
        assert (
            product((0, 1, 1)).value([n, m]) == large_product((0, 1, 1)).value([n, m]) == n * m * m
        )
        placed = whole.substituted({0: parts(size(1), 2)})
        assert placed.value([n, m]) == 2 * len(range(0, m, 2)) - m + 3
    assert product(()).constant() == 1
    assert linear([], 5) == number(5)
    assert quotient(size(0), number(1)) == size(0)


def chunks(elements: Extent) -> Extent:
    """The chunks of size 0: 4 at most, of 3 terms, of 2 for each of several elements, of which all have 6."""
    return Extent("chunks", (large_product((0,)), elements, *map(number, (4, 3, 2, 6))))


def test_chunks_have_enough_terms_each_and_accumulators_together() -> None:
    for n in range(40):
        assert chunks(number(0)).value([n]) == min(n // 3 + 1, 4)
        for m in range(1, 9):
            count = chunks(large_product((1,))).value([n, m])
            assert 1 <= count <= 4
            assert count == 1 or (count * m <= 6 and (count - 1) * max(3, 2 * m) <= n)
    assert most_chunks(chunks(number(0))) == most_chunks(chunks(size(1))) == 4
    assert most_chunks(size(0)) is None


def test_shares_are_as_many_as_give_all_blocks_work() -> None:
    for n, m in itertools.product(range(40), range(20)):
        count = Extent("shares", (size(0), number(4), number(16), size(1))).value([n, m])
        assert count == 1 or (count * 4 <= n and count * m <= 16)
        assert count == max(
            k for k in range(1, 17) if k == 1 or (4 * k <= n and k * max(1, m) <= 16)
        )


def spelled(extent: Extent) -> str:
    return extent.text("ab".__getitem__, PLAIN)


def texts() -> Iterator[tuple[Extent, str]]:
    yield linear([(1, size(0)), (-1, size(1)), (2, number(3))], -4), "a-b+2"
    yield quotient(linear([(2, size(0))], 0), number(3)), "(2a) / 3"
    yield quotient(product((0, 1)), product((0, 1))), "a * b / (a * b)"
    yield quotient(size(0), size(1)), "a / b"
    yield reach([(8, parts(size(0), 8)), (1, number(3))], 0), "8ceil(a/8)-5"


@pytest.mark.parametrize(("extent", "text"), list(texts()))
def test_pages_have_no_more_parentheses_than_needed(extent: Extent, text: str) -> None:
    assert spelled(extent) == text
    assert set(extent.sizes()) == {n for n, name in enumerate("ab") if name in text}
