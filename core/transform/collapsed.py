"""Axes collapsed: adjacent axes that every access walks in row-major order are one axis, over the product of extents.

Example, a sum of all of a matrix, and the maximum of 0 and a matrix:
    in:   out = sum in0[i,j] over i j              out[i,j] = max(in0[i,j], 0)
    out:  t1 = in0 as i j -> (i j)                 t1 = in0 as i j -> (i j)
          out = sum t1[ij] over ij                 t2[ij] = max(t1[ij], 0);  out = t2 as (i j) -> i j

One long axis is what blocks, threads and lanes are chosen for: one row of 16 million elements has parts for all of
them, and rows of three elements have vectors. Arrays are read through views, and results are views of what is stored;
a value between two assignments has the dimensions of both, so each of them must walk it so, or none does.

An axis that a window, a guard, a position or a look-up walks stays as it is, and so do those of a written schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import TypeVar

from ilang.core.calculus.affine import Affine, axis_index
from ilang.core.calculus.extent import number, product
from ilang.core.ir.assignments import fixed_values, sources, updated_values, viewed_values
from ilang.core.ir.graph import Axis, Groups
from ilang.core.ir.ids import ValueId
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.scalar import Position, scalars_within
from ilang.core.ir.shaped import Assignment, Derivation, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.record import mapped, replace
from ilang.core.transform.extended import ExtendedProgram
from ilang.core.transform.units import without_units

T = TypeVar("T")
Pair = tuple[int, int]
"""Two axes of an assignment, the second of which is walked right inside of the first; or a value and a dimension."""


def collapsed_axes(shaped: Shaped, extents: Extents, machine: Machine) -> Shaped:
    """The program with fewer axes; itself where none can be collapsed.

    Args:
        shaped: the program.
        extents: which of its sizes are small.
        machine: what the program is for; for blocks of a GPU long axes are collapsed, too.
    """
    longer = without_units(shaped)
    arranged = _arranged(longer)
    finder = _Pairs(arranged, extents, machine)
    is_shorter = any(finder.pairs.values())
    if longer is shaped and not is_shorter:
        return shaped
    return _AxisCollapse(arranged if is_shorter else longer, finder.pairs).run()


def _arranged(shaped: Shaped) -> Shaped:
    """The program in which products that sums alone read have their dimensions as factors walk them.

    So that (d c) is one axis of ``a[a,d,c] * b[d,c,b]``, though the text names the product's axes as a b c d.
    """
    assignments = [(v, n) for v, n in shaped.numbered() if isinstance(n, Assignment)]
    stays = fixed_values(shaped) | {*shaped.outputs}
    for value, node in shaped.numbered():
        if not isinstance(node, Assignment):
            stays |= {value, *sources(node)}
    nodes, tensors = list(shaped.nodes), list(shaped.tensors)
    orders: dict[ValueId, list[int]] = {}
    for value, node in assignments:
        dims = _walked_order(node) if value not in stays else None
        if dims is not None:
            orders[value] = dims
            tensor = tensors[value]
            order = _at(tensor.order or tuple(range(len(dims))), dims)
            tensors[value] = replace(tensor, dims=_at(tensor.dims, dims), order=order)
    if not orders:
        return shaped
    for value, node in assignments:
        reads = tuple(
            replace(read, index=_at(read.index, orders[read.value]))
            if read.value in orders
            else read
            for read in node.reads
        )
        target = _at(node.target, orders[value]) if value in orders else node.target
        nodes[value] = replace(node, reads=reads, target=target)
    return replace(shaped, nodes=tuple(nodes), tensors=tuple(tensors))


def _walked_order(node: Assignment) -> list[int] | None:
    """The dimensions of a product, two that all factors walk side by side in their order; None where they are so."""
    axes = [part.axis() for part in node.target]
    if node.acc is not None or node.base is not None or node.schedule is not None or None in axes:
        return None
    walked = [[part.axis() for part in read.index] for read in node.reads]
    dims = list(range(len(axes)))
    for one, other in sorted({pair for index in walked for pair in pairwise(index)}, key=str):
        if one is None or other is None or one == other or not {one, other} <= {*axes}:
            continue
        if all(_side_by_side(index, one, other) for index in walked):
            at = axes.index(other)
            dims.remove(at)
            dims.insert(dims.index(axes.index(one)) + 1, at)
    return dims if dims != list(range(len(axes))) else None


def _at(items: Sequence[T], numbers: Sequence[int]) -> tuple[T, ...]:
    return tuple(items[number] for number in numbers)


class _Pairs:
    """The pairs of axes of each assignment that can be one.

    ``held`` are the dimensions of computed values that are one with the next, by value and number.
    """

    def __init__(self, shaped: Shaped, extents: Extents, machine: Machine) -> None:
        """Take pairs away until all that touches a value agrees."""
        self.shaped = shaped
        self.extents = extents
        self.machine = machine
        self.computed = {v for v, n in shaped.numbered() if isinstance(n, Assignment)}
        self.pairs = {v: set(self._alike(self.shaped.assignment(v))) for v in sorted(self.computed)}
        whole = updated_values(shaped)
        self.held = {
            (value, dim)
            for value in self.computed - whole
            for dim in range(len(shaped.tensors[value].dims) - 1)
        }
        while self._left_out():
            pass

    def _alike(self, node: Assignment) -> Iterator[Pair]:
        """The pairs of axes that stand side by side wherever one of them stands, and nowhere alone."""
        if node.schedule is not None or node.base is not None:
            return
        accesses = [node.target, *(read.index for read in node.reads)]
        guards = [*node.guards, *(guard for read in node.reads for guard in read.guards)]
        others = [part for index in accesses for part in index if part.axis() is None]
        others += [guard.index for guard in guards]
        others += [each.index for each in scalars_within(node.scalar) if isinstance(each, Position)]
        fixed = {axis for part in others for axis in part.axes()}
        walked = [[part.axis() for part in index] for index in accesses]
        pairs = {pair for index in walked for pair in pairwise(index)}
        for one, other in sorted((a, b) for a, b in pairs if a is not None and b is not None):
            is_free = (
                one != other and not {one, other} & fixed and self._is_of_use(node, one, other)
            )
            if is_free and all(_side_by_side(index, one, other) for index in walked):
                yield one, other

    def _is_of_use(self, node: Assignment, one: int, other: int) -> bool:
        """Whether two axes are better one: on a processor where one is short, or the last tile of the inner one is.

        Two known ones that are reduced are one long row.
        """
        is_short = any(self.extents.is_small(node.sizes[axis]) for axis in (one, other))
        inner, tiles = self.extents.fixed(node.sizes[other]), self.machine.tiles
        wasted = 0 if inner is None else -inner % tiles.lanes
        is_row = inner is not None and {one, other} <= {*node.reduced_axes()}
        is_short |= is_row or wasted * tiles.tail > (inner or 0)
        return self.machine.device is not None or is_short

    def _left_out(self) -> bool:
        """Take away what somebody does not walk so; whether anything was."""
        before = len(self.held) + sum(map(len, self.pairs.values()))
        for value in sorted(self.computed):
            node, pairs = self.shaped.assignment(value), self.pairs[value]
            touched = [(value, node.target), *((read.value, read.index) for read in node.reads)]
            for other, index in touched:
                for dim, pair in enumerate(_adjacent(index)):
                    if other not in self.computed:
                        continue
                    if pair not in pairs:
                        self.held.discard((other, dim))
                    elif (other, dim) not in self.held:
                        pairs.discard(pair)
        return len(self.held) + sum(map(len, self.pairs.values())) < before


def _side_by_side(index: Sequence[int | None], one: int, other: int) -> bool:
    """Whether an index walks the second of two axes right after the first, wherever it walks one of them."""
    firsts = [dim for dim, axis in enumerate(index) if axis == one]
    return firsts == [dim - 1 for dim, axis in enumerate(index) if axis == other]


def _adjacent(index: Sequence[Affine]) -> Iterator[tuple[int | None, int | None]]:
    """The axes of each dimension of an index and of the next one."""
    axes = [part.axis() for part in index]
    return pairwise(axes)


class _AxisCollapse:
    """A program whose pairs of axes become one; its values keep their numbers, and new ones have the numbers after."""

    def __init__(self, shaped: Shaped, pairs: dict[ValueId, set[Pair]]) -> None:
        self.shaped = shaped
        self.pairs = pairs
        self.new = ExtendedProgram(shaped)
        self.rules: list[Derivation] = []
        self.of_sizes: dict[tuple[int, ...], int] = {}
        self.views: dict[tuple[ValueId, Groups, tuple[int, ...]], ValueId] = {}
        self.stored: dict[ValueId, ValueId] = {}
        self.arrays = viewed_values(shaped) | {*shaped.outputs}
        assignments = [(v, n) for v, n in shaped.numbered() if isinstance(n, Assignment)]
        read = {value for _, node in assignments for value in node.values()}
        self.whole = fixed_values(shaped) | {
            value for value, node in assignments if value in read or node.base is not None
        }

    def run(self) -> Shaped:
        """Every assignment in turn, after what it reads."""
        for value, node in self.shaped.numbered():
            if isinstance(node, Assignment):
                self._collapse(value, node)
        return self.new.result(self.rules)

    def _collapse(self, value: ValueId, node: Assignment) -> None:
        behind = dict(self.pairs[value])
        first = [axis for axis in range(len(node.axes)) if axis not in behind.values()]
        runs = {axis: _run(axis, behind) for axis in first}
        place = {axis: axis_index(n) for n, axis in enumerate(first)}
        number = {axis: n for n, axis in enumerate(first)}
        number |= {axis: number[first] for first, run in runs.items() for axis in run}

        def put(index: Sequence[Affine]) -> tuple[Affine, ...]:
            kept = (part for part in index if part.axis() not in behind.values())
            return tuple(
                place[axis] if (axis := part.axis()) is not None else part.renamed(number)
                for part in kept
            )

        def grouped(index: Sequence[Affine], value: ValueId) -> tuple[Affine, ...]:
            groups = self._groups(index, value, behind)
            dims = self.shaped.tensors[value].dims
            return put([index[self._walked(index, dims, group)] for group in groups])

        def moved(value: T) -> T:
            return mapped(value, Affine, lambda part: part.renamed(number))

        reads = tuple(
            Read(
                self._seen(read, behind, runs, node),
                grouped(read.index, read.value),
                moved(read.guards),
            )
            for read in node.reads
        )
        self.new.nodes[value] = changed = replace(
            node,
            axes=tuple(self._axis(node, runs[axis]) for axis in first),
            sizes=tuple(self._size(node, runs[axis]) for axis in first),
            target=grouped(node.target, value),
            reads=reads,
            scalar=moved(node.scalar),
            guards=moved(node.guards),
        )
        if len(changed.target) < len(node.target):
            self._store(value, node, changed, self._groups(node.target, value, behind))

    def _groups(self, index: Sequence[Affine], value: ValueId, behind: dict[int, int]) -> Groups:
        """The dimensions of an index that become one, in order; one of one element joins the dimension beside it."""
        groups: list[list[int]] = []
        dims, joined = self.shaped.tensors[value].dims, set(behind.values())
        has_one = False
        """Whether every dimension of the last group has one element."""
        for dim, part in enumerate(index):
            is_fixed = part == Affine(()) and value not in self.whole
            is_unit = is_fixed and self.shaped.sizes[dims[dim]].fixed == 1
            if groups and (is_unit or has_one or part.axis() in joined):
                groups[-1].append(dim)
                has_one = has_one and is_unit
            else:
                groups.append([dim])
                has_one = is_unit
        return tuple(map(tuple, groups))

    def _walked(self, index: Sequence[Affine], dims: Sequence[int], group: tuple[int, ...]) -> int:
        """The first dimension of a group that something walks, else the first of several elements, or the first."""
        longer = (dim for dim in group if self.shaped.sizes[dims[dim]].fixed != 1)
        moved = (dim for dim in group if index[dim] != Affine(()))
        return next(moved, next(longer, group[0]))

    def _axis(self, node: Assignment, run: Sequence[int]) -> Axis:
        axes = [node.axes[axis] for axis in run]
        return axes[0] if len(axes) == 1 else Axis(_name(x.name for x in axes), None, axes[0].span)

    def _size(self, node: Assignment, run: Sequence[int]) -> int:
        every = tuple(node.sizes[axis] for axis in run)
        sizes = tuple(size for size in every if self.new.sizes[size].fixed != 1) or every[:1]
        if len(sizes) == 1:
            return sizes[0]
        if sizes not in self.of_sizes:
            extents = [self.new.sizes[size].fixed for size in sizes]
            known = None if None in extents else prod(extent or 0 for extent in extents)
            parts = [self.new.sizes[size] for size in sizes]
            of = tuple(name for part in parts for name in part.of or (part.name,))
            size = self.new.add_size(_name(part.name for part in parts), known, of)
            self.of_sizes[sizes] = size
            if known is None:
                rule = Derivation(size, product(sizes), number(1), False, 0, None, node.span)
                self.rules.append(rule)
        return self.of_sizes[sizes]

    def _seen(
        self, read: Read, behind: dict[int, int], runs: dict[int, list[int]], node: Assignment
    ) -> ValueId:
        """The value to read instead: what an assignment stores under fewer dimensions, or a view of an array."""
        groups = self._groups(read.index, read.value, behind)
        if len(groups) == len(read.index):
            return read.value
        if read.value in self.stored:
            return self.stored[read.value]
        if isinstance(self.shaped.nodes[read.value], Assignment):
            return read.value
        tensor = self.new.tensors[read.value]
        dims = tuple(self._long(node, tensor.dims, read.index, group, runs) for group in groups)
        if (read.value, groups, dims) not in self.views:
            view = self.new.view(read.value, tensor.dims, groups, node)
            self.views[read.value, groups, dims] = self.new.add(view, read.value, dims, "flat")
        return self.views[read.value, groups, dims]

    def _long(
        self,
        node: Assignment,
        dims: Sequence[int],
        index: Sequence[Affine],
        group: tuple[int, ...],
        runs: dict[int, list[int]],
    ) -> int:
        """The size of a group of dimensions."""
        walked = self._walked(index, dims, group)
        axis = index[walked].axis()
        run = [] if axis is None else runs.get(axis, [])
        return self._size(node, run) if 1 < len(run) else dims[walked]

    def _store(self, value: ValueId, node: Assignment, changed: Assignment, groups: Groups) -> None:
        tensor = self.new.tensors[value]
        dims = tuple(
            tensor.dims[self._walked(node.target, tensor.dims, group)]
            if (axis := index.axis()) is None
            else changed.sizes[axis]
            for index, group in zip(changed.target, groups, strict=True)
        )
        if value not in self.arrays:
            self.new.tensors[value] = replace(tensor, dims=dims, order=())
            return
        self.stored[value] = self.new.add(changed, value, dims, "flat")
        view = self.new.view(self.stored[value], tensor.dims, groups, node)
        self.new.nodes[value] = replace(view, source=view.target, target=view.source)


def _run(axis: int, behind: dict[int, int]) -> list[int]:
    run = [axis]
    while run[-1] in behind:
        run.append(behind[run[-1]])
    return run


def _name(names: Iterator[str]) -> str:
    """The name of what is several: of single letters side by side, of longer names with a line between."""
    words = list(names)
    return ("" if all(len(word) == 1 for word in words) else "_").join(words)
