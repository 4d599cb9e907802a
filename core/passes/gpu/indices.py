"""Say in which kernels 32 bits are enough for indices: for loops of known extents, or for all where arrays are small.

Example:
    in:   spread i in 0..n_i_16 and j in 0..n_j_16 over blocks      out:  the same, k of 32 bits;
            for k in 0..16: ... a[16i+i1,k], b[k,16j+j1]                  i and j, too, where n_i, n_j and n_i_16·n_j_16
                                                                          are below 2^29

A thread divides and multiplies 32-bit integers in few instructions, and has more registers for its sums. The condition
is on the number of elements of each array that a kernel accesses, and on the number of iterations that its threads
count together, since no index is more than a few times as large. An index that is a value, or one with a large stride,
has 64 bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

from ilang.core.calculus.affine import Affine, size_value
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.kernel import For, If, Kernel, Program, every, statements_within
from ilang.core.ir.rewriting import accesses, parts_of
from ilang.core.ir.scalar import Position, Select
from ilang.core.record import replace

MOST_TIMES = 3
"""Extents known at run time that an index may have as factors: as large as is tested, each, and below 2^31 all."""
MOST_BESIDE = 1 << 20
"""The product of all other factors, known extents and numbers, at most."""

Span = tuple[int, ...]


def kernel_to_indices(program: Program) -> Program:
    """The program whose kernels say so."""
    kernels = tuple(
        replace(each, narrow=_is_narrow(program, each), spans=_Spans(program, each).all())
        for each in program.kernels
    )
    return program if kernels == program.kernels else replace(program, kernels=kernels)


def _is_narrow(program: Program, kernel: Kernel) -> bool:
    """Whether no sum of variables of 32 bits is too large, in an index or in the number of an element."""
    device = program.machine.gpu()
    inside = list(statements_within(kernel.body))
    touched = list(accesses(kernel.body))
    if any(isinstance(part, Position) for s in inside for part in parts_of(s)):
        return False
    if any(part.looked or part.sizes for _, index in touched for part in index):
        return False
    extents = [program.sizes[loop.size].fixed or 0 for loop in _loops(kernel)]
    counts = [_known(program, number) for number in {number for number, _ in touched}]
    return all(count < device.narrow_elements for count in (*extents, *counts))


def _known(program: Program, number: int) -> int:
    """The elements of a buffer along its last dimensions, as far as their extents are known."""
    elements = 1
    for size in reversed(program.buffers[number].dims):
        fixed = program.sizes[size].fixed
        if fixed is None:
            break
        elements *= max(1, fixed)
    return elements


def _loops(kernel: Kernel) -> list[For]:
    inside = list(statements_within(kernel.body))
    spread = [loop for s in inside if isinstance(s, ThreadLoop) for loop in s.loops]
    return [*(s for s in inside if isinstance(s, For)), *spread]


class _Spans:
    """One kernel: the products of extents that have to be small for all of its indices to be of 32 bits."""

    def __init__(self, program: Program, kernel: Kernel) -> None:
        self.program = program
        self.kernel = kernel
        self.loops = _loops(kernel)
        self.sizes: dict[int, int] = {loop.variable: loop.size for loop in self.loops}
        self.parts = program.parts()

    def all(self) -> tuple[Span, ...] | None:
        """The products, each as its sizes; None where that is not enough.

        A part of an extent stands for the extent: it has no more iterations.
        """
        spans: set[Span] = {(loop.size,) for loop in self.loops}
        for form in self._forms():
            of_form = None if form is None else self._of(form)
            if of_form is None:
                return None
            spans |= of_form
        for s in every(self.kernel.body, ThreadLoop):
            spans.add(tuple(sorted(loop.size for loop in s.loops)))
        for number, _ in accesses(self.kernel.body):
            spans.add(tuple(sorted(self.program.buffers[number].dims)))
        spans = {tuple(sorted(map(self._whole, span))) for span in spans}
        device = self.program.machine.gpu()
        if any(device.narrow_elements <= self._least(span) for span in spans):
            return None
        unknown = {s for s in spans if any(self.program.sizes[n].fixed is None for n in s)}
        others = {s: [Counter(t) for t in unknown if t != s] for s in unknown}
        return tuple(sorted(s for s in unknown if not any(Counter(s) <= t for t in others[s])))

    def _whole(self, size: int) -> int:
        return self.parts[size][0] if size in self.parts else size

    def _least(self, span: Span) -> int:
        return prod(max(1, self.program.sizes[number].fixed or 1) for number in span)

    def _forms(self) -> Iterator[Affine | None]:
        """Every index of the kernel; None for one that is a value."""
        for _, index in accesses(self.kernel.body):
            yield from index
        for loop in self.loops:
            for bound in loop.within:
                if bound.size is None:
                    end, step = bound.limit(loop.variable)
                    yield end + step
                else:
                    yield bound.index.without((loop.variable,))
                    yield size_value(bound.size)
        for s in statements_within(self.kernel.body):
            within = list(s.within) if isinstance(s, If) else []
            for part in parts_of(s):
                yield from (None,) if isinstance(part, Position) else ()
                within += part.within if isinstance(part, Select) else ()
            for each in within:
                yield each.index
                yield from () if each.size is None else (Affine((), sizes=((1, each.size),)),)

    def _of(self, form: Affine) -> set[Span] | None:
        """The extents that an index is a sum of; None where it may be many times as large, or is looked up."""
        named = [(c, self.sizes[variable]) for c, variable in form.steps()] + [*form.sizes]
        times, beside, spans = 0, abs(form.offset), set[Span]()
        for c, size in named:
            fixed, part = self.program.sizes[size].fixed, self.parts.get(size)
            if fixed is not None:
                beside += abs(c) * fixed
            elif part is not None and abs(c) <= part[1]:
                times, beside = times + 1, beside + part[1]
                spans.add((part[0],))
            else:
                times += abs(c)
                spans.add((size,))
        if form.looked or times > MOST_TIMES or beside > MOST_BESIDE:
            return None
        return spans
