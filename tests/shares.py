"""What a run of the tests goes through where all of it takes long: a third, or all of it with ``--fuzz 3``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

THIRDS = 3

Item = TypeVar("Item")

fuzz = 1
"""The option ``--fuzz`` of this run."""


def share(items: Sequence[Item], number: int = 0) -> Sequence[Item]:
    """Every third item from that of a number on; all of them where the option asks for as many.

    Tests that differ in modes alone take different numbers, so that together they go through everything.
    """
    step = max(1, THIRDS // fuzz)
    return items[number % step :: step]
