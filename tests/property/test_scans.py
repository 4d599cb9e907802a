"""Reductions over triangles, which keep their accumulators, against the evaluator: random bounds, types and places."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from ilang import Component, i

pytestmark = [
    pytest.mark.usefixtures("compiled_quickly"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

SEEDS = range(5400, 5440)
TYPES = ("f4", "f8", "i4", "i8")
LINEAR = "carried along k"


def window(rng: random.Random, n: int) -> str:
    """The index of windows along a dimension of ``n`` elements that begin before it, end past it, or lie inside."""
    width = n + rng.choice((0, 0, 0, 1, 5, -3))
    places = max(1, n + rng.choice((0, 0, 0, -1, 4, -n + 1)))
    shift = rng.choice((0, 1 - width, 1 - width, -width, 5 - width, 1))
    return f"(k:{places}+j:{max(1, width)}{shift:+})".replace("+0)", ")")


def choice(rng: random.Random, n: int) -> str:
    """A comparison of the positions k and j, of ``n`` each or about so many."""
    places = max(1, n + rng.choice((0, 0, 0, -1, 4)))
    sides = [f"@(k:{places})", f"@(j:{n})"]
    moved = rng.randrange(2)
    sides[moved] = f"{sides[moved][:-1]}{rng.choice(('', '', '+1', '-2'))})"
    if rng.random() < 0.5:
        sides.reverse()
    return f"{sides[0]}{rng.choice(('<<', '<=', '>>', '>='))}{sides[1]}~kj"


def program(rng: random.Random) -> tuple[str, tuple[int, ...]]:
    """A scan, or what is nearly one, and the shape of its input."""
    n = rng.choice((1, 2, 15, 16, 17, 33, 64))
    before, after = rng.choice(("", "b", "bc")), rng.choice(("", "d"))
    shape = [*(rng.choice((0, 1, 3)) for _ in before), n, *(rng.choice((1, 5, 40)) for _ in after)]
    fold = rng.choice("+++><*")
    if rng.random() < 0.5:
        text = f"{fold}{before}{window(rng, n)}{after}~{before}k{after}"
    else:
        one, every = " ".join(f"{before}j{after}"), f"{before}kj{after}"
        kept = f'einx.where("k j, {one}, -> {" ".join(every)}")'
        nothing = int(fold == "*")
        text = f"({choice(rng, n)} | I | {nothing}.0) >> {kept} >> {fold}{every}~{before}k{after}"
    rest = f"{before}k{after}"
    kept = f"{before}{after}" or "."
    text += rng.choice(("", "", f" >> -{rest}~{rest}", f" >> +{rest}~{kept}"))
    return text, tuple(shape)


def array(rng: random.Random, shape: tuple[int, ...], dtype: str, fold: str) -> Any:
    """Whole numbers, which sums in any order give exactly, with some that are special."""
    ends = (-4, 5) if fold != "*" else (1, 2)
    values = np.random.default_rng(rng.randrange(2**32)).integers(*ends, shape).astype(dtype)
    if fold == "*" and values.size:
        values.flat[rng.randrange(values.size)] = -2
    for special in (np.nan, np.inf, -0.0):
        if values.size and dtype in ("f4", "f8") and rng.random() < 0.2:
            values.flat[rng.randrange(values.size)] = special
    return values


def is_right(component: Component, *given: Any, **how: Any) -> None:
    """Compare a call with the evaluator."""
    result, wanted = component(*given, **how), component(*given, target="numpy")
    assert result.dtype == wanted.dtype
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_scans_are_right(seed: int) -> None:
    rng = random.Random(seed)
    text, shape = program(rng)
    fold = "*" if "*" in text else "+"
    given = array(rng, shape, rng.choice(TYPES if "where" not in text else TYPES[:1]), fold)
    component = i(text)
    is_right(component, given, threads=rng.choice((1, 2)))
    is_right(component.dynamic(), given)


@pytest.mark.parametrize("seed", SEEDS[::4])
def test_gradients_of_scans_are_right(seed: int) -> None:
    rng = random.Random(seed)
    n, before, after = rng.choice((16, 40)), rng.choice(("", "b")), rng.choice(("", "d"))
    component = i(f"+{before}{window(rng, n)}{after}~{before}k{after}")
    shape = (*((3,) * len(before)), n, *((5,) * len(after)))
    given = array(rng, shape, "f4", "+")
    cotangent = array(rng, component(given).shape, "f4", "+")
    is_right(component.grad(), given, cotangent)
    is_right(component.grad().dynamic(), given, cotangent)


@pytest.mark.parametrize("order", ["".join(each) for each in permutations("bkjd")])
def test_any_order_of_loops_is_right(order: str) -> None:
    """A schedule with other loops adds all terms again; one with the loop along a scan outside its terms does not."""
    given = array(random.Random(order), (3, 20, 7), "f4", "+")
    for index in ("(k:20+j:20-19)", "(k:20+j:20)"):
        for loops in (order, f"d:4 | {' '.join(order)} d'"):
            splits = loops if "|" in loops else f"| {' '.join(order)}"
            is_right(i(f"+b{index}d~bkd | {splits}"), given)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "+b(k:32+j:32-31)~bk",
            ">b(k:32+j:32)~bk",
            "*(k:32+j:32-32)d~kd",
            "<b(k:30+j:32-31)d~bkd",
        ),
        '@(k:32)>=@(j:32)~kj >> elementwise("f: c[k,j], a[j] -> where(c, a, 0)") >> +kj~k',
        '@(j:32)>>@(k:32)~kj >> elementwise("f: c[k,j], a[j] -> where(c, exp(a), 0)") >> +kj~k',
    ],
)
def test_terms_are_added_once(text: str) -> None:
    component = i(text)
    shape = (32,) * len(component.inputs[0].shape or (32,))
    loops = component.loops(shape)
    assert "for j" not in loops, loops
    assert LINEAR in str(component.explain(shape))


def test_masks_that_multiply_keep_infinities() -> None:
    """An infinite element is none that a product with 0 leaves out."""
    mask = i("@(k:20)>=@(j:20)~kj >> f32 >> kj*j~kj >> +kj~k")
    given = np.ones(20, np.float32)
    given[7] = np.inf
    is_right(mask, given)
    assert np.isnan(mask(given)[:7]).all()


@pytest.mark.parametrize("text", ["+b(k:40+j:40-39)~bk", ">b(k:40+j:40)d~bkd", "+(k:40+j:40-40)~k"])
def test_on_an_emulated_gpu(text: str) -> None:
    component = i(text)
    shape = (3, 40, 5)[1 - ("b" in text) : 2 + ("d" in text)]
    given = array(random.Random(text), shape, "f4", "+")
    is_right(component, given, target="cuda-emulated")
