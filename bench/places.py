"""How good prices of places are: programs of several values, each of which is computed once or again.

A program is drawn at random: functions, sums and products of rows and columns, of which some values have several
readers. It is timed as it is chosen, with all of these values once, with all again, and with each of them in its other
place.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from bench.measure import Effort, rounds
from bench.suites import arrays
from ilang import i
from ilang.codegen.call.arguments import outputs_of
from ilang.codegen.call.load import Compiled, interface_of
from ilang.codegen.targets import c
from ilang.core import pipeline
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU
from ilang.core.schedule import places

CHEAP = ("a * 2", "max(a, 0)", "a * a", "a + 1")
DEAR = ("exp(a)", "tanh(a)", "1 / (1 + a * a)")
MOST = 10
"""Ways of a program that are timed, at most."""


def drawn(rng: random.Random) -> tuple[str, tuple[npt.NDArray[Any], ...]]:
    """A program and its arrays: values of rows, columns and both, one or two of them read several times."""
    rows = round(2 ** rng.uniform(3, 11))
    columns = round(2 ** rng.uniform(3, min(11, 20.5 - np.log2(rows))))
    first = rng.choice(
        (
            "(ij-j~ij)(x, w)",
            "(ij*i~ij)(x, v)",
            "(i-j~ij)(v, w)",
            f'elementwise("f: a -> {rng.choice(CHEAP)}")((ij*j~ij)(x, w))',
            f'elementwise("f: a -> {rng.choice(DEAR)}")((ij+i~ij)(x, v))',
        )
    )
    readers = (
        "(ij*ij~ij >> +ij~j)({0}, {0})",
        "(+ij~i)({0})",
        "(+ij~j)({0})",
        "(ij*i~ij)({0}, v)",
        "(ij/j~ij)({0}, w)",
        f'elementwise("f: a -> {rng.choice(DEAR)}")({{0}})',
    )
    lines = [f"  t = {first}"]
    second = f'elementwise("f: a -> {rng.choice(CHEAP)}")(t)' if rng.random() < 0.5 else ""
    lines += [f"  u = {second}"] if second else []
    sources = ["t", "t", "u", "u"] if second else ["t"] * 3
    results = [rng.choice(readers).format(source) for source in sources]
    results += ["(ij*i~ij >> +ij~j)(x, v)", "(ij*j~ij >> +ij~i)(x, w)"]  # they read all inputs
    body = "\n".join((*lines, f"  {', '.join(results)}"))
    text = f"f(x[i,j], v[i], w[j]) = {{\n{body}\n}}"
    return text, arrays(rng.randrange(2**32), "float32", (rows, columns), (rows,), (columns,))


def timed(rng: random.Random, effort: Effort) -> tuple[str, list[tuple[float, float]]]:
    """The shapes of a program and prices and times of its ways, that which is chosen first; none without a choice."""
    text, given = drawn(rng)
    shaped = i(text).shaped([array.shape for array in given])
    name = " ".join("x".join(map(str, array.shape)) for array in given)
    seen: list[places.PricedPlace] = []
    _text(shaped, None, seen)
    if not seen:
        return name, []
    values = [place.value for place in seen]
    chosen = frozenset(place.value for place in seen if place.is_again)
    ways = [chosen, frozenset(), frozenset(values), *(chosen ^ {value} for value in values)]
    calls: dict[str, Callable[[], Any]] = {}
    prices: list[float] = []
    texts = set[str]()
    for way in ways[:MOST]:
        known: list[places.PricedPlace] = []
        lines = _text(shaped, way, known)
        if lines in texts:
            continue
        texts.add(lines)
        calls[str(len(prices))] = _call(shaped, given, lines)
        parts = (place.again if place.is_again else place.once for place in known)
        prices.append(sum(sum(each.values()) for each in parts))
    samples = rounds(calls, effort, pause=0)
    return name, [(price, min(samples[str(n)])) for n, price in enumerate(prices)]


def _text(shaped: Shaped, again: Collection[int] | None, seen: list[places.PricedPlace]) -> str:
    """The C text of a program in which these values are computed again, or those that prices choose."""
    choose = places.places

    def chosen(*given: Any) -> list[places.PricedPlace]:
        found = choose(*given)
        if again is not None:
            for place in found:
                place.is_again = place.value in again
        seen[:] = found
        return found

    with mock.patch.object(places, "places", chosen):
        return c.emit(pipeline.lower(shaped))


def _call(shaped: Shaped, given: Sequence[npt.NDArray[Any]], text: str) -> Callable[[], Any]:
    extents = pipeline.fit(shaped, [array.shape for array in given])
    compiled = Compiled(interface_of(shaped, CPU), lambda: text, text)
    plan = compiled.plan(extents, outputs_of(shaped, extents))
    outs = [np.empty(shape, dtype) for shape, dtype in plan.outputs]
    return partial(plan.run, given, outs)
