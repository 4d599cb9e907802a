"""A file as an editor has it: its definitions, its names, what may be typed, as far as the text can be read.

Nothing here knows of a protocol: ``server.py`` speaks it. ``meanings.py`` has what definitions mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ilang.core.diagnostic import Error
from ilang.core.ir import functions as ast
from ilang.core.ir import syntax
from ilang.core.ir.primitives import PRIMITIVES
from ilang.core.library import LIBRARIES
from ilang.core.notation.files.libraries import definitions_in
from ilang.core.notation.files.module import readable_module
from ilang.core.notation.files.occurrences import (
    Kind,
    NamedPlace,
    Outlined,
    named_at,
    occurrences,
    outline,
)
from ilang.core.notation.lines import without_comments
from ilang.core.ops import OPS
from ilang.core.source import Source, Span
from ilang.icli.candidates import OfferedWord, candidates, head_of
from ilang.icli.failure import as_error

WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
BEGUN = re.compile(r"^(?:(?:op|cd)[ \t]+)?([A-Za-z_]\w*)[^\n=]*=(?!=)", re.MULTILINE | re.ASCII)
"""A line that begins like a definition."""
BINDS = re.compile(r'([A-Za-z_]\w*)\s*=(?![=>])|"([A-Za-z_]\w*)"', re.ASCII)
"""A word that a text seems to bind."""
NO_DEFINITION, UNCLOSED, UNKNOWN = "E0405", "E0110", "E0401"
FARTHEST = 2_000
"""Characters between a place and the parenthesis that it is in."""
SAYS = {"component": "component", "op": "tensor function", "cd": "routine"}


class BegunCall(NamedTuple):
    """A call that is being written: the head of what is called, the places of its parts, and which is meant."""

    head: str
    parts: tuple[tuple[int, int], ...]
    active: int | None


class Document:
    """One text of a file."""

    def __init__(self, name: str, text: str) -> None:
        """The text of the file ``name``, whose folder has the arrays that it reads."""
        self.source = Source(name, text)

    @cached_property
    def code(self) -> str:
        """The text without its comments."""
        return without_comments(self.source.text)

    @cached_property
    def outline(self) -> list[Outlined]:
        """The definitions, whether they can be read or not."""
        return outline(self.source)

    @cached_property
    def read(self) -> tuple[syntax.Module, list[Error]]:
        """The definitions that can be read, and what is wrong with the text."""
        try:
            module, refused = readable_module(self.source)
        except Error as error:
            refused = [] if error.code == NO_DEFINITION else [error, *error.others]
            return syntax.Module(self.source, ()), refused
        except Exception as failure:
            return syntax.Module(self.source, ()), [as_error(failure)]
        if any(each.code == UNCLOSED for each in refused):
            swallowed = set(BEGUN.findall(self.code))  # by the definition whose bracket is open
            refused = [each for each in refused if not _is_unknown(each, swallowed)]
        return module, refused

    @cached_property
    def names(self) -> list[NamedPlace]:
        """The names of the text, and where they are bound."""
        return [each for each in occurrences(self.read[0]) if each.span.source is self.source]

    @cached_property
    def libraries(self) -> tuple[str, ...]:
        """The libraries that the text uses."""
        lines = " ".join(each.span.text() for each in self.outline if each.kind == "use")
        return tuple(word for word in LIBRARIES if word in WORD.findall(lines))

    def around(self, at: int) -> Outlined | None:
        """The definition that a place is in, or that ends before it on its line."""
        line = self.code.rfind("\n", 0, at) + 1
        near = [each for each in self.outline if each.span.start <= at and line <= each.span.end]
        return near[-1] if near else None

    def word_at(self, at: int) -> Span | None:
        """The word at a place, or directly before it."""
        start = at
        while start and (self.code[start - 1].isalnum() or self.code[start - 1] == "_"):
            start -= 1
        match = WORD.match(self.code, start)
        if match is None or match.end() < at:
            return None
        return Span(self.source, *match.span())

    # -- names ---------------------------------------------------------------------------------------------------------

    def named(self, at: int) -> NamedPlace | None:
        """The name at a place; in a definition that cannot be read, only that of a definition."""
        known, word = named_at(self.names, self.source, at), self.word_at(at)
        if known is not None or word is None:
            return known
        for each in self.outline:
            if each.name.text() == word.text() and each.kind != "use":
                return NamedPlace(word.text(), each.kind, word, each.name)
        for library in self.libraries:
            for part in definitions_in(library):
                if part.name.text() == word.text():
                    kind: Kind = "component" if part.wired else "op"
                    return NamedPlace(word.text(), kind, word, part.name)
        return None

    def same(self, named: NamedPlace) -> list[Span]:
        """Every place of a name in the text."""
        place = named.bound.source.name, named.bound.start
        return [e.span for e in self.names if (e.bound.source.name, e.bound.start) == place]

    def letters(self, at: int) -> list[Span]:
        """The places of the axis at a place, in its expression."""
        tree = self.expression(at)
        if not isinstance(tree, syntax.Expression):
            return []
        axes: list[syntax.Axis] = [
            axis for leaf in (*tree.leaves(), tree.output) for axis in _axes(leaf)
        ]
        meant = {axis.letter for axis in axes if axis.span.start <= at < axis.span.end}
        return [axis.span for axis in axes if axis.letter in meant]

    def expression(self, at: int) -> syntax.Tree | None:
        """The expression, specification, operation or kernel at a place."""
        module = self.read[0]
        bodies: list[syntax.Tree] = [each.body for each in module.definitions]
        for definition in module.functions_and_routines():
            nodes = ast.nodes_within(definition) if self._has(definition.span, at) else ()
            called = (node.component for node in nodes if isinstance(node, ast.Called))
            bodies += [each for each in called if not isinstance(each, ast.Reference)]
        kinds = syntax.Expression | syntax.Einsum | syntax.Einx | syntax.ElementKernel
        nodes = (n for body in bodies if self._has(body.span, at) for n in syntax.postorder(body))
        return next((n for n in nodes if isinstance(n, kinds) and self._has(n.span, at)), None)

    def _has(self, span: Span, at: int) -> bool:
        return span.source is self.source and span.start <= at <= span.end

    # -- what is typed -------------------------------------------------------------------------------------------------

    def completions(self, at: int) -> Iterator[OfferedWord]:
        """The words that may stand at a place."""
        word = self.word_at(at)
        start = at if word is None else word.start
        line = self.code[self.code.rfind("\n", 0, start) + 1 : start]
        inside = self.around(at)
        in_function = inside is not None and inside.kind in ("op", "cd")
        words = list(candidates(line, in_function, self.libraries))
        if any(each.kind == "type" for each in words):  # where any name may stand
            yield from self._bound(inside, start) if inside is not None else ()
            for each in self.outline:
                if each.kind != "use" and each.name.start != start:
                    says = f"{head_of(each.span.text())}   {SAYS[each.kind]}"
                    yield OfferedWord(each.name.text(), "function", says)
            if word is None and not in_function:
                yield from (OfferedWord(op.symbol, "operator", op.name) for op in OPS.values())
        yield from words

    def _bound(self, inside: Outlined, start: int) -> Iterator[OfferedWord]:
        """The inputs and values of a definition; of one that cannot be read, the words that look like some."""
        bound = {
            each.name: str(each.kind)
            for each in self.names
            if self._has(inside.span, each.bound.start) and each.kind not in SAYS
        }
        if not bound:
            text = self.code[inside.span.start : start]
            words = [
                *WORD.findall(head_of(text).partition("(")[2]),
                *map("".join, BINDS.findall(text)),
            ]
            bound = dict.fromkeys(words, "value")
            bound.pop(inside.name.text(), None)
        yield from (OfferedWord(name, "variable", kind) for name, kind in bound.items())

    def call(self, at: int) -> BegunCall | None:
        """The call that a place is in the parentheses of."""
        depth, commas, is_setting = 0, 0, False
        for place in range(at - 1, max(-1, at - FARTHEST), -1):
            c = self.code[place]
            if not depth and c in "([{":
                name = self.word_at(place)
                head = self._head(name.text()) if name and c == "(" and name.end == place else ""
                return _call(head, commas, is_setting) if head else None
            depth += (c in ")]}") - (c in "([{")
            if not depth and c == ";":
                is_setting = True
            elif not depth and c == "," and not is_setting:
                commas += 1
        return None

    def _head(self, name: str) -> str:
        """The head of the definition or the primitive of a name; empty where it has none."""
        texts = [(e.name.text(), e.span.text()) for e in self.outline if e.kind != "use"]
        parts = (part for library in self.libraries for part in definitions_in(library))
        texts += [(part.name.text(), part.text()) for part in parts]
        heads = [head_of(text) for known, text in texts if known == name]
        takes = PRIMITIVES.get(name)
        heads += [f"{name}({', '.join('xyz'[:takes])})"] if takes else []
        return next((head for head in heads if "(" in head), "")


def _axes(leaf: syntax.Leaf) -> tuple[syntax.Axis, ...]:
    """The axes of a part of an expression, those of its guards included."""
    guards = leaf.guards if isinstance(leaf, syntax.Pattern) else ()
    return (*leaf.axes(), *(axis for guard in guards for axis in guard.axes()))


def _is_unknown(error: Error, names: set[str]) -> bool:
    return error.code == UNKNOWN and error.span is not None and error.span.text() in names


def _call(head: str, commas: int, is_setting: bool) -> BegunCall:
    """A call of a head, of which so many parts stand before the place: settings, or else tensors."""
    start = head.index("(") + 1
    parts: list[tuple[int, int]] = []
    depth, begin, tensors = 0, start, 0
    for at in range(start, len(head)):
        depth += (head[at] in "([{") - (head[at] in ")]}")
        if depth < 0 or (not depth and head[at] in ",;"):
            parts += (
                [(begin + head[begin:at].count(" ", 0, 1), at)] if head[begin:at].strip() else []
            )
            tensors = len(parts) if head[at] == ";" else tensors
            begin = at + 1
        if depth < 0:
            break
    active = commas + (tensors if is_setting else 0)
    return BegunCall(head, tuple(parts), active if active < len(parts) else None)
