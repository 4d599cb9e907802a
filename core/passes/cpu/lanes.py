"""Vectorize the innermost loop of a reduction: partial results, a lane each, that do not wait for each other.

Example:
    in:   acc = 0
          for k: acc += f64(in0[k] * in1[k])
    out:  acc = 0
          for k in 0..n_k_2048
            partial = 0 in each of 16 lanes
            for k1 in 0..min(2048, n_k - 2048k) in 16 lanes: partial += in0[2048k+k1] * in1[2048k+k1]
            fold the lanes of partial with add
            acc += f64(partial)

The role ``v`` of a schedule asks for this; by default the innermost loop is vectorized if all of its accesses have unit
stride. Iteration k goes to lane ``k % 16``, or ``k % 32`` for long sums, maxima and minima. Lanes are combined
pairwise, so the result depends on the extent alone, not on the machine. A lane of an f32 sum adds few terms before the
partial sums are added in f64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ilang.core.calculus.affine import Affine, axis_index, size_value
from ilang.core.calculus.extent import ZERO, bounds, parts
from ilang.core.calculus.extent import size as size_of
from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import LocalId, VariableId
from ilang.core.ir.rewriting import chain_of, substituted, unless_same
from ilang.core.ir.scalar import Apply, Constant, Convert, Local, Scalar
from ilang.core.ir.shaped import Size
from ilang.core.names import Names
from ilang.core.passes.cpu.accumulations import accumulations, short_sizes
from ilang.core.passes.cpu.extremes import Extreme, extreme_buffers, extremes
from ilang.core.passes.fixed_sizes import FixedSizes
from ilang.core.passes.scope import fresh
from ilang.core.record import replace

TERMS = 128
"""Terms of an f32 sum that each partial result takes before they are added in f64: the sum stays within 1e-5 of
the exact one, relative to the sum of sizes."""
LONG = 2 * TERMS
"""Terms of a row of a nest from which lanes of its own, folded at its end, take less time than conversions to f64."""


def kernel_to_lanes(program: ir.Program) -> ir.Program:
    """The program with lanes where they are allowed and pay."""
    return _Lanes(program).run()


class _Lanes:
    """One program: its sizes grow by the parts of loops that are split."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.chunk = TERMS * program.machine.sum_lanes
        self.short = short_sizes(program)
        self.sizes = list(program.sizes)
        self.fixed = FixedSizes(self.sizes)
        self.counts = list(program.counts)
        self.names = Names(frozenset(size.name for size in program.sizes))
        self.chunks = {
            whole: size
            for size, (whole, step) in reversed(program.parts().items())
            if step == self.chunk
        }
        self.buffer_names = frozenset(buffer.name for buffer in program.buffers)
        self.variables: list[str] = []
        self.locals: list[ir.Variable] = []
        self.taken: set[str] = set()
        self.serial: dict[str, int] = {}
        self.extremes: Mapping[LocalId, Extreme] = {}

    def run(self) -> ir.Program:
        """The program with lanes."""
        kernels = tuple(self._kernel(kernel) for kernel in self.program.kernels)
        buffers = [*self.program.buffers]
        for number, extreme in extreme_buffers(self.program).items():
            buffers[number] = replace(buffers[number], ordered=extreme)
        return replace(
            self.program,
            kernels=kernels,
            buffers=tuple(buffers),
            sizes=tuple(self.sizes),
            counts=tuple(self.counts),
        )

    def _kernel(self, kernel: ir.Kernel) -> ir.Kernel:
        self.variables, self.locals = list(kernel.names), list(kernel.locals)
        self.taken = {*kernel.names, *(local.name for local in kernel.locals)}
        self.serial = {}
        self.extremes = extremes(kernel.body)
        body = self._block(kernel.body, None)
        for variable, primitive in self.extremes.items():
            if self.locals[variable].lanes == 1:
                self.locals[variable] = replace(self.locals[variable], ordered=primitive)
        if body is kernel.body and not self.extremes:
            return kernel
        return replace(kernel, body=body, names=tuple(self.variables), locals=tuple(self.locals))

    def _block(self, body: ir.Block, around: VariableId | None) -> ir.Block:
        """A block with lanes: each accumulator defined in it and the nest that changes it, together.

        ``around`` is the variable of the loop whose block it is.
        """
        out: list[ir.Statement] = []
        defined: set[int] = set()
        beside = around is not None and 1 < sum(isinstance(s, ir.For) for s in body)
        for s in body:
            changes = accumulations(s, self.short) if isinstance(s, ir.For) else ()
            if isinstance(s, ir.Define) and s.mutable:
                defined.add(s.variable)
            if isinstance(s, ir.If):
                out.append(ir.map_blocks(s, lambda block: self._block(block, around)))
            elif not isinstance(s, ir.For):
                out.append(s)
            elif not changes or any(c.variable not in defined for c in changes):
                out.append(ir.map_blocks(s, partial(self._block, around=s.variable)))
            else:
                if all(c.variable in self.extremes for c in changes):
                    out.append(s)
                    continue
                sums = self._sums(s, changes)
                lanes = self._lane_count(s, changes, sums)
                others = [c for c in changes if c not in sums]
                for c in others:
                    defined.remove(c.variable)
                    self.locals[c.variable] = replace(self.locals[c.variable], lanes=lanes)
                out += self._summed(s, sums, lanes, beside)
                out += [_horizontal(c, lanes) for c in others]
        return unless_same(body, out)

    def _lane_count(
        self, loop: ir.For, changes: Sequence[ir.Change], sums: Sequence[ir.Change]
    ) -> int:
        """The number of lanes of a loop: more where a step takes longer and its order means nothing, and of long sums.

        Vectors have more lanes of f32 than of f64: fewer of them would wait for each other.
        """
        primitives = {c.value.primitive for c in changes if isinstance(c.value, Apply)}
        machine, size = self.program.machine, self.sizes[chain_of((loop,))[0][-1].size].fixed
        is_long = loop.chunk is not None or self.chunk <= 2 * (size or 0)
        if primitives <= {"max", "min"} or (is_long and len(sums) == len(changes)):
            return machine.most_sum_lanes()
        return machine.sum_lanes

    def _sums(self, loop: ir.For, changes: Sequence[ir.Change]) -> tuple[ir.Change, ...]:
        """The sums of f32 in f64 that a loop can take a chunk at a time; all of a nest, where its rows are long."""
        *_, inner = chain_of((loop,))[0]
        size = self.sizes[inner.size].fixed
        limits = (*inner.begin.limits(), *inner.end.limits())
        whole = not inner.part() and all(step == 1 for _, step in limits)
        whole = whole or (size is not None and size <= self.chunk)
        sums = tuple(c for c in changes if _term(c) is not None)
        if inner is not loop and (len(sums) < len(changes) or (size or 0) < LONG):
            return ()
        return sums if whole and (inner is loop or inner.chunk is None) else ()

    def _summed(
        self, loop: ir.For, sums: Sequence[ir.Change], lanes: int, beside: bool
    ) -> list[ir.Statement]:
        """A loop in lanes, its f32 sums in variables of their own for a chunk of it."""
        (*_, last) = loop.body
        if isinstance(last, ir.For):
            return [replace(loop, body=tuple(self._summed(last, sums, lanes, beside)))]
        loop = replace(loop, manner=self._lanes(loop, lanes, beside))
        if not sums:
            return [loop]
        parts = {c.variable: self._partial(c.variable, lanes) for c in sums}
        body = tuple(
            ir.Change(parts[s.variable], _sum(parts[s.variable], _term(s), "f32"))
            if isinstance(s, ir.Change) and s.variable in parts
            else s
            for s in loop.body
        )
        zero = Constant(0, "f32")
        start = [ir.Define(p, "f32", zero, mutable=True) for p in parts.values()]
        end: list[ir.Statement] = [
            ir.HorizontalReduction(p, "add", "f32", lanes) for p in parts.values()
        ]
        for acc, p in parts.items():
            end.append(ir.Change(acc, _sum(acc, Convert(Local(p, "f32"), "f64"), "f64")))
        loop = replace(loop, body=body)
        fixed = self.sizes[loop.size].fixed
        if fixed is not None and fixed <= self.chunk:
            return [*start, loop, *end]
        name = self.variables[loop.variable]
        outer, inner = loop.variable, len(self.variables)
        self.variables.append(self._fresh(f"{name}1"))
        index = Affine(((self.chunk, outer), (1, inner)))
        chunk = substituted(loop, {outer: index})
        assert isinstance(chunk, ir.For)
        first = self.chunk * axis_index(outer)
        begins = [(each - step * first, step) for each, step in loop.begin.limits()]
        ends = [(size_value(loop.size), 1), *loop.end.limits()]
        stop = self.fixed.extent(self.chunk).among(
            "min", ((each - step * first, step) for each, step in ends)
        )
        chunk = replace(chunk, variable=inner, begin=ZERO.among("max", begins), end=stop)
        block = None if loop.chunk is None else (loop.chunk[0], 1, loop.chunk[2])
        begin, stop = bounds(self._chunks(loop.size), block)
        return [ir.For(outer, stop, (*start, chunk, *end), begin)]

    def _lanes(self, loop: ir.For, lanes: int, beside: bool) -> ir.Lanes:
        """The lanes of a loop, which may stand ``beside`` another one: no vectors go across the rows of both then.

        Compilers write out one block of lanes, or two, element by element.
        """
        count = self.sizes[loop.size].fixed
        return ir.Lanes(lanes, beside and count is not None and count <= 2 * lanes)

    def _partial(self, local: LocalId, lanes: int) -> LocalId:
        name, tensor = self.locals[local].name, self.locals[local].tensor
        chosen = self._fresh(f"{name.removesuffix('_acc')}_lanes")
        self.locals.append(ir.Variable(chosen, lanes, tensor=tensor))
        return LocalId(len(self.locals) - 1)

    def _fresh(self, name: str) -> str:
        chosen = fresh(name, self.taken, self.buffer_names, serial=self.serial)
        self.taken.add(chosen)
        return chosen

    def _chunks(self, whole: int) -> int:
        if whole in self.chunks:
            return self.chunks[whole]
        size = self.sizes[whole]
        if size.fixed is not None:
            return self.fixed.number(-(-size.fixed // self.chunk))
        self.chunks[whole] = len(self.sizes)
        self.sizes.append(Size(self.names.fresh(f"{size.name}_{self.chunk}"), None, ()))
        self.counts.append((self.chunks[whole], parts(size_of(whole), self.chunk)))
        return self.chunks[whole]


def _term(change: ir.Change) -> Scalar | None:
    """The f32 number that a change adds in f64; None where it does anything else."""
    value = change.value
    assert isinstance(value, Apply)
    term = value.arguments[1]
    if value.primitive == "add" and isinstance(term, Convert) and term.dtype == "f64":
        return term.argument if term.argument.dtype == "f32" else None
    return None


def _sum(variable: LocalId, term: Scalar | None, dtype: str) -> Scalar:
    assert term is not None
    return Apply("add", (Local(variable, dtype), term), dtype)


def _horizontal(change: ir.Change, lanes: int) -> ir.HorizontalReduction:
    value = change.value
    assert isinstance(value, Apply)
    return ir.HorizontalReduction(change.variable, value.primitive, value.dtype or "", lanes)
