"""The steps of the choice of nests, each from values to values."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import i
from ilang.core.ir.schedule import Loop, Nest, schedule_text
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ir.size_class import extents_of
from ilang.core.machine import CPU
from ilang.core.pipeline import graph_of, infer, text_component
from ilang.core.schedule.choose.choice import analysed
from ilang.core.schedule.choose.known import Analysis, ChosenNests
from ilang.core.schedule.choose.own_loops import own_nest
from ilang.core.schedule.choose.packing import Across, TileAxes, packed_site
from ilang.core.schedule.choose.sharing import shared_inside
from ilang.core.schedule.choose.sites import adopted, site_of
from ilang.core.schedule.fuse import Provenance
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule
from ilang.core.schedule.written import written_nest

PRODUCT = "ik*kj~ijk >> +ijk~ij"
WINDOWS = "nc(y+u-1)(x+v-1)*ocuv~noyxcuv >> +noyxcuv~noyx"


def analysis_of(text: str) -> Analysis:
    """A program before any nest is chosen."""
    shaped: Shaped = infer(graph_of(text_component(text), "f"))
    written = [written_nest(n) if isinstance(n, Assignment) else None for n in shaped.nodes]
    extents = extents_of(shaped, (), CPU)
    return analysed(shaped, written, Provenance(shaped), extents, CPU)


def nest_of(analysis: Analysis, known: ChosenNests, value: int) -> Nest:
    """The nest that a value gets next, which is then known."""
    nest, packed = own_nest(analysis, known, value, node_of(analysis, value))
    known.nests[value] = nest
    known.places.setdefault(value, {loop: (value, loop) for loop in nest.order})
    if packed is not None:
        known.packed[value] = packed
    return nest


def node_of(analysis: Analysis, value: int) -> Assignment:
    node = analysis.shaped.nodes[value]
    assert isinstance(node, Assignment)
    return node


def test_a_product_has_the_loops_of_its_tiles() -> None:
    analysis = analysis_of(PRODUCT)
    known = ChosenNests(len(analysis.shaped.nodes))
    nest, packed = own_nest(analysis, known, 3, node_of(analysis, 3))
    assert schedule_text(node_of(analysis, 3), nest) == "| i:6,j:64,k:512 | j i k k' i' j'"
    assert packed == TileAxes(0, 1, False, {}, 256, 16)
    assert known.nests == [None] * 4, "a step answers, and notes nothing"


def test_one_number_is_not_copied() -> None:
    """Where a product, or a block of transposed work, reads it beside matrices."""
    shaped = infer(graph_of(text_component("ik*kj~ijk >> ijk*.~ijk >> +ijk~ij"), "f"))
    nest = shaped_to_schedule(shaped, CPU).nests[4]
    (read,) = (read for read in node_of(analysis_of("i*.~i"), 2).reads if not read.index)
    assert nest is not None
    assert nest.sites[1] is None
    for packed in (TileAxes(0, 1, False, {}, 256, 16), Across(0, 1)):
        assert packed_site(packed, read, nest) is None


def test_a_transposed_copy_has_strips() -> None:
    analysis = analysis_of("ij~ji")
    nest, packed = own_nest(analysis, ChosenNests(2), 1, node_of(analysis, 1))
    assert [loop.part for loop in nest.order] == [0, 1, 0]
    assert isinstance(packed, Across)


def test_an_operand_takes_the_loops_of_its_reader() -> None:
    analysis = analysis_of(PRODUCT)
    known = ChosenNests(len(analysis.shaped.nodes))
    nest = nest_of(analysis, known, 3)
    (read,) = node_of(analysis, 3).reads
    site, staged = site_of(analysis, known, 3, read, nest)
    assert site == len(nest.order)
    assert staged is not None
    assert schedule_text(node_of(analysis, 2), Nest(staged.factors, staged.order, ())) == (
        "| i:6,j:64,k:512 | j i k k' i' j'"
    )
    assert staged.packed == TileAxes(0, 1, False, {}, 256, 16), (
        "the axes of the tile in those of the operand"
    )
    assert set(staged.places.values()) == {(3, loop) for loop in nest.order}


def test_what_a_tile_reads_along_its_lanes_is_copied() -> None:
    analysis = analysis_of(PRODUCT)
    known = ChosenNests(len(analysis.shaped.nodes))
    nest = nest_of(analysis, known, 3)
    (read,) = node_of(analysis, 3).reads
    _, staged = site_of(analysis, known, 3, read, nest)
    assert staged is not None
    known.stage(staged)
    inner = nest_of(analysis, known, 2)
    sites = [site_of(analysis, known, 2, each, inner) for each in node_of(analysis, 2).reads]
    assert sites == [(None, None), (1, None)]


def test_a_value_that_two_reduce_is_computed_once_in_their_rows() -> None:
    analysis = analysis_of("^ij~ij >> (I & >ij~i) >> ij-i~ij >> +ij~i")
    known = ChosenNests(len(analysis.shaped.nodes))
    out = len(analysis.shaped.nodes) - 1
    nest = nest_of(analysis, known, out)
    below: dict[int, Nest] = {}
    todo = [(out, nest)]
    while todo:  # down to what two read
        value, outer = todo.pop()
        for read in node_of(analysis, value).reads:
            _, staged = site_of(analysis, known, value, read, outer)
            if staged is not None:
                known.stage(staged)
                below[read.value] = nest_of(analysis, known, read.value)
                todo.append((read.value, below[read.value]))
    shared = shared_inside(analysis, known, 1, node_of(analysis, 1))
    assert shared is not None
    depth, staged = shared
    assert depth == 1
    assert staged.order == (Loop(0), Loop(1))
    assert staged.places[Loop(0)] == (out, Loop(0))


def test_columns_that_two_reduce_are_summed_along_rows() -> None:
    """Inside of the loop of their readers each of them would walk memory from row to row."""
    columns = i("+ij~j >> (^j~j & -j~j)").loops((300, 200))
    assert columns.index("for i in") < columns.index("for j in")
    rows = i("+ij~i >> (^i~i & -i~i)").loops((300, 200))
    assert rows.count("for i in") == 1


def test_a_producer_takes_the_splits_of_a_written_reader() -> None:
    analysis = analysis_of("-ij~ij >> +ij~i | i:8 | i i' j 0")
    known = ChosenNests(len(analysis.shaped.nodes))
    nest = analysis.written[2]
    assert nest is not None
    (staged,) = adopted(analysis, known, 2, nest)
    assert staged.factors == ((8,), ())
    assert staged.order == (Loop(0), Loop(0, 1), Loop(1))


def test_what_a_window_needs_a_part_of_is_computed_whole() -> None:
    """Inside of both readers it would be computed twice, and an argmax compare two computations of one value."""
    text = "-ijk~ijk >> (I & -phn~phn) >> (>@vgb~vg | I) >> (r(2c+k:1)~rck | I)"
    shaped = infer(graph_of(text_component(text), "f"))
    groups = shaped_to_schedule(shaped, CPU).groups
    computed = [instance.value for group in groups for instance in group.plan.instances]
    assert len(computed) == len(set(computed)), "each value is computed once"


def test_what_one_reader_looks_up_is_computed_whole() -> None:
    text = "(I | -ab~ba) >> (I | (I & I)) >> (+i@iv~i | -ij~ij)"
    shaped = infer(graph_of(text_component(text), "f"))
    scheduled = shaped_to_schedule(shaped, CPU)
    assert 2 in scheduled.whole()


def nests_of(shaped: Shaped) -> list[str]:
    """The chosen nest of every assignment, as it is written."""
    scheduled = shaped_to_schedule(shaped)
    return [
        schedule_text(node, nest)
        for node, nest in zip(shaped.nodes, scheduled.nests, strict=True)
        if isinstance(node, Assignment) and nest is not None
    ]


def test_what_is_computed_before_is_copied_for_the_lanes_of_a_tile_as_an_input_is() -> None:
    shaped = infer(graph_of(text_component(f"({PRODUCT} | I) >> ~(I | I) >> {PRODUCT}"), "f"))
    *_, product, _ = nests_of(shaped)
    assert product == "| i:6,j:64,k:512 | j 1 i k k' i' j' | 1:c"
    weights = f"(I | ^ocuv~ocuv) >> {WINDOWS}"
    *_, windows, _ = nests_of(infer(graph_of(text_component(weights), "f")))
    _, plain = nests_of(infer(graph_of(text_component(WINDOWS), "f")))[-2:]
    assert windows.startswith("| o:32,y:4,x:8,c:32,u:4,v:4 | 1 n y 0 o")
    assert windows.endswith("| 1:c")
    assert plain == "| o:32,y:4,x:8,c:32,u:4,v:4 | n y o y' x c u v c' u' v' x' o' 0"


def test_what_windows_of_a_tile_read_is_computed_before_and_copied_with_its_edges() -> None:
    shaped = infer(graph_of(text_component(f"(^ncyx~ncyx | I) >> {WINDOWS}"), "f"))
    *_, windows, _ = nests_of(shaped)
    assert windows.endswith("| 0:c")


def test_a_written_copy_of_what_is_computed_before_changes_nothing() -> None:
    chosen = f"({PRODUCT} | I) >> ~(I | I) >> {PRODUCT}"
    product = "ik*kj~ijk | i:6,j:64,k:512 | j 1 i k k' i' j' | 1:c >> +ijk~ij"
    written = f"({PRODUCT} | I) >> ~(I | I) >> {product}"
    one, other = (infer(graph_of(text_component(text), "f")) for text in (chosen, written))
    assert nests_of(one) == nests_of(other)


def test_lanes_are_along_the_last_axis_that_is_long() -> None:
    """The gradient of a convolution with respect to its weights: windows are counted outside the tile."""
    back = infer(graph_of(text_component("nc(y+u-1)(x+v-1)*noyx~ocuvnyx >> +ocuvnyx~ocuv"), "f"))
    small = [n for n, size in enumerate(back.sizes) if size.name in ("u", "v")]
    scheduled = shaped_to_schedule(back, CPU, small)
    node, nest = back.nodes[-1], scheduled.nests[-1]
    assert isinstance(node, Assignment)
    assert nest is not None
    assert schedule_text(node, nest) == ("| o:6,c:64,n:4,y:4,x:32 | c u v o n y x n' y' x' o' c' 0")


def last_nest(text: str, small: tuple[str, ...]) -> str:
    """The nest of the last value where sizes are small."""
    shaped = infer(graph_of(text_component(text), "f"))
    numbers = [n for n, size in enumerate(shaped.sizes) if size.name in small]
    node, nest = shaped.nodes[-1], shaped_to_schedule(shaped, CPU, numbers).nests[-1]
    assert isinstance(node, Assignment)
    assert nest is not None
    return schedule_text(node, nest)


def test_few_channels_are_rows_where_lanes_move_windows() -> None:
    nest = last_nest(WINDOWS, ("o", "u", "v"))
    assert nest == "| o:6,x:64,c:32,u:4,v:4 | n x y o c u v c' u' v' o' x' 0"


def test_short_windows_are_rows_where_no_other_axis_is_long() -> None:
    """The gradient of the weights of a convolution with few channels in."""
    nest = last_nest("nc(y+u-1)(x+v-1)*noyx~ocuvnyx >> +ocuvnyx~ocuv", ("c", "u", "v"))
    assert nest == "| o:32,v:8,n:4,y:4,x:32 | c u o v n y x n' y' x' v' o' 0"


def test_a_product_with_few_columns_has_no_tile() -> None:
    """A copy of what its rows read would cost as much as the product."""
    assert "i'" not in last_nest(PRODUCT, ("j",))


def test_tiles_of_a_batch_that_several_read_stay_in_the_loop_over_batches() -> None:
    """Scores of attention and their softmax: a matrix for one head at a time."""
    softmax = "(I & >hij~hi) >> hij-hi~hij >> ^hij~hij >> (I & +hij~hi) >> hij/hi~hij"
    text = f"hid*hjd~hijd >> +hijd~hij >> {softmax}"
    scheduled = shaped_to_schedule(infer(graph_of(text_component(text), "f")))
    assert len(scheduled.groups) == 1
    assert len(scheduled.whole()) == 1
    alone = text.replace("h", "")
    assert len(shaped_to_schedule(infer(graph_of(text_component(alone), "f"))).whole()) == 2


@pytest.mark.parametrize("step", [">", ">>"])
@pytest.mark.parametrize(("rows", "batches"), [(32, 3), (32, 4), (48, 5), (8, 3)])
def test_tiles_of_a_batch_are_whole_where_a_reader_splits_batches(
    step: str, rows: int, batches: int
) -> None:
    """Rows of 64 results in registers, for several batches at a time."""
    x = np.arange(rows * batches * 7, dtype=np.float32).reshape(rows, batches, 7) % 5 - 2
    y = np.arange(batches * 7 * 64, dtype=np.float32).reshape(batches, 7, 64) % 3 - 1
    w = np.arange(batches * rows, dtype=np.float32).reshape(batches, rows) % 4
    scores = np.einsum("ibk,bkj->bij", x, y)
    scores *= np.maximum(scores, 0) if step == ">" else scores > 0
    text = (
        f"ibk*bkj~bijk >> +bijk~bij >> (I & {step}bij~bij) >> bij*bij~bij >> bij*bi~bji >> +bji~bj"
    )
    np.testing.assert_array_equal(i(text)(x, y, w), np.einsum("bij,bi->bj", scores, w))
