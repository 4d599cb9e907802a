"""Independent loops, whose iterations share nothing: each writes elements that no other touches.

Example:
    for i: for j: out[i,j] = t[j]      i and j are independent
    for k: for j: acc[j] += x[k,j]     j is, also with k around it; k is not
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from math import gcd

from ilang.core.calculus.affine import Affine
from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import BufferId, LocalId
from ilang.core.ir.rewriting import reads_of


class Independence:
    """Statements of a kernel: how often they touch each buffer, and how far each loop variable goes."""

    def __init__(self, program: ir.Program, inside: Iterable[ir.Statement]) -> None:
        """For the statements of a kernel, or of a part of one, at any depth, before anything is marked."""
        self.program = program
        self.touched: Counter[BufferId] = Counter()
        self.extents: dict[int, int | None] = {}
        for s in inside:
            if isinstance(s, ir.For):
                self.extents[s.variable] = program.sizes[s.size].fixed
                continue
            self.touched.update([buffer for buffer, _ in reads_of(s)])
            if isinstance(s, ir.Store):
                self.touched[s.buffer] += 1

    def holds(
        self, loop: ir.For, around: Iterable[int] = (), combined: Container[LocalId] = ()
    ) -> bool:
        """Whether no iteration of a loop touches what another one writes, whatever the variables ``around`` are.

        What accumulates in variables that are ``combined`` after the loop counts for nothing.
        """
        inner = list(ir.statements_within(loop.body))
        return self.all_hold((loop,), inner, around, combined)

    def all_hold(
        self,
        loops: Sequence[ir.For],
        inner: Sequence[ir.Statement],
        around: Iterable[int] = (),
        combined: Container[LocalId] = (),
    ) -> bool:
        """Whether it holds of each of some loops, the first one outermost, with the statements ``inner`` inside all."""
        defined = {s.variable for s in inner if isinstance(s, ir.Define)}
        inside = set(around)
        touched: dict[BufferId, list[tuple[Affine, ...]]] = {}
        written = set()
        for s in inner:
            if isinstance(s, ir.For):
                inside.add(s.variable)
                continue
            if isinstance(s, ir.Change) and s.variable in combined:
                continue
            if isinstance(s, (ir.Change, ir.HorizontalReduction)) and s.variable not in defined:
                return False
            for buffer, index in reads_of(s):
                touched.setdefault(buffer, []).append(index)
            if isinstance(s, ir.Store):
                touched.setdefault(s.buffer, []).append(s.index)
                written.add(s.buffer)
        shared = [each for b in written if not self._is_own(b, len(each := touched[b]))]
        for loop in reversed(loops):
            if not all(self._is_apart(loop, inside, indices) for indices in shared):
                return False
            inside.add(loop.variable)
        return True

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
        step, least, most, large = parts[0].coefficient(variable), 0, 0, 0
        if step < 1:
            return False
        places = [_split(part, variable, inside) for part in dict.fromkeys(parts)]
        for its_step, its_same, offset, moving in places:
            if (its_step, its_same) != (step, places[0][1]):
                return False
            low = high = offset - places[0][2]
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
    index = index.merged()
    around = index.without({variable, *inside})
    moving = [(c, number) for c, number in index.steps() if number in inside]
    return index.coefficient(variable), (around - around.offset).canonical(), index.offset, moving
