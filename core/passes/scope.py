"""The state of lowering: open loops and their blocks, assignments being lowered, and where values are kept."""

from __future__ import annotations

from collections.abc import Container

from ilang.core.calculus.affine import Affine, Within
from ilang.core.ir import kernel
from ilang.core.ir.ids import BufferId, LocalId, VariableId
from ilang.core.ir.schedule import Loop, LoopSteps, Nest
from ilang.core.ir.shaped import Assignment, Read
from ilang.core.record import record

Rest = tuple[Affine, int]
"""The end of a loop over what is left of a dimension: how much is, and the step of an iteration."""
Block = list[kernel.Statement]


@record
class Place:
    """The place of a value: a scalar variable, or a buffer and what indexes its dimensions.

    An entry of ``dims`` is a dimension of the value, or the one loop part that is kept of it; in a copy of what a
    reader reads, or in an interval of it, how the loops of the reader walk a dimension. A ``copy`` has 0 where the
    reader is outside the dimension. A place in one of several results is ``part`` of them.
    """

    local: LocalId | None
    buffer: BufferId | None
    dims: tuple[int | Loop | LoopSteps, ...]
    copy: bool = False
    part: tuple[Affine, ...] = ()


class Scope:
    """An open loop and the block inside it; the outermost scope is the kernel's own block."""

    __slots__ = ("block", "depth", "names", "parent", "places", "variable")

    def __init__(
        self, parent: Scope | None, variable: VariableId | None, names: frozenset[str]
    ) -> None:
        """A loop over ``variable`` in a scope; ``names`` are those of the loops around and of itself."""
        self.parent = parent
        self.variable = variable
        self.names = names
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.block: Block = []
        self.places: dict[object, Place] = {}

    def is_inside(self, other: Scope) -> bool:
        """Whether this scope is the other one or stands in it."""
        current: Scope | None = self
        while current is not None and current.depth > other.depth:
            current = current.parent
        return current is other


class Frame:
    """An assignment being lowered: the scope of each open loop, its own or shared, and its staged operands."""

    __slots__ = (
        "chunks",
        "ends",
        "home",
        "instance",
        "nest",
        "node",
        "origin",
        "place",
        "staged",
        "value",
        "variables",
    )

    def __init__(
        self, value: int, node: Assignment, nest: Nest, place: Place, instance: int
    ) -> None:
        """The assignment that makes ``value``, kept at ``place``."""
        self.value = value
        self.node = node
        self.nest = nest
        self.place = place
        self.home: dict[Loop, Scope] = {}
        self.staged: dict[Read, Place] = {}
        self.instance = instance
        """The instance of the kernel's plan that the frame computes."""
        self.origin: dict[int, Within] = {}
        """The first index of an axis whose loops walk an interval of a dimension only, and may leave it."""
        self.chunks: dict[Loop, kernel.Chunk] = {}
        """Loops of which a block of the iterations runs."""
        self.ends: dict[Loop, tuple[Affine, int]] = {}
        """Ends of loops before those of their dimensions: an index, and the step by which it is divided."""
        self.variables: dict[Loop, VariableId] = {}
        """The variable that each loop was opened with last, those that are closed among them."""

    def index_of(self, steps: LoopSteps) -> Affine:
        """Steps of loops as an index over loop variables."""
        return Affine(tuple((step, self.variable(loop)) for step, loop in steps))

    def variable(self, loop: Loop) -> VariableId:
        """The variable of an open loop."""
        number = self.home[loop].variable
        assert number is not None
        return number


def fresh(name: str, *taken: Container[str], serial: dict[str, int] | None = None) -> str:
    """``name``, or with the first number that makes it new.

    ``serial`` keeps the last number of each name, where no taken name ever becomes free: the search goes on from there.
    """
    number = 1 if serial is None else serial.get(name, 1)
    candidate = name if number == 1 else f"{name}{number}"
    while any(candidate in names for names in taken):
        number += 1
        candidate = f"{name}{number}"
    if serial is not None:
        serial[name] = number
    return candidate
