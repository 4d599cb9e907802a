"""What a run of the tests goes through where all of it takes long: a sixth, or all of it with ``--fuzz 6``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

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
