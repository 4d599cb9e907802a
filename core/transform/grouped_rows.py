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
from math import gcd
from typing import TypeVar

from ilang.core.calculus.affine import Affine
from ilang.core.dtype import FLOATS
from ilang.core.ir.assignments import ordered
from ilang.core.ir.graph import Axis
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Apply, Operand, Position, scalars_within
from ilang.core.ir.shaped import Assignment, Node, Read, Shaped, Size, Tensor, View
from ilang.core.machine import Machine
from ilang.core.names import Names
from ilang.core.record import replace

T = TypeVar("T")
GAIN = 0.8
"""Steps by groups at most, for one without: of rows one by one, of groups by their length, and of rows at the end."""
END = 2
"""Steps that a row takes that is left over: it is read apart from all others."""
COMBINED = {"+": "add", ">": "max", "<": "min"}
"""The function of two results of a reduction."""


def grouped_rows(shaped: Shaped, machine: Machine) -> Shaped:
    """The program whose columns of short rows are reduced by groups of rows; itself where there are none."""
    program = _GroupedRows(shaped, machine)
    for value, node in shaped.numbered():
        if isinstance(node, Assignment):
            program.group(value, node)
    return shaped if len(program.nodes) == len(shaped.nodes) else program.result()


class _GroupedRows:
    """A program whose values keep their numbers, and new ones have the numbers after."""

    def __init__(self, shaped: Shaped, machine: Machine) -> None:
        self.shaped = shaped
        self.machine = machine
        self.nodes: list[Node] = list(shaped.nodes)
        self.tensors: list[Tensor] = list(shaped.tensors)
        self.sizes: list[Size] = list(shaped.sizes)
        self.names = Names(frozenset(tensor.name for tensor in shaped.tensors))
        self.size_names = Names(frozenset(size.name for size in shaped.sizes))

    def result(self) -> Shaped:
        """The program so far, in order."""
        return ordered(
            replace(
                self.shaped,
                nodes=tuple(self.nodes),
                tensors=tuple(self.tensors),
                sizes=tuple(self.sizes),
            )
        )

    def group(self, value: ValueId, node: Assignment) -> None:
        """Reduce the rows of a value by groups, where they are short and there are enough of them."""
        axes = self._axes(node)
        if axes is None:
            return
        rows, columns = axes
        count, length = (self.sizes[node.sizes[axis]].fixed or 0 for axis in axes)
        lanes = self.machine.vector_lanes("f32")
        each = lanes // gcd(lanes, length)
        whole, left = divmod(count, each)
        taken = whole * each * length / lanes + each + END * left
        if not 1 < length < lanes or GAIN * count < taken:
            return
        one = self._grouped(value, node, rows, columns, each, whole)
        if not left:
            self.nodes[value] = one
            return
        sizes = _put(node.sizes, rows, self._size(node, rows, left))
        reads = tuple(
            replace(read, index=_put(read.index, -2, read.index[-2] + each * whole))
            for read in node.reads
        )
        other = replace(node, sizes=sizes, reads=reads)
        tensor = self.tensors[value]
        parts = [
            self._add(value, each, tensor.dims, name)
            for each, name in ((one, "whole"), (other, "end"))
        ]
        self.nodes[value] = self._both(node, parts)

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
        long = self._size(node, columns, each * (self.sizes[length].fixed or 0))
        tensor = self.tensors[value]
        dims = _put(tensor.dims, -1, long)
        sizes = _put(_put(node.sizes, rows, self._size(node, rows, whole)), columns, long)
        step = self.sizes[long].fixed or 0
        index = Affine(((step, rows), (1, columns)))
        reads = tuple(
            Read(self._flat(read.value, node), (*read.index[:-2], index)) for read in node.reads
        )
        held = self._add(value, replace(node, sizes=sizes, reads=reads), dims, "rows")
        kept = [axis for axis in range(len(node.axes)) if axis in {rows, *node.output_axes()}]
        place = {axis: n for n, axis in enumerate(kept)}
        target = tuple(part.renamed(place) for part in node.target)
        group = self._size(node, rows, each)
        seen = Affine((((self.sizes[length].fixed or 0), place[rows]), (1, place[columns])))
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
        dtype = self.tensors[parts[0]].dtype
        operands = tuple(Operand(n, dtype) for n in range(len(parts)))
        return replace(
            node,
            axes=tuple(node.axes[axis] for axis in kept),
            sizes=tuple(node.sizes[axis] for axis in kept),
            target=target,
            reads=tuple(Read(part, target) for part in parts),
            scalar=Apply(COMBINED[node.acc or ""], operands, dtype),
            acc=None,
            operands=(),
        )

    def _flat(self, value: ValueId, node: Assignment) -> ValueId:
        """An array whose last two dimensions are one."""
        tensor = self.tensors[value]
        rows, columns = tensor.dims[-2:]
        extents = (self.sizes[size].fixed or 0 for size in (rows, columns))
        long = next(extents) * next(extents)
        dims = (
            *tensor.dims[:-2],
            self._new(f"{self.sizes[rows].name}_{self.sizes[columns].name}", long),
        )
        alone = tuple((dim,) for dim in range(len(tensor.dims)))
        axes = tuple(Axis(self.sizes[size].name, None, node.span) for size in tensor.dims)
        last = len(dims) - 1
        view = View(
            value, axes, tensor.dims, alone, (*alone[:-2], (last, last + 1)), node.text, node.span
        )
        return self._add(value, view, dims, "flat")

    def _size(self, node: Assignment, axis: int, extent: int) -> int:
        """A size of an extent, named as the one of an axis."""
        return self._new(self.sizes[node.sizes[axis]].name, extent)

    def _new(self, name: str, extent: int) -> int:
        self.sizes.append(Size(self.size_names.fresh(name), extent, ()))
        return len(self.sizes) - 1

    def _add(self, value: ValueId, node: Node, dims: Sequence[int], name: str) -> ValueId:
        """A new value, with elements of another one."""
        tensor = self.tensors[value]
        self.nodes.append(node)
        fresh = self.names.fresh(f"{tensor.name}_{name}")
        self.tensors.append(Tensor(fresh, tensor.dtype, tuple(dims), of=tensor.origin()))
        return ValueId(len(self.nodes) - 1)


def _put(items: Sequence[T], place: int, item: T) -> tuple[T, ...]:
    """The items with another one at a place."""
    changed = list(items)
    changed[place] = item
    return tuple(changed)
