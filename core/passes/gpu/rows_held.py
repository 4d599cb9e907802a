"""Read elements of a row into registers once, where the threads of a block or of a warp go over it several times.

Example, of a maximum and a difference:
    in:   spread j1 over the lanes                 out:  spread j1 over the lanes
            for j: for j2 in 0..4                          for j: for j2 in 0..4
              acc = max(acc, x[i,128j+4j1+j2])               x_held[j,j2] = x[i,128j+4j1+j2]
          acc = combine acc of all lanes                 spread j1 over the lanes
          spread j1 over the lanes                         for j: for j2 in 0..4: acc = max(acc, x_held[j,j2])
            for j: for j2 in 0..4                        acc = combine acc of all lanes
              t[j,j2] = x[i,128j+4j1+j2] - acc           spread j1 over the lanes
                                                           for j: for j2 in 0..4: t[j,j2] = x_held[j,j2] - acc

The loops of what is read are the same each time, and their extents known. All loads of a thread are under way together
then, and those of adjacent elements are one instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TypeVar

from ilang.core.calculus.affine import Affine, axis_index
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import ThreadLoop, threads_of
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.rewriting import parts_of, replaced_loads
from ilang.core.ir.scalar import Load
from ilang.core.machine import MULTIPROCESSORS
from ilang.core.passes.gpu.numbering import Numbering, renumbered
from ilang.core.record import mapped, replace

T = TypeVar("T")


class _Walk:
    """The loops of a spread, those that threads share and those of each thread, and what is done in the innermost.

    ``nested`` has the loops of a thread, and the conditions around and between them, outermost first.
    """

    def __init__(
        self, spread: ThreadLoop, nested: tuple[ir.For | ir.If, ...], body: ir.Block
    ) -> None:
        self.spread = spread
        self.nested = nested
        self.body = body

    def chain(self) -> tuple[ir.For, ...]:
        """The loops of each thread."""
        return tuple(each for each in self.nested if isinstance(each, ir.For))

    def loops(self) -> tuple[ir.For, ...]:
        """All loops."""
        return (*self.spread.loops, *self.chain())

    def names(self, other: _Walk) -> dict[VariableId, VariableId] | None:
        """The variables of another walk by those of this one; None where its loops or conditions are others."""
        shapes = [[isinstance(x, ir.For) for x in walk.nested] for walk in (self, other)]
        if shapes[0] != shapes[1] or len(self.spread.loops) != len(other.spread.loops):
            return None
        pairs = [*zip(self.loops(), other.loops(), strict=True)]
        names = {one.variable: then.variable for one, then in pairs}
        is_same = all(
            (one.size, one.role) == (then.size, then.role) for one, then in pairs
        ) and all(
            _renamed(one.within, names) == then.within
            for one, then in (*pairs, *zip(self.nested, other.nested, strict=True))
        )
        return names if is_same else None


def with_rows_held(program: ir.Program) -> ir.Program:
    """The program with registers for the elements of rows that threads read more than once, or in vectors."""
    return renumbered(program, _held)


def _held(program: ir.Program, kernel: ir.Kernel, numbering: Numbering) -> ir.Kernel:
    spread = threads_of(kernel)
    if spread.over == "grid":
        return kernel
    numbering.enter(kernel)
    return numbering.left(kernel, _Holder(program, kernel, spread, numbering).body())


class _Holder:
    """One kernel whose rows are held."""

    def __init__(
        self, program: ir.Program, kernel: ir.Kernel, spread: ThreadLoop, numbering: Numbering
    ) -> None:
        self.program = program
        self.kernel = kernel
        self.spread = spread
        self.numbering = numbering
        self.most = program.machine.tiles.most_elements
        self.each = 0
        stores = ir.every(kernel.body, ir.Store)
        self.written = {program.owner(store.buffer) for store in stores}

    def body(self) -> ir.Block:
        """The body of the kernel."""
        statements = list(self.spread.body)
        at = 0
        while at < len(statements):
            walk = self._walk(statements[at])
            for load in self._loads(walk) if walk is not None else ():
                assert walk is not None
                fill, statements = self._held(statements, at, walk, load)
                statements.insert(at, fill)
                at += 1
            at += 1
        if len(statements) == len(self.spread.body):
            return self.kernel.body
        return (replace(self.spread, body=tuple(statements), blocks=self._at_a_time()),)

    def _at_a_time(self) -> int:
        """The blocks of a multiprocessor: as many as leave registers for the elements of a thread, once.

        The compiler would else begin all of them at once, and hold what comes between.
        """
        device = self.program.machine.gpu()
        unit = MULTIPROCESSORS[-1]
        registers = unit.around + self.each * 5 // 4
        most = min(unit.blocks, unit.warps * device.warp // self.spread.threads)
        return max(1, min(most, device.registers // (registers * self.spread.threads)))

    def _walk(self, s: ir.Statement) -> _Walk | None:
        if not isinstance(s, ThreadLoop) or not s.loops:
            return None
        nested, body = list[ir.For | ir.If](), s.body
        while len(body) == 1 and isinstance(body[0], (ir.For, ir.If)):
            if isinstance(body[0], ir.If) and body[0].otherwise:
                return None
            nested.append(replace(body[0], body=()))
            body = body[0].body
        walk = _Walk(s, tuple(nested), body)
        extents = [self.program.sizes[loop.size].fixed for loop in walk.chain()]
        simple = all(isinstance(x, (ir.Define, ir.Change, ir.Store)) for x in body)
        known = extents and None not in extents and all(loop.role == "u" for loop in walk.chain())
        fits = known and prod(extent or 0 for extent in extents) <= self.most
        return walk if simple and fits else None

    def _loads(self, walk: _Walk) -> Iterator[Load]:
        walked = {loop.variable for loop in walk.loops()}
        seen = set[Load]()
        for s in walk.body:
            for part in parts_of(s):
                if not isinstance(part, Load) or part in seen:
                    continue
                seen.add(part)
                buffer = self.numbering.buffers[part.buffer]
                is_array = not (buffer.private or buffer.space or buffer.wrapping)
                axes = {axis for each in part.index for axis in each.axes()}
                plain = not any(each.looked for each in part.index)
                if not is_array or not plain or not walked <= axes:
                    continue
                if self.program.owner(part.buffer) not in self.written:
                    yield part

    def _held(
        self, statements: Sequence[ir.Statement], first: int, walk: _Walk, load: Load
    ) -> tuple[ir.Statement, list[ir.Statement]]:
        """The statement that fills registers with some elements, and the statements from ``first`` on with these."""
        buffer = self.program.buffers[load.buffer]
        dims = tuple(loop.size for loop in walk.chain())
        self.each = max(self.each, prod(self.program.sizes[size].fixed or 0 for size in dims))
        held = self.numbering.private(f"{buffer.name}_held", buffer.dtype, dims, "local")
        out = list(statements)
        for n in range(first, len(out)):
            other = self._walk(out[n])
            names = None if other is None else walk.names(other)
            if other is not None and names is not None:
                read = replace(load, index=_indices(load.index, names))
                place = tuple(axis_index(loop.variable) for loop in other.chain())
                out[n] = _reading(other, {read: replace(load, buffer=held, index=place)})
        return self._fill(walk, load, held), out

    def _fill(self, walk: _Walk, load: Load, held: BufferId) -> ThreadLoop:
        names = {loop.variable: self.numbering.split(loop.variable, "_") for loop in walk.loops()}
        place = tuple(axis_index(names[loop.variable]) for loop in walk.chain())
        body: ir.Block = (ir.Store(held, place, replace(load, index=_indices(load.index, names))),)
        for each in reversed(walk.nested):
            renamed = replace(_renamed(replace(each, body=()), names), body=body)
            if isinstance(renamed, ir.For):
                renamed = replace(renamed, variable=names[renamed.variable])
            body = (renamed,)
        loops = tuple(
            replace(_renamed(loop, names), variable=names[loop.variable])
            for loop in walk.spread.loops
        )
        return replace(walk.spread, loops=loops, body=body)


def _reading(walk: _Walk, loads: Mapping[Load, Load]) -> ThreadLoop:
    """The spread of a walk with some elements read from elsewhere."""

    def change(s: ir.Statement) -> ir.Statement:
        if isinstance(s, (ir.Define, ir.Change, ir.Store)):
            return replace(s, value=replaced_loads(s.value, lambda load: loads.get(load, load)))
        return s

    return replace(walk.spread, body=ir.map_statements(walk.spread.body, change))


def _indices(index: Sequence[Affine], names: Mapping[VariableId, VariableId]) -> tuple[Affine, ...]:
    return tuple(
        part.renamed({v: names.get(VariableId(v), v) for v in part.axes()}) for part in index
    )


def _renamed(value: T, names: Mapping[VariableId, VariableId]) -> T:
    """Conditions, or a loop, over other variables."""
    return mapped(value, Affine, lambda index: _indices((index,), names)[0])
