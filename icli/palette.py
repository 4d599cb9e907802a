"""One color per axis letter, the same in every section, page and prompt."""

from __future__ import annotations

AXIS_COLORS = ("cyan", "magenta", "yellow", "green", "blue", "red")
"""Colors of the terminal's own theme, so they suit light and dark ones; i, j, k take the first three."""


def axis_color(letter: str) -> str:
    """The color of an axis: neighbors in the alphabet differ."""
    return AXIS_COLORS[(ord(letter) - ord("i")) % len(AXIS_COLORS)]
