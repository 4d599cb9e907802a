"""Functions that a loop computes of what it does not change, computed once before it.

Example, a logarithm of softmax:
    in:   for j: out[i,j] = x[i,j] - ln(sum)
    out:  sum_ln = ln(sum);  for j: out[i,j] = x[i,j] - sum_ln

C compilers move sums and quotients out of loops by themselves. A function with conditions in it they move by one copy
of the loop for each condition, or not at all, and some of these loops have no vectors.
"""

from __future__ import annotations

from collections.abc import Mapping

from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import LocalId
from ilang.core.ir.rewriting import unless_same
from ilang.core.ir.scalar import Apply, Constant, Convert, Load, Local, Scalar, scalars_within
from ilang.core.ops import SLOW
from ilang.core.passes.forwarding import Forwarding, buffer_names, stores_of
from ilang.core.passes.scope import fresh
from ilang.core.record import mapped_inside, replace

Sizes = Mapping[int, int]
"""The size of each loop around a place, by its variable."""


def kernel_to_hoisted(program: ir.Program) -> ir.Program:
    """The program whose innermost loops compute no slow function again and again of the same."""
    names = buffer_names(program)
    kernels = [_Hoisting(program, kernel, names).run() for kernel in program.kernels]
    if all(one is other for one, other in zip(kernels, program.kernels, strict=True)):
        return program
    return replace(program, kernels=tuple(kernels))


class _Hoisting(Forwarding):
    """One kernel, whose blocks are traversed from the inside out: what leaves a loop may leave the one around it."""

    def run(self) -> ir.Kernel:
        """The kernel, with a variable for each function that leaves a loop."""
        if not any(_is_slow(s) for s in ir.statements_within(self.kernel.body)):
            return self.kernel
        body = self._block(self.kernel.body, {})
        if body is self.kernel.body:
            return self.kernel
        return replace(self.kernel, body=body, locals=tuple(self.locals))

    def _block(self, body: ir.Block, around: Sizes) -> ir.Block:
        out: list[ir.Statement] = []
        for s in body:
            if isinstance(s, ir.For):
                out += self._loop(s, around)
            else:
                out.append(ir.map_blocks(s, lambda block: self._block(block, around)))
        return unless_same(body, out)

    def _loop(self, loop: ir.For, around: Sizes) -> ir.Block:
        body = self._block(loop.body, {**around, loop.variable: loop.size})
        within = [*ir.statements_within(body)]
        leaving = _Leaving(self, around, body)
        for s in within:
            if isinstance(s, ir.Define | ir.Change | ir.HorizontalReduction):
                leaving.changed.add(s.variable)
        out = [leaving.without(s) for s in body]
        left = unless_same(body, [s for s in out if s is not None])
        loop = loop if left is loop.body else replace(loop, body=left)
        return (*leaving.before, loop)

    def variable(self, value: Apply) -> LocalId:
        """A new variable for the value of a function."""
        of = next(filter(None, map(self._name, scalars_within(value))), "")
        name = fresh(f"{of}_{value.primitive}", self.taken, self.buffer_names)
        self.taken.add(name)
        self.locals.append(ir.Variable(name))
        return LocalId(len(self.locals) - 1)

    def _name(self, scalar: Scalar) -> str:
        """The name of a variable or a buffer; "" of anything else."""
        match scalar:
            case Local():
                return self.locals[scalar.variable].name
            case Load():
                return self.program.buffers[scalar.buffer].name
            case _:
                return ""


class _Leaving:
    """The definitions that leave one loop, ``before`` it: of what none of its statements has ``changed``."""

    def __init__(self, hoisting: _Hoisting, around: Sizes, body: ir.Block) -> None:
        self.hoisting = hoisting
        self.around = around
        self.stored = stores_of(body)
        self.changed: set[int] = set()
        self.before: list[ir.Statement] = []
        self.variables: dict[Scalar, Local] = {}

    def without(self, s: ir.Statement) -> ir.Statement | None:
        """A statement of the loop that reads variables instead; None of one that leaves the loop as it is."""
        if not isinstance(s, ir.Define | ir.Change | ir.Store) or not _is_slow(s):
            return s
        if isinstance(s, ir.Define) and not s.mutable and self._is_constant(s.value):
            self.before.append(s)
            self.changed.discard(s.variable)
            return None
        value = self._read(s.value)
        return s if value is s.value else replace(s, value=value)

    def _read(self, scalar: Scalar) -> Scalar:
        """A scalar in which variables stand for slow functions of what does not change."""
        is_function = isinstance(scalar, Apply) and scalar.primitive in SLOW
        if not is_function or not self._is_constant(scalar):
            return mapped_inside(scalar, (Apply, Convert), self._read)
        assert isinstance(scalar, Apply)
        if scalar not in self.variables:
            variable, dtype = self.hoisting.variable(scalar), scalar.dtype or ""
            self.before.append(ir.Define(variable, dtype, scalar))
            self.variables[scalar] = Local(variable, dtype)
        return self.variables[scalar]

    def _is_constant(self, scalar: Scalar) -> bool:
        """Whether a scalar is the same in all iterations, and may be computed where there is none."""
        match scalar:
            case Constant():
                return True
            case Local():
                return scalar.variable not in self.changed
            case Load():
                return scalar.buffer not in self.stored and self._is_inside(scalar)
            case Apply() | Convert():
                inner = scalar.arguments if isinstance(scalar, Apply) else (scalar.argument,)
                return all(map(self._is_constant, inner))
            case _:
                return False

    def _is_inside(self, load: Load) -> bool:
        """Whether loops around the loop alone walk an element, each a whole dimension: then it is there."""
        dims = self.hoisting.program.buffers[load.buffer].dims
        axes = [part.axis() for part in load.index]
        return all(
            axis is not None and self.around.get(axis) == size
            for axis, size in zip(axes, dims, strict=True)
        )


def _is_slow(s: ir.Statement) -> bool:
    """Whether a statement itself computes a function that takes long."""
    if not isinstance(s, ir.Define | ir.Change | ir.Store):
        return False
    parts = scalars_within(s.value)
    return any(isinstance(part, Apply) and part.primitive in SLOW for part in parts)
