"""Common sub-expressions of one statement: what takes long, and stands in it several times, is computed once.

Example, the gradient of a sigmoid, where g and x are elements of arrays:
    in:   d[i] = where(x < 0, g * (1 / (1 + exp(x))) * exp(x), g * (1 / (1 + exp(-x))))
    out:  e = exp(where(x < 0, x, -x));  q = 1 / (1 + e);  d[i] = where(x < 0, g * q * e, g * q)

    a function on both sides of a choice     is the function of a choice: ``f(where(c, a, b))``
    a part that a choice decides             is what is computed in any case, where that is the same once it is decided
    a part in several places                 is a variable, unless all of them are on sides of one choice
    a choice on a side of a choice           is a variable: compilers make vectors of a choice alone

No bit of a result changes. Other quick primitives are left to the C compiler, which sees the same of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ilang.core.ir.ids import LocalId
from ilang.core.ir.scalar import (
    Apply,
    Convert,
    Local,
    Scalar,
    arguments_of,
    scalars_within,
    with_arguments,
)
from ilang.core.ir.scalar_rules import SCALARS, is_equal, short_scalar
from ilang.core.ops import COSTS, SLOW
from ilang.core.record import mapped_inside, replace


def with_variables(scalar: Scalar, define: Callable[[Apply], Scalar]) -> Scalar:
    """A scalar in which variables stand for what it has several times; ``define`` makes the variable of a value."""
    shared = _merged(scalar)
    for whole in _functions(shared):
        shared = _decided(shared, whole)
    return _bound(min(scalar, shared, key=_work), define)


def _work(scalar: Scalar) -> int:
    """The costs of what a scalar computes when variables stand for what it has several times."""
    values: list[Apply] = []

    def define(part: Apply) -> Scalar:
        values.append(part)
        return Local(LocalId(len(values)), part.dtype or "")

    return _work_of(_bound(scalar, define)) + sum(map(_work_of, values))


def _work_of(scalar: Scalar) -> int:
    applied = (part for part in scalars_within(scalar) if isinstance(part, Apply))
    return sum(COSTS.get(part.primitive, 0) for part in applied)


class _Values:
    """The parts of a scalar, those before that they are computed of; equal ones are one."""

    def __init__(self, scalar: Scalar) -> None:
        self.numbers: dict[object, int] = {}
        self.parts: list[Scalar] = []
        self.inner: list[tuple[int, ...]] = []
        self.always: list[frozenset[int]] = []
        """The parts that each part computes in any case: of a choice those on both sides, none behind conditions."""
        self.costly: list[bool] = []
        self._add(scalar)

    def _add(self, scalar: Scalar) -> int:
        inner = tuple(map(self._add, arguments_of(scalar)))
        primitive = scalar.primitive if isinstance(scalar, Apply) else ""
        key = (primitive, scalar.dtype, inner) if inner else repr(scalar)
        number = self.numbers.setdefault(key, len(self.parts))
        if number == len(self.parts):
            self.parts.append(scalar)
            self.inner.append(inner)
            self.costly.append(primitive in COSTS or any(self.costly[each] for each in inner))
            parts = [self.always[each] for each in inner]
            if is_choice(scalar):
                parts = [parts[0], parts[1] & parts[2]]
            self.always.append(frozenset((number,)).union(*parts))
        return number

    def choices(self) -> Counter[int]:
        """For each part the number of choices, of those on no side of another one, that have it on a side."""
        outside = self._reached([len(self.parts) - 1], lambda n: not is_choice(self.parts[n]))
        choices = (n for n in outside if is_choice(self.parts[n]))
        return Counter(
            part for n in choices for part in self._reached(self.inner[n][1:], lambda _: True)
        )

    def _reached(self, numbers: Sequence[int], is_entered: Callable[[int], bool]) -> set[int]:
        """Parts and all that they are computed of; of a part that is not entered, its first argument alone."""
        reached, todo = set[int](), [*numbers]
        while todo:
            number = todo.pop()
            if number not in reached:
                reached.add(number)
                todo += self.inner[number][: None if is_entered(number) else 1]
        return reached


def _bound(scalar: Scalar, define: Callable[[Apply], Scalar]) -> Scalar:
    """A scalar in which variables stand for costly parts that it has several times, and for choices inside of choices.

    One of the places of a part is computed in any case, or they are on sides of several choices.
    """
    values = _Values(scalar)
    places = Counter(number for inner in values.inner for number in inner)
    choices = values.choices()
    out: list[Scalar] = []
    for number, part in enumerate(values.parts):
        value = with_arguments(part, [out[each] for each in values.inner[number]])
        is_computed = number in values.always[-1]
        is_shared = 1 < places[number] and (is_computed or 1 < choices[number])
        is_inside = is_choice(part) and not is_computed and 0 < choices[number]
        is_bound = (values.costly[number] and is_shared) or is_inside
        out.append(define(value) if is_bound and isinstance(value, Apply) else value)
    return out[-1]


def is_choice(scalar: Scalar) -> bool:
    """Whether a scalar is one of two others, by a condition."""
    return isinstance(scalar, Apply) and scalar.primitive == "where"


def _functions(scalar: Scalar) -> list[Apply]:
    """The functions of one argument that take long and are computed in any case."""
    values = _Values(scalar)
    always = [values.parts[number] for number in sorted(values.always[-1])]
    return [
        part
        for part in always
        if isinstance(part, Apply) and part.primitive in SLOW and len(part.arguments) == 1
    ]


def _merged(scalar: Scalar) -> Scalar:
    """A scalar whose choices, those that are made in any case, share the functions that both sides compute."""
    if not isinstance(scalar, Apply) or scalar.primitive != "where":
        return mapped_inside(scalar, (Apply, Convert), _merged)
    condition, then, otherwise = scalar.arguments
    for one in _functions(then):
        others = [part for part in _functions(otherwise) if part.primitive == one.primitive]
        apart = [part for part in others if part not in _functions(then)]
        if one in others or not apart:
            continue
        (left,), (right,) = one.arguments, apart[0].arguments
        both = replace(one, arguments=(Apply("where", (condition, left, right), left.dtype),))
        then, otherwise = _put(then, one, both), _put(otherwise, apart[0], both)
    return with_arguments(scalar, (_merged(condition), then, otherwise))


def _decided(scalar: Scalar, whole: Apply) -> Scalar:
    """A scalar in which a value stands on sides of choices, where it is what they compute."""
    scalar = mapped_inside(scalar, (Apply, Convert), lambda part: _decided(part, whole))
    if not isinstance(scalar, Apply) or scalar.primitive != "where":
        return scalar
    condition, *sides = scalar.arguments
    taken = [
        _put(side, short_scalar(whole, {condition: holds}), whole)
        for side, holds in zip(sides, (True, False), strict=True)
    ]
    return with_arguments(scalar, (condition, *taken))


def _put(scalar: Scalar, old: Scalar, new: Scalar) -> Scalar:
    if is_equal(scalar, old):
        return new
    return mapped_inside(scalar, SCALARS, lambda part: _put(part, old, new))
