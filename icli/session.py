"""The state of the REPL, without a terminal: ``Session.feed(text) -> Reply``.

A line is one of:
    - ``name = rand:4x8``, ``name = [[1,2],[3,4]]``, ``name = x.npy``: binds an array;
    - ``name = program``, ``name(x[m,d], ...) = program``: defines a component, or defines it again;
    - ``program``: shows its shapes, projections and loops, with the shapes of the arrays at hand where they fit;
    - ``program x y``, ``name(x, y)``: applies it; the result is bound to ``_``, or with ``z = ...`` to z;
    - ``:help`` and the like (``colon.py``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, Error, ModuleError, ShapeError
from ilang.core.explanation import Explanation
from ilang.core.ir.graph import Graph, Input
from ilang.core.ir.syntax import Definition, Module, Name, Tree
from ilang.core.notation.reader import COMBINATORS, RESERVED
from ilang.core.record import record
from ilang.core.source import Source
from ilang.icli.failure import as_error
from ilang.icli.literal import is_array

if TYPE_CHECKING:
    from ilang.icli.arrays import Array

WHERE = "<repl>"
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
BINDS = re.compile(rf"\s*({NAME})\s*=(?![=>~])(.*)", re.DOTALL)
DEFINES = re.compile(rf"\s*({NAME})\s*\([^~=]*\)\s*=(?!=)", re.DOTALL)
CALLS = re.compile(rf"\s*({NAME})\s*\((.*)\)\s*", re.DOTALL)
LAST = "_"
"""The name of the last result."""


@record
class Reply:
    """What a line gave: text, pages and diagnostics in order."""

    parts: tuple[str | Explanation | Error, ...]
    failed: bool = False
    leaves: bool = False


class Session:
    """Arrays and definitions by name, and what the last line was about."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.texts: dict[str, str] = {}
        self.definitions: dict[str, Definition] = {}
        self.shapes: tuple[tuple[int, ...], ...] | None = None
        self.last: tuple[Graph, tuple[tuple[int, ...], ...] | None] | None = None

    def feed(self, text: str) -> Reply:
        """Take one line, which may have several, and answer it; failures are answers too."""
        try:
            line = text.strip()
            if not line or line.startswith("#"):
                return Reply(())
            if line.startswith(":"):
                from ilang.icli.colon import command

                return command(self, line)
            return self._line(line)
        except Exception as failure:  # noqa: BLE001 - the session outlives any line
            return Reply((as_error(failure),), failed=True)

    def _line(self, line: str) -> Reply:
        binds = BINDS.match(line)
        if binds is not None:
            return self._bind(binds.group(1), binds.group(2).strip(), line)
        defines = DEFINES.match(line)
        if defines is not None:
            return self.define({defines.group(1): line})
        words = split_words(line)
        if all(word in self.arrays or is_array(word) for word in words) and not _is_number(line):
            return Reply(tuple(self._shown(word, self.value(word)) for word in words))
        found = self.program(line)
        if isinstance(found, Graph):
            return self.explained(found)
        results = self.apply(*found)
        self.arrays[LAST] = results[0][1]
        return Reply(tuple(self._shown(name, array) for name, array in results))

    def _bind(self, name: str, value: str, line: str) -> Reply:
        """``name = value``: an array where the value is one, else a definition."""
        if value in self.arrays or (is_array(value) and not _is_number(value)):
            return self._keep(name, self.value(value))
        if _is_number(value) or not value:
            return self.define({name: line})
        try:
            found = self.program(value)
        except ModuleError:
            return self.define({name: line})
        if isinstance(found, Graph):
            return self.define({name: line})
        results = self.apply(*found)
        if len(results) != 1:
            raise CommandError("E0820", f"{len(results)} outputs cannot be bound to one name")
        return self._keep(name, results[0][1])

    def _keep(self, name: str, array: Array) -> Reply:
        """Bind an array to a name and say what it is."""
        from ilang.icli.values import head_text

        if name in RESERVED:
            raise ModuleError("E0404", f"`{name}` is a word of the language and cannot name anything")
        self.arrays[name] = array
        self.texts.pop(name, None)
        self.definitions.pop(name, None)
        return Reply((head_text(name, array),))

    def define(self, texts: dict[str, str]) -> Reply:
        """Add definitions to the growing module, all or none, and show the last of them."""
        module = self._module({**texts, **{k: v for k, v in self.texts.items() if k not in texts}})
        name = list(texts)[-1]
        reply = self.explained(self._graph_in(module, name))
        self.definitions = {definition.name: definition for definition in module.definitions}
        kept = {key: text for key, text in self.texts.items() if key not in texts}
        self.texts = {**kept, **texts}
        for key in texts:
            self.arrays.pop(key, None)
        return reply

    def _module(self, texts: dict[str, str]) -> Module:
        """A module of definitions; the first one stands on line 1, as it was typed."""
        from ilang.core.notation.module import parse_module

        return parse_module(Source(WHERE, "\n".join(texts.values())))

    def _graph_in(self, module: Module, name: str) -> Graph:
        from ilang.core.pipeline import module_graph

        return module_graph(module, name)

    def program(self, line: str) -> Graph | tuple[Graph, list[str]]:
        """A line as a program, or as a program and the arrays it is applied to."""
        call = CALLS.fullmatch(line)
        if call is not None and call.group(1) in self.definitions and "~" not in call.group(2):
            return self.named(call.group(1)), split_words(call.group(2), ",")
        try:
            return self.graph(line)
        except Error as first:
            words = split_words(line)
            count = self._trailing_arrays(words)
            head = line
            for word in reversed(words[len(words) - count :]):
                head = head[: head.rindex(word)].rstrip()
            if count == 0 or not head or head.endswith(COMBINATORS):
                raise first from None
            return self.graph(head), words[len(words) - count :]

    def _trailing_arrays(self, words: Sequence[str]) -> int:
        """How many words at the end are arrays."""
        count = 0
        for word in reversed(words):
            if word not in self.arrays and not is_array(word):
                break
            count += 1
        return count

    def graph(self, text: str) -> Graph:
        """The component that a program text is."""
        from ilang.core.notation.combinator import parse_program
        from ilang.core.pipeline import graph_of

        tree = parse_program(Source(WHERE, text), self.definitions)
        if isinstance(tree, Name) and tree.name in self.definitions:
            return self.named(tree.name)
        return graph_of(self._known(tree), "program", self.definitions)

    def _known(self, tree: Tree) -> Tree:
        """The tree itself; an array where a component belongs is refused with a word about how to apply."""
        from ilang.core.ir.syntax import postorder

        for node in postorder(tree):
            if isinstance(node, Name) and node.name in self.arrays:
                raise ModuleError(
                    "E0401",
                    f"`{node.name}` is an array, and a component belongs here",
                    node.span,
                    help="apply a component by writing arrays after it: `+ij~i x`",
                )
        return tree

    def named(self, name: str) -> Graph:
        """The component of a definition."""
        source = Source(WHERE, "")
        return self._graph_in(Module(source, tuple(self.definitions.values())), name)

    def value(self, word: str, dtype: str | None = None, number: int = 0) -> Array:
        """The array that a word names or spells."""
        from ilang.icli.arrays import array_of

        return self.arrays[word] if word in self.arrays else array_of(word, dtype, number)

    def apply(self, graph: Graph, words: Sequence[str]) -> list[tuple[str, Array]]:
        """Run a component on arrays; its outputs by name."""
        from ilang.codegen.component import Component
        from ilang.icli.values import output_names

        declared = [
            node.dtype if isinstance(node := graph.nodes[number], Input) else None
            for number in graph.inputs
        ]
        declared += [None] * len(words)
        arrays = [self.value(word, declared[n], n) for n, word in enumerate(words)]
        answer = Component(graph)(*arrays)
        answers = answer if isinstance(answer, tuple) else (answer,)
        self.last = (graph, tuple(array.shape for array in arrays))
        return list(zip(output_names(len(answers)), answers, strict=True))

    def explained(self, graph: Graph) -> Reply:
        """The page of a component, at the shapes of the arrays at hand where they fit."""
        from ilang.core.pipeline import explain

        shapes, origin = self._shapes_at_hand(graph)
        notes: tuple[str, ...] = ()
        if shapes is not None:
            try:
                page = explain(graph, shapes)
                notes = (f"shapes of {origin}",) if origin else ()
            except ShapeError:
                shapes, page = None, explain(graph, None)
        else:
            page = explain(graph, None)
        self.last = (graph, shapes)
        return Reply((page, *notes))

    def _shapes_at_hand(self, graph: Graph) -> tuple[tuple[tuple[int, ...], ...] | None, str]:
        """Shapes to explain a component with, and the arrays they come from."""
        inputs = [graph.input_name(number) for number in range(len(graph.inputs))]
        bound = [name for name in self.arrays if name != LAST]
        if not inputs:
            return None, ""
        if self.shapes is not None and len(self.shapes) == len(inputs):
            return self.shapes, ""
        if all(name in self.arrays for name in inputs):
            bound = inputs
        if len(bound) != len(inputs):
            return None, ""
        return tuple(self.arrays[name].shape for name in bound), ", ".join(bound)

    def _shown(self, name: str, array: Array) -> str:
        from ilang.icli.values import array_text

        return array_text(name, array)


def split_words(text: str, separator: str = "") -> list[str]:
    """Words at blanks (or at a separator) outside brackets."""
    words, word, depth = [], "", 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if depth <= 0 and (c == separator if separator else c.isspace()):
            words.append(word.strip())
            word = ""
        else:
            word += c
    return [word for word in (*words, word.strip()) if word]


def _is_number(text: str) -> bool:
    """Whether a text alone is a constant of the language rather than an array."""
    return re.fullmatch(r"[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?", text.strip()) is not None


def goes_on(text: str) -> bool:
    """Whether a line needs another one: an open bracket, or a combinator at its end."""
    if text.endswith("\n") or text.lstrip().startswith(":"):
        return False
    depth = sum((c in "([") - (c in ")]") for c in text)
    return 0 < depth or text.rstrip().endswith(COMBINATORS)

