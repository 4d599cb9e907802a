"""Loss curves: of block characters for a terminal, and as SVG."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ilang.codegen.system.outputs import FileKind, begins_with

BLOCKS = " ▁▂▃▄▅▆▇█"
"""A column of 0 to 8 eighths."""
WIDE, HIGH = 640, 360
"""The size of an SVG."""
EDGE = 48
"""Around the curve, for numbers."""
SVG = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}"'
    ' font-family="sans-serif" font-size="12">'
)
"""The first line of every drawing."""
CURVE = FileKind("a curve that `i train` drew", begins_with(SVG.encode()))

Point = tuple[float, float]


def curve_text(losses: Sequence[float], columns: int = 60, rows: int = 6) -> str:
    """Losses as bars, the largest and the least beside them; empty where there are fewer than two."""
    finite = [loss for loss in losses if math.isfinite(loss)]
    if len(finite) < 2:
        return ""
    bars = _means(finite, columns)
    low, high = min(bars), max(bars)
    scale = (high - low) or 1.0
    eighths = [round((bar - low) / scale * (8 * rows - 1)) + 1 for bar in bars]
    labels = {0: f"{high:.4g}", rows - 1: f"{low:.4g}"}
    width = max(map(len, labels.values()))
    lines = []
    for row in range(rows):
        below = 8 * (rows - 1 - row)
        line = "".join(BLOCKS[min(8, max(0, each - below))] for each in eighths)
        lines.append(f"{labels.get(row, ''):>{width}} {line}".rstrip())
    return "\n".join(lines) + "\n"


def _means(values: Sequence[float], count: int) -> list[float]:
    """As many values as there are, or the means of so many stretches of them."""
    if len(values) <= count:
        return list(values)
    ends = [n * len(values) // count for n in range(count + 1)]
    return [sum(values[begin:end]) / (end - begin) for begin, end in itertools.pairwise(ends)]


def curve_svg(
    losses: Sequence[Point],
    held_back: Sequence[Point],
    names: tuple[str, str] = ("loss", "validation"),
    across: str = "step",
) -> str:
    """A drawing of losses by step, and of those of held-back data; or of other values, with their names."""
    drawn = [[(x, y) for x, y in curve if math.isfinite(y)] for curve in (losses, held_back)]
    points = [*drawn[0], *drawn[1]] or [(0.0, 0.0)]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)

    def place(point: Point) -> str:
        across = (point[0] - left) / ((right - left) or 1.0)
        up = (point[1] - low) / ((high - low) or 1.0)
        return f"{EDGE + across * (WIDE - 2 * EDGE):.1f},{HIGH - EDGE - up * (HIGH - 2 * EDGE):.1f}"

    bottom, end = HIGH - EDGE, WIDE - EDGE
    lines = [
        SVG,
        f'<rect width="{WIDE}" height="{HIGH}" fill="white"/>',
        f'<path d="M{EDGE},{EDGE} V{bottom} H{end}" fill="none" stroke="gray"/>',
        f'<text x="{EDGE - 4}" y="{EDGE + 4}" text-anchor="end">{high:.4g}</text>',
        f'<text x="{EDGE - 4}" y="{bottom + 4}" text-anchor="end">{low:.4g}</text>',
        f'<text x="{EDGE}" y="{bottom + 18}">{left:g}</text>',
        f'<text x="{end}" y="{bottom + 18}" text-anchor="end">{right:g}</text>',
        f'<text x="{WIDE / 2:g}" y="{bottom + 18}" text-anchor="middle">{across}</text>',
    ]
    colors = ("steelblue", "darkorange")
    for n, (name, color, curve) in enumerate(zip(names, colors, drawn, strict=True)):
        if curve:
            path = " ".join(map(place, curve))
            lines += [
                f'<polyline points="{path}" fill="none" stroke="{color}"/>',
                f'<text x="{end}" y="{EDGE + 14 * n}" text-anchor="end" fill="{color}">{name}</text>',
            ]
    return "\n".join([*lines, "</svg>\n"])
