"""Sets of constraints over rows, solved in several orders.

The answer, or that there is none, must not depend on the order of the constraints. The
sets are adversarial: rows that bound each other in circles with axes on both sides of their variables,
axes of size 1 that stretch and that do not, units, sums, indices and numbers of elements.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from ilang import ShapeError
from ilang.core.infer.solver import solve
from ilang.core.ir.rows import (
    AtLeast,
    Composed,
    Constraint,
    Dim,
    DimBelow,
    DimEqual,
    Known,
    LeafRow,
    Origin,
    Product,
    Row,
    RowBelow,
    RowEqual,
    Var,
    closed,
    opened,
    weighted,
)

AT = Origin("the test", None)
Problem = tuple[int, int, list[Constraint]]
"""How many dimension variables and row variables there are, and the constraints."""


class Drawing:
    """A random set of constraints, some of which have a solution."""

    def __init__(self, seed: int) -> None:
        """The same seed gives the same set."""
        self.rng = random.Random(seed)
        self.dims, self.rows = self.rng.randint(1, 4), self.rng.randint(1, 4)
        self.units = self.rng.random() < 0.3
        self.sums = self.rng.random() < 0.3

    def problem(self) -> Problem:
        """The set."""
        made: list[Constraint] = []
        if self.rng.random() < 0.5:
            count = self.rng.randint(1, self.rows)
            for row in range(count):
                near = Row(self.axes(), row, self.axes())
                made.append(RowBelow(near, Row(self.axes(), (row + 1) % count, self.axes()), AT))
        made += [self.constraint() for _ in range(self.rng.randint(2, 6))]
        return self.dims, self.rows, made

    def known(self) -> Known:
        kind = self.rng.random()
        if kind < 0.3:
            return Known(1, Origin("an axis of 1", None), stretch=kind < 0.15)
        unit = self.rng.choice((None, None, "a", "b")) if self.units else None
        number = self.rng.choice((2, 3))
        return Known(number, Origin(f"an axis of {number}", None), label=unit)

    def dim(self) -> Dim:
        return Var(self.rng.randrange(self.dims)) if self.rng.random() < 0.5 else self.known()

    def axes(self) -> tuple[Dim, ...]:
        return tuple(self.dim() for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2))))

    def row(self) -> Row:
        variables = (None, *range(self.rows), *range(self.rows))
        return Row(self.axes(), self.rng.choice(variables), self.axes())

    def constraint(self) -> Constraint:
        kind = self.rng.randrange(12 if self.sums else 8)
        if kind < 3:
            return RowBelow(self.row(), self.row(), AT)
        if kind == 3:
            return RowEqual(self.row(), self.row(), AT, self.rng.random() < 0.3)
        if kind < 6:
            return DimBelow(self.dim(), self.dim(), AT)
        if kind == 6:
            return LeafRow(self.row(), self.rng.random() < 0.2, False, AT)
        if kind == 7:
            return AtLeast(Var(self.rng.randrange(self.dims)), self.rng.choice((1, 2)), AT)
        if kind == 8:
            terms = [(self.rng.choice((1, 1, 2)), self.dim()), (1, self.dim())]
            return DimEqual(self.dim(), weighted(terms, self.rng.choice((0, 0, -1)), AT), AT)
        if kind == 9:
            total = Known(self.rng.choice((1, 2, 3, 4, 6)), AT)
            return Product((self.row(),), (closed((total,)),), AT)
        if kind == 10:
            parts = tuple(self.dim() for _ in range(self.rng.choice((2, 2, 3))))
            return Composed(self.dim(), parts, ("a", "b", "c")[: len(parts)], AT)
        return DimEqual(self.dim(), self.dim(), AT)


def answer(dims: int, rows: int, constraints: Sequence[Constraint]) -> object:
    """Sizes and units of every variable, or that there is no answer."""
    try:
        found = solve(dims, rows, constraints)
    except ShapeError:
        return "refused"
    found_rows = [found.row(opened(number)).axes() for number in range(rows)]
    axes = [[(found.size(axis), found.label(axis)) for axis in row] for row in found_rows]
    return [(found.size(Var(n)), found.label(Var(n))) for n in range(dims)], axes


def differing(seed: int, orders: int) -> tuple[object, object]:
    """The answers to the set of a seed: as drawn, and the first other one (or the same again)."""
    dims, rows, constraints = Drawing(seed).problem()
    first = answer(dims, rows, constraints)
    rng = random.Random(seed)
    for _ in range(orders):
        other = answer(dims, rows, rng.sample(constraints, len(constraints)))
        if other != first:
            return first, other
    return first, first


def checked(seed: int) -> None:
    """Solve the set of a seed.

    Raises: AssertionError: two orders give two answers.
    """
    first, other = differing(seed, 5)
    assert first == other, f"{first} or {other}"
