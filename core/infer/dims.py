"""Axes under inference: what is known of each dimension variable, and how its constraints simplify.

Known of a variable: its value once it has one; else its cap (the one size that results ask of it; two different ones
make it the stretchable 1), its neighbours (results below it, operands above it), the index it is read at, and the
constraints that wait for it.

Sizes that were written down stand in cells: axes that are made equal share one. A cell holds the unit of its axes, and
whether it may stretch. What is drawn from a cell must hold whatever else becomes known of it, else the answer would
depend on the order of the constraints. So nothing follows from a cell that stretches so far, beyond its size: a cell
that turns out rigid wakes every comparison that had relied on its stretching, and an axis above one of size 1 is of
size 1 and stretches until something makes it rigid. Units that differ are looked at when an axis is closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from ilang.core.infer import conflicts
from ilang.core.ir.rows import (
    AtLeast,
    Constraint,
    Determined,
    Dim,
    DimBelow,
    DimEqual,
    Filled,
    Known,
    Origin,
    Row,
    Sum,
    Var,
    weighted,
)

EQUALS = "makes them equal"
_NONE: Mapping[int, Origin] = {}
FITS = "compares them, and neither stretches"


class Log:
    """What fixed each variable, in order: the stage, the variable, its value, and the constraint."""

    def __init__(self) -> None:
        """Nothing yet; stage 1 comes first."""
        self.stage = 1
        self.entries: list[tuple[int, int, Dim | Row, Origin]] = []


class Dims:
    """The dimension variables of one run of the solver."""

    def __init__(self, count: int, queue: deque[Constraint], log: Log | None = None) -> None:
        """``count`` unknown variables; constraints that come up are added to ``queue``."""
        self.queue = queue
        self.log = log
        self.value: list[Dim | None] = []
        self.vars: list[Var] = []
        self.cap: dict[int, Known] = {}
        self.asked: dict[int, list[DimBelow]] = {}  # results of known size, above 1
        self.operands: dict[int, dict[int, Origin]] = {}
        self.results: dict[int, dict[int, Origin]] = {}
        self.fed: set[int] = set()  # those that some operand bounds, or did
        self.index: dict[int, AtLeast] = {}
        self.waiting: dict[int, list[Constraint]] = {}
        self.names: dict[int, str] = {}
        self._cell_of: dict[int, int] = {}
        self._kept: list[Known] = []  # an id stays one object's as long as the object lives
        self._cells: list[int] = []
        self._kin: list[int] = []
        self._labels: list[tuple[str, Origin] | None] = []
        self._rigid: list[bool] = []
        self._asleep: list[list[DimBelow]] = []
        self._free: list[bool] = []  # whether an axis that may stretch by its nature is in the cell
        self._computed: list[int] = []
        self.has_units = False
        for _ in range(count):
            self.fresh()

    def fresh(self) -> Var:
        """A new variable."""
        var = Var(len(self.value))
        self.value.append(None)
        self.vars.append(var)
        return var

    # -- what is known -----------------------------------------------------------------------------------------------

    def resolve(self, dim: Dim) -> Dim:
        """A dimension with every value put in."""
        if isinstance(dim, Known):
            return dim
        return self._found(dim) if isinstance(dim, Var) else self._expanded(dim)

    def _expanded(self, total: Sum) -> Dim:
        """A sum with every value put in. Inner sums come first and are kept, so that long chains cost a step a link."""
        todo = self._unsettled(total)
        while todo:
            held = self.value[todo[-1]]
            inner = self._unsettled(held) if isinstance(held, Sum) else []
            if inner:
                todo.extend(inner)
                continue
            here = todo.pop()
            if isinstance(held, Sum):
                self.value[here] = self._substituted(held)
        return self._substituted(total)

    def _unsettled(self, total: Sum) -> list[int]:
        """The variables of a sum that are bound to sums with bound variables."""
        ends = [self._end(v) for _, v in total.terms if self.value[v] is not None]
        return [v for v in ends if isinstance(held := self.value[v], Sum) and self._is_bound(held)]

    def _is_bound(self, total: Sum) -> bool:
        return any(self.value[variable] is not None for _, variable in total.terms)

    def _substituted(self, total: Sum) -> Dim:
        """A sum with the values of its variables put in, one level deep."""
        if not self._is_bound(total):
            return total
        parts = [(c, self._followed(Var(variable))) for c, variable in total.terms]
        known = [part.origin for _, part in parts if isinstance(part, Known)]
        found = weighted(parts, total.offset, _source(known))
        return self.computed(found.size, found.origin) if isinstance(found, Known) else found

    def _found(self, var: Var) -> Dim:
        """The value of a variable, or the variable that stands for it."""
        found = self._followed(var)
        if not isinstance(found, Sum):
            return found
        whole = self._expanded(found)
        if whole is not found:
            self.value[self._end(var.number)] = whole
        return whole

    def _end(self, number: int) -> int:
        """The last variable of a path."""
        while isinstance(value := self.value[number], Var):
            number = value.number
        return number

    def _followed(self, var: Var) -> Dim:
        """What a path of variables ends in; paths are shortened."""
        value = self.value[var.number]
        if not isinstance(value, Var):
            return var if value is None else value
        path = [var.number]
        last = value
        while isinstance(value := self.value[last.number], Var):
            path.append(last.number)
            last = value
        for step in path:
            self.value[step] = last
        return last if value is None else value

    def is_open(self, number: int) -> bool:
        """Whether nothing is bound to a variable."""
        return self.value[number] is None

    def says(self, dim: Dim) -> str:
        """What messages call a dimension."""
        match dim:
            case Known():
                return dim.origin.says
            case Var():
                return self.names.get(dim.number, "an axis")
            case Sum():
                return " and ".join(self.names.get(v, "an axis") for _, v in dim.terms)

    def label(self, dim: Dim) -> str | None:
        """The unit of a solved axis."""
        found = self.resolve(dim)
        if not isinstance(found, Known):
            return None
        held = self._unit(self._cell(found))
        return None if held is None else held[0]

    def _unit(self, cell: int) -> tuple[str, Origin] | None:
        """The unit of a cell and who gave it."""
        return self._labels[_top(self._kin, cell)]

    # -- cells -------------------------------------------------------------------------------------------------------

    def _cell(self, known: Known) -> int:
        number = self._cell_of.get(id(known))
        if number is None:
            number = len(self._cells)
            self._cell_of[id(known)] = number
            self._kept.append(known)
            self._cells.append(number)
            self._kin.append(number)
            self._labels.append(None if known.label is None else (known.label, known.origin))
            self.has_units = self.has_units or known.label is not None
            self._rigid.append(not known.stretch)
            self._free.append(known.stretch)
            self._asleep.append([])
        return _top(self._cells, number)

    def stretches(self, known: Known) -> bool:
        """Whether an axis, as far as is known, is the stretchable 1."""
        return not self._rigid[self._cell(known)]

    def _related(self, one: int, other: int, origin: Origin) -> None:
        """Two cells have one unit: one without a unit adopts the other's, now or later."""
        a, b = sorted((_top(self._kin, one), _top(self._kin, other)))
        left, right = self._labels[a], self._labels[b]
        if left is not None and right is not None and left[0] != right[0]:
            raise conflicts.labels_differ(left, right, origin)
        self._kin[b] = a
        self._labels[a] = left or right

    def _merge(self, one: Known, other: Known, origin: Origin) -> None:
        """Two known axes become one."""
        a, b = sorted((self._cell(one), self._cell(other)))
        if a == b:
            return
        self._related(a, b, origin)
        rigid = self._rigid[a] or self._rigid[b]
        self._cells[b] = a
        self._asleep[a] += self._asleep[b]
        self._rigid[a] = rigid
        self._free[a] = self._free[a] or self._free[b]
        if rigid:
            self._wake(a)

    def computed(self, size: int, origin: Origin) -> Known:
        """An axis whose size is computed.

        A 1 is as rigid as a written one, unless it is one with an axis that stretches: which of the two, ``harden``
        decides when everything that follows is drawn.
        """
        known = Known(size, size == 1, None, origin)
        if known.stretch:
            cell = self._cell(known)
            self._free[cell] = False
            self._computed.append(cell)
        return known

    def harden(self) -> bool:
        """Make computed axes of size 1 rigid; whether that made any."""
        cells = [cell for c in self._computed if not self._rigid[cell := _top(self._cells, c)]]
        self._computed = []
        found = [cell for cell in cells if not self._free[cell]]
        for cell in found:
            self._rigid[cell] = True
            self._wake(cell)
        return bool(found)

    def _wake(self, cell: int) -> None:
        """Look again at what had relied on the stretching of a cell."""
        self.queue.extend(self._asleep[cell])
        self._asleep[cell] = []

    # -- constraints -------------------------------------------------------------------------------------------------

    def equal(self, left: Dim, right: Dim, origin: Origin) -> None:
        """Solve an equation as far as it goes."""
        one, other = self.resolve(left), self.resolve(right)
        if isinstance(one, Known) and isinstance(other, Known):
            if one.size != other.size:
                raise conflicts.sizes_differ(one, other, origin, EQUALS)
            self._merge(one, other, origin)
        elif isinstance(one, Var) and isinstance(other, Var):
            if one.number < other.number:
                self.bind(other.number, one, origin)
            elif one.number != other.number:
                self.bind(one.number, other, origin)
        elif isinstance(one, Var) and isinstance(other, Known):
            self.bind(one.number, other, origin)
        elif isinstance(other, Var) and isinstance(one, Known):
            self.bind(other.number, one, origin)
        else:
            self._linear(one, other, DimEqual(left, right, origin))

    def _linear(self, one: Dim, other: Dim, c: DimEqual) -> None:
        """An equation with a sum: one unknown is solved for, more wait. Once solved, its sides are one axis."""
        origin = c.origin
        rest = weighted([(1, one), (-1, other)], 0, origin)
        if isinstance(rest, Known):
            if rest.size:
                raise conflicts.contains_itself(self.says(one), origin)
            return
        terms, offset = (
            (((1, rest.number),), 0) if isinstance(rest, Var) else (rest.terms, rest.offset)
        )
        if len(terms) == 1:
            source = next((side for side in (one, other) if isinstance(side, Known)), None)
            self._solve(terms[0], offset, origin, source)
            self.queue.append(c)
            return
        if not offset and [t[0] for t in terms] in ([1, -1], [-1, 1]):
            self.equal(self.vars[terms[0][1]], self.vars[terms[1][1]], origin)
            return
        for side, sum_ in ((one, other), (other, one)):
            if not isinstance(side, Var) or not isinstance(sum_, Sum):
                continue
            if all(variable != side.number for _, variable in sum_.terms):
                self.bind(side.number, sum_, origin)
                return
        self.wait(c, terms)

    def _solve(
        self, term: tuple[int, int], offset: int, origin: Origin, source: Known | None
    ) -> None:
        """``coefficient * variable + offset = 0``."""
        coefficient, variable = term
        name = self.says(self.vars[variable])
        if offset % coefficient:
            total = -offset if coefficient > 0 else offset
            raise conflicts.not_whole(name, (total, abs(coefficient)), origin, source)
        size = -offset // coefficient
        if size < 0:
            raise conflicts.too_short(name, (size, 0), origin, source)
        says = Origin(f"{name}, from {origin.says},", origin.span)
        self.bind(variable, self.computed(size, says), origin)

    def wait(self, c: Constraint, terms: tuple[tuple[int, int], ...]) -> None:
        """Look at a constraint again when any of these variables is bound."""
        for _, variable in terms:
            self.waiting.setdefault(variable, []).append(c)

    def bind(self, number: int, dim: Dim, origin: Origin) -> None:
        """Give a variable its value and send on everything that was known of it."""
        assert self.value[number] is None
        if isinstance(dim, Var) and number in self.names:
            self.names.setdefault(dim.number, self.names[number])
        self.value[number] = dim
        if self.log is not None:
            self.log.entries.append((self.log.stage, number, dim, origin))
        for operand, why in self.operands.pop(number, _NONE).items():
            self.queue.append(DimBelow(dim, self.vars[operand], why))
        for result, why in self.results.pop(number, _NONE).items():
            self.queue.append(DimBelow(self.vars[result], dim, why))
        self.queue.extend(self.asked.pop(number, ()))
        if number in self.index:
            index = self.index[number]
            self.queue.append(AtLeast(dim, index.size, index.origin))
        if isinstance(dim, Var) and number in self.fed:
            self.fed.add(dim.number)
        self.queue.extend(self.waiting.pop(number, ()))

    def below(self, low: Dim, high: Dim, origin: Origin) -> None:
        """Solve an inequality between the axis of a result and that of an operand as far as it goes."""
        result, operand = self.resolve(low), self.resolve(high)
        if result is operand:
            return
        if isinstance(operand, Var):
            self._below_variable(result, operand, origin)
        elif isinstance(operand, Sum):
            self.equal(low, high, origin)
        elif not self._rigid[self._cell(operand)]:
            self._asleep[self._cell(operand)].append(DimBelow(low, operand, origin))
            if isinstance(result, Var):
                self.fed.add(result.number)
        elif isinstance(result, Known):
            self._below_rigid(result, operand, origin)
        else:
            self.equal(low, operand, origin)

    def _below_rigid(self, result: Known, operand: Known, origin: Origin) -> None:
        if result.size != operand.size:
            raise conflicts.sizes_differ(result, operand, origin, FITS)
        cell = self._cell(result)
        self._related(cell, self._cell(operand), origin)
        if not self._rigid[cell]:
            self._rigid[cell] = True
            self._wake(cell)

    def _below_variable(self, result: Dim, operand: Var, origin: Origin) -> None:
        if isinstance(result, Var):
            self._adjacent(result.number, operand.number, origin)
        elif isinstance(result, Sum):
            self.wait(DimBelow(result, operand, origin), (*result.terms, (1, operand.number)))
        elif result.size == 1:
            self.unit(operand.number, result.origin, origin)
            self.below(result, operand, origin)
        else:
            self.has_units = self.has_units or result.label is not None
            self.asked.setdefault(operand.number, []).append(DimBelow(result, operand, origin))
            self._capped(operand.number, result, origin)

    def unit(self, number: int, source: Origin, origin: Origin) -> None:
        """Make a variable the stretchable 1."""
        self.bind(number, Known(1, True, None, source), origin)

    def _adjacent(self, result: int, operand: int, origin: Origin) -> None:
        above = self.operands.setdefault(result, {})
        if result == operand or operand in above:
            return
        if result in self.operands.get(operand, _NONE):
            self.equal(self.vars[result], self.vars[operand], origin)
            return
        above[operand] = origin
        self.results.setdefault(operand, {})[result] = origin
        cap = self.cap.get(result)
        if cap is not None:
            self._capped(operand, cap, origin)

    def _capped(self, number: int, cap: Known, origin: Origin) -> None:
        """A result of known size reads this variable: pass it on to every operand above."""
        todo = [number]
        while todo:
            here = todo.pop()
            if self.value[here] is not None:
                self.queue.append(DimBelow(cap, self.vars[here], origin))
                continue
            held = self.cap.get(here)
            if held is None:
                self.cap[here] = cap
                todo.extend(map(self.root, self.operands.get(here, _NONE)))
            elif held.size != cap.size:
                self.unit(here, cap.origin, origin)

    def caps(self, numbers: Iterable[int]) -> dict[int, Known]:
        """What uses ask of open variables: the stretchable 1 where their units differ."""
        units = self._asked_units()
        found: dict[int, Known] = {}
        for number in numbers:
            cap = self.cap.get(number)
            if cap is not None:
                split = len(units.get(number, ())) > 1
                found[number] = Known(1, True, None, cap.origin) if split else cap
        return found

    def _asked_units(self) -> dict[int, set[str]]:
        """The units that results ask of open variables, passed on to the operands above; two are as good as more."""
        found: dict[int, set[str]] = {}
        if not self.has_units:
            return found
        todo = []
        for number, asked in self.asked.items():
            units = {unit for c in asked if (unit := self.label(c.result)) is not None}
            if units and self.value[number] is None:
                todo.append((number, units))
        while todo:
            number, units = todo.pop()
            held = found.setdefault(number, set())
            if self.value[number] is None and not units <= held and len(held) < 2:
                held |= units
                todo += [(self.root(operand), held) for operand in self.operands.get(number, _NONE)]
        return found

    def root(self, number: int) -> int:
        """The variable that stands for one (itself, if it is bound)."""
        found = self._found(Var(number))
        return found.number if isinstance(found, Var) else number

    def at_least(self, c: AtLeast) -> None:
        """An index is read: the axis has that many elements."""
        match self.resolve(c.dim):
            case Known() as known:
                if known.size < c.size:
                    raise conflicts.out_of_range(known, c.size, c.origin)
            case Var() as var:
                held = self.index.get(var.number)
                if held is None or held.size < c.size:
                    self.index[var.number] = c
            case Sum() as total:
                self.wait(c, total.terms)

    def filled(self, c: Filled) -> None:
        """A part of an affine axis is not empty."""
        match self.resolve(c.dim):
            case Known() as known:
                if known.size < 1:
                    raise conflicts.too_short(known.origin.says, (known.size, 1), c.origin)
            case Var() as var:
                self.wait(c, ((1, var.number),))
            case Sum() as total:
                self.wait(c, total.terms)

    def determined(self, c: Determined) -> None:
        """Refuse an axis that would have to be guessed."""
        if not isinstance(self.resolve(c.dim), Known):
            raise conflicts.never_given(c.name, c.origin)

    def linked(self, number: int) -> tuple[set[int], list[Origin]]:
        """The open variables that bounds lead to from one, and where it is used itself."""
        uses = [
            *self.results.get(number, _NONE).values(),
            *self.operands.get(number, _NONE).values(),
        ]
        found, todo = {number}, [number]
        while todo:
            here = todo.pop()
            near = (*self.results.get(here, _NONE), *self.operands.get(here, _NONE))
            new = {self.root(other) for other in near} - found
            found |= new
            todo += new
        return found, uses

    def is_fed(self, number: int) -> bool:
        """Whether a variable is the axis of a result that has operands: these alone may make it larger than 1."""
        others = (self._end(operand) for operand in self.operands.get(number, _NONE))
        return number in self.fed or any(end != number and self.is_open(end) for end in others)


def _source(sources: list[Origin]) -> Origin:
    """Where a computed size comes from: what it was computed from, named once and not over and over."""
    if not sources:
        return Origin("a computed size", None)
    for origin in sources[:2]:
        if origin.says.startswith("what "):
            return origin
    if len(sources) == 1:
        return Origin(f"what {sources[0].says} gives", sources[0].span)
    return Origin(f"what {sources[0].says} and {sources[1].says} give", sources[0].span)


def _top(parents: list[int], number: int) -> int:
    """The member that stands for a set of a union-find forest."""
    while parents[number] != number:
        parents[number] = parents[parents[number]]
        number = parents[number]
    return number
