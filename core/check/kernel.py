"""Invariants of ``ir/kernel.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ilang.core.calculus.affine import Affine, Within, lookups
from ilang.core.check import cpu
from ilang.core.diagnostic import InternalError
from ilang.core.dtype import INTEGERS
from ilang.core.ir import kernel as ir
from ilang.core.ir import scalar as scalars
from ilang.core.ir.cpu import Tile, Transpose
from ilang.core.ir.gpu import Barrier, CombineThreads, MatrixProduct, SwapBuffers, ThreadLoop
from ilang.core.record import replace


def verify(program: ir.Program, before: ir.Program | None = None) -> None:
    """Raise an InternalError (E9905) naming the first invariant that does not hold.

    Args:
        program: what is checked.
        before: what it was made of, which has been checked: its kernels that stay what they are need no second look.
    """
    if before is None:
        _calls(program)
    for kernel in program.kernels if before is None else changed(program, before):
        inside = list(ir.statements_within(kernel.body))
        verifier = _Verifier(program, kernel, inside)
        verifier.block(kernel.body)
        cpu.tiles(program, kernel, inside, verifier.demand)
        cpu.outlines(program, kernel, inside, verifier.demand)


def _calls(program: ir.Program) -> None:
    def demand(holds: bool, invariant: str) -> None:
        if not holds:
            raise InternalError("E9905", f"calls of {program.name}: {invariant}")

    calls = program.launched()
    every = {call.kernel for call in calls} == {*range(len(program.kernels))}
    demand(every, "every kernel is called")
    sizes = [n if size.fixed is None else f"= {size.fixed}" for n, size in enumerate(program.sizes)]
    for call, pair in ((each, pair) for each in calls for pair in each.arrays):
        called, other = (program.buffers[number] for number in pair)
        extents = [[sizes[n] for n in buffer.dims] for buffer in (called, other)]
        named = replace(called, name=other.name, tensor=other.tensor, owner=other.owner)
        same = replace(named, dims=other.dims) == other
        demand(same and extents[0] == extents[1], "one buffer is like another in its place")
        memory = None if called.owner is None else call.array(called.owner)
        demand(memory == other.owner, "a buffer has its memory from the same call's")


def changed(program: ir.Program, before: ir.Program) -> Sequence[ir.Kernel]:
    """The kernels of a program that others had not; all of them where what they rest on is other, too."""
    sizes = program.sizes[: len(before.sizes)]
    if program.buffers != before.buffers or sizes != before.sizes:
        return program.kernels
    known = {id(kernel) for kernel in before.kernels}
    return [kernel for kernel in program.kernels if id(kernel) not in known]


class _Verifier:
    """One traversal of a kernel: the loop variables in scope, scalar variables defined, conditions that hold."""

    def __init__(
        self, program: ir.Program, kernel: ir.Kernel, inside: Sequence[ir.Statement]
    ) -> None:
        """For a kernel that has the statements ``inside``, at any depth."""
        self.program = program
        self.kernel = kernel
        self.sizes: dict[int, int] = {}
        self.defined: set[int] = set()
        self.held: frozenset[Within] = frozenset()
        self.written = {s.buffer for s in inside if isinstance(s, ir.Store)}

    def block(self, body: tuple[ir.Statement, ...]) -> None:
        """Check the statements of a block in order; what it defines ends with it."""
        defined: list[int] = []
        for s in body:
            match s:
                case ir.For():
                    self._loop(s)
                case ir.If():
                    self._conditions(s.within)
                    held, self.held = self.held, self.held | set(s.within)
                    self.block(s.body)
                    self.held = held
                    self.block(s.otherwise)
                case ir.Define():
                    self._define(s)
                    defined.append(s.variable)
                case ir.Change():
                    self._change(s)
                case ir.HorizontalReduction():
                    self.demand(
                        s.variable in self.defined, "a variable is defined before it is folded"
                    )
                    lanes = self.kernel.locals[s.variable].lanes
                    self.demand(lanes == s.lanes, "all lanes of a variable are folded")
                case Tile():
                    self._opened(s.blocks, s.body)
                case ThreadLoop():
                    self._opened(s.loops, s.body)
                case Barrier() | CombineThreads() | SwapBuffers() | MatrixProduct():
                    self._together(s)
                case Transpose():
                    self.block((s.loops,))
                    cpu.transpose(self.program, s, self.demand)
                case ir.Store():
                    self._store(s)
        self.defined.difference_update(defined)

    def _together(self, s: Barrier | CombineThreads | SwapBuffers | MatrixProduct) -> None:
        known = not isinstance(s, CombineThreads) or s.variable in self.defined
        self.demand(known, "a variable is defined before it is combined")
        for each in (*s.sums, *s.left, *s.right) if isinstance(s, MatrixProduct) else ():
            self._scalar(each)

    def _loop(self, s: ir.For) -> None:
        self.demand(s.ends() <= self.sizes.keys(), "a loop ends by what is known outside it")
        self.demand(s.variable not in self.sizes, "a loop variable is opened once")
        names = [self.kernel.names[v] for v in self.sizes]
        self.demand(self.kernel.names[s.variable] not in names, "names in scope are distinct")
        simple = s.lanes == 1 or all(
            isinstance(x, (ir.Define, ir.Change, ir.Store)) for x in s.body
        )
        self.demand(simple, "a loop in lanes has nothing inside it")
        cpu.cut(s, self.sizes, self.demand)
        self.sizes[s.variable] = s.size
        cpu.division(s, self.demand)
        held, self.held = self.held, self.held | set(s.within)
        self.block(s.body)
        self.held = held
        del self.sizes[s.variable]

    def _define(self, s: ir.Define) -> None:
        self._scalar(s.value)
        self.demand(s.variable not in self.defined, "a variable is defined once")
        fits = not self.kernel.locals[s.variable].wrapping or s.dtype in INTEGERS
        self.demand(fits, "what wraps is an integer")
        self.defined.add(s.variable)

    def _change(self, s: ir.Change) -> None:
        self._scalar(s.value)
        self.demand(s.variable in self.defined, "a variable is defined before it changes")
        added = not self.kernel.locals[s.variable].wrapping or _adds_to(s)
        self.demand(added, "what wraps is added to, or multiplied")
        ordered = self.kernel.locals[s.variable].ordered
        kept = not ordered or (isinstance(s.value, scalars.Apply) and s.value.primitive == ordered)
        self.demand(kept, "what is ordered becomes the larger, or the smaller, of two")

    def _store(self, s: ir.Store) -> None:
        self._scalar(s.value)
        self._index(s.buffer, s.index)
        buffer = self.program.buffers[s.buffer]
        memory = self.program.memory(s.buffer)
        self.demand(memory.role != "input", "inputs are not written")
        plain = memory is buffer or memory.role == "output"
        self.demand(plain, "a view is written only in an output")
        self.demand(buffer.dtype == s.value.dtype, "a store has the buffer's type")
        if buffer.wrapping:
            integers = buffer.role in ("temporary", "tile") and buffer.dtype in INTEGERS
            self.demand(integers, "what wraps is integers that callers do not have")
            added = isinstance(s.value, scalars.Apply) and s.value.primitive in ("add", "mul")
            again = any(
                isinstance(part, scalars.Load) and part.buffer == s.buffer
                for part in scalars.scalars_within(s.value)
            )
            self.demand(added or not again, "what wraps is added to, or multiplied")

    def _opened(self, loops: tuple[ir.For, ...], body: ir.Block) -> None:
        if loops:
            self.demand(loops[0].variable not in self.sizes, "a loop variable is opened once")
            self.sizes[loops[0].variable] = loops[0].size
            held, self.held = self.held, self.held | set(loops[0].runs())
            self._opened(loops[1:], body)
            self.held = held
            del self.sizes[loops[0].variable]
        else:
            self.block(body)

    def _scalar(self, scalar: scalars.Scalar) -> None:
        match scalar:
            case scalars.Load():
                self._index(scalar.buffer, scalar.index)
            case scalars.Local():
                known = scalar.variable in self.defined
                self.demand(known, "a variable is defined before it is used")
            case scalars.Convert() | scalars.Apply():
                for argument in scalars.arguments_of(scalar):
                    self._scalar(argument)
            case scalars.Select():
                self._conditions(scalar.within)
                held, self.held = self.held, self.held | set(scalar.within)
                self._scalar(scalar.then)
                self.held = held
                self._scalar(scalar.otherwise)
            case scalars.Position():
                self.demand(
                    scalar.index.axes() <= self.sizes.keys(), "a position is one in open loops"
                )
            case scalars.Constant():
                pass
            case scalars.Operand():
                self.demand(False, "operands have become loads, extents sizes")
            case _:
                assert_never(scalar)

    def _index(self, buffer: int, index: tuple[Affine, ...]) -> None:
        dims = self.program.buffers[buffer].dims
        self.demand(len(dims) == len(index), "an index has an entry per dimension")
        for size, part in zip(dims, index, strict=True):
            self.demand(part.axes() <= self.sizes.keys(), "an index uses open loops")
            self._lookups(part)
            axis = part.axis()
            guarded = self._is_guarded(part, size)
            whole = axis is None or self.sizes[axis] == size or guarded
            self.demand(whole or self._stays(part, size), "a loop has the extent it walks")
            fixed = not part.axes() and not guarded
            self.demand(not fixed or self._stays(part, size), "a fixed index is inside")

    def _is_guarded(self, part: Affine, size: int) -> bool:
        """Whether a condition that holds keeps an index inside a dimension, or one that is as long."""
        if Within(part, size) in self.held:
            return True
        extent = self.program.sizes[size].fixed
        ends = (each.size for each in self.held if each.index == part and each.size is not None)
        return extent is not None and extent in {self.program.sizes[end].fixed for end in ends}

    def _stays(self, part: Affine, size: int) -> bool:
        """Whether an index with known extents stays inside a dimension; with any other, that is not known here."""
        if part.sizes or part.looked:
            return True
        extents = {v: self.program.sizes[self.sizes[v]].fixed for v in part.variables()}
        extent = self.program.sizes[size].fixed
        if extent is None or None in extents.values():
            return not extents or part.axis() is None
        return 0 in extents.values() or bool(Within(part, size).holds(extents, extent))

    def _conditions(self, within: tuple[Within, ...]) -> None:
        for condition in within:
            self.demand(condition.index.axes() <= self.sizes.keys(), "a condition uses open loops")
            self._lookups(condition.index)

    def _lookups(self, part: Affine) -> None:
        """Verify that an index looks up elements of arrays of integers that this kernel does not write."""
        for each in lookups((part,)):
            buffer = self.program.buffers[each.source]
            self.demand(buffer.dtype in INTEGERS, "what is looked up is an integer")
            self.demand(each.source not in self.written, "what is looked up is written before")
            self._index(each.source, each.index)

    def demand(self, holds: bool, invariant: str) -> None:
        """Raise an error that names an invariant, unless it holds."""
        if not holds:
            raise InternalError(
                "E9905", f"kernel {self.kernel.name} of {self.program.name}: {invariant}"
            )


def _adds_to(change: ir.Change) -> bool:
    """Whether a variable becomes itself plus something, or times something."""
    value = change.value
    if not isinstance(value, scalars.Apply) or value.primitive not in ("add", "mul"):
        return False
    old = value.arguments[0]
    return isinstance(old, scalars.Local) and old.variable == change.variable
