"""Axes under inference: what is known of each dimension variable, and how its constraints simplify.

Known of a variable: its value once it has one; else its cap (the one size that results ask of it; two different ones
make it the stretchable 1), its neighbours (results below it, operands above it), the index it is read at, and the
constraints that wait for it.
The cells in which decided axes stand are in ``cells.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ilang.core.calculus.affine import Affine
from ilang.core.infer import conflicts
from ilang.core.infer.cells import Cells
from ilang.core.infer.runtime import Derived, RunTime, summed
from ilang.core.ir import rows
from ilang.core.walks import reached

_NONE: Mapping[int, rows.Origin] = {}


class Log:
    """The record of what fixed each variable, in order: the stage, the variable, its value, and the constraint."""

    def __init__(self) -> None:
        self.stage = 1
        self.entries: list[tuple[int, int, rows.Dim | rows.Row, rows.Origin]] = []


class Values:
    """The value of each dimension variable: a known axis, another variable, a sum, or nothing yet."""

    def __init__(self, count: int, cells: Cells) -> None:
        """``count`` unknown variables."""
        self.cells = cells
        self.bound: list[rows.Dim | None] = [None] * count
        self.vars = list(map(rows.Var, range(count)))
        self.names: dict[int, str] = {}
        self.run_time = RunTime()

    def fresh(self) -> rows.Var:
        """A new variable."""
        var = rows.Var(len(self.bound))
        self.bound.append(None)
        self.vars.append(var)
        return var

    def resolve(self, dim: rows.Dim) -> rows.Dim:
        """A dimension with every value put in."""
        if isinstance(dim, rows.Var):
            held = self.put_in(dim.number)
            if isinstance(held, Affine):
                held = self.bound[self.end(dim.number)] = self._settled(held)
            return held
        if isinstance(dim, Affine):
            return self._settled(dim)
        return dim if dim.size.__class__ is int else self.cells.speaker(dim)

    def put_in(self, variable: int) -> rows.Dim:
        """The value of a variable, in which sums are as they were written, or the variable that stands for it."""
        value = self.bound[variable]
        if isinstance(value, rows.Var):
            variable = self.end(variable)
            value = self.bound[variable]
        if value is None:
            return self.vars[variable]
        is_late = isinstance(value, rows.Known) and value.size.__class__ is not int
        return self.resolve(value) if is_late else value

    def end(self, variable: int) -> int:
        """The last variable of a path; paths are shortened."""
        while isinstance(value := self.bound[variable], rows.Var):
            if isinstance(beyond := self.bound[value.number], rows.Var):
                self.bound[variable] = beyond
            variable = value.number
        return variable

    def root(self, number: int) -> int:
        """The variable that stands for one (itself, if it is bound)."""
        dim = self.resolve(self.vars[number])
        return dim.number if isinstance(dim, rows.Var) else number

    def _settled(self, total: Affine) -> rows.Dim:
        """A sum with every value put in; one of run-time sizes alone is a run-time size."""
        settled = self.expanded(total)
        if isinstance(settled, Affine) and all(
            self.bound[v] is not None for v in settled.variables()
        ):
            axes = [(c, self.put_in(variable)) for c, variable in settled.steps()]
            parts = tuple([(c, axis) for c, axis in axes if isinstance(axis, rows.Known)])
            origin = _source([part.origin for _, part in parts])
            return self.derive(summed(parts, settled.offset, 1, False, None, origin))
        return settled

    def expanded(self, total: Affine) -> rows.Dim:
        """A sum with every value put in. Inner sums come first and are kept, so that long chains cost a step a link."""
        todo = self._unsettled(total)
        while todo:
            held = self.bound[todo[-1]]
            inner = self._unsettled(held) if isinstance(held, Affine) else []
            if inner:
                todo.extend(inner)
                continue
            dim = todo.pop()
            if isinstance(held, Affine):
                self.bound[dim] = self._substituted(held)
        return self._substituted(total)

    def _unsettled(self, total: Affine) -> list[int]:
        """The variables of a sum that are bound to sums with bound variables."""
        ends = [self.end(v) for v in total.variables() if self.bound[v] is not None]
        return [
            v for v in ends if isinstance(held := self.bound[v], Affine) and self._is_bound(held)
        ]

    def _is_bound(self, total: Affine) -> bool:
        """Whether a variable of a sum has a value, other than a run-time size for which it stands itself."""
        held = [(v, self.bound[v]) for v in total.variables() if self.bound[v] is not None]
        return any(
            not isinstance(value, rows.Known)
            or isinstance(value.size, int)
            or self.cells.speaker(value).size != self.vars[v]
            for v, value in held
        )

    def _substituted(self, total: Affine) -> rows.Dim:
        """A sum with the values of its variables put in, one level deep."""
        if not self._is_bound(total):
            return total
        parts = [(c, self.put_in(variable)) for c, variable in total.steps()]
        known = [part.origin for _, part in parts if isinstance(part, rows.Known)]
        substituted = rows.weighted(parts, total.offset, _source(known))
        if isinstance(substituted, rows.Known):
            assert isinstance(substituted.size, int)
            return self.cells.computed(substituted.size, substituted.origin)
        return self.put_in(substituted.number) if isinstance(substituted, rows.Var) else substituted

    def says(self, dim: rows.Dim) -> str:
        """The name of a dimension in messages."""
        match dim:
            case rows.Known():
                return dim.origin.says
            case rows.Var():
                return self.names.get(dim.number, "an axis")
            case Affine():
                return " and ".join(self.names.get(v, "an axis") for v in dim.variables())

    def derive(self, derived: Derived) -> rows.Known:
        """The axis of a size that follows from run-time sizes: a new one, or what had followed from the same."""
        if derived.is_plain():
            return derived.parts[0]
        noted = self.run_time.find(derived)
        known = self.put_in(noted) if isinstance(noted, int) else noted
        if not isinstance(known, rows.Known):
            known = self.at_run_time(derived.origin)
            self.run_time.note(known, derived)
        return known

    def at_run_time(self, origin: rows.Origin) -> rows.Known:
        """A new axis, whose size comes at run time."""
        var = self.fresh()
        known = self.bound[var.number] = rows.Known(var, origin)
        return known


class Dims:
    """The dimension variables of one run of the solver."""

    def __init__(self, count: int, queue: deque[rows.Constraint], log: Log) -> None:
        """``count`` unknown variables; constraints that come up are added to ``queue``."""
        self.queue = queue
        self.log = log
        self.waiting: dict[int, list[rows.Constraint]] = {}
        self.cells = Cells(queue, self.waiting)
        self.values = Values(count, self.cells)
        self.run_time = self.values.run_time
        self.cap: dict[int, rows.Known] = {}
        self.asked: dict[int, list[rows.DimBelow]] = {}  # results of known size, above 1
        self.operands: dict[int, dict[int, rows.Origin]] = {}
        self.results: dict[int, dict[int, rows.Origin]] = {}
        self.fed: set[int] = set()  # those that some operand bounds, or did
        self.index: dict[int, rows.AtLeast] = {}

    def equal(self, left: rows.Dim, right: rows.Dim, origin: rows.Origin) -> None:
        """Solve an equation as far as it goes."""
        one = self.values.expanded(left) if isinstance(left, Affine) else self.values.resolve(left)
        other = (
            self.values.expanded(right) if isinstance(right, Affine) else self.values.resolve(right)
        )
        if isinstance(one, rows.Known) and isinstance(other, rows.Known):
            self.cells.merge(one, other, origin, "E0505")
        elif isinstance(one, rows.Var) and isinstance(other, rows.Var):
            if one != other:
                older, younger = sorted((one, other), key=lambda var: var.number)
                self.bind(younger.number, older, origin)
        elif isinstance(one, rows.Var) and isinstance(other, rows.Known):
            self.bind(one.number, other, origin)
        elif isinstance(other, rows.Var) and isinstance(one, rows.Known):
            self.bind(other.number, one, origin)
        else:
            self._linear(one, other, rows.DimEqual(left, right, origin))

    def _linear(self, one: rows.Dim, other: rows.Dim, c: rows.DimEqual) -> None:
        """An equation with a sum: one unknown is solved for, more wait. Once solved, its sides are one axis."""
        origin = c.origin
        rest = rows.weighted([(1, one), (-1, other)], 0, origin)
        if isinstance(rest, rows.Known):
            if rest.size:
                raise conflicts.contains_itself(self.values.says(one), origin)
            if isinstance(c.one, rows.Var) and isinstance(
                c.other, rows.Var
            ):  # equal sums are computed once
                first, second = self.values.end(c.one.number), self.values.end(c.other.number)
                if first != second:
                    self.values.bound[first] = self.values.vars[second]
            return
        terms, offset = rows.terms_of(rest), 0 if isinstance(rest, rows.Var) else rest.offset
        opened = [variable for _, variable in terms if self.values.bound[variable] is None]
        if len(opened) < min(len(terms), 2):
            self._at_run_time(terms, offset, opened, c)
            return
        if len(terms) == 1:
            source = next((side for side in (one, other) if isinstance(side, rows.Known)), None)
            self._solve(terms[0], offset, origin, source)
            self.queue.append(c)
            return
        if not offset and [t[0] for t in terms] in ([1, -1], [-1, 1]):
            self.equal(self.values.vars[terms[0][1]], self.values.vars[terms[1][1]], origin)
            return
        for side, total, written in ((one, other, c.other), (other, one, c.one)):
            if (
                isinstance(side, rows.Var)
                and isinstance(total, Affine)
                and side.number not in total.variables()
            ):
                whole = (
                    self.values.vars[self.values.end(written.number)]
                    if isinstance(written, rows.Var)
                    else total
                )
                self.bind(side.number, whole, origin)
                return
        for solved, written in ((one, c.other), (other, c.one)):
            if isinstance(solved, rows.Known) and isinstance(written, rows.Var):
                self._replace(self.values.end(written.number), solved, origin)
                return
        self.wait(c, terms)

    def _replace(self, number: int, known: rows.Known, origin: rows.Origin) -> None:
        """Let a variable that is bound to a sum have the size that the sum turns out to have.

        The sum still has unknown parts: what walks the variable may give them, so it is looked at again.
        """
        total = self.values.bound[number]
        assert isinstance(total, Affine)
        self.values.bound[number] = known
        for variable in total.variables():
            self.queue.extend(self.waiting.pop(self.values.end(variable), ()))
        self.queue.append(rows.DimEqual(total, known, origin))

    def _at_run_time(
        self,
        terms: tuple[tuple[int, int], ...],
        offset: int,
        opened: Sequence[int],
        c: rows.DimEqual,
    ) -> None:
        """An equation of run-time sizes and one open variable at most, which follows; else it is a check."""
        if self.run_time.holds(terms, offset):
            return
        chosen = opened[0] if opened else min(terms, key=lambda term: (abs(term[0]), -term[1]))[1]
        factor = next(k for k, variable in terms if variable == chosen)
        sign = -1 if 0 < factor else 1
        rest = [
            (sign * k, self.values.put_in(variable)) for k, variable in terms if variable != chosen
        ]
        if not rest:
            self._solve((factor, chosen), offset, c.origin, None)
            return
        parts = tuple([(k, part) for k, part in rest if isinstance(part, rows.Known)])
        derived = summed(parts, sign * offset, abs(factor), 1 < abs(factor), None, c.origin)
        held = self.values.put_in(chosen)
        if not isinstance(held, rows.Known):
            known = self.values.derive(derived)
            self.run_time.solved(terms, offset, chosen, known)
            self.bind(chosen, known, c.origin)
            self.queue.append(c)
        elif derived.is_plain():
            self.equal(held, parts[0][1], c.origin)
        else:
            self.run_time.note(held, derived)

    def positions(self, c: rows.Positions) -> None:
        """The positions of a window, once the dimension that it walks is decided."""
        axes = [(1, self.values.resolve(c.base))]
        axes += [(-step, self.values.resolve(window)) for step, window in c.windows]
        offset = c.padding + sum(step for step, _ in c.windows) - 1 + c.stride
        total = rows.weighted(axes, offset, c.origin)
        parts = tuple([(k, axis) for k, axis in axes if isinstance(axis, rows.Known)])
        if len(parts) < len(axes):  # those that cancel each other in the sum are waited for as well
            self.wait(c, [term for _, axis in axes for term in rows.terms_of(axis)])
        elif isinstance(total, rows.Known) and isinstance(total.size, int):
            size = total.size // c.stride
            least = int(any(window.size != 1 for _, window in parts[1:]))
            if size < least:
                raise conflicts.too_short(self.values.says(c.dim), (size, least), c.origin)
            self.equal(c.dim, self.cells.computed(size, c.origin), c.origin)
        else:
            derived = summed(parts, offset, c.stride, False, c.padding, c.origin)
            self.equal(c.dim, self.values.derive(derived), c.origin)

    def _solve(
        self, term: tuple[int, int], offset: int, origin: rows.Origin, source: rows.Known | None
    ) -> None:
        """``coefficient * variable + offset = 0``."""
        coefficient, variable = term
        name = self.values.says(self.values.vars[variable])
        if offset % coefficient:
            total = -offset if coefficient > 0 else offset
            raise conflicts.not_whole(name, (total, abs(coefficient)), origin, source)
        size = -offset // coefficient
        if size < 0:
            raise conflicts.too_short(name, (size, 0), origin, source)
        says = rows.Origin(f"{name}, from {origin.says},", origin.span)
        self.equal(self.values.vars[variable], self.cells.computed(size, says), origin)

    def wait(self, c: rows.Constraint, terms: Iterable[tuple[int, int]]) -> None:
        """Look at a constraint again when any of these variables is bound."""
        for _, variable in terms:
            self.waiting.setdefault(variable, []).append(c)

    def bind(self, number: int, dim: rows.Dim, origin: rows.Origin) -> None:
        """Give a variable its value and send on everything that was known of it."""
        assert self.values.bound[number] is None
        if isinstance(dim, rows.Var) and number in self.values.names:
            self.values.names.setdefault(dim.number, self.values.names[number])
        self.values.bound[number] = dim
        self.log.entries.append((self.log.stage, number, dim, origin))
        for operand, why in self.operands.pop(number, _NONE).items():
            self.queue.append(rows.DimBelow(dim, self.values.vars[operand], why))
        for result, why in self.results.pop(number, _NONE).items():
            self.queue.append(rows.DimBelow(self.values.vars[result], dim, why))
        self.queue.extend(self.asked.pop(number, ()))
        if number in self.index:
            index = self.index[number]
            self.queue.append(rows.AtLeast(dim, index.size, index.origin))
        if isinstance(dim, rows.Var) and number in self.fed:
            self.fed.add(dim.number)
        self.queue.extend(self.waiting.pop(number, ()))

    def below(self, low: rows.Dim, high: rows.Dim, origin: rows.Origin) -> None:
        """Solve an inequality between the axis of a result and that of an operand as far as it goes."""
        result, operand = self.values.resolve(low), self.values.resolve(high)
        if result is operand:
            return
        if isinstance(operand, rows.Var):
            self._below_variable(result, operand, origin)
        elif isinstance(operand, Affine):
            self.equal(low, high, origin)
        elif self.cells.rely(operand, rows.DimBelow(low, operand, origin)):
            if isinstance(result, rows.Var):
                self.fed.add(result.number)
        elif isinstance(result, rows.Known):
            self.cells.merge(result, operand, origin, "E0510")
        else:
            self.equal(low, operand, origin)

    def _below_variable(self, result: rows.Dim, operand: rows.Var, origin: rows.Origin) -> None:
        if isinstance(result, rows.Var):
            self._adjacent(result.number, operand.number, origin)
        elif isinstance(result, Affine):
            self.wait(
                rows.DimBelow(result, operand, origin), (*result.steps(), (1, operand.number))
            )
        elif result.size == 1:
            self.bind(operand.number, rows.Known(1, result.origin, stretch=True), origin)
            self.below(result, operand, origin)
        else:
            self.cells.has_units = self.cells.has_units or result.label is not None
            self.asked.setdefault(operand.number, []).append(rows.DimBelow(result, operand, origin))
            self._capped(operand.number, result, origin)

    def _adjacent(self, result: int, operand: int, origin: rows.Origin) -> None:
        """Note a bound between two variables; bounds both ways make them equal."""
        above = self.operands.setdefault(result, {})
        if result == operand or operand in above:
            return
        if result in self.operands.get(operand, _NONE):
            self.equal(self.values.vars[result], self.values.vars[operand], origin)
            return
        above[operand] = origin
        self.results.setdefault(operand, {})[result] = origin
        cap = self.cap.get(result)
        if cap is not None:
            self._capped(operand, cap, origin)

    def _capped(self, number: int, cap: rows.Known, origin: rows.Origin) -> None:
        """A result of known size reads this variable: pass it on to every operand above."""
        todo = [number]
        while todo:
            reached = todo.pop()
            if self.values.bound[reached] is not None:
                self.queue.append(rows.DimBelow(cap, self.values.vars[reached], origin))
                continue
            held = self.cap.get(reached)
            if held is None:
                self.cap[reached] = cap
                todo.extend(map(self.values.root, self.operands.get(reached, _NONE)))
            elif self.values.resolve(held) is not cap and held.size != cap.size:
                self.bind(reached, rows.Known(1, cap.origin, stretch=True), origin)

    def caps(self, numbers: Iterable[int]) -> dict[int, rows.Known]:
        """The demands of uses on open variables: the stretchable 1 where their units differ."""
        units = self._asked_units()
        caps: dict[int, rows.Known] = {}
        for number in numbers:
            cap = self.cap.get(number)
            if cap is not None:
                split = len(units.get(number, ())) > 1
                caps[number] = rows.Known(1, cap.origin, stretch=True) if split else cap
        return caps

    def _asked_units(self) -> dict[int, set[str]]:
        """The units that results ask of open variables, passed on to the operands above; two are as good as more."""
        by_variable: dict[int, set[str]] = {}
        if not self.cells.has_units:
            return by_variable
        todo = []
        for number, asked in self.asked.items():
            known = [c.result for c in asked if isinstance(c.result, rows.Known)]
            units = {unit for axis in known if (unit := self.cells.unit(axis)) is not None}
            if units and self.values.bound[number] is None:
                todo.append((number, units))
        while todo:
            number, units = todo.pop()
            held = by_variable.setdefault(number, set())
            if self.values.bound[number] is None and not units <= held and len(held) < 2:
                held |= units
                todo += [
                    (self.values.root(operand), held)
                    for operand in self.operands.get(number, _NONE)
                ]
        return by_variable

    def at_least(self, c: rows.AtLeast) -> None:
        """An axis has so many elements: an index is read, or a part of an affine axis is not empty."""
        match self.values.resolve(c.dim):
            case rows.Known(size=int(size)) as known:
                if size < c.size and c.part is not None:
                    raise conflicts.too_short(known.origin.says, (size, c.size), c.origin)
                if size < c.size:
                    raise conflicts.out_of_range(known, c.size, c.origin)
            case rows.Known() as known:
                self.run_time.reaches.append((known, c))
            case rows.Var() as var if c.part is None:
                held = self.index.get(var.number)
                if held is None or held.size < c.size:
                    self.index[var.number] = c
            case dim:
                self.wait(c, rows.terms_of(dim))

    def linked(self, number: int) -> tuple[set[int], list[rows.Origin]]:
        """The open variables that bounds lead to from one, and where it is used itself."""
        uses = [
            *self.results.get(number, _NONE).values(),
            *self.operands.get(number, _NONE).values(),
        ]

        def near(variable: int) -> Iterator[int]:
            yield from map(self.values.root, self.results.get(variable, _NONE))
            yield from map(self.values.root, self.operands.get(variable, _NONE))

        return reached([number], near), uses

    def is_fed(self, number: int) -> bool:
        """Whether a variable is the axis of a result that has operands: these alone may make it larger than 1."""
        others = (self.values.end(operand) for operand in self.operands.get(number, _NONE))
        return number in self.fed or any(
            end != number and self.values.bound[end] is None for end in others
        )


def _source(sources: list[rows.Origin]) -> rows.Origin:
    """The origin of a computed size: all that it was computed from, each named once."""
    if not sources:
        return rows.Origin("a computed size", None)
    for origin in sources[:2]:
        if origin.says.startswith("what "):
            return origin
    if len(sources) == 1:
        return rows.Origin(f"what {sources[0].says} gives", sources[0].span)
    return rows.Origin(f"what {sources[0].says} and {sources[1].says} give", sources[0].span)
