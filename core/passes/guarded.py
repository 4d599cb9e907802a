"""Loops that are left before their first iteration where an extent inside them is 0.

Example, of an array of 17179869184 by 0 elements:
    in:   for i in 0..n_i: for j in 0..n_j: acc += in0[i,j]
    out:  if 0 < n_j: for i in 0..n_i: for j in 0..n_j: acc += in0[i,j]

Only the outermost loop without work is guarded, and consecutive loops get one guard. If a whole kernel has no work when
an extent is 0, its launch is skipped instead (``needs``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ilang.core.calculus.affine import Affine, Within
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile, Transpose
from ilang.core.ir.gpu import Barrier, CombineThreads, MatrixProduct, SwapBuffers, ThreadLoop
from ilang.core.ir.rewriting import loops_of, unless_same, with_body
from ilang.core.lower.uses import touched
from ilang.core.record import replace

FEW = 1 << 12
"""A loop that is known to have no more iterations is done soon, whatever is inside it."""

NOTHING: frozenset[int] = frozenset()
Sizes = frozenset[int]
Path = tuple[int, ...]
"""The loops around a statement, outermost first, as they are counted."""
Changes = Mapping[int, Sizes]
"""The changes of a statement: by the number of loops around all that reads one, the sizes of loops around it inside."""


def kernel_to_guarded(program: ir.Program) -> ir.Program:
    """The program whose loops are left at once where they would do nothing."""
    kernels = tuple(_guarded(program, kernel) for kernel in program.kernels)
    same = all(a is b for a, b in zip(kernels, program.kernels, strict=True))
    return program if same else replace(program, kernels=kernels)


def _guarded(program: ir.Program, kernel: ir.Kernel) -> ir.Kernel:
    needs, of_loops = needs_of(program, kernel)
    if needs:
        kernel = replace(kernel, needs=tuple(sorted(needs)))
    return with_body(kernel, _block(of_loops, needs, kernel.body)) if of_loops else kernel


def _block(needs: Mapping[int, Sizes], met: Sizes, block: ir.Block, joined: int = 0) -> ir.Block:
    """A block with guards, none between ``joined`` loops, which one function runs as one."""
    out: list[ir.Statement] = []
    guard: tuple[Within, ...] = ()
    for s in block:
        is_deferred = isinstance(s, ir.For) and s.deferred is not None  # what packs asks for it
        further = NOTHING if is_deferred or joined else needs.get(id(s), met) - met
        opened = {s.size} if isinstance(s, ir.For) else set()
        inner = s
        if isinstance(s, ThreadLoop) and s.vectors is not None:  # its loops stand in it twice
            further |= _all_needs(needs, s) - met
        else:
            loops = s.outline.loops if isinstance(s, ir.For) and s.outline is not None else joined
            inside = partial(_block, needs, met | further | opened, joined=max(0, loops - 1))
            inner = ir.map_blocks(s, inside)
        within = tuple(Within(Affine(()), size) for size in sorted(further))
        if within and within == guard:
            out[-1] = ir.If(within, (*ir.blocks_of(out[-1])[0], inner))
        else:
            out.append(ir.If(within, (inner,)) if within else inner)
        guard = within
    return unless_same(block, out)


def _all_needs(needs: Mapping[int, Sizes], spread: ThreadLoop) -> Sizes:
    """The needs of the loops of a nest, all of whose statements are in the innermost one."""
    return NOTHING.union(
        *(needs.get(id(loop), NOTHING) for loop in ir.statements_within((spread,)))
    )


def needs_of(program: ir.Program, kernel: ir.Kernel) -> tuple[Sizes, Mapping[int, Sizes]]:
    """The extents, known at run time only or 0, without which a kernel changes nothing, and without which each loop.

    Example, of arrays of 17179869184 by 0 elements:
        for i in 0..n_i: for j in 0..n_j: acc += in0[i,j]              needs n_j
        for i in 0..n_i: acc = 0; (for j in 0..n_j: acc += in0[i,j]); out[i] = acc   needs nothing: out is 0 then

    The extent of a loop itself is no need of it: it is left at once anyway. A loop whose extent is known to be small
    needs nothing either, nor do the loops of a ``Tile``, which follow the rows and lanes of its elements.

    A loop is known by the identity of its statement.
    """
    finder = _NeedFinder(program, kernel)
    changes, needs = finder.block(kernel.body, ())
    return needs & _common(changes), finder.loops


class _NeedFinder:
    def __init__(self, program: ir.Program, kernel: ir.Kernel) -> None:
        self.program = program
        self.loops: dict[int, Sizes] = {}
        self.homes: dict[int, Path] = {}
        self.variables: dict[int, int] = {}
        self.opened = 0
        self._find_homes(kernel.body, ())

    def _find_homes(self, body: Sequence[ir.Statement], path: Path) -> None:
        for s in body:
            for buffer in touched(s):
                home = self.homes.get(buffer)
                pairs = zip(path if home is None else home, path, strict=False)
                self.homes[buffer] = tuple(a for a, b in pairs if a == b)
            inside = self._opened(s, path)
            for block in ir.blocks_of(s):
                self._find_homes(block, inside)

    def _opened(self, s: ir.Statement, path: Path) -> Path:
        if not isinstance(s, (ir.For, ThreadLoop)):
            return path
        self.opened += 1
        return (*path, self.opened)

    def block(self, body: Sequence[ir.Statement], path: Path) -> tuple[Changes, Sizes]:
        """The changes of a block, and the needs of its loops together."""
        changes: dict[int, Sizes] = {}
        needs = NOTHING
        for s in body:
            of_statement, wanted = self._statement(s, path)
            needs |= wanted
            for depth, sizes in of_statement.items():
                changes[depth] = changes.get(depth, sizes) & sizes
        return changes, needs

    def _statement(self, s: ir.Statement, path: Path) -> tuple[Changes, Sizes]:
        match s:
            case ir.Define():
                self.variables[s.variable] = len(path)
                return {}, NOTHING
            case ir.Change() | ir.HorizontalReduction() | CombineThreads():
                return {self.variables[s.variable]: NOTHING}, NOTHING
            case ir.Store():
                return {self._depth(s.buffer): NOTHING}, NOTHING
            case MatrixProduct():
                return {self._depth(each.buffer): NOTHING for each in s.sums}, NOTHING
            case SwapBuffers() | Tile():
                return {0: NOTHING}, NOTHING
            case ir.If():
                zero = (w for w in s.within if w.index == Affine(()) and not s.otherwise)
                return self._either(s, path, frozenset(w.size for w in zero if w.size is not None))
            case ir.For() | ThreadLoop() | Transpose():
                return self._loop(s, path)
            case Barrier():
                return {}, NOTHING

    def _either(self, s: ir.If, path: Path, asked: Sizes) -> tuple[Changes, Sizes]:
        """The changes of one of two blocks, where some sizes are asked to be more than 0."""
        changes: dict[int, Sizes] = {}
        parts = [self.block(block, path) for block in (s.body, s.otherwise)]
        for depth, sizes in (change for of_part, _ in parts for change in of_part.items()):
            changes[depth] = changes.get(depth, sizes | asked) & (sizes | asked)
        return changes, NOTHING.union(*(needs for _, needs in parts)) - asked

    def _loop(self, s: ir.For | ThreadLoop | Transpose, path: Path) -> tuple[Changes, Sizes]:
        """The changes of a loop outside of itself, and the sizes that it needs for them."""
        (body,) = ir.blocks_of(s)
        changes, inner = self.block(body, self._opened(s, path))
        outside = {depth: sizes for depth, sizes in changes.items() if depth <= len(path)}
        common = _common(outside)
        extents = frozenset(loop.size for loop in loops_of(s) if self._is_open(loop.size))
        needs = (common if _is_long(self.program, s) else common & inner) - extents
        if needs:
            self.loops[id(s)] = needs
        return {depth: sizes | extents for depth, sizes in outside.items()}, needs | inner - common

    def _depth(self, buffer: int) -> int:
        """The number of loops around all that touches a buffer; none around what is of use after the kernel."""
        return len(self.homes[buffer]) if self.program.buffers[buffer].private else 0

    def _is_open(self, size: int) -> bool:
        return not self.program.sizes[size].fixed


def _common(changes: Changes) -> Sizes:
    each, *others = changes.values() or (NOTHING,)
    return each.intersection(*others)


def _is_long(program: ir.Program, s: ir.Statement) -> bool:
    """Whether a loop may have many iterations."""
    extents = [program.sizes[loop.size].fixed for loop in loops_of(s)]
    return any(extent is None or FEW < extent for extent in extents)
