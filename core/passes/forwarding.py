"""Elements that a block stores and then reads, kept in scalar variables; and temporaries that nothing else reads.

Example:
    in:   t[j] = exp(in0[j])              out:  t_j = exp(in0[j])
          out[j] = t[j] * in1[j]                out[j] = t_j * in1[j]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ilang.core.calculus.affine import Affine
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile
from ilang.core.ir.ids import BufferId, LocalId
from ilang.core.ir.rewriting import accesses, parts_of, reads_of, with_bodies
from ilang.core.ir.scalar import Constant, Load, Local, Scalar
from ilang.core.passes.scope import fresh
from ilang.core.record import mapped, replace

Index = tuple[Affine, ...]


def without_unread(program: ir.Program) -> ir.Program:
    """The program without stores to temporaries that no kernel reads."""
    unread = _unread(program)
    return with_bodies(program, lambda kernel: _without(kernel.body, unread[kernel.name]))


def _unread(program: ir.Program) -> dict[str, set[BufferId]]:
    """The temporaries of each kernel, by its name, that no kernel reads, whatever is in their place."""
    touched = [{buffer for buffer, _ in accesses(kernel.body)} for kernel in program.kernels]
    read = [
        {buffer for s in ir.statements_within(kernel.body) for buffer, _ in reads_of(s)}
        for kernel in program.kernels
    ]
    calls = program.launched()
    needed = {program.owner(call.array(buffer)) for call in calls for buffer in read[call.kernel]}
    unread = {
        kernel.name: {n for n in buffers if program.buffers[n].role == "temporary"}
        for kernel, buffers in zip(program.kernels, touched, strict=True)
    }
    for call in calls:
        name = program.kernels[call.kernel].name
        unread[name] = {n for n in unread[name] if call.array(n) not in needed}
    return unread


def buffer_names(program: ir.Program) -> frozenset[str]:
    """The names of the buffers of a program, once for all of its kernels."""
    return frozenset(buffer.name for buffer in program.buffers)


class Forwarding:
    """One kernel, in whose blocks stored elements are read from variables."""

    def __init__(self, program: ir.Program, kernel: ir.Kernel, names: frozenset[str]) -> None:
        """For a kernel, and the names of all buffers; ``locals`` grow as variables are needed."""
        self.program = program
        self.kernel = kernel
        self.buffer_names = names
        self.locals = list(kernel.locals)
        self.taken = {*kernel.names, *(local.name for local in kernel.locals)}
        self.constant = {s.variable for s in ir.every(kernel.body, ir.Define) if not s.mutable}

    def forwarded(self, body: Sequence[ir.Statement]) -> Iterator[ir.Statement]:
        """A block in which what was stored before is read from a variable."""
        known: dict[int, dict[Index, Scalar]] = {}
        read = _read_later(body)
        for n, old in enumerate(body):
            s = old
            if known and isinstance(s, (ir.Define, ir.Change, ir.Store)):
                s = replace(s, value=_loaded(s.value, known))
            for buffer in stores_of([s]) if known else ():
                known.pop(buffer, None)
            if isinstance(s, ir.Store) and n in read:
                if not self._is_constant(s.value):
                    element = Local(self._local(s), self.program.buffers[s.buffer].dtype)
                    yield ir.Define(element.variable, element.dtype, s.value)
                    s = replace(s, value=element)
                known[s.buffer] = {s.index: s.value}
            yield s

    def _is_constant(self, value: Scalar) -> bool:
        return isinstance(value, Constant) or (
            isinstance(value, Local) and value.variable in self.constant
        )

    def _local(self, s: ir.Store) -> LocalId:
        name = fresh(
            f"{self.program.buffers[s.buffer].name}_element", self.taken, self.buffer_names
        )
        self.taken.add(name)
        self.locals.append(ir.Variable(name, tensor=self.program.buffers[s.buffer].tensor))
        number = LocalId(len(self.locals) - 1)
        self.constant.add(number)
        return number


def stores_of(body: Sequence[ir.Statement]) -> set[int]:
    """The buffers that a block stores to."""
    return {s.buffer for s in ir.statements_within(body) if isinstance(s, (ir.Store, Tile))}


def _read_later(body: Sequence[ir.Statement]) -> set[int]:
    """The stores of a block, by position, whose element it reads itself before the buffer is written again."""
    read: set[int] = set()
    if not any(isinstance(s, ir.Store) for s in body):
        return read
    wanted: dict[int, set[Index]] = {}  # what is read from here on, before it is written
    for n in range(len(body) - 1, -1, -1):
        s = body[n]
        if isinstance(s, ir.Store) and s.index in wanted.get(s.buffer, ()):
            read.add(n)
        for buffer in stores_of([s]):
            wanted.pop(buffer, None)
        for part in parts_of(s):
            if isinstance(part, Load):
                wanted.setdefault(part.buffer, set()).add(part.index)
    return read


def _without(body: Sequence[ir.Statement], unread: set[BufferId]) -> ir.Block:
    def kept(s: ir.Statement) -> ir.Statement | None:
        return None if isinstance(s, ir.Store) and s.buffer in unread else s

    return ir.map_statements(tuple(body), kept)


def _loaded(scalar: Scalar, known: Mapping[int, Mapping[Index, Scalar]]) -> Scalar:
    return mapped(scalar, Load, lambda load: known.get(load.buffer, {}).get(load.index, load))
