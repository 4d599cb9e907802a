"""Loops that are left before their first iteration where an extent inside them is 0.

Example, of an array of 17179869184 by 0 elements:
    in:   for i in 0..n_i: for j in 0..n_j: acc += in0[i,j]
    out:  if 0 < n_j: for i in 0..n_i: for j in 0..n_j: acc += in0[i,j]

Only the outermost loop without work is guarded, and consecutive loops get one guard. If a whole kernel has no work when
an extent is 0, its launch is skipped instead (``needs``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ilang.core.calculus.affine import Affine, Within
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.rewriting import unless_same, with_body
from ilang.core.passes.needs import NOTHING, Sizes, needs_of
from ilang.core.record import replace


def kernel_to_guarded(program: ir.Program) -> ir.Program:
    """The program whose loops are left at once where they would do nothing."""
    kernels = tuple(_guarded(program, kernel) for kernel in program.kernels)
    same = all(a is b for a, b in zip(kernels, program.kernels, strict=True))
    return program if same else replace(program, kernels=kernels)


def _guarded(program: ir.Program, kernel: ir.Kernel) -> ir.Kernel:
    needs, of_loops = needs_of(program, kernel)
    if needs:
        kernel = replace(kernel, needs=tuple(sorted(needs)))
    return with_body(kernel, _block(of_loops, needs, kernel.body)) if of_loops else kernel


def _block(needs: Mapping[int, Sizes], met: Sizes, block: ir.Block) -> ir.Block:
    out: list[ir.Statement] = []
    guard: tuple[Within, ...] = ()
    for s in block:
        is_deferred = isinstance(s, ir.For) and s.deferred is not None  # what packs asks for it
        further = NOTHING if is_deferred else needs.get(id(s), met) - met
        opened = {s.size} if isinstance(s, ir.For) else set()
        inner = s
        if isinstance(s, ThreadLoop) and s.vectors is not None:  # its loops stand in it twice
            further |= _all_needs(needs, s) - met
        else:
            inner = ir.map_blocks(s, partial(_block, needs, met | further | opened))
        within = tuple(Within(Affine(()), size) for size in sorted(further))
        if within and within == guard:
            out[-1] = ir.If(within, (*ir.blocks_of(out[-1])[0], inner))
        else:
            out.append(ir.If(within, (inner,)) if within else inner)
        guard = within
    return unless_same(block, out)


def _all_needs(needs: Mapping[int, Sizes], spread: ThreadLoop) -> Sizes:
    """The needs of the loops of a nest, all of whose statements are in the innermost one."""
    return NOTHING.union(
        *(needs.get(id(loop), NOTHING) for loop in ir.statements_within((spread,)))
    )
