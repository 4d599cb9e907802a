"""Blocks of a GPU that compute what belongs to matrices that are never stored.

Example, the result of attention, whose weights p are computed from scores s and from the m and l of each row:
    in:   s[i,j] = sum q[i,k] * key[j,k];  p[i,j] = exp(s[i,j] - m[i]) / l[i];  out[i,d] = sum p[i,j] * v[j,d] over j
    out:  out | i:16:4,d:16:4,j:16:2 | i d j j' j'' i' d' i'' d''     a block has rows i and walks tiles of columns j
          s, p inside i and j, in the loops i' j' i'' j'' of one tile

A block keeps what it accumulates in the registers of its threads, and walks the matrix tile by tile. Values made of an
element stay with the thread that has it, until all threads of the block read it. Each value that is reduced of matrices
has a kernel of its own, which computes tiles of them again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop, Nest, Role
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.record import record, replace
from ilang.core.schedule.choose.gpu_tiles import SEQUENTIAL
from ilang.core.schedule.choose.inlining import Inlining, inlining
from ilang.core.schedule.choose.terms import RUN
from ilang.core.schedule.choose.tile import BlockTile, Tiling
from ilang.core.schedule.wide_matrices import Apart, Phase


@record
class Blocks:
    """The loops of what belongs to kernels of matrices, by value; ``matrices`` are computed inside, tile by tile.

    ``columns`` has the axis of everything that reads them that walks their columns.
    """

    tiles: Mapping[int, BlockTile]
    matrices: Collection[int]
    columns: Mapping[int, int]

    @staticmethod
    def none() -> Blocks:
        """The blocks of a program without such matrices."""
        return Blocks({}, (), {})

    def site(self, value: int, nest: Nest) -> int:
        """The place of a tile of matrices among the loops of what reads it: inside those over tiles of columns."""
        return nest.order.index(Loop(self.columns[value])) + 1


def blocks_of(
    apart: Apart,
    readers: Inlining,
    tilings: Sequence[Tiling | None],
    extents: Extents,
    machine: Machine,
) -> Blocks:
    """The loops of everything that belongs to a kernel of matrices, and is computed inside of nothing else.

    Args:
        apart: the program, and what belongs to these kernels.
        readers: who reads each value.
        tilings: the rows and lanes of each contraction.
        extents: of the program.
        machine: what the blocks belong to.
    """
    parts = _parts(apart, machine)
    tiles: dict[int, BlockTile] = {}
    columns: dict[int, int] = {}
    for value, phase in apart.phases.items():
        node, labels = apart.shaped.nodes[value], apart.axes.get(value, ())
        if apart.sides[phase][1] in labels:
            columns[value] = labels.index(apart.sides[phase][1])
        if readers.inlined[value] or value not in columns or not isinstance(node, Assignment):
            continue
        axes = _Axes(node, labels, apart.sides[phase], parts[phase])
        tiling, is_matrix = tilings[value], value in apart.matrices
        if tiling is None and columns[value] in node.output_axes():
            tiles[value] = axes.pointwise()
        elif tiling is None:
            tiles[value] = axes.fold()
        elif is_matrix:
            tiles[value] = axes.matrix(extents, machine.tiles.terms)
        else:
            tiles[value] = axes.contraction(tiling.lanes)
    return Blocks(tiles, apart.matrices, columns)


def apart_readers(apart: Apart) -> Inlining:
    """The readers of each value: what a row is reduced of is computed by all threads, before some of them reduce it."""
    readers = inlining(apart.shaped, apart.copies, scalars=True)
    inlined = list(readers.inlined)
    for value in apart.matrices:
        reader = readers.sole[value]
        if reader is not None and reader[0].acc is not None:
            inlined[value] = False
    for value in apart.quotients:
        inlined[value] = True
    return replace(readers, inlined=tuple(inlined))


Parts = tuple[int, int]


def _parts(apart: Apart, machine: Machine) -> dict[Phase, tuple[Parts, Parts]]:
    """The splits of rows and columns of each kernel: for threads, and elements of each, half as many of what is wide.

    Tiles with copies of their factors have room in a block then (``apart_copies.MOST_PRODUCTS``).
    """
    threads, rows = machine.tiles.threads, machine.tiles.rows
    wide = dict.fromkeys(apart.sides, BYTES["f32"])
    for value, phase in apart.phases.items():
        wide[phase] = max(wide[phase], BYTES[apart.shaped.tensors[value].dtype])
    return {
        phase: ((threads, rows * BYTES["f32"] // width), (threads, rows // 2))
        for phase, width in wide.items()
    }


class _Axes:
    """An assignment of a kernel: which of its axes walk rows and columns of matrices, and in which parts."""

    def __init__(
        self,
        node: Assignment,
        labels: Sequence[int | None],
        sides: tuple[int, int],
        parts: tuple[Parts, Parts],
    ) -> None:
        self.node = node
        self.rows, self.columns = (labels.index(label) for label in sides)
        self.parts = parts
        self.factors: list[tuple[int, ...]] = [()] * len(node.axes)
        self.factors[self.rows], self.factors[self.columns] = parts

    def pointwise(self) -> BlockTile:
        """A thread computes the elements of its part of a tile; a sum of one term among them."""
        inner: list[tuple[Loop, Role]] = [
            (Loop(self.rows, 1), "t"),
            (Loop(self.columns, 1), "t"),
            (Loop(self.rows, 2), "u"),
            (Loop(self.columns, 2), "u"),
        ]
        outer = [Loop(self.rows), Loop(self.columns), *map(Loop, self.node.reduced_axes())]
        return self._tile(outer, inner, len(outer) + len(inner))

    def matrix(self, extents: Extents, terms: int) -> BlockTile:
        """A tile of a product, whose factors are copied part by part."""
        *others, last = self.node.reduced_axes()
        extent = extents.fixed(self.node.sizes[last])
        self.factors[last] = (
            (terms,) if extent is not None and extent <= RUN else (RUN // terms, terms)
        )
        *outer, term = (Loop(last, part) for part in range(len(self.factors[last]) + 1))
        around = [Loop(self.rows), Loop(self.columns), *map(Loop, others), *outer]
        return self._tile(around, [(term, SEQUENTIAL), *self._sides(self.columns)])

    def fold(self) -> BlockTile:
        """A thread has a row of the tile."""
        others = [Loop(a) for a in self.node.reduced_axes() if a != self.columns]
        inner: list[tuple[Loop, Role]] = [
            (Loop(self.rows, 1), "t"),
            (Loop(self.rows, 2), "t"),
            (Loop(self.columns, 1), SEQUENTIAL),
            (Loop(self.columns, 2), SEQUENTIAL),
        ]
        outer = [Loop(self.rows), *others, Loop(self.columns)]
        return self._tile(outer, inner, len(outer) + len(inner))

    def contraction(self, lanes: int) -> BlockTile:
        """Rows of the tile times what stands beside its columns."""
        others = [Loop(a) for a in self.node.reduced_axes() if a != self.columns]
        self.factors[lanes] = self.parts[0]
        outer = [Loop(self.rows), Loop(lanes), *others, Loop(self.columns)]
        terms: list[tuple[Loop, Role]] = [
            (Loop(self.columns, 1), SEQUENTIAL),
            (Loop(self.columns, 2), SEQUENTIAL),
        ]
        return self._tile(outer, [*terms, *self._sides(lanes)])

    def _sides(self, lanes: int) -> list[tuple[Loop, Role]]:
        """The parts of rows and lanes: threads, and the adjacent elements of each of them."""
        roles: tuple[tuple[int, Role], ...] = ((1, "t"), (2, "u"))
        return [(Loop(axis, part), role) for part, role in roles for axis in (self.rows, lanes)]

    def _tile(
        self, outer: Sequence[Loop], inner: Sequence[tuple[Loop, Role]], depth: int | None = None
    ) -> BlockTile:
        """Loops over batches, ``outer`` ones, and those of a block."""
        looped = {loop.axis for loop in (*outer, *(loop for loop, _ in inner))}
        batch = [Loop(axis) for axis in self.node.output_axes() if axis not in looped]
        order = (*batch, *outer, *(loop for loop, _ in inner))
        plain: list[Role] = [SEQUENTIAL for _ in (*batch, *outer)]
        roles = (*plain, *(role for _, role in inner))
        at = len(plain) if depth is None else len(order)
        return BlockTile(tuple(self.factors), order, roles, at)
