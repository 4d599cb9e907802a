"""Rows under inference: what is known of each row variable, and how its constraints simplify.

Rows align from the outside: leading axes from the left, trailing axes from the right; what is left in the middle is
the business of the row variables. A result that has too few axes for its operand grows by new axes, the trailing ones
first; that ends, because rows that would grow without end are refused beforehand (``infer/cycles.py``). Where the
axes of one side meet the row variable of the other, the constraint waits until that variable is known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from ilang.core.infer import conflicts
from ilang.core.infer.dims import Dims
from ilang.core.ir.rows import (
    MEMORY_ORDER,
    Constraint,
    Dim,
    Origin,
    Row,
    RowBelow,
    RowEqual,
    StoredRows,
    closed,
    opened,
)
from ilang.core.walks import reached

T = TypeVar("T")


class RowVars:
    """The row variables of one run of the solver."""

    def __init__(self, count: int, dims: Dims, queue: deque[Constraint]) -> None:
        """``count`` unknown variables; constraints that come up are added to ``queue``."""
        self.dims = dims
        self.queue = queue
        self.value: list[Row | None] = []
        self.waiting: dict[int, dict[int, Constraint]] = {}
        self.results: dict[int, dict[int, RowBelow]] = {}
        """The constraints in which a variable is that of an operand, by the variable."""
        self.fed: set[int] = set()
        """Variables that some operand bounds, or did."""
        self.across: list[RowBelow] = []
        """Operands whose axes lie across the variable of a result, or did."""
        for _ in range(count):
            self.fresh()

    def fresh(self) -> int:
        """A new variable."""
        self.value.append(None)
        return len(self.value) - 1

    def resolve(self, row: Row) -> Row:
        """A row with the values of its row variables put in (not those of its axes)."""
        if row.variable is None:
            return row
        first = self.value[row.variable]
        if first is None:
            return row
        bare = not row.leading and not row.trailing
        if bare and (first.variable is None or self.value[first.variable] is None):
            return first
        leading, trailing = [row.leading], [row.trailing]
        variable: int | None = row.variable
        while variable is not None and (value := self.value[variable]) is not None:
            leading.append(value.leading)
            trailing.append(value.trailing)
            variable = value.variable
        resolved = Row(
            tuple(dim for part in leading for dim in part),
            variable,
            tuple(dim for part in reversed(trailing) for dim in part),
        )
        if bare:
            self.value[row.variable] = resolved
        elif first.variable != variable:
            start, end = len(row.leading), len(resolved.trailing) - len(row.trailing)
            self.value[row.variable] = Row(
                resolved.leading[start:], variable, resolved.trailing[:end]
            )
        return resolved

    def text(self, row: Row) -> str:
        """A row as messages show it."""
        return conflicts.row_text(resolved(self, row))

    def bind(self, variable: int, row: Row, origin: Origin) -> None:
        """Give a variable its value and wake what waits for it."""
        row = self.resolve(row)
        if row.variable == variable:
            if row.count():
                raise conflicts.infinite(self.text(opened(variable)), origin)
            return
        self.value[variable] = row
        self.dims.log.entries.append((self.dims.log.stage, variable, row, origin))
        if row.variable is not None and variable in self.fed:
            self.fed.add(row.variable)
        if variable in self.waiting:
            for c in self.waiting.pop(variable).values():
                if isinstance(c, RowEqual):
                    self.queue.appendleft(c)
                else:
                    self.queue.append(c)
        if variable in self.results:
            self.queue.extend(self.results.pop(variable).values())

    def _wait(self, c: Constraint, *variables: int | None) -> None:
        for variable in variables:
            if variable is not None:
                self.waiting.setdefault(variable, {})[id(c)] = c

    # -- equations ---------------------------------------------------------------------------------------------------

    def equal(self, c: RowEqual) -> None:
        """Solve an equation as far as it goes."""
        one, other = self.resolve(c.one), self.resolve(c.other)
        if one.variable is not None and other.variable is not None:
            self._open_equal(one, other, c.origin)
        elif one.variable is not None:
            self._fitted(one, other, c.origin)
        elif other.variable is not None:
            self._fitted(other, one, c.origin)
        else:
            if one.count() != other.count():
                counts = (one.count(), other.count())
                raise conflicts.axes_differ(self.text(one), self.text(other), counts, c.origin)
            _pair(self.dims.equal, one.axes(), other.axes(), c.origin)

    def _fitted(self, row: Row, whole: Row, origin: Origin) -> None:
        """An open row against a closed one: the variable is the middle."""
        if whole.count() < row.count():
            counts = (row.count(), whole.count())
            raise conflicts.axes_differ(self.text(row), self.text(whole), counts, origin)
        assert row.variable is not None
        middle = self._paired(whole, row, origin)
        self.bind(row.variable, middle, origin)

    def _paired(self, whole: Row, row: Row, origin: Origin, equate: bool = True) -> Row:
        """Pair the explicit axes of ``row`` with a closed row from the outside; the middle of the closed row."""
        if not row.leading and not row.trailing:
            return whole
        axes, first, last = whole.axes(), len(row.leading), whole.count() - len(row.trailing)
        relate = self.dims.equal if equate else self.dims.below
        _pair(relate, axes[:first], row.leading, origin)
        _pair(relate, axes[last:], row.trailing, origin)
        split = min(max(first, len(whole.leading)), last)
        return Row(axes[first:split], None, axes[split:last])

    def _open_equal(self, one: Row, other: Row, origin: Origin) -> None:
        """Two open rows: outer axes are paired; what is left of one is what the variable of the other stands for."""
        same = one.variable == other.variable
        if same and one.count() != other.count():
            raise conflicts.infinite(self.text(one), origin)
        first = min(len(one.leading), len(other.leading))
        last = min(len(one.trailing), len(other.trailing))
        _pair(self.dims.equal, one.leading[:first], other.leading[:first], origin)
        _pair(self.dims.equal, tail(one.trailing, last), tail(other.trailing, last), origin)
        one, other = _stripped(one, first, last), _stripped(other, first, last)
        assert one.variable is not None
        assert other.variable is not None
        if same:
            if one.count():
                self._wait(RowEqual(one, other, origin), one.variable)
        elif not one.count():
            self.bind(one.variable, other, origin)
        elif not other.count():
            self.bind(other.variable, one, origin)
        elif one.count() == other.count():
            self._wait(RowEqual(one, other, origin), one.variable, other.variable)
        else:  # surplus axes lie on different ends: the shorter side has at least as many more
            short, longer = (one, other) if one.count() < other.count() else (other, one)
            more = longer.count() - short.count()
            row = Row(longer.leading[:more], self.fresh(), tail(longer.trailing, more))
            assert short.variable is not None
            self.bind(short.variable, row, origin)
            self.equal(RowEqual(one, other, origin))

    # -- dimensions --------------------------------------------------------------------------------------------------

    def stored(self, c: StoredRows) -> bool:
        """Pair the axes of rows one after the other; False while several of the rows may have further axes."""
        sides = [[self.resolve(row) for row in rows] for rows in (c.left, c.right)]
        opened = [
            (side, place, row)
            for side, rows in enumerate(sides)
            for place, row in enumerate(rows)
            if row.variable is not None
        ]
        if 1 < len(opened):
            return False
        one, other = ([axis for row in rows for axis in row.axes()] for rows in sides)
        if opened:
            side, place, row = opened[0]
            open_side, closed_side = (one, other) if side == 0 else (other, one)
            first = sum(r.count() for r in sides[side][:place]) + len(row.leading)
            last = len(closed_side) - (len(open_side) - first)
            if first <= last:
                assert row.variable is not None
                self.bind(row.variable, closed(closed_side[first:last]), c.origin)
                open_side[first:first] = closed_side[first:last]
        if len(one) != len(other):
            raise conflicts.ranks_differ((len(one), len(other)), c.origin)
        _pair(self.dims.equal, one, other, c.origin)
        return True

    def beside_output(self, c: StoredRows) -> dict[int, Origin]:
        """The open rows beside an open output row, where the axes that they divide are known."""
        sides = [[self.resolve(row) for row in rows] for rows in (c.left, c.right)]
        whole = [all(row.variable is None for row in side) for side in sides]
        rows = sides[whole.index(False)] if whole.count(True) == 1 else []
        if not rows or rows[OUTPUT_PLACE].variable is None:
            return {}
        beside = rows[:OUTPUT_PLACE] + rows[OUTPUT_PLACE + 1 :]
        return {row.variable: c.origin for row in beside if row.variable is not None}

    # -- inequalities ------------------------------------------------------------------------------------------------

    def below(self, c: RowBelow) -> None:
        """Solve an inequality as far as it goes."""
        result, operand = self.resolve(c.result), self.resolve(c.operand)
        if operand.variable is not None:
            bounds = self.results.get(operand.variable)
            if bounds is not None:
                bounds.pop(id(c), None)
        elif not operand.leading and not operand.trailing:
            if result.variable is not None:
                self.fed.add(result.variable)
            return
        if result.variable is None:
            self._below_closed(result, operand, c.origin)
            return
        deficit = operand.count() - result.count()
        if deficit > 0:
            if result.variable == operand.variable:
                raise conflicts.infinite(self.text(result), c.origin)
            self._grow(result, operand, deficit, c.origin)
            result = self.resolve(result)
        self._below_open(result, operand, c)

    def _below_closed(self, result: Row, operand: Row, origin: Origin) -> None:
        """A closed result: the operand's axes are its outer ones, the middle bounds the operand's variable."""
        if result.count() < operand.count():
            counts = (result.count(), operand.count())
            raise conflicts.too_many(self.text(result), self.text(operand), counts, origin)
        middle = self._paired(result, operand, origin, equate=False)
        if operand.variable is None:
            return
        if not middle.count():
            self.bind(operand.variable, middle, origin)
        else:
            rest = RowBelow(middle, opened(operand.variable), origin)
            self.results.setdefault(operand.variable, {})[id(rest)] = rest

    def _grow(self, result: Row, operand: Row, deficit: int, origin: Origin) -> None:
        """Give an open result the axes it lacks, trailing ones first."""
        assert result.variable is not None
        trailing = min(deficit, max(0, len(operand.trailing) - len(result.trailing)))
        leading = deficit - trailing
        rest = self.fresh()
        self.fed.add(rest)
        row = Row(
            tuple([self.dims.values.fresh() for _ in range(leading)]),
            rest,
            tuple([self.dims.values.fresh() for _ in range(trailing)]),
        )
        self.bind(result.variable, row, origin)

    def _below_open(self, result: Row, operand: Row, c: RowBelow) -> None:
        """An open result with enough axes: pair what is covered from the outside."""
        first = min(len(result.leading), len(operand.leading))
        last = min(len(result.trailing), len(operand.trailing))
        _pair(self.dims.below, result.leading[:first], operand.leading[:first], c.origin)
        _pair(self.dims.below, tail(result.trailing, last), tail(operand.trailing, last), c.origin)
        rest = c
        if first or last or result is not c.result or operand is not c.operand:
            result, operand = _stripped(result, first, last), _stripped(operand, first, last)
            rest = RowBelow(result, operand, c.origin)
        assert result.variable is not None
        if result.variable == operand.variable:
            if result.count() or operand.count():
                self._wait(rest, result.variable)
        elif operand.leading or operand.trailing:
            self._wait(rest, result.variable, operand.variable)
            self.across.append(rest)
            self.fed.add(result.variable)
        elif operand.variable is None:
            self.fed.add(result.variable)
        else:
            self._wait(rest, result.variable)
            self.results.setdefault(operand.variable, {})[id(rest)] = rest

    def linked(self, variable: int) -> tuple[set[int], list[Origin]]:
        """The open variables that waiting constraints lead to from one, and where it is used itself."""
        near: dict[int, list[tuple[int, Origin]]] = {}
        for waiting in self.waiting.values():
            for c in waiting.values():
                if isinstance(c, RowBelow | RowEqual):
                    sides = (c.result, c.operand) if isinstance(c, RowBelow) else (c.one, c.other)
                    one, other = (self.resolve(side).variable for side in sides)
                    if one is not None and other is not None:
                        near.setdefault(one, []).append((other, c.origin))
                        near.setdefault(other, []).append((one, c.origin))
        linked = reached([variable], lambda each: [other for other, _ in near.get(each, ())])
        uses = {id(origin): origin for _, origin in near.get(variable, ())}
        return linked, list(uses.values())

    def has_open_operand(self, variable: int) -> bool:
        """Whether a variable is the middle of a result whose operand's row is not known yet."""
        return any(
            isinstance(c, RowBelow)
            and self.resolve(c.result).variable == variable
            and self.resolve(c.operand).variable not in (None, variable)
            for c in self.waiting.get(variable, _NONE).values()
        )

    def straddling(
        self, only: Collection[int | None] | None = None
    ) -> tuple[set[int], dict[int, Origin]]:
        """The variables of operands that wait for a result's variable to be known, and those of these results.

        ``only`` looks at these operands alone.
        """
        operands: set[int] = set()
        results: dict[int, Origin] = {}
        for c in self.across:
            result, operand = self.resolve(c.result), self.resolve(c.operand)
            first = min(len(result.leading), len(operand.leading))
            last = min(len(result.trailing), len(operand.trailing))
            if result.variable is None or operand.count() <= first + last:
                continue
            if only is None or operand.variable in only:
                results[result.variable] = c.origin
                operands |= set() if operand.variable is None else {operand.variable}
        return operands, results

    def crossing(self) -> dict[int, Origin]:
        """Variables of waiting equations to be closed first: those of the side with more explicit axes."""
        crossing: dict[int, Origin] = {}
        for waiting in self.waiting.values():
            for c in waiting.values():
                if isinstance(c, RowEqual):
                    one, other = self.resolve(c.one), self.resolve(c.other)
                    more = one if one.count() >= other.count() else other
                    if more.variable is not None:
                        crossing[more.variable] = c.origin
        return crossing


def resolved(rows: RowVars, row: Row) -> Row:
    """A row with the values of its row variables, and of its axes, put in."""
    row, axis = rows.resolve(row), rows.dims.values.resolve
    return Row(tuple(map(axis, row.leading)), row.variable, tuple(map(axis, row.trailing)))


def _pair(
    relate: Callable[[Dim, Dim, Origin], None],
    ones: Sequence[Dim],
    others: Sequence[Dim],
    origin: Origin,
) -> None:
    for one, other in zip(ones, others, strict=True):
        relate(one, other, origin)


def _stripped(row: Row, first: int, last: int) -> Row:
    """A row without its ``first`` leading and ``last`` trailing axes."""
    return Row(row.leading[first:], row.variable, row.trailing[: len(row.trailing) - last])


def tail(axes: tuple[T, ...], count: int) -> tuple[T, ...]:
    """The last axes, so many."""
    return axes[len(axes) - count :]


EMPTY = closed(())
OUTPUT_PLACE = MEMORY_ORDER.index(2)
"""The place of the output row among the rows of a tensor as it is stored."""
_NONE: Mapping[int, Constraint] = {}
