"""Applications that do not fit their components: other numbers of values or names, and arguments that take inputs.

In:  ``f(x, y) = (+ij~i)(x, y)``
Out: E0420, `+ij~i` takes 1 input, and 2 values are given
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from ilang.core.diagnostic import Label, ModuleError, counted
from ilang.core.ir.spec import Fixed
from ilang.core.ir.syntax import (
    Application,
    Argument,
    Binding,
    Block,
    Expression,
    Name,
    Operand,
    Pattern,
    Tree,
    postorder,
)
from ilang.core.notation.components.arity import Wires, wires_if_known
from ilang.core.notation.components.printer import print_short, print_tree

LARGEST = 50
"""Nodes of a program that is looked at for what its author meant."""


def misapplied(body: Tree, known: Mapping[str, Wires]) -> list[ModuleError]:
    """Errors of applications: another number of values than their components have, or arguments that take inputs.

    An application of a name that is not ``known`` is left out: something else is wrong there.
    """
    refused = []
    for node in postorder(body):
        if isinstance(node, Application):
            refused += _misgiven(node, known)
        elif isinstance(node, Block):
            for binding in node.bindings:
                refused += _misnamed(binding, known)
            refused += _with_inputs(node.outputs, known)
    return refused


def _with_inputs(arguments: Sequence[Argument], known: Mapping[str, Wires]) -> list[ModuleError]:
    """The errors for definitions with inputs that stand where values belong."""
    refused = []
    for argument in arguments:
        if isinstance(argument, Name) and (wires := known.get(argument.name)) and wires.inputs:
            name, takes = argument.name, counted(wires.inputs, "input")
            message = f"`{name}` is a component of {takes}, and a value belongs here"
            listed = ", ".join(["x", "y", "z"][: wires.inputs]) if wires.inputs < 4 else "..."
            help_line = f"apply it: `{name}({listed})`"
            refused.append(ModuleError("E0426", message, argument.span, help_line))
    return refused


def _outputs(argument: Argument, known: Mapping[str, Wires]) -> int | None:
    """The number of values that an argument stands for; None where that cannot be told."""
    if not isinstance(argument, Application | Name):
        return 1
    giver = argument.component if isinstance(argument, Application) else argument
    wires = wires_if_known(giver, known)
    return None if wires is None else wires.outputs


def _misgiven(node: Application, known: Mapping[str, Wires]) -> list[ModuleError]:
    refused = _with_inputs(node.arguments, known)
    component = wires_if_known(node.component, known)
    counts = [_outputs(argument, known) for argument in node.arguments]
    certain = [count for count in counts if count is not None]
    given = sum(certain)
    if component is None or refused or len(certain) < len(counts) or given == component.inputs:
        return refused
    takes, values = counted(component.inputs, "input"), counted(given, "value")
    verb = "is" if given == 1 else "are"
    message = f"{print_short(node.component)} takes {takes}, and {values} {verb} given"
    help_line = "an application gives a value to every input, in order"
    for argument, count in zip(node.arguments, certain, strict=True):
        if count != 1:
            many = counted(count, "value")
            help_line = f"{print_short(argument)} stands for all of its outputs, {many}"
    return [ModuleError("E0420", message, node.span, help_line)]


def _misnamed(binding: Binding, known: Mapping[str, Wires]) -> list[ModuleError]:
    wires = wires_if_known(binding.application, known)
    if wires is None or wires.outputs == len(binding.targets):
        return []
    shown, count = print_short(binding.application.component), len(binding.targets)
    outputs, verb = counted(wires.outputs, "output"), "is" if count == 1 else "are"
    message = f"{shown} has {outputs}, and {counted(count, 'name')} {verb} bound"
    span = binding.targets[0].span.to(binding.targets[-1].span)
    help_line = "name every output, in order; `_` stands for one that is not needed"
    labels = (Label(span, "names"), Label(binding.application.span, "outputs"))
    return [ModuleError("E0421", message, span, help_line, labels)]


def constant_help(tree: Tree) -> str | None:
    """Help for a program with another number of inputs than was meant, where a number in it is read as an input.

    ``ij*2~ij`` has two inputs: a number is a position of an input, and no constant.
    """
    nodes = islice(postorder(tree), LARGEST)
    helps = (_position(node) for node in nodes if isinstance(node, Expression))
    return next((each for each in helps if each is not None), None)


def _position_alone(pattern: Operand) -> str | None:
    """The number of an operand that is nothing but a number, as in `ij*2~ij`; None for any other."""
    if not isinstance(pattern, Pattern):
        return None
    index = pattern.indices[0] if len(pattern.indices) == 1 else None
    return str(index.position) if isinstance(index, Fixed) else None


def _position(e: Expression) -> str | None:
    """Help where one operand is a number alone."""
    from ilang.core.notation.guidance import scaled

    if e.right is None or e.op is None:
        return None
    left, right = _position_alone(e.left), _position_alone(e.right)
    number = right if right is not None else left
    if number is None or (left is not None and right is not None):
        return None
    other = e.left if right is not None else e.right
    written = print_tree(Expression(None, other, None, e.output, None, e.span)).partition("~")[0]
    out = "".join(axis.letter for axis in e.output.axes()) or "."
    program = scaled(written, e.op, number, out, first=right is None)
    if right is None and e.op in (">>", "<<") and written == ".":
        program += f"`, and handed on `({number}) {e.op} .~."
    return f"`{number}` here is position {number} of an input; the constant is written `{program}`"
