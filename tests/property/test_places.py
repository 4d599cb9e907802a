"""Values with several readers in any place that is legal: stored, kept inside loops, computed again; all are right."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from ilang import i
from ilang.core.ir.known_extents import extents_of
from ilang.core.machine import CPU
from ilang.core.schedule import places
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule

pytestmark = pytest.mark.usefixtures("compiled_quickly")

EXTENTS = (1, 2, 3, 7, 16, 17, 33, 48, 65)
SCALARS = ("a * 2", "max(a, 0)", "a * a", "a + 1", "exp(a / 9)", "1 / (a * a + 1)", "tanh(a)")


def program(rng: random.Random) -> tuple[str, list[tuple[int, ...]]]:
    """A few values of rows, columns and both, each of values before it; what nothing reads is a result."""
    known = {"ij": ["x", "y"], "i": ["v"], "j": ["w"]}
    lines, read = list[str](), set[str]()

    def one(dims: str) -> str:
        name = rng.choice(known[dims][-3:])
        read.add(name)
        return name

    for n in range(rng.randint(3, 7)):
        dims, side = "ij", rng.choice("ij")
        kind = rng.choice(("function", "both", "side", "outer", "sum", "product", "extreme"))
        if kind == "function":
            text = f'elementwise("f: a -> {rng.choice(SCALARS)}")({one(dims)})'
        elif kind == "both":
            text = f"(ij{rng.choice('+-*')}ij~ij)({one(dims)}, {one(dims)})"
        elif kind == "side":
            text = f"(ij{rng.choice('+-*')}{side}~ij)({one(dims)}, {one(side)})"
        elif kind == "outer":
            text = f"(i{rng.choice('+-')}j~ij)({one('i')}, {one('j')})"
        else:
            dims = side
            if kind == "product":
                text = f"(ij*ij~ij >> +ij~{side})({one('ij')}, {one('ij')})"
            else:
                text = f"({'+' if kind == 'sum' else '>'}ij~{side})({one('ij')})"
        known[dims].append(f"t{n}")
        lines.append(f"  t{n} = {text}")
    results = [f"t{n}" for n in range(len(lines)) if f"t{n}" not in read]
    rows, columns = rng.choice(EXTENTS), rng.choice(EXTENTS)
    shapes = {"x": (rows, columns), "y": (rows, columns), "v": (rows,), "w": (columns,)}
    heads = {"x": "x[i,j]", "y": "y[i,j]", "v": "v[i]", "w": "w[j]"}
    used = [name for name in shapes if name in read]
    head = ", ".join(heads[name] for name in used)
    body = "\n".join((*lines, f"  {', '.join(results)}"))
    return f"f({head}) = {{\n{body}\n}}", [shapes[name] for name in used]


@pytest.mark.parametrize("seed", range(48))
def test_values_are_right_in_every_place(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places are drawn, whatever their prices are."""
    rng = random.Random(seed)
    text, shapes = program(rng)
    choose = places.places

    def drawn(*given: Any) -> list[places.PricedPlace]:
        found = choose(*given)
        for place in found:
            place.is_again = rng.random() < 0.7
        return found

    monkeypatch.setattr(places, "places", drawn)
    generator = np.random.default_rng(seed)
    arrays = [generator.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
    component = i(text)
    doubles = (array.astype(np.float64) for array in arrays)
    results: Any = component(*arrays)
    wanted: Any = component(*doubles, target="numpy")
    several = isinstance(wanted, tuple)
    for one, other in zip(
        results if several else [results], wanted if several else [wanted], strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-3)


def test_programs_have_values_in_all_places() -> None:
    """Of the programs above, and as prices choose."""
    chosen = Counter[tuple[str, bool]]()
    for seed in range(48):
        text, shapes = program(random.Random(seed))
        shaped = i(text).shaped(shapes)
        nests = shaped_to_schedule(shaped).nests
        found = places.places(shaped, extents_of(shaped, CPU), CPU, nests)
        chosen.update((place.kept, place.is_again) for place in found)
    assert {kept for kept, _ in chosen} == {"stored", "kept inside loops", "in registers"}
    assert {again for _, again in chosen} == {False, True}
