"""What checkers of random programs count, and how the counts of several processes become one.

Example:
    in:   one tally of 3 runs, another of 4 and a failure
    out:  ``one.add(other)``: 7 runs, and the failure
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Self


@dataclass
class Counts:
    """Numbers, counters and lists of failures, each a field of what derives from this."""

    def add(self, other: Self) -> None:
        """Count another tally in."""
        for name, value in vars(other).items():
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)
