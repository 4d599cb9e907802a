"""Arrays of windows that reach outside: stored once, with what counts for nothing around them.

Example, the largest element of each window of three, of 30 elements:
    in:   out[x] = max of in0[x+u-1] over u of 3, where 0 <= x+u-1 < 30
    out:  in0_padded[x] = in0[x-1] if 0 <= x-1 < 30 else -inf;  out[x] = max of in0_padded[x+u] over u of 3

A condition on each element that a window reads would stand inside of loops that vectors are made of. Each element is
read several times, and is copied once. A contraction copies what its tiles read, with what is outside, by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ilang.core.calculus.affine import Affine, Within, axis_index, variables_of
from ilang.core.dtype import BYTES
from ilang.core.ir.graph import Axis
from ilang.core.ir.ids import ValueId
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.scalar import Apply, Constant, Operand, Position, Scalar, neutral
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.record import replace
from ilang.core.transform.extended import ExtendedProgram

Range = tuple[int, int]
"""The first position of an index, and how many there are."""


def padded_windows(shaped: Shaped, extents: Extents, machine: Machine) -> Shaped:
    """The program whose windows along memory stay inside of what they read; itself where all do.

    Args:
        shaped: the program.
        extents: which of its sizes are known.
        machine: what it is for; arrays that no cache keeps from the copy to the windows are not copied.
    """
    guarded = (n for n in shaped.nodes if isinstance(n, Assignment))
    if not any(node.guards or any(read.guards for read in node.reads) for node in guarded):
        return shaped
    return _PaddedWindows(shaped, extents, machine).run()


class _PaddedWindows:
    """A program whose arrays of windows become values of their own, each once for the same positions."""

    def __init__(self, shaped: Shaped, extents: Extents, machine: Machine) -> None:
        self.shaped = shaped
        self.extents = extents
        self.machine = machine
        self.new = ExtendedProgram(shaped)
        self.padded: dict[tuple[ValueId, tuple[Range, ...], Constant], ValueId] = {}
        self.readers: dict[ValueId, list[Assignment]] = {}
        for node in shaped.nodes:
            if isinstance(node, Assignment):
                for value in node.values():
                    self.readers.setdefault(value, []).append(node)

    def run(self) -> Shaped:
        """Every reduction of windows, and every product that reductions sum, in turn."""
        for value, node in self.shaped.numbered():
            if not isinstance(node, Assignment) or node.base is not None or node.schedule:
                continue
            if node.acc in ("+", ">", "<") or self._is_summed(value, node):
                self.new.nodes[value] = self._inside(node)
        is_same = len(self.new.nodes) == len(self.shaped.nodes)
        return self.shaped if is_same else self.new.result()

    def _is_summed(self, value: ValueId, node: Assignment) -> bool:
        """Whether sums alone read an assignment, which is then computed in their loops."""
        readers = self.readers.get(value, ())
        is_read = bool(readers) and value not in self.shaped.outputs
        return node.acc is None and is_read and all(reader.acc == "+" for reader in readers)

    def _inside(self, node: Assignment) -> Assignment:
        if node.guards:
            if len(node.reads) != 1 or node.reads[0].guards or node.acc is None:
                return node
            (read,), dtype = node.reads, node.scalar.dtype or ""
            inside = self._moved(node, read, node.guards, neutral(node.acc, dtype))
            return node if inside is read else replace(node, reads=(inside,), guards=())
        reads = [
            self._moved(node, read, read.guards, Constant(0, self._dtype(read)))
            for read in node.reads
        ]
        return replace(node, reads=tuple(reads))

    def _dtype(self, read: Read) -> str:
        return self.shaped.tensors[read.value].dtype

    def _moved(
        self, node: Assignment, read: Read, guards: Sequence[Within], outside: Constant
    ) -> Read:
        """A read of a padded array in place of one behind guards, where these say that windows are inside.

        Windows move along memory, and nothing else walks an axis that they do not.
        """
        lengths = [self.extents.fixed(size) for size in node.sizes]
        dims = self.shaped.tensors[read.value].dims
        indices = {Within(part, dim) for part, dim in zip(read.index, dims, strict=True)}
        walked = variables_of(read.index)
        is_padding = (
            bool(guards)
            and {*guards} <= indices
            and any(guard.index == read.index[-1] for guard in guards)
            and all(axis in walked for axis, length in enumerate(lengths) if length != 1)
            and not any(part.looked for part in read.index)
        )
        if not is_padding or self._dtype(read) != outside.dtype:
            return read
        ranges = [self._range(part, lengths) for part in read.index]
        moving = [[lengths[axis] or 0 for axis in guard.index.axes()] for guard in guards]
        is_again = 2 < prod(min(each) for each in moving if 1 < len(each))  # windows of an element
        if None in ranges or not is_again:
            return read
        known = tuple(each for each in ranges if each is not None)
        guarded = {guard.index for guard in guards}
        outermost = next(n for n, part in enumerate(read.index) if part in guarded)
        copied = prod(count for _, count in known[outermost:]) * BYTES[outside.dtype or ""]
        if self.machine.memory.kept_bytes < copied:
            return read
        index = tuple(
            replace(part, offset=part.offset - first + self._offset(part), sizes=())
            if part in guarded
            else part
            for part, (first, _) in zip(read.index, known, strict=True)
        )
        places = tuple(
            each if part in guarded else (0, self.extents.fixed(dim) or 0)
            for part, each, dim in zip(read.index, known, dims, strict=True)
        )
        return Read(self._padded(node, read.value, places, outside), index)

    def _offset(self, part: Affine) -> int:
        """The sizes that stand in an index, as a number."""
        return sum(c * (self.extents.fixed(size) or 0) for c, size in part.sizes)

    def _range(self, part: Affine, lengths: Sequence[int | None]) -> Range | None:
        """The positions of an index; None where an extent is not known, or is 0."""
        sizes = [self.extents.fixed(size) for _, size in part.sizes]
        steps = [(c, lengths[axis]) for c, axis in part.steps()]
        if None in sizes or any(not length for _, length in steps):
            return None
        ends = [c * ((length or 1) - 1) for c, length in steps]
        first = part.offset + self._offset(part) + sum(min(end, 0) for end in ends)
        return first, 1 + sum(map(abs, ends))

    def _padded(
        self, node: Assignment, value: ValueId, places: tuple[Range, ...], outside: Constant
    ) -> ValueId:
        """An array at some positions of each dimension, with a number where it has none."""
        key = value, places, outside
        if key not in self.padded:
            self.padded[key] = self._stored(node, value, places, outside)
        return self.padded[key]

    def _stored(
        self, node: Assignment, value: ValueId, places: tuple[Range, ...], outside: Constant
    ) -> ValueId:
        """The array: elements at their places in one that is filled before, or read with 0 around them."""
        dims = self.shaped.tensors[value].dims
        whole = [
            place == (0, self.extents.fixed(dim)) for dim, place in zip(dims, places, strict=True)
        ]
        sizes = tuple(
            dim if is_whole else self.new.add_size(self.shaped.sizes[dim].name, place[1])
            for dim, place, is_whole in zip(dims, places, whole, strict=True)
        )
        axes = tuple(Axis(self.new.sizes[size].name, None, node.span) for size in sizes)
        plain = tuple(axis_index(axis) for axis in range(len(dims)))
        index = tuple(
            part if is_whole else replace(part + first, window=True)
            for part, (first, _), is_whole in zip(plain, places, whole, strict=True)
        )
        moved = [(n, part) for n, part in enumerate(index) if not whole[n]]
        read = Read(value, index, tuple(Within(part, dims[n]) for n, part in moved))
        scalar: Scalar = Operand(0, outside.dtype)
        if outside.value:
            for n, part in moved:
                scalar = self._chosen(part, dims[n], scalar, outside)
        padded = Assignment(axes, sizes, plain, (read,), scalar, None, None, node.text, node.span)
        return self.new.add(padded, value, sizes, "padded")

    def _chosen(self, part: Affine, size: int, inside: Scalar, outside: Scalar) -> Scalar:
        """A scalar where an index is inside a dimension, else another one."""
        place = Position(part, "i64")
        ends = ("gte", 0), ("lt", self.extents.fixed(size) or 0)
        for name, end in ends:
            test = Apply(name, (place, Constant(end, "i64")), "bool")
            inside = Apply("where", (test, inside, outside), outside.dtype)
        return inside
