"""Columns of short rows reduced several rows at a time: as many as are whole vectors are one row of a longer table.

Example, the largest element of each of the 3 columns of 1000 rows, of which 16 are three vectors:
    in:   out[c] = max in0[a,c] over a
    out:  in0_flat = in0 as a c -> (a c)
          out_rows[g] = max in0_flat[48r + g] over r, of 62;  out_whole[c] = max out_rows[3q + c] over q
          out_end[c] = max in0[992 + a,c] over a, of 8;       out[c] = max(out_whole[c], out_end[c])

Rows of fewer elements than a vector has lanes leave some of them idle, and lie side by side in memory. Arrays alone are
read so: a value that the program computes is computed where it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import TypeVar

from ilang.core.calculus.affine import Affine
from ilang.core.dtype import FLOATS
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Apply, Operand, Position, scalars_within
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.ops import OPS
from ilang.core.record import replace
from ilang.core.transform.extended import ExtendedProgram

T = TypeVar("T")
GAIN = 0.8
"""Steps by groups at most, for one without: of rows one by one, of groups by their length, and of rows at the end."""
END = 2
"""Steps that a row takes that is left over: it is read apart from all others."""
COMBINED = ("+", ">", "<")
"""Reductions whose results over some rows and over others may be combined."""


def grouped_rows(shaped: Shaped, machine: Machine) -> Shaped:
    """The program whose columns of short rows are reduced by groups of rows; itself where there are none."""
    program = _GroupedRows(shaped, machine)
    for value, node in shaped.numbered():
        if isinstance(node, Assignment):
            program.group(value, node)
    return shaped if len(program.new.nodes) == len(shaped.nodes) else program.new.result()


class _GroupedRows:
    """A program whose values keep their numbers, and new ones have the numbers after."""

    def __init__(self, shaped: Shaped, machine: Machine) -> None:
        self.shaped = shaped
        self.machine = machine
        self.new = ExtendedProgram(shaped)

    def group(self, value: ValueId, node: Assignment) -> None:
        """Reduce the rows of a value by groups, where they are short and there are enough of them."""
        axes = self._axes(node)
        if axes is None:
            return
        rows, columns = axes
        count, length = (self.new.sizes[node.sizes[axis]].fixed or 0 for axis in axes)
        lanes = self.machine.vector_lanes("f32")
        each = lanes // gcd(lanes, length)
        whole, left = divmod(count, each)
        taken = whole * each * length / lanes + each + END * left
        if not 1 < length < lanes or GAIN * count < taken:
            return
        one = self._grouped(value, node, rows, columns, each, whole)
        if not left:
            self.new.nodes[value] = one
            return
        sizes = _put(node.sizes, rows, self._size(node, rows, left))
        reads = tuple(
            replace(read, index=_put(read.index, -2, read.index[-2] + each * whole))
            for read in node.reads
        )
        other = replace(node, sizes=sizes, reads=reads)
        tensor = self.new.tensors[value]
        parts = [
            self.new.add(each, value, tensor.dims, name)
            for each, name in ((one, "whole"), (other, "end"))
        ]
        self.new.nodes[value] = self._both(node, parts)

    def _axes(self, node: Assignment) -> tuple[int, int] | None:
        """The axis along rows that is reduced and the one along each of them, which all arrays have last."""
        is_plain = node.base is None and not node.guards and node.schedule is None
        if not is_plain or node.acc not in COMBINED or node.scalar.dtype not in FLOATS:
            return None
        if any(isinstance(part, Position) for part in scalars_within(node.scalar)):
            return None
        pairs = {
            tuple(part.axis() for part in read.index[-2:]) if self._is_stored(read) else None
            for read in node.reads
        }
        (pair,) = pairs if len(pairs) == 1 else (None,)
        if pair is None or len(pair) < 2 or not node.target:
            return None
        rows, columns = pair
        others = [part for read in node.reads for part in read.index[:-2]]
        if rows is None or columns is None or rows not in node.reduced_axes():
            return None
        if columns != node.target[-1].axis() or any(
            {rows, columns} & part.axes() for part in others
        ):
            return None
        return rows, columns

    def _is_stored(self, read: Read) -> bool:
        """Whether a read is of an array, without a condition."""
        owner = self.shaped.nodes[self.shaped.owner(read.value)]
        return not read.guards and not isinstance(owner, Assignment)

    def _grouped(
        self, value: ValueId, node: Assignment, rows: int, columns: int, each: int, whole: int
    ) -> Assignment:
        """The reduction of whole groups of rows: an element for each of a group first, then those of a column."""
        length = node.sizes[columns]
        long = self._size(node, columns, each * (self.new.sizes[length].fixed or 0))
        tensor = self.new.tensors[value]
        dims = _put(tensor.dims, -1, long)
        sizes = _put(_put(node.sizes, rows, self._size(node, rows, whole)), columns, long)
        step = self.new.sizes[long].fixed or 0
        index = Affine(((step, rows), (1, columns)))
        reads = tuple(
            Read(self._flat(read.value, node), (*read.index[:-2], index)) for read in node.reads
        )
        held = self.new.add(replace(node, sizes=sizes, reads=reads), value, dims, "rows")
        kept = [axis for axis in range(len(node.axes)) if axis in {rows, *node.output_axes()}]
        place = {axis: n for n, axis in enumerate(kept)}
        target = tuple(part.renamed(place) for part in node.target)
        group = self._size(node, rows, each)
        seen = Affine((((self.new.sizes[length].fixed or 0), place[rows]), (1, place[columns])))
        return replace(
            node,
            axes=tuple(node.axes[axis] for axis in kept),
            sizes=tuple(group if axis == rows else node.sizes[axis] for axis in kept),
            target=target,
            reads=(Read(held, (*target[:-1], seen)),),
            scalar=Operand(0, tensor.dtype),
            operands=(),
        )

    def _both(self, node: Assignment, parts: Sequence[ValueId]) -> Assignment:
        """Two results of a reduction together."""
        kept = node.output_axes()
        place = {axis: n for n, axis in enumerate(kept)}
        target = tuple(part.renamed(place) for part in node.target)
        dtype = self.new.tensors[parts[0]].dtype
        operands = tuple(Operand(n, dtype) for n in range(len(parts)))
        combine = OPS[node.acc or ""].binary
        assert combine is not None
        return replace(
            node,
            axes=tuple(node.axes[axis] for axis in kept),
            sizes=tuple(node.sizes[axis] for axis in kept),
            target=target,
            reads=tuple(Read(part, target) for part in parts),
            scalar=Apply(combine, operands, dtype),
            acc=None,
            operands=(),
        )

    def _flat(self, value: ValueId, node: Assignment) -> ValueId:
        """An array whose last two dimensions are one."""
        *first, rows, columns = self.new.tensors[value].dims
        both = [self.new.sizes[size] for size in (rows, columns)]
        name, length = "_".join(x.name for x in both), prod(x.fixed or 0 for x in both)
        last = len(first)
        groups = (*((dim,) for dim in range(last)), (last, last + 1))
        view = self.new.view(value, (*first, rows, columns), groups, node)
        return self.new.add(view, value, (*first, self.new.add_size(name, length)), "flat")

    def _size(self, node: Assignment, axis: int, extent: int) -> int:
        return self.new.add_size(self.new.sizes[node.sizes[axis]].name, extent)


def _put(items: Sequence[T], place: int, item: T) -> tuple[T, ...]:
    changed = list(items)
    changed[place] = item
    return tuple(changed)
