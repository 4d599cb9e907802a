"""Choices of nests that computed a value twice or in a wrong place once, and what a written schedule leaves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from ilang import i
from ilang.core.ir.schedule import schedule_text
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import CPU
from ilang.core.passes.solved_to_shaped import with_fixed
from ilang.core.pipeline import graph_of, infer, text_component
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule

PRODUCT = "ik*kj~ijk >> +ijk~ij"


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


def test_a_written_copy_of_what_is_computed_before_changes_nothing() -> None:
    chosen = f"({PRODUCT} | I) >> ~(I | I) >> {PRODUCT}"
    product = "ik*kj~ijk | i:6,j:64,k:512 | j 1 i k k' i' j' | 1:c >> +ijk~ij"
    written = f"({PRODUCT} | I) >> ~(I | I) >> {product}"
    one, other = (infer(graph_of(text_component(text), "f")) for text in (chosen, written))
    assert nests_of(one) == nests_of(other)


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


def last_nest(text: str, extents: Mapping[str, int]) -> str:
    """The nest of the last value where some extents are known."""
    shaped = infer(graph_of(text_component(text), "f"))
    shaped = with_fixed(shaped, [extents.get(size.name) for size in shaped.sizes])
    node, nest = shaped.nodes[-1], shaped_to_schedule(shaped, CPU).nests[-1]
    assert isinstance(node, Assignment)
    assert nest is not None
    return schedule_text(node, nest)


def test_short_windows_are_rows_where_no_other_axis_is_long() -> None:
    """The gradient of the weights of a convolution with few channels in."""
    nest = last_nest("nc(y+u-1)(x+v-1)*noyx~ocuvnyx >> +ocuvnyx~ocuv", {"c": 3, "u": 3, "v": 3})
    assert nest == "| o:32,n:4,y:4,x:32 | c o n y x n' y' x' u v o' 0"


def test_columns_that_two_reduce_are_summed_along_rows() -> None:
    """Inside of the loop of their readers each of them would walk memory from row to row."""
    columns = i("+ij~j >> (^j~j & -j~j)").loops((300, 200))
    assert columns.index("for i in") < columns.index("for j in")
    rows = i("+ij~i >> (^i~i & -i~i)").loops((300, 200))
    assert rows.count("for i in") == 1


def test_sums_of_rows_across_a_copy_are_by_rows_of_no_block() -> None:
    """A copy goes by squares, and its reader across short rows of it by blocks, of which the copy has none."""
    text = "(<cbda~db >> db~bd | I) >> bd+abcd~abdc >> (I & +abdc~ab) >> abdc+ab~abcd"
    random = np.random.default_rng(3)
    x, y = random.standard_normal((9, 103, 24, 6)), random.standard_normal((6, 103, 9, 24))
    both = x.min(axis=(0, 3))[None, :, None, :] + y
    expected = both + both.sum(axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(i(text)(x, y), expected, rtol=1e-12, atol=1e-12)


def test_what_is_turned_beside_a_tile_is_stored_first() -> None:
    """Functions in a tile would go element by element; a copy of more than caches hold is better made there."""
    product = "ik*kj~ijk >> +ijk~ij"
    for text, extents, kernels in (
        (f"{product} >> ^ij~ji", (500, 20, 300), 2),
        (f"{product} >> ij~ji", (500, 20, 300), 2),
        (f"{product} >> ij~ji", (3000, 20, 3000), 1),
        (f"{product} >> ^ij~ji", (3000, 20, 3000), 2),
        (f"{product} >> ^ij~ij", (500, 20, 300), 1),
        (f"{product} >> ^ij~ji >> ^ji~ij", (500, 20, 300), 1),
    ):
        rows, terms, columns = extents
        graph = graph_of(text_component(text), "f")
        shaped = infer(graph, shapes=[(rows, terms), (terms, columns)])
        assert len(shaped_to_schedule(shaped, CPU).groups) == kernels, (text, extents)
