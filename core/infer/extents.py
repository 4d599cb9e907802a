"""Extents: which dimensions are equal, which follow from others, and what each equality class is called.

Every axis makes the dimensions it walks one class; names and numbers written in a definition join and fix classes.
A class is a ``Size``: a run-time argument until arrays or ``--shape`` fix it. An axis that only an affine index has
gets the extent with which the index stays inside its dimension, padding included (LANGUAGE.md section 1). What windows
and concatenations of einsum specifications relate is solved in ``equations.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ilang.core.diagnostic import Label, ShapeError
from ilang.core.infer.counting import Variable
from ilang.core.infer.equations import Pending, Specification, bounds_of, shape_letters
from ilang.core.infer.indices import Opened, opened_axes
from ilang.core.infer.unionfind import UnionFind
from ilang.core.ir.affine import Affine, Within, inside
from ilang.core.ir.graph import Assignment, Elementwise, Graph, Read
from ilang.core.ir.operation import Operation
from ilang.core.ir.shaped import Bound, Derivation, Place, Size
from ilang.core.names import Names
from ilang.core.record import record, replace
from ilang.core.source import Span


@record
class _Written:
    """A number written for an extent, what messages call the place, and where it is."""

    number: int
    place: str
    span: Span


class Extents:
    """The solved classes: ``of(value, dim)`` and ``of_axis(node, axis)`` give size numbers into ``sizes``."""

    def __init__(
        self, graph: Graph, ranks: Sequence[int], lengths: Mapping[Variable, int] | None = None
    ) -> None:
        """Solve a graph whose ranks are known, and the lengths of its row variables.

        Raises:
            ShapeError: E0504 (two numbers written for one extent), E0515 (an axis longer than itself), E0521 (a window
                whose size is never given), E0570 (an index with two open axes), E0571 (an open axis that an index
                walks backwards), E0575 (an axis that only positions have, of no extent).
        """
        self.graph = graph
        self.ranks = ranks
        self.specifications: dict[int, Specification] = {}
        self.bases, self.axis_bases, count = self._members(lengths or {})
        self.groups = UnionFind(count)
        self.inside: set[tuple[int, Read]] = set()
        for value, node in enumerate(graph.nodes):
            self._equate(value, node)
        named, self.fixed = self._claims()
        derived = self._ordered()
        self.numbers: dict[int, int] = {}
        self.sizes = self._sizes(named)
        self.derived = [self._numbered(d) for d in derived]
        self.bounds = tuple(self._bounds())
        self.halves: dict[tuple[int, int], int] = {}

    def of(self, value: int, dim: int) -> int:
        """The size number of a dimension of a value."""
        return self.numbers[self.groups.find(self.bases[value] + dim)]

    def of_axis(self, node: int, axis: int) -> int:
        """The size number of an axis of an assignment."""
        return self.numbers[self.groups.find(self.axis_bases[node] + axis)]

    def guessed_sizes(self) -> tuple[int, ...]:
        """The sizes that nothing gives."""
        return tuple(sorted({self._number(group) for group in self.guessed}))

    def of_label(self, node: int, label: str) -> int:
        """The size number of a label of the specification of an operation."""
        return self.numbers[self.groups.find(self.specifications[node].axes[label])]

    def half(self, dilation: int, size: int, span: Span) -> int:
        """The size number of what a window reaches to its left, where it is padded on both ends."""
        known = self.halves.get((dilation, size))
        if known is not None:
            return known
        name = self.unique.fresh(f"half_{self.sizes[size].name}")
        number = self.halves[dilation, size] = len(self.sizes)
        self.sizes = (*self.sizes, Size(name, None, ()))
        terms = ((dilation, size),)
        self.derived.append(Derivation(number, terms, 1 - dilation, 2, False, 0, None, span))
        return number

    def guards(self, value: int, read: Read) -> tuple[Within, ...]:
        """What must hold for a read of an assignment to stay in its dimensions, where that is not known."""
        if (value, read) in self.inside:
            return ()
        moving = [dim for dim, index in enumerate(read.index) if index.terms]
        dims = [self.of(read.value, dim) for dim in moving]
        return inside([read.index[dim] for dim in moving], dims)

    def _equate(self, value: int, node: object) -> None:
        """Join the dimensions that each axis of a node walks with the axis."""
        if isinstance(node, Elementwise):
            for dim in range(self.ranks[value]):
                self.groups.union(self.bases[node.value] + dim, self.bases[value] + dim)
                self.groups.union(self.axis_bases[value] + dim, self.bases[value] + dim)
        if value in self.specifications:
            for one, other in self.specifications[value].joins:
                self.groups.union(one, other)
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

    def _ordered(self) -> list[Derivation]:
        """Every derivation in an order in which extents can be computed; what nothing gives is fixed by guess."""
        inputs = [
            self.bases[value] + dim
            for value in self.graph.inputs
            for dim in range(self.ranks[value])
        ]
        known = {self.groups.find(member) for member in inputs} | set(self.fixed)
        pending = Pending(self.groups.find, known)
        axes: list[int] = []
        for value, node in enumerate(self.graph.nodes):
            if isinstance(node, Assignment):
                pending.todo += self._derive(value, node)
            elif value in self.specifications:
                pending.todo += self.specifications[value].equations
                axes += self.specifications[value].axes.values()
        found = list(self.specifications.values())
        dims = [
            base + dim for base, n in zip(self.bases, self.ranks, strict=True) for dim in range(n)
        ]
        read = [f.member for each in found for f in each.floors if f.part is None]
        pending.run(
            [wanted for each in found for wanted in each.wanted],
            [floor for each in found for floor in each.floors],
            read + axes + dims,
        )
        self._check_positions(pending.guessed)
        self.guessed = pending.guessed
        for group, extent in pending.guessed.items():
            self.fixed[group] = _Written(extent, "what is left open", self.graph.nodes[0].span)
        return pending.found

    def _check_positions(self, guessed: Collection[int]) -> None:
        """Refuse axes that only positions have, where nothing gives their extent.

        Raises:
            ShapeError: E0575.
        """
        for value, node in enumerate(self.graph.nodes):
            if not isinstance(node, Assignment):
                continue
            read = {a for r in node.reads for index in r.index for _, a in index.terms}
            for number, axis in enumerate(node.axes):
                group = self.groups.find(self.axis_bases[value] + number)
                if number not in read and group in guessed:
                    name = axis.name
                    message = f"nothing fixes the extent of axis {name}"
                    help_line = f"write it where the position is: `@({name}:10)`"
                    raise ShapeError("E0575", message, axis.span, help_line)

    def _derive(self, value: int, node: Assignment) -> list[Derivation]:
        """The extents that the affine indices of an assignment determine; members stand where sizes will."""
        found, inside = opened_axes(node)
        self.inside |= {(value, read) for read in inside}
        return [self._derivation(value, opened) for opened in found]

    def _derivation(self, value: int, opened: Opened) -> Derivation:
        """The extent of the one open axis of an index."""
        first = self.axis_bases[value]
        windows = tuple((c, first + axis) for c, axis in opened.windows)
        base = self.bases[opened.read.value] + opened.dim
        # (base + 2 * pad - sum of step * (window - 1) - 1) / stride, and 1
        offset = 2 * opened.pad() + sum(step for step, _ in windows) - 1 + opened.stride
        terms = ((1, base), *((-step, member) for step, member in windows))
        size, span = first + opened.axis, opened.read.spans[opened.dim]
        return Derivation(size, terms, offset, opened.stride, False, 0, opened.pad(), span)

    def _numbered(self, derived: Derivation) -> Derivation:
        """A derivation over size numbers."""
        terms = tuple((c, self._number(member)) for c, member in derived.terms)
        return replace(derived, size=self._number(derived.size), terms=terms)

    def _number(self, member: int) -> int:
        return self.numbers[self.groups.find(member)]

    def _bounds(self) -> list[Bound]:
        """What fixed indices and windows demand of the dimensions they read."""
        floors = [floor for each in self.specifications.values() for floor in each.floors]
        return (
            bounds_of(floors, self._number)
            + [
                Bound(self.of(read.value, dim), index.offset, read.spans[dim])
                for node in self.graph.nodes
                if isinstance(node, Assignment)
                for read in node.reads
                for dim, index in enumerate(read.index)
                if not index.terms
            ]
            + [
                Bound(self.of_axis(value, axis), 0, node.span)
                for value, node in enumerate(self.graph.nodes)
                if isinstance(node, Assignment)
                for axis in node.some
            ]
        )

    def _sizes(self, named: dict[int, str]) -> tuple[Size, ...]:
        """One size per class, in the order in which inputs, then other values and their axes, have them."""
        reads = self._first_reads()
        places: dict[int, list[Place]] = {}
        letters: dict[int, str] = {}
        for value, node in enumerate(self.graph.nodes):  # the inputs come first
            for dim in range(self.ranks[value]):
                group = self.groups.find(self.bases[value] + dim)
                found = places.setdefault(group, [])
                letter, span = self._letter(reads, value, dim)
                if letter:
                    letters.setdefault(group, letter)
                if value < len(self.graph.inputs):
                    found.append(Place(value, dim, span))
            for member, name in self._named_axes(value, node):
                group = self.groups.find(member)
                places.setdefault(group, [])
                letters.setdefault(group, name)
        self.numbers = {group: n for n, group in enumerate(places)}
        unique = self.unique = Names()
        chosen = {group: unique.fresh(named[group]) for group in places if group in named}
        sizes = []
        for group, found in places.items():
            name = chosen.get(group) or unique.fresh(letters.get(group) or "n")
            fixed = self.fixed[group].number if group in self.fixed else None
            sizes.append(Size(name, fixed, tuple(found)))
        return tuple(sizes)

    def _members(self, lengths: Mapping[Variable, int]) -> tuple[list[int], list[int], int]:
        """The union-find numbers: the first dimension of each value, the first axis of each node, and the count."""
        bases, axis_bases, count = [], [], 0
        counted: dict[int, dict[str, int]] = {}
        for (owner, name), length in lengths.items():
            counted.setdefault(owner, {})[name] = length
        for rank in self.ranks:
            bases.append(count)
            count += rank
        for value, (node, rank) in enumerate(zip(self.graph.nodes, self.ranks, strict=True)):
            axis_bases.append(count)
            match node:
                case Assignment():
                    count += len(node.axes)
                case Elementwise():
                    count += rank
                case Operation():
                    its = [bases[each] for each in (*node.operands, value)]
                    made = Specification(node, counted.get(value, {}).__getitem__, its, count)
                    self.specifications[value] = made
                    count += len(made.axes)
                case _:
                    pass
        return bases, axis_bases, count

    def _named_axes(self, value: int, node: object) -> Iterator[tuple[int, str]]:
        """The axes of a node, by member, and what the text calls them."""
        if isinstance(node, Assignment):
            for number, axis in enumerate(node.axes):
                yield self.axis_bases[value] + number, axis.name
        elif value in self.specifications:
            for key, member in self.specifications[value].axes.items():
                yield member, key if isinstance(key, str) else key.name()

    def _first_reads(self) -> dict[int, list[tuple[str, Span]]]:
        """The letters by which each value is first read, a dimension each, and where they stand."""
        first: dict[int, list[tuple[str, Span]]] = {}
        for value, node in enumerate(self.graph.nodes):
            if isinstance(node, Assignment):
                for read in node.reads:
                    first.setdefault(
                        read.value, list(zip(_letters(node, read.index), read.spans, strict=True))
                    )
            elif isinstance(node, Operation):
                made = self.specifications[value]
                shapes = zip(node.operands, made.spec.operands, made.rows, strict=False)
                for each, shape, rows in shapes:
                    first.setdefault(each, shape_letters(shape, rows))
        return first

    def _letter(
        self, reads: Mapping[int, list[tuple[str, Span]]], value: int, dim: int
    ) -> tuple[str, Span]:
        """The letters by which a dimension is first read, or given, and where; none for a fixed index."""
        if value in reads:
            return reads[value][dim]
        made = self.graph.nodes[value]
        if isinstance(made, Assignment):
            return _letters(made, made.target)[dim], made.span
        if value in self.specifications:
            specification = self.specifications[value]
            return shape_letters(specification.spec.result, specification.rows[-1])[dim]
        return "", made.span


def _letters(node: Assignment, index: Sequence[Affine]) -> list[str]:
    """The letters of each index."""
    return ["".join(node.axes[axis].name for _, axis in part.terms) for part in index]


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
