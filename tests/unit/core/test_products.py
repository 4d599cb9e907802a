"""Products of several tensors: the order that known extents say, alike for values and gradients, and right values."""

from __future__ import annotations

import random
from itertools import permutations

import numpy as np
import pytest

from ilang import Component, i
from ilang.core import pipeline
from ilang.core.transform.products import products_in_order
from tests.shares import one_in

CHAIN = 'einsum("ij,jk,kl->il")'
LEFT = ['einsum("ij,jk->ik")', 'einsum("ik,kl->il")']
RIGHT = ['einsum("jk,kl->jl")', 'einsum("ij,jl->il")']
THIN, FLAT = [(3, 200), (200, 100), (100, 90)], [(200, 100), (100, 90), (90, 2)]


def steps(program: Component, *shapes: tuple[int, ...]) -> list[str]:
    """The texts of the assignments that are scheduled."""
    text = pipeline.shaped_stage_text(program.shaped([*shapes]), "views")
    return [
        line.split("]", 1)[1].strip() for line in text.splitlines() if not line.endswith("  input")
    ]


@pytest.mark.parametrize(("shapes", "expected"), [(THIN, LEFT), (FLAT, RIGHT)])
def test_known_extents_decide_the_order(shapes: list[tuple[int, ...]], expected: list[str]) -> None:
    assert steps(i(CHAIN), *shapes) == expected
    assert steps(i(f"{CHAIN} >> ^il~il"), *shapes)[:2] == expected
    first, second, third = shapes
    text = f"f(a[{first[0]},{first[1]}], b[{second[0]},{second[1]}], c[{third[0]},{third[1]}])"
    assert steps(i(f"{text} = {CHAIN}(a, b, c)")) == expected  # extents of the text


def test_axes_of_einx_are_words() -> None:
    dot = i('einx.dot("row [in], [in out], [out] column -> row column")')
    right = ['einsum("in out,out column->in column")', 'einsum("row in,in column->row column")']
    assert steps(dot, *FLAT) == right
    written = 'einx.dot("row [in], [in out], [out] column -> row column")'
    assert steps(dot, *THIN) == [written, written]  # from left to right, as without extents


def test_open_extents_and_written_orders_stay() -> None:
    open_steps = pipeline.shaped_stage_text(i(CHAIN).shaped(), "views")
    assert all(text in open_steps for text in RIGHT)
    written = i("ij*jk~ijk >> +ijk~ik >> ik*kl~ikl >> +ikl~il")
    assert len(steps(written, *FLAT)) == 4
    shaped = i(CHAIN).shaped([(8, 8)] * 3)
    assert products_in_order(shaped) is shaped  # no order is better


def test_gradients_share_products() -> None:
    gradient = i(CHAIN).grad()
    assert steps(gradient, *THIN) == [
        'einsum("il,kl->ik")',
        'einsum("ik,jk->ij")',
        'einsum("ik,ij->jk")',
        'einsum("ij,jk->ik")',
        'einsum("il,ik->kl")',
    ]


def test_explanations_have_the_order() -> None:
    shaped = i(CHAIN).shaped(THIN)
    page = str(pipeline.explain(i(CHAIN).program.graph(), THIN))
    assert all(text in page for text in LEFT)
    once = products_in_order(shaped)
    assert products_in_order(once) is once


def drawn(rng: random.Random) -> tuple[str, list[tuple[int, ...]]]:
    """A specification of three to five operands, and shapes that fit."""
    letters = "abcdef"[: rng.randint(2, 6)]
    extent = {letter: rng.choice([1, 2, 3, 5, 9, 20]) for letter in letters}
    terms = [
        rng.sample(letters, rng.randint(1, min(3, len(letters)))) for _ in range(rng.randint(3, 5))
    ]
    if rng.random() < 0.3:
        terms[0].append(terms[0][0])  # a diagonal
    used = sorted({letter for term in terms for letter in term})
    result = rng.sample(used, rng.randint(0, min(3, len(used))))
    spec = f"{','.join(map(''.join, terms))}->{''.join(result)}"
    return spec, [tuple(extent[letter] for letter in term) for term in terms]


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize("seed", one_in(4, range(16)))
def test_values_and_gradients(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    spec, shapes = drawn(rng)
    arrays = [numbers.standard_normal(shape) for shape in shapes]
    component = i(f'einsum("{spec}")')
    expected = np.einsum(spec, *arrays)
    scale = np.einsum(spec, *map(np.abs, arrays)).max(initial=1)
    assert np.abs(component(*arrays) - expected).max(initial=0) <= 1e-12 * scale, spec
    back = numbers.standard_normal(expected.shape)
    for n, given in enumerate(component.grad()(*arrays, back)):
        along = numbers.standard_normal(shapes[n])
        moved = np.einsum(spec, *arrays[:n], along, *arrays[n + 1 :])
        least = np.abs(moved * back).sum() + np.abs(given * along).sum()
        assert abs((moved * back).sum() - (given * along).sum()) <= 1e-9 * max(least, scale), spec


def test_the_order_of_operands_does_not_matter() -> None:
    shapes = dict(zip(("ij", "jk", "kl"), THIN, strict=True))
    for order in permutations(shapes):
        texts = steps(i(f'einsum("{",".join(order)}->il")'), *map(shapes.__getitem__, order))
        read = [sorted("".join(sorted(term)) for term in text[8:-6].split(",")) for text in texts]
        assert read == [["ij", "jk"], ["ik", "kl"]]
