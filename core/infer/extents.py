"""Extents: which dimensions are equal, what each equality class is called, and whether arrays fit.

Every axis makes the dimensions it walks one class; names and numbers written in a definition join and fix classes.
A class is a ``Size``: a run-time argument until arrays or ``--shape`` fix it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.diagnostic import InternalError, Label, ShapeError
from ilang.core.infer.unionfind import UnionFind
from ilang.core.ir.graph import Assignment, Claim, Elementwise, Graph, Read
from ilang.core.ir.shaped import Place, Shaped, Size
from ilang.core.names import Names
from ilang.core.source import Span

LARGEST_EXTENT = 2**62
"""Extents from here on are refused: index arithmetic is 64-bit."""


class Extents:
    """The solved classes: ``of(value, dim)`` and ``of_axis(node, axis)`` give size numbers into ``sizes``."""

    def __init__(self, graph: Graph, ranks: Sequence[int]) -> None:
        """Solve a graph whose ranks are known.

        Raises:
            ShapeError: E0504 (two numbers written for one extent).
        """
        self.graph = graph
        self.bases = _bases(graph, ranks)
        self.ranks = ranks
        self.groups = UnionFind(self.bases[-1])
        self.axes: list[tuple[int, ...]] = []
        for value, node in enumerate(graph.nodes):
            self._equate(value, node)
        named, self.fixed = self._claims()
        self.numbers: dict[int, int] = {}
        self.sizes = self._sizes(named)

    def of(self, value: int, dim: int) -> int:
        """The size number of a dimension of a value."""
        return self.numbers[self.groups.find(self.bases[value] + dim)]

    def of_axis(self, node: int, axis: int) -> int:
        """The size number of an axis of an assignment."""
        return self.numbers[self.groups.find(self.axes[node][axis])]

    def _equate(self, value: int, node: object) -> None:
        """Join the dimensions that each axis of a node walks."""
        walked: list[int | None] = []
        if isinstance(node, Assignment):
            walked = [None] * len(node.axes)
            places = [(value, dim, index) for dim, index in enumerate(node.target)]
            places += [
                (r.value, dim, index) for r in node.reads for dim, index in enumerate(r.index)
            ]
            for source, dim, index in places:
                axis = index.axis()
                if axis is None:
                    raise InternalError("E9901", "an affine index reached the inference of extents")
                member = self.bases[source] + dim
                first = walked[axis]
                if first is None:
                    walked[axis] = member
                else:
                    self.groups.union(first, member)
        if isinstance(node, Elementwise):
            for dim in range(self.ranks[value]):
                self.groups.union(self.bases[node.value] + dim, self.bases[value] + dim)
                walked.append(self.bases[value] + dim)
        self.axes.append(tuple(member for member in walked if member is not None))

    def _claims(self) -> tuple[dict[int, str], dict[int, tuple[int, Claim]]]:
        """Join the dimensions that share a written name; the names and the numbers written, per class."""
        first: dict[tuple[int, str], int] = {}
        for claim in self.graph.claims:
            for dim, written in enumerate(claim.dims or ()):
                if isinstance(written, str):
                    member = self.bases[claim.value] + dim
                    self.groups.union(first.setdefault((claim.scope, written), member), member)
        names: dict[int, str] = {}
        numbers: dict[int, tuple[int, Claim]] = {}
        for claim in reversed(
            self.graph.claims
        ):  # the outermost definition is the last: its words win
            for dim, written in enumerate(claim.dims or ()):
                group = self.groups.find(self.bases[claim.value] + dim)
                if isinstance(written, str):
                    names.setdefault(group, written)
                    continue
                before = numbers.setdefault(group, (written, claim))
                if before[0] != written:
                    raise _two_numbers(dim, (written, claim), before)
        return names, numbers

    def _sizes(self, named: dict[int, str]) -> tuple[Size, ...]:
        """One size per class, in the order in which inputs, then other values, have them."""
        order = range(len(self.graph.nodes))  # the inputs come first
        position = {value: number for number, value in enumerate(self.graph.inputs)}
        reads = _first_reads(self.graph)
        places: dict[int, list[Place]] = {}
        letters: dict[int, str] = {}
        for value in order:
            for dim in range(self.ranks[value]):
                group = self.groups.find(self.bases[value] + dim)
                found = places.setdefault(group, [])
                letter, span = _letter(self.graph, reads, value, dim)
                if letter is not None:
                    letters.setdefault(group, letter)
                if value in position:
                    found.append(Place(position[value], dim, span))
        self.numbers = {group: n for n, group in enumerate(places)}
        unique = Names()
        sizes = []
        for group, found in places.items():
            name = unique.fresh(named.get(group) or letters.get(group) or "n")
            fixed = self.fixed[group][0] if group in self.fixed else None
            sizes.append(Size(name, fixed, tuple(found)))
        return tuple(sizes)


def _bases(graph: Graph, ranks: Sequence[int]) -> list[int]:
    """The number of the first dimension of each value, and the count of all of them last."""
    bases = [0]
    for rank in ranks:
        bases.append(bases[-1] + rank)
    assert len(bases) == len(graph.nodes) + 1
    return bases


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
) -> tuple[str | None, Span]:
    """The letter by which a dimension is first read, or given, and where."""
    if value in reads:
        node, read = reads[value]
        axis = read.index[dim].axis()
        return (None if axis is None else node.axes[axis].name), read.spans[dim]
    made = graph.nodes[value]
    if isinstance(made, Assignment):
        axis = made.target[dim].axis()
        return (None if axis is None else made.axes[axis].name), made.span
    return None, made.span


def _two_numbers(dim: int, one: tuple[int, Claim], other: tuple[int, Claim]) -> ShapeError:
    labels = [Label(one[1].span, f"{one[0]} here"), Label(other[1].span, f"{other[0]} here")]
    message = (
        f"one extent is written as {one[0]} (dimension {dim} of {one[1].name}) "
        f"and as {other[0]} ({other[1].name})"
    )
    return ShapeError(
        "E0504", message, one[1].span, "write the same number, or a name, in both places", labels
    )


def fit(
    sizes: Sequence[Size],
    names: Sequence[str],
    ranks: Sequence[int],
    shapes: Sequence[tuple[int, ...]],
) -> tuple[int, ...]:
    """The extents, one per size, of arrays of these shapes.

    Args:
        sizes: the sizes of a shaped program.
        names: what messages call each input.
        ranks: the rank of each input.
        shapes: the shape of each array.

    Raises:
        ShapeError: E0503 (rank), E0505 (a shared axis with two extents), E0506 (a written extent), E0507 (negative or
            too large).
    """
    for name, rank, shape in zip(names, ranks, shapes, strict=True):
        if rank != len(shape):
            message = f"{name} has rank {len(shape)}, but the program reads it with rank {rank}"
            raise ShapeError("E0503", message, None, f"pass an array of rank {rank} as {name}")
        for dim, extent in enumerate(shape):
            if not 0 <= extent < LARGEST_EXTENT:
                message = (
                    f"dimension {dim} of {name} is {extent}; an extent is at least 0 and below 2^62"
                )
                raise ShapeError("E0507", message, None, None)
    return tuple(_extent(size, names, shapes) for size in sizes)


def _extent(size: Size, names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> int:
    """The one extent of a size."""
    if not size.places:
        return size.fixed or 0
    first = size.places[0]
    extent = shapes[first.number][first.dim]
    for place in size.places:
        here = shapes[place.number][place.dim]
        if size.fixed is not None and here != size.fixed:
            where = f"dimension {place.dim} of {names[place.number]}"
            message = f"axis {size.name} is fixed at {size.fixed}, but {where} is {here}"
            raise ShapeError("E0506", message, place.span, f"pass extent {size.fixed} there")
        if here != extent:
            raise _unequal(size, names, (first, extent), (place, here))
    return extent


def _unequal(
    size: Size, names: Sequence[str], one: tuple[Place, int], other: tuple[Place, int]
) -> ShapeError:
    (a, left), (b, right) = one, other
    message = (
        f"axis {size.name} is {left} in {names[a.number]} (dimension {a.dim}) "
        f"and {right} in {names[b.number]} (dimension {b.dim})"
    )
    labels = [
        Label(b.span, f"{right} here, in {names[b.number]}"),
        Label(a.span, f"{left} here, in {names[a.number]}"),
    ]
    help_line = "both dimensions are walked by one axis: give them the same extent"
    return ShapeError("E0505", message, b.span, help_line, labels)


def fit_shaped(shaped: Shaped, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """``fit`` for a shaped program."""
    tensors = [shaped.tensors[value] for value in shaped.inputs]
    return fit(shaped.sizes, [t.name for t in tensors], [len(t.dims) for t in tensors], shapes)
