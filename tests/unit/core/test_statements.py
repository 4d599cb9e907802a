"""The one traversal of statements of kernels: what is inside each, and what stays itself where nothing changes."""

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
    inner = For(VariableId(1), 0, (stored(0),))
    body = (For(outer, 0, (inner, stored(1))), If((), (stored(0),), (stored(0),)))
    kept = map_statements(body, lambda s: None if s == stored(0) else s)
    assert kept == (For(outer, 0, (stored(1),)),)
    assert body[0].body[0] is inner


def test_the_block_of_a_tile_changes() -> None:
    tile = Tile(BufferId(0), Constant(0, "f32"), (stored(1), stored(1)))
    changed = map_blocks(tile, lambda block: block[:1])
    assert blocks_of(changed) == ((stored(1),),)
    assert map_blocks(stored(1), lambda block: block[:0]) == stored(1)
