"""Tiles in registers: what the verifier refuses, integers that wrap, and work of any depth inside."""

from collections.abc import Callable
from typing import Any

import pytest

from ilang.codegen.targets import c
from ilang.core.calculus.affine import Affine, Within, axis_index
from ilang.core.check import kernel as check
from ilang.core.diagnostic import InternalError
from ilang.core.ir.cpu import Tile, Transpose
from ilang.core.ir.kernel import For, If, Program, Statement, Store, statements_within
from ilang.core.ir.rewriting import Access, nested, with_indices
from ilang.core.ir.scalar import Constant
from ilang.core.machine import CPU
from ilang.core.passes.cpu.tiles import kernel_to_tiles
from ilang.core.pipeline import LOWERING, graph_of, infer, loops_text, lower, text_component
from ilang.core.record import replace
from ilang.core.steps import PASSES

MATMUL = "ik*kj~ijk >> +ijk~ij"


def lowered(text: str, **known: object) -> Program:
    return lower(infer(graph_of(text_component(text), "program"), **known))  # type: ignore[arg-type]


def inside(program: Program) -> list[Statement]:
    return [s for kernel in program.kernels for s in statements_within(kernel.body)]


def tiles(program: Program) -> list[Tile]:
    return [s for s in inside(program) if isinstance(s, Tile)]


@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_integers_are_not_held(dtype: str) -> None:
    assert all(tile.number is None for tile in tiles(lowered(MATMUL, dtypes=(dtype, dtype))))


def zeros(program: Program) -> list[Store]:
    stores = (s for s in inside(program) if isinstance(s, Store))
    return [s for s in stores if s.value == Constant(0, "f32") and not _is_tile(program, s)]


def _is_tile(program: Program, store: Store) -> bool:
    return program.buffers[store.buffer].role == "tile"


def test_what_is_left_out_stands_after_its_tile() -> None:
    wrong = with_tile(lowered(MATMUL), lambda tile: replace(tile, target=None))
    with pytest.raises(InternalError, match="what a stored tile leaves out stands after it"):
        check.verify(wrong)


def with_tile(program: Program, change: Callable[[Tile], Tile]) -> Program:
    """The program with another tile."""

    def block(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(
            change(s)
            if isinstance(s, Tile)
            else replace(s, body=block(s.body))
            if isinstance(s, For)
            else s
            for s in body
        )

    kernels = tuple(replace(kernel, body=block(kernel.body)) for kernel in program.kernels)
    return replace(program, kernels=kernels)


@pytest.mark.parametrize(
    ("change", "invariant"),
    [
        (
            lambda tile: replace(
                tile, body=nested((*tile.core(), *tile.loops()[::-1]), tile.iteration())
            ),
            "a tile in registers has a loop for each dimension",
        ),
        (lambda tile: replace(tile, vector=24), "a row of a tile has a vector at least"),
        (lambda tile: replace(tile, fill=None), "a copy that a tile fills has a deferred loop"),
        (lambda tile: replace(tile, number=None), "a tile that fills a copy is in registers"),
        (
            lambda tile: replace(tile, target=replace(tile.target, buffer=0)),
            "the statement after a tile stores it",
        ),
    ],
)
def test_a_tile_that_is_said_to_be_another_is_refused(
    change: Callable[[Tile], Tile], invariant: str
) -> None:
    with pytest.raises(InternalError, match=invariant):
        check.verify(with_tile(lowered(MATMUL), change))


def test_a_tile_that_fills_is_in_registers_wherever_it_is() -> None:
    (tile,) = tiles(lowered(MATMUL))
    assert tile.number is not None
    rows = tile.loops()[0]
    guards = tuple(end.at(rows.variable, 0) for end in rows.within)
    with pytest.raises(InternalError, match="wherever it is"):
        check.verify(with_tile(lowered(MATMUL), lambda tile: replace(tile, guards=guards)))


def test_lanes_that_are_read_past_the_end_of_memory_are_refused() -> None:
    program = lowered(MATMUL)
    plain = tuple(replace(buffer, padded=False) for buffer in program.buffers)
    with pytest.raises(InternalError, match="lanes end with their row"):
        check.verify(replace(program, buffers=plain))


def test_lanes_that_read_across_rows_are_refused() -> None:
    program = lowered(MATMUL)
    (tile,) = tiles(program)
    row, lane = (loop.variable for loop in tile.loops())

    def across(access: Access) -> tuple[Affine, ...]:
        """The index, along lanes where it goes along rows."""
        buffer, index = access
        if buffer == tile.buffer:
            return index
        return tuple(x + axis_index(lane) if x.coefficient(row) else x for x in index)

    turned = with_indices(tile.body, across)
    with pytest.raises(InternalError, match="lanes read along a row"):
        check.verify(with_tile(program, lambda tile: replace(tile, body=turned)))


def before(text: str, stage: str) -> Program:
    """The kernels of a program as the step of a stage takes them."""
    value: Any = infer(graph_of(text_component(text), "program"))
    for step in (*LOWERING, *PASSES["cpu"]):
        if step.stage == stage:
            break
        value = step.run(value, CPU)
    assert isinstance(value, Program)
    return value


def test_rows_that_are_filled_at_two_places_are_cleared_at_both() -> None:
    program = before("ik*jk~ijk >> +ijk~ij", "tiles")
    (kernel,) = program.kernels
    (strip,) = kernel.body
    assert isinstance(strip, For)
    copy, rows = strip.body
    assert isinstance(copy, Transpose)
    whole = Within(Affine(((64, strip.variable),), 63), copy.loops.size)
    body = (replace(strip, body=(copy, If((whole,), (copy, rows)))),)
    padded = kernel_to_tiles(replace(program, kernels=(replace(kernel, body=body),)))
    check.verify(padded)
    (tile,) = tiles(padded)
    assert tile.number is not None
    assert padded.buffers[copy.nest()[2].buffer].padded
    assert not tile.guards
    assert len(zeros(padded)) == 2 * len(zeros(kernel_to_tiles(program)))


FOLDED_ROWS = "(I & {}ijk~ik) >> ijk*ik~ijk"


@pytest.mark.parametrize("dtype", ["i32", "i64"])
@pytest.mark.parametrize(("op", "sign"), [("+", "+="), ("*", "*=")])
def test_a_tile_of_integers_that_wrap_is_held_unsigned(dtype: str, op: str, sign: str) -> None:
    """GCC 12 before 12.3 loses terms where a step converts what it reduces (its bug 107212)."""
    program = lowered(FOLDED_ROWS.format(op), dtypes=(dtype,), ranks=(3,), shapes=((8, 40, 8),))
    name = {"+": "sum", "*": "product"}[op]
    assert f"{name} {dtype}[8] registers wrapping" in loops_text(program)
    text = c.emit(program)
    bits = dtype[1:]
    assert f"uint{bits}_t {name}[8];" in text
    assert f"{name}[k] {sign} (uint{bits}_t)in0[" in text
    assert f"(uint{bits}_t)in0[(i * 40 + j) * 8 + k] * {name}[k])" in text


def test_a_tile_of_maxima_is_held_as_it_is() -> None:
    program = lowered(FOLDED_ROWS.format(">"), dtypes=("i32",), ranks=(3,), shapes=((8, 40, 8),))
    assert "maximum i32[8] registers" in loops_text(program)
    assert not any(buffer.wrapping for buffer in program.buffers)
    assert "int32_t maximum[8];" in c.emit(program)


def test_what_wraps_is_only_added_to() -> None:
    program = lowered(FOLDED_ROWS.format(">"), dtypes=("i32",), ranks=(3,), shapes=((8, 40, 8),))
    (tile,) = tiles(program)
    for number, invariant in ((tile.buffer, "added to, or multiplied"), (1, "callers do not")):
        buffers = list(program.buffers)
        buffers[number] = replace(buffers[number], wrapping=True)
        with pytest.raises(InternalError, match=invariant):
            check.verify(replace(program, buffers=tuple(buffers)))


@pytest.mark.parametrize(
    "shapes", [((31, 519), (519, 18)), ((31, 300), (300, 6)), ((9, 9), (9, 5))]
)
def test_lanes_walk_what_is_computed_beside_a_tile_along_memory(
    shapes: tuple[tuple[int, ...], ...],
) -> None:
    text = "(>ij~ij | I) >> ij*jl~ilj >> +ilj~il"
    assert all(tile.number is not None for tile in tiles(lowered(text, shapes=shapes)))


def test_a_number_may_be_a_factor_inside_a_tile() -> None:
    text, shapes = "ik*kj~ijk >> ijk*.~ijk >> +ijk~ij", ((20, 30), (30, 40), ())
    assert len(tiles(lowered(text, shapes=shapes))) == 1


@pytest.mark.deep
def test_work_of_any_depth_may_stand_inside_a_tile() -> None:
    """Each product passes through more steps than Python has levels of calls."""
    text = f"ik*kj~ijk >> {' >> '.join(['-ijk~ijk'] * 1100)} >> +ijk~ij"
    assert len(tiles(lowered(text, shapes=((20, 30), (30, 40))))) == 1
