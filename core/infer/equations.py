"""Equations between extents: what windows and concatenations of einsum specifications demand.

    dimension of `2*o<+k` = 2*o + k - 2       dimension of `2*o=+k` = 2*o       dimension of `a^b` = a + b

An equation with one unknown extent gives it; one without any is checked when extents are there. Which extents are
known follows from the program alone, so the order of computation is fixed here and the numbers come at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ilang.core.diagnostic import ShapeError
from ilang.core.infer.counting import RowAxis, flat
from ilang.core.ir.operation import Einsum, Operation
from ilang.core.ir.rows import MEMORY_ORDER
from ilang.core.ir.shaped import Bound, Derivation
from ilang.core.ir.spec import Axis, Blank, Fixed, Joined, Label, ShapeSpec, Window
from ilang.core.record import record
from ilang.core.source import Span

Key = str | RowAxis
"""An axis of a specification: a label, or one that a row variable stands for."""


@record
class Equation:
    """``dimension`` = the sum of coefficient * part + offset; the members of the parts are called ``names``."""

    dimension: int
    parts: tuple[tuple[int, int], ...]
    names: tuple[str, ...]
    offset: int
    least: int
    span: Span

    def members(self) -> tuple[int, ...]:
        """Everything that the equation relates."""
        return (self.dimension, *(member for _, member in self.parts))


@record
class Wanted:
    """A window label whose size must come from the program or its arrays: it is never guessed."""

    member: int
    name: str
    span: Span


@record
class Floor:
    """An axis that is read at a position, or must not be empty (``part`` names it): its least extent less 1."""

    member: int
    position: int
    span: Span
    part: str | None


class Specification:
    """The axes of one einsum operation: members of the union-find, and what relates them to dimensions."""

    def __init__(
        self, node: Operation, lengths: Callable[[str], int], bases: Sequence[int], first: int
    ) -> None:
        """``bases`` are the first dimensions of the operands and of the result; axes are numbered from ``first``."""
        assert isinstance(node.logic, Einsum)
        self.spec = node.logic.spec
        self.rows = [flat(shape, lengths) for shape in self.spec.shapes()]
        self.bases = bases
        self.first = first
        self.axes: dict[Key, int] = {}
        self.spans: dict[Key, Span] = {}
        for shape, rows in zip(self.spec.shapes(), self.rows, strict=True):
            for axis in stored(rows):
                for key in _keys(axis):
                    self.axes.setdefault(key, first + len(self.axes))
                    self.spans.setdefault(
                        key, shape.span if isinstance(axis, RowAxis) else axis.span
                    )
        self.joins: list[tuple[int, int]] = []
        self.equations: list[Equation] = []
        self.wanted: list[Wanted] = []
        self.floors: list[Floor] = []
        for base, rows in zip(bases, self.rows, strict=True):
            for dim, axis in enumerate(stored(rows)):
                self._relate(base + dim, axis)

    def _relate(self, dimension: int, axis: Axis | RowAxis) -> None:
        match axis:
            case RowAxis():
                self.joins.append((dimension, self.axes[axis]))
            case Label():
                self.joins.append((dimension, self.axes[axis.name]))
            case Blank():
                pass
            case Fixed():
                self.floors.append(Floor(dimension, axis.position, axis.span, None))
            case Window():
                self._window(dimension, axis)
            case Joined():
                parts = tuple((1, self.axes[name]) for name in axis.parts)
                self.equations.append(Equation(dimension, parts, axis.parts, 0, 0, axis.span))

    def _window(self, dimension: int, axis: Window) -> None:
        over = self.axes[axis.over]
        if axis.kernel is None:
            equation = Equation(dimension, ((axis.stride, over),), (axis.over,), 0, 0, axis.span)
            self.equations.append(equation)
            return
        kernel = self.axes[axis.kernel]
        parts: tuple[tuple[int, int], ...] = ((axis.stride, over),)
        offset = 0
        if not axis.padded:
            parts += ((axis.dilation, kernel),)
            offset = 1 - axis.stride - axis.dilation
        names = (axis.over, axis.kernel)[: len(parts)]
        self.equations.append(Equation(dimension, parts, names, offset, 1, axis.span))
        self.wanted.append(Wanted(kernel, axis.kernel, axis.span))
        self.floors.append(Floor(over, 0, axis.span, axis.over))
        self.floors.append(Floor(kernel, 0, axis.span, axis.kernel))


def stored(rows: Sequence[Sequence[Axis | RowAxis]]) -> list[Axis | RowAxis]:
    """The axes of three rows in memory order."""
    return [axis for kind in MEMORY_ORDER for axis in rows[kind]]


def _keys(axis: Axis | RowAxis) -> tuple[Key, ...]:
    match axis:
        case RowAxis():
            return (axis,)
        case Label():
            return (axis.name,)
        case Window():
            return (axis.over,) if axis.kernel is None else (axis.over, axis.kernel)
        case Joined():
            return axis.parts
        case _:
            return ()


def axis_letters(axis: Axis | RowAxis) -> str:
    """What pages and sizes call the dimension that an axis walks; empty for a fixed index and a blank."""
    if isinstance(axis, RowAxis):
        return axis.name()
    names = [key if isinstance(key, str) else key.name() for key in _keys(axis)]
    return ("" if all(len(name) == 1 for name in names) else "_").join(names)


class Pending:
    """Everything that extents must satisfy, put in an order in which they can be computed."""

    def __init__(self, find: Callable[[int], int], known: set[int]) -> None:
        """``find`` gives the class of a member; ``known`` are the classes that arrays or written numbers give."""
        self.find = find
        self.known = known
        self.todo: list[Derivation | Equation] = []
        self.found: list[Derivation] = []
        self.guessed: dict[int, int] = {}

    def run(self, wanted: Sequence[Wanted], floors: Sequence[Floor], others: Sequence[int]) -> None:
        """Order the derivations; what nothing gives is guessed: as large as it is read, and 1 at least.

        Args:
            wanted: labels that are never guessed.
            floors: the least extents.
            others: members that no equation may mention, in the order in which they are guessed.

        Raises:
            ShapeError: E0521 (the size of a window is never given).
        """
        self._settle()
        for each in wanted:
            if self.find(each.member) not in self.known:
                message = f"`{each.span.text()}`: the size of {each.name} is never given"
                help_line = f"give {each.name} a size: an operand that has it"
                raise ShapeError("E0521", message, each.span, help_line)
        least: dict[int, int] = {}
        for floor in floors:
            group = self.find(floor.member)
            least[group] = max(least.get(group, 1), floor.position + 1)
        shared = {
            g
            for e in self.todo
            if isinstance(e, Equation)
            for g in self._open(_totals(e, self.find))
        }
        alone = [member for member in others if self.find(member) not in shared]
        for member in alone:
            self._guess(member, least)
        self._settle()
        for member in others:
            if self._guess(member, least):
                self._settle()

    def _guess(self, member: int, least: dict[int, int]) -> bool:
        group = self.find(member)
        if group in self.known:
            return False
        self.guessed[group] = least.get(group, 1)
        self.known.add(group)
        return True

    def _open(self, totals: dict[int, int]) -> list[int]:
        return [group for group, c in totals.items() if c and group not in self.known]

    def _settle(self) -> None:
        moved = True
        while moved:
            moved, rest = False, []
            for entry in self.todo:
                solved = self._solved(entry)
                if solved is None:
                    rest.append(entry)
                    continue
                moved = True
                self.found += solved
                self.known |= {self.find(derived.size) for derived in solved}
            self.todo = rest

    def _solved(self, entry: Derivation | Equation) -> list[Derivation] | None:
        """The derivation of an entry whose other extents are known: none where it always holds."""
        if isinstance(entry, Derivation):
            ready = all(self.find(member) in self.known for _, member in entry.terms)
            return [entry] if ready else None
        totals = _totals(entry, self.find)
        opened = self._open(totals)
        if len(opened) > 1:
            return None
        related = [group for group, c in totals.items() if c]
        if related:
            chosen = (opened or related)[0]
            least = 0 if chosen == self.find(entry.dimension) else entry.least
            return [_solve(entry, totals, chosen, least)]
        if entry.offset:
            message = f"`{entry.span.text()}`: an axis would have to be longer than itself"
            help_line = "use another name for one of the axes"
            raise ShapeError("E0515", message, entry.span, help_line)
        return []


def _totals(equation: Equation, find: Callable[[int], int]) -> dict[int, int]:
    """The coefficient of each class in an equation, all on one side."""
    totals: dict[int, int] = {find(equation.dimension): -1}
    for coefficient, member in equation.parts:
        totals[find(member)] = totals.get(find(member), 0) + coefficient
    return totals


def _solve(equation: Equation, totals: dict[int, int], group: int, least: int) -> Derivation:
    """An equation solved for one class."""
    own = -totals[group]
    sign = 1 if own > 0 else -1
    terms = tuple((sign * c, other) for other, c in totals.items() if c and other != group)
    divisor = abs(own)
    offset = sign * equation.offset
    return Derivation(group, terms, offset, divisor, divisor > 1, least, None, equation.span)


def bounds_of(floors: Sequence[Floor], number: Callable[[int], int]) -> list[Bound]:
    """What fixed indices and windows demand of extents; ``number`` gives the size number of a member."""
    return [Bound(number(f.member), f.position, f.span, f.part) for f in floors]


def shape_letters(
    shape: ShapeSpec, rows: Sequence[Sequence[Axis | RowAxis]]
) -> list[tuple[str, Span]]:
    """The letters of each dimension in memory order, and where they stand."""
    return [
        (axis_letters(axis), shape.span if isinstance(axis, RowAxis) else axis.span)
        for axis in stored(rows)
    ]
