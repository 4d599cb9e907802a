"""The meanings of the definitions of a file, for an editor: errors that inference finds, pages, types of tensors.

A definition is inferred where its own text and those that it uses can be read. What was inferred is kept for later
texts that have the same definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ilang.core.diagnostic import Error
from ilang.core.ir.syntax import Module, Tree
from ilang.core.notation.files.module import exports, uses_of
from ilang.icli.document import Document
from ilang.icli.failure import as_error

if TYPE_CHECKING:
    from ilang.codegen.session.model import Model
    from ilang.core.ir.graph import Graph
    from ilang.core.passes.syntax_to_graph import Definitions

MOST_EXPRESSIONS = 2_000
"""Expressions of a definition that is inferred while its file is edited."""
MOST_KEPT = 10_000
"""Definitions whose inference is kept."""


class InferredDefinition(NamedTuple):
    """A definition that holds: a line on it, and the types of its tensors by name: ``f32[m,n]``."""

    line: str
    types: Mapping[str, str]


class Hint(NamedTuple):
    """A text that an editor shows at a place, where it is not."""

    at: int
    text: str


class Meanings:
    """The meanings of the definitions of one text of a file."""

    def __init__(self, document: Document, earlier: Meanings | None = None) -> None:
        """``earlier`` are those of a text before, whose inferences are kept."""
        self.document = document
        self.kept: dict[object, InferredDefinition] = {} if earlier is None else earlier.kept
        if MOST_KEPT < len(self.kept):
            self.kept.clear()

    @property
    def module(self) -> Module:
        """The definitions that can be read."""
        return self.document.read[0]

    @cached_property
    def definitions(self) -> Definitions:
        """The components by name."""
        from ilang.core.pipeline import definitions_of

        return definitions_of(self.module)

    @cached_property
    def model(self) -> Model:
        """The tensor functions and the routines."""
        from ilang.codegen.session.model import Model

        return Model(self.module)

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of tensor functions and routines."""
        return frozenset(each.name for each in self.module.functions_and_routines())

    @cached_property
    def _exported(self) -> frozenset[str]:
        return frozenset(each.name for each in exports(self.module))

    @cached_property
    def _keys(self) -> dict[str, object]:
        """A key for each definition that can be inferred: its text, and those of the definitions that it uses."""
        document, module = self.document, self.module
        outlined = {each.name.text(): each.span for each in document.outline if each.kind != "use"}
        wrong = [each.span.start for each in document.read[1] if each.span is not None]
        uses: dict[str, set[str]] = {}
        for definition in module.named():
            name, span = definition.name, definition.span
            if span.source is document.source and not any(
                span.start <= at <= span.end for at in wrong
            ):
                names = {each.name for each in uses_of(definition)}
                uses[name] = names.intersection(outlined) - {name}
        keys: dict[str, object] = {}
        while ready := [name for name in uses if name not in keys and uses[name] <= keys.keys()]:
            for name in ready:
                below = (keys[each] for each in sorted(uses[name]))
                keys[name] = (name, outlined[name].text(), document.libraries, hash(tuple(below)))
        return keys

    def checks(self) -> Iterator[Error | None]:
        """The error that inference finds in each definition, one at a time: None for one that holds."""
        for name in self._keys:
            try:
                self.inferred(name)
            except Error as error:
                yield error
            except Exception as failure:
                yield as_error(failure)
            else:
                yield None

    def inferred(self, name: str) -> InferredDefinition | None:
        """The inference of a definition; None where it is too long, or cannot be read.

        Raises:
            Error: what is wrong with it.
        """
        key = self._keys.get(name)
        if key is None:
            return None
        if key not in self.kept:
            if MOST_EXPRESSIONS < self._count(name):
                return None
            infer = self._function if name in self.functions else self._component
            self.kept[key] = infer(name)
        return self.kept[key]

    def _count(self, name: str) -> int:
        """The number of expressions of a definition, with all that it uses inserted."""
        if name in self.functions:
            return self._least[name]
        return self.definitions.leaves(self.definitions[name].body)

    @cached_property
    def _least(self) -> dict[str, int]:
        from ilang.core.build.counting import least_expressions

        return least_expressions(self.module.functions, self.module.routines)

    def _component(self, name: str) -> InferredDefinition:
        from ilang.core.explain.page import tensor_type
        from ilang.core.pipeline import module_graph
        from ilang.icli.commands.check import describe

        graph = module_graph(self.module, name, self.definitions)
        line, shaped = describe(graph, is_part=name not in self._exported)
        if shaped is None:
            return InferredDefinition(line, {})
        tensors = enumerate(shaped.tensors)
        types = {each.name: tensor_type(shaped, n) for n, each in tensors}
        return InferredDefinition(line, types)

    def _function(self, name: str) -> InferredDefinition:
        from ilang.codegen.session.function import Function
        from ilang.icli.definitions import checked_line, head_of

        function = Function(self.model, name)
        line = checked_line(function, {}, {})
        if any(each.default is None for each in head_of(function).configuration or ()):
            return InferredDefinition(line, {})
        values = function.shape_so_far().values
        return InferredDefinition(line, {each.name: each.rows for each in values})

    # -- pages ---------------------------------------------------------------------------------------------------------

    def page(self, name: str) -> str:
        """The page of a definition, as ``f.explain()`` has it; of one of any rank, or too long, its text."""
        from ilang.icli.staged import DefinitionAtShapes

        try:
            if MOST_EXPRESSIONS < self._count(name):
                return self._text(name)
            if name in self.functions:
                from ilang.codegen.session.function import Function

                return DefinitionAtShapes(Function(self.model, name), {}, {}).page()
            from ilang.core.pipeline import module_graph

            return explained(module_graph(self.module, name, self.definitions))
        except Exception as failure:
            return self._text(name) or as_error(failure).message

    def _text(self, name: str) -> str:
        """The text of a definition; nothing of one that cannot be read."""
        return next((each.span.text() for each in self.module.named() if each.name == name), "")

    def explained_tree(self, tree: Tree) -> str | None:
        """The page of an expression; None where it cannot be explained alone."""
        from ilang.icli.programs import expressed

        try:
            return explained(expressed(tree, self.module).graph)
        except Exception:  # the definition says it, where it is wrong
            return None

    def hints(self, start: int, end: int) -> Iterator[Hint]:
        """The types that are inferred of what stands in a range: of each value, and of the result."""
        for each in self.document.outline:
            if each.kind == "use" or each.span.end < start or end < each.span.start:
                continue
            try:
                inferred = self.inferred(each.name.text())
            except Exception:  # a diagnostic says it
                continue
            if inferred is not None:
                yield from self._hints(each.span.start, each.span.end, inferred)

    def _hints(self, start: int, end: int, inferred: InferredDefinition) -> Iterator[Hint]:
        text = self.document.code
        for each in self.document.names:
            if start <= each.span.start < end and each.span.start == each.bound.start:
                after = text[each.span.end : end].lstrip()
                shown = inferred.types.get(each.name, "")
                is_known = "..." not in shown and re.search(r"\w", shown) is not None
                if each.kind in ("input", "value") and is_known and after[:1] not in ("[", ":"):
                    yield Hint(each.span.end, f": {shown}")
                elif each.kind == "component" and " -> " in inferred.line:
                    head, _, result = inferred.line.partition("   ")[0].rpartition(" -> ")
                    close = text.find("=", each.span.end)
                    given = after.startswith("(")
                    shown = (
                        f"-> {result}" if given else f"{head.removeprefix(each.name)} -> {result}"
                    )
                    yield Hint(len(text[:close].rstrip()), f" {shown}" if given else shown)


def explained(graph: Graph) -> str:
    """The page of a graph, without what only a command can show."""
    from ilang.core.pipeline import explain

    page = str(explain(graph, None))
    return page.partition("\nmore  ")[0].rstrip()
