"""Make functions of parallel loops: their arguments, their private buffers, and the estimate of their threads.

Example:
    in:   parallel for i: parallel for j: (for k: c[k] = in0[i,k]);  out[i,j] = ... c[k] ...
    out:  the same; the loops i and j are one loop over n_i n_j, and become out_i_j, which takes the sizes n_i, n_j and
          n_k, and the arrays in0 and out; c stands at the start of the scratch storage of each thread of it

Perfectly nested parallel loops become one loop over the product of their extents. Of nested parallel loops only one at
a time runs on several threads: the outermost one with enough work, and enough iterations for all threads. Private
buffers are at the start of a thread's part of the scratch storage, those of an inner loop after those of the loops
around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from ilang.core.cost import Work, of_loop
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Captured, Outline, ThreadEstimate, Tile, Transpose
from ilang.core.ir.ids import BufferId
from ilang.core.ir.known_extents import USUAL
from ilang.core.ir.rewriting import unless_same
from ilang.core.ir.scalar import Local
from ilang.core.lower.uses import touched, use_of
from ilang.core.names import Names
from ilang.core.passes.cpu.shifted import reads_shifted_rows
from ilang.core.record import replace


def kernel_to_outlined(program: ir.Program) -> ir.Program:
    """The program whose kernels and parallel loops know what their functions take."""
    steps = {size: step for size, (_, step) in program.parts().items()}
    steps |= {size: int(USUAL) // most for size, most in program.chunks().items()}
    inputs = {program.buffers[n].name for n in program.inputs}
    kernels = tuple(_Outliner(program, kernel, steps, inputs).run() for kernel in program.kernels)
    return replace(program, kernels=kernels)


STORES = (ir.Store, Tile)
"""Statements that store to a buffer."""
NONE = Work((), 0, 0.0)
"""The work of what has no loops."""


class _Function:
    """A function while its kernel is explored: its loops, or none of the kernel; which functions are around it."""

    def __init__(
        self, loops: Sequence[ir.For], body: ir.Block, path: tuple[int, ...], work: Work
    ) -> None:
        """A function that calls nothing yet; ``path`` has the places of those around it, and its own.

        The ``work`` is that of all iterations of its loops, in the largest nest.
        """
        self.loops = loops
        self.body = body
        self.path = path
        self.work = work
        self.calls: list[int] = []
        self.private: list[BufferId] = []


class _Outliner:
    def __init__(
        self, program: ir.Program, kernel: ir.Kernel, steps: Mapping[int, int], inputs: Set[str]
    ) -> None:
        """For a kernel; ``steps`` says how far apart the parts of split dimensions are, by size number.

        The ``inputs`` are the names of input arrays.
        """
        self.program = program
        self.kernel = kernel
        self.steps = steps
        self.functions = [_Function((), kernel.body, (0,), NONE)]
        self.homes: dict[BufferId, tuple[int, ...]] = {}
        self.names = Names()
        self.inputs = inputs
        self.dtypes = {s.variable: s.dtype for s in ir.every(kernel.body, ir.Define)}

    def run(self) -> ir.Kernel:
        """The kernel with its functions."""
        self._explore(self.functions[0], self.kernel.body)
        for buffer, path in sorted(self.homes.items()):
            self.functions[path[-1]].private.append(buffer)
        outlines = [self._outline(number) for number in range(len(self.functions))]
        body = _with_outlines(self.kernel.body, iter(outlines[1:]))
        return replace(self.kernel, body=body, outline=outlines[0])

    def _explore(self, function: _Function, body: Sequence[ir.Statement]) -> None:
        """Find the functions inside a function, and where private buffers are used."""
        for s in body:
            for buffer in touched(s):
                described = self.program.buffers[buffer]
                if described.private and described.role != "tile":
                    self.homes[buffer] = _common(self.homes.get(buffer), function.path)
            if not isinstance(s, ir.For) or not s.parallel:
                for block in ir.blocks_of(s):
                    self._explore(function, block)
                continue
            number, loops = len(self.functions), _together(self.program, s)
            work = max(of_loop(self.program, s), key=self._usual, default=NONE)
            inner = _Function(loops, loops[-1].body, (*function.path, number), work)
            function.calls.append(number)
            self.functions.append(inner)
            self._explore(inner, inner.body)

    def _all(self, number: int) -> Iterator[_Function]:
        function = self.functions[number]
        yield function
        for inner in function.calls:
            yield from self._all(inner)

    def _keeps(self, number: int) -> bool:
        """Whether a function, or what it calls, keeps anything in scratch storage."""
        return any(function.private for function in self._all(number))

    def _outline(self, number: int) -> Outline:
        function = self.functions[number]
        private = frozenset(buffer for inner in self._all(number) for buffer in inner.private)
        use = use_of(self.program, function.body, function.loops, private)
        captured = Captured(
            tuple(n for n in use.sizes if self.program.sizes[n].fixed is None),
            use.shared,
            use.variables,
            tuple(Local(variable, self.dtypes[variable]) for variable in use.locals),
        )
        return Outline(
            self._name(function) if function.loops else "",
            tuple(dict.fromkeys(self._results(function.body))),
            len(function.loops),
            captured,
            use.written & frozenset(use.shared),
            tuple(dict.fromkeys(_filled_outside(function.body))),
            tuple(function.private),
            self._keeps(number),
            any(self._keeps(inner) for inner in function.calls),
            bool(function.calls),
            self._estimate(number) if function.loops else None,
            reads_shifted_rows(self.program, function.loops or function.body, use.shared),
        )

    def _name(self, function: _Function) -> str:
        """The name of the function of loops: the last array that they store to, and their variables."""
        stores = [s.buffer for s in ir.statements_within(function.body) if isinstance(s, STORES)]
        words = [self.program.buffers[stores[-1]].name] if stores else []
        words += [self.kernel.names[loop.variable] for loop in function.loops]
        return self.names.fresh("_".join(words))

    def _results(self, body: ir.Block) -> Iterator[str]:
        """The tensors that statements store elements of, and the arrays that they copy those of inputs to."""
        for s in ir.statements_within(body):
            if isinstance(s, STORES):
                buffer = self.program.buffers[s.buffer]
                yield buffer.name if buffer.tensor in self.inputs else buffer.tensor or buffer.name

    def _estimate(self, number: int) -> ThreadEstimate:
        """The work that decides on the threads of a function: its own, and that of the largest one that it calls."""
        function, inside, uneven = self.functions[number], None, False
        if function.calls:
            best = max(function.calls, key=lambda inner: self._usual(self.functions[inner].work))
            inside = self._estimate(best)
            outer = {loop.variable for loop in function.loops}
            ends = [end for loop in inside.loops for end in loop.within if end.size is None]
            uneven = any(outer & end.index.variables() for end in ends)
            whole = tuple(loop.whole() for loop in inside.loops)
            inside = replace(inside, loops=whole)
        known, unknown = function.work.split(self.program.sizes)
        loops = tuple(replace(loop, body=(), manner=None) for loop in function.loops)
        return ThreadEstimate(loops, known, unknown, inside, uneven)

    def _usual(self, work: Work) -> float:
        return work.usual(self.program.sizes, self.steps)


def _common(path: tuple[int, ...] | None, other: tuple[int, ...]) -> tuple[int, ...]:
    """The functions that are around two places; around the second where there is no first."""
    if path is None:
        return other
    return tuple(a for a, b in zip(path, other, strict=False) if a == b)


def _together(program: ir.Program, loop: ir.For) -> list[ir.For]:
    """A parallel loop and those inside it that are all that it does, but for the innermost loop of a nest.

    The place in a loop is a remainder by its extent, which is therefore not known to be 0.
    """
    chain = [loop]
    while len(chain[-1].body) == 1 and not loop.begin.operands:
        inner = chain[-1].body[0]
        if not isinstance(inner, ir.For) or not inner.parallel or inner.within:
            break
        if program.sizes[inner.size].fixed == 0:
            break
        if not any(isinstance(s, (ir.For, Tile, Transpose)) for s in inner.body):
            break
        chain.append(inner)
    return chain


def _filled_outside(body: Sequence[ir.Statement]) -> Iterator[BufferId]:
    """The copies that tiles may fill whose loops are further out."""
    loops = [s for s in ir.every(body, ir.For) if s.deferred]
    copied = {s.buffer for loop in loops for s in ir.every(loop.body, ir.Store)}
    for s in ir.every(body, Tile):
        if s.fill is not None and s.fill.buffer not in copied:
            yield s.fill.buffer


def _with_outlines(body: ir.Block, outlines: Iterator[Outline]) -> ir.Block:
    """A block whose parallel loops have their outlines, in the order in which loops follow each other."""
    out: list[ir.Statement] = []
    for s in body:
        if isinstance(s, ir.For) and s.parallel:
            outline = next(outlines)
            out.append(replace(_inside(s, outline.loops, outlines), manner=ir.Parallel(outline)))
        elif isinstance(s, (ir.For, ir.If)):
            out.append(ir.map_blocks(s, lambda block: _with_outlines(block, outlines)))
        else:
            out.append(s)
    return unless_same(body, out)


def _inside(loop: ir.For, depth: int, outlines: Iterator[Outline]) -> ir.For:
    """So many loops with nothing between them, and outlines in what is inside."""
    if depth == 1:
        return replace(loop, body=_with_outlines(loop.body, outlines))
    (inner,) = loop.body
    assert isinstance(inner, ir.For)
    return replace(loop, body=(_inside(inner, depth - 1, outlines),))
