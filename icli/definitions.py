"""Tensor functions and routines on the command line: which are meant, for what shapes, and what is said of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, DataError
from ilang.core.ir.syntax import Module, Tree
from ilang.core.suggestion import did_you_mean
from ilang.icli.configuration import configuration
from ilang.icli.programs import several

if TYPE_CHECKING:
    from ilang.codegen.session.function import Config, Function
    from ilang.codegen.system.outputs import InputFile
    from ilang.core.build.program import Given
    from ilang.core.build.tensor import Rows
    from ilang.core.ir.functions import Head


def functions_of(program: Tree | Module, name: str | None) -> list[Function]:
    """The tensor functions and the routines that are meant.

    The named one is meant; else, of a file without components, those that nothing else in it uses.
    """
    if not isinstance(program, Module) or not (program.functions or program.routines):
        return []
    heads = heads_of(program)
    from ilang.core.notation.files.module import exports

    if name is None and not exports(program):
        used = used_in(program)
        return all_functions(program, [each for each in heads if each not in used])
    return all_functions(program, [each for each in heads if each == name])


def one_function(functions: Sequence[Function]) -> Function:
    """The one definition that a command works on.

    Raises: CommandError E0818 if there are several.
    """
    first, *others = functions
    if others:
        raise several([each.name for each in functions])
    return first


def all_functions(module: Module, names: Sequence[str]) -> list[Function]:
    """Definitions by name."""
    from ilang.codegen.session.function import Function
    from ilang.codegen.session.model import Model

    model = Model(module)
    return [Function(model, each) for each in names]


def heads_of(module: Module) -> dict[str, Head]:
    """The heads of the tensor functions and the routines of a file, those of libraries aside, by name."""
    heads = (each.head for each in module.functions_and_routines())
    return {each.name: each for each in heads if each.span.source.name == module.source.name}


NOTHING_RETURNED = "nothing is returned, so nothing is shown: end the routine with `return`, for example `return loss`"
"""The note on a routine that has run and has no result."""


def used_in(module: Module) -> set[str]:
    """The definitions that others use."""
    from ilang.core.ir.functions import Called, Reference, nodes_within

    used = set()
    for definition in (*module.functions, *module.routines):
        for each in nodes_within(definition):
            if isinstance(each, Called) and isinstance(each.component, Reference):
                used.add(each.component.name)
    return used


def files_read(program: Tree | Module) -> list[InputFile]:
    """The files that a program is read from and reads: its own, and those of ``file("w.npy")``."""
    from ilang.codegen.session.model import beside
    from ilang.core.ir.functions import Declared, Text, nodes_within

    if not isinstance(program, Module):
        return []
    file = program.source.name
    parts = list(nodes_within((*program.functions, *program.routines)))
    texts = [part.text for part in parts if isinstance(part, Text)]
    texts += [part.name for part in parts if isinstance(part, Declared)]
    arrays = [beside(file, each) for each in texts if each.endswith(".npy")]
    return [("the program", file), *(("a file of the program", each) for each in arrays)]


def shapes_of(texts: Sequence[str], functions: Sequence[Function]) -> dict[str, str]:
    """The shapes of inputs by name: options give them by name, ``x=64|784``, or those of one definition in order.

    Raises:
        CommandError: E0807 (an input twice), E0810 (no shape), E0811 (another number of them), E0814 (no such input).
    """
    from ilang.icli.shapes import named_shapes

    inputs = {each.name: [t.name for t in head_of(each).tensors] for each in functions}
    return {name: checked_rows(name, text) for name, text in named_shapes(texts, inputs).items()}


def checked_rows(name: str, shape: str) -> str:
    """The shape of an input as rows have it: ``64|28,28`` for ``64|28x28``. Raises: CommandError E0810 (it is none)."""
    rows_given(name, shape)
    return _sizes_apart(shape)


def _sizes_apart(shape: str) -> str:
    """A shape with commas between sizes; a scalar has none."""
    return "" if shape == "." else re.sub(r"(?<=\d)x(?=\d)", ",", shape)


def rows_given(name: str, shape: str, words: bool = False) -> Rows:
    """The rows of a shape on the command line; with ``words`` its sizes may be words.

    Raises:
        CommandError: E0810 (no shape).
    """
    from ilang.codegen.session.model import rows_of

    try:
        return rows_of(name, _sizes_apart(shape), words)
    except DataError as error:
        raise CommandError("E0810", error.message, help=error.help) from None


def config_of(texts: Sequence[str], heads: Sequence[Head]) -> dict[str, Given]:
    """The configuration values that are given for some definitions, each for those that have it.

    Raises:
        CommandError: E0825 (no value, or one that none of them has).
    """
    values = configuration(texts)
    known = sorted({each.name for head in heads for each in head.configuration or ()})
    for name in values:
        if name not in known:
            listed = f"names are {', '.join(known[:20])}" if known else "there are none"
            hint = did_you_mean(name, known, listed)
            raise CommandError("E0825", f"no configuration value is named {name}", help=hint)
    return values


def settings_of(head: Head, config: Mapping[str, Given]) -> dict[str, Given]:
    """The configuration values, among some, that one definition has."""
    names = {each.name for each in head.configuration or ()}
    return {name: value for name, value in config.items() if name in names}


def head_of(function: Function) -> Head:
    """The head of a definition."""
    head: Head = function.model.head(function.name)
    return head


def given_to(function: Function, shapes: Mapping[str, str]) -> dict[str, str]:
    """The shapes, among some, that are for the inputs of one definition."""
    names = {each.name for each in head_of(function).tensors}
    return {name: shape for name, shape in shapes.items() if name in names}


def signature(function: Function) -> str:
    """The head of a definition as it is written."""
    return " ".join(head_of(function).span.text().split())


def checked_line(function: Function, shapes: Mapping[str, str], config: Config) -> str:
    """A definition in one line, checked as far as what is given allows.

    Raises:
        Error: what is wrong with its text, with the shapes or the configuration.
    """
    head = head_of(function)
    config = settings_of(head, config or {})
    needs = [each.name for each in head.configuration or () if each.default is None]
    missing = [name for name in needs if name not in config]
    if missing:
        return f"{signature(function)}   checked where it is used: --config {missing[0]}=... checks it alone"
    if head.tensors and not shapes:
        function.check_so_far(shapes, config)
        return signature(function)
    explanation = function.explain(shapes, config)
    words = (block.partition("\n")[0] for block in explanation.blocks())
    return "   ".join((signature(function), *words))
