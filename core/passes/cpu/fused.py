"""Fuse loops that follow each other where the second reads what the first wrote in the same iteration.

Example:
    in:   for j: t[j] = exp(in0[j])              out:  acc = 0
          acc = 0                                      for j
          for j: acc += t[j]                             t_j = exp(in0[j])
                                                         t[j] = t_j
                                                         acc += t_j

An element that an iteration stores and then reads is kept in a scalar variable, and a temporary that nothing else reads
is not stored. Values do not change. Transposing copies are statements at this point, and are not fused.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.calculus.affine import Affine, axis_index
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile
from ilang.core.ir.ids import VariableId
from ilang.core.ir.rewriting import accesses, parts_of, substituted, unless_same
from ilang.core.ir.scalar import Apply, Load, Local
from ilang.core.passes.cpu.accumulations import accumulations, short_sizes
from ilang.core.passes.forwarding import Forwarding, buffer_names, stores_of, without_unread
from ilang.core.record import replace


def kernel_to_fused(program: ir.Program) -> ir.Program:
    """The program with loops fused, and without temporaries that need no memory."""
    names, short = buffer_names(program), short_sizes(program)
    kernels = [_LoopFuser(program, kernel, names, short).run() for kernel in program.kernels]
    return without_unread(replace(program, kernels=tuple(kernels)))


class _LoopFuser(Forwarding):
    """Loop fusion in one kernel, whose blocks are traversed from the outside in."""

    def __init__(
        self, program: ir.Program, kernel: ir.Kernel, names: frozenset[str], short: set[int]
    ) -> None:
        super().__init__(program, kernel, names)
        self.short = short

    def run(self) -> ir.Kernel:
        """The kernel, merged."""
        body = self._block(self.kernel.body)
        if body is self.kernel.body:
            return self.kernel
        return replace(self.kernel, body=body, locals=tuple(self.locals))

    def _block(self, body: ir.Block) -> ir.Block:
        out: list[ir.Statement] = []
        at: int | None = None  # where a loop stands that only definitions follow
        for s in body:
            fused = None
            if at is not None and isinstance(s, ir.For):
                first = out[at]
                assert isinstance(first, ir.For)
                fused = self._fused(first, s, out[at + 1 :])
            if at is not None and fused is not None:
                out[at:] = [*out[at + 1 :], fused]
            else:
                out.append(ir.map_blocks(s, self._block) if isinstance(s, (ir.For, ir.If)) else s)
            if isinstance(s, ir.For):
                at = len(out) - 1
            elif not isinstance(s, ir.Define):
                at = None
        return unless_same(body, list(self.forwarded(out)))

    def _fused(
        self, first: ir.For, second: ir.For, between: Sequence[ir.Statement]
    ) -> ir.For | None:
        """Two loops as one, after the definitions between them; None where they stay two."""
        instead = {second.variable: axis_index(first.variable)}
        if (second.begin, second.end, second.role) != (first.begin, first.end, first.role):
            return None
        body = tuple(substituted(s, instead) for s in second.body)
        if not _is_plain(first) or not _is_plain(second):
            return None
        if _has_lanes(first) and not _is_innermost(second):
            return None
        if self._waits(first) != self._waits(second):
            return None
        names = {self.kernel.names[s.variable] for s in ir.every(body, ir.For)}
        if self.kernel.names[first.variable] in names:
            return None
        if not _may_meet(first.variable, first.body, body):
            return None
        written, changed = stores_of(first.body), _changed(first.body)
        for s in (*between, *body):
            for inner in ir.statements_within([s]):
                if any(isinstance(p, Local) and p.variable in changed for p in parts_of(inner)):
                    return None
        if any(isinstance(p, Load) and p.buffer in written for s in between for p in parts_of(s)):
            return None
        count = len(self.locals)
        merged = replace(first, body=self._block((*first.body, *body)))
        if any(accumulations(s, self.short) for s in (first, second)) and not accumulations(
            merged, self.short
        ):
            self.taken.difference_update(local.name for local in self.locals[count:])
            del self.locals[count:]
            return None
        return merged

    def _waits(self, loop: ir.For) -> bool:
        """Whether an iteration of an innermost loop needs what the one before it made, so that it cannot have lanes."""
        if not _is_innermost(loop):
            return False
        changes = {s.variable for s in accumulations(loop, self.short)}
        return any(
            (isinstance(s, ir.Change) and s.variable not in changes)
            or (isinstance(s, ir.Store) and not _depends(s.index, loop.variable))
            for s in ir.statements_within(loop.body)
        )


def _is_innermost(loop: ir.For) -> bool:
    """Whether a loop has none inside, so that its iterations may be those of lanes."""
    return not any(isinstance(s, ir.For) for s in ir.statements_within(loop.body))


def _has_lanes(loop: ir.For) -> bool:
    """Whether a loop computes something in its iterations, which are those of lanes."""
    computes = any(isinstance(p, Apply) for s in loop.body for p in parts_of(s))
    return computes and _is_innermost(loop)


def _depends(index: Sequence[Affine], variable: int) -> bool:
    return any(variable in part.axes() for part in index)


def _is_plain(loop: ir.For) -> bool:
    """Whether a loop may be changed: it is not in blocks, and has no register tile."""
    inner = list(ir.statements_within([loop]))
    return not any(
        isinstance(s, Tile) or (isinstance(s, ir.For) and s.chunk is not None) for s in inner
    )


def _may_meet(variable: int, first: Sequence[ir.Statement], second: Sequence[ir.Statement]) -> bool:
    """Whether the second body reads what the first wrote, and nothing that another iteration touches."""
    before, after = list(accesses(first)), list(accesses(second))
    written, rewritten = stores_of(first), stores_of(second)
    opened = {s.variable for s in ir.every([*first, *second], ir.For)}
    read = {buffer for buffer, _ in after} - rewritten
    if not read & written:
        return False
    for buffer in written | rewritten:
        indices = [index for number, index in (*before, *after) if number == buffer]
        if {number for number, _ in before} & {number for number, _ in after} >= {buffer} and not (
            _is_apart(variable, indices, opened)
        ):
            return False
    return True


def _is_apart(
    variable: int, indices: Sequence[tuple[Affine, ...]], opened: set[VariableId]
) -> bool:
    """Whether each iteration has elements of its own: some dimension is walked alike, by the loop alone."""
    for alike in zip(*indices, strict=True):
        variables = alike[0].variables()
        plain = not alike[0].looked and not variables & opened
        if len(set(alike)) == 1 and variable in variables and plain:
            return True
    return False


def _changed(body: Sequence[ir.Statement]) -> set[int]:
    return {
        s.variable
        for s in ir.statements_within(body)
        if isinstance(s, (ir.Change, ir.HorizontalReduction))
    }
