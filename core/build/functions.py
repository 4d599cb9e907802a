"""Tensor functions: their expressions become tensors (``build/values.py``), their strings parameters with paths.

Example, ``op layer(x; hid) = ?/("w" * x + "b" hid)`` called as ``layer(x; 64)`` in the definition that is run:
    layer.w and layer.b are parameters, b with 64 output axes;
    n1 = compose(layer.w, x);  n2 = n1 + layer.b;  n3 = relu(n2)

Names, calls, configuration and paths end here. Shapes are not known yet, but for what is written of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ilang.core.build import values
from ilang.core.build.callers import Callers
from ilang.core.build.settings import (
    Around,
    Configuration,
    DefinitionInstance,
    Evaluation,
    Meaning,
    Setting,
)
from ilang.core.build.tensor import Rows, literal_rows
from ilang.core.diagnostic import ElementTypeError, Label, MeaningError
from ilang.core.dtype import INTEGERS
from ilang.core.ir import functions as ast
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Logic, Slice
from ilang.core.ir.primitives import ALONG, ELEMENTWISE, INFIX, PRIMITIVES
from ilang.core.ir.scalar import Apply, Constant, Operand, Scalar, minus
from ilang.core.ir.syntax import Schedule
from ilang.core.library.places import given_for
from ilang.core.limits import check_expressions
from ilang.core.record import replace
from ilang.core.source import Span

if TYPE_CHECKING:
    from ilang.core.build.along import AxesOfHeads

UNARY: dict[str, Scalar | None] = {
    "!.": None,
    "!..": None,
    "-": Apply("neg", (Operand(0),)),
    "not": Apply("not", (Operand(0),)),
    "?/": ELEMENTWISE["relu"],
}
"""The scalar of each operator with one operand; None where it is that operand itself."""


class Functions(Configuration):
    """The tensors of one program: its definitions, what is shared between their uses, and what must hold of sizes."""

    def __init__(self, around: Around) -> None:
        """For the definitions of a module."""
        super().__init__(around)
        self.expressions = 0
        self.callers = Callers()
        self.component = around.component
        self.load = around.load
        self.einx = around.einx
        self.shared: dict[str, tuple[values.Owner, dict[object, values.Owner]]] = {}
        self.constraints: list[values.Tensor] = []
        self.axes: AxesOfHeads | None = None
        self.written: dict[tuple[object, ...], int] = {}
        """The scope of what heads say of tensors."""
        self.scopes = 0
        self.scope = 0
        """The scope of the head whose tensors were noted last."""
        self.order: dict[values.Stored, int] = {}
        """Parameters in the order of evaluation."""
        self.active: dict[int, ast.Head] = {}
        """The heads of calls that are followed, by identity, the outermost first."""
        self.bindings: list[tuple[int, str, values.Tensor, Span]] = []
        """Names that are bound: so many calls deep, the name, its value and its place."""
        self.called: list[tuple[int, str, values.Tensor, Span]] = []
        """Results of calls, alike."""
        self.strings: dict[int, dict[str, list[ast.Declared]]] = {}
        """The strings that each function declares, by its identity."""
        self.untrained: dict[values.Stored, values.Custom] = {}
        self.integers: dict[values.Stored, str] = {}
        """Integer types that heads of calls write for inputs which have none."""
        self.next: dict[values.Stored, tuple[values.Tensor, Span]] = {}
        self.root: values.Owner

    def count(self, more: int, span: Span) -> None:
        """Count expressions that are evaluated: those of each call, and of each turn of a ``repeat``.

        Raises:
            MeaningError: E0250 (too many).
        """
        self.expressions += more
        check_expressions(self.expressions, span, is_exact=False)

    # -- expressions -------------------------------------------------------------------------------------------------

    def tensor(self, frame: Evaluation, term: ast.Term) -> values.Tensor:
        """The tensor that an expression is; chains of operators that lean left are followed by a loop."""
        chain: list[ast.Term] = []
        while True:
            chain.append(term)
            match term:
                case ast.Binary():
                    term = term.left
                case ast.EinsumTerm():
                    term = term.operands[0]
                case ast.Sliced():
                    term = term.operand
                case _:
                    break
        value = self._tensor(frame, chain.pop())
        self.count(len(chain), term.span)
        while chain:
            value = self._continued(frame, chain.pop(), value)
        return value

    def _continued(self, frame: Evaluation, term: ast.Term, left: values.Tensor) -> values.Tensor:
        """An expression whose left operand is a tensor already."""
        match term:
            case ast.Binary():
                return self._binary(frame, term, left)
            case ast.EinsumTerm():
                operands = [left, *(self.tensor(frame, each) for each in term.operands[1:])]
                product = Apply("mul", (Operand(0), Operand(1)))
                scalar = Operand(0) if len(operands) == 1 else product
                return self.operation(scalar, "+", term.spec, operands, term.span)
            case ast.Sliced():
                start = term.position
                if isinstance(start, ast.Reference):
                    meaning = self.meaning(frame, start)
                    if not isinstance(meaning, Setting):
                        pair = [left, tensor_of(meaning, start.span)]
                        return self.operation(Operand(0), "+", Slice(None, None), pair, term.span)
                number = self.whole(frame, start, "a position")
                return self.operation(Operand(0), "+", Slice(number, None), [left], term.span)
            case _:
                raise AssertionError(term)

    def _tensor(self, frame: Evaluation, term: ast.Term) -> values.Tensor:
        match term:
            case ast.Reference():
                return tensor_of(self.meaning(frame, term), term.span)
            case ast.Access():
                return self.access(frame, term)
            case ast.Number():
                return values.NumberTensor(term.value, term.span)
            case ast.Unit():
                rows: Rows = ((), (), ((1, term.label),))
                return values.constant(term.span.brief(), rows, [term.number], term.span)
            case ast.Nested():
                return values.constant(term.span.brief(), literal_rows(term), term, term.span)
            case ast.Declared():
                return self.parameter(frame, term)
            case ast.Unary():
                return _unary(self, term, self.tensor(frame, term.operand))
            case ast.Called():
                return _only(self.call(frame, term), term.span)
            case ast.Repeated():
                return _repeated(self, frame, term)
            case ast.ScheduledExpression():
                return _scheduled(self.tensor(frame, term.term), term.schedule)
            case ast.Listed() | ast.Text():
                kind = "a list of numbers" if isinstance(term, ast.Listed) else "a string"
                message = f"{kind} is a configuration value, and a tensor is wanted here"
                raise MeaningError("E0262", message, term.span, "a tensor is like `[ 1; 2 ]`")
            case _:
                raise AssertionError(term)

    def meaning(self, frame: Evaluation, name: ast.Reference) -> Meaning:
        """The meaning of a name in a body."""
        if name.name in frame.names:
            return frame.names[name.name]
        if name.name in frame.declared:
            return self.parameter(frame, frame.declared[name.name][0])
        if name.name in self.components:
            graph = self.component(name)
            if not graph.inputs:
                return _only(self._outputs(graph, [], name), name.span)
        raise AssertionError(name)

    def access(self, frame: Evaluation, term: ast.Access) -> values.Tensor:
        """A part of a tensor: only routines have parts."""
        raise AssertionError(term)

    def operation(
        self,
        scalar: Scalar,
        acc: str,
        logic: Logic,
        operands: Sequence[values.Tensor],
        span: Span,
        schedule: Schedule | None = None,
    ) -> values.Tensor:
        """The result of an operation."""
        place = self.callers.placed(span)
        logic = self.callers.placed(logic)
        computed = (tuple(operands), scalar, acc, logic, span.brief(), schedule, place)
        return self.callers.kept(values.Computed(*computed))

    def pointwise(
        self, scalar: Scalar, operands: Sequence[values.Tensor], span: Span
    ) -> values.Tensor:
        """A scalar function, element by element."""
        return self.operation(scalar, "+", "pointwise", operands, span)

    def _binary(self, frame: Evaluation, term: ast.Binary, left: values.Tensor) -> values.Tensor:
        if term.operator == "**.":
            return self.pointwise(_power(self.number(frame, term.right)), [left], term.span)
        right = self.tensor(frame, term.right)
        if term.operator in ("*", "/"):
            for side, value in ((term.left, left), (term.right, right)):
                if isinstance(value, values.NumberTensor) or (
                    isinstance(value, values.Stored) and value.kind == "setting"
                ):
                    raise MeaningError(
                        "E0192",
                        f"`{term.operator}` contracts axes, and `{side.span.text()}` is a number",
                        term.sign_span,
                        f"element by element it is `{term.operator}.`",
                    )
            primitive = "mul" if term.operator == "*" else "div"
            scalar = Apply(primitive, (Operand(0), Operand(1)))
            return self.operation(scalar, "+", "compose", [left, right], term.span)
        return self.pointwise(INFIX[term.operator], [left, right], term.span)

    # -- parameters --------------------------------------------------------------------------------------------------

    def parameter(self, frame: Evaluation, term: ast.Declared) -> values.Tensor:
        """The parameter that a string declares: the same one wherever the string stands in a body."""
        key = "_".join([term.name, *(str(turn + 1) for turn in frame.turns)])
        known = frame.owner.held.get(key)
        kept = any(each.kept for each in frame.declared[term.name])
        if known is None:
            rows, initial = self._first_shape(frame, term.name)
            if initial is None and kept:
                initial = 0.0
            known = values.Stored("parameter", key, rows, initial, term.span, owner=frame.owner)
            frame.owner.held[key] = known
            self.order[known] = len(self.order)
        value: values.Tensor = known
        if kept:
            # Tensors that runs give other values are not trained: nothing flows back to them.
            rule = values.Custom(known, term.name, term.span)
            value = self.untrained.setdefault(known, rule)
        frame.names.setdefault(term.name, value)
        return value

    def _first_shape(self, frame: Evaluation, name: str) -> tuple[Rows, object]:
        """The shape that the strings of one name write of a parameter; they must agree."""
        rows: Rows = ((), None, None)
        initial: object = None
        first: ast.Declared | None = None
        for term in frame.declared[name]:
            if term.extents is None and term.initial is None:
                continue
            declared: tuple[Rows, object]
            if term.extents is not None:
                extents = [self.whole(frame, each, "an extent", 1) for each in term.extents]
                declared = ((), (), tuple((extent, None) for extent in extents)), None
            elif isinstance(term.initial, ast.Nested):
                declared = literal_rows(term.initial), term.initial
            else:
                assert term.initial is not None
                declared = ((), None, None), term.initial.value
            if first is not None and declared != (rows, initial):
                raise MeaningError(
                    "E0271",
                    f"{name} is declared in two ways: `{first.span.text()}` and `{term.span.text()}`",
                    term.span,
                    "the same string is the same parameter: write its shape or its values once",
                    [Label(first.span, "first here"), Label(term.span, "again here")],
                )
            (rows, initial), first = declared, first or term
        return rows, initial

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(self, frame: Evaluation, term: ast.Called) -> Sequence[values.Tensor]:
        """The outputs of a call, whose name, arguments and configuration fit (``notation/functions/misused.py``)."""
        self.count(1, term.span)
        name = term.component.name if isinstance(term.component, ast.Reference) else None
        if name is not None:
            meaning = frame.names.get(name)
            if isinstance(meaning, DefinitionInstance):
                function, owner, settings = meaning.function, meaning.owner, meaning.settings
                given = self.arguments(frame, term.arguments)
                return [self.applied(function, owner, given, settings, term, {})]
            if name in self.functions:
                function, given = self.functions[name], self.arguments(frame, term.arguments)
                settings, label = self.settings(frame, function.head, term.settings)
                owner, kept = self._owner(frame, function, label or name, term)
                return [self.applied(function, owner, given, settings, term, kept)]
            if name not in self.components and name in PRIMITIVES:
                return [_primitive(self, frame, name, term)]
        graph = self.component(term.component)
        given = self.arguments(frame, term.arguments)
        names = graph.input_names()
        words = given_for(names, [each.span.text() for each in term.arguments])
        return self._outputs(graph, given, term, words)

    def arguments(self, frame: Evaluation, terms: Sequence[ast.Term]) -> list[values.Tensor]:
        """The tensors of arguments; a call stands for all of its outputs."""
        given: list[values.Tensor] = []
        for term in terms:
            if isinstance(term, ast.Called):
                given += self.call(frame, term)
            else:
                given.append(self.tensor(frame, term))
        return given

    def _outputs(
        self,
        graph: Graph,
        given: Sequence[values.Tensor],
        term: ast.Called | ast.Reference,
        words: str = "",
    ) -> list[values.Tensor]:
        span = term.span
        graph = self.callers.graph(graph, span, words)
        component = values.ComponentCall(graph, tuple(given), span)
        if isinstance(term, ast.Called):
            name = term.component.span.brief()
            self.callers.component(component, name, [each.span for each in term.arguments])
        return [values.Output(component, number, span) for number in range(len(graph.outputs))]

    def bind(self, frame: Evaluation, name: str, term: ast.Term) -> None:
        """Give a name to what a term is: a tensor, or an instance of a definition."""
        if isinstance(term, ast.Called) and not term.arguments and term.settings is not None:
            component = term.component
            function = (
                self.functions.get(component.name) if isinstance(component, ast.Reference) else None
            )
            if function is not None and function.head.tensors:
                settings, label = self.settings(frame, function.head, term.settings)
                owner, _ = self._owner(frame, function, label or name, term)
                frame.names[name] = DefinitionInstance(function, settings, owner, term.span)
                return
        value = self.tensor(frame, term)
        frame.names[name] = value
        if isinstance(value, values.Computed | values.Output | values.Custom):
            self.bindings.append((len(self.active), name, value, term.span))

    def _owner(
        self, frame: Evaluation, function: ast.Function, base: str, term: ast.Called
    ) -> tuple[values.Owner, dict[object, values.Owner] | None]:
        """Whose parameters a call has."""
        head = function.head
        if head.configuration is None:
            if head.name not in self.shared:
                self.shared[head.name] = (self.root.use(head.name, head.name, head.span), {})
            return self.shared[head.name]
        place = (id(term), frame.turns, frame.owner)
        if frame.kept is not None and place in frame.kept:
            return frame.kept[place], frame.kept
        owner = frame.owner.use(base, head.name, term.span)
        if frame.kept is not None:
            frame.kept[place] = owner
        return owner, frame.kept

    def applied(
        self,
        function: ast.Function,
        owner: values.Owner,
        given: Sequence[values.Tensor],
        settings: Mapping[str, Setting],
        term: ast.Called,
        kept: dict[object, values.Owner] | None,
    ) -> values.Tensor:
        """The result of a tensor function.

        Args:
            function: what is called.
            owner: has the parameters of this use of it.
            given: the tensors of its head.
            settings: its configuration by name.
            term: the call.
            kept: the owners of calls inside it, by place, where all calls of the function share one set of parameters.
        """
        head, span = function.head, term.span
        if len(self.active) == ast.DEEPEST:
            message = f"more than {ast.DEEPEST} tensor functions each call the next"
            raise MeaningError("E0114", message, span, "write some of them as one")
        self.active[id(head)] = head
        with self.callers.called(head, span, term.arguments, given):
            names = self.noted(head.tensors, given)
            names.update(settings)
            if isinstance(function.body, ast.CustomOperation):
                from ilang.core.build.customs import custom

                result = custom(self, function, given, settings, span)
            else:
                if id(function) not in self.strings:
                    self.strings[id(function)] = ast.strings(function.body)
                frame = Evaluation(owner, names, self.strings[id(function)], (), kept)
                frame.scope = self.scope
                result = self.body(frame, function.body)
        del self.active[id(head)]
        self.called.append((len(self.active), head.name, result, span))
        return result

    def noted(
        self, heads: Sequence[ast.TensorParameter], given: Sequence[values.Tensor]
    ) -> dict[str, Meaning]:
        """The tensors of a head by name; what it writes of their rows is noted, once of the same tensors.

        An input of the program without a type, which a head takes as integers, has the type that this head writes.

        Raises:
            ElementTypeError: E0604 (it is written as a float).
        """
        for head, value in zip(heads, given, strict=True):
            if (
                head.dtype in INTEGERS
                and isinstance(value, values.Stored)
                and value.kind == "input"
            ):
                if (value.dtype or head.dtype) not in INTEGERS:
                    message = f"`{value.name}` is {value.dtype}, and is given as `{head.name}`, of type {head.dtype}"
                    help_line = f"write `{value.name}: {head.dtype}`"
                    raise ElementTypeError("E0604", message, value.span, help_line)
                self.integers.setdefault(value, head.dtype)
        self.scopes += 1
        names: dict[str, Meaning] = {
            head.name: value for head, value in zip(heads, given, strict=True)
        }
        key = (tuple([head.shape for head in heads]), *given)
        self.scope = self.written.setdefault(key, self.scopes)
        self.callers.scope(self.scopes)
        if self.scope != self.scopes:
            return names
        for head, value in zip(heads, given, strict=True):
            if head.shape is not None:
                self.callers.noted(value, head.name, head.shape, self.scopes)
        return names

    def body(self, frame: Evaluation, body: ast.Body) -> values.Tensor:
        """The result of a body.

        What ``"name" =: EXPR`` gives is what the next run begins with; in this one the name means what it began with.

        Raises:
            MeaningError: E0282 (two values for the next run).
        """
        for each in body.bindings:
            if isinstance(each, ast.StateUpdate):
                value = self.parameter(frame, each.target)
                assert isinstance(value, values.Custom)
                assert isinstance(value.value, values.Stored)
                if value.value in self.next:
                    name = each.target.name
                    message = f"`{name}` is given two values for the next run: two calls share it"
                    help_line = "a definition whose head has a `;` makes its own for each call"
                    raise MeaningError("E0282", message, each.span, help_line)
                self.next[value.value] = (self.tensor(frame, each.term), each.span)
            elif each.name is None:
                self.constraints.append(self.tensor(frame, each.term))
            else:
                self.bind(frame, each.name, each.term)
        return self.tensor(frame, body.result)


def _repeated(build: Functions, frame: Evaluation, term: ast.Repeated) -> values.Tensor:
    """``repeat``: the result of each turn is what the next begins with."""
    given = build.setting(frame, term.over)
    over, span, turns = build.known(given), term.span, None
    if not isinstance(over, tuple):
        span, turns = given.span, build.whole(frame, term.over, "a count")
        build.count(turns, term.span)
        over = tuple(range(turns))
    carried = build.tensor(frame, term.start)
    for turn, value in enumerate(over):
        names: dict[str, Meaning] = {
            term.carried: carried,
            term.variable: Setting(value, span, turns=turns),
        }
        carried = build.body(frame.within(names, turn), term.body)
    return carried


def _primitive(build: Functions, frame: Evaluation, name: str, term: ast.Called) -> values.Tensor:
    takes_all = name in ELEMENTWISE or name in ALONG
    given = build.arguments(frame, term.arguments) if takes_all else []
    if name in ALONG and len(given) == 1:
        from ilang.core.build.along import along

        return along(build, frame, name, term, given[0])
    if name in ELEMENTWISE:
        return build.pointwise(ELEMENTWISE[name], given, term.span)
    from ilang.core.build.special import special

    return special(build, frame, name, term)


def tensor_of(meaning: Meaning, span: Span) -> values.Tensor:
    """The tensor that a name means.

    Raises:
        MeaningError: E0262 (a list of numbers, or a string).
    """
    if isinstance(meaning, Setting):
        if meaning.tensor is not None:
            return meaning.tensor
        if not isinstance(meaning.value, tuple | str):
            return values.NumberTensor(meaning.value, span)
        kind = "list of numbers" if isinstance(meaning.value, tuple) else "string"
        message = f"a {kind} is a configuration value, and no tensor"
        labels = [Label(span, "a tensor belongs here"), Label(meaning.span, kind)]
        help_line = "a list is for `repeat(x; h in hids) { ... }`; a number is a tensor"
        raise MeaningError("E0262", message, span, help_line, labels)
    assert not isinstance(meaning, DefinitionInstance), span
    return meaning


def _scheduled(value: values.Tensor, schedule: Schedule) -> values.Tensor:
    if isinstance(value, values.Computed):
        return replace(value, schedule=schedule)
    message = "a schedule is that of an operation, and this is none"
    raise MeaningError("E0267", message, schedule.span, "write it after an operation")


def _unary(build: Functions, term: ast.Unary, operand: values.Tensor) -> values.Tensor:
    if term.operator == "-" and isinstance(operand, values.NumberTensor):
        return values.NumberTensor(minus(operand.value), term.span)
    scalar = UNARY[term.operator]
    return operand if scalar is None else build.pointwise(scalar, [operand], term.span)


def _only(outputs: Sequence[values.Tensor], span: Span) -> values.Tensor:
    if len(outputs) != 1:
        message = f"a call in an expression has one output, and this one has {len(outputs)}"
        raise MeaningError("E0443", message, span, "define one that gives this output alone")
    return outputs[0]


def _power(exponent: float) -> Scalar:
    """``x **. n``: the exponent is known when the program is built, so that it needs no logarithm."""
    match exponent:
        case 1:
            return Operand(0)
        case 2:
            return Apply("square", (Operand(0),))
        case -1:
            return Apply("recip", (Operand(0),))
        case _:
            return Apply("pow", (Operand(0), Constant(float(exponent))))
