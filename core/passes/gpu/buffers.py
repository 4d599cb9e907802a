"""Give what is double-buffered two buffers: one is filled while the other one is read, and one barrier orders both.

Example, of a copy with the role s2:
    in:   for k in 0..n_k                            out:  if 0 < n_k: spread i over the threads: copy[i] = a[0,i]
            spread i over the threads                      for k in 0..n_k
              copy[i] = a[k,i]                               if k + 1 < n_k: spread i: copy_loaded = a[k+1,i]
            spread j over the threads                        spread j over the threads
              acc += copy[j]                                   acc += copy[j]
                                                             if k + 1 < n_k: spread i: copy_next[i] = copy_loaded
                                                             swap copy and copy_next

Buffers alternate in the innermost loop that all threads run together and that contains all uses of the copy. The
elements of the next copy are loaded into registers before this iteration computes, and stored afterwards, so no thread
waits for memory in between (``ahead.py`` says which copies allow that).

A copy that does not allow that is computed in its place, into the other buffer, so that one barrier is enough here,
too:
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang.core.calculus.affine import Affine, Within
from ilang.core.calculus.extent import Extent
from ilang.core.calculus.extent import number as number_of
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import SwapBuffers, threads_of
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import accesses, substituted
from ilang.core.passes.gpu.ahead import Copies, CopySpread, Iterations, chosen
from ilang.core.passes.gpu.spaces import loop_around
from ilang.core.record import replace

Waiting = tuple[ir.Block, int]
"""Statements that stand before a loop so many levels further out."""


def kernel_to_buffers(program: ir.Program) -> ir.Program:
    """The program with two buffers for what is double-buffered."""
    if not any(buffer.double for buffer in program.buffers):
        return program
    doubled = _DoubleBuffers(program)
    kernels = tuple(doubled.kernel(kernel) for kernel in program.kernels)
    whole = doubled.copies.numbering.program()
    buffers = tuple(replace(buffer, double=False) for buffer in whole.buffers)
    return replace(whole, kernels=kernels, buffers=buffers)


class _DoubleBuffers:
    """A program, and the loops of a kernel in which two buffers alternate, by their variables."""

    def __init__(self, program: ir.Program) -> None:
        self.copies = Copies(program)
        self.alternating: dict[int, list[BufferId]] = {}

    def kernel(self, kernel: ir.Kernel) -> ir.Kernel:
        """A kernel with two buffers for what is double-buffered."""
        spread = threads_of(kernel)
        self.alternating = {}
        for number in sorted({number for number, _ in accesses(kernel.body)}):
            double = self.copies.buffers[number].double
            loop = loop_around(self.copies.program, spread.body, number) if double else None
            if loop is not None:
                self.alternating.setdefault(loop.variable, []).append(number)
        if not self.alternating:
            return kernel
        self.copies.enter(kernel)
        body, waiting = self._block(spread.body, ())
        assert not waiting, "what stands before a loop is in a block of threads"
        return self.copies.numbering.left(kernel, (replace(spread, body=body),))

    def _block(self, body: ir.Block, around: tuple[ir.For, ...]) -> tuple[ir.Block, list[Waiting]]:
        """A block inside loops that stand right in each other, and what stands before these."""
        out: list[ir.Statement] = []
        further: list[Waiting] = []
        for s in body:
            if isinstance(s, ir.For) and ir.has_spread(s):
                loop, waiting = self._loop(s, around)
                for before, levels in waiting:
                    if levels:
                        further.append((before, levels - 1))
                    else:
                        out += before
                out.append(loop)
            elif isinstance(s, ir.If) and ir.has_spread(s):
                out.append(ir.map_blocks(s, lambda block: self._block(block, ())[0]))
            else:
                out.append(s)
        return tuple(out), further

    def _loop(self, loop: ir.For, around: tuple[ir.For, ...]) -> tuple[ir.For, list[Waiting]]:
        """A loop whose iterations fill buffers in turn, and what stands before it."""
        body, waiting = self._block(loop.body, (*around, loop))
        loop = replace(loop, body=body)
        ahead: dict[ir.Statement, CopySpread] = {}
        swaps: list[SwapBuffers] = []
        for number in self.alternating.get(loop.variable, []):
            other = self._other(number)
            copies = self.copies.of(loop, number)
            if copies:
                swaps.append(SwapBuffers(number, other))
                ahead.update(self.copies.held(copies, other))
            else:
                loop = replace(loop, body=(SwapBuffers(number, other), *loop.body))
        if ahead:
            loop, before = _rotated(self.copies, loop, around, ahead, swaps)
            waiting.append(before)
        return loop, waiting

    def _other(self, number: BufferId) -> BufferId:
        buffer = self.copies.buffers[number]
        return self.copies.numbering.add(replace(buffer, name=f"{buffer.name}_next"))


def _rotated(
    copies: Copies,
    loop: ir.For,
    around: Sequence[ir.For],
    ahead: Mapping[ir.Statement, CopySpread],
    swaps: Sequence[SwapBuffers],
) -> tuple[ir.For, Waiting]:
    """A loop that copies for its next iteration, and the copy for its first one."""
    first = chosen(loop.body, lambda s: s if s in ahead else None)
    loads = chosen(loop.body, lambda s: ahead[s].loads() if s in ahead else None)
    fills = chosen(loop.body, lambda s: ahead[s].fills() if s in ahead else None)
    rest = chosen(loop.body, lambda s: None if s in ahead else s)
    iterations = Iterations(copies.program, loop, around, first)
    on = {loop.variable: Affine(((1, loop.variable),), 1)}
    more = iterations.more()
    body = (
        *_if(more, tuple(substituted(s, on) for s in loads)),
        *rest,
        *_if(more, tuple(substituted(s, on) for s in fills)),
        *swaps,
    )
    start = {each.variable: Affine((), window=True) for each in (loop, *iterations.outer)}
    before = _if(iterations.any(), tuple(substituted(s, start) for s in first))
    last = iterations.outer[-1] if iterations.outer else loop
    if last.chunk is not None or last.within:
        variable = copies.numbering.split(last.variable, "f")
        start[last.variable] = Affine(((1, variable),))
        copied = tuple(substituted(s, start) for s in first)
        end = Extent("min", (Extent("+", (last.begin, number_of(1))), last.end))
        before = (replace(last, variable=variable, end=end, body=copied),)
    return replace(loop, body=body), (before, len(iterations.outer))


def _if(conditions: tuple[Within, ...], body: ir.Block) -> ir.Block:
    return (ir.If(conditions, body),) if conditions else body
