"""Sizes that operations name: equal names of one operation are one extent, wherever its nodes have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ilang.core.ir.operation import Sized
from ilang.core.ir.rows import Composed, Constraint, Dim, DimEqual, Known, Origin, Var
from ilang.core.source import Span


class Scopes:
    """The names of every operation so far."""

    def __init__(self, fresh: Callable[[str], Var]) -> None:
        """``fresh`` gives a variable, which messages call as it is told."""
        self.fresh = fresh
        self.names: dict[tuple[int, str], Var] = {}

    def constraints(self, c: Sized, dims: Sequence[Dim]) -> Iterator[Constraint]:
        """What an operation says of some dimensions, axes or labels, ``dims``."""
        for dim, amount, span in zip(dims, c.amounts, c.spans, strict=True):
            if amount is None:
                continue
            says = Origin(f"`{c.span.text()}`", span, "", None)
            if isinstance(amount, tuple):
                parts = tuple(self._amount(c, part, span) for part in amount)
                yield Composed(dim, parts, tuple(map(str, amount)), says)
            else:
                yield DimEqual(self._amount(c, amount, span), dim, says)

    def _amount(self, c: Sized, amount: str | int, span: Span) -> Dim:
        """A name or a number of an operation."""
        if isinstance(amount, int):
            return Known(amount, False, None, Origin(f"`{span.text()}`", span, "", "written"))
        if (c.scope, amount) not in self.names:
            self.names[c.scope, amount] = self.fresh(f"axis {amount}")
        return self.names[c.scope, amount]
