"""Say where the private buffers of a kernel are: small ones in the local memory of a thread, others in the workspace.

Example:
    in:   memory acc f64[8] private; row f32[n_j] private
    out:  memory acc f64[8] local; row f32[n_j] private
"""

from __future__ import annotations

from math import prod

from ilang.core.dtype import BYTES
from ilang.core.ir.kernel import Buffer, Program
from ilang.core.passes.rewriting import accesses
from ilang.core.record import replace


def kernel_to_spaces(program: Program) -> Program:
    """The program with a space for each private buffer that a thread has room for."""
    device = program.machine.device
    assert device is not None
    buffers = list(program.buffers)
    for kernel in program.kernels:
        left = device.local_bytes
        for number in sorted({buffer for buffer, _ in accesses(kernel.body)}):
            size = _bytes(program, buffers[number])
            if buffers[number].private and size is not None and size <= left:
                buffers[number] = replace(buffers[number], space="local")
                left -= size
    return replace(program, buffers=tuple(buffers))


def _bytes(program: Program, buffer: Buffer) -> int | None:
    """The bytes of a buffer; None where they are known at run time only."""
    extents = [program.sizes[size].fixed for size in buffer.dims]
    if None in extents:
        return None
    return BYTES[buffer.dtype] * prod(extent or 0 for extent in extents)
