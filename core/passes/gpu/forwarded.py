"""Read from variables what a thread has stored, where several values are computed in turn.

Example, a thread for each i:
    in:   m2[i] = 0.9 * m[i] + g[i]         out:  m2_element = 0.9 * m[i] + g[i]
          w2[i] = w[i] - m2[i]                    m2[i] = m2_element;  w2[i] = w[i] - m2_element

Temporaries that no kernel reads any more are not stored. An iteration then reads nothing that it has stored, and
several of them can go together (``vector_access.py``).
"""

from __future__ import annotations

from ilang.core.ir import kernel as ir
from ilang.core.passes.forwarding import Forwarding, buffer_names, without_unread
from ilang.core.record import replace


def kernel_to_forwarded(program: ir.Program) -> ir.Program:
    """The program, its kernels with stored elements in variables."""
    names = buffer_names(program)
    kernels = tuple(_forwarded(program, kernel, names) for kernel in program.kernels)
    return (
        program if kernels == program.kernels else without_unread(replace(program, kernels=kernels))
    )


def _forwarded(program: ir.Program, kernel: ir.Kernel, names: frozenset[str]) -> ir.Kernel:
    """A kernel with stored elements in variables; one that keeps no value of its own for a thread."""
    if any(program.buffers[s.buffer].private for s in ir.every(kernel.body, ir.Store)):
        return kernel
    forwarding = Forwarding(program, kernel, names)
    body = _block(forwarding, kernel.body)
    if body == kernel.body:
        return kernel
    return replace(kernel, body=body, locals=tuple(forwarding.locals))


def _block(forwarding: Forwarding, body: ir.Block) -> ir.Block:
    inner = (
        ir.map_blocks(s, lambda block: _block(forwarding, block))
        if isinstance(s, (ir.For, ir.If))
        else s
        for s in body
    )
    return tuple(forwarding.forwarded(list(inner)))
