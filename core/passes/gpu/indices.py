"""Say in which kernels 32 bits are enough for the variables of loops whose iterations are known.

Example:
    in:   for k in 0..16: a[64i+k,j]      out:  the same, indices of 32 bits: k is one; i, of an unknown extent, is not

What rests on an extent that is not known is of 64 bits, and so is an index that is a value.
"""

from __future__ import annotations

from ilang.core.ir.gpu import Spread
from ilang.core.ir.kernel import For, Kernel, Program, statements_within
from ilang.core.ir.rewriting import accesses, parts_of
from ilang.core.ir.scalar import Position
from ilang.core.record import replace


def kernel_to_indices(program: Program) -> Program:
    """The program whose kernels say so."""
    kernels = tuple(replace(each, narrow=_is_narrow(program, each)) for each in program.kernels)
    return program if kernels == program.kernels else replace(program, kernels=kernels)


def _is_narrow(program: Program, kernel: Kernel) -> bool:
    """Whether no sum of variables of 32 bits is too large, in an index or in the number of an element."""
    device = program.machine.device
    assert device is not None
    inside = list(statements_within(kernel.body))
    touched = list(accesses(kernel.body))
    if any(isinstance(part, Position) for s in inside for part in parts_of(s)):
        return False
    if any(part.looked or part.sizes for _, index in touched for part in index):
        return False
    loops = [s for s in inside if isinstance(s, For)]
    loops += [loop for s in inside if isinstance(s, Spread) for loop in s.loops]
    extents = [program.sizes[loop.size].fixed or 0 for loop in loops]
    counts = [_known(program, number) for number in {number for number, _ in touched}]
    return all(count < device.narrow_elements for count in (*extents, *counts))


def _known(program: Program, number: int) -> int:
    """The elements of a buffer along its last dimensions, as far as their extents are known."""
    elements = 1
    for size in reversed(program.buffers[number].dims):
        fixed = program.sizes[size].fixed
        if fixed is None:
            break
        elements *= max(1, fixed)
    return elements
