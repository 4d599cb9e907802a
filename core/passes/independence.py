"""Independent loops, whose iterations share nothing: each writes elements that no other touches.

Example:
    for i: for j: out[i,j] = t[j]      i and j are independent
    for k: for j: acc[j] += x[k,j]     j is, also with k around it; k is not
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import gcd

from ilang.core.calculus.affine import Affine
from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import reads_of


class Independence:
    """One kernel: how often it touches each buffer, and how far each loop variable goes."""

    def __init__(self, program: ir.Program, kernel: ir.Kernel) -> None:
        """For a kernel of a program, before anything is marked."""
        self.program = program
        inside = list(ir.statements_within(kernel.body))
        self._reads = {id(s): (s, list(reads_of(s))) for s in inside}
        self.touched = Counter(buffer for s in inside for buffer, _ in self._reads[id(s)][1])
        self.touched.update(s.buffer for s in inside if isinstance(s, ir.Store))
        loops = [s for s in inside if isinstance(s, ir.For)]
        self.extents: dict[int, int | None] = {
            s.variable: program.sizes[s.size].fixed for s in loops
        }

    def holds(self, loop: ir.For, around: Iterable[int] = ()) -> bool:
        """Whether no iteration of a loop touches what another one writes, whatever the variables ``around`` are."""
        inner = tuple(ir.statements_within(loop.body))
        defined = {s.variable for s in inner if isinstance(s, ir.Define)}
        if any(
            isinstance(s, (ir.Change, ir.HorizontalReduction)) and s.variable not in defined
            for s in inner
        ):
            return False
        touched: dict[int, list[tuple[Affine, ...]]] = {}
        written = set()
        for s in inner:
            known = self._reads.get(
                id(s)
            )  # a kernel's loops are all asked about: most statements again
            reads = reads_of(s) if known is None or known[0] is not s else known[1]
            for buffer, index in reads:
                touched.setdefault(buffer, []).append(index)
            if isinstance(s, ir.Store):
                touched.setdefault(s.buffer, []).append(s.index)
                written.add(s.buffer)
        inside = {s.variable for s in inner if isinstance(s, ir.For)} | set(around)
        return all(
            self._is_own(buffer, len(touched[buffer]))
            or self._is_apart(loop, inside, touched[buffer])
            for buffer in written
        )

    def _is_own(self, buffer: BufferId, touched: int) -> bool:
        """Whether a buffer belongs to an iteration: it is private, and nothing outside the loop touches it."""
        described = self.program.buffers[buffer]
        is_private = described.private and touched == self.touched[buffer]
        return is_private or described.space == "local"

    def _is_apart(self, loop: ir.For, inside: set[int], indices: list[tuple[Affine, ...]]) -> bool:
        """Whether accesses of distinct iterations are of distinct elements: some dimension tells them apart."""
        return any(
            self._tells_apart(loop.variable, inside, [index[d] for index in indices])
            for d in range(len(indices[0]))
        )

    def _tells_apart(self, variable: int, inside: set[int], parts: list[Affine]) -> bool:
        """Whether the indices along one dimension differ wherever the variable does.

        An index is step * variable + what stays the same + small steps that stay below one step + large steps, all
        multiples of more than the variable and the small ones reach.
        """
        first = _split(parts[0], variable, inside)
        step, same, _, _ = first
        if step < 1:
            return False
        least, most, large = 0, 0, 0
        for part in parts:
            its_step, its_same, offset, moving = _split(part, variable, inside)
            if (its_step, its_same) != (step, same):
                return False
            low = high = offset - first[2]
            for coefficient, moved in moving:
                extent = self.extents[moved]
                if step <= abs(coefficient) and coefficient % step == 0:
                    large = gcd(large, coefficient)
                elif extent is None:
                    return False
                else:
                    low += min(0, coefficient * max(0, extent - 1))
                    high += max(0, coefficient * max(0, extent - 1))
            least, most = min(least, low), max(most, high)
        if step <= most - least:
            return False
        extent = self.extents[variable]
        return not large or (extent is not None and step * extent <= large)


def _split(
    index: Affine, variable: int, inside: set[int]
) -> tuple[int, object, int, list[tuple[int, int]]]:
    """The step of a variable, what is the same in all its iterations, the offset, and the terms that move inside.

    The step is 0 where an index is looked up by what moves.
    """
    if index.rests_on() & {variable, *inside}:
        return 0, None, 0, []
    around = index.without({variable, *inside})
    moving = [(c, number) for c, number in index.merged().steps() if number in inside]
    return index.coefficient(variable), (around - around.offset).canonical(), index.offset, moving
