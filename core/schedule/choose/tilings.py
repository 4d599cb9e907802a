"""Assignments that are tiled, and pointwise work on the elements of a tile: rule 6 of the choice.

Example:
    in:   t1 = in0[i,k] * in1[k,j];  t2 = sum t1[i,j,k] over k;  out = max(t2[i,j], 0)
    out:  t2 has rows i, lanes j;  out ends a tile of t2, i and j being its own i and j
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from ilang.core.calculus.affine import variables_of
from ilang.core.cost import cycles_of
from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment, Node, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.record import record, replace
from ilang.core.schedule.choose.accesses import Accesses
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.choose.taking import taken
from ilang.core.schedule.choose.tile import Factors, TileOf, Tiling
from ilang.core.schedule.fuse import mapping

End = tuple[int, dict[int, int]]
"""The tiled reduction that a value is, or is pointwise work on, and where its axes are in the value."""


@record
class Tilings:
    """Per value: how it is tiled, and the tiled reduction that it is or is pointwise work on."""

    tiles: tuple[Tiling | None, ...]
    ends: tuple[End | None, ...]

    def found(self, value: int) -> tuple[Tiling, dict[int, int]] | None:
        """The tiling that a value takes part in, and where its axes are in the value."""
        end = self.ends[value]
        if end is None:
            return None
        tile = self.tiles[end[0]]
        assert tile is not None
        return tile, end[1]

    def is_by_rows(self, value: int) -> bool:
        """Whether a value is computed in tiles, block of rows by block of rows."""
        tiling = self.found(value)
        return tiling is not None and tiling[0].is_by_rows

    def loops(self, value: int, node: Assignment) -> tuple[Factors, tuple[Loop, ...]] | None:
        """The splits and loops of a tiled reduction, or of pointwise work on the elements of one."""
        tiling = self.found(value)
        if tiling is None:
            return None
        tile, pairs = tiling
        factors: list[tuple[int, ...]] = [()] * len(node.axes)
        for inner, axis in pairs.items():
            factors[axis] = tile.factors[inner]
        order = [Loop(pairs[loop.axis], loop.part) for loop in tile.order() if loop.axis in pairs]
        if node.acc is None:  # rows and lanes as they stand in the result
            outputs = node.output_axes()
            order[-2:] = sorted(order[-2:], key=lambda loop: outputs.index(loop.axis))
        return tuple(factors), tuple(order)


def tilings(
    shaped: Shaped,
    written: Sequence[Nest | None],
    inlining: Inlining,
    accesses: Sequence[Accesses],
    tile_of: TileOf,
) -> Tilings:
    """The tilings of a program.

    Args:
        shaped: the program.
        written: the nests that a person wrote.
        inlining: who reads each value.
        accesses: what each assignment reads and writes.
        tile_of: what chooses the tiling of a reduction.
    """
    tiles: list[Tiling | None] = []
    tails: list[Read | None] = []
    ends: list[End | None] = []
    others: set[int] = set()
    inner: list[bool] = []  # loops inside those of a reader, which nothing has priced there
    for value, node in enumerate(shaped.nodes):
        tile = tail = None
        inner.append(False)
        if isinstance(node, Assignment):
            has_inner, is_inner = any(inner[n] for n in node.values()), bool(inlining.sole[value])
            inner[-1] = has_inner if inlining.inlined[value] else is_inner
            tile = tile_of(node, accesses[value])
            if tile is not None and tile.is_dear and not has_inner and not is_inner:
                tile = None
            if tile is not None and not _gives(shaped, written, inlining, node, tile):
                tile = None
            tail = tail_of(
                shaped,
                inlining,
                node,
                lambda read: (
                    read.value not in others
                    and (tiles[read.value] is not None or tails[read.value] is not None)
                ),
            )
        tiles.append(tile)
        tails.append(tail)
        ends.append(_end(shaped, value, tile, tail, ends))
        if not _has_loops(Tilings(tuple(tiles), tuple(ends)), value, node, written[value]):
            others.add(value)
    return Tilings(tuple(tiles), tuple(ends))


def crossed(shaped: Shaped, inlining: Inlining, tiles: Tilings) -> set[int]:
    """The values beside a tile that its lanes read across, not along memory: a copy of what is stored is transposed."""
    values = set[int]()
    pairs = zip(shaped.nodes, tiles.tiles, strict=True)
    walks = [(n, {tile.lanes}) for n, tile in pairs if tile and isinstance(n, Assignment)]
    while walks:
        node, lanes = walks.pop()
        for read in node.reads:
            producer = shaped.nodes[read.value]
            if not isinstance(producer, Assignment):
                continue
            if inlining.inlined[read.value]:
                axes = mapping(producer, read)
                walks.append((producer, {axis for axis in axes if axes[axis] in lanes}))
            elif lanes & variables_of(read.index[:-1]):
                values.add(read.value)
    return values


def turned(
    shaped: Shaped, inlining: Inlining, tiles: Tilings, extents: Extents, machine: Machine
) -> set[int]:
    """The values of tiles that are stored, where what they end with has rows and lanes the other way around.

    Inside a tile that goes element by element; by itself in squares of vectors, while lines come and go.
    """
    core, values, time = machine.core, set[int](), dict[int, float]()
    if core is None or not any(tiles.tiles):
        return values
    ends = [
        (value, node, end[0])
        for (value, node), end in zip(shaped.numbered(), tiles.ends, strict=True)
        if end is not None and isinstance(node, Assignment) and node.acc is None
    ]
    for _, node, tiled in ends:
        time[tiled] = time.get(tiled, 0.0) + cycles_of(node)
    for value, _, tiled in ends:
        tile = tiles.tiles[tiled]
        if inlining.inlined[value] or tile is None or tile.is_by_rows:
            continue
        read, last = _turned_read(shaped, tiles, value), shaped.tensors[value]
        if read is None:
            continue
        vector = machine.vector_lanes(last.dtype)
        line = core.cycles_of_line(BYTES[last.dtype] * prod(map(extents.usual, last.dims)))
        moved = core.stored + 1 / core.loads + 3 * line
        if core.transposed + (time[tiled] + moved) / vector < time[tiled]:
            values.add(read)
    return values


def _turned_read(shaped: Shaped, tiles: Tilings, value: int) -> int | None:
    """The value of a tile that is read turned for one that ends it; None where that has rows and lanes as the tile."""
    end = tiles.ends[value]
    assert end is not None
    tiled = end[0]

    def is_turned(value: int) -> bool:
        tiling = tiles.found(value)
        assert tiling is not None
        tile, axes = tiling
        outputs = shaped.assignment(value).output_axes()
        return outputs.index(axes[tile.lanes]) < outputs.index(axes[tile.rows])

    as_tiled = is_turned(tiled)
    if is_turned(value) == as_tiled:
        return None
    while is_turned(value) != as_tiled:
        reads = shaped.assignment(value).reads
        ends = ((read.value, tiles.ends[read.value]) for read in reads)
        value = next(each for each, other in ends if other is not None and other[0] == tiled)
    return value


def _gives(
    shaped: Shaped,
    written: Sequence[Nest | None],
    inlining: Inlining,
    node: Assignment,
    tile: Tiling,
) -> bool:
    """Whether what is computed in the innermost loop of a tile has the loops of that, where a person wrote its nest."""
    for read in dict.fromkeys(node.reads):
        producer, nest = shaped.nodes[read.value], written[read.value]
        if nest is None or not inlining.inlined[read.value] or not isinstance(producer, Assignment):
            continue
        pairs, axes = mapping(producer, read), tuple(range(len(producer.axes)))
        around = (Nest(tile.factors, each.order(), ()) for each in (tile, tile.by_rows()))
        if (nest.factors, nest.order) not in [taken(outer, pairs, axes) for outer in around]:
            return False
    return True


def _has_loops(tilings: Tilings, value: int, node: Node, nest: Nest | None) -> bool:
    """Whether a written nest has the loops of the tiling that its value takes part in, by blocks of rows or not."""
    end = tilings.ends[value]
    if nest is None or end is None or not isinstance(node, Assignment):
        return True
    tile = tilings.tiles[end[0]]
    assert tile is not None
    tiles = list(tilings.tiles)
    tiles[end[0]] = tile.by_rows()
    rows = replace(tilings, tiles=tuple(tiles))
    return (nest.factors, nest.order) in (tilings.loops(value, node), rows.loops(value, node))


def tail_of(
    shaped: Shaped, inlining: Inlining, node: Assignment, is_end: Callable[[Read], bool]
) -> Read | None:
    """The one read of a pointwise node that delivers, element by element, what may be a tiled reduction.

    Args:
        shaped: the program.
        inlining: who reads each value.
        node: an assignment.
        is_end: whether a read is of such a reduction, or of pointwise work on one.
    """
    if node.acc is not None or node.base is not None:
        return None
    for read in dict.fromkeys(node.reads):
        producer = shaped.nodes[read.value]
        if (
            isinstance(producer, Assignment)
            and inlining.sole[read.value] is not None
            and len(set(mapping(producer, read).values())) == len(node.axes) == len(read.index)
            and is_end(read)
        ):
            return read
    return None


def _end(
    shaped: Shaped, value: int, tile: Tiling | None, tail: Read | None, ends: Sequence[End | None]
) -> End | None:
    """The tiled reduction that a value is, or is pointwise work on; ``ends`` are those of all values before."""
    node = shaped.nodes[value]
    if tile is not None and isinstance(node, Assignment):
        return value, {axis: axis for axis in range(len(node.axes))}
    if tail is None:
        return None
    end = ends[tail.value]
    return end and end_after(shaped, end, tail)


def end_after(shaped: Shaped, end: End, tail: Read) -> End:
    """An end of what is read, with the axes of its reader."""
    producer = shaped.assignment(tail.value)
    names = mapping(producer, tail)
    return end[0], {at_end: names[at] for at_end, at in end[1].items() if at in names}
