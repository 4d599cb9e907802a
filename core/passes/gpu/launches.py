"""Kernels in parts that are launched one after the other: nothing orders the threads of one launch.

Example:
    in:   k0   for i: for j: acc[j] += in0[i,j]      out:  k0_0   for i: for j: acc[j] += in0[i,j]
               for j: out[j] = acc[j]                      k0_1   for j: out[j] = acc[j]

A buffer outside of all loops is in the workspace, which all launches see. A scalar variable is not, so statements from
its definition to its last use stay in one launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, chain

from ilang.core.ir import kernel as ir
from ilang.core.ir.rewriting import named
from ilang.core.ir.scalar import Local, scalars_within
from ilang.core.record import replace


def with_launches(program: ir.Program) -> ir.Program:
    """The program with a kernel for each part."""
    parts = [tuple(_parts(program, kernel)) for kernel in program.kernels]
    first = [0, *accumulate(map(len, parts))]
    if first[-1] == len(parts):
        return program
    calls = tuple(
        replace(call, kernel=first[call.kernel] + number)
        for call in program.launched()
        for number in range(len(parts[call.kernel]))
    )
    return replace(program, kernels=tuple(chain.from_iterable(parts)), calls=calls)


def _parts(program: ir.Program, kernel: ir.Kernel) -> Iterator[ir.Kernel]:
    parts = list(_together(kernel.body))
    if len(parts) == 1:
        yield kernel
        return
    for number, body in enumerate(parts):
        written = {s.buffer for s in ir.every(body, ir.Store)}
        read = [program.buffers[n] for n in sorted(named(body) - written)]
        partial = [each.name for each in read if each.name.startswith(f"{each.tensor}_parts")]
        comments = (*kernel.comments, *(f"combines the parts in {name}" for name in partial))
        yield replace(kernel, name=f"{kernel.name}_{number}", body=body, comments=comments)


def _together(body: ir.Block) -> Iterator[ir.Block]:
    """Runs of statements that no scalar variable of their block leaves."""
    used = [set(_locals(s)) for s in body]
    last = {variable: n for n, variables in enumerate(used) for variable in variables}
    first, end = 0, 0
    for n, s in enumerate(body):
        if isinstance(s, ir.Define):
            end = max(end, last[s.variable])
        if n >= end:
            yield body[first : n + 1]
            first = end = n + 1


def _locals(s: ir.Statement) -> Iterator[int]:
    for inner in ir.statements_within((s,)):
        if isinstance(inner, (ir.Define, ir.Change, ir.HorizontalReduction)):
            yield inner.variable
        if isinstance(inner, (ir.Define, ir.Change, ir.Store)):
            yield from (
                part.variable for part in scalars_within(inner.value) if isinstance(part, Local)
            )
