"""The one traversal of statements of kernels: what is inside each, and what stays itself where nothing changes."""

from ilang.core.calculus.affine import Within, axis_index, size_value
from ilang.core.calculus.extent import ZERO, size
from ilang.core.ir.cpu import Tile
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.kernel import (
    For,
    If,
    Statement,
    Store,
    blocks_of,
    children,
    map_blocks,
    map_statements,
    statements_within,
)
from ilang.core.ir.scalar import Constant
from ilang.core.pipeline import graph_of, infer, lower, text_component
from ilang.core.record import replace

PROGRAMS = (
    "ik*kj~ijk >> +ijk~ij",
    "ijk~kij",
    "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij",
)


def bodies() -> list[tuple[Statement, ...]]:
    programs = [lower(infer(graph_of(text_component(text), "program"))) for text in PROGRAMS]
    return [kernel.body for program in programs for kernel in program.kernels]


def stored(buffer: int) -> Store:
    return Store(BufferId(buffer), (), Constant(1, "f32"))


def test_children_hold_every_block() -> None:
    for body in bodies():
        for s in statements_within(body):
            assert {id(x) for block in blocks_of(s) for x in block} <= {id(x) for x in children(s)}


def test_what_changes_nothing_gives_the_same() -> None:
    for body in bodies():
        assert map_statements(body, lambda s: s) is body
        assert all(map_blocks(s, lambda block: block) is s for s in statements_within(body))


def test_what_is_left_empty_is_left_out() -> None:
    outer = VariableId(0)
    inner = For(VariableId(1), size(0), (stored(0),))
    body = (For(outer, size(0), (inner, stored(1))), If((), (stored(0),), (stored(0),)))
    kept = map_statements(body, lambda s: None if s == stored(0) else s)
    assert kept == (For(outer, size(0), (stored(1),)),)
    assert body[0].body[0] is inner


def test_the_block_of_a_tile_changes() -> None:
    tile = Tile(BufferId(0), Constant(0, "f32"), (stored(1), stored(1)))
    changed = map_blocks(tile, lambda block: block[:1])
    assert blocks_of(changed) == ((stored(1),),)
    assert map_blocks(stored(1), lambda block: block[:0]) == stored(1)


def test_a_loop_begins_and_ends_where_its_bounds_say() -> None:
    """Of ``for v1 in 0..min(n0, ceil((v0 + 1) / 2), n1 - 3 v0)``: what is asked of it."""
    v0, v1 = axis_index(0), axis_index(1)
    left = size_value(1) - 3 * v0
    loop = For(VariableId(1), size(0).among("min", [(v0 + 1, 2), (left, 1)]), ())
    assert loop.size == 0
    assert loop.within == (Within(v0 - 2 * v1, None), Within(3 * v0 + v1, 1))
    assert loop.part() == (3 * v0, 1)
    assert loop.ends() == {0}
    assert loop.whole() == For(VariableId(1), size(0), ())
    later = replace(loop, begin=ZERO.among("max", [(v0, 1)]))
    assert later.within[:1] == (Within(v1 - v0, None),)
    assert later.whole() == loop.whole()
