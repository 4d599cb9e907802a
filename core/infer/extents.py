"""Extents: which dimensions are equal, which follow from others, and what each equality class is called.

Every axis makes the dimensions it walks one class; names and numbers written in a definition join and fix classes.
A class is a ``Size``: a run-time argument until arrays or ``--shape`` fix it. An axis that only an affine index has
gets the extent with which the index stays inside its dimension, padding included (LANGUAGE.md section 1).
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.diagnostic import Label, ShapeError
from ilang.core.infer.unionfind import UnionFind
from ilang.core.ir.affine import Affine
from ilang.core.ir.graph import Assignment, Elementwise, Graph, Read
from ilang.core.ir.shaped import Bound, Derivation, Place, Size
from ilang.core.names import Names
from ilang.core.record import record
from ilang.core.source import Span


@record
class _Written:
    """A number written for an extent, what messages call the place, and where it is."""

    number: int
    place: str
    span: Span


class Extents:
    """The solved classes: ``of(value, dim)`` and ``of_axis(node, axis)`` give size numbers into ``sizes``."""

    def __init__(self, graph: Graph, ranks: Sequence[int]) -> None:
        """Solve a graph whose ranks are known.

        Raises:
            ShapeError: E0504 (two numbers written for one extent), E0570 (an index with two open axes), E0571 (an
                open axis that an index walks backwards).
        """
        self.graph = graph
        self.ranks = ranks
        self.bases, self.axis_bases, count = _members(graph, ranks)
        self.groups = UnionFind(count)
        self.inside: set[tuple[int, Read]] = set()
        for value, node in enumerate(graph.nodes):
            self._equate(value, node)
        named, self.fixed = self._claims()
        derived: list[Derivation] = []
        for value, node in enumerate(graph.nodes):
            if isinstance(node, Assignment):
                derived += self._derive(value, node)
        self.numbers: dict[int, int] = {}
        self.sizes = self._sizes(named)
        self.derived = tuple(self._numbered(d) for d in derived)
        self.bounds = tuple(self._bounds())

    def of(self, value: int, dim: int) -> int:
        """The size number of a dimension of a value."""
        return self.numbers[self.groups.find(self.bases[value] + dim)]

    def of_axis(self, node: int, axis: int) -> int:
        """The size number of an axis of an assignment."""
        return self.numbers[self.groups.find(self.axis_bases[node] + axis)]

    def outside(self, value: int, read: Read) -> str:
        """What happens where a read of an assignment leaves its dimension (``shaped.Read.outside``)."""
        moving = [index for index in read.index if index.terms and not index.is_whole()]
        if not moving or (value, read) in self.inside:
            return "never"
        return "skip" if read.skips else "zero"

    def _equate(self, value: int, node: object) -> None:
        """Join the dimensions that each axis of a node walks with the axis."""
        if isinstance(node, Elementwise):
            for dim in range(self.ranks[value]):
                self.groups.union(self.bases[node.value] + dim, self.bases[value] + dim)
                self.groups.union(self.axis_bases[value] + dim, self.bases[value] + dim)
        if not isinstance(node, Assignment):
            return
        for source, places in [
            (value, node.target),
            *((read.value, read.index) for read in node.reads),
        ]:
            for dim, index in enumerate(places):
                axis = index.axis()
                if axis is not None:
                    self.groups.union(self.bases[source] + dim, self.axis_bases[value] + axis)

    def _claims(self) -> tuple[dict[int, str], dict[int, _Written]]:
        """Join the dimensions that share a written name; the names and the numbers written, per class."""
        first: dict[tuple[int, str], int] = {}
        for claim in self.graph.claims:
            for dim, written in enumerate(claim.dims or ()):
                if isinstance(written, str):
                    member = self.bases[claim.value] + dim
                    self.groups.union(first.setdefault((claim.scope, written), member), member)
        names: dict[int, str] = {}
        numbers: dict[int, _Written] = {}
        for claim in reversed(
            self.graph.claims
        ):  # the outermost definition is the last: its words win
            for dim, written in enumerate(claim.dims or ()):
                group = self.groups.find(self.bases[claim.value] + dim)
                if isinstance(written, str):
                    names.setdefault(group, written)
                else:
                    place = f"dimension {dim} of {claim.name}"
                    _fix(numbers, group, _Written(written, place, claim.span))
        for value, node in enumerate(self.graph.nodes):
            for number, axis in enumerate(node.axes if isinstance(node, Assignment) else ()):
                if axis.extent is not None:
                    group = self.groups.find(self.axis_bases[value] + number)
                    _fix(numbers, group, _Written(axis.extent, f"axis {axis.name}", axis.span))
        return names, numbers

    def _derive(self, value: int, node: Assignment) -> list[Derivation]:
        """The extents that the affine indices of an assignment determine; members stand where sizes will."""
        known = {index.axis() for read in node.reads for index in read.index}
        known |= {number for number, axis in enumerate(node.axes) if axis.extent is not None}
        pending = [
            (read, dim, index)
            for read in node.reads
            for dim, index in enumerate(read.index)
            if index.terms and not index.is_whole()
        ]
        leaving = {read for read, _, _ in pending}
        found: list[Derivation] = []
        stays: dict[tuple[Read, int], bool] = {}
        while pending:
            ready = [entry for entry in pending if len(_open(entry[2], known)) < 2]
            if not ready:
                raise _two_open(
                    node, pending[0][0].spans[pending[0][1]], _open(pending[0][2], known)
                )
            for read, dim, index in ready:
                opened = _open(index, known)
                if opened:
                    found.append(self._derivation(value, node, read, dim, index, opened[0]))
                    known.add(opened[0])
                stays[read, dim] = bool(opened) and index.offset >= 0
            pending = [entry for entry in pending if (entry[0], entry[1]) not in stays]
        self.inside |= {
            (value, read)
            for read in leaving
            if all(ok for (r, _), ok in stays.items() if r == read)
        }
        return found

    def _derivation(
        self, value: int, node: Assignment, read: Read, dim: int, index: Affine, opened: int
    ) -> Derivation:
        """The extent of the one open axis of an index."""
        span = read.spans[dim]
        stride = next(c for c, axis in index.terms if axis == opened)
        backwards = next((axis for c, axis in index.terms if c < 0), None)
        if backwards is not None:
            raise ShapeError(
                "E0571",
                f"nothing fixes the extent of axis {node.axes[opened].name}, and this index walks "
                f"axis {node.axes[backwards].name} backwards",
                span,
                f"write the extent: `{node.axes[opened].name}:8`",
            )
        windows = tuple(
            (c, self.axis_bases[value] + axis) for c, axis in index.terms if axis != opened
        )
        base = self.bases[read.value] + dim
        return Derivation(
            self.axis_bases[value] + opened, base, stride, -index.offset, windows, span
        )

    def _numbered(self, derived: Derivation) -> Derivation:
        """A derivation over size numbers."""

        def size(member: int) -> int:
            return self.numbers[self.groups.find(member)]

        windows = tuple((step, size(member)) for step, member in derived.windows)
        return Derivation(
            size(derived.size),
            size(derived.base),
            derived.stride,
            derived.pad,
            windows,
            derived.span,
        )

    def _bounds(self) -> list[Bound]:
        """What fixed indices demand of the dimensions they read."""
        return [
            Bound(self.of(read.value, dim), index.offset, read.spans[dim])
            for node in self.graph.nodes
            if isinstance(node, Assignment)
            for read in node.reads
            for dim, index in enumerate(read.index)
            if not index.terms
        ]

    def _sizes(self, named: dict[int, str]) -> tuple[Size, ...]:
        """One size per class, in the order in which inputs, then other values and their axes, have them."""
        reads = _first_reads(self.graph)
        places: dict[int, list[Place]] = {}
        letters: dict[int, str] = {}
        for value, node in enumerate(self.graph.nodes):  # the inputs come first
            for dim in range(self.ranks[value]):
                group = self.groups.find(self.bases[value] + dim)
                found = places.setdefault(group, [])
                letter, span = _letter(self.graph, reads, value, dim)
                if letter:
                    letters.setdefault(group, letter)
                if value < len(self.graph.inputs):
                    found.append(Place(value, dim, span))
            for number, axis in enumerate(node.axes if isinstance(node, Assignment) else ()):
                group = self.groups.find(self.axis_bases[value] + number)
                places.setdefault(group, [])
                letters.setdefault(group, axis.name)
        self.numbers = {group: n for n, group in enumerate(places)}
        unique = Names()
        sizes = []
        for group, found in places.items():
            name = unique.fresh(named.get(group) or letters.get(group) or "n")
            fixed = self.fixed[group].number if group in self.fixed else None
            sizes.append(Size(name, fixed, tuple(found)))
        return tuple(sizes)


def _members(graph: Graph, ranks: Sequence[int]) -> tuple[list[int], list[int], int]:
    """The union-find numbers: the first dimension of each value, the first axis of each node, and the count."""
    bases, axis_bases, count = [], [], 0
    for rank in ranks:
        bases.append(count)
        count += rank
    for node, rank in zip(graph.nodes, ranks, strict=True):
        axis_bases.append(count)
        match node:
            case Assignment():
                count += len(node.axes)
            case Elementwise():
                count += rank
            case _:
                pass
    return bases, axis_bases, count


def _open(index: Affine, known: set[int | None]) -> list[int]:
    """The axes of an index whose extent is not known yet."""
    return [axis for _, axis in index.terms if axis not in known]


def _two_open(node: Assignment, span: Span, opened: list[int]) -> ShapeError:
    names = [node.axes[axis].name for axis in opened]
    message = f"nothing fixes the extents of axes {' and '.join(names)} in this index"
    return ShapeError("E0570", message, span, f"write one of them: `{names[-1]}:3`")


def _first_reads(graph: Graph) -> dict[int, tuple[Assignment, Read]]:
    """The first assignment that reads each value, with that read."""
    first: dict[int, tuple[Assignment, Read]] = {}
    for node in graph.nodes:
        if isinstance(node, Assignment):
            for read in node.reads:
                first.setdefault(read.value, (node, read))
    return first


def _letter(
    graph: Graph, reads: dict[int, tuple[Assignment, Read]], value: int, dim: int
) -> tuple[str, Span]:
    """The letters by which a dimension is first read, or given, and where; none for a fixed index."""
    if value in reads:
        node, read = reads[value]
        return "".join(node.axes[axis].name for _, axis in read.index[dim].terms), read.spans[dim]
    made = graph.nodes[value]
    if isinstance(made, Assignment):
        return "".join(made.axes[axis].name for _, axis in made.target[dim].terms), made.span
    return "", made.span


def _fix(numbers: dict[int, _Written], group: int, written: _Written) -> None:
    """Note a number written for a class, or refuse it beside another."""
    before = numbers.setdefault(group, written)
    if before.number == written.number:
        return
    message = (
        f"one extent is written as {written.number} ({written.place}) "
        f"and as {before.number} ({before.place})"
    )
    labels = [
        Label(written.span, f"{written.number} here"),
        Label(before.span, f"{before.number} here"),
    ]
    help_line = "write the same number, or a name, in both places"
    raise ShapeError("E0504", message, written.span, help_line, labels)
