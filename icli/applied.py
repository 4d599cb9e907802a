"""Applications in the REPL: ``attention(q, softmax(k), [[1,2]])``, with the arrays at hand for values.

An application becomes a definition whose inputs are its arrays, in the order in which they are read first, and runs
as one component: what it nests is not computed apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ilang.core.diagnostic import Error, gathered
from ilang.core.ir.graph import UNNAMED
from ilang.core.ir.syntax import (
    Application,
    Block,
    Definition,
    Module,
    NamedInput,
    Value,
    postorder,
)
from ilang.core.notation.components.application import read_whole
from ilang.core.notation.components.arity import wires_of_all
from ilang.core.notation.components.misapplied import misapplied
from ilang.core.notation.components.values import BodyNames
from ilang.core.notation.index.lookahead import is_over_names
from ilang.core.notation.reader import Reader
from ilang.core.source import Source, Span
from ilang.icli.programs import Subject, defined

NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?", re.ASCII)
"""A number that is one to programs as well, and no array of rank 0."""


def applied(
    source: Source, module: Module, arrays: Mapping[str, object], is_array: Callable[[str], bool]
) -> tuple[Subject, list[str]] | None:
    """The component that an application on arrays is, and these arrays; None where a text is no application.

    Raises:
        Error: those of applications; ModuleError E0420, E0426.
    """
    known = {definition.name: definition for definition in module.definitions}
    reader = Reader(source)
    if not is_over_names(reader, known):
        return None
    words: dict[str, str] = {}
    start = Span(source, 0, 0)

    def spelled(word: str) -> str | None:
        """The name of an array that is written out."""
        if word in arrays or NUMBER.fullmatch(word) or not is_array(word):
            return None
        number = len(scope.used)  # of the arrays before it
        name = next((name for name, other in words.items() if other == word), f"in{number}")
        while name not in words and (name in arrays or name in known):
            name += "_"
        words[name] = word
        scope.values.setdefault(name, start)
        return name

    scope = BodyNames(known, {name: start for name in arrays if name not in known}, spelled)
    refused: list[Error] = []
    body = read_whole(reader, scope, refused)
    refused += misapplied(body, wires_of_all(known)) if body is not None else []
    if refused or body is None:
        raise gathered(refused)
    return _defined(body, scope, module, words)


def _defined(
    body: Application | Block, scope: BodyNames, module: Module, words: Mapping[str, str]
) -> tuple[Subject, list[str]]:
    """A body over names as a definition beside others, and its arrays, as they are named or written."""
    values = dict.fromkeys(node.name for node in postorder(body) if isinstance(node, Value))
    read = [name for name in values if name not in scope.ready]  # the others are bound inside
    parameters = tuple(NamedInput(value, None, None, body.span) for value in read)
    name = UNNAMED
    while any(name == definition.name for definition in module.definitions):
        name += "_"
    whole = Definition(name, parameters, body, body.span)
    subject = defined(Module(module.source, (*module.definitions, whole)), name)
    return subject, [words.get(value, value) for value in read]
