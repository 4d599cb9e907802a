"""Tensor functions and routines in the REPL: their definitions, calls of them, and the sessions that calls leave.

    op net(x) = "w" * x + "b" 2        a definition, as in files; so is ``cd step(x, y) { ... }``, and ``use nn``
    net                                its rows, or with arrays of the names of its inputs everything
    net x    step(x, y; lr = 0.1)      one run; so is ``linear(x; 4)``, with what a library has that is used
    tanh(net(x)) + y                   an expression over calls: a tensor function of the arrays that it names

Runs share parameters and state: what ``step`` has trained, ``net`` computes with. Other extents begin anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from ilang.codegen.session.given_shapes import batch_remark, miscounted, shape_of_extents
from ilang.core.diagnostic import CommandError, DataError, Error, Note, at_caller, counted
from ilang.core.ir.syntax import Module
from ilang.core.library import INNER, LIBRARIES, STD, text_of
from ilang.core.record import record
from ilang.core.source import Source, Span
from ilang.icli.configuration import configured
from ilang.icli.definitions import (
    NOTHING_RETURNED,
    all_functions,
    checked_line,
    head_of,
    heads_of,
    signature,
)
from ilang.icli.lines import CALLS, WHERE, split_words
from ilang.icli.programs import named_results
from ilang.icli.staged import DefinitionAtShapes

if TYPE_CHECKING:
    from ilang.codegen.session.function import Function
    from ilang.codegen.session.session import Session
    from ilang.codegen.system.npy import Array
    from ilang.core.build.program import Given
    from ilang.core.ir.functions import Head

DEFINED = re.compile(
    r"\s*(?:(?:op|cd)\s+([A-Za-z_][A-Za-z0-9_]*)\s*\(|(use)\s+[A-Za-z_])", re.ASCII
)
WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*", re.ASCII)
USES = re.compile(r"^\s*use[ \t]+([^#\n]*)", re.MULTILINE)
"""A line that names libraries."""
SETTING = re.compile(r"\s+(\w+\s*=\s*(?:\[[^\]]*\]|[^\s\[\]]+))\s*$")
"""A configuration value at the end of a line, where it has no semicolon before it."""


def defined_name(code: str) -> str | None:
    """The name of the tensor function or the routine that a line defines, or a key for libraries that it uses."""
    match = DEFINED.match(code)
    if match is None:
        return None
    return match.group(1) or " ".join(code.split())


@record
class RunRequest:
    """A run: of what, on which words, with which configuration, and the line that asks for it."""

    function: Function
    words: tuple[str, ...]
    config: Mapping[str, Given]
    line: str = ""

    def dtypes(self) -> list[str | None]:
        """The element type that the head writes for each input, or None."""
        return [each.dtype for each in head_of(self.function).tensors]


class Calls:
    """The tensor functions and the routines of the definitions at hand.

    ``values`` are those of what lasts, ``rows`` the shapes that ``:shape x=32|1`` gives inputs by name,
    ``remarked`` the lines on batches that were said.
    """

    def __init__(self, module: Module, before: Calls | None = None) -> None:
        """For some definitions; what was trained ``before`` them stays."""
        self.module = module
        self.libraries = used_libraries(module.source.text)
        heads = heads_of(module)
        hidden = {*heads, *(each.name for each in module.definitions)}
        self._configured = {
            name: function
            for each in self.libraries
            for name, function in _functions_of(each, wired=True).items()
            if head_of(function).configuration and name not in hidden
        }
        """The tensor functions of libraries that a component of ``std`` hides, but where they are given values."""
        borrowed = (_functions_of(each, wired=False) for each in self.libraries)
        self._borrowed = {
            name: function
            for functions in borrowed
            for name, function in functions.items()
            if name not in hidden
        }
        self.heads = {name: head_of(each) for name, each in self._borrowed.items()} | heads
        self._functions: dict[str, Function] = {}
        self._sessions: dict[object, Session] = {}
        self.values: dict[str, Array] = {} if before is None else before.values
        self.rows: dict[str, str] = {} if before is None else before.rows
        self.remarked: set[str] = set() if before is None else before.remarked

    def function(self, name: str) -> Function:
        """A definition by its name, at hand or of a library that is used."""
        for functions in (self._borrowed, self._configured):
            if name in functions:
                return functions[name]
        if name not in self._functions:
            (self._functions[name],) = all_functions(self.module, [name])
        return self._functions[name]

    def read(
        self, code: str, arrays: Mapping[str, Array], is_array: Callable[[str], bool]
    ) -> RunRequest | None:
        """The call that a line is, or None: ``net x``, ``net(x; n = 2)``, ``net x; 2``.

        Raises: CommandError E0825 (a configuration value).
        """
        if not self.heads:
            return None
        call = CALLS.fullmatch(code)
        named = {*self.heads, *self._configured}
        if call is not None and call.group(1) in named and _is_closed(call.group(2)):
            name, (given, _, settings) = call.group(1), call.group(2).partition(";")
            words = split_words(given, ",")
        else:
            applied, _, settings = code.partition(";")
            (name, *words) = split_words(applied) or [""]
        if name not in self.heads and not (settings.strip() and name in self._configured):
            return None
        head = head_of(self.function(name))
        known = [each.name for each in head.configuration or ()]
        if words and all(map(is_array, words)):
            config = configured(name, settings, known)
            return RunRequest(self.function(name), tuple(words), config, code)
        setting = SETTING.search(code)
        if setting is not None and self.read(code[: setting.start()], arrays, is_array) is not None:
            message = f"`{setting[1]}` is a configuration value, and arrays stand there"
            help_line = f"values come after `;`: `{name}({', '.join(words[:-1])}; {setting[1]})`"
            raise CommandError("E0825", message, help=help_line)
        return None

    def calls_any(self, code: str) -> bool:
        """Whether a text calls one of these."""
        return any(re.search(rf"(?<![\w.]){name}\s*\(", code, re.ASCII) for name in self.heads)

    def expression(self, code: str, arrays: Mapping[str, Array], error: Error) -> RunRequest | None:
        """An expression over calls, in signs of tensor functions, of the arrays that it names; None for another line.

        Raises:
            Error: What is wrong with it, where ``error``, which NumPy's meaning gave, is of its signs.
        """
        if not self.calls_any(code):
            return None
        try:
            return self._expression(code, arrays)
        except Error:
            if error.code.startswith(("E01", "E04")):
                raise
            return None

    def _expression(self, code: str, arrays: Mapping[str, Array]) -> RunRequest:
        """An expression as a tensor function of the arrays that it names."""
        from ilang.core.notation.files.pieces import parse_with_pieces

        words = [word for word in dict.fromkeys(WORD.findall(code)) if word in arrays]
        taken = {*arrays, *self.heads, *(each.name for each in self.module.definitions)}
        for each in self.module.functions_and_routines():
            taken |= {tensor.name for tensor in each.head.tensors}
            taken |= {value.name for value in each.head.configuration or ()}
        name = "out"
        while name in taken:
            name += "_"
        text = f"{self.module.source.text}\nop {name}({', '.join(words)}) = {code.strip()}"
        module = parse_with_pieces(Source(self.module.source.name, text))
        (function,) = all_functions(module, [name])
        return RunRequest(function, tuple(words), {})

    def seen(self, call: RunRequest, arrays: Sequence[Array]) -> DefinitionAtShapes:
        """A call's definition at the shapes of its arrays."""
        return DefinitionAtShapes(call.function, self._shapes(call.function, arrays), call.config)

    def line(self, name: str) -> str:
        """A definition in one line, checked; one that needs a value shows a call that gives it."""
        function, missing = self.function(name), missing_values(self.heads[name], {})
        if not missing:
            return checked_line(function, {}, {})
        inputs = ", ".join(each.name for each in self.heads[name].tensors)
        values = ", ".join(f"{each}=1" for each in missing)
        return f"{signature(function)}   `{name}({inputs}; {values})` runs it"

    def alone(self, name: str, arrays: Mapping[str, Array]) -> DefinitionAtShapes:
        """A definition at the shapes that were given, or that arrays of its inputs' names have, where all are known."""
        function = self.function(name)
        names = [each.name for each in head_of(function).tensors]
        given = {each: self.rows[each] for each in names if each in self.rows}
        if len(given) == len(names):
            return DefinitionAtShapes(function, given, {})
        known = [arrays[each] for each in names if each in arrays]
        shapes = self._shapes(function, known) if len(known) == len(names) else {}
        return DefinitionAtShapes(function, shapes, {})

    def run(
        self, call: RunRequest, arrays: Sequence[Array]
    ) -> tuple[list[tuple[str, Array]], tuple[str | Note, ...]]:
        """The results of a run, by name, and remarks on batches, parameters and losses."""
        session = self.session(call, arrays)
        notes = session.loss_notes()
        new = 0
        for kept, path, name in self._paths(call, session):
            values = self.values.get(name)
            if values is not None and values.shape == kept[path].shape:
                kept[path] = values
            else:
                new += kept is session.parameters
        answer = session(*arrays)
        for kept, path, name in self._paths(call, session):
            self.values[name] = kept[path]
        remarks = self._batches(call, arrays)
        if new:
            remarks.append(f"{counted(new, 'parameter')} with random values")
        if not session.outputs:
            remarks.append(NOTHING_RETURNED)
        return named_results(session.outputs, answer), (*remarks, *notes)

    def _batches(self, call: RunRequest, arrays: Sequence[Array]) -> list[str]:
        """Lines that say which axes of arrays are batches, each line once."""
        heads = head_of(call.function).tensors
        remarks = [
            batch_remark(each.name, array.shape, each.shape)
            for each, array in zip(heads, arrays, strict=True)
            if each.name not in self.rows
        ]
        new = [each for each in remarks if each and each not in self.remarked]
        self.remarked.update(new)
        return new

    def session(self, call: RunRequest, arrays: Sequence[Array]) -> Session:
        """The session for a call of these shapes.

        Raises: DataError E0750 (a configuration value is missing), E0756 (another number of arrays).
        """
        head = head_of(call.function)
        inputs = [each.name for each in head.tensors]
        if len(arrays) != len(inputs):
            raise miscounted(call.function.name, inputs, len(arrays))
        unknown = call.config.keys() - {each.name for each in head.configuration or ()}
        for name in [] if unknown else missing_values(head, call.config):
            message = f"{head.name} needs the configuration value {name}"
            help_line = f"give it after `;`: `{head.name}({', '.join(call.words)}; {name}=1)`"
            raise DataError("E0750", message, help=help_line)
        seen = self.seen(call, arrays)
        key = call.function, repr(sorted(seen.shapes.items())), repr(sorted(call.config.items()))
        if key not in self._sessions:
            try:
                self._sessions[key] = call.function.session(seen.shapes, call.config)
            except Error as error:
                raise _at_line(call, error) from None
        return self._sessions[key]

    def _shapes(self, function: Function, arrays: Sequence[Array]) -> dict[str, str]:
        """The shapes of inputs as they are written: those that were given, else those of arrays."""
        return {
            each.name: self.rows.get(each.name) or shape_of_extents(array.shape, each.shape)
            for each, array in zip(head_of(function).tensors, arrays, strict=False)
        }

    def _paths(
        self, call: RunRequest, session: Session
    ) -> list[tuple[MutableMapping[str, Array], str, str]]:
        """The arrays that last in a session: where it is kept, its path, and its name among all definitions at hand."""
        name = call.function.name
        op = name in self.heads and name not in {each.name for each in self.module.routines}
        return [
            *(
                (session.parameters, path, f"{name}.{path}" if op else path)
                for path in session.parameters
            ),
            *((session.state, path, f"state of {name}: {path}") for path in session.state),
        ]


def _at_line(call: RunRequest, error: Error) -> Error:
    """An error in the text of a library, with the line that calls it."""
    name = error.span.source.name if error.span is not None else ""
    if name.removesuffix(".i") not in LIBRARIES or not call.line:
        return error
    at_caller(error, Span(Source(WHERE, call.line), 0, len(call.line)), "")
    return error


def missing_values(head: Head, config: Mapping[str, Given]) -> list[str]:
    """The configuration values that a definition needs and that are not given."""
    needed = [each.name for each in head.configuration or () if each.default is None]
    return [name for name in needed if name not in config]


def used_libraries(text: str) -> list[str]:
    """The libraries that lines ``use`` of a text name."""
    named = {word for line in USES.findall(text) for word in WORD.findall(line)}
    return [name for name in LIBRARIES if name in named]


@cache
def _functions_of(library: str, wired: bool) -> dict[str, Function]:
    """The tensor functions of a library by name: those that share names with components of ``std``, or others."""
    from ilang.core.notation.files.libraries import definitions_in, text_of_kind
    from ilang.core.notation.files.module import parse_module

    text = text_of_kind(STD, wired=False) if library == STD else text_of(library)
    module = parse_module(Source(f"{library}.i", text))
    hidden = {each.name.text() for each in definitions_in(STD) if each.wired}
    names = [each.name for each in module.functions if each.name not in INNER]
    names = [name for name in names if (name in hidden) is wired]
    return dict(zip(names, all_functions(module, names), strict=True))


def _is_closed(inner: str) -> bool:
    """Whether a text between brackets closes none that it has not opened: ``f(x) + g(y)`` is no call of f."""
    steps = ((c in "([") - (c in ")]") for c in inner)
    return 0 <= min(accumulate(steps), default=0)


def texts_of(module: Module) -> dict[str, str]:
    """The definitions of a file by name, as they are written, and the lines that name libraries."""
    whole = module.source.text
    uses = [line.strip() for line in whole.splitlines() if re.match(r"\s*use[ \t]+[A-Za-z_]", line)]
    texts = {" ".join(line.split()): line for line in uses}
    parts = [each for each in module.named() if each.span.source.name == module.source.name]
    parts.sort(key=lambda each: each.span.start)
    return texts | {each.name: each.span.text() for each in parts}
