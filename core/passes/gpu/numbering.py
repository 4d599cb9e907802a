"""Numbers of sizes, of loop variables and of buffers that a pass adds to a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.kernel import Buffer, Space
from ilang.core.ir.shaped import Size
from ilang.core.passes.fixed_sizes import size_of_extent


class Numbering:
    """The numbers of the sizes of a program and of the loop variables of one of its kernels, to which a pass adds."""

    def __init__(self, sizes: list[Size], names: Sequence[str]) -> None:
        """Of the sizes of a program, which grow in place, and of the names of a kernel, which are copied."""
        self.sizes = sizes
        self.names = list(names)

    def size(self, extent: int) -> int:
        """The number of a size that is known, an earlier one where there is one."""
        return size_of_extent(self.sizes, extent)

    def variable(self, name: str, letter: str) -> VariableId:
        """The number of a loop variable with a name that no loop has: ``name``, then so many letters."""
        while name in self.names:
            name += letter
        self.names.append(name)
        return VariableId(len(self.names) - 1)


def buffer_name(buffers: Sequence[Buffer], name: str) -> str:
    """A name that no buffer has: ``name``, then so many underscores."""
    while any(buffer.name == name for buffer in buffers):
        name += "_"
    return name


def new_buffer(
    buffers: list[Buffer], name: str, dtype: str, dims: tuple[int, ...], space: Space
) -> BufferId:
    """The number of a buffer of its own that a pass adds in some memory of a GPU."""
    free = buffer_name(buffers, name)
    buffers.append(Buffer(free, dtype, dims, "temporary", private=True, space=space))
    return BufferId(len(buffers) - 1)
