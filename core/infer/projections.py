"""Projections: which loops an operation has, and how they index its result and its operands.

Every operation gets loops of its own, from solved shapes: two axes share a loop only where this operation makes them
one. An axis of size 1 is at index 0 and has no loop. Where an operand has fewer axes than the result, it is repeated
along the others.

A concatenation is several projections, one per choice of a part of each concatenated axis; so are a stack and an
interleaving, one per operand. An operand whose part is not chosen is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import assert_never

from ilang.core.diagnostic import ShapeError
from ilang.core.infer.operations import BATCH, INPUT, OUTPUT, Inferred, Shape
from ilang.core.ir import spec as notation
from ilang.core.ir.affine import Affine
from ilang.core.ir.operation import (
    Compose,
    Einsum,
    Interleave,
    Operation,
    Pointwise,
    Slice,
    Stack,
    Transpose,
)
from ilang.core.ir.rows import KINDS, MEMORY_ORDER, Known, Row
from ilang.core.names import Names
from ilang.core.record import record

Index = tuple[Affine, ...]
Terms = tuple[tuple[int, int], ...]


@record
class Loop:
    """A loop of an operation: its name and its extent."""

    name: str
    extent: int


@record
class Projection:
    """Loops, the index of the result and those of the operands that are read, in memory order.

    ``beyond`` has the operands whose index may leave them; ``part`` tells apart projections that write different
    parts of the result.
    """

    loops: tuple[Loop, ...]
    target: Index
    reads: tuple[tuple[int, Index], ...]
    beyond: frozenset[int]
    part: tuple[str, ...]

    def is_injective(self) -> bool:
        """Whether no element of the result is written twice."""
        known: set[int] = set()
        rest = [index for index in self.target if index.terms]
        found = True
        while found:
            found = False
            for index in rest:
                free = [(abs(c), axis) for c, axis in index.terms if axis not in known]
                if free and self._is_radix(free):
                    known |= {axis for _, axis in free}
                    found = True
        return len(known) == len(self.loops)

    def _is_radix(self, terms: Sequence[tuple[int, int]]) -> bool:
        """Whether a sum of terms has one value per choice of its loops."""
        reach = 0
        for coefficient, axis in sorted(terms):
            if coefficient <= reach:
                return False
            reach += coefficient * (self.loops[axis].extent - 1)
        return True

    def is_surjective(self, sizes: Sequence[int]) -> bool:
        """Whether every element of the result, of these sizes, is written."""
        seen: set[int] = set()
        for index, size in zip(self.target, sizes, strict=True):
            reach = 1
            for coefficient, axis in sorted(index.terms):
                if axis in seen or not 0 < coefficient <= reach:
                    return False
                seen.add(axis)
                reach += coefficient * (self.loops[axis].extent - 1)
            if index.offset or reach < size:
                return False
        return True


def sizes_of(shape: Shape) -> tuple[int, ...]:
    """The extents of a tensor in memory order."""
    return tuple(
        axis.size for kind in MEMORY_ORDER for axis in shape[kind].axes() if isinstance(axis, Known)
    )


def project(inferred: Inferred, value: int) -> list[Projection]:
    """The projections of the operation that computes ``value``."""
    node = inferred.graph.nodes[value]
    assert isinstance(node, Operation)
    shape = inferred.shapes[value]
    operands = [inferred.shapes[operand] for operand in node.operands]
    match node.logic:
        case Pointwise():
            maker = _Maker()
            target = maker.whole(shape)
            reads = [_stored([maker.aligned(target[k], x[k]) for k in range(3)]) for x in operands]
            return [maker.done(_stored(target), reads)]
        case Compose():
            return [_compose(shape, operands[0], operands[1])]
        case Transpose():
            maker = _Maker()
            target = maker.whole(shape)
            batch, inner, output = operands[0]
            rows = [
                maker.aligned(target[BATCH], batch),
                maker.aligned(target[OUTPUT], inner),
                maker.aligned(target[INPUT], output),
            ]
            return [maker.done(_stored(target), [_stored(rows)])]
        case Slice():
            maker = _Maker()
            target = maker.whole(shape)
            rows = list(target)
            rows[BATCH] = [Affine((), node.logic.position), *target[BATCH]]
            return [maker.done(_stored(target), [_stored(rows)])]
        case Einsum():
            return list(_Specified(inferred, value, node.logic.spec, [*operands, shape]).run())
        case Stack():
            return [_stacked(node.logic, operands[n], n) for n in range(len(operands))]
        case Interleave():
            return [_interleaved(operands[n], n) for n in range(2)]
        case _:
            assert_never(node.logic)


def _stored(rows: Sequence[Sequence[Affine]]) -> Index:
    """The indices of three rows in memory order."""
    return tuple(index for kind in MEMORY_ORDER for index in rows[kind])


def _compose(c: Shape, a: Shape, b: Shape) -> Projection:
    maker = _Maker()
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


def _stacked(logic: Stack, operand: Shape, number: int) -> Projection:
    maker = _Maker()
    rows = maker.whole(operand)
    target = list(rows)
    target[logic.kind] = [Affine((), number), *rows[logic.kind]]
    return maker.done(_stored(target), [_stored(rows)], number=number)


def _interleaved(operand: Shape, number: int) -> Projection:
    maker = _Maker()
    rows = maker.whole(operand)
    target = list(rows)
    *before, last = rows[OUTPUT]
    target[OUTPUT] = [*before, Affine(tuple((2 * c, axis) for c, axis in last.terms), number)]
    return maker.done(_stored(target), [_stored(rows)], number=number)


class _Maker:
    """The loops of one projection under construction."""

    def __init__(self) -> None:
        self.loops: list[Loop] = []
        self.names = Names()

    def loop(self, name: str, extent: int) -> Affine:
        """The index that walks a new loop; that of an axis of size 1 is 0."""
        if extent == 1:
            return Affine(())
        self.loops.append(Loop(self.names.fresh(name), extent))
        return Affine(((1, len(self.loops) - 1),))

    def row(self, row: Row, name: str) -> list[Affine]:
        """A loop per axis of a solved row."""
        axes = [axis for axis in row.axes() if isinstance(axis, Known)]
        return [self.loop(f"{name}{n}", axis.size) for n, axis in enumerate(axes)]

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


class _Build(_Maker):
    """The loops of one choice of parts of a specification, and the operands that its windows may leave."""

    def __init__(self, chosen: set[str]) -> None:
        super().__init__()
        self.chosen = chosen
        self.known: dict[str, Affine] = {}
        self.shape = 0  # whose index is being made
        self.beyond: set[int] = set()


class _Specified:
    """The projections of an einsum specification."""

    def __init__(
        self, inferred: Inferred, value: int, spec: notation.Spec, shapes: Sequence[Shape]
    ) -> None:
        self.inferred = inferred
        self.value = value
        self.spec = spec
        self.shapes = shapes
        self.joined = [
            axis for s in spec.shapes() for axis in s.axes() if isinstance(axis, notation.Joined)
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
                yield self._one(chosen, idle)

    @staticmethod
    def _mentions(shape: notation.ShapeSpec, idle: set[str]) -> bool:
        """Whether a shape has an axis whose part is not chosen."""
        return any(
            (isinstance(axis, notation.Label) and axis.name in idle)
            or (isinstance(axis, notation.Window) and {axis.over, axis.kernel} & idle)
            or (isinstance(axis, notation.Joined) and set(axis.parts) <= idle)
            for axis in shape.axes()
        )

    def _one(self, chosen: set[str], idle: set[str]) -> Projection:
        build = _Build(chosen)

        def index(number: int) -> Index:
            shape, tensor = self.spec.shapes()[number], self.shapes[number]
            build.shape = number
            rows = []
            for kind, (row, its) in enumerate(zip(shape.rows, tensor, strict=True)):
                sizes = [axis.size for axis in its.axes() if isinstance(axis, Known)]
                first, last = len(row.leading), len(sizes) - len(row.trailing)
                outer = [*zip(row.leading, sizes[:first], strict=True)]
                inner = [*zip(row.trailing, sizes[last:], strict=True)]
                found = [self._axis(build, axis, size) for axis, size in outer]
                for n, size in enumerate(sizes[first:last]):
                    found.append(self._row_loop(build, row.variable or KINDS[kind], n, size))
                found += [self._axis(build, axis, size) for axis, size in inner]
                rows.append(found)
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

    def _label(self, build: _Build, name: str) -> Affine:
        if name not in build.known:
            build.known[name] = build.loop(name, self.inferred.size(self.value, name))
        return build.known[name]

    @staticmethod
    def _row_loop(build: _Build, variable: str, place: int, size: int) -> Affine:
        key = f"{variable} {place}"
        if key not in build.known:
            build.known[key] = build.loop(f"{variable.strip('.')}{place}", size)
        return build.known[key]

    def _axis(self, build: _Build, axis: notation.Axis, size: int) -> Affine:
        match axis:
            case notation.Label():
                return self._label(build, axis.name)
            case notation.Blank():
                return build.loop("blank", size)
            case notation.Fixed():
                return Affine((), axis.position)
            case notation.Window():
                return self._window(build, axis, size)
            case notation.Joined():
                return self._part(build, axis)
            case _:
                assert_never(axis)

    def _part(self, build: _Build, axis: notation.Joined) -> Affine:
        """The chosen part of a concatenated axis, after those before it."""
        offset = 0
        for name in axis.parts:
            if name in build.chosen:
                return _sum([(1, self._label(build, name))], offset)
            offset += self.inferred.size(self.value, name)
        raise AssertionError("no part of a concatenation is chosen")

    def _window(self, build: _Build, axis: notation.Window, size: int) -> Affine:
        parts = [(axis.stride, self._label(build, axis.over))]
        offset = axis.offset
        if axis.kernel is not None:
            parts.append((axis.dilation, self._label(build, axis.kernel)))
            if axis.padded:
                span = axis.dilation * (self.inferred.size(self.value, axis.kernel) - 1) + 1
                offset -= span // 2
        index = _sum(parts, offset)
        most = index.offset + sum(c * (build.loops[loop].extent - 1) for c, loop in index.terms)
        if index.offset < 0 or most >= size:
            if build.shape == len(self.spec.operands):
                message = f"`{axis.span.text()}` would write outside the result"
                help_line = "on the result side a window has no padding and no offset past the end"
                raise ShapeError("E0522", message, axis.span, help_line)
            build.beyond.add(build.shape)
        return index


def _sum(parts: Sequence[tuple[int, Affine]], offset: int) -> Affine:
    terms: dict[int, int] = {}
    for factor, part in parts:
        for coefficient, loop in part.terms:
            terms[loop] = terms.get(loop, 0) + factor * coefficient
    return Affine(tuple((c, loop) for loop, c in terms.items()), offset)
