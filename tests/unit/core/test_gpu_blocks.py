"""Blocks of contractions on a GPU: which are chosen, what they cost, and what `i explain --why` says of them."""

from __future__ import annotations

import pytest

from ilang.core import pipeline
from ilang.core.explain.why import Why
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import GPU
from ilang.core.schedule.choose.gpu_blocks import BlockShape, Sums, by_price, price_of_block

PRODUCT = "ik*kj~ijk >> +ijk~ij"
HIGH, SQUARE, THREADS = ((2, 16, 4), (16, 4)), ((16, 4), (16, 4)), ((16,), (16,))
CLOCK = 1.98e6
"""Cycles of an H200 in a millisecond."""


def sums(batch: int, rows: int | None, terms: int | None, lanes: int | None) -> Sums:
    return Sums((rows, lanes), batch, (terms,), (1, 1), "f32", False)


def reasons(text: str, *shapes: tuple[int, ...]) -> Why:
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    return pipeline.why(pipeline.infer(graph, shapes=list(shapes) or None), GPU)


@pytest.mark.parametrize(
    ("extents", "shape", "measured"),
    [
        ((1, 4096, 4096, 4096), BlockShape(HIGH, 16), 4.41),
        ((1, 2048, 2048, 2048), BlockShape(HIGH, 16), 0.556),
        ((1, 1024, 1024, 1024), BlockShape(HIGH, 16), 0.0782),
        ((1, 4001, 4000, 3999), BlockShape(HIGH, 16), 4.43),
        ((64, 512, 512, 512), BlockShape(HIGH, 16), 0.578),
        ((1, 512, 131072, 512), BlockShape(SQUARE, 16, 32768), 2.38),
        ((1, 16, 131072, 16), BlockShape(THREADS, 64, 512), 0.0163),
    ],
)
def test_prices_are_near_what_was_measured(
    extents: tuple[int, int, int, int], shape: BlockShape, measured: float
) -> None:
    """On an H200, docs/benchmarks.md: of each row the block that was chosen then. Model and device differ by 26 %."""
    price = price_of_block(sums(*extents), shape, GPU)
    assert price is not None
    assert measured / 1.3 < price.cycles() / CLOCK < 1.3 * measured


@pytest.mark.parametrize(
    ("extents", "sides", "part"),
    [
        ((1, 4096, 4096, 4096), ((2, 16, 4), (2, 16, 4)), None),
        ((1, 4001, 4000, 3999), ((2, 16, 4), (2, 16, 4)), None),
        ((1, 8192, 8192, 8192), ((2, 8, 4), (16, 4)), None),  # sums in f64 take twice the registers
        ((1, 512, 131072, 512), ((2, 16, 4), (2, 16, 4)), 4096),  # parts whose sums need none
        ((1, None, None, None), ((2, 16, 4), (16, 4)), None),
    ],
)
def test_blocks_that_are_chosen(
    extents: tuple[int, int, int, int],
    sides: tuple[tuple[int, ...], tuple[int, ...]],
    part: int | None,
) -> None:
    chosen = by_price(sums(*extents), GPU)[0][0]
    assert (chosen.sides, chosen.part) == (sides, part)


def test_what_a_device_has_no_room_for_is_no_candidate() -> None:
    eight = ((2, 16, 4), (2, 16, 4))
    assert price_of_block(sums(1, 64, 4096, 64), BlockShape(eight, 16), GPU) is not None
    assert price_of_block(sums(1, 64, 4097, 64), BlockShape(eight, 16), GPU) is None, "registers"
    assert price_of_block(sums(1, 64, 4096, 64), BlockShape(eight, 64), GPU) is None, "copies"
    crowded = ((2, 32, 4), (2, 16, 4))
    assert price_of_block(sums(1, 64, 64, 64), BlockShape(crowded, 8), GPU) is None, "all registers"


def test_parts_cost_a_kernel_and_what_follows_another() -> None:
    shape, alone = BlockShape(SQUARE, 16, 512), sums(1, 512, 4096, 512)
    assert GPU.device is not None
    first = price_of_block(alone, shape, GPU)
    followed = alone._replace(is_followed=True)
    second = price_of_block(followed, shape, GPU)
    assert first is not None
    assert second is not None
    assert second.begun - first.begun == GPU.device.launched
    assert first.merged < second.merged


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (PRODUCT, ((512, 4096), (4096, 512))),
        (PRODUCT, ()),
        (f"{PRODUCT} >> ij+j~ij", ((300, 200), (200, 100), (100,))),
        ("nc(y+u-1)(x+v-1)*ocuv~noyxcuv >> +noyxcuv~noyx", ((1, 64, 56, 56), (64, 64, 3, 3))),
    ],
)
def test_the_best_blocks_are_shown(text: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    """The first one is what runs, and each is a schedule; parts add up to what is told."""
    graph = pipeline.graph_of(pipeline.text_component(text), "f")
    shaped = pipeline.infer(graph, shapes=list(shapes) or None)
    (priced,) = reasons(text, *shapes).priced
    assert priced.kind == "tile"
    scheduled = pipeline.schedule(shaped, GPU)
    texts = {
        pipeline.explain(graph, list(shapes) or None, machine=GPU).execution.schedule[n].schedule
        for n, node in enumerate(n for n in scheduled.shaped.nodes if isinstance(n, Assignment))
    }
    if "n" not in text:  # an axis of one element has no loop
        assert priced.candidates[0].schedule in texts
    for each in priced.candidates:
        assert abs(sum(each.counted().values()) - each.cycles) <= len(each.counted())


def test_what_has_no_price_on_a_gpu_is_said() -> None:
    assert "contractions, convolutions and rows" in str(reasons("ij~ji", (3, 4)))
    assert "contractions, convolutions and rows" in str(reasons(f"{PRODUCT} | i:4 | i j k i' 0"))
