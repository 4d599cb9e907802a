"""Kernels that do the same on other arrays become one, which is called again.

Example, of ``-i~i | -i~i``:
    in:   k0: for i: out[i] = -in0[i];  k1: for i: out2[i] = -in1[i]
    out:  k0: for i: out[i] = -in0[i];  calls k0, and k0 with in0: in1, out: out2

Layers of a network have the same kernels. All that comes after, the compiler of the target too, has one of each then.

Two kernels do the same where one becomes the other when buffers, and extents that are numbers, are numbered in the
order in which it names them. Names of variables and of the kernel make no difference: the kernel that stays has the
names and the comments of the first.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import assert_never

from ilang.core.calculus.affine import Affine, Within
from ilang.core.calculus.extent import Extent
from ilang.core.ir import kernel as ir
from ilang.core.ir import scalar as scalars
from ilang.core.ir.cpu import Tile
from ilang.core.ir.ids import BufferId
from ilang.core.ir.shaped import Size
from ilang.core.record import replace


def without_duplicates(
    kernels: Mapping[int, ir.Kernel], buffers: Sequence[ir.Buffer], sizes: Sequence[Size]
) -> tuple[tuple[ir.Kernel, ...], tuple[ir.Call, ...]]:
    """The kernels that differ, and a call for each kernel: of itself, or of the first one that does the same.

    Args:
        kernels: as lowering gives them, by the number of their fusion group.
        buffers: those of the program.
        sizes: the same.
    """
    kept: list[ir.Kernel] = []
    calls: list[ir.Call] = []
    first: dict[Hashable, tuple[int, tuple[BufferId, ...]]] = {}
    for group, kernel in kernels.items():
        form = _Form(buffers, sizes)
        number, called = first.setdefault(form.of(kernel), (len(kept), tuple(form.buffers)))
        if number == len(kept):
            kept.append(kernel)
        arrays = zip(called, form.buffers, strict=True)
        calls.append(
            ir.Call(
                number, group, tuple((a, b) for a, b in arrays if a != b and not buffers[a].private)
            )
        )
    return tuple(kept), tuple(calls)


class _Form:
    """A kernel as a value that is the same for all that do the same work; ``buffers`` are its own, in this order."""

    def __init__(self, described: Sequence[ir.Buffer], sizes: Sequence[Size]) -> None:
        self.described = described
        self.extents = sizes
        self.buffers: dict[BufferId, int] = {}
        self.sizes: dict[int, int] = {}
        self.memory: list[Hashable] = []

    def of(self, kernel: ir.Kernel) -> Hashable:
        """The form of a kernel."""
        body = self._block(kernel.body)
        locals_ = tuple((local.lanes, local.wrapping, local.ordered) for local in kernel.locals)
        requests = tuple((request.asked, request.text) for request in kernel.requests)
        extents = tuple(self.extents[size].fixed for size in self.sizes)
        return (body, tuple(self.memory), extents, len(kernel.names), locals_, requests)

    def _buffer(self, number: BufferId) -> int:
        known = self.buffers.get(number)
        if known is None:
            known = self.buffers[number] = len(self.buffers)
            buffer = self.described[number]
            dims = tuple(map(self._size, buffer.dims))
            owner = None if buffer.owner is None else self._buffer(buffer.owner)
            plain = replace(buffer, name="", tensor="", dims=dims, owner=owner)
            self.memory.append((known, plain))
        return known

    def _size(self, number: int) -> Hashable:
        """An extent by the order in which it is named where it is a number; one of run time is no other."""
        if self.extents[number].fixed is None:
            return f"run time {number}"
        return self.sizes.setdefault(number, len(self.sizes))

    def _block(self, block: ir.Block) -> Hashable:
        return tuple(map(self._statement, block))

    def _statement(self, s: ir.Statement) -> Hashable:
        """A statement with other numbers; all else that it says stays, and tells it from others."""
        match s:
            case ir.For():
                begin, end = self._extent(s.begin), self._extent(s.end)
                return _as_tuple(s, begin=begin, end=end, body=self._block(s.body))
            case ir.If():
                within, body = self._conditions(s.within), self._block(s.body)
                return _as_tuple(s, within=within, body=body, otherwise=self._block(s.otherwise))
            case ir.Define() | ir.Change():
                return _as_tuple(s, value=self._scalar(s.value))
            case ir.Store():
                value, buffer = self._scalar(s.value), self._buffer(s.buffer)
                return _as_tuple(s, buffer=buffer, index=self._index(s.index), value=value)
            case Tile():
                blocks, body = self._block(s.blocks), self._block(s.body)
                buffer, start = self._buffer(s.buffer), self._scalar(s.start)
                return _as_tuple(s, buffer=buffer, start=start, blocks=blocks, body=body)
            case _:
                raise AssertionError("passes of a machine make all other statements")

    def _extent(self, extent: Extent) -> Hashable:
        number = self._size(extent.number) if extent.operation == "size" else extent.number
        index = None if extent.index is None else self._affine(extent.index)
        return extent.operation, number, index, *map(self._extent, extent.operands)

    def _conditions(self, within: Sequence[Within]) -> Hashable:
        return tuple(
            (self._affine(each.index), None if each.size is None else self._size(each.size))
            for each in within
        )

    def _index(self, index: Sequence[Affine]) -> Hashable:
        return tuple(map(self._affine, index))

    def _affine(self, part: Affine) -> Hashable:
        plain = (part.steps(), part.offset, part.window)
        if not part.sizes and not part.looked:
            return plain
        sizes = tuple((c, self._size(n)) for c, n in part.sizes)
        looked = tuple(
            (c, self._buffer(BufferId(each.source)), self._index(each.index), self._size(each.size))
            for c, each in part.looked
        )
        return (*plain, sizes, looked)

    def _scalar(self, scalar: scalars.Scalar) -> Hashable:
        match scalar:
            case scalars.Load():
                buffer = self._buffer(scalar.buffer)
                return _as_tuple(scalar, buffer=buffer, index=self._index(scalar.index))
            case scalars.Local():
                return scalar
            case scalars.Constant():  # -0.0 is 0 in Python, and no other constant
                return _as_tuple(scalar, value=repr(scalar.value))
            case scalars.Position():
                return _as_tuple(scalar, index=self._affine(scalar.index))
            case scalars.Convert():
                return _as_tuple(scalar, argument=self._scalar(scalar.argument))
            case scalars.Apply():
                return _as_tuple(scalar, arguments=tuple(map(self._scalar, scalar.arguments)))
            case scalars.Select():
                within = self._conditions(scalar.within)
                then, otherwise = self._scalar(scalar.then), self._scalar(scalar.otherwise)
                return _as_tuple(scalar, within=within, then=then, otherwise=otherwise)
            case scalars.Operand():
                raise AssertionError("lowering has loaded every operand")
            case _:
                assert_never(scalar)


def _as_tuple(part: ir.Statement | scalars.Scalar, **changes: Hashable) -> Hashable:
    """All that a statement or a scalar says, partly changed: a tuple, whose hash takes less time than a record's."""
    return (type(part), *(vars(part) | changes).values())
