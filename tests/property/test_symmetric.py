"""Symmetric results, of which half is a copy of the other half, against the evaluator."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

from ilang import i

pytestmark = pytest.mark.usefixtures("compiled_quickly")

SUM = "ij+ij~ij"
PROGRAMS = (
    ("(I & I) >> {a}k*{b}k~ijk >> +ijk~{out}", 1, 0),
    ("(I & I) >> k{a}*k{b}~ijk >> +ijk~{out}", 1, 0),
    ("((I & I) >> {a}k*{b}k~ijk >> +ijk~{out} | 0.3) >> ij*.~ij", 1, 0),
    ("(((I & I) >> {a}k*{b}k~ijk >> +ijk~ij | 2.5) >> ij*.~ij | I) >> " + SUM, 1, 1),
    ("((I | I) & ~(I | I)) >> (ik*jk~ijk >> +ijk~ij | ik*jk~ijk >> +ijk~ij) >> " + SUM, 2, 0),
    (
        "(((I | I) & ~(I | I)) >> (ik*jk~ijk >> +ijk~ij | ik*jk~ijk >> +ijk~ij) >> "
        + SUM
        + " | I) >> "
        + SUM,
        2,
        1,
    ),
    ("(I & I) >> b{a}k*b{b}k~bijk >> +bijk~bij", 3, 0),
    ("(I & I) >> {a}bk*{b}bk~bijk >> +bijk~ijb", 4, 0),
    ("(I & I) >> ik*jk[k<=j]~ijk >> +ijk~ij", 1, 0),
    ("(I & I) >> ik-jk~ijk >> (I & I) >> ijk*ijk~ijk >> +ijk~ij", 1, 0),
    ("(I & I) >> ik+jk~ijk >> >ijk~ij", 1, 0),
    ("((I & I) >> ik*jk~ijk >> +ijk~ij) >> (I & I) >> ik*kj~ijk >> +ijk~ij", 1, 0),
)
EXTENTS = (1, 6, 63, 64, 65, 70, 128, 131, 200)
TERMS = (1, 64, 200, 257, 600)


def _given(rng: random.Random, text: str, kind: int, more: int) -> list[Any]:
    """Arrays for a program: one matrix, two, or one with an axis before or between."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    n, k = rng.choice(EXTENTS), rng.choice(TERMS)
    rows = (k, n) if ">> k" in text else (n, k)
    shape = {3: (3, n, k), 4: (n, 3, k)}.get(kind, rows)
    shapes = [shape] * (2 if kind == 2 else 1) + [(n, n)] * more
    dtype = rng.choice((np.float32, np.float64) if "." in text.replace("*.", "") else TYPES)
    return [numbers.integers(-4, 5, shape).astype(dtype) for shape in shapes]


TYPES = (np.float32, np.float64, np.int32)


@pytest.mark.parametrize("seed", range(7300, 7348))
def test_symmetric_results_are_right(seed: int) -> None:
    rng = random.Random(seed)
    text, kind, more = rng.choice(PROGRAMS)
    a, b = rng.sample("ij", 2)
    text = text.format(a=a, b=b, out=rng.choice(("ij", "ji")))
    given = _given(rng, text, kind, more)
    threads = rng.choice((1, 2))
    found, wanted = i(text)(*given, threads=threads), i(text)(*given, target="numpy")
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5, err_msg=text)


@pytest.mark.parametrize(("one", "other"), [(150, 200), (200, 150), (200, 200), (150, 150)])
@pytest.mark.parametrize(
    ("term", "out"),
    [
        ("i(k:{n})*j(k:{n})~ijk >> +ijk~ij", "ij+ij~ij"),
        ("(k:{n})i*(k:{n})j~ijk >> +ijk~ij", "ij*ij~ij"),
        ("i(k:{n})+j(k:{n})~ijk >> +ijk~ij", "ij+ij~ij"),
    ],
)
def test_sums_over_as_many_terms_are_alike(term: str, out: str, one: int, other: int) -> None:
    """A sum of two products, of the same operands in either order, is symmetric if both have as many terms."""
    parts = f"({term.format(n=one)} | {term.format(n=other)}) >> {out}"
    program, numbers = i(f"((I | I) & ~(I | I)) >> ({parts})"), np.random.default_rng(5)
    x, y = (numbers.integers(-4, 5, (200, 200)).astype(np.float32) for _ in range(2))
    assert ("ceil((64" in program.loops(x.shape, y.shape)) == (one == other)
    np.testing.assert_array_equal(program(x, y), program(x, y, target="numpy"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_half_has_the_bits_of_all(dtype: Any) -> None:
    """The version for all extents computes each element, and one for these extents copies half of them."""
    text = "(I & I) >> ik*jk~ijk >> +ijk~ij"
    x = np.random.default_rng(5).standard_normal((200, 300)).astype(dtype)
    assert np.array_equal(i(text)(x), i(text).dynamic("i", "k")(x))


@pytest.mark.parametrize(
    ("text", "shapes", "is_halved"),
    [
        ("(I & I) >> ik*jk~ijk >> +ijk~ij", ((200, 300),), True),
        ("(I & I) >> ik*jk~ijk >> +ijk~ij", ((200, 8),), False),
        ("(I & I) >> ik*jk~ijk >> +ijk~ij", ((40, 300),), False),
        ("ik*jk~ijk >> +ijk~ij", ((200, 300), (200, 300)), False),
        ("(I & I) >> ik*kj~ijk >> +ijk~ij", ((200, 200),), False),
        ("(I & I) >> ik*jk[k<=j]~ijk >> +ijk~ij", ((200, 300),), False),
        (PROGRAMS[4][0], ((200, 300), (200, 300)), True),
        (PROGRAMS[5][0], ((200, 300), (200, 300), (200, 200)), True),
    ],
)
def test_only_what_is_symmetric_is_halved(
    text: str, shapes: tuple[tuple[int, ...], ...], is_halved: bool
) -> None:
    ends = re.findall(r"ceil\(\(\d+[ij]\+\d+\) / \d+\)", i(text).loops(*shapes))
    assert bool(ends) == is_halved
