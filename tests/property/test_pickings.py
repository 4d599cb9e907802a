"""Sorts and look-ups, differentiated twice, and groups that fix one axis twice."""

from __future__ import annotations

import pytest

from tests.property import groups, pickings


def test_derivatives_of_sorts_and_look_ups() -> None:
    for seed in range(12):
        pickings.checked(seed, "numpy")


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize(("seed", "target"), [(1, "c"), (5, "c"), (5, "cuda-emulated")])
def test_derivatives_of_sorts_and_look_ups_compiled(seed: int, target: str) -> None:
    pickings.checked(seed, target)


def test_groups_that_fix_one_axis_mean_the_same_in_both_orders() -> None:
    meant = [groups.checked(seed) for seed in range(120)]
    assert 15 <= sum(meant[::2]) <= 45
    assert 5 <= sum(meant[1::2]) <= 40
