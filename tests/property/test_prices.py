"""Tiles that a price chooses: whatever the price says, values are right, and lines are counted as they are touched."""

from __future__ import annotations

import random
from itertools import product
from math import prod

import numpy as np
import pytest

from ilang import i
from ilang.core.record import replace
from ilang.core.schedule.choose import tile
from ilang.core.schedule.choose.tile import Tiling
from ilang.core.schedule.choose.tile_cost import Price, TilePrice

pytestmark = pytest.mark.usefixtures("compiled_quickly")

EXTENTS = (1, 2, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 65, 70)
SEEDS = range(7000, 7040)


def contraction(
    rng: random.Random, sums: tuple[int, int] = (1, 2)
) -> tuple[str, str, list[tuple[int, ...]]]:
    """A contraction of any axes as an index expression and for ``einsum``, and shapes; so many axes are summed."""
    while True:
        letters = iter("abcdefgh")
        counts = [rng.randint(0, 1), *(rng.randint(*each) for each in ((1, 2), (1, 2), sums))]
        both, left, right, summed = ("".join(next(letters) for _ in range(n)) for n in counts)
        terms = [
            "".join(rng.sample(t, len(t))) for t in (both + left + summed, both + right + summed)
        ]
        result = "".join(rng.sample(both + left + right, len(both + left + right)))
        extents = {letter: rng.choice(EXTENTS) for letter in both + left + right + summed}
        if prod(extents.values()) < 3_000_000:
            break
    every = result + summed
    tail = rng.choice(("", f" >> >{result}~{result}"))
    text = f"{terms[0]}*{terms[1]}~{every} >> +{every}~{result}{tail}"
    shapes = [tuple(extents[letter] for letter in term) for term in terms]
    return text, f"{terms[0]},{terms[1]}->{result}", shapes


@pytest.mark.parametrize("seed", SEEDS)
def test_every_tile_is_right(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random prices choose a random tile."""
    rng = random.Random(seed)
    text, spec, shapes = contraction(rng)
    monkeypatch.setattr(Price, "cycles", lambda _: rng.random())
    numbers = np.random.default_rng(seed)
    arrays = [numbers.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
    wanted = np.einsum(spec, *(array.astype(np.float64) for array in arrays), optimize=True)
    found = i(text)(*arrays)
    assert np.array_equal(found, np.maximum(wanted, 0) if text.count(">>") == 2 else wanted)


@pytest.mark.parametrize("seed", range(7100, 7124))
def test_blocks_of_terms_around_tiles(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of the sum stands around loops of the result: what is summed is right, what ends it, too."""
    rng = random.Random(seed)
    around = list[Tiling]()

    def any_block(priced: tile._Contraction, rule: Tiling | None) -> Tiling | None:
        reduced = priced.node.reduced_axes()
        tilings = [
            replace(each, outer=outer, inner=inner)
            for each in tile.candidates(priced)
            for outer, inner in tile._orders(each, reduced)
            if any(loop.axis in reduced for loop in outer)
        ]
        around.extend(rng.sample(tilings, min(1, len(tilings))))
        return around[-1] if around else rule

    monkeypatch.setattr(tile, "cheapest", any_block)
    numbers = np.random.default_rng(seed)
    while not around:  # axes that always go together are one, and one alone has no blocks
        text, spec, shapes = contraction(rng, (2, 3))
        arrays = [numbers.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
        wanted = np.einsum(spec, *(array.astype(np.float64) for array in arrays), optimize=True)
        found = i(text)(*arrays)
        assert np.array_equal(found, np.maximum(wanted, 0) if text.count(">>") == 2 else wanted)


@pytest.mark.parametrize(
    ("batches", "rows", "is_tiled"), [(8, 20, True), (16, 20, True), (1000, 4, False)]
)
def test_batches_along_the_last_axis_of_a_result(batches: int, rows: int, is_tiled: bool) -> None:
    """All operands have the last axis: a tile has its lanes along another one, unless there is little to share."""
    why = i("ika*kja~ijak >> +ijak~ija").why((rows, 30, batches), (30, 40, batches))
    assert [each.kind for each in why.priced] == ["tile" if is_tiled else "schedule"]


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TilePrice, float]]:
    """What is priced while schedules are chosen."""
    priced: list[tuple[TilePrice, float]] = []
    price = TilePrice.price

    def noted(self: TilePrice, reads: object) -> Price:
        answer = price(self, reads)  # type: ignore[arg-type]
        priced.append((self, answer.cycles()))
        return answer

    monkeypatch.setattr(TilePrice, "price", noted)
    return priced


def test_lines_are_those_that_loops_touch(chosen: list[tuple[TilePrice, float]]) -> None:
    i("acb*bd~acdb >> +acdb~cad").source("c", (3, 18, 33), (33, 20))
    assert len(chosen) > 20
    for price, _ in chosen[::5]:
        order, factors = price.nest.order, price.nest.factors
        for dims, depth in product(((0, 1, 3), (3, 2), (1, 0, 2)), range(len(order))):
            if set(dims) <= {loop.axis for loop in order[depth:] if not loop.part}:
                elements = prod(price.extents[axis] for axis in dims)
                assert price._lines(dims, depth) == -(-elements // 16), "all of it, side by side"
            touched = {0}
            for at, axis in enumerate(dims):
                stride = prod(price.extents[other] for other in dims[at + 1 :])
                covered = range(price.covered[depth][axis])
                touched = {place + n * stride for place in touched for n in covered}
            lines = len({place // 16 for place in touched})
            assert lines / 1.6 <= price._lines(dims, depth) <= 1.6 * lines, "wherever lines begin"
        for axis, parts in enumerate(factors):
            inside = [d for d, loop in enumerate(order) if loop.axis == axis and loop.part]
            if parts and inside:
                assert price.covered[inside[-1]][axis] == min(parts[0], price.extents[axis])
                assert price.covered[inside[-1] + 1][axis] == 1


def test_no_price_is_less_than_its_multiply_adds(chosen: list[tuple[TilePrice, float]]) -> None:
    i("ik*kj~ijk >> +ijk~ij").source("c", (70, 64), (64, 100))
    assert chosen
    issued = 70 * 64 * 100 / 16 / 2  # vectors of AVX-512, two a cycle; AVX2 takes twice as long
    assert all((issued + 2 * issued) / 2 <= cycles for _, cycles in chosen)


def test_sums_wait_for_each_other(chosen: list[tuple[TilePrice, float]]) -> None:
    """A tile of one vector has a sum that each multiply-add waits for, four cycles long."""
    i("ik*kj~ijk >> +ijk~ij").source("c", (2, 512), (512, 16))
    rows = [price for price, _ in chosen]
    assert rows
    for price in rows:
        parts = price.price([])
        tiles = prod(price.extents[axis] for axis in price.node.output_axes()) // 32
        assert all(4 * 512 * tiles <= chains for _, _, chains, *_ in parts.at_once)
        assert parts.cycles() >= 4 * 512 * tiles


def test_elements_of_twice_the_size_take_twice_the_vectors_and_lines(
    chosen: list[tuple[TilePrice, float]],
) -> None:
    """The cheapest price of each type, of a product whose rows are whole lines."""
    least = []
    for dtype in ("f32", "f64"):
        chosen.clear()
        i("ik*kj~ijk >> +ijk~ij").source("c", (96, 64), (64, 128), dtypes=(dtype, dtype))
        price, _ = min(chosen, key=lambda pair: pair[1])
        parts = price.price([])
        least.append((price._lines((0, 2), 0), max(added for added, *_ in parts.at_once)))
    (lines, added), (double_lines, double_added) = least
    assert double_lines == 2 * lines
    assert double_added == 2 * added


@pytest.mark.parametrize(("width", "is_crowded"), [(1024, True), (1000, False)])
def test_lines_at_one_place_of_a_cache(
    chosen: list[tuple[TilePrice, float]], width: int, is_crowded: bool
) -> None:
    """More rows 4096 bytes apart than a cache has ways take it whole: 64 of the first one, 512 of the second one."""
    i("ik*kj~ijk >> +ijk~ij").source("c", (640, 512), (512, width))
    price = next(price for price, _ in chosen if price.axes.lanes == 1)
    of_terms = next(depth for depth, loop in enumerate(price.nest.order) if loop.axis == 2)
    for cache, dims in ((0, (0, 1)), (1, (2, 1))):
        depths = range(len(price.nest.order)) if cache == 0 else (of_terms,)
        crowded = [
            price._lines(dims, d) < price._kept_lines(dims, d, price._lines(dims, d), cache)
            for d in depths
        ]
        assert any(crowded) == is_crowded
