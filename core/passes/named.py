"""Name the numbers of kernels: tiles, threads, rows of copies; and number loops that passes added as those around them.

Example, of i:2:16:4,k:8:16 with i:p,i'':t, and of a copy in squares:
    in:   spread i over blocks of 256 threads       out:  the same with THREADS_I = 16, PER_THREAD_I = 4,
            a[128i+64i1+4i2+i3,...]                         STRIP_I = THREADS_I * PER_THREAD_I, STRIPS_I = 2,
            spread k2s over the threads                     TILE_I = STRIPS_I * STRIP_I;
                                                            TILE_K = 16, BLOCK_K = 8 * TILE_K
              copy[k2s,128i+64i1+4i2+i3]                    spread k2 over the threads

A name says what one more of a loop variable moves an index on: ``TILE_X`` is what a block computes of an axis, or what
of it is in fast memory at a time, ``PER_THREAD_X`` the elements that a thread has side by side, ``STRIP_X`` those of
all threads, ``BLOCK_X`` several tiles. The iterations of a loop are named by what they add up to, those that threads
share ``THREADS_X``, the strips of a thread ``STRIPS_X``. A row of a copy has a name where loops go along it in steps
that are named, and it is as long as something named, or a little longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod

from ilang.core.calculus.affine import Affine
from ilang.core.ir.gpu import THREADS, ThreadLoop
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.kernel import AxisPart, Block, Constant, For, Kernel, Program, blocks_of, every
from ilang.core.ir.rewriting import accesses
from ilang.core.record import replace

MOST_PADDING = 0.25
"""The part of what a row holds by which it may be longer."""


def kernel_to_named(program: Program) -> Program:
    """The program whose kernels have constants, and loops with short names."""
    kernels = tuple(_named(program, kernel) for kernel in program.kernels)
    is_same = all(one is other for one, other in zip(kernels, program.kernels, strict=True))
    return program if is_same else replace(program, kernels=kernels)


def _named(program: Program, kernel: Kernel) -> Kernel:
    """The kernel with names; itself where none is new."""
    named = _Naming(program, replace(kernel, names=_Scopes(kernel).names())).run()
    return kernel if named == kernel else named


class _Scopes:
    """The names of loop variables that passes added: those they were made of, or the next number of the axis."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.beside: dict[VariableId, set[VariableId]] = {}
        self._walk(kernel.body, ())

    def _walk(self, body: Block, around: tuple[VariableId, ...]) -> None:
        for s in body:
            loops = (s,) if isinstance(s, For) else s.loops if isinstance(s, ThreadLoop) else ()
            inside = (*around, *(loop.variable for loop in loops))
            for n, variable in enumerate(inside):
                if len(around) <= n:
                    self.beside.setdefault(variable, set()).update(inside[:n])
                    for outer in inside[:n]:
                        self.beside[outer].add(variable)
            for block in blocks_of(s):
                self._walk(block, inside)

    def names(self) -> tuple[str, ...]:
        """The names of all variables."""
        names = list(self.kernel.names)
        for number, part in enumerate(self.kernel.parts):
            if part is None or part[2] is None:
                continue
            taken = {names[other] for other in self.beside.get(VariableId(number), ())}
            names[number] = next(each for each in _candidates(names, *part) if each not in taken)
        return tuple(names)


def _candidates(
    names: Sequence[str], axis: str, _: int, origin: VariableId | None
) -> Iterator[str]:
    """The names that a variable may have, the best first."""
    assert origin is not None
    yield names[origin]
    yield from (f"{axis}{n}" for n in range(1, len(names) + 2))


class _Naming:
    """The constants of one kernel."""

    def __init__(self, program: Program, kernel: Kernel) -> None:
        self.program = program
        self.kernel = kernel
        self.spread = next(iter(every(kernel.body[:1], ThreadLoop)), None)
        """The threads of a kernel of a GPU."""
        shared = [loop for s in every(kernel.body, ThreadLoop) for loop in s.loops]
        self.loops = list(every(kernel.body, For))
        self.extents: dict[VariableId, set[int | None]] = {}
        """The iterations of loops over each variable, where they are known."""
        for loop in self.loops:
            self.extents.setdefault(loop.variable, set()).add(program.sizes[loop.size].fixed)
        self.serial = [loop for loop in self.loops if not any(loop is each for each in shared)]
        """The loops that each thread runs by itself."""
        self.blocks: set[VariableId] = set()
        if self.spread is not None and self.spread.over in ("blocks", "warps"):
            self.blocks = {loop.variable for loop in self.spread.loops}
        self.named: dict[str, Constant] = {}
        self.steps: dict[VariableId, str] = {}
        self.counts: dict[VariableId, str] = {}

    def run(self) -> Kernel:
        """The kernel with all of them."""
        axes: dict[str, dict[int, list[VariableId]]] = {}
        for number, part in enumerate(self.kernel.parts):
            variable = VariableId(number)
            if part is not None and part[1] and variable in self.extents:
                axes.setdefault(part[0], {}).setdefault(part[1], []).append(variable)
        for axis, levels in axes.items():
            self._axis(axis.upper(), sorted(levels.items()))
        for number, part in enumerate(self.kernel.parts):
            if part is not None and part[2] in self.steps:
                self.steps[VariableId(number)] = self.steps[part[2]]
        self._threads()
        return replace(
            self.kernel,
            constants=tuple(self.named.values()),
            levels=tuple(
                (variable, self.steps.get(variable, ""), self.counts.get(variable, ""))
                for variable in self.steps | self.counts
            ),
            rows=tuple(self._rows()),
        )

    def _axis(self, axis: str, levels: Sequence[tuple[int, Sequence[VariableId]]]) -> None:
        """The constants of an axis, by the steps of its loops and their variables from the innermost ones on."""
        among_threads, is_tiled = False, False
        for (under, inner), (step, outer) in pairwise(levels):
            if step % under:
                return
            shared = not self._is_alone(inner, step // under)
            among_threads |= shared
            if shared and 1 < under:
                self._add(self.counts, inner, f"THREADS_{axis}", (step // under,))
            if self.blocks.intersection(outer):
                word = "TILE"
            elif not self._is_alone(outer, next((s // step for s, _ in levels if step < s), None)):
                word = "PER_THREAD"
            elif among_threads:
                word = "STRIP"
            else:
                word, is_tiled = "BLOCK" if is_tiled else "TILE", True
            self._count_strips(axis, inner, step // under)
            factors = self.counts.get(inner[0], step // under), self.steps.get(inner[0], under)
            self._add(self.steps, outer, f"{word}_{axis}", tuple(f for f in factors if f != 1))
            if under == 1:
                self.counts |= {
                    each: self.steps[outer[0]] for each in inner if outer[0] in self.steps
                }
        last = levels[-1][1]
        counts = set[int | None]().union(*(self.extents[variable] for variable in last))
        if len(counts) == 1:
            self._count_strips(axis, last, counts.pop())

    def _count_strips(self, axis: str, variables: Sequence[VariableId], count: int | None) -> None:
        """The constant of the strips that a thread has, where loops over variables go over strips."""
        if count is not None and self.steps.get(variables[0], "").startswith("STRIP_"):
            self._add(self.counts, variables, f"STRIPS_{axis}", (count,))

    def _is_alone(self, variables: Sequence[VariableId], count: int | None) -> bool:
        """Whether a thread runs loops over variables by itself; those with another ``count`` are parts of the loops."""
        return self.spread is None or any(
            loop.variable in variables and count in (None, self.program.sizes[loop.size].fixed)
            for loop in self.serial
        )

    def _add(
        self,
        of: dict[VariableId, str],
        variables: Sequence[VariableId],
        name: str,
        factors: tuple[int | str, ...],
    ) -> None:
        """A constant for variables, unless another number has its name."""
        value = prod(self.named[f][1] if isinstance(f, str) else f for f in factors)
        if self.named.setdefault(name, (name, value, factors))[1] == value:
            of |= dict.fromkeys(variables, name)

    def _threads(self) -> None:
        """The threads of a block: those along axes, where these are all."""
        if self.spread is None:
            return
        count, factors = self.spread.threads, tuple[int | str, ...]()
        for s in every(self.spread.body, ThreadLoop):
            names = [self.counts.get(loop.variable, "") for loop in s.loops]
            along = all(name.startswith(f"{THREADS}_") for name in names)
            if names and along and prod(self.named[name][1] for name in names) == count:
                factors = tuple(names)
        self.named[THREADS] = THREADS, count, factors or (count,)

    def _rows(self) -> Iterator[tuple[BufferId, tuple[str, ...]]]:
        """The extents of buffers of a block or a thread, by the axes along which they are accessed."""
        words_of: dict[BufferId, list[str]] = {}
        for number, index in accesses(self.kernel.body):
            buffer = self.program.buffers[number]
            if not (buffer.space or buffer.private or buffer.role == "tile"):
                continue
            words = words_of.setdefault(number, [""] * len(index))
            for n, (size, part) in enumerate(zip(buffer.dims, index, strict=True)):
                words[n] = words[n] or self._row(self.program.sizes[size].fixed or 0, part)
        for number, words in words_of.items():
            if any(words):
                yield number, tuple(words)

    def _row(self, extent: int, part: Affine) -> str:
        """An extent by the name of what is along it, which may be a little shorter; "" of any other.

        An index that skips what lies between, as one of a thread's strips, has the name of what its loop counts.
        """
        axes = {self._part(variable)[0].upper() for variable in part.variables()}
        if not axes or "" in axes:
            return ""
        variable = next(iter(part.variables()))
        step = self._part(variable)[1]
        if len(axes) == 1 and step and part.coefficient(variable) != step:
            count = self.counts.get(VariableId(variable), "")
            return count if count and self.named[count][1] == extent else ""
        ending = THREADS if 1 < len(axes) else f"_{axes.pop()}"
        near = [(v, name) for name, v, _ in self.named.values() if name.endswith(ending)]
        value, name = max((each for each in near if each[0] <= extent), default=(0, ""))
        more = extent - value
        if MOST_PADDING * value < more:
            return ""
        return f"{name} + {more}" if more else name

    def _part(self, variable: int) -> AxisPart:
        """The part of an axis that a variable goes along; one without a name of any other variable."""
        parts = self.kernel.parts
        part = parts[variable] if variable < len(parts) else None
        return part or ("", 0, None)
