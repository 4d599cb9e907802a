"""Calls inside tensor functions and routines that do not fit what is called: arguments, and configuration.

In:  ``op f(x; n) = x *. n`` and ``f(x, x)``
Out: E0420, f takes 1 tensor, and 2 are given; E0444, f needs the configuration value `n`
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.diagnostic import Error, Label, ModuleError, counted
from ilang.core.ir.functions import Binary, Called, Head, Number, Reference, Setting, Term, Text
from ilang.core.ir.primitives import ALONG
from ilang.core.ir.syntax import Tree
from ilang.core.notation.components.arity import Wires, wires_if_known
from ilang.core.notation.functions.environment import Environment, File
from ilang.core.record import replace
from ilang.core.source import Span
from ilang.core.suggestion import did_you_mean

EXAMPLES = {"lr": "0.01", "rate": "0.1", "most": "1", "hids": "[64]"}
"""Values of configuration of the libraries, as help gives them."""


def wires_called(component: Reference | Tree, file: File) -> Wires | None:
    """The wires of a component that is called; None where they cannot be told, or where it is none."""
    if isinstance(component, Reference):
        return file.wires.get(component.name)
    return wires_if_known(component, file.wires)


def values_of(arguments: Sequence[Term], file: File) -> int | None:
    """The number of values of arguments: a component stands for all of its outputs; None where it is unknown."""
    counts = [_values_of_one(each, file) for each in arguments]
    return None if None in counts else sum(count for count in counts if count is not None)


def _values_of_one(argument: Term, file: File) -> int | None:
    if not isinstance(argument, Called):
        return 1
    component = argument.component
    if isinstance(component, Reference):
        name = component.name
        if (
            name in file.functions or name not in file.names
        ):  # what has no definition is a primitive
            return 1
    wires = wires_called(component, file)
    return None if wires is None else wires.outputs


def miscalled(head: Head, call: Called, file: File, *, labelled: bool) -> list[Error]:
    """The errors of a call for what it gives: tensors, and, unless these are wrong without a `;`, configuration."""
    given = misgiven(f"`{head.name}`", head, call.arguments, call.span, file)
    if given and call.settings is None:
        if head.configuration and 0 < len(head.tensors) < len(call.arguments):
            given[0].help = _divided(call.arguments, len(head.tensors))
        return given
    return [*misconfigured(head, call.settings, call.span, labelled=labelled), *given]


def without_keywords(
    call: Called, name: str, file: File, environment: Environment
) -> tuple[Called, list[Error]]:
    """A call of a name whose values that stand among its tensors by name, ``sum(x, axis=0)``, are configuration.

    With it comes the error for them: a comparison of a name that nothing has is meant so.
    """
    named = dict[str, Binary]()
    for each in call.arguments:
        if isinstance(each, Binary) and each.operator == "=" and isinstance(each.left, Reference):
            word = each.left.name
            named |= {} if word in environment or word in file.names else {word: each}
    if not named:
        return call, []
    head = file.functions.get(name)
    known = {each.name for each in (head.configuration if head else None) or ()}
    settings = list[Setting]()
    for word, each in named.items():
        if name in ALONG and word in ("axis", "dim"):
            settings.append(Setting(None, each.right, each.right.span))
        elif word in known:
            settings.append(Setting(word, each.right, each.span))
    given = tuple(each for each in call.arguments if each not in named.values())
    words = (", ".join(each.span.text() for each in part) for part in (given, settings))
    written = f"{name}({'; '.join(word for word in words if word)})"
    first, *_ = named.values()
    message = f"`{first.span.text()}` stands among tensors, and gives a value by name"
    rule = "configuration follows a `;`" if settings else f"`{name}` has no such value"
    error = ModuleError("E0444", message, first.span, f"{rule}: `{written}`")
    both = (*(call.settings or ()), *settings)
    return replace(call, arguments=given, settings=both or call.settings), [error]


def misgiven(
    shown: str,
    takes: int | Head,
    arguments: Sequence[Term],
    span: Span,
    file: File,
    noun: str = "tensor",
) -> list[Error]:
    """The error for another number of arguments than are taken, which a head also names."""
    listed = ""
    if not isinstance(takes, int):
        names = [each.name for each in takes.tensors]
        listed, takes = f": {', '.join(names)}" if names else "", len(names)
    given = values_of(arguments, file)
    if given is None or given == takes:
        return []
    verb = "is" if given == 1 else "are"
    message = f"{shown} takes {counted(takes, noun)}, and {given or 'none'} {verb} given"
    help_line = f"a call gives a tensor to every input, in order{listed}"
    if takes < given and noun != "tensor":
        taken = ", ".join(each.span.text() for each in arguments[:takes])
        help_line = f"{shown} has no configuration: write `{shown[1:-1]}({taken})`"
    elif takes < given and all(isinstance(each, Number) for each in arguments[takes:]):
        help_line = _divided(arguments, takes)
    return [ModuleError("E0420", message, span, help_line)]


def _divided(arguments: Sequence[Term], tensors: int) -> str:
    parts = (arguments[:tensors], arguments[tensors:])
    one, other = (", ".join(each.span.text() for each in part) for part in parts)
    return f"configuration follows a `;`: `({one}; {other})`"


def misconfigured(
    head: Head, settings: Sequence[Setting] | None, span: Span, *, labelled: bool
) -> list[Error]:
    """The errors for configuration that a definition does not have, lacks, or is given twice."""
    refused: list[Error] = []
    wanted = {each.name: each for each in head.configuration or ()}
    order = list(wanted)
    given: dict[str, Span] = {}
    for n, setting in enumerate(settings or ()):
        name = setting.name
        if name is None and (n < len(given) or n >= len(order)):
            shown = setting.span.text()
            message = (
                f"`{head.name}` has {counted(len(order), 'configuration value')}, "
                f"and {shown} is one too many"
            )
            help_line = _listed(order)
            if n < len(order):
                message = f"{shown} has no name, and stands after one that has"
                help_line = "values by position stand first"
            refused.append(_wrong(message, setting.span, head, help_line))
            continue
        name = order[n] if name is None else name
        if name == "label" and labelled:
            if not isinstance(setting.value, Text):
                message = "a label is a text"
                help_line = '`label = "L1"`'
                refused.append(ModuleError("E0444", message, setting.span, help_line))
        elif name not in wanted:
            message = f"`{head.name}` has no configuration value `{name}`"
            help_line = did_you_mean(name, order, _listed(order), "`{}`")
            refused.append(_wrong(message, setting.span, head, help_line))
        elif name in given:
            labels = (Label(setting.span, "again here"), Label(given[name], "first here"))
            message = f"`{name}` is given twice"
            refused.append(ModuleError("E0444", message, setting.span, "give it once", labels))
        given.setdefault(name, setting.span)
    for name, each in wanted.items():
        if each.default is None and name not in given and not refused:
            message = f"`{head.name}` needs the configuration value `{name}`"
            labels = (Label(span, "called here"), Label(each.span, "has no default"))
            before = span.text().removesuffix(")").rstrip("; ")
            sign = "," if settings else ";"
            help_line = f"give it: `{before}{sign} {name} = {EXAMPLES.get(name, 2)})`"
            refused.append(ModuleError("E0444", message, span, help_line, labels))
    return refused


def _wrong(message: str, span: Span, head: Head, help_line: str) -> Error:
    labels = (Label(span, "given here"), Label(head.span, "defined here"))
    return ModuleError("E0444", message, span, help_line, labels)


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:10])
    return f"its configuration is {listed}" if names else "it has no configuration"
