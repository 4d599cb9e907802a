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
from collections.abc import Collection, Iterable, Iterator, Sequence
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

if TYPE_CHECKING:  # few programs compose axes
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
    solver = Solver(dims, rows, names or {}, log)
    solver.dims.give(given)
    solver.submit(constraints)
    solver.close()
    return Solution(solver.dims, solver.rows, solver.steps)


class Solver:
    """One run: the variables, the constraints to look at, and those kept for the closing stages."""

    def __init__(self, dims: int, rows: int, names: dict[int, str], log: Log | None = None) -> None:
        """Nothing known yet."""
        self.steps = 0
        self.closing = False
        self.log = log
        self.queue: deque[Constraint] = deque()
        self.dims = Dims(dims, self.queue, log)
        self.dims.names.update(names)
        self.rows = RowVars(rows, self.dims, self.queue)
        self.compositions: Compositions | None = None
        self.leaves: list[LeafRow] = []
        self.products: list[Product] = []
        self.stored: list[StoredRows] = []
        self.windows: list[Determined] = []

    def submit(self, constraints: Iterable[Constraint]) -> None:
        """Take constraints and draw what follows from them.

        A row is split, and a result grows, where the other side has axes, so what comes first matters: equations
        between rows, those with leading axes before others; then what makes results grow at their start, and all
        other inequalities; last, how operations read what others compute, which says nothing of where that has axes.
        """
        plain = list(map(self._plain, constraints))
        bounds = [c for c in plain if isinstance(c, RowBelow)]
        equations = [c for c in plain if isinstance(c, RowEqual)]
        equations.sort(key=lambda c: -max(len(c.one.leading), len(c.other.leading)))
        self.queue.extend(c for c in plain if not isinstance(c, RowBelow | RowEqual))
        self.queue.extendleft(c for c in reversed(equations) if not c.reads)
        self._settle()
        starts = list(map(self.rows.grows_at_start, bounds))
        for first in (True, False):
            self.queue.extend(c for c, start in zip(bounds, starts, strict=True) if start is first)
            self._settle()
        self.queue.extend(c for c in equations if c.reads)
        self._settle()

    def _plain(self, c: Constraint) -> Constraint:
        """A constraint in whose rows every sum is an axis with a number, which can have a unit."""
        if isinstance(c, RowEqual):
            one, other = self._numbered(c.one, c.origin), self._numbered(c.other, c.origin)
            same = one is c.one and other is c.other
            return c if same else RowEqual(one, other, c.origin, c.reads)
        if isinstance(c, RowBelow):
            one, other = self._numbered(c.result, c.origin), self._numbered(c.operand, c.origin)
            return c if one is c.result and other is c.operand else RowBelow(one, other, c.origin)
        return c

    def _numbered(self, row: Row, origin: Origin) -> Row:
        numbered, sums = row.numbered(self.dims.fresh)
        self.queue.extend(DimEqual(var, axis, origin) for var, axis in sums)
        return numbered

    def _settle(self) -> None:
        """Draw what follows. In the closing stages a computed 1 is rigid as soon as nothing else follows."""
        self._pair_stored()
        while self.queue or (self.closing and self.dims.harden()):
            while self.queue:
                self.steps += 1
                self._step(self.queue.popleft())
            self.products = [c for c in self.products if not self._counted(c)]
            self._pair_stored()

    def _pair_stored(self) -> None:
        """Pair the dimensions of tensors whose rows are known by now with what reads them."""
        if self.stored:
            self.stored = [c for c in self.stored if not self.rows.stored(c)]

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
                self._known_compositions().add(c)
            case Determined() | Product() | StoredRows() | LeafRow():
                self._keep(c)
            case _:
                assert_never(c)

    def _keep(self, c: Determined | Product | StoredRows | LeafRow) -> None:
        """Keep a constraint for when more is known."""
        match c:
            case Determined():
                self.windows.append(c)
            case Product():
                self.products.append(c)
            case StoredRows():
                self.stored.append(c)
            case LeafRow():
                self.leaves.append(c)
            case _:
                assert_never(c)

    def _known_compositions(self) -> Compositions:
        """The compositions so far, made with the first one."""
        if self.compositions is None:
            from ilang.core.infer.compositions import Compositions

            self.compositions = Compositions(self.dims)
        return self.compositions

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
        for c in self.products:
            self._check_product(c)

    def _close_open(self) -> None:
        """The stages that decide what does not follow."""
        if self._open_rows() or self._open_dims():
            self._close_rows()
        self._enter(6)
        if self.compositions is not None:
            self.compositions.close()
        for window in self.windows:
            self.dims.determined(window)
        self._close_leaf_axes()
        self._enter(7)
        self._close_result_axes()

    def _close_rows(self) -> None:
        """The stages that give rows their axes."""
        self._enter(2)
        self._join_cycles()
        self._enter(3)
        self._leaves_take_caps()
        self._constants_take_caps()
        while self._straddling_rows(leaves=True):
            self._settle()
            self._leaves_take_caps()
        self._enter(4)
        repeated = [row.variable for leaf, row in self._open_leaves() if leaf.repeated]
        self.queue.extend(RowEqual(opened(v), EMPTY, GUESS) for v in repeated if v is not None)
        self._settle()
        self._close_counted()
        self._close_leaf_rows()
        self._enter(5)
        self._close_result_rows()
        self._leaves_take_caps()

    def _enter(self, stage: int) -> None:
        if self.log is not None:
            self.log.stage = stage

    def _join_cycles(self) -> None:
        """Variables that bound each other in a circle are equal."""
        edges: dict[int, list[int]] = {}
        for operand, results in self.rows.results.items():
            for c in results.values():
                row = self.rows.resolve(c.result)
                if row.variable is not None and not row.count():
                    edges.setdefault(row.variable, []).append(operand)
        for component in components(edges, edges):
            bare = [self.rows.bare(v) for v in component]
            self.queue.extend(RowEqual(bare[0], row, GUESS) for row in bare[1:])
        self._settle()
        above = {
            v: [self.dims.root(u) for u in operands]
            for v, operands in self.dims.operands.items()
            if operands
        }
        for component in components(above, above):
            self.queue.extend(DimEqual(Var(component[0]), Var(v), GUESS) for v in component[1:])
        self._settle()

    def _open_dims(self) -> list[int]:
        return [v for v, value in enumerate(self.dims.value) if value is None]

    def _open_leaves(self) -> Iterator[tuple[LeafRow, Row]]:
        for leaf in self.leaves:
            yield leaf, self.rows.resolve(leaf.row)

    def _leaves_take_caps(self) -> None:
        """Rows first; then axes, all at once; until neither changes."""
        while self._leaf_rows_take_caps() or self._leaf_axes_take_caps():
            self._settle()

    def _leaf_rows_take_caps(self) -> bool:
        straddled, _ = self.rows.straddling()
        wanted = {
            row.variable: None
            for leaf, row in self._open_leaves()
            if row.variable is not None and row.variable not in straddled and not leaf.repeated
        }
        return self._take_caps(wanted)

    def _constants_take_caps(self) -> None:
        """Constants that have more values than their output axes have elements take the other rows, too."""
        repeated = {row.variable for leaf, row in self._open_leaves() if leaf.repeated}
        wanted: dict[int, None] = {}
        for c in self.products:
            if not repeated or self._is_late(c):
                continue
            known, unknown, variables = self._side(c.left)
            if unknown or not repeated.issuperset(variables):
                continue
            if known < self._side(c.right)[0]:
                wanted |= dict.fromkeys(variables)
        if self._take_caps(wanted):
            self._settle()
            self._leaves_take_caps()

    def _take_caps(self, wanted: Collection[int]) -> bool:
        """Bind row variables to their caps; whether any has one."""
        if not wanted:
            return False
        from ilang.core.infer.caps import Caps

        caps = Caps(self.dims, self.rows).of(wanted, GUESS)
        for variable, cap in caps.items():
            self.rows.bind(variable, cap, self.rows.asking(variable))
        return bool(caps)

    def _leaf_axes(self) -> Iterator[tuple[LeafRow, int]]:
        """Open axes of leaves."""
        for leaf, row in self._open_leaves():
            for axis in row.axes():
                dim = self.dims.resolve(axis)
                if isinstance(dim, Var):
                    yield leaf, dim.number

    def _leaf_axes_take_caps(self) -> bool:
        caps = self.dims.caps(dict.fromkeys(number for _, number in self._leaf_axes()))
        for number, cap in caps.items():
            self.dims.bind(number, cap, GUESS)
        return bool(caps)

    def _close_leaf_rows(self) -> None:
        rows: dict[int, bool] = {}
        for leaf, row in self._open_leaves():
            if row.variable is None:
                continue
            unknown = leaf.whole or self.rows.has_open_operand(row.variable)
            if leaf.required and not row.count() and unknown:
                raise self._undetermined_row(leaf, row.variable)
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

    def _undetermined_row(self, leaf: LeafRow, variable: int) -> ShapeError:
        """A parameter's row that nothing gives: where it is used, and which other leaves share its axes."""
        linked, uses = self.rows.linked(variable)
        others = [
            other.origin.says
            for other, row in self._open_leaves()
            if row.variable in linked and other is not leaf
        ]
        return conflicts.undetermined(leaf.origin.says, leaf.origin, uses, others)

    def _undetermined_axis(self, leaf: LeafRow, number: int) -> ShapeError:
        linked, uses = self.dims.linked(number)
        others = dict.fromkeys(
            f"an axis of {other.origin.says}"
            for other, axis in self._leaf_axes()
            if axis in linked and other is not leaf
        )
        axis_text = f"an axis of {leaf.origin.says}"
        return conflicts.undetermined(axis_text, leaf.origin, uses, list(others))

    def _close_result_rows(self) -> None:
        """Until nothing changes: crossing equations; then caps; then results whose axes lie across an operand's."""
        while self._crossing_rows() or self._unfed_rows_take_caps() or self._straddling_rows():
            self._settle()
        while self._arrays_have_output_axes():
            self._settle()
        for variable in self._open_rows():
            self.rows.bind(variable, EMPTY, GUESS)
        self._settle()

    def _crossing_rows(self) -> bool:
        crossing = self.rows.crossing()
        for variable, origin in crossing:
            self.rows.bind(variable, EMPTY, origin)
        return bool(crossing)

    def _arrays_have_output_axes(self) -> bool:
        """Of an array whose axes several open rows divide, as `...|...` does, the output row has all: one at a time."""
        for constraint in self.stored:
            beside = self.rows.beside_output(constraint)
            for variable, origin in beside:
                self.rows.bind(variable, EMPTY, origin)
            if beside:
                return True
        return False

    def _unfed_rows_take_caps(self) -> bool:
        straddled, _ = self.rows.straddling()
        unfed = [v for v in self._open_rows() if not self.rows.is_fed(v) and v not in straddled]
        return self._take_caps(unfed)

    def _straddling_rows(self, leaves: bool = False) -> bool:
        """End the rows of results whose axes lie across the row variable of an operand, or of a leaf only."""
        only = {row.variable for _, row in self._open_leaves()} - {None} if leaves else None
        results = self.rows.straddling(only)[1]
        for variable, origin in results.items():
            self.rows.bind(variable, EMPTY, origin)
        return bool(results)

    def _open_rows(self) -> list[int]:
        return [v for v, value in enumerate(self.rows.value) if value is None]

    def _close_leaf_axes(self) -> None:
        axes: dict[int, Origin] = {}
        for leaf, number in self._leaf_axes():
            if leaf.required:
                raise self._undetermined_axis(leaf, number)
            if number not in self.dims.index:
                axes[number] = leaf.origin
        for number, origin in axes.items():
            self.dims.unit(number, origin, GUESS)
        self._settle()

    def _close_result_axes(self) -> None:
        caps = self.dims.caps(self._open_dims())
        alone = [number for number in self._open_dims() if not self._is_shared(number)]
        for number in [number for number in alone if not self.dims.is_fed(number)]:
            self._close_axis(number, caps.get(number))
        self._settle()
        for number in [number for number in self._open_dims() if not self._is_shared(number)]:
            self._close_axis(number, None)
        self._settle()
        for number in range(len(self.dims.value)):
            if self.dims.is_open(number):
                self._close_axis(number, self.dims.caps([number]).get(number))
                self._settle()

    def _is_shared(self, number: int) -> bool:
        """Whether a variable is a part of a sum with other open parts: those close one by one."""
        return any(
            isinstance(c, DimEqual)
            and any(isinstance(self.dims.resolve(side), Affine) for side in (c.one, c.other))
            for c in self.dims.waiting.get(number, ())
        )

    def _close_axis(self, number: int, cap: Known | None) -> None:
        index = self.dims.index.get(number)
        origin = Origin(self.dims.says(Var(number)), None)
        known = cap or Known(1, True, None, origin)
        if index is not None and index.size == 1:
            known = Known(1, True, None, index.origin)
        elif index is not None:
            known = self.dims.cap.get(number) or Known(index.size, False, None, index.origin)
        self.dims.run_time.guessed.append(known)
        self.dims.bind(number, known, GUESS)

    # -- numbers of elements -----------------------------------------------------------------------------------------

    def _is_late(self, c: Product) -> bool:
        """Whether an axis of a product has a run-time size."""
        rows = map(self.rows.resolve, (*c.left, *c.right))
        axes = (self.dims.resolve(axis) for row in rows for axis in row.axes())
        return any(isinstance(x, Known) and not isinstance(x.size, int) for x in axes)

    def _composed(self, c: Product) -> bool:
        """Make both sides compositions of one axis, once their axes are known; whether they are."""
        sides = [list(map(self.rows.resolve, side)) for side in (c.left, c.right)]
        if any(row.variable is not None for side in sides for row in side):
            return False
        total = self.dims.fresh()
        for side in sides:
            axes = tuple(self.dims.resolve(axis) for row in side for axis in row.axes())
            names = tuple(map(self.dims.says, axes))
            self.queue.append(Composed(total, axes, names, c.origin))
        return True

    def _side(self, rows: tuple[Row, ...]) -> tuple[int, list[Dim], list[int]]:
        """The product of the known axes of some rows, their other axes, and their row variables."""
        total = 1
        unknown: list[Dim] = []
        variables: list[int] = []
        for row in map(self.rows.resolve, rows):
            for axis in map(self.dims.resolve, row.axes()):
                if isinstance(axis, Known):
                    total *= extent_of(axis)
                else:
                    unknown.append(axis)
            variables += [] if row.variable is None else [row.variable]
        return total, unknown, variables

    def _counted(self, c: Product) -> bool:
        """Whether a product is settled: with one unknown axis, that follows."""
        if self._is_late(c):
            return self._composed(c)
        (left, unknown, variables), (right, others, further) = (
            self._side(c.left),
            self._side(c.right),
        )
        if variables or further or len(unknown) + len(others) > 1:
            return False
        if others:
            left, right, unknown = right, left, others
        if not unknown:
            if left != right:
                raise conflicts.counts_differ(left, right, c.origin)
        else:
            if not left or right % left:
                raise conflicts.not_whole(self.dims.says(unknown[0]), (right, left), c.origin)
            size = Known(right // left, False, None, c.origin)
            self.queue.append(DimEqual(unknown[0], size, c.origin))
        return True

    def _close_counted(self) -> None:
        """Rows counted by their elements: all but one get no axes, one an axis of what is left.

        Beside run-time sizes that one gets none, either: ranks are known before arrays come.
        """
        for c in self.products:
            if self._is_late(c):
                rows = [self.rows.resolve(row) for row in (*c.left, *c.right)]
                open_rows = [row.variable for row in rows if row.variable is not None]
                self.queue.extend(RowEqual(opened(v), EMPTY, c.origin) for v in open_rows)
                continue
            (left, unknown, variables), (right, others, further) = (
                self._side(c.left),
                self._side(c.right),
            )
            if further and not variables:
                left, unknown, variables, right, others, further = (
                    right,
                    others,
                    further,
                    left,
                    unknown,
                    variables,
                )
            if variables and not further and not unknown and not others:
                *empty, last = sorted(set(variables), key=lambda v: self._preference(v, c))
                self.queue.extend(RowEqual(opened(v), EMPTY, c.origin) for v in empty)
                self.queue.append(RowEqual(opened(last), self._rest(left, right, c), c.origin))
            elif len(c.left) == len(c.right) == 1 and variables and further:
                self.queue.append(RowEqual(c.left[0], c.right[0], c.origin))
        self._settle()

    def _preference(self, variable: int, c: Product) -> int:
        """The last listed row of a leaf gets the axis."""
        rows = [self.rows.resolve(row).variable for row in (*c.left, *c.right)]
        return rows.index(variable)

    def _rest(self, known: int, total: int, c: Product) -> Row:
        if known and known == total:
            return EMPTY
        if not known or total % known:
            raise conflicts.counts_differ(known, total, c.origin)
        return closed((Known(total // known, False, None, c.origin),))

    def _check_product(self, c: Product) -> None:
        left, right = self._side(c.left)[0], self._side(c.right)[0]
        if left != right:
            raise conflicts.counts_differ(left, right, c.origin)
