"""Conditions on axes against all iterations of small extents."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Mapping, Sequence

import pytest

from ilang.core.calculus.affine import Affine, at_least_0
from ilang.core.ir.shaped import Assignment
from ilang.core.pipeline import graph_of, infer, text_component
from ilang.core.transform.conditions import Bounds, conditions

EXTENTS = tuple(itertools.product((1, 2, 5), (1, 3, 4), (1, 2, 4)))
DRAWINGS = 150


def summed(guards: str) -> tuple[Bounds, tuple[Affine, ...]]:
    """A sum over j and k behind guards, and these as conditions."""
    shaped = infer(graph_of(text_component(f"+ijk[{guards}]~i"), "f"))
    node = shaped.nodes[-1]
    assert isinstance(node, Assignment)
    return Bounds(shaped.sizes, node), conditions(node.guards)


def drawn(rng: random.Random) -> str:
    """Guards of one or two axes each."""
    return ",".join(
        f"{rng.choice(('', '', '2', '3'))}{rng.choice('ijk')}{rng.choice(('<=', '<', '>=', '=='))}"
        f"{rng.choice(('i', 'j', 'k', '1', '2'))}{rng.choice(('', '+1', '-2'))}"
        for _ in range(rng.choice((1, 2, 3)))
    )


def holds(held: Sequence[Affine], at: Sequence[int], extents: Sequence[int]) -> bool:
    """Whether conditions hold where axes are, of these extents by number of size."""
    return all(
        0
        <= each.offset
        + sum(c * at[axis] for c, axis in each.terms)
        + sum(c * extents[size] for c, size in each.sizes)
        for each in held
    )


def test_rows_that_have_an_element() -> None:
    rng, said = random.Random(0), 0
    for _ in range(DRAWINGS):
        guards = drawn(rng)
        bounds, held = summed(guards)
        rows = bounds.rows(held)
        if rows is None:
            continue
        said += 1
        assert all(guard.size is None and guard.index.axes() <= {0} for guard in rows)
        for extents in EXTENTS:
            for i in range(extents[0]):
                inner = itertools.product(range(extents[1]), range(extents[2]))
                want = any(holds(held, (i, *at), extents) for at in inner)
                got = holds([guard.index for guard in rows], (i, 0, 0), extents)
                assert got is want, (guards, extents, i, rows)
    assert said > DRAWINGS // 2


def test_what_follows_holds() -> None:
    rng, followed = random.Random(1), 0
    for _ in range(2 * DRAWINGS):
        bounds, known = summed(drawn(rng))
        _, others = summed(drawn(rng))
        for each in others:
            if not bounds.follows(each, known):
                continue
            followed += 1
            for extents in EXTENTS:
                for at in itertools.product(*map(range, extents)):
                    assert not holds(known, at, extents) or holds([each], at, extents)
    assert followed > DRAWINGS // 4


def test_narrower_guards() -> None:
    for wide, narrow in (
        ("j<=i", "j<i"),
        ("j<=i", "j==i"),
        ("j<=i", "k<1,j<=i-3"),
        ("j<i+3", "j<=i"),
        ("j>=i-8", "j>=i,j<2"),
    ):
        bounds, needs = summed(wide)
        _, known = summed(narrow)
        assert all(bounds.follows(need, known) for need in needs)
        bounds, needs = summed(narrow)
        assert not all(bounds.follows(need, summed(wide)[1]) for need in needs)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (Affine(((-8, 0), (-1, 1)), 254), "8a + b <= 254"),
        (Affine(((-1, 0),), -2, sizes=((1, 5),)), "a + 1 < n5"),
        (Affine(((-1, 0),), -1, sizes=((1, 5),)), "a < n5"),
        (Affine(((1, 0), (-1, 1))), "b <= a"),
        (Affine(((1, 0), (-1, 1)), 3), "b <= a + 3"),
        (Affine(((2, 0), (1, 1)), -3), "2a + b >= 3"),
        (Affine(((1, 0),), sizes=((-1, 5),)), "n5 <= a"),
        (Affine(((-1, 0),), -3), "a + 2 < 0"),
    ],
)
def test_conditions_are_compared_without_subtracting(index: Affine, expected: str) -> None:
    left, relation, right = at_least_0(index)
    assert f"{written(left)} {relation} {written(right)}" == expected
    for a, b, size in itertools.product(range(9), repeat=3):
        values = {0: a, 1: b, 5: size}
        holds = {"<": operator.lt, "<=": operator.le, ">=": operator.ge}[relation]
        assert holds(value(left, values), value(right, values)) == (value(index, values) >= 0)


def written(index: Affine) -> str:
    named = [(c, "ab"[axis]) for c, axis in index.terms] + [(c, f"n{n}") for c, n in index.sizes]
    words = [name if c == 1 else f"{c}{name}" for c, name in named]
    return " + ".join(words + [str(index.offset)] * (index.offset != 0 or not words))


def value(index: Affine, values: Mapping[int, int]) -> int:
    return index.offset + sum(c * values[n] for c, n in (*index.terms, *index.sizes))
