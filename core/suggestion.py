"""Suggestions: the likely meaning of an unknown name.

Example:
    in:   "softmx", of softmax and softplus
    out:  did you mean softmax?
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

MOST_GUESSES = 20
"""Unknown names of one text that are compared with all others: a text of many mistakes is told of as soon."""

Otherwise = TypeVar("Otherwise", bound="str | None")
"""The words where no name is near: others, or none."""


class Guesses:
    """The likely meanings of the unknown names of one text, as long as these are few."""

    def __init__(self) -> None:
        self.count = 0

    def did_you_mean(
        self, name: str, known: Iterable[str], otherwise: Otherwise
    ) -> str | Otherwise:
        """The help line for an unknown name of a program."""
        self.count += 1
        few = self.count <= MOST_GUESSES
        return did_you_mean(name, list(known), otherwise, "`{}`") if few else otherwise


def did_you_mean(
    word: str, candidates: Sequence[str], otherwise: Otherwise, spelled: str = "{}"
) -> str | Otherwise:
    """The help line for an unknown name: the candidate that was most likely meant, or what is said ``otherwise``.

    ``spelled`` is how a candidate is written in it.
    """
    guess = nearest(word, candidates)
    return otherwise if guess is None else f"did you mean {spelled.format(guess)}?"


def nearest(word: str, candidates: Sequence[str]) -> str | None:
    """The candidate most like ``word`` (edit distance at most a third of its length, at least 1), or None.

    A single letter is like itself alone, in the other case.
    """
    best: tuple[int, str] | None = None
    for candidate in candidates:
        limit = 0 if len(candidate.strip("-")) < 2 else max(1, len(candidate) // 3)
        distance = _edit_distance(word.lower(), candidate.lower(), limit)
        if distance is not None and (best is None or (distance, candidate) < best):
            best = (distance, candidate)
    return None if best is None else best[1]


def _edit_distance(a: str, b: str, limit: int) -> int | None:
    """Levenshtein distance with adjacent swaps counted once; None past the limit."""
    if abs(len(a) - len(b)) > limit:
        return None
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        new = [i]
        for j, y in enumerate(b, 1):
            cost = min(row[j] + 1, new[j - 1] + 1, row[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            new.append(cost)
        before, row = row, new
    return row[-1] if row[-1] <= limit else None
