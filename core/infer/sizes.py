"""Size numbers of solved axes: one per extent, and one per size that comes at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ilang.core.calculus import extent as calculus
from ilang.core.calculus.affine import Affine
from ilang.core.infer.runtime import Derived
from ilang.core.ir.rows import AtLeast, Known
from ilang.core.ir.shaped import Derivation, InputDimension, Reach, Size
from ilang.core.names import Names
from ilang.core.record import replace
from ilang.core.source import Span


class Sizes:
    """The sizes that were asked for so far."""

    def __init__(
        self, cell: Callable[[Known], int], known: Callable[[Known], Known], span: Span
    ) -> None:
        """``cell`` says which axes are one, ``known`` what is decided of an axis; ``span`` is the whole program."""
        self.cell = cell
        self.known = known
        self.span = span
        self.entries: list[Size] = []
        self.derived: list[Derivation] = []
        self.unique = Names()
        self._numbers: dict[int, int] = {}
        self._once: int | None = None
        self._halves: dict[tuple[int, int], int] = {}

    def of(self, known: Known) -> int:
        """The size number of an axis."""
        number = self._numbers.get(self.cell(known))
        return self.add(known, self.unique.fresh("n")) if number is None else number

    def add(self, known: Known, name: str) -> int:
        """Give an axis the next number, and a name that nothing else has."""
        size = self.known(known).size
        self.entries.append(Size(name, size if isinstance(size, int) else None, ()))
        number = len(self.entries) - 1
        self._numbers[self.cell(known)] = number
        return number

    def guess(self, known: Known) -> None:
        """Mark the size of an axis as one that nothing gives."""
        number = self.of(known)
        self.entries[number] = replace(self.entries[number], guessed=True)

    def once(self) -> int:
        """The size of a loop that runs once."""
        if self._once is None:
            self._once = self._new("n1", 1)
        return self._once

    def fixed(self, number: int) -> int | None:
        """The extent of a size number, or None where it comes at run time."""
        return self.entries[number].fixed

    def name(self, number: int) -> str:
        """The name of a size number."""
        return self.entries[number].name

    def half(self, dilation: int, size: int, span: Span) -> int:
        """The size number of what a window of run-time size reaches to its left, padded on both ends."""
        if (dilation, size) not in self._halves:
            number = self._new(f"half_{self.entries[size].name}", None)
            self._halves[dilation, size] = number
            whole = calculus.linear([(dilation, calculus.size(size))], 1 - dilation)
            self.derived.append(Derivation(number, whole, calculus.number(2), False, 0, None, span))
        return self._halves[dilation, size]

    def table(self, places: Mapping[int, Sequence[InputDimension]]) -> tuple[Size, ...]:
        """Every size; ``places`` are the dimensions of inputs that have it."""
        return tuple(
            replace(entry, places=tuple(places.get(number, ())))
            for number, entry in enumerate(self.entries)
        )

    def rule(self, known: Known, derived: Derived) -> Derivation:
        """A computed size over size numbers."""
        place = {n: calculus.size(self.of(part)) for n, part in enumerate(derived.parts)}
        whole, divisor = (each.substituted(place) for each in (derived.whole, derived.divisor))
        span = derived.origin.span or self.span
        return Derivation(self.of(known), whole, divisor, derived.exact, 0, derived.padding, span)

    def reach(self, known: Known, reach: AtLeast) -> Reach:
        """The least extent that an axis of run-time size must reach."""
        span = reach.origin.span or self.span
        return Reach(Affine((), reach.size - 1), span, self.of(known), reach.part)

    def _new(self, name: str, fixed: int | None) -> int:
        self.entries.append(Size(self.unique.fresh(name), fixed, ()))
        return len(self.entries) - 1
