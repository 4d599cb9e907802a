"""Shapes that do not fit, told at the call that gives them: which function, which argument, which shape.

Inference draws conclusions in any order, so what it refuses may stand far from the mistake. Here a program that was
refused is followed once more as it is read: each value after what it is computed from, the head of a call before its
body. The first step that does not fit what stands before it is told.

Example, of ``op loss(x, t) = squared_error(linear(x; 2), t)`` with x: 4|3 and t: 4|5:
    steps    linear(x; 2) is [4|2];  t is [4|5];  y[b|c] is linear(x; 2);  t[b|c] is t, and does not fit
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.diagnostic import Label, ShapeError, enumerated
from ilang.core.infer.arguments import Arguments, Note
from ilang.core.infer.cycles import check_ranks
from ilang.core.infer.notes import compared
from ilang.core.infer.operations import GraphConstraints
from ilang.core.infer.rowvars import resolved
from ilang.core.infer.solver import Solver
from ilang.core.ir.graph import Annotation, DefinitionCall, Graph
from ilang.core.ir.operation import Noted, Terminal
from ilang.core.ir.rows import Constraint, Shape
from ilang.core.record import replace
from ilang.core.source import SHAPES

UNDETERMINED = ("E0520", "E0521", "E0575", "E0578")
"""The codes of sizes that nothing gives: what stands behind a step may give them."""


def blamed(graph: Graph, error: ShapeError) -> ShapeError:
    """An error of the shapes of a graph, told at the call of a definition where one is at fault."""
    if not graph.calls:
        return error
    try:
        program = _Reading(graph)
    except ShapeError:
        return error
    refused = program.first_refused() or program.first_refused(error.code)
    if refused is None:
        return error
    number, reason = refused
    return program.misfit(number) or program.inside(number, reason)


_Step = tuple[tuple[int, int, int, int], int]
"""The place of a step, and the number of its constraints: that of a node, then those of what a graph says beside them.

A place is a node and 0, or, behind the nodes of its arguments, that of what the head of a call writes of one of them:
the last node, 1, the number of the call, and the parameter.
"""


class _Reading:
    """The steps of a program, in the order in which it is read."""

    def __init__(self, graph: Graph) -> None:
        """Collect the constraints of a graph. Raises: ShapeError, where ranks alone do not fit."""
        self.graph = graph
        self.calls = graph.calls
        self.file = graph.calls[0].span.source.name
        self.beside = (*graph.annotations, *graph.constraints)
        self.collected = GraphConstraints(graph)
        self.steps = sorted(self._steps())
        self.call_of = {node: n for n, call in enumerate(graph.calls) for node in call.nodes}

    def _steps(self) -> Iterator[_Step]:
        nodes = len(self.graph.nodes)
        for node in range(nodes):
            yield (node, 0, 0, 0), node
        calls = {
            (call.is_component, scope): n
            for n, call in enumerate(self.calls)
            for scope in call.scopes
        }
        for number, each in enumerate(self.beside, nodes):
            n = -1
            if isinstance(each, Noted | Annotation):
                n = calls.get((isinstance(each, Annotation), each.scope), -1)
            if (
                isinstance(each, Noted | Annotation)
                and n >= 0
                and each.value in self.calls[n].given
            ):
                given, parameters = self.calls[n].given, self.calls[n].parameters
                parameter = next(
                    p
                    for p, value in enumerate(given)
                    if value == each.value and parameters[p].startswith(each.name)
                )
                yield (max(given), 1, n, parameter), number
            else:
                values = (each.value,) if isinstance(each, Annotation) else compared(each)
                yield (max(values, default=nodes), 0, 1, number), number

    def _note(self, step: _Step) -> Note:
        """The rows of an argument as the head that a step is writes them."""
        note = self.beside[step[1] - len(self.graph.nodes)]
        assert isinstance(note, Noted | Annotation)
        return note

    def first_refused(self, code: str = "") -> tuple[int, ShapeError] | None:
        """The first step that does not fit those before it, and what says so; None where all of them fit.

        With the ``code`` of an error, what the steps leave open ends: an error of this code does not fit.
        """
        reason = None if code in UNDETERMINED else self._refusal(self.collected, self.steps, code)
        if reason is None:
            return None
        fitting, refused = 0, len(self.steps)  # so many steps fit, and so many do not
        while fitting + 1 < refused:
            middle = (fitting + refused) // 2
            error = self._refusal(self.collected, self.steps[:middle], code)
            if error is None:
                fitting = middle
            else:
                refused, reason = middle, error
        return refused - 1, reason

    @staticmethod
    def _refusal(
        collected: GraphConstraints, steps: Sequence[_Step], code: str = ""
    ) -> ShapeError | None:
        """The refusal of some steps, of what follows from them; with a ``code`` see ``first_refused``."""
        try:
            solver = _followed(collected, steps)
            if code:
                solver.close()
        except ShapeError as error:
            return error if not code or error.code == code else None
        return None

    def _shapes(self, steps: Sequence[_Step], values: Sequence[int]) -> list[Shape]:
        """The shapes of values by what some steps say; what these leave open ends, unless inputs are open."""
        solver = _followed(self.collected, steps)
        inputs = (self.graph.nodes[value] for value in self.calls[0].given if value >= 0)
        if not any(isinstance(node, Terminal) and None in node.rows for node in inputs):
            try:
                solver.close()
            except ShapeError:
                solver = _followed(self.collected, steps)
        shapes = []
        for value in values:
            batch, inner, output = (
                resolved(solver.rows, row) for row in self.collected.shapes[value]
            )
            shapes.append((batch, inner, output))
        return shapes

    # -- heads -------------------------------------------------------------------------------------------------------

    def misfit(self, number: int) -> ShapeError | None:
        """The refusal of an argument that has not the rows which a head writes; None of a step that is no head."""
        (_, is_head, n, parameter), _ = step = self.steps[number]
        if not is_head:
            return None
        call, before = self.calls[n], self.steps[:number]
        notes = {
            place[3]: self._note((place, each))
            for place, each in (*before, step)
            if place[1:3] == (1, n)
        }
        known = sorted(notes)
        shapes = self._shapes(before, [call.given[n] for n in known])
        arguments = Arguments(call, dict(zip(known, shapes, strict=True)), notes)
        error = arguments.misfit(parameter, self._input(call.given[parameter]))
        note = notes[parameter]
        written = note.note.span if isinstance(note, Noted) else note.span
        labels = [Label(written, f"what `{call.name}` takes")]
        if n:
            outer = self._outer(call)
            at_call, message = "called here", error.message
            if outer is not call:
                message = f"in `{outer.name}`, {message}"
                at_call = f"`{outer.name}` is called here"
            elif call.argument_span:
                argument = call.argument_span[parameter]
                labels.insert(0, Label(argument, arguments.subject(parameter)))
            labels.insert(0, Label(outer.span, at_call))
            error = ShapeError(error.code, message, None, error.help)
        return ShapeError(error.code, error.message, labels[0].span, error.help, labels)

    def _input(self, value: int) -> str:
        """The parameter of the definition that is run which a value is, where its head writes no rows of it."""
        run = self.calls[0]
        written = run.parameters[run.given.index(value)] if value in run.given else ""
        return "" if "[" in written else written

    def _outer(self, call: DefinitionCall) -> DefinitionCall:
        """A call, or, of one in a library, the call of the file around it."""
        while call.span.source.name != self.file and call.within > 0:
            call = self.calls[call.within]
        return call

    # -- bodies ------------------------------------------------------------------------------------------------------

    def inside(self, number: int, reason: ShapeError) -> ShapeError:
        """An error in a body, told at the outermost call whose arguments are at fault; where none is, as it is."""
        before, chain = self.steps[: number + 1], list[int]()
        (node, is_head, _, _), _ = self.steps[number]
        around = 0 if is_head else self.call_of.get(node, 0)
        while around > 0:
            chain.insert(0, around)
            around = self.calls[around].within
        for each in chain:
            call = self.calls[each]
            if call.span.source.name != self.file:
                break
            if self._fits_alone(each, before, reason):
                known = [n for n, value in enumerate(call.given) if value >= 0]
                shapes = self._shapes(before[:-1], [call.given[n] for n in known])
                arguments = Arguments(call, dict(zip(known, shapes, strict=True)), {})
                subjects = enumerated([arguments.subject(n) for n in known])
                labels = [
                    Label(call.span, f"called here: {subjects}" if subjects else "called here")
                ]
                labels += [
                    label
                    for label in reason.labels
                    if label.span != call.span and label.span.source.name != SHAPES
                ]
                return ShapeError(reason.code, reason.message, call.span, reason.help, labels)
        return reason

    def _fits_alone(self, number: int, steps: Sequence[_Step], reason: ShapeError) -> bool:
        """Whether those of some steps that are in a call fit where nothing is known of what it is given."""
        inside = {number}
        for n, call in enumerate(self.calls):
            inside |= {n} if call.within in inside else set()
        nodes = {node for n in inside for node in self.calls[n].nodes}
        given = self.calls[number].given
        opened = tuple(
            replace(node, kind="fill", rows=(None, None, None))
            if value in given and isinstance(node, Terminal) and node.kind != "number"
            else node
            for value, node in enumerate(self.graph.nodes)
        )
        try:
            collected = GraphConstraints(replace(self.graph, nodes=opened))
        except ShapeError:
            return False
        held = [
            ((node, is_head, call, rest), number)
            for (node, is_head, call, rest), number in steps
            if (call in inside if is_head else number == node and node in nodes)
        ]
        code = reason.code if reason.guessed else ""
        return self._refusal(collected, held, code) is None


def _followed(collected: GraphConstraints, steps: Sequence[_Step]) -> Solver:
    """The solver with some steps, and all that follows from them. Raises: ShapeError."""
    constraints: list[Constraint] = []
    for _, number in steps:
        first = collected.ends[number - 1] if number else 0
        constraints += collected.constraints[first : collected.ends[number]]
    check_ranks(collected.rows, constraints)
    solver = Solver(collected.dims, collected.rows, collected.names, collected.arrays.given)
    solver.submit(constraints)
    return solver
