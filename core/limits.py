"""The most expressions that a program has, written out, and the error for one of more."""

from __future__ import annotations

from ilang.core.diagnostic import MeaningError
from ilang.core.source import Span

MOST_LEAVES = 100_000
"""A program with more expressions is refused rather than written out."""


def check_expressions(count: int, span: Span, is_exact: bool = True) -> None:
    """Refuse a program of too many expressions; a count that is not exact is a part of them.

    Raises:
        MeaningError: E0250.
    """
    if count <= MOST_LEAVES:
        return
    number = _spelled(count) if is_exact else f"more than {MOST_LEAVES:,}"
    raise MeaningError(
        "E0250",
        f"the program has {number} expressions; {MOST_LEAVES:,} is the most",
        span,
        "a definition used twice is written out twice: look for definitions that double themselves",
    )


def _spelled(count: int) -> str:
    """A count in digits, or its size where there are too many of them to read."""
    return f"{count:,}" if count < 10**12 else f"more than 10^{len(str(count)) - 1}"
