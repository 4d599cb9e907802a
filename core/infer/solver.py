"""The solver: constraints over rows and axes in, the axes of every row out.

In stage 1 everything that follows from the constraints is drawn, in any order, until nothing changes. Then what is
still open is closed, stage by stage, each stage at once for all it concerns and followed by all that follows from it:

    2. variables that bound each other in a circle are one
    3. rows, then axes, of leaves take the size that their uses ask for; of constants output rows, the others only where
       there are values for these, too
    4. rows counted by their elements get one axis of what is left; rows of leaves that no use reaches get no further
       axes; of a parameter, they are refused
    5. rows of results: those without operands take what their uses ask for, the others get no further axes
    6. axes of leaves that no use reaches stretch; of a parameter, sizes of windows, parts of compositions: refused
    7. axes of results: a written index decides, then uses where there are no operands, else they stretch

Every stage is decided by what is true at its start, so the answer does not depend on the order of the constraints.
"""

from __future__ import annotations

from collections import deque
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableSequence,
    Sequence,
)
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, assert_never

from ilang.core.calculus.affine import Affine
from ilang.core.diagnostic import ShapeError
from ilang.core.infer import conflicts
from ilang.core.infer.cycles import check_ranks, components
from ilang.core.infer.dims import Dims, Log
from ilang.core.infer.rowvars import EMPTY, RowVars
from ilang.core.infer.solution import Solution
from ilang.core.ir.rows import (
    AtLeast,
    Composed,
    Constraint,
    Determined,
    Dim,
    DimBelow,
    DimEqual,
    Known,
    LeafRow,
    Origin,
    Positions,
    Product,
    Row,
    RowBelow,
    RowEqual,
    StoredRows,
    Var,
    closed,
    extent_of,
    opened,
)

if TYPE_CHECKING:
    from ilang.core.infer.compositions import Compositions

GUESS = Origin("what is left open", None)


STAGES = (
    "what follows from the operations",
    "axes that bound each other in a circle are one",
    "leaves take what their uses ask for",
    "rows of leaves end",
    "rows of results end",
    "open axes of leaves stretch",
    "open axes of results: an index, a use, or they stretch",
)
"""The work of each stage, in words; stage 1 comes first."""


def solve(
    dims: int,
    rows: int,
    constraints: Sequence[Constraint],
    names: dict[int, str] | None = None,
    log: Log | None = None,
    given: Sequence[Known] = (),
) -> Solution:
    """Solve constraints over ``dims`` dimension variables and ``rows`` row variables.

    Args:
        dims: how many dimension variables there are.
        rows: how many row variables there are.
        constraints: in any order.
        names: what messages call dimension variables.
        log: takes down what fixes each variable.
        given: the axes whose sizes come at run time; each stands for the variable that its size names.

    Raises:
        ShapeError: E0501 to E0521, E0574, E0577, E0578.
    """
    check_ranks(rows, constraints)
    solver = Solver(dims, rows, names or {}, given, log)
    solver.submit(constraints)
    solver.close()
    return Solution(solver.dims, solver.rows, solver.steps)


class Solver:
    """One run: the variables, the constraints to look at, and those kept for the closing stages."""

    def __init__(
        self,
        dims: int,
        rows: int,
        names: dict[int, str],
        given: Sequence[Known],
        log: Log | None = None,
    ) -> None:
        """Nothing known yet but the axes ``given``."""
        self.steps = 0
        self.closing = False
        self.log = log or Log()
        self.queue: deque[Constraint] = deque()
        self.dims = Dims(dims, self.queue, self.log)
        self.dims.values.names.update(names)
        for known in given:
            assert isinstance(known.size, Var)
            self.dims.values.bound[known.size.number] = known
        self.rows = RowVars(rows, self.dims, self.queue)
        self.leaves: list[LeafRow] = []
        self.counts = ElementCounts(self.dims, self.rows, self.queue)
        self.stored: list[StoredRows] = []
        self.windows: list[Determined] = []

    @cached_property
    def compositions(self) -> Compositions:
        """The compositions so far; most programs have none."""
        from ilang.core.infer.compositions import Compositions

        return Compositions(self.dims)

    def submit(self, constraints: Iterable[Constraint]) -> None:
        """Take constraints and draw what follows from them.

        A row is split, and a result grows, where the other side has axes, so what comes first matters: equations
        between rows, those with leading axes before others; then what makes results grow at their start, and all
        other inequalities; last, how operations read what others compute, which says nothing of where that has axes.
        """
        plain = [_plain(c, self.dims.values.fresh, self.queue) for c in constraints]
        bounds = [c for c in plain if isinstance(c, RowBelow)]
        equations = [c for c in plain if isinstance(c, RowEqual)]
        equations.sort(key=lambda c: -max(len(c.one.leading), len(c.other.leading)))
        self.queue.extend(c for c in plain if not isinstance(c, RowBelow | RowEqual))
        self.queue.extendleft(c for c in reversed(equations) if not c.reads)
        self._settle()
        starts = [
            _grows_at_start(self.rows.resolve(c.result), self.rows.resolve(c.operand))
            for c in bounds
        ]
        for first in (True, False):
            self.queue.extend(c for c, start in zip(bounds, starts, strict=True) if start is first)
            self._settle()
        self.queue.extend(c for c in equations if c.reads)
        self._settle()

    def _settle(self) -> None:
        """Draw what follows. In the closing stages a computed 1 is rigid as soon as nothing else follows.

        The dimensions of tensors whose rows are known by now are paired with what reads them.
        """
        while True:
            self.stored = [c for c in self.stored if not self.rows.stored(c)]
            if not self.queue and not (self.closing and self.dims.cells.harden()):
                return
            while self.queue:
                self.steps += 1
                self._step(self.queue.popleft())
            self.counts.settle()

    def _step(self, c: Constraint) -> None:
        match c:  # the most frequent first
            case RowBelow():
                self.rows.below(c)
            case DimBelow():
                self.dims.below(c.result, c.operand, c.origin)
            case DimEqual():
                self.dims.equal(c.one, c.other, c.origin)
            case RowEqual():
                self.rows.equal(c)
            case AtLeast():
                self.dims.at_least(c)
            case Positions():
                self.dims.positions(c)
            case Composed():
                self.compositions.add(c)
            case Determined():
                self.windows.append(c)
            case Product():
                self.counts.open.append(c)
            case StoredRows():
                self.stored.append(c)
            case LeafRow():
                self.leaves.append(c)
            case _:
                assert_never(c)

    # -- closing -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close whatever the constraints leave open."""
        self.closing = True
        self._settle()
        try:
            self._close_open()
        except ShapeError as error:
            error.guessed = True
            raise
        self.counts.check()

    def _close_open(self) -> None:
        if _open(self.rows.value) or _open(self.dims.values.bound):
            self._close_rows()
        self.log.stage = 6
        if "compositions" in vars(self):
            self.compositions.close()
        for window in self.windows:
            if not isinstance(self.dims.values.resolve(window.dim), Known):
                raise conflicts.never_given(window.name, window.origin, window.how)
        self._close_leaf_axes()
        self.log.stage = 7
        self._close_result_axes()

    def _close_rows(self) -> None:
        self.log.stage = 2
        self._join_cycles()
        self.log.stage = 3
        self._leaves_take_caps()
        repeated = {row.variable for leaf, row in self._open_leaves() if leaf.repeated}
        if self._take_caps(self.counts.lacking(repeated)):
            self._settle()
            self._leaves_take_caps()
        while self._end(
            self.rows.straddling({row.variable for _, row in self._open_leaves()} - {None})[1]
        ):
            self._settle()
            self._leaves_take_caps()
        self.log.stage = 4
        ended = [row.variable for leaf, row in self._open_leaves() if leaf.repeated]
        self.queue.extend(RowEqual(opened(v), EMPTY, GUESS) for v in ended if v is not None)
        self._settle()
        self.counts.close()
        self._settle()
        self._close_leaf_rows()
        self.log.stage = 5
        self._close_result_rows()
        self._leaves_take_caps()

    def _join_cycles(self) -> None:
        """Variables that bound each other in a circle are equal."""
        edges: dict[int, list[int]] = {}
        for operand, results in self.rows.results.items():
            for c in results.values():
                row = self.rows.resolve(c.result)
                if row.variable is not None and not row.count():
                    edges.setdefault(row.variable, []).append(operand)
        for component in components(edges, edges):
            bare = [opened(v) for v in component]
            self.queue.extend(RowEqual(bare[0], row, GUESS) for row in bare[1:])
        self._settle()
        above = {
            v: [self.dims.values.root(u) for u in operands]
            for v, operands in self.dims.operands.items()
            if operands
        }
        for component in components(above, above):
            self.queue.extend(DimEqual(Var(component[0]), Var(v), GUESS) for v in component[1:])
        self._settle()

    def _open_leaves(self) -> Iterator[tuple[LeafRow, Row]]:
        for leaf in self.leaves:
            yield leaf, self.rows.resolve(leaf.row)

    def _leaves_take_caps(self) -> None:
        """Rows first; then axes, all at once; until neither changes."""
        while True:
            straddled, _ = self.rows.straddling()
            leaves = [row.variable for leaf, row in self._open_leaves() if not leaf.repeated]
            wanted = dict.fromkeys(v for v in leaves if v is not None and v not in straddled)
            if not self._take_caps(wanted):
                caps = self.dims.caps(dict.fromkeys(number for _, number in self._leaf_axes()))
                if not caps:
                    return
                for number, cap in caps.items():
                    self.dims.bind(number, cap, GUESS)
            self._settle()

    def _take_caps(self, wanted: Collection[int]) -> bool:
        """Bind row variables to their caps; whether any has one."""
        if not wanted:
            return False
        from ilang.core.infer.caps import Caps

        caps = Caps(self.dims, self.rows).of(wanted, GUESS)
        for variable, cap in caps.items():
            asking = next(iter(self.rows.results[variable].values()))
            self.rows.bind(variable, cap, asking.origin)
        return bool(caps)

    def _leaf_axes(self) -> Iterator[tuple[LeafRow, int]]:
        for leaf, row in self._open_leaves():
            for axis in row.axes():
                dim = self.dims.values.resolve(axis)
                if isinstance(dim, Var):
                    yield leaf, dim.number

    def _close_leaf_rows(self) -> None:
        """Give rows of leaves no further axes; refuse those of parameters, of which nothing says how many they have."""
        rows: dict[int, bool] = {}
        for leaf, row in self._open_leaves():
            if row.variable is None:
                continue
            unknown = leaf.whole or self.rows.has_open_operand(row.variable)
            if leaf.required and not row.count() and unknown:
                rows_of = [(each, other.variable) for each, other in self._open_leaves()]
                raise _undetermined(leaf, "", self.rows.linked(row.variable), rows_of)
            rows[row.variable] = leaf.whole or rows.get(row.variable, False)
        if self.stored:  # what is read in memory order has output axes, as many as are left
            for variable in [each for each, output in rows.items() if not output]:
                self.rows.bind(variable, EMPTY, GUESS)
                del rows[variable]
            self._settle()
        for variable in rows:
            if self.rows.value[variable] is None:
                self.rows.bind(variable, EMPTY, GUESS)
        self._settle()

    def _close_result_rows(self) -> None:
        """Until nothing changes: crossing equations; then caps; then results whose axes lie across an operand's.

        Of an array whose axes several open rows divide, as `...|...` does, the output row has all: one at a time.
        """
        while True:
            straddled, across = self.rows.straddling()
            settled = straddled | self.rows.fed
            unfed = [v for v in _open(self.rows.value) if v not in settled]
            capped = [v for v in unfed if not self.rows.has_open_operand(v)]
            if not (
                self._end(self.rows.crossing()) or self._take_caps(capped) or self._end(across)
            ):
                break
            self._settle()
        while any(self._end(self.rows.beside_output(c)) for c in self.stored):
            self._settle()
        self._end(dict.fromkeys(_open(self.rows.value), GUESS))
        self._settle()

    def _end(self, rows: Mapping[int, Origin]) -> bool:
        """Give row variables no further axes; whether there are any."""
        for variable, origin in rows.items():
            self.rows.bind(variable, EMPTY, origin)
        return bool(rows)

    def _close_leaf_axes(self) -> None:
        axes: dict[int, Origin] = {}
        for leaf, number in self._leaf_axes():
            if leaf.required:
                linked = self.dims.linked(number)
                raise _undetermined(leaf, "an axis of ", linked, list(self._leaf_axes()))
            if number not in self.dims.index:
                axes[number] = leaf.origin
        for number, origin in axes.items():
            self.dims.bind(number, Known(1, origin, stretch=True), GUESS)
        self._settle()

    def _close_result_axes(self) -> None:
        """Open axes of results take what uses ask for, unfed ones first; parts of sums close one by one."""
        caps = self.dims.caps(_open(self.dims.values.bound))
        for number in [number for number in self._unshared() if not self.dims.is_fed(number)]:
            self._close_axis(number, caps.get(number))
        self._settle()
        for number in self._unshared():
            self._close_axis(number, None)
        self._settle()
        for number in range(len(self.dims.values.bound)):
            if self.dims.values.bound[number] is None:
                self._close_axis(number, self.dims.caps([number]).get(number))
                self._settle()

    def _unshared(self) -> list[int]:
        """The open variables but for the parts of sums with other open parts: those close one by one."""
        waiting = self.dims.waiting
        shared = {
            number
            for number in _open(self.dims.values.bound)
            for c in waiting.get(number, ())
            if isinstance(c, DimEqual)
            and any(isinstance(self.dims.values.resolve(side), Affine) for side in (c.one, c.other))
        }
        return [number for number in _open(self.dims.values.bound) if number not in shared]

    def _close_axis(self, number: int, cap: Known | None) -> None:
        """Bind an open axis to what a written index asks of it, or else to a ``cap``, or let it stretch."""
        index = self.dims.index.get(number)
        origin = Origin(self.dims.values.says(Var(number)), None)
        known = cap or Known(1, origin, stretch=True)
        if index is not None and index.size == 1:
            known = Known(1, index.origin, stretch=True)
        elif index is not None:
            known = self.dims.cap.get(number) or Known(index.size, index.origin)
        self.dims.run_time.guessed.append(known)
        self.dims.bind(number, known, GUESS)


def _plain(
    c: Constraint, fresh: Callable[[], Var], sums: MutableSequence[Constraint]
) -> Constraint:
    """A constraint in whose rows every sum is an axis with a number, which can have a unit; ``sums`` gets the sums."""
    if not isinstance(c, RowEqual | RowBelow):
        return c
    rows = (c.one, c.other) if isinstance(c, RowEqual) else (c.result, c.operand)
    if not any(isinstance(axis, Affine) for row in rows for axis in row.axes()):
        return c
    one, other = (row.numbered(fresh, sums, c.origin) for row in rows)
    if isinstance(c, RowEqual):
        return RowEqual(one, other, c.origin, c.reads)
    return RowBelow(one, other, c.origin)


def _grows_at_start(result: Row, operand: Row) -> bool:
    """Whether a result lacks leading axes of its operand, and no trailing ones."""
    return len(operand.leading) > len(result.leading) and (
        len(operand.trailing) <= len(result.trailing)
    )


def _open(values: Sequence[object]) -> list[int]:
    return [variable for variable, value in enumerate(values) if value is None]


def _undetermined(
    leaf: LeafRow,
    part: str,
    near: tuple[set[int], list[Origin]],
    leaves: Iterable[tuple[LeafRow, int | None]],
) -> ShapeError:
    """A refusal of a parameter that nothing gives: where it is used, and which other leaves share its axes."""
    linked, uses = near
    others = dict.fromkeys(
        part + other.origin.says
        for other, number in leaves
        if number in linked and other is not leaf
    )
    return conflicts.undetermined(part + leaf.origin.says, leaf.origin, uses, list(others))


class ElementCounts:
    """The numbers of elements of one run: rows that together have as many elements as others."""

    def __init__(self, dims: Dims, rows: RowVars, queue: deque[Constraint]) -> None:
        """No demand yet; constraints that come up are added to ``queue``."""
        self.dims = dims
        self.rows = rows
        self.queue = queue
        self.open: list[Product] = []

    def settle(self) -> None:
        """Draw what follows; what is settled is open no longer."""
        self.open = [c for c in self.open if not self._settled(c)]

    def _settled(self, c: Product) -> bool:
        """Whether a product is settled: with one unknown axis, that follows."""
        if self._is_late(c):
            return self._composed(c)
        (left, unknown, variables), (right, others, further) = self._sides(c)
        if variables or further or len(unknown) + len(others) > 1:
            return False
        if others:
            left, right, unknown = right, left, others
        if not unknown:
            if left != right:
                raise conflicts.counts_differ(left, right, c.origin)
        else:
            if not left or right % left:
                raise conflicts.not_whole(
                    self.dims.values.says(unknown[0]), (right, left), c.origin
                )
            size = Known(right // left, c.origin)
            self.queue.append(DimEqual(unknown[0], size, c.origin))
        return True

    def _is_late(self, c: Product) -> bool:
        """Whether an axis of a product has a run-time size."""
        rows = map(self.rows.resolve, (*c.left, *c.right))
        axes = (self.dims.values.resolve(axis) for row in rows for axis in row.axes())
        return any(isinstance(x, Known) and not isinstance(x.size, int) for x in axes)

    def _composed(self, c: Product) -> bool:
        """Make both sides compositions of one axis, once their axes are known; whether they are."""
        sides = [list(map(self.rows.resolve, side)) for side in (c.left, c.right)]
        if any(row.variable is not None for side in sides for row in side):
            return False
        total = self.dims.values.fresh()
        for side in sides:
            axes = tuple(self.dims.values.resolve(axis) for row in side for axis in row.axes())
            names = tuple(map(self.dims.values.says, axes))
            self.queue.append(Composed(total, axes, names, c.origin))
        return True

    def _sides(self, c: Product) -> list[tuple[int, list[Dim], list[int]]]:
        """Of each side, the product of the known axes, the other axes, and the row variables."""
        sides: list[tuple[int, list[Dim], list[int]]] = []
        for rows in (c.left, c.right):
            resolved = list(map(self.rows.resolve, rows))
            axes = [self.dims.values.resolve(axis) for row in resolved for axis in row.axes()]
            total = prod(extent_of(axis) for axis in axes if isinstance(axis, Known))
            unknown: list[Dim] = [axis for axis in axes if not isinstance(axis, Known)]
            variables = [row.variable for row in resolved if row.variable is not None]
            sides.append((total, unknown, variables))
        return sides

    def lacking(self, repeated: Collection[int | None]) -> dict[int, None]:
        """The rows of constants that have more values than the axes have elements which are known so far."""
        lacking: dict[int, None] = {}
        for c in self.open if repeated else ():
            if not self._is_late(c):
                (known, unknown, variables), (total, _, _) = self._sides(c)
                if not unknown and known < total and all(v in repeated for v in variables):
                    lacking |= dict.fromkeys(variables)
        return lacking

    def close(self) -> None:
        """Rows counted by their elements: all but one get no axes, the last listed of a leaf an axis of what is left.

        Beside run-time sizes that one gets none, either: ranks are known before arrays come.
        """
        for c in self.open:
            listed = [self.rows.resolve(row).variable for row in (*c.left, *c.right)]
            if self._is_late(c):
                ended = [variable for variable in listed if variable is not None]
                self.queue.extend(RowEqual(opened(v), EMPTY, c.origin) for v in ended)
                continue
            one, other = self._sides(c)
            if other[2] and not one[2]:
                one, other = other, one
            (left, unknown, variables), (right, others, further) = one, other
            if variables and not further and not unknown and not others:
                *ended, last = sorted(set(variables), key=listed.index)
                self.queue.extend(RowEqual(opened(v), EMPTY, c.origin) for v in ended)
                if not left or right % left:
                    raise conflicts.counts_differ(left, right, c.origin)
                rest = () if left == right else (Known(right // left, c.origin),)
                self.queue.append(RowEqual(opened(last), closed(rest), c.origin))
            elif len(c.left) == len(c.right) == 1 and variables and further:
                self.queue.append(RowEqual(c.left[0], c.right[0], c.origin))

    def check(self) -> None:
        """Refuse other numbers of elements than asked for."""
        for c in self.open:
            (left, _, _), (right, _, _) = self._sides(c)
            if left != right:
                raise conflicts.counts_differ(left, right, c.origin)
