"""Independent loops, whose iterations share nothing: each writes elements that no other touches.

Example:
    for i: for j: out[i,j] = t[j]      i and j are independent
    for k: for j: acc[j] += x[k,j]     j is, also with k around it; k is not
    for i: for j in 0..i: t[i,j] = t[j,i]    i is: the later of two iterations writes below the diagonal
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from math import gcd

from ilang.core.calculus.affine import Affine, Within, axis_index, canonical
from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import BufferId, LocalId
from ilang.core.ir.rewriting import reads_of

LATER = -1
"""The variable of how many iterations after the next one another one is."""


class Independence:
    """Statements of a kernel: how often they touch each buffer, and how far each loop variable goes."""

    def __init__(self, program: ir.Program, inside: Iterable[ir.Statement]) -> None:
        self.program = program
        self.touched: Counter[BufferId] = Counter()
        self.extents: dict[int, int | None] = {}
        self.last: dict[int, Affine] = {}
        self.triangles: set[int] = set()
        for s in inside:
            if isinstance(s, ir.For):
                self.extents[s.variable] = program.sizes[s.size].fixed
                self.last |= last_iteration(program, s)
                # Ends that dimensions give are no triangles; blocks and threads of a GPU share whole loops.
                if program.machine.device is None:
                    ends = (end for end in s.within if end.size is None and not end.index.sizes)
                    self.triangles |= {v for end in ends for v in end.index.variables()} - {
                        s.variable
                    }
                continue
            self.touched.update([buffer for buffer, _ in reads_of(s)])
            if isinstance(s, ir.Store):
                self.touched[s.buffer] += 1

    def holds(
        self, loop: ir.For, around: Iterable[int] = (), combined: Container[LocalId] = ()
    ) -> bool:
        """Whether no iteration of a loop touches what another one writes, whatever the variables ``around`` are.

        What accumulates in variables that are ``combined`` after the loop counts for nothing, nor does what is stored
        where the loop has one iteration alone.
        """
        inner = list(ir.statements_within(loop.body))
        several = (Within(Affine((), 1), loop.size),)
        once = [s for s in inner if isinstance(s, ir.If) and s.within == several]
        alone = {id(s) for each in once for s in ir.every(each.otherwise, ir.Store)}
        return self.all_hold((loop,), inner, around, combined, alone)

    def all_hold(
        self,
        loops: Sequence[ir.For],
        inner: Sequence[ir.Statement],
        around: Iterable[int] = (),
        combined: Container[LocalId] = (),
        alone: Container[int] = (),
    ) -> bool:
        """Whether it holds of each of some loops, the first one outermost, with the statements ``inner`` inside all.

        Stores whose identities are in ``alone`` are in one iteration.
        """
        defined = {s.variable for s in inner if isinstance(s, ir.Define)}
        inside = set(around)
        touched: dict[BufferId, list[tuple[Affine, ...]]] = {}
        written: dict[BufferId, list[tuple[Affine, ...]]] = {}
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
            if isinstance(s, ir.Store) and id(s) not in alone:
                touched.setdefault(s.buffer, []).append(s.index)
                written.setdefault(s.buffer, []).append(s.index)
        shared = [
            (stores, touched[b])
            for b, stores in written.items()
            if not self._is_own(b, len(touched[b]))
        ]
        for loop in reversed(loops):
            if not all(
                self._is_apart(loop, inside, indices)
                or self._never_meet(loop, inside, stores, indices)
                for stores, indices in shared
            ):
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

    def _never_meet(
        self,
        loop: ir.For,
        inside: set[int],
        stores: list[tuple[Affine, ...]],
        indices: list[tuple[Affine, ...]],
    ) -> bool:
        """Whether what an iteration of a loop over a triangle stores is apart from all that another one touches."""
        if loop.variable not in self.triangles:
            return False
        moving = {variable: self.last.get(variable) for variable in inside}
        after: dict[int, Affine] = {
            loop.variable: axis_index(loop.variable) + axis_index(LATER) + 1
        }
        return all(
            is_apart(one, other, moving, after)
            for store in stores
            for index in indices
            for one, other in ((store, index), (index, store))
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


def last_iteration(program: ir.Program, loop: ir.For) -> dict[int, Affine]:
    """The last iteration of a loop, by its variable: by the end that no dimension gives, or the extent; or nothing."""
    extent = program.sizes[loop.size].fixed
    limits = [] if loop.finite else loop.end.limits()
    ends = [end - 1 for end, step in limits if step == 1 and not end.sizes]
    ends += [] if extent is None else [Affine((), max(0, extent - 1))]
    return {loop.variable: ends[0]} if ends else {}


def apart_inside(
    program: ir.Program, loops: Sequence[ir.For], one: Sequence[Affine], other: Sequence[Affine]
) -> bool:
    """Whether no elements at two indices are the same, each index in any iteration of some loops."""
    moving: dict[int, Affine | None] = {loop.variable: None for loop in loops}
    for loop in loops:
        moving |= last_iteration(program, loop)
    return is_apart(one, other, moving, {})


def is_apart(
    one: Sequence[Affine],
    other: Sequence[Affine],
    moving: Mapping[int, Affine | None],
    further: Mapping[int, Affine],
) -> bool:
    """Whether no elements at two indices are the same.

    Args:
        one: an index.
        other: another one.
        moving: variables that each index has for itself, with their last iterations where these are known.
        further: what variables that both share are in the other one. No variable is negative.
    """
    for a, b in zip(one, other, strict=True):
        low, high = _range(a, moving)
        low_after, high_after = (end and end.substituted(further) for end in _range(b, moving))
        ends = ((low_after, high), (low, high_after))
        if any(start and end and (start - end - 1).is_natural() for start, end in ends):
            return True
    return False


def _range(
    index: Affine, moving: Mapping[int, Affine | None]
) -> tuple[Affine | None, Affine | None]:
    """The least and the greatest value of an index whatever variables that move are; None where not known."""
    below, most = _most(-index, moving), _most(index, moving)
    return below and -below, most


def _most(index: Affine, moving: Mapping[int, Affine | None]) -> Affine | None:
    """The greatest value of an index whatever variables that move are; None where it is not known."""
    while steps := moving.keys() & index.variables():
        variable = next(iter(steps))
        step, last = index.coefficient(variable), moving[variable]
        index = index.without((variable,))
        if 0 < step and last is None:
            return None
        index = index + step * last if 0 < step and last else index
    return None if index.looked else index


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
    return index.coefficient(variable), canonical(around - around.offset), index.offset, moving
