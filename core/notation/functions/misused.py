"""Definitions of tensor functions and routines whose names, calls and statements do not fit together.

In:  ``cd run(a, b) { "c" =: a * b; return d }``
Out: E0446 (`*` without a logic), E0401 (no `d`)
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.diagnostic import Error, Label, ModuleError, counted
from ilang.core.ir import functions as ast
from ilang.core.ir.primitives import PRIMITIVES
from ilang.core.ir.spec import names_of, variable_text
from ilang.core.ir.syntax import DISCARD
from ilang.core.notation.functions.calling import miscalled
from ilang.core.notation.functions.environment import KINDS, Environment, File, NameEntry
from ilang.core.notation.functions.resolving import TENSOR_NAME, Terms
from ilang.core.source import Span

LOGIC_HELP = '`~logic:"@"` contracts, `~logic:"."` goes element by element'


def misused(definitions: Sequence[ast.Function | ast.Routine], file: File) -> list[Error]:
    """Errors in how definitions use names."""
    refused: list[Error] = []
    for each in definitions:
        one = _Definition(file, refused, each)
        one.check()
    return refused


class _Definition(Terms):
    """One tensor function or routine."""

    def __init__(
        self, file: File, refused: list[Error], definition: ast.Function | ast.Routine
    ) -> None:
        super().__init__(file, refused)
        self.definition = definition
        self.in_primitive = False

    def check(self) -> None:
        """Note what is wrong."""
        definition = self.definition
        environment = self._head(definition.head)
        end = Span(definition.span.source, definition.span.end - 1, definition.span.end)
        if isinstance(definition, ast.Routine):
            self._strings(definition.statements, environment)
            environment["ranks"] = (NameEntry("ranks", "number", definition.head.span),)
            self.statements(definition.statements, environment)
            self._returns(definition.statements)
        elif isinstance(definition.body, ast.CustomOperation):
            self._primitive_body(definition.body, environment, len(definition.head.tensors))
            return
        else:
            self._strings(definition.body, environment)
            self._later(definition.body)
            self.body(definition.body, environment)
        self.names.unused(end)

    def _head(self, head: ast.Head) -> Environment:
        environment: Environment = {}
        for tensor in head.tensors:
            span = tensor.span.begin(len(tensor.name))
            self.names.bind(environment, NameEntry(tensor.name, "input", span))
        for each in head.configuration or ():
            if each.default is not None and not isinstance(each.default, ast.Text):
                self.look(each.default, environment, "a default")
            span = each.span.begin(len(each.name))
            self.names.bind(environment, NameEntry(each.name, "configuration", span))
        return environment

    def _strings(self, node: object, environment: Environment) -> None:
        """Bind the names of strings, which hold in the whole definition."""
        targets: dict[str, ast.Declared] = {}
        for each in ast.nodes_within(node):
            if not isinstance(each, ast.Declared):
                continue
            name = each.name
            if each.kept and name in targets:
                labels = (Label(each.span, "again here"), Label(targets[name].span, "first here"))
                message = f"`{name}` is given two values for the next run"
                self.refused.append(
                    ModuleError("E0423", message, each.span, "keep one of them", labels)
                )
            elif each.kept:
                targets[name] = each
            if not TENSOR_NAME.fullmatch(name):
                message = f'"{name}" declares a tensor, and this is no name'
                help_line = "a name is made of letters, digits and `_`"
                self.refused.append(ModuleError("E0449", message, each.span, help_line))
            elif name not in environment or environment[name][0].kind != "declared":
                self.names.bind(environment, NameEntry(name, "declared", each.span))

    def _later(self, node: object) -> None:
        """Take note of every name that a statement binds."""
        for each in ast.nodes_within(node):
            if isinstance(each, ast.NameBinding) and each.name is not None:
                self.names.later.setdefault(each.name, each.name_span)

    def _primitive_body(
        self, body: ast.CustomOperation, environment: Environment, count: int
    ) -> None:
        """The forward and the backward code of an operation: its operands are slots, not the names of the head."""
        self.in_primitive = True
        span = self.definition.head.span
        slots = ["v", *(f"v{n}" for n in range(1, count + 1))]
        gradients = ["g", *(f"g{n}" for n in range(1, count + 1))]
        if body.logic.spec is not None:
            self.operands_of(body.logic.spec, count)
        named = {n: each for n, each in environment.items() if each[0].kind == "configuration"}
        self._later(body)
        for statements, known in ((body.forward, slots), (body.backward, [*slots, *gradients])):
            inner = {**named, **{slot: (NameEntry(slot, "slot", span),) for slot in known}}
            slot_entries = {slot: inner[slot][0] for slot in known}
            self._strings(statements, inner)
            self.statements(statements or (), inner)
            for n, tensor in enumerate(self.definition.head.tensors, 1):
                used = any(
                    slot_entries[slot].used for slot in (f"v{n}", f"g{n}") if slot in slot_entries
                )
                environment[tensor.name][0].used |= used
        self.names.unused(Span(body.span.source, body.span.end - 1, body.span.end))

    # -- statements --------------------------------------------------------------------------------------------------

    def statements(self, statements: Sequence[ast.Statement], environment: Environment) -> None:
        """Statements in order; what they bind is added to the environment."""
        self._later(statements)
        for each in statements:
            self._statement(each, environment)

    def _statement(self, each: ast.Statement, environment: Environment) -> None:
        """Look at every term of a statement, and bind the names that it gives to those after it."""
        match each:
            case ast.Assigned():
                self._assigned(each, environment)
            case ast.NameBinding():
                entry = NameEntry(each.name or DISCARD, "value", each.name_span)
                self.bind(each.name, each.term, environment, entry)
            case ast.TensorStatement():
                self.look(each.tensor, environment)
            case ast.ForEach():
                self.look(each.tensor, environment)
                inner = dict(environment)
                self.names.bind(inner, NameEntry(each.variable, "value", each.name_span))
                self.statements(each.statements, inner)
            case ast.Condition():
                self._condition(each, environment)
            case ast.Called():
                self._routine_called(each, environment)
            case ast.Returned():
                for term in each.terms:
                    self.look(term, environment)
            case ast.Commented():
                for part in each.says:
                    if not isinstance(part, ast.Text):
                        self.look(part, environment)
                self.statements(each.statements, environment)

    def _condition(self, each: ast.Condition, environment: Environment) -> None:
        """Branches bind what they bind together."""
        self.look(each.test, environment, "a condition")
        branches = []
        for statements in (each.statements, each.otherwise):
            branches.append(dict(environment))
            self.statements(statements, branches[-1])
        for branch in branches:
            for name, entries in branch.items():
                known = environment.get(name, ())
                environment[name] = known + tuple(e for e in entries if e not in known)

    def _routine_called(self, each: ast.Called, environment: Environment) -> None:
        routine, file = each.component, self.file
        assert isinstance(routine, ast.Reference)
        name = routine.name
        for term in each.arguments:
            self.look(term, environment)
        for setting in each.settings or ():
            self.setting(setting, environment)
        if name in file.routines and name not in environment:
            head = file.routines[name]
            self.refused += miscalled(head, each, file, labelled=False)
        elif (name in file.names or name in PRIMITIVES) and name not in environment:
            kind = "a tensor function" if name in file.functions else "a component"
            kind = kind if name in file.names else "a primitive"
            message = f"`{name}` is {kind}, and a statement calls a routine"
            help_line = f"bind what it gives: `y = {each.span.text()}`"
            if len(help_line) > 80 or "\n" in help_line:
                help_line = f"bind what it gives: `y = {name}(…)`"
            labels = [Label(routine.span, "called here")]
            labels += [Label(file.names[name], "defined here")] if name in file.names else []
            self.refused.append(ModuleError("E0440", message, routine.span, help_line, labels))
        else:
            self.names.unknown_function(environment, name, routine.span)

    def _returns(self, statements: Sequence[ast.Statement]) -> None:
        """`return` is the last statement of a routine."""
        last = statements[-1] if statements else None
        for each in ast.nodes_within(tuple(statements)):
            if isinstance(each, ast.Returned) and each is not last:
                message = "`return` is not the last statement of the routine"
                place = each.span.begin(len("return"))
                labels = [Label(place, "here")]
                labels += [] if last is None else [Label(last.span, "the last one")]
                help_line = "a routine returns once, at its end"
                self.refused.append(ModuleError("E0448", message, place, help_line, labels))

    # -- assignments -------------------------------------------------------------------------------------------------

    def _assigned(self, each: ast.Assigned, environment: Environment) -> None:
        target = each.target.tensor if isinstance(each.target, ast.Access) else each.target
        if isinstance(target, ast.Reference):
            self._target(target, environment)
        right = each.right
        if not isinstance(right, ast.Single):
            self.look(right, environment)
            self._logic(each, 1)
            return
        for operand in right.operands:
            self.look(operand, environment)
        self._logic(each, len(right.operands))
        if right.operator in ("*", "/") and each.logic is None and not self.in_primitive:
            message = f"`{right.operator}` between two operands of an assignment may contract, or go element by element"
            left, other = (operand.span.text() for operand in right.operands)
            dotted = f"`{left} {right.operator}. {other}` goes element by element"
            help_line = f'{dotted}, `~logic:"@"` behind the operands contracts'
            if right.operator == "/":
                help_line = dotted
            self.refused.append(ModuleError("E0446", message, right.span, help_line))

    def _target(self, target: ast.Reference, environment: Environment) -> None:
        entry = self.names.read(environment, target.name)
        if entry is None:
            if target.name not in self.names.later and target.name not in self.file.names:
                declared = f'a string declares it: `"{target.name}" =: ...`'
                help_line = self.file.guesses.did_you_mean(target.name, environment, declared)
                message = f"there is no tensor named `{target.name}`"
                self.refused.append(ModuleError("E0401", message, target.span, help_line))
            elif target.name in self.names.later:
                self.names.unknown(environment, target.name, target.span)
            else:
                message = f"`{target.name}` is a definition, and a tensor is assigned"
                help_line = f'another name is declared by a string: `"{target.name}_" =: ...`'
                self.refused.append(ModuleError("E0426", message, target.span, help_line))
        elif entry.kind in ("configuration", "number", "instance"):
            message = f"`{target.name}` is {KINDS[entry.kind]}, and a tensor is assigned"
            labels = (Label(target.span, "assigned here"), Label(entry.span, "named here"))
            help_line = "a string declares a tensor: `" + f'"{target.name}_" =: ...`'
            self.refused.append(ModuleError("E0426", message, target.span, help_line, labels))

    def _logic(self, each: ast.Assigned, operands: int) -> None:
        """The logic has as many operands, and `=:` drops no axis."""
        logic = each.logic
        if logic is None:
            return
        if logic.spec is not None:
            self.operands_of(logic.spec, operands)
        elif logic.kind != "." and operands != (2 if logic.kind == "@" else 1):
            effect = "contracts two operands" if logic.kind == "@" else "transposes one operand"
            stand = "stands" if operands == 1 else "stand"
            message = (
                f'`~logic:"{logic.kind}"` {effect}, and {counted(operands, "operand")} {stand} here'
            )
            self.refused.append(ModuleError("E0442", message, logic.span, LOGIC_HELP))
            return
        dropped = _dropped(each)
        if each.accumulator is None and dropped:
            message = f"`=:` overwrites, and this logic drops {dropped}"
            labels = (Label(each.sign_span, "overwrites"), Label(logic.span, "drops"))
            help_line = "an accumulator folds them: `=:+` sums, `=:@^` takes the largest"
            self.refused.append(ModuleError("E0447", message, each.sign_span, help_line, labels))


def _dropped(each: ast.Assigned) -> str:
    """The axes that the logic of an assignment drops, in words; empty where it drops none."""
    logic = each.logic
    if logic is None or logic.kind != "spec":
        return "the axes that it contracts" if logic is not None and logic.kind == "@" else ""
    assert logic.spec is not None
    kept = {name for axis in logic.spec.result.axes() for name in names_of(axis)}
    used = [
        name
        for shape in logic.spec.operands
        for axis in shape.axes()
        for name in names_of(axis)
        if name not in kept
    ]
    variables = {row.variable for row in logic.spec.result.rows}
    used += [
        variable_text(row.variable)
        for shape in logic.spec.operands
        for row in shape.rows
        if row.variable is not None and row.variable not in variables
    ]
    distinct = list(dict.fromkeys(used))
    if not distinct:
        return ""
    return f"{'axis' if len(distinct) == 1 else 'axes'} {', '.join(distinct[:10])}"
