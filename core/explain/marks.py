"""Marks of lines of listings: the tensors of the program, and the extents, that a statement of a kernel is about.

Printers of loops, of C and of CUDA write a line per statement or a few; ``StatementMarks`` says of the statement what
``LineMark`` has. Tensors go by their names and so do extents, which stay what they are from the shaped program on.

Example, ``t1[i,j] = x[i,j] - top``, in a loop over i of m and one over j of n:
    gives t1, reads x and top, goes along m and n
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile, Transpose
from ilang.core.ir.gpu import CombineThreads, ThreadLoop
from ilang.core.ir.rewriting import accesses, parts_of
from ilang.core.ir.scalar import Load, Local, Scalar, scalars_within


class LineMark(NamedTuple):
    """The tensors that a line gives and those that it reads; the extents of the loops that it is, or is in."""

    gives: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    along: tuple[str, ...] = ()


class StatementMarks:
    """The marks of the statements of one kernel.

    ``inlined`` has the scalars that a listing writes in the place of variables.
    """

    def __init__(self, program: ir.Program, kernel: ir.Kernel) -> None:
        self.program = program
        self.kernel = kernel
        self.inlined: Mapping[int, Scalar] = {}

    @cached_property
    def along(self) -> dict[int, int]:
        """The size that each loop goes along, or along a part of."""
        return self._sizes()

    def of(self, s: ir.Statement) -> LineMark:
        """The mark of a statement: of a loop its extent, of others what they read and write."""
        loops = _loops_of(s)
        if loops:
            return LineMark(along=self._names(loop.variable for loop in loops))
        if isinstance(s, ir.If):
            return LineMark()
        gives = list[str]()
        if isinstance(s, ir.Store | Tile):
            gives.append(self.program.buffers[s.buffer].tensor)
        if isinstance(s, ir.Define | ir.Change | ir.HorizontalReduction | CombineThreads):
            gives.append(self.kernel.locals[s.variable].tensor)
        reads, variables = list[str](), dict[int, None]()
        for _, index in accesses((s,)) if not isinstance(s, Tile) else ():
            variables |= dict.fromkeys(v for part in index for v in sorted(part.axes()))
        todo = list(parts_of(s))
        while todo:
            match todo.pop(0):
                case Load() as load:
                    reads.append(self.program.buffers[load.buffer].tensor)
                    variables |= dict.fromkeys(v for at in load.index for v in sorted(at.axes()))
                case Local() as local:
                    tensor = self.kernel.locals[local.variable].tensor
                    inside = self.inlined.get(local.variable)
                    is_read = inside is None or isinstance(inside, Load)
                    (reads if is_read else gives).append(tensor)
                    todo += [] if inside is None else scalars_within(inside)
                case _:
                    pass
        along = self._names(variables)
        return LineMark(_distinct(gives), _distinct(r for r in reads if r not in gives), along)

    def _names(self, variables: Iterable[int]) -> tuple[str, ...]:
        """The extents that loops go along; of a collapsed axis those that it is the product of."""
        sizes = (self.program.sizes[self.along[v]] for v in variables if v in self.along)
        return _distinct(name for size in sizes for name in size.of or (size.name,))

    def of_all(self, body: Sequence[ir.Statement]) -> LineMark:
        """The mark of statements together, at any depth."""
        marks = [self.of(s) for s in ir.statements_within(body)]
        gives, reads, along = (_distinct(name for m in marks for name in m[n]) for n in range(3))
        return LineMark(gives, tuple(r for r in reads if r not in gives), along)

    def _sizes(self) -> dict[int, int]:
        """The size that each loop goes along, or along a part of.

        The size of a loop tells, or what its end is left of; else the dimensions in whose indices it counts. The
        dimensions of memory between steps are known from the loops that fill it.
        """
        program, parts = self.program, self.program.parts()
        arrays = {
            number: program.buffers[number].dims
            for number, _ in accesses(self.kernel.body)
            if not program.buffers[number].private
        }
        dims = {
            (number, d): size for number, sizes in arrays.items() for d, size in enumerate(sizes)
        }
        whole = {size for sizes in arrays.values() for size in sizes}
        along: dict[int, int] = {}
        for s in ir.statements_within(self.kernel.body):
            for loop in _loops_of(s):
                part = loop.part()
                size = parts[loop.size][0] if loop.size in parts else loop.size
                if size not in whole and part is not None:
                    size = part[1]
                if size in whole:
                    along[loop.variable] = size
        indices = [
            ((buffer, d), at.axes())
            for buffer, index in accesses(self.kernel.body)
            for d, at in enumerate(index)
        ]
        for place, variables in indices * 2:  # what is filled first may be read further up
            known = {along[v] for v in variables if v in along}
            if place not in dims and len(known) == 1:
                dims[place] = known.pop()
            for v in variables if place in dims else ():
                along.setdefault(v, dims[place])
        return along


def _loops_of(s: ir.Statement) -> tuple[ir.For, ...]:
    match s:
        case ir.For():
            return (s,)
        case ThreadLoop():
            return s.loops
        case Transpose():
            return (s.loops,)
        case _:
            return ()


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))
