"""Epilogues of tiles on a GPU: pointwise work on the elements of a contraction, which is then never stored.

Example, a layer with a bias:
    in:   t2 = sum t1[i,j,k] over k;  t3 = t2[i,j] + b[j];  out = max(t3[i,j], 0)
    out:  out has the block, the threads and the elements of t2, t3 || i j 0 i' j' ... computes t2 inside of a block

Each thread ends with the elements that it has the sums of, in its registers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.choose.tile import BlockTile
from ilang.core.schedule.choose.tilings import End, end_after, tail_of


def epilogues(
    shaped: Shaped,
    written: Sequence[Nest | None],
    readers: Inlining,
    tiles: Sequence[BlockTile | None],
    others: Collection[int],
) -> tuple[tuple[BlockTile | None, ...], Mapping[int, int]]:
    """The tiles of a program with those of values that end contractions, and the contractions.

    A tile that ends a contraction is that of the contraction, without the loops over terms. Of each contraction, by
    number, the second has how many loops of its reader stand around it.

    Args:
        shaped: the program.
        written: the nests that a person wrote; their values take part in none.
        readers: who reads each value.
        tiles: of each value that goes block by block.
        others: values that belong to other kernels already.
    """
    ends: dict[int, End] = {}
    all_tiles = [*tiles]
    depths: dict[int, int] = {}
    for value, node in enumerate(shaped.nodes):
        if not isinstance(node, Assignment) or value in others or written[value] is not None:
            continue
        tile = tiles[value]
        if tile is not None and _ends_in_block(node, tile):
            ends[value] = value, {axis: axis for axis in node.output_axes()}
        elif tile is None and (end := _end(shaped, readers, ends, node)) is not None:
            contraction, axes = end
            ends[value] = end
            tile = tiles[contraction]
            assert tile is not None
            if not readers.inlined[value] and contraction not in depths:
                all_tiles[value] = kept = _kept(tile, axes, len(node.axes))
                depths[contraction] = kept.depth
    return tuple(all_tiles), depths


def _ends_in_block(node: Assignment, tile: BlockTile) -> bool:
    """Whether each thread of a block has whole sums of a contraction in the end."""
    reduced = set(node.reduced_axes())
    named = zip(tile.order, tile.roles, strict=False)
    inner = {loop.axis for loop in tile.order[tile.depth :]}
    plain = not any(loop.axis in reduced and role for loop, role in named)
    return bool(node.acc and node.base is None and reduced & inner and inner - reduced) and plain


def _end(
    shaped: Shaped, readers: Inlining, ends: Mapping[int, End], node: Assignment
) -> End | None:
    """The contraction whose elements a pointwise value has, in their order, and where its axes are in the value."""

    def is_end(read: Read) -> bool:
        if read.value not in ends:
            return False
        contraction, axes = end_after(shaped, ends[read.value], read)
        of = shaped.assignment(contraction)
        return [axes.get(axis) for axis in of.output_axes()] == list(node.output_axes())

    tail = tail_of(shaped, readers, node, is_end)
    return None if tail is None else end_after(shaped, ends[tail.value], tail)


def _kept(tile: BlockTile, axes: Mapping[int, int], count: int) -> BlockTile:
    """The tile of what is stored instead of a contraction: its loops over elements, and nothing copied."""
    factors: list[tuple[int, ...]] = [()] * count
    for inner, axis in axes.items():
        factors[axis] = tile.factors[inner]
    kept = [n for n, loop in enumerate(tile.order) if loop.axis in axes]
    return BlockTile(
        tuple(factors),
        tuple(Loop(axes[tile.order[n].axis], tile.order[n].part) for n in kept),
        tuple(tile.roles[n] if n < len(tile.roles) else "" for n in kept),
        sum(n < tile.depth for n in kept),
        strided=(),
    )
