"""Meanings of names in expressions of tensor functions and routines, and calls and operands that do not fit.

In:  ``op f(x; n) = x * n + z``
Out: E0192 (a number beside ``*``), E0401 (no ``z``)

Terms lean left without end and nest to a limited depth: one loop traverses them, and a ``repeat`` one call deeper.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ilang.core.diagnostic import Error, Label, ModuleError, NotationError, counted
from ilang.core.ir import functions as ast
from ilang.core.ir.primitives import ALONG, PRIMITIVES
from ilang.core.ir.spec import Spec
from ilang.core.ir.syntax import Name, Tree, names_in
from ilang.core.notation.components.printer import print_short
from ilang.core.notation.functions.calling import (
    miscalled,
    misconfigured,
    misgiven,
    values_of,
    wires_called,
    without_keywords,
)
from ilang.core.notation.functions.environment import DefinitionNames, Environment, File, NameEntry
from ilang.core.record import record

TENSOR_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
VALUE = ""
"""The kind that is wanted of a term that may be a tensor."""


@record
class Due:
    """A term to look at, what is bound there, and what a tensor may not be there (``VALUE``: it may).

    ``alone``: it is all of what is bound, or an argument, where several outputs or none may stand.
    """

    term: ast.Term
    environment: Environment
    wanted: str
    alone: bool = False


def _below(term: ast.Term) -> Sequence[ast.Term]:
    """The operands of a node that binds no name and calls nothing."""
    match term:
        case ast.Access():
            return (term.tensor,)
        case ast.Unary():
            return (term.operand,)
        case ast.Binary():
            return (term.left, term.right)
        case ast.EinsumTerm():
            return term.operands
        case ast.Sliced():
            return (term.operand, term.position)
        case ast.Listed():
            return term.items
        case ast.ScheduledExpression():
            return (term.term,)
        case _:
            return ()


class Terms:
    """The expressions of one definition."""

    def __init__(self, file: File, refused: list[Error]) -> None:
        self.file = file
        self.refused = refused
        self.names = DefinitionNames(file, refused)

    def look(self, term: ast.Term, environment: Environment, wanted: str = VALUE) -> None:
        """Note what is wrong with a term; ``wanted`` names what is configuration alone: `a condition`."""
        todo = [Due(term, environment, wanted)]
        while todo:
            todo += reversed(self._next(todo.pop()))

    def _next(self, due: Due) -> Sequence[Due]:
        """Note what is wrong with one node; give what is below it."""
        term = due.term
        match term:
            case ast.Reference():
                self._reference(term, due)
            case ast.Declared():
                self._declared(term, due)
            case ast.Called():
                return self._called(term, due)
            case ast.Repeated():
                self._repeated(term, due.environment)
            case ast.Binary(operator="**."):
                self.look(term.right, due.environment, "an exponent")
                return [Due(term.left, due.environment, due.wanted)]
            case ast.Binary():
                self._operands(term, due.environment)
            case ast.EinsumTerm():
                self.operands_of(term.spec, len(term.operands))
            case _:
                pass
        return [Due(each, due.environment, due.wanted) for each in _below(term)]

    def _reference(self, term: ast.Reference, due: Due) -> None:
        entry = self.names.read(due.environment, term.name)
        if entry is None:
            if term.name in self.file.names and not due.wanted:
                self._definition(term)
            else:
                self.names.unknown(due.environment, term.name, term.span)
        elif due.wanted and entry.kind not in ("configuration", "number"):
            message = f"{due.wanted} is on configuration, and `{term.name}` is a tensor"
            labels = (Label(term.span, "read here"), Label(entry.span, "named here"))
            help_line = "configuration stands after the `;` of the head: `op f(x; n)`"
            self.refused.append(ModuleError("E0445", message, term.span, help_line, labels))
        elif entry.kind == "instance":
            message = f"`{term.name}` is an instance of a tensor function, and a value belongs here"
            labels = (Label(term.span, "read here"), Label(entry.span, "made here"))
            help_line = f"call it: `{term.name}(x)`"
            self.refused.append(ModuleError("E0426", message, term.span, help_line, labels))

    def _definition(self, term: ast.Reference) -> None:
        """A definition where a value belongs: a component without inputs alone is one."""
        name = term.name
        wires = self.file.wires.get(name)
        if name not in self.file.functions and name not in self.file.routines:
            if wires is None or not wires.inputs:
                return
            takes = f"a component of {counted(wires.inputs, 'input')}"
        else:
            takes = "a routine" if name in self.file.routines else "a tensor function"
        message = f"`{name}` is {takes}, and a value belongs here"
        self.refused.append(ModuleError("E0426", message, term.span, f"call it: `{name}(x)`"))

    def _declared(self, term: ast.Declared, due: Due) -> None:
        if due.wanted:
            message = f"{due.wanted} is on configuration, and a string declares a tensor"
            self.refused.append(ModuleError("E0445", message, term.span, "write a number"))
        for each in term.extents or ():
            self.look(each, due.environment, "an extent")

    def _operands(self, term: ast.Binary, environment: Environment) -> None:
        """Refuse configuration beside a contraction."""
        if term.operator not in ("*", "/"):
            return
        for each in (term.left, term.right):
            entries = environment.get(each.name, ()) if isinstance(each, ast.Reference) else ()
            if entries and entries[0].kind in ("configuration", "number"):
                effect = "contracts axes" if term.operator == "*" else "divides along axes"
                message = f"`{term.operator}` {effect}, and `{entries[0].name}` is a number"
                labels = (Label(term.sign_span, ""), Label(entries[0].span, "named here"))
                help_line = f"write `{term.operator}.`"
                self.refused.append(
                    NotationError("E0192", message, term.sign_span, help_line, labels)
                )

    def operands_of(self, spec: Spec, count: int) -> None:
        """Refuse a specification of another number of operands."""
        if len(spec.operands) != count:
            counted_operands = counted(len(spec.operands), "operand")
            stand = "stands" if count == 1 else "stand"
            message = f"the specification has {counted_operands}, and {counted(count, 'operand')} {stand} here"
            help_line = 'operands are separated by `;`: `x *+ "ij; jk => ik" y`, `x ++ "ij => ji"`'
            self.refused.append(ModuleError("E0442", message, spec.span, help_line))

    # -- calls -----------------------------------------------------------------------------------------------------

    def _called(self, term: ast.Called, due: Due) -> list[Due]:
        component = term.component
        name = component.name if isinstance(component, ast.Reference) else ""
        if due.wanted and name != "dim":
            message = f"{due.wanted} is on configuration, and a call gives a tensor"
            help_line = 'the size of an axis is a number: `dim(x, "n")`'
            self.refused.append(ModuleError("E0445", message, term.span, help_line))
        term, refused = without_keywords(term, name, self.file, due.environment)
        self.refused += refused
        if isinstance(component, ast.Reference):
            self._function(term, component, due)
        else:
            self._component(term, due)
        for each in term.settings or ():
            self.setting(each, due.environment)
        return [
            Due(each, due.environment, VALUE, alone=True)
            for each in term.arguments
            if not isinstance(each, ast.Text)
        ]

    def setting(self, setting: ast.Setting, environment: Environment) -> None:
        """A configuration value that is given."""
        if not isinstance(setting.value, ast.Text):
            self.look(setting.value, environment, "a configuration value")

    def _function(self, term: ast.Called, component: ast.Reference, due: Due) -> None:
        name, file = component.name, self.file
        entries = due.environment.get(name, ())
        if entries and entries[0].kind == "instance":
            self.names.read(due.environment, name)
            self._of_instance(term, entries[0])
        elif entries or (name not in file.names and name not in PRIMITIVES):
            self.names.unknown_function(due.environment, name, component.span)
        elif name in file.functions:
            head = file.functions[name]
            self.refused += miscalled(head, term, file, labelled=True)
        elif name in file.routines:
            message = f"`{name}` is a routine, and an expression calls tensor functions"
            labels = (
                Label(component.span, "called here"),
                Label(file.routines[name].span, "defined here"),
            )
            help_line = "a routine is called by a statement of another one"
            self.refused.append(ModuleError("E0440", message, component.span, help_line, labels))
        elif name in file.names:
            self._component(term, due)
        else:
            self._primitive(term, name)

    def _of_instance(self, term: ast.Called, entry: NameEntry) -> None:
        if term.settings is not None:
            message = f"`{entry.name}` has its configuration already"
            labels = (Label(term.span, "called here"), Label(entry.span, "made here"))
            help_line = f"call it without: `{entry.name}(x)`"
            self.refused.append(ModuleError("E0444", message, term.span, help_line, labels))
        if entry.head is not None:
            shown = f"`{entry.name}`"
            self.refused += misgiven(shown, entry.head, term.arguments, term.span, self.file)

    def _primitive(self, term: ast.Called, name: str) -> None:
        takes = PRIMITIVES[name]
        if name in ALONG and (takes == 1 or values_of(term.arguments, self.file) == 1):
            self._along(term, name)
            return
        if term.settings is not None:
            message = f"`{name}` has no configuration"
            enough = takes == len(term.arguments)
            given = term.arguments if enough else (*term.arguments, *term.settings)
            call = f"`{name}({', '.join(each.span.text() for each in given)})`"
            help_line = f"leave it out: {call}" if enough else f"commas separate arguments: {call}"
            self.refused.append(ModuleError("E0444", message, term.span, help_line))
            return
        if takes is not None:
            shown = f"`{name}`"
            self.refused += misgiven(shown, takes, term.arguments, term.span, self.file, "argument")
        if name == "einmax" and term.arguments and not isinstance(term.arguments[0], ast.Text):
            message = "the first argument of `einmax` is a specification in quotes"
            help_line = '`einmax("b|i => b|0", x)`'
            self.refused.append(ModuleError("E0442", message, term.arguments[0].span, help_line))

    def _along(self, term: ast.Called, name: str) -> None:
        """A reduction of one tensor along axes, its one configuration value."""
        self.refused += misgiven(f"`{name}`", 1, term.arguments, term.span, self.file)
        for n, each in enumerate(term.settings or ()):
            if n or each.name not in (None, "axes"):
                message = f"`{name}` has one configuration value, its axes"
                help_line = f'`{name}(x; "h, w")`, `{name}(x; -1)`'
                self.refused.append(ModuleError("E0444", message, each.span, help_line))

    def _component(self, term: ast.Called, due: Due) -> None:
        component = term.component
        tree = (
            component
            if not isinstance(component, ast.Reference)
            else Name(component.name, component.span)
        )
        shown = print_short(tree)
        if term.settings is not None:
            message = f"{shown} is a component, and has no configuration"
            help_line = "tensor functions have configuration: `op f(x; n)`"
            self.refused.append(ModuleError("E0444", message, term.span, help_line))
        wires = wires_called(term.component, self.file)
        if wires is None:
            self._wired(term.component)
            return
        self.refused += misgiven(shown, wires.inputs, term.arguments, term.span, self.file)
        if wires.outputs != 1 and not due.alone:
            message = f"{shown} has {counted(wires.outputs, 'output')}, and one value belongs here"
            help_line = "a call takes all of them as arguments: `max(f(x))`"
            self.refused.append(ModuleError("E0443", message, term.span, help_line))

    def _wired(self, component: ast.Reference | Tree) -> None:
        """Refuse a component that is wired of tensor functions or routines, or told one."""
        if isinstance(component, ast.Reference):
            return
        for node in names_in(component):
            head = self.file.functions.get(node.name) or self.file.routines.get(node.name)
            if head is None:
                continue
            kind = "tensor function" if node.name in self.file.functions else "routine"
            message = f"`{node.name}` is a {kind}, and a component is wired of components"
            labels = (Label(node.span, "used here"), Label(head.span, "defined here"))
            help_line = f"call it by itself: `{node.name}(x)`"
            if kind == "tensor function":
                help_line += ", which goes along batch axes as it is"
            self.refused.append(ModuleError("E0440", message, node.span, help_line, labels))

    # -- repeat and blocks -------------------------------------------------------------------------------------------

    def _repeated(self, term: ast.Repeated, environment: Environment) -> None:
        self.look(term.start, environment)
        self.look(term.over, environment, "what is repeated")
        inner = dict(environment)
        carried = NameEntry(term.carried, "value", term.start.span)
        inner[term.carried] = (carried,)
        self.names.bind(inner, NameEntry(term.variable, "configuration", term.name_span))
        self.body(term.body, inner)
        if not carried.used:
            message = f"nothing reads `{term.carried}`, what each turn hands to the next"
            help_line = "each turn computes from it: `repeat(x; n in 3) { x *. 2 }`"
            span = term.start.span
            self.refused.append(ModuleError("E0422", message, span, help_line))

    def body(self, body: ast.Body, environment: Environment) -> None:
        """The bindings of a block in order, and its value."""
        for bound in body.bindings:
            if isinstance(bound, ast.StateUpdate):
                self.look(bound.target, environment)
                self.look(bound.term, environment)
                continue
            self.bind(
                bound.name,
                bound.term,
                environment,
                NameEntry(bound.name or "_", "value", bound.name_span),
            )
        self.look(body.result, environment)

    def bind(
        self, name: str | None, term: ast.Term, environment: Environment, entry: NameEntry
    ) -> None:
        """``name = EXPR``: an instance, where a tensor function is given its configuration alone."""
        head = self._made(term, environment)
        if head is None:
            self.look(term, environment)
        elif isinstance(term, ast.Called):
            self.refused += misconfigured(head, term.settings, term.span, labelled=True)
            for each in term.settings or ():
                self.setting(each, environment)
            entry = NameEntry(entry.name, "instance", entry.span, head)
        if name is not None:
            self.names.bind(environment, entry)

    def _made(self, term: ast.Term, environment: Environment) -> ast.Head | None:
        """The head of the tensor function that a term makes an instance of."""
        if not isinstance(term, ast.Called) or term.arguments or term.settings is None:
            return None
        component = term.component
        if not isinstance(component, ast.Reference) or component.name in environment:
            return None
        head = self.file.functions.get(component.name)
        return head if head is not None and head.tensors else None
