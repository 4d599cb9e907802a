"""Run-time sizes under inference: what follows from them, and what they must satisfy, is computed when arrays come."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.calculus.extent import Extent, linear, number, product, size
from ilang.core.ir.rows import AtLeast, Known, Origin, Var
from ilang.core.record import record

Terms = Sequence[tuple[int, int]]
"""Coefficients and variables."""


@record
class Derived:
    """A size that follows from ``parts``, the sizes of ``whole`` and ``divisor``; see ``shaped.Derivation``."""

    parts: tuple[Known, ...]
    whole: Extent
    divisor: Extent
    exact: bool
    padding: int | None
    origin: Origin

    def key(self) -> object:
        """A key that sizes which are computed alike share."""
        sizes = tuple(part.size for part in self.parts)
        return sizes, self.whole, self.divisor, self.padding is None

    def is_plain(self) -> bool:
        """Whether the size is that of its one part."""
        is_one = self.whole == PLAIN and self.divisor.constant() == 1
        return is_one and self.padding is None and len(self.parts) == 1


PLAIN = linear([(1, size(0))], 0)
"""The sum that is its one part."""


def summed(
    parts: Sequence[tuple[int, Known]],
    offset: int,
    divisor: int,
    exact: bool,
    padding: int | None,
    origin: Origin,
) -> Derived:
    """A size, floor((sum of coefficient * axis + offset) / divisor)."""
    whole = linear([(c, size(n)) for n, (c, _) in enumerate(parts)], offset)
    axes = tuple([part for _, part in parts])
    return Derived(axes, whole, number(divisor), exact, padding, origin)


def composed(over: Sequence[Known], under: Sequence[Known], origin: Origin) -> Derived:
    """A size, the product of axes divided by that of others."""
    count = len(over) + len(under)
    whole, divisor = product(range(len(over))), product(range(len(over), count))
    return Derived((*over, *under), whole, divisor, True, None, origin)


class RunTime:
    """Rules and conditions noted in one run, in the order in which they were derived."""

    def __init__(self) -> None:
        self.derived: list[tuple[Known, Derived]] = []
        self.reaches: list[tuple[Known, AtLeast]] = []
        self.guessed: list[Known] = []
        self._known: dict[object, Known] = {}
        self._sums: dict[object, int] = {}

    def find(self, derived: Derived) -> int | Known | None:
        """The axis that was computed alike before, or the variable that an equation makes the same."""
        known = self._known.get(derived.key())
        if known is not None or derived.divisor.constant() != 1 or derived.padding is not None:
            return known
        sizes = [part.size.number for part in derived.parts if isinstance(part.size, Var)]
        if len(sizes) < len(derived.parts):
            return None
        terms = [(c, sizes[n]) for c, n in derived.whole.steps()]
        return self._sums.get(_key(terms, derived.whole.offset()))

    def note(self, known: Known, derived: Derived) -> None:
        """An axis has a size that is computed; a second computation of it is a check."""
        if self._known.setdefault(derived.key(), known) is known:
            self.derived.append((known, derived))

    def solved(self, terms: Terms, offset: int, variable: int, known: Known) -> None:
        """An equation was solved for a variable, which is an axis of run-time size from then on."""
        if not isinstance(known.size, Var):
            return
        number = known.size.number
        whole = [(c, number if v == variable else v) for c, v in terms]
        for c, v in whole:
            if abs(c) == 1:
                rest = [(-c * k, u) for k, u in whole if u != v]
                self._sums[_key(rest, -c * offset)] = v

    def holds(self, terms: Terms, offset: int) -> bool:
        """Whether an equation is one that was solved."""
        return any(
            abs(c) == 1
            and self._sums.get(_key([(-c * k, u) for k, u in terms if u != v], -c * offset)) == v
            for c, v in terms
        )


def _key(terms: Terms, offset: int) -> object:
    return tuple(sorted((variable, c) for c, variable in terms)), offset
