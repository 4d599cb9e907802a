"""The layout of a directed graph in layers: every edge goes down, and few cross (Sugiyama, Tagawa and Toda).

An edge that passes layers goes straight down through each: there it takes part as a box of no size does, and has two
waypoints, at the top and at the bottom of the layer.

Example, a → b, b → c, a → c, boxes of 2 × 1, gaps of 1:
    a stands in layer 0, b in layer 1 beside the waypoints of a → c, c in layer 2
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

SWEEPS = 8
"""Passes over all layers that order them, and as many that place boxes."""
Point = tuple[float, float]


class Layers:
    """Boxes of some sizes, placed.

    ``places`` has the upper left corner of each box, ``spans`` top and bottom of its layer, ``waypoints`` those of each
    edge; ``width`` and ``height`` are those of all.
    """

    def __init__(
        self,
        boxes: Sequence[Point],
        edges: Sequence[tuple[int, int]],
        gap: float,
        between: float,
        first: Collection[int] = (),
        last: Collection[int] = (),
    ) -> None:
        """Place boxes.

        Args:
            boxes: width and height of each.
            edges: pairs of boxes, without cycles.
            gap: the least distance of two boxes of a layer.
            between: the distance of two layers.
            first: boxes in the first layer, to which no edge leads.
            last: boxes in the last layer, from which no edge leads.
        """
        layer = _layers(len(boxes), edges, first)
        for n in last:
            layer[n] = max(layer)
        sizes, chains, links = list(boxes), list[list[int]](), list[tuple[int, int]]()
        for source, target in edges:
            passed = range(layer[source] + 1, layer[target])
            chain = [*range(len(sizes), len(sizes) + len(passed))]
            sizes += [(0.0, 0.0)] * len(chain)
            layer += passed
            links += pairwise([source, *chain, target])
            chains.append(chain)
        rows = _ordered(layer, links)
        middle = _placed(rows, links, [width for width, _ in sizes], gap)
        heights = [max(sizes[n][1] for n in row) for row in rows]
        tops = [sum(heights[:at]) + at * between for at in range(len(rows))]
        left = min((middle[n] - sizes[n][0] / 2 for n in range(len(sizes))), default=0.0)

        def corner(n: int, height: float) -> Point:
            below = (heights[layer[n]] - height) / 2
            return middle[n] - sizes[n][0] / 2 - left, tops[layer[n]] + below

        self.places = [corner(n, height) for n, (_, height) in enumerate(boxes)]
        self.spans = [(tops[at], tops[at] + heights[at]) for at in layer[: len(boxes)]]
        self.waypoints = [
            [corner(n, sign * heights[layer[n]]) for n in chain for sign in (1, -1)]
            for chain in chains
        ]
        self.width = max((middle[n] + sizes[n][0] / 2 - left for n in range(len(sizes))), default=0)
        self.height = tops[-1] + heights[-1] if rows else 0.0


def _layers(count: int, edges: Sequence[tuple[int, int]], first: Collection[int]) -> list[int]:
    """The layer of each box: below all that lead to it.

    A box that nothing leads to, and that need not be first, is just above what it leads to.
    """
    above, below = _neighbours(count, edges)
    layer: list[int] = [0] * count
    waiting = [len(each) for each in above]
    ready = [n for n in range(count) if not waiting[n]]
    for n in ready:
        layer[n] = 1 + max((layer[each] for each in above[n]), default=-1)
        for each in below[n]:
            waiting[each] -= 1
            if not waiting[each]:
                ready.append(each)
    for n in range(count):
        if not above[n] and below[n] and n not in first:
            layer[n] = min(layer[each] for each in below[n]) - 1
    return layer


def _ordered(layer: Sequence[int], links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The boxes of each layer from left to right: each near the mean of those that it is linked to."""
    rows: list[list[int]] = [[] for _ in range(1 + max(layer, default=-1))]
    for n, at in enumerate(layer):
        rows[at].append(n)
    up, down = _neighbours(len(layer), links)
    for sweep in range(SWEEPS):
        near = up if sweep % 2 == 0 else down
        for row in rows if sweep % 2 == 0 else reversed(rows):
            place = {n: at for each in rows for at, n in enumerate(each)}
            row.sort(key=lambda n: _mean([place[m] for m in near[n]], place[n]))
    return rows


def _placed(
    rows: Sequence[Sequence[int]],
    links: Sequence[tuple[int, int]],
    widths: Sequence[float],
    gap: float,
) -> list[float]:
    """The middle of each box across: near the mean of those that it is linked to, as far as others leave room."""
    middle = [0.0] * len(widths)
    up, down = _neighbours(len(widths), links)
    for sweep in range(SWEEPS):
        near = up if sweep % 2 == 0 else down
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wished = [_mean([middle[m] for m in near[n]], middle[n]) for n in row]
            from_left, from_right = list(wished), list(wished)
            for at in range(1, len(row)):
                least = (widths[row[at - 1]] + widths[row[at]]) / 2 + gap
                from_left[at] = max(wished[at], from_left[at - 1] + least)
            for at in range(len(row) - 2, -1, -1):
                least = (widths[row[at]] + widths[row[at + 1]]) / 2 + gap
                from_right[at] = min(wished[at], from_right[at + 1] - least)
            for at, n in enumerate(row):
                middle[n] = (from_left[at] + from_right[at]) / 2
    return middle


def _neighbours(
    count: int, links: Sequence[tuple[int, int]]
) -> tuple[list[list[int]], list[list[int]]]:
    """The boxes that lead to each, and those that each leads to."""
    up: list[list[int]] = [[] for _ in range(count)]
    down: list[list[int]] = [[] for _ in range(count)]
    for source, target in links:
        up[target].append(source)
        down[source].append(target)
    return up, down


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
