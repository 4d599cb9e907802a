"""Uses of statements: the values that the function which they become has to be given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.calculus.affine import Affine, Within, lookups, variables_of
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Captured, Tile, Transpose
from ilang.core.ir.gpu import Barrier, CombineThreads, MatrixProduct, SwapBuffers, ThreadLoop
from ilang.core.ir.ids import BufferId, LocalId, VariableId
from ilang.core.ir.rewriting import strides
from ilang.core.ir.scalar import Load, Local, Position, Scalar, Select, scalars_within
from ilang.core.record import record


@record
class Use:
    """Whole buffers and private ones by number, those that are written, and the sizes that are needed.

    ``looked`` are the buffers whose elements are indices, each with the size that these are below. ``variables`` and
    ``locals`` are the loop variables and scalar variables of whatever is around.
    """

    shared: tuple[BufferId, ...]
    private: tuple[BufferId, ...]
    written: frozenset[BufferId]
    sizes: tuple[int, ...]
    variables: tuple[VariableId, ...]
    locals: tuple[LocalId, ...]
    looked: tuple[tuple[BufferId, int], ...] = ()


def use_of(
    program: ir.Program,
    body: Sequence[ir.Statement],
    loops: Sequence[ir.For] = (),
    inside: frozenset[BufferId] | None = None,
) -> Use:
    """The values that the statements of a kernel use, or those of ``loops`` of one with nothing between them.

    ``inside`` are the private buffers that have their place there, None for all; others count as shared.
    """
    mentions = _Mentions(program)
    mentions.sizes |= {loop.size for loop in loops[1:]}
    for s in ir.statements_within(body):
        mentions.statement(s)
    opened = {loop.variable for loop in loops}
    buffers = (mentions.buffers | mentions.written) - mentions.tiles
    buffers -= {n for n in buffers if program.buffers[n].space}
    private = {n for n in buffers if program.buffers[n].private and (inside is None or n in inside)}
    for number in buffers:
        mentions.sizes |= set(program.buffers[number].dims) if number in private else set()
    return Use(
        tuple(sorted(buffers - private)),
        tuple(sorted(private)),
        frozenset(mentions.written - mentions.tiles),
        tuple(sorted(mentions.sizes)),
        tuple(map(VariableId, sorted(mentions.variables - mentions.opened - opened))),
        tuple(sorted(mentions.locals - mentions.defined)),
        tuple(sorted(mentions.looked)),
    )


def captured_by(program: ir.Program, tile: Tile, whole: bool) -> Captured:
    """The values that the function of some rows and lanes of a micro-kernel uses, or that of the ``whole`` tile.

    The first is called inside the blocks of the tile, and is told where lanes end.
    """
    *around, lanes = (*tile.core(), *tile.loops())
    loops = (*tile.blocks, *around, lanes) if whole else (*around, lanes.whole())
    mentions = _Mentions(program)
    for s in (*loops, *tile.iteration(), *(() if tile.fill is None else (tile.fill,))):
        mentions.statement(s)
    scalars = (part for s in tile.iteration() for part in scalars_within(s.value))
    used = {part for part in scalars if isinstance(part, Local)}
    return Captured(
        tuple(n for n in sorted(mentions.sizes) if program.sizes[n].fixed is None),
        tuple(sorted(mentions.buffers - {tile.buffer})),
        tuple(map(VariableId, sorted(mentions.variables - mentions.opened))),
        tuple(
            sorted(
                (part for part in used if part.variable not in mentions.defined),
                key=lambda part: (part.variable, part.dtype),
            )
        ),
    )


def touched(s: ir.Statement) -> Iterator[BufferId]:
    """The buffers that a statement itself reads or writes."""
    if isinstance(s, (ir.Define, ir.Change, ir.Store)):
        yield from (part.buffer for part in scalars_within(s.value) if isinstance(part, Load))
    if isinstance(s, ir.Store):
        yield s.buffer
    if isinstance(s, MatrixProduct):
        parts = (part for each in (*s.sums, *s.left, *s.right) for part in scalars_within(each))
        yield from (part.buffer for part in parts if isinstance(part, Load))


class _Mentions:
    """Everything that statements mention, by number, what they bind themselves included.

    Of buffers: those that are read, ``written``, kept by a register tile, or ``looked`` up with the size that their
    elements are below. Of loop variables: those that indices have, and those that loops ``opened``. Of scalar
    variables: those that are read or changed, and those that are ``defined``.
    """

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.buffers: set[BufferId] = set()
        self.written: set[BufferId] = set()
        self.tiles: set[BufferId] = set()
        self.sizes: set[int] = set()
        self.variables: set[int] = set()
        self.opened: set[int] = set()
        self.locals: set[LocalId] = set()
        self.defined: set[LocalId] = set()
        self.looked: set[tuple[BufferId, int]] = set()

    def statement(self, s: ir.Statement) -> None:
        """Add the values that a statement mentions, less the blocks in it."""
        match s:
            case ir.For():
                self._loop(s)
            case ir.If():
                self._conditions(s.within)
            case Tile():
                self.tiles.add(s.buffer)
                self._scalar(s.start)
            case ir.Define():
                self.defined.add(s.variable)
                self._scalar(s.value)
            case ir.Change():
                self.locals.add(s.variable)
                self._scalar(s.value)
            case ir.HorizontalReduction() | CombineThreads():
                self.locals.add(s.variable)
            case Transpose():
                if s.stream_from:  # it may go past the caches, by its size
                    self.sizes |= set(self.program.buffers[s.nest()[2].buffer].dims)
            case ThreadLoop() | Barrier() | SwapBuffers():
                return
            case MatrixProduct():
                self._product(s)
            case ir.Store():
                self.written.add(s.buffer)
                self._element(s.buffer, s.index)
                self._scalar(s.value)

    def _product(self, s: MatrixProduct) -> None:
        self.written |= {each.buffer for each in s.sums}
        for each in (*s.sums, *s.left, *s.right):
            self._scalar(each)

    def _loop(self, loop: ir.For) -> None:
        self.opened.add(loop.variable)
        for bound in (loop.begin, loop.end):
            self.sizes |= {*bound.sizes()}
            self._index([*bound.indices()])

    def _scalar(self, scalar: Scalar) -> None:
        for part in scalars_within(scalar):
            if isinstance(part, Load):
                self.buffers.add(part.buffer)
                self._element(part.buffer, part.index)
            elif isinstance(part, Select):
                self._conditions(part.within)
            elif isinstance(part, Position):
                self._index((part.index,))
            elif isinstance(part, Local):
                self.locals.add(part.variable)

    def _element(self, buffer: BufferId, index: Sequence[Affine]) -> None:
        self.sizes |= strides(self.program.buffers[buffer].dims, index)
        self._index(index)

    def _index(self, index: Sequence[Affine]) -> None:
        self.variables |= variables_of(index)
        self.sizes |= {size for part in index for _, size in part.sizes}
        for each in lookups(index):
            source = BufferId(each.source)
            self.buffers.add(source)
            self.looked.add((source, each.size))
            self._element(source, each.index)

    def _conditions(self, within: Sequence[Within]) -> None:
        self._index([each.index for each in within])
        self.sizes |= {each.size for each in within if each.size is not None}
