"""Sizes, buffers and loop variables that a pass adds to a program."""

from __future__ import annotations

from collections.abc import Callable

from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.kernel import AxisPart, Block, Buffer, Kernel, Program, Space
from ilang.core.passes.fixed_sizes import FixedSizes
from ilang.core.record import replace


class Numbering:
    """A program to which a pass adds sizes and buffers, and loop variables of one of its kernels at a time."""

    def __init__(self, program: Program) -> None:
        self.given = program
        self.sizes = list(program.sizes)
        self.fixed = FixedSizes(self.sizes)
        self.buffers = list(program.buffers)
        self.names: list[str] = []
        self.parts: list[AxisPart | None] = []

    def enter(self, kernel: Kernel) -> None:
        """Go on with a kernel."""
        self.names = list(kernel.names)
        self.parts = [*kernel.parts, *[None] * (len(kernel.names) - len(kernel.parts))]

    def left(self, kernel: Kernel, body: Block) -> Kernel:
        """The kernel with another body, and with the variables that were added since."""
        if body is kernel.body:
            return kernel
        return replace(kernel, body=body, names=tuple(self.names), parts=tuple(self.parts))

    def program(self) -> Program:
        """The program with what was added; itself where that is nothing."""
        buffers, sizes = tuple(self.buffers), tuple(self.sizes)
        if buffers == self.given.buffers and sizes == self.given.sizes:
            return self.given
        return replace(self.given, buffers=buffers, sizes=sizes)

    def size(self, extent: int) -> int:
        """The number of a size that is known, an earlier one where there is one."""
        return self.fixed.number(extent)

    def variable(self, name: str, letter: str) -> VariableId:
        """The number of a loop variable with a name that no loop has: ``name``, then so many letters."""
        while name in self.names:
            name += letter
        self.names.append(name)
        self.parts.append(None)
        return VariableId(len(self.names) - 1)

    def split(self, origin: VariableId, letter: str) -> VariableId:
        """The number of a loop variable that counts along the axis of another one."""
        variable, part = self.variable(self.names[origin] + letter, letter), self.parts[origin]
        if part is not None:
            self.parts[variable] = part[0], 0, origin
        return variable

    def add(self, buffer: Buffer) -> BufferId:
        """The number of a new buffer; where another one has its name, underscores follow that."""
        name = buffer.name
        while any(other.name == name for other in self.buffers):
            name += "_"
        self.buffers.append(replace(buffer, name=name))
        return BufferId(len(self.buffers) - 1)

    def private(
        self, name: str, dtype: str, dims: tuple[int, ...], space: Space, tensor: str = ""
    ) -> BufferId:
        """The number of a new private buffer in some memory of a GPU, for a tensor or for several."""
        added = Buffer(name, dtype, dims, "temporary", private=True, space=space, tensor=tensor)
        return self.add(added)


def renumbered(program: Program, change: Callable[[Program, Kernel, Numbering], Kernel]) -> Program:
    """The program with its kernels changed, and with the sizes and buffers that they are given."""
    numbering = Numbering(program)
    kernels = tuple(change(program, kernel, numbering) for kernel in program.kernels)
    return replace(numbering.program(), kernels=kernels)
