"""What the chosen schedule achieves: storage, nests and loop orders, not their text."""

from __future__ import annotations

import pytest

from ilang.core.ir.cpu import Tile
from ilang.core.ir.kernel import Define, For, If, Program, statements_within
from ilang.core.ir.shaped import Assignment
from ilang.core.ir.size_class import size_class
from ilang.core.machine import CPU
from ilang.core.pipeline import graph_of, infer, loops_text, lower, text_component


def program(text: str, dtypes: list[str | None] | None = None) -> Program:
    return lower(infer(graph_of(text_component(text), "f"), dtypes))


def stored(p: Program) -> list[tuple[str, int, bool]]:
    """Name, rank and privacy of every temporary."""
    return [(b.name, len(b.dims), b.private) for b in p.buffers if b.role == "temporary"]


def tiles(p: Program) -> list[tuple[int, ...]]:
    """The extents, by size number, of every register tile."""
    found = (s for kernel in p.kernels for s in statements_within(kernel.body))
    return [p.buffers[s.buffer].dims for s in found if isinstance(s, Tile)]


def loop_letters(p: Program, kernel: int) -> str:
    """The loops met first at each depth of a kernel."""
    letters = ""
    body = p.kernels[kernel].body
    while loops := [s for s in body if isinstance(s, For)]:
        deepest = max(loops, key=depth)
        letters += p.kernels[kernel].names[deepest.variable]
        body = deepest.body
    return letters


def depth(loop: For) -> int:
    return 1 + max((depth(s) for s in loop.body if isinstance(s, For)), default=0)


def test_matrix_multiply_stores_no_product() -> None:
    p = program("ik*kj~ijk >> +ijk~ij")
    assert len(p.kernels) == 1
    assert stored(p) == [("in1_copy", 2, True)]
    assert [p.sizes[n].fixed for n in tiles(p)[0]] == [6, 64]


def test_multiply_by_a_transposed_matrix_packs_what_runs_across() -> None:
    p = program("ik*jk~ijk >> +ijk~ij")
    assert stored(p) == [("in1_copy", 2, True)]
    assert len(tiles(p)) == 1


@pytest.mark.parametrize(
    ("text", "shapes", "is_packed"),
    [
        ("bo*bk~obk >> +obk~ok", [(512, 64), (512, 256)], True),
        ("nbo*nbk~nobk >> +nobk~nok", [(3, 512, 64), (3, 512, 320)], True),
        ("bo*bk~obk >> +obk~ok", [(512, 64), (512, 255)], False),  # few lanes share a copy
        ("bo*bhk~ohbk >> +ohbk~ohk", [(512, 64), (512, 4, 64)], True),  # those of all heads do
        ("bo*bhk~ohbk >> +ohbk~ohk", [(512, 64), (512, 3, 64)], False),
        ("ob*bk~obk >> +obk~ok", [(64, 512), (512, 256)], False),  # rows go along memory
        ("bo*bk~obk >> +obk~ok", None, False),
    ],
)
def test_what_runs_across_rows_is_packed_for_many_lanes(
    text: str, shapes: list[tuple[int, ...]] | None, is_packed: bool
) -> None:
    shaped = infer(graph_of(text_component(text), "f"), shapes=shapes)
    names = {buffer.name.replace("_flat", "") for buffer in lower(shaped).buffers}
    assert "in1_copy" in names
    assert ("in0_copy" in names) is is_packed


@pytest.mark.parametrize(("columns", "is_packed"), [(32, False), (64, False), (200, True)])
def test_rows_as_long_as_a_tile_are_not_packed(columns: int, is_packed: bool) -> None:
    shaped = infer(
        graph_of(text_component("ik*kj~ijk >> +ijk~ij"), "f"), shapes=[(64, 100), (100, columns)]
    )
    assert ("in1_copy" in {buffer.name for buffer in lower(shaped).buffers}) is is_packed


@pytest.mark.parametrize("text", ["bik*kj~bijk >> +bijk~bij", "bik*jk~bijk >> +bijk~bij"])
def test_what_all_batches_share_is_packed_once(text: str) -> None:
    p = program(text)
    assert stored(p) == [("in1_copy", 2, True)]
    (strips,) = p.kernels[0].body
    assert isinstance(strips, For)
    assert p.kernels[0].names[strips.variable] == "j"
    assert [p.kernels[0].names[s.variable] for s in strips.body if isinstance(s, For)][-1] == "b"


def test_blocks_of_terms_are_added_inside_the_tile() -> None:
    p = program("ik*kj~ijk >> +ijk~ij")
    tile = next(s for s in statements_within(p.kernels[0].body) if isinstance(s, Tile))
    assert [p.kernels[0].names[loop.variable] for loop in tile.blocks] == ["k"]
    assert p.buffers[tile.buffer].dtype == "f32"


@pytest.mark.parametrize(("m", "n"), [(64, 16), (8, 10), (16, 48), (128, 100), (1000, 1000)])
def test_tiles_of_fixed_extents_are_narrow_and_fit_registers(m: int, n: int) -> None:
    graph = graph_of(text_component("ik*kj~ijk >> +ijk~ij"), "f")
    p = lower(infer(graph, shapes=[(m, 32), (32, n)]))
    rows, lanes = (p.sizes[n].fixed or 0 for n in tiles(p)[0])
    assert lanes % 16 == 0
    assert lanes < n + 16
    assert rows < m + 8
    assert 6 <= rows * lanes // 16 <= 24, (
        "vectors of sums: enough to hide additions, and no more than are held"
    )


def test_small_rows_are_not_tiled() -> None:
    graph = graph_of(text_component("ik*kj~ijk >> +ijk~ij"), "f")
    shaped = infer(graph)
    small = size_class(shaped, [(3, 90), (90, 80)], CPU)
    assert [shaped.sizes[n].name for n in small] == ["i"]
    untiled = lower(shaped, small=small)
    assert tiles(untiled) == []
    assert [size.fixed for size in untiled.sizes if size.fixed] == [2048, 8]


def test_bias_and_activation_are_computed_on_the_tile() -> None:
    p = program("ik*kj~ijk >> +ijk~ij >> ij+j~ij >> >ij~ij")
    assert len(p.kernels) == 1
    assert [name for name, rank, _ in stored(p) if rank > 1] == ["in1_copy"]


def test_a_convolution_packs_its_windows_with_their_padding() -> None:
    p = program("nc(y+u-1)(x+v-1)*ocuv~noyxcuv >> +noyxcuv~noyx")
    assert len(tiles(p)) == 1
    assert ("in0_copy", 4, True) in stored(p)


def test_a_transposing_copy_goes_in_strips() -> None:
    p = program("ij~ji")
    assert [size.fixed for size in p.sizes if size.fixed] == [32]
    assert stored(p) == []


@pytest.mark.parametrize("text", ["-ij~ji", "ij+ji~ij", "-ij~ij >> ij~ji"])
def test_transposed_work_goes_block_by_block_and_copies_what_runs_across(text: str) -> None:
    p = program(text)
    assert len(p.kernels) == 1
    assert [(rank, private) for _, rank, private in stored(p)] == [(2, True)]
    assert {p.sizes[n].fixed for b in p.buffers if b.role == "temporary" for n in b.dims} == {
        32,
        64,
    }


@pytest.mark.parametrize("count", [2, 5, 40])
def test_a_chain_of_pointwise_expressions_is_one_nest(count: int) -> None:
    p = program(" >> ".join(["-ij~ij"] * count))
    assert len(p.kernels) == 1
    assert stored(p) == []
    assert loop_letters(p, 0) == "ij"


def test_a_transposed_chain_is_one_nest() -> None:
    p = program("-ij~ji >> ^ij~ij >> +ij~ji")
    assert (len(p.kernels), stored(p)) == (1, [])


def test_a_row_statistic_is_one_scalar_per_row() -> None:
    p = program("(I & +ij~i) >> ij/i~ij")
    assert (len(p.kernels), stored(p)) == (1, [])


def test_an_element_read_again_is_computed_once_at_its_own_depth() -> None:
    p = program("^i~i >> i*j~ij")
    assert (len(p.kernels), stored(p)) == (1, [])


def test_an_element_read_again_in_an_outer_loop_gets_a_buffer_of_its_own_size() -> None:
    p = program("^i~i >> i*j~ji")
    assert stored(p) == [("exps", 1, False)]


def test_a_value_of_two_readers_is_computed_once_inside_the_loops_of_both() -> None:
    p = program("^ij~ij >> (I & +ij~i) >> ij/i~ij")
    assert stored(p) == [("exps", 1, True)]
    assert len(p.kernels) == 1


def test_a_value_that_readers_meet_in_different_orders_is_stored() -> None:
    p = program("^ij~ij >> (+ij~i & +ij~j)")
    assert ("exps", 2, False) in stored(p)


def test_column_sums_walk_memory_in_order() -> None:
    p = program("+ij~j")
    (either,) = p.kernels[0].body
    assert isinstance(either, If)
    (strip,) = either.otherwise
    assert isinstance(strip, For)
    assert p.kernels[0].names[strip.variable] == "j"
    text = loops_text(p)
    assert text.index("for i in") < text.index("part += in0[8i+i1,2048j+j1]")
    assert "out[2048j+j1] = f32(out_acc[j1])" in text


def test_outputs_are_written_in_place() -> None:
    p = program("-i~i >> (I & ^i~i)")
    assert [p.buffers[n].role for n in p.outputs] == ["output", "output"]
    assert stored(p) == []


def test_only_loops_over_output_axes_and_chunks_are_parallel() -> None:
    row, column = program("+ij~i"), program("+ij~j")
    assert [isinstance(s, For) and s.parallel for s in row.kernels[0].body] == [True]
    (either,) = column.kernels[0].body
    assert isinstance(either, If)
    parallel = [s for s in (*either.body, *either.otherwise) if isinstance(s, For) and s.parallel]
    assert [column.kernels[0].names[s.variable] for s in parallel] == ["b", "j", "j"]


def test_every_output_is_an_assignment_of_its_own() -> None:
    shaped = infer(graph_of(text_component("(I & I) | 0.5"), "f"), None, [2])
    assert len(set(shaped.outputs)) == 3
    assert all(isinstance(shaped.nodes[value], Assignment) for value in shaped.outputs)


def test_float_sums_accumulate_in_double() -> None:
    p = program("+i~.")
    assert "double" not in [b.dtype for b in p.buffers]
    assert [s.dtype for s in p.kernels[0].body if isinstance(s, Define)] == ["f64"]
    assert ("out_parts", "f64") in [(b.name, b.dtype) for b in p.buffers]
