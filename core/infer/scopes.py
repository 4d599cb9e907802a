"""Sizes that operations name: equal names of one operation are one extent, wherever its nodes have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ilang.core.ir.operation import Sized
from ilang.core.ir.rows import Composed, Constraint, Determined, Dim, DimEqual, Known, Origin, Var
from ilang.core.source import Span


class Scopes:
    """The names of every operation so far."""

    def __init__(self, fresh: Callable[[str], Var]) -> None:
        """``fresh`` gives a variable, which messages call as it is told."""
        self.fresh = fresh
        self.names: dict[tuple[int, str], Var] = {}
        self.places: dict[tuple[int, str], Span] = {}

    def name(self, scope: int, name: str, span: Span) -> Var:
        """The variable of a name, which stands at ``span`` first."""
        if (scope, name) not in self.names:
            self.names[scope, name] = self.fresh(f"axis {name}")
            self.places[scope, name] = span
        return self.names[scope, name]

    def determined(self, scope: int, name: str, whole: Span) -> Iterator[Constraint]:
        """The constraint that the size of a name of the operation ``whole`` is given by something."""
        span = self.places[scope, name]
        says = Origin(f"`{whole.text()}`", span)
        yield Determined(self.names[scope, name], name, says, f"give it: `{name}=2`")

    def constraints(self, c: Sized, dims: Sequence[Dim]) -> Iterator[Constraint]:
        """The constraints of an operation on some dimensions, axes or labels, ``dims``."""
        known = len(self.names)
        yield from self._amounts(c, dims)
        for scope, name in list(self.names)[known:]:
            yield from self.determined(scope, name, c.span)

    def _amounts(self, c: Sized, dims: Sequence[Dim]) -> Iterator[Constraint]:
        for dim, amount, span in zip(dims, c.amounts, c.spans, strict=True):
            if amount is None:
                continue
            says = Origin(f"`{c.span.text()}`", span)
            if isinstance(amount, tuple):
                parts = tuple(self._amount(c, part, span) for part in amount)
                yield Composed(dim, parts, tuple(map(str, amount)), says)
            else:
                yield DimEqual(self._amount(c, amount, span), dim, says)

    def _amount(self, c: Sized, amount: str | int, span: Span) -> Dim:
        """A name or a number of an operation."""
        if isinstance(amount, int):
            return Known(amount, Origin(f"`{span.text()}`", span, "", "written"))
        return self.name(c.scope, amount, span)
