"""Functions of concatenations as concatenations: what reads one element by element is computed part by part.

Example, of the halves of 64 elements, turned:
    in:   t[d] = -x[d+32];  t[d+32] = x[d];  out[d] = x[d] * c[d] + t[d] * s[d]      d goes to 32, in out to 64
    out:  out[d] = x[d] * c[d] + -x[d+32] * s[d];  out[d+32] = x[d+32] * c[d+32] + x[d] * s[d+32]

A concatenation that is stored is written and read once more, and keeps what goes in and what comes out apart. A
concatenation that anything else reads stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ilang.core.calculus.affine import Affine, axis_index, canonical
from ilang.core.ir.assignments import reindexed, whole_index, without_axes
from ilang.core.ir.graph import Axis
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Constant
from ilang.core.ir.shaped import START, Assignment, Read, Shaped, View
from ilang.core.ir.updates import Updates
from ilang.core.record import replace
from ilang.core.transform.extended import ExtendedProgram

MOST = 4
"""Parts that a function is computed in, at most: each has loops of its own."""
DEEPEST = 16
"""Functions of functions that are computed in parts with the one that reads them, at most."""


class _ConcatenatedPart(NamedTuple):
    """A part of a concatenation as a value: its node, its dimensions, and where it begins; ``size`` is its extent.

    A part of one element may have no axis along the concatenation: then it has no size.
    """

    node: Assignment
    dims: tuple[int, ...]
    first: Affine
    size: int | None


class _Concatenation(NamedTuple):
    """The parts of a concatenation along a dimension."""

    dim: int
    parts: tuple[_ConcatenatedPart, ...]

    def key(self) -> tuple[object, ...]:
        """A value that is the same for concatenations whose parts begin at the same indices."""
        return tuple(canonical(part.first) for part in self.parts)


def distributed_functions(shaped: Shaped) -> Shaped:
    """The program whose functions of concatenations are concatenations; itself where there are none."""
    updates = Updates(shaped)
    return _Distribution(shaped, updates).run() if updates.bases else shaped


class _Distribution:
    def __init__(self, shaped: Shaped, updates: Updates) -> None:
        self.shaped = shaped
        self.new = ExtendedProgram(shaped)
        self.updates = updates
        self.known: dict[ValueId, _Concatenation] = {}
        self.values: dict[tuple[ValueId, int], ValueId] = {}
        self.readers: dict[ValueId, list[Assignment]] = {}
        self.kept = {*shaped.outputs, *updates.bases}
        for node in shaped.nodes:
            if isinstance(node, View):
                self.kept.add(node.value)
            elif isinstance(node, Assignment):
                self.kept |= {ValueId(each.source) for each in node.lookups()}
                for value in {read.value for read in node.reads}:
                    self.readers.setdefault(value, []).append(node)

    def run(self) -> Shaped:
        """Every concatenation, and all that becomes one, in turn."""
        firsts = {self.updates.after(base)[-1]: base for base in self._firsts()}
        for value, node in self.shaped.numbered():
            if value in firsts:
                parts = self._parts(firsts[value])
            else:
                parts = self._distributed(value, node) if isinstance(node, Assignment) else None
            if parts is not None and self._is_taken(value, parts.dim):
                self.known[value] = parts
        same = len(self.new.nodes) == len(self.shaped.nodes)
        return self.shaped if same else self.new.result()

    def _firsts(self) -> set[ValueId]:
        """The values that others take the place of, and that take the place of none."""
        return {*self.updates.bases} - {*self.updates.bases.values()}

    def _is_taken(self, value: ValueId, dim: int) -> bool:
        """Whether all that reads a concatenation along a dimension may be computed in parts."""
        readers = self.readers.get(value, [])
        return (
            bool(readers)
            and value not in self.kept
            and all(_axis(node, value, dim) is not None for node in readers)
        )

    def _parts(self, base: ValueId) -> _Concatenation | None:
        """The parts of a concatenation; None of any other value that is updated."""
        after, partition = self.updates.after(base), self.updates.partition(base)
        if partition is None or len(partition[1]) != len(after) or MOST < len(after):
            return None
        nodes = [self.shaped.assignment(value) for value in after]
        if any(node.schedule is not None for node in nodes):
            return None
        dims, (dim, firsts) = self.shaped.tensors[base].dims, partition
        parts = (
            self._part(self.shaped.assignment(value), dims, dim, first) for value, first in firsts
        )
        return _Concatenation(dim, tuple(parts))

    def _part(
        self, node: Assignment, dims: Sequence[int], dim: int, first: Affine
    ) -> _ConcatenatedPart:
        axes = [next(iter(index.variables()), None) for index in node.target]
        sizes = [
            size if axis is None else node.sizes[axis]
            for axis, size in zip(axes, dims, strict=True)
        ]
        target = tuple(Affine(()) if axis is None else axis_index(axis) for axis in axes)
        along = axes[dim]
        if along is None:
            sizes[dim] = self.new.add_size("once", 1)
        alone = replace(node, target=target, base=None)
        return _ConcatenatedPart(alone, tuple(sizes), first, None if along is None else sizes[dim])

    def _distributed(self, value: ValueId, node: Assignment) -> _Concatenation | None:
        """The parts of what reads concatenations, which takes the place of it; None where it stays as it is."""
        joined = next((read.value for read in node.reads if read.value in self.known), None)
        if joined is None:
            return None
        parts = self.known[joined]
        axis = _axis(node, joined, parts.dim)
        assert axis is not None
        dims, dim = self.new.tensors[value].dims, _dim(node.target, axis)
        assert dim is not None
        base = self._start(value, node, dims)
        alone = []
        for number, part in enumerate(parts.parts):
            moved = self._moved(node, axis, parts, number)
            alone.append(self._part(moved, dims, dim, part.first))
            stored = replace(moved, base=base)
            if number < len(parts.parts) - 1:
                base = self.new.add(stored, value, dims, "part")
            else:
                self.new.nodes[value] = stored
        return _Concatenation(dim, tuple(alone))

    def _moved(
        self, node: Assignment, axis: int, parts: _Concatenation, number: int, depth: int = 0
    ) -> Assignment:
        """A function of concatenations for one of their parts; it is stored where that part is."""
        part = parts.parts[number]
        walked = Affine(()) if part.size is None else axis_index(axis)
        reads = [self._read(read, node, axis, parts, number, depth) for read in node.reads]
        moved = reindexed(node, {axis: replace(walked + part.first, window=True)})
        sizes = list(node.sizes)
        sizes[axis] = sizes[axis] if part.size is None else part.size
        moved = replace(
            moved,
            sizes=tuple(sizes),
            reads=tuple(
                old if new is None else new for new, old in zip(reads, moved.reads, strict=True)
            ),
        )
        return without_axes(moved, (axis,)) if part.size is None else moved

    def _read(
        self,
        read: Read,
        node: Assignment,
        axis: int,
        parts: _Concatenation,
        number: int,
        depth: int,
    ) -> Read | None:
        """A read of a concatenation with the same parts as one of a part, as that of what only one function reads."""
        value, known = read.value, self.known.get(read.value)
        dim = _dim(read.index, axis)
        if dim is None or _axis(node, value, dim) != axis:
            return None
        if known is not None and (known.dim, known.key()) != (dim, parts.key()):
            return None
        key = (value, number)
        if key not in self.values:
            part = (
                known.parts[number]
                if known is not None
                else self._own(value, dim, parts, number, depth)
            )
            if part is None:
                return None
            self.values[key] = self.new.add(part.node, value, part.dims, "part")
        size = parts.parts[number].size
        walked = Affine(()) if size is None else axis_index(axis)
        sizes = {**dict(enumerate(node.sizes)), axis: size}
        index = [walked if n == dim else each for n, each in enumerate(read.index)]
        for n, known_size in enumerate(self.new.tensors[self.values[key]].dims):
            at = index[n].axis()
            if at is not None and sizes[at] != known_size:  # as long, and another size
                index[n] = replace(index[n], window=True)
        return Read(self.values[key], tuple(index))

    def _own(
        self, value: ValueId, dim: int, parts: _Concatenation, number: int, depth: int
    ) -> _ConcatenatedPart | None:
        """The part of a function that only one other reads, as if it were a concatenation; None of other values."""
        node = self.shaped.nodes[value]
        if depth == DEEPEST or value in self.kept or len(self.readers[value]) != 1:
            return None
        if not isinstance(node, Assignment) or node is not self.new.nodes[value]:
            return None
        axis = node.target[dim].axis()
        if (
            axis is None
            or node.acc is not None
            or node.base is not None
            or node.schedule is not None
        ):
            return None
        moved = self._moved(node, axis, parts, number, depth + 1)
        return self._part(moved, self.shaped.tensors[value].dims, dim, parts.parts[number].first)

    def _start(self, value: ValueId, node: Assignment, dims: Sequence[int]) -> ValueId:
        """A tensor of zeros, all of which are overwritten."""
        long, index = whole_index(dims, lambda size: self.new.sizes[size].fixed)
        axes = tuple(Axis(f"o{dim}", None, node.span) for dim in long)
        zero = Constant(0, self.new.tensors[value].dtype)
        text = f"{START}{node.text}"
        sizes = tuple(dims[dim] for dim in long)
        start = Assignment(axes, sizes, index, (), zero, None, None, text, node.span)
        return self.new.add(start, value, dims, "start")


def _dim(index: Sequence[Affine], axis: int) -> int | None:
    """The dimension that an axis walks alone; None where it walks none, or several."""
    dims = [n for n, each in enumerate(index) if each.axis() == axis]
    return dims[0] if len(dims) == 1 else None


def _axis(node: Assignment, value: ValueId, dim: int) -> int | None:
    """The axis along which an assignment reads a value element by element, and stores its own; None of any other."""
    if node.acc is not None or node.base is not None or node.schedule is not None:
        return None
    reads = [read for read in node.reads if read.value == value]
    axes = {read.index[dim].axis() for read in reads}
    if len(axes) != 1 or any(read.guards for read in reads):
        return None
    (axis,) = axes
    targets = [index.axis() for index in node.target]
    others = [index for read in reads for n, index in enumerate(read.index) if n != dim]
    if axis not in targets or any(axis in index.axes() for index in others):
        return None
    return axis
