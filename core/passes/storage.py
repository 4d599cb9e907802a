"""The buffers and extents of a program under construction, and scalars as lowering makes them."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.calculus import extent as calculus
from ilang.core.dtype import INTEGERS
from ilang.core.ir import kernel
from ilang.core.ir.extent import extent_name, is_divided, part_extent
from ilang.core.ir.ids import BufferId, ValueId
from ilang.core.ir.scalar import Constant, neutral
from ilang.core.ir.schedule import Chunks
from ilang.core.ir.shaped import Assignment, Shaped, Size, View
from ilang.core.machine import Machine
from ilang.core.names import Names
from ilang.core.record import replace


def wraps(node: Assignment, dtype: str) -> bool:
    """Whether accumulators of a type are integers that a reduction adds to, or multiplies."""
    return node.acc in ("+", "*") and dtype in INTEGERS


class Storage:
    """The buffers of a program: inputs and outputs first, temporaries as kernels ask for them; and its extents."""

    def __init__(self, shaped: Shaped, whole: Sequence[int], machine: Machine) -> None:
        """For one program; the values ``whole`` will be stored whole."""
        self.shaped = shaped
        self.machine = machine
        self.buffers: list[kernel.Buffer] = []
        self.sizes = list(shaped.sizes)
        self.counts: list[kernel.Count] = []
        self.of_value: dict[ValueId, BufferId] = {}
        self.inputs = frozenset(shaped.inputs)
        self.outputs = frozenset(shaped.outputs)
        self.names = frozenset(tensor.name for tensor in shaped.tensors)
        views = (value for value, node in shaped.numbered() if isinstance(node, View))
        named = (*shaped.inputs, *whole, *views)
        self.whole_names = frozenset(shaped.tensors[value].name for value in named)
        self.unique = Names(self.whole_names)
        self.size_names = Names(frozenset(size.name for size in shaped.sizes))
        self.counted: dict[calculus.Extent, int] = {}
        self.constants: dict[int, int] = {}
        self.last = shaped.last()
        self.given = {shaped.owner(value): value for value in shaped.outputs}
        for value in (*shaped.inputs, *shaped.outputs):
            self.whole(value)

    def whole(self, value: ValueId) -> BufferId:
        """The buffer that holds all of a value; one that takes another's place has its buffer.

        A view has one without memory of its own, and so has what an output is a view of.
        """
        value = self.last[value]
        if value not in self.of_value:
            tensor, owner = self.shaped.tensors[value], self.shaped.owner(value)
            owner = self.given.get(owner, owner)
            if owner != value:
                view = kernel.Buffer(
                    tensor.name,
                    tensor.dtype,
                    tensor.dims,
                    "view",
                    owner=self.whole(owner),
                    tensor=tensor.origin(),
                )
                self.of_value[value] = self._add(view)
                return self.of_value[value]
            role: kernel.BufferRole = "temporary"
            if value in self.outputs:
                role = "output"
            elif value in self.inputs:
                role = "input"
            self.of_value[value] = self._add(
                kernel.Buffer(tensor.name, tensor.dtype, tensor.dims, role, tensor=tensor.origin())
            )
        return self.of_value[value]

    def scratch(
        self, name: str, dtype: str, dims: tuple[int, ...], private: bool, tensor: str
    ) -> BufferId:
        """A buffer of one iteration of a loop (``private``), or one that stands beside all loops, for a tensor.

        A private name is the kernel's own affair; any other is one that ``unique`` gave.
        """
        padded = bool(dims) and dims[-1] >= len(self.shaped.sizes)
        return self._add(
            kernel.Buffer(name, dtype, dims, "temporary", private, padded, tensor=tensor)
        )

    def tile(self, name: str, dtype: str, dims: Sequence[int], tensor: str) -> BufferId:
        """The elements of a register tile."""
        tile = kernel.Buffer(name, dtype, tuple(dims), "tile", private=True, tensor=tensor)
        return self._add(tile)

    def into_tile(self, number: BufferId) -> None:
        """Make a register tile of a private buffer."""
        self.buffers[number] = replace(self.buffers[number], role="tile", padded=False)

    def doubles(self, number: BufferId) -> None:
        """Give a private buffer two copies, where the machine may fill one while it reads the other."""
        double = self.buffers[number].private and self.machine.kind == "gpu"
        self.buffers[number] = replace(self.buffers[number], double=double)

    def instead(self, number: BufferId, whole: BufferId) -> None:
        """Let the results of parts be those of all, a buffer's, where there is one part."""
        self.buffers[number] = replace(self.buffers[number], owner=whole)

    def accumulates(self, number: BufferId, node: Assignment) -> None:
        """Say that a buffer has the accumulators of a reduction: integers wrap where they are added or multiplied."""
        wrapping = wraps(node, self.buffers[number].dtype)
        self.buffers[number] = replace(self.buffers[number], wrapping=wrapping)

    def _add(self, buffer: kernel.Buffer) -> BufferId:
        self.buffers.append(buffer)
        return BufferId(len(self.buffers) - 1)

    # -- extents of loop parts ---------------------------------------------------------------------------------------

    def number(self, extent: calculus.Extent) -> int:
        """The size number of an extent, one for all that are computed alike."""
        if extent.operation == "size":
            return extent.number
        if extent.operation == "number":
            return self.constant(extent.number)
        extent = extent.mapped(self._named)
        key = replace(extent, after=None)
        if key not in self.counted:
            self.counted[key] = self._count(key, extent_name(self.sizes, extent))
        return self.counted[key]

    def _named(self, extent: calculus.Extent) -> calculus.Extent:
        """The same extent where each number of parts is a size."""
        if extent.operation == "ceil":
            return calculus.size(self.number(extent))
        return extent.mapped(self._named)

    def _count(self, value: calculus.Extent, name: str) -> int:
        """The number of a new size that follows from others."""
        self.sizes.append(Size(self.size_names.fresh(name), None, ()))
        self.counts.append((len(self.sizes) - 1, value))
        return len(self.sizes) - 1

    def part(self, size: int, factors: Sequence[int], part: int) -> int:
        """The size number of a part of a split dimension: ceil(n / product) for part 0, else its factor."""
        return self.number(part_extent(self.sizes, calculus.size(size), factors, part))

    def blocks(
        self, loops: Sequence[int], elements: Sequence[int], name: str, chunks: Chunks
    ) -> int:
        """The size number of the chunks of a reduction over loops of these sizes, with so many accumulators."""
        of, threads = calculus.large_product, self.machine.threads
        limits = (chunks.most, chunks.work, threads.block_terms, self.machine.accumulators(-1))
        each = of(elements) if elements else calculus.number(0)
        value = calculus.Extent("chunks", (of(loops), each, *map(calculus.number, limits)))
        return self._count(value, f"{name}_blocks")

    def shares(self, whole: int, tiles: Sequence[int], least: int, most: int) -> int:
        """The size number of the parts that iterations go in, for so many tiles."""
        limits = (calculus.number(least), calculus.number(most))
        operands = (calculus.size(whole), *limits, *map(calculus.size, tiles))
        value = calculus.Extent("shares", operands)
        if value not in self.counted:
            self.counted[value] = self._count(value, f"{self.sizes[whole].name}_parts")
        return self.counted[value]

    def strips(self, whole: int, most: int, parts: int | None) -> int:
        """The size number of strips of so many iterations at most, one at least in each of some ``parts``."""
        each = (1, calculus.quotient(calculus.size(whole), calculus.number(most)))
        others = [] if parts is None else [(1, calculus.size(parts))]
        fixed = self.sizes[whole].fixed
        if fixed is not None and parts is None:
            return self.constant(1 + fixed // most)
        value = calculus.linear([each, *others], int(parts is None))
        if value not in self.counted:
            self.counted[value] = self._count(value, f"{self.sizes[whole].name}_strips")
        return self.counted[value]

    def constant(self, extent: int) -> int:
        """The size number of a constant extent."""
        if extent not in self.constants:
            self.constants[extent] = len(self.sizes)
            self.sizes.append(Size(self.size_names.fresh(f"c{extent}"), extent, ()))
        return self.constants[extent]

    def divides(self, size: int, factors: Sequence[int]) -> bool:
        """Whether the factors are known to divide a dimension."""
        return is_divided(self.sizes, calculus.size(size), factors)


def start_of(node: Assignment) -> Constant:
    """The neutral element that a reduction starts from."""
    assert node.acc is not None
    return neutral(node.acc, node.acc_dtype())
