"""Compositions under inference: an axis that has as many elements as others together, of which one may be what is left.

Example, of an array of 12 elements and of one of n:
    in:   (a b) = 12, a = 4        out:  b = 3
    in:   (a b) = n, a = 4         out:  b = n / 4, without remainder, when n is known
    in:   (a b), a = 4, b = 3      out:  (a b) = 12

What is computed never stretches, not even to 1: a size that comes at run time does not, either. No part is guessed: two
unknown ones have no answer, and what 0 elements are divided into where a known part is 0 has many. Products that were
met before are known again, so a dimension that is split and put together is one extent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ilang.core.infer import conflicts
from ilang.core.infer.dims import Dims
from ilang.core.infer.runtime import Derived, composed
from ilang.core.ir.rows import Composed, Dim, Known, Origin, Var, extent_of, terms_of

Factors = tuple[int, tuple[int, ...]]
"""A product: its number, and the variables of its run-time sizes in order."""


class Compositions:
    """The compositions of one run of the solver, and the products that are known."""

    def __init__(self, dims: Dims) -> None:
        self.dims = dims
        self.every: dict[Composed, None] = {}
        self._products: dict[Factors, Known] = {}
        self._quotients: dict[tuple[int, Factors], Known] = {}

    def add(self, c: Composed) -> None:
        """Take a composition, and draw what follows."""
        self.every[c] = None
        whole = self.dims.values.resolve(c.dim)
        parts = [self.dims.values.resolve(part) for part in c.parts]
        unknown = _unknown(whole, parts)
        if len(unknown) > 1 or (unknown and not isinstance(whole, Known)):
            self.dims.wait(c, [term for dim in (whole, *parts) for term in terms_of(dim)])
            return
        known = [part for n, part in enumerate(parts) if [n] != unknown]
        others = [part for part in known if isinstance(part, Known)]
        if unknown:
            assert isinstance(whole, Known)
            self._rest(c, whole, others, unknown[0])
        else:
            self._whole(c, whole, others)
        self._register(c)
        settled = [self.dims.values.resolve(dim) for dim in (c.dim, *c.parts)]
        self.dims.wait(c, [(1, number) for number in _symbols(settled)])

    def close(self) -> None:
        """Refuse parts that nothing determines.

        Raises:
            ShapeError: E0578.
        """
        for c in self.every:
            parts = zip(c.names, c.parts, strict=True)
            names = [
                name
                for name, part in parts
                if not isinstance(self.dims.values.resolve(part), Known)
            ]
            if names:
                raise conflicts.unknown_parts(names, c)

    def _whole(self, c: Composed, whole: Dim, parts: Sequence[Known]) -> None:
        """All parts are known: so is the axis that they make up."""
        number, symbols = _factors(parts)
        if not symbols:
            if isinstance(whole, Known) and isinstance(whole.size, int) and whole.size != number:
                raise conflicts.composed_otherwise(whole, c, [extent_of(part) for part in parts])
            product = Known(number, Origin(f"{_text(c)} of {c.origin.says}", None))
            self.dims.equal(c.dim, product, c.origin)
            return
        known = self._products.get((number, symbols))
        if known is not None:
            self.dims.equal(c.dim, known, c.origin)
        elif isinstance(whole, Known):
            self.dims.run_time.derived.append((whole, composed(tuple(parts), (), c.origin)))
        else:
            product = self._computed(composed(tuple(parts), (), c.origin))
            self.dims.equal(c.dim, product, c.origin)

    def _rest(self, c: Composed, whole: Known, others: Sequence[Known], unknown: int) -> None:
        """One part is unknown: it is what is left."""
        number, symbols = _factors(others)
        part, name = c.parts[unknown], c.names[unknown]
        if isinstance(whole.size, int) and not symbols:
            sizes = [extent_of(other) for other in others]
            if not number and not whole.size:
                raise conflicts.any_part(name, whole, c)
            if not number or whole.size % number:
                raise conflicts.not_divided(unknown, whole, c, sizes)
            says = Origin(f"{name} of {c.origin.says}", c.origin.span)
            self.dims.equal(part, Known(whole.size // number, says), c.origin)
            return
        if not number:
            raise conflicts.any_part(name, whole, c)
        rest = None
        if isinstance(whole.size, Var):
            rest = self._quotients.get((whole.size.number, (number, symbols)))
        if rest is None:
            under = () if (number, symbols) == (1, ()) else tuple(others)
            rest = self._computed(composed((whole,), under, c.origin)) if under else whole
        self.dims.equal(part, rest, c.origin)

    def _computed(self, derived: Derived) -> Known:
        known = self.dims.values.at_run_time(derived.origin)
        self.dims.run_time.derived.append((known, derived))
        return known

    def _register(self, c: Composed) -> None:
        """Remember a product, and what is left of it without each of its parts."""
        whole = self.dims.values.resolve(c.dim)
        parts = [
            known for part in c.parts if isinstance(known := self.dims.values.resolve(part), Known)
        ]
        if not isinstance(whole, Known) or len(parts) < len(c.parts):
            return
        self._products.setdefault(_factors(parts), whole)
        if isinstance(whole.size, Var):
            for n, part in enumerate(parts):
                rest = _factors([*parts[:n], *parts[n + 1 :]])
                self._quotients.setdefault((whole.size.number, rest), part)


def _unknown(whole: Dim, parts: Sequence[Dim]) -> list[int]:
    """The parts that are not known, by place; where none is, the one of run-time size of a product that is a number."""
    unknown = [n for n, part in enumerate(parts) if not isinstance(part, Known)]
    if unknown or not isinstance(whole, Known) or isinstance(whole.size, Var):
        return unknown
    late = [n for n, part in enumerate(parts) if list(_symbols([part]))]
    return late if len(late) == 1 else []


def _factors(parts: Sequence[Known]) -> Factors:
    number = prod(part.size for part in parts if isinstance(part.size, int))
    return number, tuple(sorted(_symbols(parts)))


def _symbols(dims: Sequence[Dim]) -> Iterator[int]:
    """The variables of the axes that have run-time sizes."""
    for dim in dims:
        if isinstance(dim, Known) and isinstance(dim.size, Var):
            yield dim.size.number


def _text(c: Composed) -> str:
    """A composition as it is written: ``(a b)``."""
    return f"({' '.join(c.names)})"
