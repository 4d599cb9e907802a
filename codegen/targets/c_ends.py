"""Beginnings and ends of loops, as C text."""

from __future__ import annotations

from ilang.core.record import record


@record
class Ends:
    """The first iteration of a loop, and the one past the last: ``end``, a new variable where it has a ``value``."""

    start: str
    end: str
    value: str = ""

    def declared(self, name: str) -> str:
        """The declaration of a loop variable."""
        more = f", {self.end} = {self.value}" if self.value else ""
        return f"int64_t {name} = {self.start}{more}"

    def iterations(self) -> int | None:
        """The number of iterations, where both ends are numbers."""
        known = self.start.isdigit() and self.end.isdigit()
        return int(self.end) - int(self.start) if known else None
