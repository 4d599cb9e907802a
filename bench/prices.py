"""How good prices of tiles, and of places of values, are: ``python -m bench.prices``.

For contractions drawn at random, the chosen tile is compiled and timed beside others: some that prices compared, and as
many drawn from all that are legal, with any rows, lanes, sizes, splits of the sum and orders of loops. The rank
correlation of price and time says whether the price sorts them; the regret is the time of the chosen one over that of
the fastest. ``--tiles 200 --count 4`` takes some five minutes, ``--suite tccg --count 37 --tiles 12`` three. Places of
values are in ``places.py``.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any
from unittest import mock

import numpy as np

from bench import places, tccg
from bench.drawn import contraction
from bench.measure import QUICK_EFFORT, Effort, rounds
from bench.suites import Task
from ilang import i
from ilang.codegen.call.arguments import outputs_of
from ilang.codegen.call.load import Compiled, interface_of
from ilang.codegen.targets import c
from ilang.core import pipeline
from ilang.core.calculus.affine import variables_of
from ilang.core.ir.schedule import Loop
from ilang.core.machine import CPU
from ilang.core.schedule.choose import tile
from ilang.core.schedule.choose.terms import MOST_TERMS
from ilang.core.schedule.choose.tile import Tiling

EFFORT = Effort(seconds=0.3, least=4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the correlation and the regret of each contraction, and of all."""
    parser = argparse.ArgumentParser("python -m bench.prices", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the contractions; by default a new one")
    parser.add_argument("--count", type=int, default=8, help="contractions")
    parser.add_argument("--suite", choices=("drawn", "tccg"), default="drawn")
    parser.add_argument("--tiles", type=int, default=16, help="tiles of each")
    parser.add_argument("--places", type=int, default=8, help="programs with several readers")
    parser.add_argument("--quick", action="store_true", help="time little: does everything work?")
    options = parser.parse_args(arguments)
    seed = random.randrange(10**6) if options.seed is None else options.seed
    print(f"--seed {seed}")
    effort = QUICK_EFFORT if options.quick else EFFORT
    drawn = (contraction(random.Random(f"{seed} {number}")) for number in range(options.count))
    suite = tccg.tasks(seed, 0) if options.suite == "tccg" else drawn
    tasks = islice(suite, options.count)
    _print_all("tiles", ((task.name(), _timed(task, options.tiles, effort)) for task in tasks))
    rngs = [random.Random(f"{seed} place {number}") for number in range(options.places)]
    _print_all("places", (places.timed(rng, effort) for rng in rngs))
    return 0


def _print_all(what: str, timed: Iterable[tuple[str, list[tuple[float, float]]]]) -> None:
    """Print how well prices sort ways to do something, the chosen one first, and how they do in the mean."""
    found = []
    for name, pairs in timed:
        if len(pairs) < 2:
            continue
        correlation = _correlation(*zip(*pairs, strict=True))
        regret = pairs[0][1] / min(time for _, time in pairs)
        found.append((correlation, regret))
        print(f"{what}: correlation {correlation:5.2f}  regret {regret:.2f}  {name}", flush=True)
    if found:
        mean = math.exp(sum(math.log(regret) for _, regret in found) / len(found))
        middle = float(np.median([correlation for correlation, _ in found]))
        worst = max(regret for _, regret in found)
        print(
            f"{what}: median correlation {middle:.2f}, mean regret {mean:.2f}, at worst {worst:.2f}"
        )


def _timed(workload: Task, count: int, effort: Effort) -> list[tuple[float, float]]:
    """Prices and times of tiles of a contraction, the cheapest tile first."""
    shapes = [array.shape for array in workload.arrays]
    seen: list[tuple[Any, Tiling]] = []
    chosen = tile.cheapest

    def noted(priced: Any, rule: Tiling | None) -> Tiling | None:
        best = chosen(priced, rule)
        if best is not None:
            seen.append((priced, best))
        return best

    with mock.patch.object(tile, "cheapest", noted):
        i(workload.text).loops(*shapes)
    if not seen:
        return []
    priced, best = seen[0]
    rng = random.Random(workload.text)
    others = list(dict.fromkeys(tile.candidates(priced)))
    compared = rng.sample(others, min(count // 2, len(others)))
    drawn = (_drawn(rng, priced) for _ in range(count - len(compared)))
    tiles = list(dict.fromkeys((best, *compared, *drawn)))
    calls: dict[str, Callable[[], Any]] = {
        str(n): _call(workload, shapes, each) for n, each in enumerate(tiles)
    }
    samples = rounds(calls, effort, pause=0)
    return [(priced.price(each).cycles(), min(samples[str(n)])) for n, each in enumerate(tiles)]


def _drawn(rng: random.Random, priced: Any) -> Tiling:
    """Any legal tile: an axis along the lanes, one that what is read there lacks as rows, all else by chance."""
    node, most = priced.node, MOST_TERMS
    outputs, reduced = node.output_axes(), node.reduced_axes()
    accessed = [variables_of(index) for index in priced.accesses]
    pairs = [
        (rows, lanes)
        for lanes in outputs
        for rows in outputs
        if not any({rows, lanes} <= axes for axes in accessed)
        if not priced.is_small(lanes) and priced.extent(rows) != 1 and rows != lanes
    ]
    rows, lanes = rng.choice(pairs)
    factors: list[tuple[int, ...]] = [()] * len(node.axes)
    factors[lanes] = (tile.narrowed(priced.extent(lanes), rng.choice((16, 32, 48, 64)), CPU),)
    factors[rows] = (min(priced.extent(rows), rng.choice((4, 5, 6, 8, 12))),)
    for axis in rng.sample(reduced, len(reduced)):
        part = min(priced.extent(axis), max(1, most // rng.choice((1, 1, 4, 16))))
        factors[axis] = (part,) if part < priced.extent(axis) else ()
        most //= part
    outer = rng.sample([Loop(axis) for axis in outputs], len(outputs))
    inner = [Loop(axis) for axis in reduced if factors[axis]]
    parts = [Loop(axis, len(factors[axis])) for axis in reduced]
    inner = rng.sample(inner, len(inner)) + rng.sample(parts, len(parts))
    for loop in rng.sample(inner, len(inner)):  # blocks of the sum around loops of the result
        if not loop.part and 1 < len(inner) and rng.random() < 0.5:
            inner.remove(loop)
            outer.insert(rng.randint(1, len(outer)), loop)
    return Tiling(
        rows, lanes, tuple(factors), tuple(outer), (*inner, Loop(rows, 1), Loop(lanes, 1))
    )


def _call(workload: Task, shapes: Sequence[tuple[int, ...]], each: Tiling) -> Callable[[], Any]:
    """A call of a contraction in a given tile."""
    shaped = i(workload.text).shaped(shapes)
    with mock.patch.object(tile, "cheapest", _given(each)):
        text = c.emit(pipeline.lower(shaped))
    extents = pipeline.fit(shaped, shapes)
    compiled = Compiled(interface_of(shaped, CPU), lambda: text, text)
    plan = compiled.plan(extents, outputs_of(shaped, extents))
    outs = [np.empty(shape, dtype) for shape, dtype in plan.outputs]
    return partial(plan.run, workload.arrays, outs)


def _given(each: Tiling) -> Callable[..., Tiling]:
    """What chooses this tile."""

    def chosen(*_: object) -> Tiling:
        return each

    return chosen


def _correlation(prices: Sequence[float], times: Sequence[float]) -> float:
    """Spearman's: of the ranks."""
    first, second = (np.argsort(np.argsort(values)) for values in (prices, times))
    return float(np.corrcoef(first, second)[0, 1])


if __name__ == "__main__":
    sys.exit(main())
