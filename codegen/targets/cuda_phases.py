"""The phases of a kernel in CUDA as comments: copies to shared memory and to registers, sums, and what is stored.

Example, of a loop all of whose stores are ``a_copy[...] = a[...]``, where ``a_copy`` is shared:
    /* copy a to shared memory */
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.diagnostic import enumerated
from ilang.core.ir import gpu
from ilang.core.ir import kernel as ir
from ilang.core.ir.scalar import Constant, Convert, Load, Scalar, Select

Step = tuple[str, str]
"""The kind of a step, and the array that it is about."""
SAYS = {
    "share": "copy {} to shared memory",
    "load": "load {} into registers",
    "place": "copy registers to shared memory: {}",
    "add": "accumulate {} in registers",
    "keep": "compute {} in shared memory",
    "combine": "combine {} of all threads",
    "store": "store {}",
}
"""The words for kinds of steps, around the arrays; any other kind is the number that arrays are set to."""


class Phases:
    """The comments of one kernel: none where all of it is one phase."""

    def __init__(self, program: ir.Program, kernel: ir.Kernel) -> None:
        self.program = program
        self.kernel = kernel
        self.several = len({kind for kind, _ in self._steps(kernel.body)}) > 1

    def of(self, s: ir.Statement) -> str:
        """The comment above a statement; "" where it is one of several phases, or too small for words."""
        if not self.several or not isinstance(s, (ir.For, ir.If, gpu.ThreadLoop)):
            return ""
        steps = dict.fromkeys(self._steps((s,)))
        kinds = {kind for kind, _ in steps}
        if "add" in kinds:
            kinds -= {"load"}  # of what is in shared memory, for the products that follow
        if len(kinds) != 1 or "move" in kinds:
            return ""
        (kind,) = kinds
        names = list(dict.fromkeys(name for each, name in steps if each == kind))
        words = SAYS.get(kind, f"set {{}} to {kind}").format(enumerated(names))
        return f"/* {words} */"

    def _steps(self, body: Sequence[ir.Statement]) -> Iterator[Step]:
        """The steps of all stores, and of what threads combine."""
        for s in ir.statements_within(body):
            match s:
                case ir.Store():
                    yield self._step(s)
                case ir.Change():
                    yield "add", self.kernel.locals[s.variable].name
                case gpu.MatrixProduct():
                    yield from (("add", self._name(each.buffer)) for each in s.sums)
                case gpu.CombineThreads():
                    yield "combine", self.kernel.locals[s.variable].name
                case _:
                    pass

    def _step(self, s: ir.Store) -> Step:
        target = self.program.buffers[s.buffer]
        space = target.space
        if not target.private:
            return "store", target.name
        if isinstance(first := _plain(s.value), Constant):
            return f"{first.value:g}", target.name
        copied = _copied(s.value)
        if copied is None:
            return "add" if space == "local" else "keep", target.name
        source = self.program.buffers[copied.buffer]
        if source.private and source.space == "local":
            return ("place", target.name) if space == "shared" else ("move", target.name)
        return ("load" if space == "local" else "share"), source.name

    def _name(self, number: int) -> str:
        return self.program.buffers[number].name


def _plain(scalar: Scalar) -> Scalar:
    """A scalar without conversions around it."""
    while isinstance(scalar, Convert):
        scalar = scalar.argument
    return scalar


def _copied(scalar: Scalar) -> Load | None:
    """The element that a value is a copy of, where it is inside its array; None of another value."""
    scalar = _plain(scalar)
    if isinstance(scalar, Select):
        scalar = _plain(scalar.then)
    return scalar if isinstance(scalar, Load) else None
