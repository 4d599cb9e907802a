"""Mark the loops whose iterations several threads may share.

Example:
    in:   for n                     out:  for n in parallel
            for y                           for y in parallel
              for c: out[n,y,c] = ..          for c: out[n,y,c] = ..

Iterations are independent where each writes elements that no other touches. Several loops of a nest may be marked:
which of them threads share is decided when the program runs, from extents; it never changes a result. A loop around
others is marked, and one that is all there is inside the loops around it: threads have nothing to gain from the short
loops inside.

The role ``p`` of a schedule marks its loop wherever it stands, and then no other loop of the kernel is marked; a loop
with another role is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import gcd, prod

from ilang.core.ir.affine import Affine
from ilang.core.ir.cpu import Transpose
from ilang.core.ir.kernel import (
    Change,
    Define,
    Fold,
    For,
    If,
    Kernel,
    Program,
    Statement,
    Store,
    Tile,
    map_blocks,
    statements_within,
)
from ilang.core.passes.rewriting import accesses
from ilang.core.record import replace


def kernel_to_threads(program: Program) -> Program:
    """The program with its parallel loops marked."""
    kernels = tuple(
        replace(kernel, body=_Marking(program, kernel).block(kernel.body, 0, True))
        for kernel in program.kernels
    )
    return replace(program, kernels=kernels)


class _Marking:
    """One kernel: how often it touches each buffer, and how far each loop variable goes."""

    def __init__(self, program: Program, kernel: Kernel) -> None:
        self.program = program
        self.touched = Counter(buffer for buffer, _ in accesses(kernel.body))
        found = statements_within(kernel.body)
        loops = [s for s in found if isinstance(s, For)]
        self.extents = {s.variable: program.sizes[s.size].fixed for s in loops}
        self.asked = any(loop.role == "p" for loop in loops)

    def block(self, block: Sequence[Statement], level: int, alone: bool) -> tuple[Statement, ...]:
        """A block with marks; ``level`` loops around it are marked, and ``alone`` says that they hold nothing else."""
        out: list[Statement] = []
        for s in block:
            if isinstance(s, If):
                out.append(map_blocks(s, lambda block: self.block(block, level, False)))
            elif isinstance(s, For) and s.lanes == 1:
                out.append(self._loop(s, level, alone))
            else:
                out.append(s)
        return tuple(out)

    def _loop(self, loop: For, level: int, alone: bool) -> For:
        once = self.program.sizes[loop.size].fixed == 1
        wanted = level < self.program.machine.threads.levels and loop.role == (
            "p" if self.asked else ""
        )
        mark = (
            wanted
            and not once
            and loop.stretch is None
            and self._pays(loop, alone)
            and self._is_independent(loop)
        )
        if not (mark or once or self.asked):
            return loop  # what is inside is done by whoever does this loop
        body = self.block(loop.body, level + mark, alone and len(loop.body) == 1)
        return replace(loop, body=body, parallel=mark)

    def _pays(self, loop: For, alone: bool) -> bool:
        """Whether a loop may have much to do."""
        if not alone and not any(isinstance(s, (For, Tile, Transpose)) for s in loop.body):
            return False
        least = self.program.machine.threads.least_iterations
        return any(
            None in extents or least <= prod(extent or 0 for extent in extents)
            for extents in self._nests(loop)
        )

    def _nests(self, loop: For) -> Iterator[list[int | None]]:
        """The extents of every chain of loops from a loop down."""
        stack: list[tuple[Statement, list[int | None]]] = [(loop, [])]
        while stack:
            s, around = stack.pop()
            opened = (s,) if isinstance(s, For) else s.blocks if isinstance(s, Tile) else ()
            here = [*around, *(self.extents[inner.variable] for inner in opened)]
            inside = s.body if isinstance(s, (For, If, Tile)) else ()
            inside = (s.loops,) if isinstance(s, Transpose) else inside
            yield here
            stack.extend((inner, here) for inner in inside)

    def _is_independent(self, loop: For) -> bool:
        """Whether no iteration of a loop touches what another one writes."""
        own = {s.variable for s in statements_within(loop.body) if isinstance(s, Define)}
        for s in statements_within(loop.body):
            if isinstance(s, (Change, Fold)) and s.variable not in own:
                return False
        touched: dict[int, list[tuple[Affine, ...]]] = {}
        for buffer, index in accesses(loop.body):
            touched.setdefault(buffer, []).append(index)
        written = {s.buffer for s in statements_within(loop.body) if isinstance(s, Store)}
        inside = {s.variable for s in statements_within(loop.body) if isinstance(s, For)}
        return all(
            self._is_own(buffer, len(touched[buffer]))
            or self._is_apart(loop, inside, touched[buffer])
            for buffer in written
        )

    def _is_own(self, buffer: int, touched: int) -> bool:
        """Whether a buffer belongs to an iteration: it is private, and nothing outside the loop touches it."""
        return self.program.buffers[buffer].private and touched == self.touched[buffer]

    def _is_apart(self, loop: For, inside: set[int], indices: list[tuple[Affine, ...]]) -> bool:
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
    """The step of a variable, what is the same in all its iterations, the offset, and the terms that move inside."""
    terms: Counter[int] = Counter()
    for coefficient, number in index.terms:
        terms[number] += coefficient
    moving = [(c, number) for number, c in terms.items() if number in inside and c]
    same = sorted((n, c) for n, c in terms.items() if n not in inside and n != variable and c)
    return terms[variable], (same, sorted(index.sizes)), index.offset, moving
