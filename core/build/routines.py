"""Routines: statements one after the other, each assignment giving a tensor other values (docs/functions.md).

Example, ``cd step(x) { y = "w" * x; backprop(y); w =- 0.1 *. w.grad; return y }``:
    inputs x and w;  n2 = compose(w, x);  n3 stands for the gradient of n2 with respect to w
    n4 = 0.1 *. n3;  n5 = w - n4, which is what w is after the run;  outputs n2, n5, n3

A tensor keeps its name and its axes, and has a node for each assignment: the graph itself assigns nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, assert_never

from ilang.core.build.customs import single_scalar
from ilang.core.build.emission import Emission
from ilang.core.build.flow import feeding, is_source, read_back, read_back_by
from ilang.core.build.functions import Functions
from ilang.core.build.logics import drops, has_places, logic_of
from ilang.core.build.merging import RANKS, Merged, Merges, is_sum_over_ranks
from ilang.core.build.settings import Evaluation, Meaning
from ilang.core.build.tensor import Rows
from ilang.core.build.values import Computed, NumberTensor, Output, Owner, Ruled, Stored, Tensor
from ilang.core.diagnostic import Label, MeaningError
from ilang.core.ir import functions as ast
from ilang.core.ir.graph import Graph, operands
from ilang.core.ir.operation import Logic
from ilang.core.ir.primitives import FOLDS, joined
from ilang.core.ir.scalar import Apply, Constant, Operand
from ilang.core.record import record
from ilang.core.source import Span

Role = Literal["return", "parameter", "state", "gradient", "kept", "merged"]
UNKNOWN: Rows = (None, None, None)


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
    that are summed. ``integers`` are the types of inputs whose own heads write none, and others write an integer type.
    """

    graph: Graph
    inputs: tuple[tuple[Stored, int], ...]
    measured: Mapping[Stored, int]
    results: tuple[Result, ...]
    fixed: Mapping[str, Span]
    settings: Mapping[str, Stored]
    paths: Mapping[Stored, str]
    forward: frozenset[int]
    merged: tuple[Merged, ...]
    integers: Mapping[Stored, str]


class Routines(Functions):
    """One run of a definition: its statements in order, and the nodes that they need."""

    def begin(self, name: str, span: Span) -> None:
        """Nothing has run yet."""
        self.root = Owner(None, name, name, {}, [], span)
        self.emission = Emission(self.einx)
        self.merges = Merges(self.emission, self.ranks, span)
        self.returned: list[int] | None = None
        self.gradients: dict[Tensor, Stored] = {}
        self.of: dict[Stored, Tensor] = {}
        self.back: tuple[int, list[tuple[int, int]], Span] | None = None
        self.reached: set[Tensor] = set()
        self.assigned: dict[Stored, Span] = {}
        self.state: dict[Stored, Span] = {}
        self.owners: dict[Stored, tuple[Tensor | None, str]] = {}
        self.named: dict[Stored, None] = {}
        self.used: dict[Tensor, int] = {}

    # -- names and parts ---------------------------------------------------------------------------------------------

    def access(self, frame: Evaluation, term: ast.Access) -> Tensor:
        """A part of a tensor."""
        if isinstance(term.tensor, ast.Declared):
            value: Tensor = self.declare(frame, term.tensor)
        else:
            value = self._read(self.meaning(frame, term.tensor), term.span)
        match term.part:
            case "value":
                return value
            case "grad":
                return self.gradient(value, term.span)
            case "merge" | "grad.merge":
                of = value if term.part == "merge" else self.gradient(value, term.span)
                return self._merged(of, whole=False, span=term.span)

    def _merged(self, value: Tensor, whole: bool, span: Span) -> Tensor:
        """The sum of what a tensor is now over the other ranks, or over all; alone, a rank has zeros, and its own."""
        number = self.needed(value)
        if self.ranks == 1 and not whole:
            none = Apply("where", (Constant(0), Operand(0), Constant(0)))
            return self.pointwise(none, [value], span)
        if self.ranks == 1:
            return value
        return self.merges.sum_of(number, _name(value), whole, span)

    def gradient(self, value: Tensor, span: Span) -> Stored:
        """The tensor that keeps the gradient of another."""
        known = self.gradients.get(value)
        if known is not None:
            return known
        if not self._is_differentiable(value):
            raise MeaningError(
                "E0280",
                f"`{_written(value, span)}` has no gradient: no parameter feeds it",
                span,
                "`track(x)` is x with a gradient",
            )
        owner = value.owner if isinstance(value, Stored) else None
        cell = Stored("gradient", f"{_name(value)}.grad", UNKNOWN, None, None, owner, span)
        self.gradients[value] = cell
        self.of[cell] = value
        return cell

    def _is_differentiable(self, value: Tensor) -> bool:
        """Whether something can flow back to a value: a parameter feeds it, or it is tracked."""
        return any(is_source(each) for each in feeding([value]))

    def declare(self, frame: Evaluation, term: ast.Declared) -> Stored:
        """The tensor that a string on the left of an assignment declares."""
        known = frame.names.get(term.name)
        if isinstance(known, Stored):
            return known
        cell = Stored("declared", term.name, UNKNOWN, None, None, frame.owner, term.span)
        frame.names[term.name] = cell
        self.named[cell] = None
        return cell

    def needed(self, value: Tensor) -> int:
        """The node that a tensor is now; reading what is not written yet makes it state."""
        for each in feeding([value], every=True, done=self.emission.latest):
            if not isinstance(each, Stored) or each in self.emission.latest:
                continue
            if each.kind == "gradient":
                self._await(each)
            elif each.kind == "declared":
                self.state[each] = each.span
        return self.emission.read(value)

    def _await(self, cell: Stored) -> None:
        """A gradient is read: it stands for what ``backprop`` computes."""
        value = self.of[cell]
        if self.back is None or value not in self.reached:
            raise MeaningError(
                "E0281",
                f"nothing has computed `{_written(value, cell.span)}.grad` here",
                cell.span,
                "`backprop(t)` computes the gradients of what feeds t",
            )
        number = self.emission.read(cell)
        of = self.used.get(value, self.emission.latest[value])
        self.back[1].append((number, of))
        self.emission.alike(number, of, cell.name, cell.span)

    # -- statements --------------------------------------------------------------------------------------------------

    def run(self, frame: Evaluation, statements: Sequence[ast.Statement]) -> None:
        """Follow statements in order."""
        for each in statements:
            self._statement(frame, each)

    def _statement(self, frame: Evaluation, each: ast.Statement) -> None:
        """Run a statement: it binds a name, gives a tensor a new value, or does something to gradients."""
        match each:
            case ast.Assigned():
                self._assign(frame, each)
            case ast.NameBinding():
                if each.name is None:
                    self.constraints.append(self.tensor(frame, each.term))
                else:
                    self.bind(frame, each.name, each)
            case ast.TensorStatement(word="forward"):
                self._forward(frame, each)
            case ast.TensorStatement(word="zero_grads"):
                self._zero(frame, each)
            case ast.TensorStatement():
                self._backprop(frame, each)
            case ast.ForEach():
                self._for_each(frame, each)
            case ast.Condition():
                holds = self.number(frame, each.test)
                self.run(frame, each.statements if holds else each.otherwise)
            case ast.Routined():
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

    def _forward(self, frame: Evaluation, each: ast.TensorStatement) -> None:
        value = self.tensor(frame, each.tensor)
        if value in self.emission.latest:
            message = f"`{each.tensor.name}` is computed already"
            place = self.emission.nodes[self.emission.latest[value]].span
            labels = [Label(each.span, "again here"), Label(place, "it is this")]
            raise MeaningError("E0282", message, each.span, "leave this out", labels)
        self.needed(value)

    def _zero(self, frame: Evaluation, each: ast.TensorStatement) -> None:
        for parameter in self.parameters(self.tensor(frame, each.tensor)):
            self._clear(parameter, each.span)

    def _clear(self, value: Tensor, span: Span) -> None:
        """The gradient of a tensor is 0."""
        zero = self.pointwise(Operand(0), [NumberTensor(0.0, span)], span)
        cell = self.gradient(value, span)
        number = self.emission.read(zero)
        self.emission.alike(number, self.emission.read(value), cell.name, span)
        self.emission.assign(cell, number)

    def _backprop(self, frame: Evaluation, each: ast.TensorStatement) -> None:
        """``backprop(t)``: from here on gradients are those of the sum of all elements of t."""
        value = self.tensor(frame, each.tensor)
        if self.back is not None:
            labels = [Label(each.span, "again here"), Label(self.back[2], "first here")]
            message = "a run goes back once"
            raise MeaningError("E0283", message, each.span, "add what both are of", labels)
        if not self._is_differentiable(value):
            message = f"no parameter feeds `{each.tensor.name}`: nothing has a gradient of it"
            raise MeaningError("E0280", message, each.span, "`track(x)` is x with a gradient")
        of = self.needed(value)
        flowing = feeding([value])
        self.reached = set(flowing)
        for one in flowing:
            if isinstance(one, Ruled) and one.refused and self._is_differentiable(one.value):
                labels = [Label(one.span, "used here"), Label(each.span, "goes back through it")]
                message = f"{one.name} has no gradient, and one is asked for"
                help_line = "write it after the operation, `grad { g1 =+ g * ... }`, or use `stop_gradient(...)`"
                raise MeaningError("E0261", message, one.span, help_line, labels)
        self._unchanged(value, each)
        for tensor, cell in self.gradients.items():
            if tensor in self.reached:
                self.emission.latest.pop(cell, None)
        self.back = (of, [], each.span)
        self.emission.backward.append(self.back)

    def _unchanged(self, value: Tensor, each: ast.TensorStatement) -> None:
        """Refuse that what the way back reads has other values by now."""
        for tensor in feeding([value]):
            if isinstance(tensor, Computed):
                for operand, number in zip(tensor.operands, self._operands(tensor), strict=True):
                    if isinstance(operand, Stored):
                        self.used.setdefault(operand, number)
            for cell, read in self._read_back(tensor):
                if not isinstance(cell, Stored) or cell not in self.assigned:
                    continue
                if self.emission.latest[cell] not in read:
                    labels = [
                        Label(each.span, "goes back through what it was"),
                        Label(self.assigned[cell], "it has other values from here on"),
                    ]
                    message = f"`{_name(cell)}` is assigned between its use and `backprop`"
                    help_line = "assign after `backprop`, or copy it before"
                    raise MeaningError("E0284", message, each.span, help_line, labels)

    def _operands(self, tensor: Tensor) -> tuple[int, ...]:
        """The nodes that the node of a computed tensor reads."""
        return operands(self.emission.nodes[self.emission.latest[tensor]])

    def _read_back(self, tensor: Tensor) -> Iterator[tuple[Tensor, Sequence[int]]]:
        """The tensors whose values the way back through one reads, each with the nodes that have these values."""
        active = self._is_differentiable
        match tensor:
            case Computed():
                read = read_back(tensor.scalar, tensor.acc, tensor.operands, active)
                yield from ((each, self._operands(tensor)) for each in read)
            case Output():
                given, added = self.emission.calls[tensor.of]
                flows = [active(each) for each in tensor.of.operands]
                for n in read_back_by(self.emission.nodes, added, given, flows):
                    yield tensor.of.operands[n], given
            case Ruled():
                forward = dict.fromkeys(feeding([tensor.value], every=True))
                rules = feeding([back for _, back in tensor.gradients], True, forward)
                copies = {slot for slot, _ in tensor.gradients if _is_copy(slot)}
                for rule in rules:
                    if isinstance(rule, Computed) and (rule in copies or rule not in forward):
                        yield from ((each, self._operands(rule)) for each in rule.operands)
            case _:
                pass

    def _call(self, frame: Evaluation, each: ast.Routined) -> None:
        """Run another routine, whose name, arguments and configuration fit (``notation/functions/misused.py``)."""
        name = each.name.name
        routine = self.routines[name]
        given = self.arguments(frame, each.arguments)
        settings, _ = self.settings(frame, routine.head, each.settings)
        owner = Owner(self.root, name, name, {}, [], each.span)
        self.root.uses.append(owner)
        with self.callers.called(routine.head, each.span, each.arguments):
            names = self.noted(routine.head.tensors, given)
            names.update(settings)
            self.routine(routine, owner, names, given[0] if given else None)

    def routine(
        self,
        routine: ast.Routine,
        owner: Owner,
        names: dict[str, Meaning],
        first: Tensor | None,
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
        """``LHS ASGN RHS``."""
        cell = self._target(frame, each.target)
        if is_sum_over_ranks(each):
            number = self.needed(
                self._own(self._merged(cell, whole=True, span=each.span), each.span)
            )
        else:
            comes, logic = self._right(frame, each)
            number = self._assigned(cell, each, comes, logic)
            if isinstance(cell, Stored) and cell.kind == "declared":
                number = self._still(number, comes, each.span)
        if isinstance(cell, Stored):
            self._refuse_alone(cell, number, each)
            if cell.kind == "parameter":
                self.emission.read(cell)  # it lasts, though nothing has read it before
            if cell.kind == "gradient":
                self.emission.alike(number, self.emission.read(self.of[cell]), cell.name, each.span)
            self.emission.assign(cell, number)
            self.assigned[cell] = each.span
        else:
            self.emission.alike(number, self.emission.read(cell), _name(cell), each.span)
            self.emission.latest[cell] = number

    def _still(self, number: int, comes: Tensor, span: Span) -> int:
        """Values that a declared tensor keeps: it has no gradient, so nothing flows back through them."""
        if self.back is not None or not self._is_differentiable(comes):
            return number
        values = Computed((), Operand(0), "+", "pointwise", _name(comes), None, span)
        self.emission.latest[values] = number
        return self.emission.read(Ruled(values, None, (), False, _name(comes), False, span))

    def _refuse_alone(self, cell: Stored, number: int, each: ast.Assigned) -> None:
        """Refuse that a parameter, which all ranks have, goes by a gradient that this rank has alone."""
        if self.ranks == 1 or cell.kind != "parameter" or self.back is None:
            return
        target = each.target
        name = target.tensor.name if isinstance(target, ast.Access) else target.name
        self.merges.check(name, number, [stands for stands, _ in self.back[1]], each.span)

    def _target(
        self, frame: Evaluation, target: ast.Reference | ast.Access | ast.Declared
    ) -> Tensor:
        match target:
            case ast.Declared():
                return self.declare(frame, target)
            case ast.Access():
                if "merge" in target.part:
                    message = "`merge` is what comes from other ranks: it is read, and not assigned"
                    name = target.span.text().partition(".merge")[0]
                    raise MeaningError(
                        "E0426", message, target.span, f"`{name} =+ {name}.merge` sums"
                    )
                value: Tensor = self.access(frame, target)
            case ast.Reference():
                value = self._read(self.meaning(frame, target), target.span)
            case _:
                assert_never(target)
        if isinstance(value, NumberTensor):
            raise MeaningError(
                "E0426", "a number is not assigned", target.span, "assign to a tensor"
            )
        if not isinstance(value, Stored):
            self.needed(value)
        return value

    def _right(self, frame: Evaluation, each: ast.Assigned) -> tuple[Tensor, Logic]:
        """The tensor on the right side of an assignment, and how its axes meet."""
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
        if each.accumulator is None and drops(logic):
            message = "`=:` folds nothing, and this logic drops axes"
            place = each.logic.span if each.logic else each.span
            raise MeaningError("E0447", message, place, "`=:+` sums over them")
        if fold is None and drops(logic):
            message = f"`={each.accumulator}` has no order in which to fold the axes that this logic drops"
            raise MeaningError("E0447", message, each.span, "`=:+` sums over them")
        return self.operation(scalar, fold or "+", logic, given, each.span, each.schedule)  # type: ignore[arg-type]

    def _assigned(self, cell: Tensor, each: ast.Assigned, comes: Tensor, logic: Logic) -> int:
        """The node of the values that a tensor has after an assignment."""
        partial = each.accumulator in (None, "?/") and has_places(logic)
        if each.accumulator is None or each.fresh:
            value = self._from_neutral(each, comes)
            if not (partial and not each.fresh and cell in self.emission.latest):
                return self.needed(self._own(value, each.span))
            before: Tensor = self._now(cell, each.span)
        else:
            before = self._now(cell, each.span)
            value = self.pointwise(joined(each.accumulator), [before, comes], each.span)
        if partial:
            value = self._reached(each, logic, comes, value, before)
        return self.needed(value)

    def _reached(
        self, each: ast.Assigned, logic: Logic, comes: Tensor, value: Tensor, before: Tensor
    ) -> Tensor:
        """New values where a logic reaches, those before elsewhere."""
        assert isinstance(comes, Computed)
        ones = Apply("add", (Apply("mul", (Constant(0), Constant(0))), Constant(1)))
        mask = Computed(comes.operands, ones, "+", logic, comes.text, None, each.span)
        chosen = Apply("where", (Operand(0), Operand(1), Operand(2)))
        return self.pointwise(chosen, [mask, value, before], each.span)

    def _now(self, cell: Tensor, span: Span) -> Tensor:
        """The values that a tensor has now, as a tensor that keeps them."""
        number = self.needed(cell)
        now = Computed((cell,), Operand(0), "+", "pointwise", _name(cell), None, span)
        self.emission.latest[now] = number
        return now

    def _own(self, value: Tensor, span: Span) -> Tensor:
        """Values that nothing else keeps: a copy of what another tensor keeps, or of a number."""
        if isinstance(value, Stored | NumberTensor | Ruled) or value in self.emission.latest:
            return self.pointwise(Operand(0), [value], span)
        return value

    def _from_neutral(self, each: ast.Assigned, comes: Tensor) -> Tensor:
        """An accumulator applied to its neutral element and the value that comes."""
        match each.accumulator:
            case "-":
                return self.pointwise(Apply("sub", (Constant(0), Operand(0))), [comes], each.span)
            case "/":
                return self.pointwise(Apply("recip", (Operand(0),)), [comes], each.span)
            case "**":
                one = NumberTensor(1, each.span)
                return self.pointwise(joined("**"), [one, comes], each.span)
            case "&&" | "||":
                return self.pointwise(Apply("truth", (Operand(0),)), [comes], each.span)
            case _:
                return comes

    # -- the end -----------------------------------------------------------------------------------------------------

    def end(self, inputs: Sequence[Stored]) -> None:
        """Give tensors what their functions say that they have in the next run.

        Raises:
            MeaningError: E0285 (ranks would go apart).
        """
        data = [self.emission.first[each] for each in inputs]
        for cell, (value, span) in self.next.items():
            number = self.needed(self._own(value, span))
            if self.ranks != 1:
                self.merges.check_kept(cell.name, number, data, span)
            self.emission.assign(cell, number)
            self.assigned[cell] = span

    def path(self, cell: Stored) -> str:
        """The path of a parameter, of a gradient, or of what a routine declares."""
        if cell.kind == "gradient":
            value = self.of[cell]
            return f"{self.path(value) if isinstance(value, Stored) else _name(value)}.grad"
        if cell in self.owners:
            first, routine = self.owners[cell]
            base = self.path(first) if isinstance(first, Stored) else routine
            return f"{base}.{cell.name}"
        owner_path = cell.owner.path() if cell.owner is not None else ()
        return ".".join((*owner_path, cell.name))


def _written(value: Tensor, span: Span) -> str:
    """The name of a tensor where its gradient is read: ``a`` of ``a.grad``."""
    return _name(value) if isinstance(value, Stored) else span.text().removesuffix(".grad")


def _name(value: Tensor) -> str:
    match value:
        case Stored() | Ruled():
            return value.name
        case Computed():
            return value.text
        case _:
            return value.span.text()


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


def _is_copy(value: Tensor) -> bool:
    """Whether a value is another one, element by element, such as a slot of an operation that repeats it."""
    return isinstance(value, Computed) and value.scalar == Operand(0)
