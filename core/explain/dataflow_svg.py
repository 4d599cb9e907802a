"""A data-flow graph as a picture in SVG: kernels are frames, and each frame has a layout of its own.

An edge from outside a frame ends at a port on its upper side, from which the layout inside leads it to its box; one to
the outside leaves by a port on the lower side. ``data-gives`` is the tensor that a box is of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from ilang.core.explain.dataflow import FlowGraph
from ilang.core.explain.dataflow_text import label_of
from ilang.core.markup import escaped

LINE, LETTER, PADDING = 17.0, 7.25, 9.0
"""The height of a line, the width of a letter, and the room around a text, in pixels."""
GAP, BETWEEN, TITLE = 22.0, 30.0, 22.0
"""The distance of boxes beside each other and below each other; the height of the title of a frame."""
MARGIN = 8.0
LONGEST = 64
"""Letters of a line in a box; a longer formula is cut, and whole in the title of the box."""
STYLE = """
.flow text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: CanvasText; white-space: pre }
.flow rect { fill: Canvas; stroke: GrayText }
.flow .frame { fill: GrayText; fill-opacity: .09; stroke-opacity: .5 }
.flow .unstored { stroke-dasharray: 4 3 }
.flow .output { stroke-width: 2.5; stroke: CanvasText }
.flow path { fill: none; stroke: GrayText; stroke-width: 1.3 }
.flow .head { fill: GrayText; stroke: none }
"""
"""The colors are those of the page or the system, so that it is dark where these are."""

Port = tuple[int, bool]
"""A node outside of a frame, and whether the edge leads into the frame."""


def svg_text(flow: FlowGraph) -> str:
    """The picture as a document."""
    return f"{picture(flow, STYLE)}\n"


def picture(flow: FlowGraph, style: str = "") -> str:
    """The picture as an element; without a style it takes that of the page."""
    return "\n".join(_Picture(flow).lines(style))


def _shown(flow: FlowGraph, node: int) -> list[str]:
    lines = label_of(flow.nodes[node])
    return [line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in lines]


def _size(flow: FlowGraph, node: int) -> Point:
    """The width and the height of the box of a node."""
    lines = _shown(flow, node)
    return LETTER * max(map(len, lines)) + 2 * PADDING, LINE * len(lines) + PADDING


class _KernelFrame:
    """A kernel, or a node of its own: the places of its nodes and ports, and the routes between them."""

    def __init__(self, flow: FlowGraph, nodes: Collection[int], name: str) -> None:
        self.name = name
        boxes: dict[int | Port, Point] = {node: _size(flow, node) for node in nodes}
        edges = dict[tuple[int | Port, int | Port], None]()
        for a, b in flow.edges:
            if a in nodes and b in nodes:
                edges[a, b] = None
            elif name and b in nodes:
                edges[(a, True), b] = None
            elif name and a in nodes:
                edges[a, (a, False)] = None
        boxes |= {port: (0.0, 0.0) for edge in edges for port in edge if isinstance(port, tuple)}
        names = list(boxes)
        numbered = [(names.index(a), names.index(b)) for a, b in edges]
        ends = [(n, each[1]) for n, each in enumerate(names) if isinstance(each, tuple)]
        first, last = [n for n, enters in ends if enters], [n for n, enters in ends if not enters]
        inner = Layers([boxes[each] for each in names], numbered, GAP, BETWEEN, first, last)
        around, top = (PADDING, TITLE) if name else (0.0, 0.0)
        self.width, self.height = inner.width + 2 * around, inner.height + top + around
        self.places: dict[int, Point] = {}
        self.ports: dict[Port, Point] = {}
        for each, place in zip(names, inner.places, strict=True):
            x, y = _moved(place, (around, top))
            if isinstance(each, tuple):
                self.ports[each] = (x, 0.0 if each[1] else self.height)
            else:
                self.places[each] = (x, y)
        self.routes = {
            edge: [_moved(point, (around, top)) for point in points]
            for edge, points in zip(edges, inner.waypoints, strict=True)
        }


def _moved(point: Point, by: Point) -> Point:
    return point[0] + by[0], point[1] + by[1]


class _Picture:
    """A picture: the frame of each kernel and of each other node, and where these stand."""

    def __init__(self, flow: FlowGraph) -> None:
        self.flow = flow
        inside = flow.inside()
        blocks: list[tuple[tuple[int, ...], str]] = [
            ((n,), "") for n in range(len(flow.nodes)) if n not in inside
        ]
        blocks += [(nodes, f"k{number}") for number, nodes in enumerate(flow.kernels)]
        self.frames = [_KernelFrame(flow, *block) for block in blocks]
        self.home = {node: n for n, (nodes, _) in enumerate(blocks) for node in nodes}
        between = [(self.home[a], self.home[b]) for a, b in flow.edges]
        edges = [each for each in dict.fromkeys(between) if each[0] != each[1]]
        sizes = [(frame.width, frame.height) for frame in self.frames]
        self.layout = Layers(sizes, edges, GAP, BETWEEN)
        self.waypoints = dict(zip(edges, self.layout.waypoints, strict=True))

    def lines(self, style: str) -> Iterator[str]:
        """The lines of the element."""
        width, height = self.layout.width + 2 * MARGIN, self.layout.height + 2 * MARGIN
        yield (
            f'<svg class="flow" xmlns="http://www.w3.org/2000/svg" role="img" width="{width:g}"'
            f' height="{height:g}" viewBox="0 0 {width:g} {height:g}">'
        )
        yield f"<title>{escaped(self.flow.title)}</title>"
        if style:
            yield f"<style>:root {{ color-scheme: light dark }}{style}</style>"
        yield (
            '<defs><marker id="head" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="7"'
            ' markerHeight="7" orient="auto"><path class="head" d="M0 0L6 3L0 6z"/></marker></defs>'
        )
        yield f'<g transform="translate({MARGIN:g} {MARGIN:g})">'
        for frame, (x, y) in zip(self.frames, self.layout.places, strict=True):
            if frame.name:
                size = f'width="{frame.width:g}" height="{frame.height:g}"'
                yield f'<rect class="frame" x="{x:g}" y="{y:g}" {size} rx="6"/>'
                yield f'<text x="{x + PADDING:g}" y="{y + LINE - 2:g}">kernel {frame.name}</text>'
        yield from (self._edge(*edge) for edge in self.flow.edges)
        for node in range(len(self.flow.nodes)):
            yield from self._box(node)
        yield "</g>"
        yield "</svg>"

    def _corner(self, node: int) -> Point:
        home = self.home[node]
        return _moved(self.frames[home].places[node], self.layout.places[home])

    def _box(self, node: int) -> Iterator[str]:
        """The box of a node, with its whole formula as its title."""
        each, (x, y), (width, height) = (
            self.flow.nodes[node],
            self._corner(node),
            _size(self.flow, node),
        )
        gives = f' data-gives="{escaped(each.tensor)}"' if each.tensor else ""
        classes = [each.kind, *([] if each.stored else ["unstored"])]
        yield f'<g class="node"{gives}>'
        yield f"<title>{escaped(chr(10).join(label_of(each)))}</title>"
        size = f'width="{width:g}" height="{height:g}" rx="{9 if each.kind == "input" else 3}"'
        yield f'<rect class="{" ".join(classes)}" x="{x:g}" y="{y:g}" {size}/>'
        for number, line in enumerate(_shown(self.flow, node), 1):
            at = y + LINE * number - 1
            yield f'<text x="{x + PADDING:g}" y="{at:g}">{escaped(line)}</text>'
        yield "</g>"

    def _edge(self, source: int, target: int) -> str:
        """The line between two boxes, a curve from each of its points to the next one."""
        points = self._route(source, target)
        path = f"M{points[0][0]:g} {points[0][1]:g}"
        for (x0, y0), (x1, y1) in pairwise(points):
            half = (y0 + y1) / 2
            path += f"C{x0:g} {half:g} {x1:g} {half:g} {x1:g} {y1:g}"
        return f'<path d="{path}" marker-end="url(#head)"/>'

    def _route(self, source: int, target: int) -> list[Point]:
        """The points from one box to another: out of one frame, past others, into the other one."""
        (x, y), (width, height) = self._corner(source), _size(self.flow, source)
        begin = (x + width / 2, y + height)
        (x, y), (width, _) = self._corner(target), _size(self.flow, target)
        end = (x + width / 2, y)
        first, last = self.home[source], self.home[target]
        out, into = self.layout.places[first], self.layout.places[last]
        leaves, enters = (source, False), (source, True)
        before, after = self.frames[first], self.frames[last]
        if first == last:
            return [begin, *(_moved(p, out) for p in before.routes[source, target]), end]
        points, rest = [begin], [end]
        if leaves in before.ports:
            inner = (*before.routes[source, leaves], before.ports[leaves])
            points += [_moved(point, out) for point in inner]
        if enters in after.ports:
            inner = (after.ports[enters], *after.routes[enters, target])
            rest = [*(_moved(point, into) for point in inner), end]
        points.append((points[-1][0], self.layout.spans[first][1]))
        rest.insert(0, (rest[0][0], self.layout.spans[last][0]))
        return [*points, *self.waypoints[first, last], *rest]


SWEEPS = 8
"""Passes over all layers that order them, and as many that place boxes."""
Point = tuple[float, float]


class Layers:
    """Boxes of some sizes, placed.

    An edge that passes layers goes straight down through each: there it takes part as a box of no size does, and has
    two waypoints, at the top and at the bottom of the layer.

    Example, a → b, b → c, a → c, boxes of 2 × 1, gaps of 1:
        a stands in layer 0, b in layer 1 beside the waypoints of a → c, c in layer 2

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
    for row, near in _sweeps(rows, len(layer), links):
        place = {n: at for each in rows for at, n in enumerate(each)}
        row.sort(key=lambda n: _mean([place[m] for m in near[n]], place[n]))
    return rows


def _placed(
    rows: Sequence[list[int]], links: Sequence[tuple[int, int]], widths: Sequence[float], gap: float
) -> list[float]:
    """The middle of each box across: near the mean of those that it is linked to, as far as others leave room."""
    middle = [0.0] * len(widths)
    for row, near in _sweeps(rows, len(widths), links):
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


def _sweeps(
    rows: Sequence[list[int]], count: int, links: Sequence[tuple[int, int]]
) -> Iterator[tuple[list[int], list[list[int]]]]:
    """The layers several times, downwards and upwards in turn, with the boxes that each box is near to on the way."""
    up, down = _neighbours(count, links)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        for row in rows if downwards else reversed(rows):
            yield row, up if downwards else down


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
