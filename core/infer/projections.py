"""Projections: which loops an operation has, and how they index its result and its operands.

Every operation gets loops of its own, from solved shapes: two axes share a loop only where this operation makes them
one. An axis of size 1 is at index 0 and has no loop, but where a schedule names it. Where an operand has fewer axes
than the result, it is repeated along the others.

A concatenation is several projections, one per choice of a part of each concatenated axis; so are a stack and an
interleaving, one per operand. An operand whose part is not chosen is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import assert_never

from ilang.core.calculus.affine import Affine, variables_of
from ilang.core.infer.counting import RowAxis
from ilang.core.infer.inferred import Inferred
from ilang.core.infer.operations import BATCH, INPUT, OUTPUT
from ilang.core.infer.sizes import Sizes
from ilang.core.ir import spec as notation
from ilang.core.ir.operation import Operation, Slice, Stack
from ilang.core.ir.rows import KINDS, MEMORY_ORDER, Known, Row, Shape, extent_of, known_axes
from ilang.core.ir.syntax import Schedule
from ilang.core.names import Names
from ilang.core.record import record, replace
from ilang.core.source import Span

Index = tuple[Affine, ...]
Terms = tuple[tuple[int, int], ...]


@record
class OperationLoop:
    """A loop of an operation: its name, its extent where it is known, and else the number of its run-time size."""

    name: str
    extent: int | None
    size: int | None = None


@record
class Projection:
    """Loops, the index of the result and those of the operands that are read, in memory order.

    ``beyond`` has the operands whose index may leave them, and the number after theirs where that of the result may;
    ``part`` tells apart projections that write different parts of the result.
    """

    loops: tuple[OperationLoop, ...]
    target: Index
    reads: tuple[tuple[int, Index], ...]
    beyond: frozenset[int]
    part: tuple[str, ...]

    def reduces(self) -> bool:
        """Whether several iterations meet in one element of the result."""
        return len(variables_of(self.target)) < len(self.loops)

    def is_injective(self) -> bool:
        """Whether no element of the result is written twice."""
        known: set[int] = set()
        rest = [index for index in self.target if index.variables()]
        injective = True
        while injective:
            injective = False
            for index in rest:
                free = [(abs(c), axis) for c, axis in index.steps() if axis not in known]
                if free and self._is_radix(free):
                    known |= {axis for _, axis in free}
                    injective = True
        return len(known) == len(self.loops)

    def _is_radix(self, terms: Sequence[tuple[int, int]]) -> bool:
        """Whether a sum of terms has one value per choice of its loops."""
        reach: int | None = 0
        for coefficient, axis in sorted(terms):
            extent = self.loops[axis].extent
            if reach is None or coefficient <= reach:
                return False
            reach = None if extent is None else reach + coefficient * (extent - 1)
        return True

    def is_surjective(self, sizes: Sequence[int | None]) -> bool:
        """Whether every element of the result is written; ``sizes`` are its extents, None where one comes at run time.

        An element counts as not written where that depends on run-time extents.
        """
        seen: set[int] = set()
        for index, size in zip(self.target, sizes, strict=True):
            whole, reach = index.axis(), 1
            if whole is not None and whole not in seen:
                seen.add(whole)
                continue
            for coefficient, axis in sorted(index.steps()):
                extent = self.loops[axis].extent
                if extent is None or axis in seen or not 0 < coefficient <= reach:
                    return False
                seen.add(axis)
                reach += coefficient * (extent - 1)
            if index.offset or size is None or reach < size:
                return False
        return True


def sizes_of(shape: Shape) -> tuple[int, ...]:
    """The extents of a tensor in memory order, where all of them are numbers."""
    return tuple(extent_of(axis) for kind in MEMORY_ORDER for axis in known_axes(shape[kind]))


def project(inferred: Inferred, value: int, sizes: Sizes) -> list[Projection]:
    """The projections of the operation that computes ``value``; its loops have numbers of ``sizes``."""
    node = inferred.graph.nodes[value]
    assert isinstance(node, Operation)
    shape = inferred.shapes[value]
    operands = [inferred.shapes[operand] for operand in node.operands]
    match node.logic:
        case "pointwise":
            maker = _Maker(sizes)
            target = maker.whole(shape)
            reads = [_stored([maker.aligned(target[k], x[k]) for k in range(3)]) for x in operands]
            return [maker.done(_stored(target), reads)]
        case "compose":
            return [_compose(shape, operands[0], operands[1], sizes)]
        case "transpose":
            maker = _Maker(sizes)
            target = maker.whole(shape)
            batch, inner, output = operands[0]
            rows = [
                maker.aligned(target[BATCH], batch),
                maker.aligned(target[OUTPUT], inner),
                maker.aligned(target[INPUT], output),
            ]
            return [maker.done(_stored(target), [_stored(rows)])]
        case Slice():
            maker = _Maker(sizes)
            target = maker.whole(shape)
            rows = list(target)
            rows[BATCH] = [Affine((), node.logic.position or 0), *target[BATCH]]
            position: list[Index] = [() for _ in node.operands[1:]]
            return [maker.done(_stored(target), [_stored(rows), *position])]
        case notation.Spec():
            return _specified(inferred, value, sizes, node.schedule)
        case Stack():
            return [_stacked(node.logic, operands[n], n, sizes) for n in range(len(operands))]
        case "interleave":
            return [_interleaved(operands[n], n, sizes) for n in range(2)]
        case _:
            assert_never(node.logic)


def _specified(
    inferred: Inferred, value: int, sizes: Sizes, schedule: Schedule | None
) -> list[Projection]:
    """The projections of a specification, with a loop for each axis of size 1 that its schedule names."""

    def projections(is_loop: Callable[[str], bool]) -> list[Projection]:
        return list(_Specified(inferred, value, sizes, is_loop).run())

    if schedule is None:
        return projections(lambda _: False)
    from ilang.core.ir.schedule import named_axes

    axes = {loop.name for each in projections(lambda _: True) for loop in each.loops}
    return projections(named_axes(schedule, axes).__contains__)


def _stored(rows: Sequence[Sequence[Affine]]) -> Index:
    """The indices of three rows in memory order."""
    return tuple(index for kind in MEMORY_ORDER for index in rows[kind])


def _compose(c: Shape, a: Shape, b: Shape, sizes: Sizes) -> Projection:
    maker = _Maker(sizes)
    target = maker.whole(c)
    summed = maker.row(a[INPUT], "k")
    left = [
        maker.aligned(target[BATCH], a[BATCH]),
        summed,
        maker.aligned(target[OUTPUT], a[OUTPUT]),
    ]
    right = [
        maker.aligned(target[BATCH], b[BATCH]),
        maker.aligned(target[INPUT], b[INPUT]),
        maker.aligned(summed, b[OUTPUT]),
    ]
    return maker.done(_stored(target), [_stored(left), _stored(right)])


def _stacked(logic: Stack, operand: Shape, number: int, sizes: Sizes) -> Projection:
    maker = _Maker(sizes)
    rows = maker.whole(operand)
    target = list(rows)
    target[logic.kind] = [Affine((), number), *rows[logic.kind]]
    return maker.done(_stored(target), [_stored(rows)], number=number)


def _interleaved(operand: Shape, number: int, sizes: Sizes) -> Projection:
    maker = _Maker(sizes)
    rows = maker.whole(operand)
    target = list(rows)
    *before, last = rows[OUTPUT]
    target[OUTPUT] = [*before, 2 * (last - last.offset) + number]
    return maker.done(_stored(target), [_stored(rows)], number=number)


class _Maker:
    def __init__(self, sizes: Sizes) -> None:
        self.loops: list[OperationLoop] = []
        self.names = Names()
        self.sizes = sizes

    def loop(self, name: str, axis: Known) -> Affine:
        """The index that walks a new loop; that of an axis of size 1 is 0."""
        if axis.size == 1:
            return Affine(())
        size = self.sizes.of(axis)
        self.loops.append(OperationLoop(self.names.fresh(name), self.sizes.fixed(size), size))
        return Affine(((1, len(self.loops) - 1),))

    def row(self, row: Row, name: str) -> list[Affine]:
        """A loop per axis of a solved row."""
        return [self.loop(f"{name}{n}", axis) for n, axis in enumerate(known_axes(row))]

    def whole(self, shape: Shape) -> list[list[Affine]]:
        """A loop per axis of a tensor."""
        return [self.row(row, name) for row, name in zip(shape, ("b", "i", "o"), strict=True)]

    @staticmethod
    def aligned(index: Sequence[Affine], operand: Row) -> list[Affine]:
        """The index of an operand's row: its axes are the outer ones of the result's row."""
        first, last = len(operand.leading), len(index) - len(operand.trailing)
        chosen = [*index[:first], *index[last:]]
        return [
            Affine(()) if isinstance(axis, Known) and axis.size == 1 else part
            for axis, part in zip(operand.axes(), chosen, strict=True)
        ]

    def done(self, target: Index, reads: Sequence[Index], number: int | None = None) -> Projection:
        """The projection; ``number`` where it reads one operand of several."""
        read = tuple(enumerate(reads)) if number is None else ((number, reads[0]),)
        part = () if number is None else (str(number),)
        return Projection(tuple(self.loops), target, read, frozenset(), part)


class _Build:
    """The loops of one choice of parts of a specification, and the operands that its windows may leave."""

    def __init__(self, chosen: set[str]) -> None:
        self.loops: list[OperationLoop] = []
        self.sizes: list[int] = []
        self.names = Names()
        self.chosen = chosen
        self.known: dict[str, Affine] = {}
        self.shape = 0  # whose index is being made
        self.beyond: set[int] = set()


class _Specified:
    """The projections of an einsum specification; an axis of size 1 is at index 0, or has a loop where ``is_loop``."""

    def __init__(
        self, inferred: Inferred, value: int, sizes: Sizes, is_loop: Callable[[str], bool]
    ) -> None:
        node = inferred.graph.nodes[value]
        assert isinstance(node, Operation)
        assert isinstance(node.logic, notation.Spec)
        self.inferred = inferred
        self.value = value
        self.sizes = sizes
        self.is_loop = is_loop
        self.spec = node.logic
        self.shapes = [
            [[sizes.of(axis) for axis in known_axes(row)] for row in inferred.viewed(value, n)]
            for n in range(len(node.operands) + 1)
        ]
        """The sizes of the rows of each operand, and of the result."""
        self.joined = [
            axis
            for shape in self.spec.shapes()
            for axis in shape.axes()
            if isinstance(axis, notation.Joined)
        ]

    def run(self) -> Iterator[Projection]:
        """One projection per choice of parts that agree with each other."""
        parts = {name for axis in self.joined for name in axis.parts}
        for choice in dict.fromkeys(product(*(axis.parts for axis in self.joined))):
            chosen, idle = set(choice), parts - set(choice)
            agrees = all(
                not chosen & (set(axis.parts) - {part})
                for axis, part in zip(self.joined, choice, strict=True)
            )
            if agrees and not self._mentions(self.spec.result, idle):
                one = self._one(chosen, idle)
                if one.reads:
                    yield one

    @staticmethod
    def _mentions(shape: notation.ShapeSpec, idle: set[str]) -> bool:
        return any(
            (isinstance(axis, notation.AxisLabel) and axis.name in idle)
            or (isinstance(axis, notation.Window) and {axis.over, axis.kernel} & idle)
            or (isinstance(axis, notation.Joined) and set(axis.parts) <= idle)
            for axis in shape.axes()
        )

    def _one(self, chosen: set[str], idle: set[str]) -> Projection:
        """The projection of one choice of parts of concatenations; operands with ``idle`` parts are not read."""
        build = _Build(chosen)

        def index(number: int) -> Index:
            shape, tensor = self.spec.shapes()[number], self.shapes[number]
            build.shape = number
            rows: list[list[Affine]] = []
            for kind, (row, sizes) in enumerate(zip(shape.rows, tensor, strict=True)):
                if not sizes:
                    rows.append([])
                    continue
                first, last = len(row.leading), len(sizes) - len(row.trailing)
                outer = [*zip(row.leading, sizes[:first], strict=True)]
                inner = [*zip(row.trailing, sizes[last:], strict=True)]
                axes = [self._axis(build, axis, size) for axis, size in outer]
                for n, size in enumerate(sizes[first:last]):
                    axes.append(
                        self._row_loop(build, RowAxis(row.variable or f"...{KINDS[kind]}", n), size)
                    )
                axes += [self._axis(build, axis, size) for axis, size in inner]
                rows.append(axes)
            return _stored(rows)

        target = index(len(self.spec.operands))
        reads = tuple(
            (n, index(n))
            for n, shape in enumerate(self.spec.operands)
            if not self._mentions(shape, idle)
        )
        part = tuple(sorted(chosen & set(self._result_parts())))
        return Projection(tuple(build.loops), target, reads, frozenset(build.beyond), part)

    def _result_parts(self) -> Iterator[str]:
        for axis in self.spec.result.axes():
            if isinstance(axis, notation.Joined):
                yield from axis.parts

    def _loop(self, build: _Build, name: str, size: int) -> Affine:
        """The index that walks a new loop over a size; 0 where there is one iteration, which needs none."""
        name, extent = build.names.fresh(name), self.sizes.fixed(size)
        if extent == 1 and not self.is_loop(name):
            return Affine(())
        build.loops.append(OperationLoop(name, extent, size))
        build.sizes.append(size)
        return Affine(((1, len(build.loops) - 1),))

    def _size(self, label: str) -> int:
        return self.sizes.of(self.inferred.label(self.value, label))

    def _shift(self, size: int) -> Affine:
        """The constant index that is a size."""
        extent = self.sizes.fixed(size)
        return Affine((), sizes=((1, size),)) if extent is None else Affine((), extent)

    def _half(self, dilation: int, size: int, span: Span) -> Affine:
        """The constant index that is half of what a window of so many steps spans, rounded down."""
        extent = self.sizes.fixed(size)
        if extent is None:
            return self._shift(self.sizes.half(dilation, size, span))
        return Affine((), (dilation * (extent - 1) + 1) // 2)

    def _label(self, build: _Build, name: str) -> Affine:
        if name not in build.known:
            build.known[name] = self._loop(build, name, self._size(name))
        return build.known[name]

    def _row_loop(self, build: _Build, axis: RowAxis, size: int) -> Affine:
        key = f"{axis.variable} {axis.place}"
        if key not in build.known:
            build.known[key] = self._loop(build, axis.name(), size)
        return build.known[key]

    def _axis(self, build: _Build, axis: notation.Axis, size: int) -> Affine:
        match axis:
            case notation.AxisLabel():
                return self._label(build, axis.name)
            case notation.Blank():
                return self._loop(build, "blank", size)
            case notation.Fixed():
                return Affine((), axis.position)
            case notation.Window():
                return self._window(build, axis, size)
            case notation.Joined():
                return self._partial(build, self._part(build, axis), size)
            case _:
                assert_never(axis)

    def _partial(self, build: _Build, index: Affine, size: int) -> Affine:
        """The index, marked as a window where it is one loop that need not walk the whole dimension."""
        axis = index.axis()
        if axis is None or build.sizes[axis] == size:
            return index
        return replace(index, window=True)

    def _part(self, build: _Build, axis: notation.Joined) -> Affine:
        """The chosen part of a concatenated axis, after those before it."""
        before: list[tuple[int, Affine]] = []
        for name in axis.parts:
            if name in build.chosen:
                return _sum([(1, self._label(build, name)), *before], 0)
            before.append((1, self._shift(self._size(name))))
        raise AssertionError("no part of a concatenation is chosen")

    def _window(self, build: _Build, axis: notation.Window, size: int) -> Affine:
        parts = [(axis.stride, self._label(build, axis.over))]
        if axis.kernel is not None:
            parts.append((axis.dilation, self._label(build, axis.kernel)))
            if axis.padded:
                kernel = self._size(axis.kernel)
                parts.append((-1, self._half(axis.dilation, kernel, axis.span)))
        index = _sum(parts, axis.offset)
        if self._leaves(build, axis, index, size):
            build.beyond.add(build.shape)
        return self._partial(build, index, size)

    def _leaves(self, build: _Build, axis: notation.Window, index: Affine, size: int) -> bool:
        """Whether a window may leave its dimension, which has the size that the window demands."""
        if not axis.padded or axis.kernel is None:
            return not 0 <= axis.offset <= (0 if axis.kernel else axis.stride - 1)
        last = index.maximum({loop: build.loops[loop].extent for loop in index.variables()})
        whole = self.sizes.fixed(size)
        if index.sizes or whole is None or last is None:
            return True
        return index.offset < 0 or whole <= last.offset


def _sum(parts: Sequence[tuple[int, Affine]], offset: int) -> Affine:
    return sum((factor * part for factor, part in parts), start=Affine((), offset))
