"""The part of long lists that a run of the tests goes through: a sixth, or all with ``--fuzz 6``; what is deep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pytest

SIXTHS = 6

Item = TypeVar("Item")

fuzz = 1
"""The option ``--fuzz`` of this run."""


def share(items: Sequence[Item], number: int = 0) -> Sequence[Item]:
    """Every sixth item from that of a number on; more of them with the option, all where it asks for as many.

    Tests that differ in modes alone take different numbers, so that together they go through everything.
    """
    step = max(1, SIXTHS // fuzz)
    return items[number % step :: step]


def one_in(step: int, items: Iterable[Any]) -> list[Any]:
    """Values of a parameter, of which `make test` takes the first and every so manyth after it: all others are deep."""
    return [
        pytest.param(item, marks=pytest.mark.deep if number % step else ())
        for number, item in enumerate(items)
    ]
