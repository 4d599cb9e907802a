"""The data from which nests are chosen, and what nests that are chosen already say of values to come.

Steps ask and answer; ``nests.py`` alone writes down what they answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.machine import Machine
from ilang.core.record import record
from ilang.core.schedule.choose.accesses import Accesses, strided_order
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.choose.packing import Across, Packed
from ilang.core.schedule.choose.tile import Factors
from ilang.core.schedule.choose.tilings import Tilings
from ilang.core.schedule.fuse import Provenance
from ilang.core.transform.scans import Scan

if TYPE_CHECKING:
    from ilang.core.schedule.wide_matrices import Apart

Place = tuple[int, Loop]
"""A loop of a kernel: a value that has loops of its own, and the loop of its nest."""


@record
class Analysis:
    """A program and what is known of it before any nest is: the nests that a person wrote, who reads what, tilings."""

    shaped: Shaped
    written: Sequence[Nest | None]
    provenance: Provenance
    machine: Machine
    inlining: Inlining
    accesses: tuple[Accesses, ...]
    tilings: Tilings
    extents: Extents
    row_lanes: tuple[Across | None, ...]
    apart: Apart | None = None
    scans: Mapping[int, Scan] = MappingProxyType({})

    def order(self, value: int, node: Assignment) -> tuple[int, ...]:
        """The axes of an assignment in the order of rule 4; short rows that lanes go across are innermost."""
        order = strided_order(node, self.accesses[value], self.extents, self.machine)
        lanes = self.row_lanes[value]
        return order if lanes is None else tuple(sorted(order, key=lambda axis: axis == lanes.last))


@record
class Staged:
    """The choice for a value inside of its reader: its splits and loops.

    ``places`` has the loop of a kernel that each shared loop is; ``packed`` is the tile or block around the value.
    ``is_part`` says that only an interval of it is computed there, or of what reads it: what an affine index reads.
    """

    value: int
    factors: Factors
    order: tuple[Loop, ...]
    places: Mapping[Loop, Place]
    packed: Packed | None = None
    is_part: bool = False


class ChosenNests:
    """The nests that are chosen, the values that they stage, and the place of each loop of a kernel.

    ``imposed`` are the values whose nests a person wrote, and that would have others.
    """

    def __init__(self, count: int) -> None:
        """Nothing yet, of so many values."""
        self.nests: list[Nest | None] = [None] * count
        self.staged: dict[int, Staged] = {}
        self.packed: dict[int, Packed] = {}
        self.places: dict[int, dict[Loop, Place]] = {}
        self.imposed: set[int] = set()

    def nest(self, value: int) -> Nest:
        """The nest of a value that has one."""
        nest = self.nests[value]
        assert nest is not None
        return nest

    def stage(self, staged: Staged) -> None:
        """Note a value that is computed inside of its reader."""
        self.staged[staged.value] = staged
        self.places.setdefault(staged.value, {}).update(staged.places)
        if staged.packed is not None:
            self.packed[staged.value] = staged.packed

    def release(self, value: int) -> None:
        """Forget what was chosen for a value inside of its readers."""
        for table in (self.staged, self.packed, self.places):
            table.pop(value, None)

    def is_part(self, value: int) -> bool:
        """Whether a value is computed inside of a reader that needs an interval of it only."""
        return value in self.staged and self.staged[value].is_part

    def shared_places(
        self, reader: int, pairs: Mapping[int, int], order: Sequence[Loop]
    ) -> dict[Loop, Place]:
        """The places of the loops of a producer that are outer loops of its reader; ``pairs`` has the reader's axes."""
        known = self.places.get(reader, {})
        return {
            Loop(inner, loop.part): known[loop]
            for inner, outer in pairs.items()
            for loop in order
            if loop.axis == outer and loop in known
        }

    def leading_places(
        self, reader: int, read: Read, back: Mapping[int, list[int]]
    ) -> list[object]:
        """The outer loops of a reader that walk what it reads: where each is, and what it walks."""
        known = self.places.get(reader, {})
        leading: list[object] = []
        for loop in self.nest(reader).order:
            if loop not in known or loop.axis not in back:
                break
            leading.append((known[loop], tuple(back[loop.axis])))
        return leading
