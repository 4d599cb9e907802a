"""Run-time sizes under inference: what follows from them, and what they must satisfy, is computed when arrays come."""

from __future__ import annotations

from ilang.core.ir.rows import Known, Origin
from ilang.core.record import record


@record
class Derived:
    """A size, floor((sum of coefficient * axis + offset) / divisor); the fields are those of ``shaped.Derivation``."""

    parts: tuple[tuple[int, Known], ...]
    offset: int
    divisor: int
    exact: bool
    pad: int | None
    origin: Origin

    def key(self) -> object:
        """The same for sizes that are computed alike."""
        sizes = tuple((c, part.size) for c, part in self.parts)
        return sizes, self.offset, self.divisor, self.pad is None

    def is_plain(self) -> bool:
        """Whether the size is that of its one part."""
        return (
            len(self.parts) == 1
            and self.parts[0][0] == 1
            and (self.offset, self.divisor, self.pad) == (0, 1, None)
        )


@record
class Reach:
    """An axis of run-time size must be longer than ``position``; ``part`` names it where it must not be empty."""

    known: Known
    position: int
    part: str | None
    origin: Origin


class RunTime:
    """What is noted of one run, in the order in which it was found."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.derived: list[tuple[Known, Derived]] = []
        self.reaches: list[Reach] = []
        self._known: dict[object, Known] = {}

    def find(self, derived: Derived) -> Known | None:
        """The axis that was computed alike before."""
        return self._known.get(derived.key())

    def note(self, known: Known, derived: Derived) -> None:
        """An axis has a size that is computed; a second computation of it is a check."""
        if self._known.setdefault(derived.key(), known) is known:
            self.derived.append((known, derived))
