"""Size numbers of solved axes: one per extent, and one per size that comes at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang.core.infer.runtime import Derived, Reach
from ilang.core.ir.rows import Known, Symbol
from ilang.core.ir.shaped import Bound, Derivation, Place, Size
from ilang.core.names import Names
from ilang.core.record import record
from ilang.core.source import Span


@record
class _Entry:
    """A size: its name, and its extent where it is known."""

    name: str
    fixed: int | None


class Sizes:
    """The sizes that were asked for so far."""

    def __init__(self, words: Mapping[int, str], span: Span) -> None:
        """``words`` has what the text calls the size of a dimension variable; ``span`` is the whole program."""
        self.words = words
        self.span = span
        self.entries: list[_Entry] = []
        self.derived: list[Derivation] = []
        self._names = Names()
        self._numbers: dict[int | Symbol, int] = {}
        self._halves: dict[tuple[int, int], int] = {}

    def of(self, known: Known) -> int:
        """The size number of an axis."""
        size = known.size
        if size not in self._numbers:
            if isinstance(size, int):
                self._numbers[size] = self._new(f"n{size}", size)
            else:
                self._numbers[size] = self._new(self.words.get(size.number, "n"), None)
        return self._numbers[size]

    def of_number(self, extent: int) -> int:
        """The size number of an extent."""
        if extent not in self._numbers:
            self._numbers[extent] = self._new(f"n{extent}", extent)
        return self._numbers[extent]

    def fixed(self, number: int) -> int | None:
        """The extent of a size number, or None where it comes at run time."""
        return self.entries[number].fixed

    def half(self, dilation: int, size: int, span: Span) -> int:
        """The size number of what a window of run-time size reaches to its left, padded on both ends."""
        if (dilation, size) not in self._halves:
            number = self._new(f"half_{self.entries[size].name}", None)
            self._halves[dilation, size] = number
            terms = ((dilation, size),)
            self.derived.append(Derivation(number, terms, 1 - dilation, 2, False, 0, None, span))
        return self._halves[dilation, size]

    def table(self, places: Mapping[int, Sequence[Place]]) -> tuple[Size, ...]:
        """Every size; ``places`` are the dimensions of inputs that have it."""
        return tuple(
            Size(entry.name, entry.fixed, tuple(places.get(number, ())))
            for number, entry in enumerate(self.entries)
        )

    def derivation(self, known: Known, derived: Derived) -> Derivation:
        """A computed size over size numbers."""
        terms = tuple((c, self.of(part)) for c, part in derived.parts)
        span = derived.origin.span or self.span
        return Derivation(
            self.of(known),
            terms,
            derived.offset,
            derived.divisor,
            derived.exact,
            0,
            derived.pad,
            span,
        )

    def bound(self, reach: Reach) -> Bound:
        """What an axis of run-time size must reach."""
        span = reach.origin.span or self.span
        return Bound(self.of(reach.known), reach.position, span, reach.part)

    def _new(self, name: str, fixed: int | None) -> int:
        self.entries.append(_Entry(self._names.fresh(name), fixed))
        return len(self.entries) - 1
