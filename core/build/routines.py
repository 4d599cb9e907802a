"""Routines: statements one after the other, each assignment giving a tensor other values (docs/functions.md).

Example, ``cd step(x) { y = "w" * x; backprop(y); w =- 0.1 *. w.grad; return y }``:
    inputs x and w;  n2 = compose(w, x);  n3 stands for the gradient of n2 with respect to w
    n4 = 0.1 *. n3;  n5 = w - n4, which is what w is after the run;  outputs n2, n5, n3

A tensor keeps its name and its axes, and has a node for each assignment: the graph itself assigns nothing twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from ilang.core.build.customs import single_scalar
from ilang.core.build.emission import Emission
from ilang.core.build.flow import feeding
from ilang.core.build.functions import Functions, tensor_of
from ilang.core.build.gradients import UNKNOWN, Gradients
from ilang.core.build.merging import RANKS, Merges, is_sum_over_ranks
from ilang.core.build.settings import Evaluation, Meaning
from ilang.core.build.values import Computed, Custom, NumberTensor, Owner, Stored, Tensor, name_of
from ilang.core.diagnostic import Label, MeaningError
from ilang.core.ir import functions as ast
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Logic
from ilang.core.ir.primitives import FOLDS, joined
from ilang.core.ir.scalar import Apply, Constant, Operand
from ilang.core.ir.spec import Fixed, Spec, Window, names_of
from ilang.core.record import record
from ilang.core.source import Span

Role = Literal["return", "parameter", "state", "gradient", "kept", "merged"]
NEUTRAL = {
    "-": Apply("sub", (Constant(0), Operand(0))),
    "/": Apply("recip", (Operand(0),)),
    "**": joined("**"),
    "&&": Apply("truth", (Operand(0),)),
    "||": Apply("truth", (Operand(0),)),
}
"""The value that meets the neutral element of an accumulator, after it; of all others it is the value itself."""


@record
class Result:
    """A value that a run gives: what it is for, its path (or its place among those returned), its node."""

    role: Role
    path: str
    number: int


@record
class Built:
    """A definition as a graph: what its inputs hold, by node, and what a run of it gives, output by output.

    ``fixed`` are the configuration values that the graph depends on, with the place that makes it so. ``settings`` are
    those that come at run time. ``paths`` names parameters, in the order of evaluation, and state. ``forward`` has the
    nodes that give tensors, and not new values to what there is: how they use a parameter says what it begins with.
    ``merged`` are the inputs that have sums over ranks, in the order of the results of that role, which have the values
    that are summed: over all ranks, or over the others. ``integers`` are the types of inputs whose own heads write
    none, and others write an integer type. ``limits`` are those that a library sets for configuration values.
    """

    graph: Graph
    inputs: tuple[tuple[Stored, int], ...]
    measured: Mapping[Stored, int]
    results: tuple[Result, ...]
    fixed: Mapping[str, Span]
    settings: Mapping[str, Stored]
    paths: Mapping[Stored, str]
    forward: frozenset[int]
    merged: Mapping[Stored, bool]
    integers: Mapping[Stored, str]
    limits: Mapping[str, tuple[str, str]]


class Routines(Functions):
    """One run of a definition: its statements in order, and the nodes that they need."""

    def begin(self, name: str, span: Span) -> None:
        """Nothing has run yet."""
        self.root = Owner(None, name, name, {}, [], span)
        self.emission = Emission(self.einx, self.callers)
        self.merges = Merges(self.emission, self.ranks, span)
        self.returned: list[int] | None = None
        self.assigned: dict[Stored, Span] = {}
        self.gradients = Gradients(self.emission, self.assigned)
        self.state: dict[Stored, Span] = {}
        self.owners: dict[Stored, tuple[Tensor | None, str]] = {}
        self.named: dict[Stored, None] = {}

    # -- names and parts ---------------------------------------------------------------------------------------------

    def access(self, frame: Evaluation, term: ast.Access) -> Tensor:
        """A part of a tensor."""
        if isinstance(term.tensor, ast.Declared):
            value: Tensor = self.declare(frame, term.tensor)
        else:
            value = tensor_of(self.meaning(frame, term.tensor), term.span)
        match term.part:
            case "value":
                return value
            case "grad":
                return self.gradients.of(value, term.span)
            case "merge" | "grad.merge":
                of = value if term.part == "merge" else self.gradients.of(value, term.span)
                return self._merged(of, whole=False, span=term.span)

    def _merged(self, value: Tensor, whole: bool, span: Span) -> Tensor:
        """The sum of what a tensor is now over the other ranks, or over all; alone, a rank has zeros, and its own."""
        number = self.needed(value)
        if self.ranks == 1 and not whole:
            none = Apply("where", (Constant(0), Operand(0), Constant(0)))
            return self.pointwise(none, [value], span)
        if self.ranks == 1:
            return value
        return self.merges.sum_of(number, name_of(value), whole, span)

    def declare(self, frame: Evaluation, term: ast.Declared) -> Stored:
        """The tensor that a string on the left of an assignment declares."""
        known = frame.names.get(term.name)
        if isinstance(known, Stored):
            return known
        cell = Stored("declared", term.name, UNKNOWN, None, term.span, owner=frame.owner)
        frame.names[term.name] = cell
        self.named[cell] = None
        return cell

    def needed(self, value: Tensor) -> int:
        """The node that a tensor is now; reading what is not written yet makes it state."""
        for each in feeding([value], every=True, done=self.emission.latest):
            if not isinstance(each, Stored) or each in self.emission.latest:
                continue
            if each.kind == "gradient":
                self.gradients.stands(each)
            elif each.kind == "declared":
                self.state[each] = each.span
        return self.emission.read(value)

    # -- statements --------------------------------------------------------------------------------------------------

    def run(self, frame: Evaluation, statements: Sequence[ast.Statement]) -> None:
        """Follow statements in order: each binds a name, gives a tensor a new value, or does something to gradients."""
        for each in statements:
            match each:
                case ast.Assigned():
                    self._assign(frame, each)
                case ast.NameBinding():
                    if each.name is None:
                        self.constraints.append(self.tensor(frame, each.term))
                    else:
                        self.bind(frame, each.name, each.term)
                case ast.TensorStatement():
                    self._state(frame, each)
                case ast.ForEach():
                    self._for_each(frame, each)
                case ast.Condition():
                    holds = self.number(frame, each.test)
                    self.run(frame, each.statements if holds else each.otherwise)
                case ast.Called():
                    self._call(frame, each)
                case ast.Returned():
                    self.returned = [self.needed(self.tensor(frame, term)) for term in each.terms]
                case ast.Commented():
                    self.run(frame, each.statements)

    def _for_each(self, frame: Evaluation, each: ast.ForEach) -> None:
        """The statements for each parameter; what they alone declare belongs to it."""
        for parameter in self.parameters(self.tensor(frame, each.tensor)):
            inner = frame.within({each.variable: parameter})
            for name, term in targets(each.statements).items():
                if name not in frame.names:
                    self.owners[self.declare(inner, term)] = (parameter, name)
            self.run(inner, each.statements)

    def parameters(self, value: Tensor) -> list[Stored]:
        """The parameters that something flows back to from a tensor, in the order of evaluation."""
        reached = [each for each in feeding([value]) if isinstance(each, Stored)]
        return sorted((each for each in reached if each in self.order), key=self.order.__getitem__)

    def _state(self, frame: Evaluation, each: ast.TensorStatement) -> None:
        """``forward(t)``, ``zero_grads(t)`` or ``backprop(t)``."""
        value, latest = self.tensor(frame, each.tensor), self.emission.latest
        match each.word:
            case "forward":
                if value in latest:
                    message = f"`{each.tensor.name}` is computed already"
                    place = self.emission.nodes[latest[value]].span
                    labels = [Label(each.span, "again here"), Label(place, "it is this")]
                    raise MeaningError("E0282", message, each.span, "leave this out", labels)
                self.needed(value)
            case "zero_grads":
                for parameter in self.parameters(value):
                    zero = self.pointwise(Operand(0), [NumberTensor(0.0, each.span)], each.span)
                    cell = self.gradients.of(parameter, each.span)
                    number = self.emission.read(zero)
                    read = self.emission.read(parameter)
                    self.emission.alike(number, read, cell.name, each.span)
                    self.emission.assign(cell, number)
            case _:
                self.gradients.refuse(value, each)
                self.gradients.backprop(value, self.needed(value), each)

    def _call(self, frame: Evaluation, each: ast.Called) -> None:
        """Run another routine, whose name, arguments and configuration fit (``notation/functions/misused.py``)."""
        assert isinstance(each.component, ast.Reference)
        name = each.component.name
        routine = self.routines[name]
        given = self.arguments(frame, each.arguments)
        settings, _ = self.settings(frame, routine.head, each.settings)
        owner = self.root.use(name, name, each.span)
        with self.callers.called(routine.head, each.span, each.arguments, given):
            names = self.noted(routine.head.tensors, given)
            names.update(settings)
            self.routine(routine, owner, names, given[0] if given else None)

    def routine(
        self, routine: ast.Routine, owner: Owner, names: dict[str, Meaning], first: Tensor | None
    ) -> Evaluation:
        """Run the statements of a routine; what it declares belongs to its first tensor."""
        declared = targets(routine.statements)
        names = {RANKS: self.merges.count, **names}
        frame = Evaluation(owner, names, ast.strings(expressions(routine.statements)))
        frame.scope = self.scope
        for term in declared.values():
            cell = self.declare(frame, term)
            if owner is not self.root:
                self.owners[cell] = (first, routine.head.name)
        self.run(frame, routine.statements)
        return frame

    # -- assignments -------------------------------------------------------------------------------------------------

    def _assign(self, frame: Evaluation, each: ast.Assigned) -> None:
        cell = self._target(frame, each.target)
        if is_sum_over_ranks(each):
            merged = self._merged(cell, whole=True, span=each.span)
            number = self.needed(self._copied(merged, each.span))
        else:
            comes, logic = self._right(frame, each)
            number = self._assigned(cell, each, comes, logic)
            if isinstance(cell, Stored) and cell.kind == "declared" and not self.gradients.back:
                number = self.gradients.still(number, comes, each.span)
        if isinstance(cell, Stored):
            if self.ranks != 1 and cell.kind == "parameter" and self.gradients.back:
                # all ranks have it, and a gradient may be one that this rank has alone
                target = each.target.tensor if isinstance(each.target, ast.Access) else each.target
                stands = [number for number, _ in self.gradients.back[1]]
                self.merges.check(target.name, number, stands, each.span)
            if cell.kind == "parameter":
                self.emission.read(cell)  # it lasts, though nothing has read it before
            if cell.kind == "gradient":
                like = self.emission.read(self.gradients.value[cell])
                self.emission.alike(number, like, cell.name, each.span)
            self.emission.assign(cell, number)
            self.assigned[cell] = each.span
        else:
            self.emission.alike(number, self.emission.read(cell), name_of(cell), each.span)
            self.emission.latest[cell] = number

    def _target(
        self, frame: Evaluation, target: ast.Reference | ast.Access | ast.Declared
    ) -> Tensor:
        if isinstance(target, ast.Access) and "merge" in target.part:
            message = "`merge` is what comes from other ranks: it is read, and not assigned"
            name = target.span.text().partition(".merge")[0]
            help_line = f"`{name} =+ {name}.merge` sums"
            raise MeaningError("E0426", message, target.span, help_line)
        if isinstance(target, ast.Declared):
            return self.declare(frame, target)
        value = self.tensor(frame, target)
        if isinstance(value, NumberTensor):
            raise MeaningError(
                "E0426", "a number is not assigned", target.span, "assign to a tensor"
            )
        if not isinstance(value, Stored):
            self.needed(value)
        return value

    def _right(self, frame: Evaluation, each: ast.Assigned) -> tuple[Tensor, Logic]:
        right = each.right
        logic = logic_of(each.logic)
        if not isinstance(right, ast.Single):
            value = self.tensor(frame, right)
            if each.logic is not None:
                return self._folded(each, Operand(0), logic, [value]), logic
            return value, "pointwise"
        given = [self.tensor(frame, term) for term in right.operands]
        if each.logic is None and right.operator in ("*", "/") and len(given) == 2:
            raise MeaningError(
                "E0446",
                f"`{right.operator}` between two operands of an assignment needs a `~logic`",
                right.span,
                'write `~logic:"@"` to contract axes, `~logic:"."` for element by element',
            )
        scalar = single_scalar(right, len(given))
        if each.logic is None and right.operator is None:
            return given[0], "pointwise"
        return self._folded(each, scalar, logic, given), logic

    def _folded(
        self, each: ast.Assigned, scalar: object, logic: Logic, given: Sequence[Tensor]
    ) -> Tensor:
        """The value of an assignment of its operands, folded along the axes that its logic drops."""
        fold = "+" if each.accumulator is None else FOLDS[each.accumulator][1]
        if drops(logic) and (each.accumulator is None or fold is None):
            message = f"`={each.accumulator}` has no order in which to fold the axes that this logic drops"
            place = each.span
            if each.accumulator is None:
                message = "`=:` folds nothing, and this logic drops axes"
                place = each.logic.span if each.logic else place
            raise MeaningError("E0447", message, place, "`=:+` sums over them")
        return self.operation(scalar, fold or "+", logic, given, each.span, each.schedule)  # type: ignore[arg-type]

    def _assigned(self, cell: Tensor, each: ast.Assigned, comes: Tensor, logic: Logic) -> int:
        """The node of the values that a tensor has after an assignment."""
        partial = each.accumulator in (None, "?/") and has_places(logic)
        is_fresh = each.accumulator is None or each.fresh
        value = comes
        if is_fresh and each.accumulator in NEUTRAL:
            one = [NumberTensor(1, each.span)] if each.accumulator == "**" else []
            value = self.pointwise(NEUTRAL[each.accumulator], [*one, comes], each.span)
        if is_fresh and not (partial and not each.fresh and cell in self.emission.latest):
            return self.needed(self._copied(value, each.span))
        number = self.needed(cell)  # a tensor keeps the values before
        before = Computed((cell,), Operand(0), "+", "pointwise", name_of(cell), None, each.span)
        self.emission.latest[before] = number
        if not is_fresh:
            assert each.accumulator is not None
            value = self.pointwise(joined(each.accumulator), [before, comes], each.span)
        if partial:  # new values where the logic reaches, those before elsewhere
            assert isinstance(comes, Computed)
            ones = Apply("add", (Apply("mul", (Constant(0), Constant(0))), Constant(1)))
            mask = Computed(comes.operands, ones, "+", logic, comes.text, None, each.span)
            chosen = Apply("where", (Operand(0), Operand(1), Operand(2)))
            value = self.pointwise(chosen, [mask, value, before], each.span)
        return self.needed(value)

    def _copied(self, value: Tensor, span: Span) -> Tensor:
        """Values that nothing else keeps: a copy of what another tensor keeps, or of a number."""
        if isinstance(value, Stored | NumberTensor | Custom) or value in self.emission.latest:
            return self.pointwise(Operand(0), [value], span)
        return value

    # -- the end -----------------------------------------------------------------------------------------------------

    def end(self, inputs: Sequence[Stored]) -> None:
        """Give tensors what their functions say that they have in the next run.

        Raises:
            MeaningError: E0285 (ranks would go apart).
        """
        data = [self.emission.first[each] for each in inputs]
        for cell, (value, span) in self.next.items():
            number = self.needed(self._copied(value, span))
            if self.ranks != 1:
                self.merges.check_kept(cell.name, number, data, span)
            self.emission.assign(cell, number)
            self.assigned[cell] = span

    def path(self, cell: Stored) -> str:
        """The path of a parameter, of a gradient, or of what a routine declares."""
        if cell.kind == "gradient":
            value = self.gradients.value[cell]
            return f"{self.path(value) if isinstance(value, Stored) else name_of(value)}.grad"
        if cell in self.owners:
            first, routine = self.owners[cell]
            base = self.path(first) if isinstance(first, Stored) else routine
            return f"{base}.{cell.name}"
        owner_path = cell.owner.path() if cell.owner is not None else ()
        return ".".join((*owner_path, cell.name))


def targets(statements: Sequence[ast.Statement]) -> dict[str, ast.Declared]:
    """The strings on the left of assignments: the tensors that statements declare, those of inner loops aside."""
    declared: dict[str, ast.Declared] = {}
    for each in statements:
        match each:
            case ast.Assigned():
                target = each.target.tensor if isinstance(each.target, ast.Access) else each.target
                if isinstance(target, ast.Declared):
                    declared.setdefault(target.name, target)
            case ast.Condition():
                declared = {**targets(each.statements), **targets(each.otherwise), **declared}
            case ast.Commented():
                declared = {**targets(each.statements), **declared}
            case _:
                pass
    return declared


def expressions(statements: Sequence[ast.Statement]) -> tuple[object, ...]:
    """The expressions of statements: the right sides of names and assignments."""
    expressions_below: list[object] = []
    for each in ast.nodes_within(tuple(statements)):
        if isinstance(each, ast.Assigned):
            expressions_below.append(each.right)
        elif isinstance(each, ast.NameBinding):
            expressions_below.append(each.term)
    return tuple(expressions_below)


def logic_of(logic: ast.Logic | None) -> Logic:
    """The logic of an assignment; element by element where nothing is written."""
    if logic is None or logic.kind == ".":
        return "pointwise"
    if logic.kind == "@":
        return "compose"
    if logic.kind == "T":
        return "transpose"
    assert logic.spec is not None
    return logic.spec


def drops(logic: Logic) -> bool:
    """Whether a logic has axes that its result lacks."""
    match logic:
        case "compose":
            return True
        case Spec():
            used = set[str]().union(*(shape.names() for shape in logic.operands))
            return bool(used - logic.result.names())
        case _:
            return False


def has_places(logic: Logic) -> bool:
    """Whether a logic may leave elements of its result unwritten: a fixed position, a diagonal, a window."""
    if not isinstance(logic, Spec):
        return False
    axes = logic.result.axes()
    names = [n for axis in axes for n in names_of(axis)]
    return len(set(names)) < len(names) or any(isinstance(a, Fixed | Window) for a in axes)
