"""Names of a file: every place where one stands, and the place that gives it its meaning.

In:  ``f(x[n]) = g(x)`` and ``g = i*i~i``
Out: f, x and g where they are bound; x in the body, bound in the head; g in the body, bound in its line

Axes of patterns and specifications, primitives and slots of a ``prim`` are no such names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from ilang.core.ir import functions as ast
from ilang.core.ir import syntax
from ilang.core.notation.files.libraries import BEGINS
from ilang.core.notation.lines import logical_lines, without_comments
from ilang.core.source import Source, Span

Kind = Literal["component", "op", "cd", "use", "input", "configuration", "value", "parameter"]
"""The kind of thing that a name stands for; ``use`` is a line that names libraries."""


class NamedPlace(NamedTuple):
    """A name at a place, and where it is bound: at the same place, where this is the one that binds it."""

    name: str
    kind: Kind
    span: Span
    bound: Span


class Outlined(NamedTuple):
    """A definition as its first words say it, also where the rest cannot be read; ``name`` is the place of its name."""

    name: Span
    kind: Kind
    span: Span


def outline(source: Source) -> list[Outlined]:
    """The definitions of a text, in order, and its lines ``use``."""
    text = without_comments(source.text)
    listed: list[Outlined] = []
    for start, end in logical_lines(text):
        match = BEGINS.match(text, start, end)
        if match is None:
            continue
        kind: Kind = "component"
        if match[1] is not None:
            kind = "op" if match[1] == "op" else "cd"
        elif match[2] == "use" and text[match.end() : end].lstrip()[:1].isalpha():
            kind = "use"
        listed.append(Outlined(Span(source, *match.span(2)), kind, Span(source, start, end)))
    return listed


def occurrences(module: syntax.Module) -> list[NamedPlace]:
    """The names of a module, libraries included, in the order of the text of each definition."""
    names: dict[tuple[str, int], NamedPlace] = {}
    for each in _Occurrences(module).all():
        names.setdefault((each.span.source.name, each.span.start), each)
    return list(names.values())


Bound = dict[str, tuple[Kind, Span]]
"""The names of a definition: what each is, and the place that binds it."""


class _Occurrences:
    """The names of one module."""

    def __init__(self, module: syntax.Module) -> None:
        self.module = module
        self.components: dict[str, Span] = {
            each.name: _name_at(each.span, each.name) for each in module.definitions
        }
        self.functions: Bound = {}
        self.heads: dict[str, ast.Head] = {}
        for definition in module.functions_and_routines():
            head = definition.head
            kind: Kind = "op" if isinstance(definition, ast.Function) else "cd"
            self.functions[head.name] = kind, _name_at(head.span, head.name, past=len(kind))
            self.heads[head.name] = head

    def all(self) -> Iterator[NamedPlace]:
        for each in self.module.definitions:
            yield from self._component(each)
        for definition in self.module.functions_and_routines():
            yield from self._function(definition)

    def _component(self, definition: syntax.Definition) -> Iterator[NamedPlace]:
        yield _binds("component", self.components[definition.name])
        bound: Bound = {}
        for each in definition.parameters or ():
            bound[each.name] = "input", _name_at(each.span, each.name)
        bindings: Sequence[syntax.Binding] = ()
        if isinstance(definition.body, syntax.Block):
            bindings = definition.body.bindings
        for value in (target for binding in bindings for target in binding.targets):
            if value.name != syntax.DISCARD:
                bound[value.name] = "value", value.span
        yield from (_binds(kind, span) for kind, span in bound.values())
        yield from self._tree(definition.body, bound)

    def _tree(self, tree: syntax.Tree, bound: Bound) -> Iterator[NamedPlace]:
        """The names in the body of a component, or in a program that a tensor function calls."""
        for node in syntax.postorder(tree):
            if isinstance(node, syntax.Value) and node.name in bound:
                yield NamedPlace(node.name, bound[node.name][0], node.span, bound[node.name][1])
            elif isinstance(node, syntax.Name):
                yield from self._defined(node, wired=True)

    def _defined(self, node: syntax.Name | ast.Reference, wired: bool) -> Iterator[NamedPlace]:
        """The name of a definition of the file or a library; of two of one name, the kind that is wanted."""
        name = node.name
        if name in self.components and (wired or name not in self.functions):
            yield NamedPlace(name, "component", node.span, self.components[name])
        elif name in self.functions:
            yield NamedPlace(name, self.functions[name][0], node.span, self.functions[name][1])

    def _function(self, definition: ast.Function | ast.Routine) -> Iterator[NamedPlace]:
        """The name, what the definition binds, and what it uses; a name that is bound again has its first meaning."""
        head = definition.head
        yield _binds(*self.functions[head.name])
        bound: Bound = {}
        for name, kind, span in ast.bindings(definition):
            bound.setdefault(name, (kind, span))
            yield NamedPlace(name, bound[name][0], span, bound[name][1])
        for node in ast.nodes_within(definition):
            yield from self._use(node, bound)

    def _use(self, node: object, bound: Bound) -> Iterator[NamedPlace]:
        match node:
            case ast.Reference(name=name) if name in bound:
                yield NamedPlace(name, bound[name][0], node.span, bound[name][1])
            case ast.Reference():
                yield from self._defined(node, wired=False)
            case ast.Called(component=ast.Reference(name=called)):
                yield from self._settings(called, node.settings)
            case ast.Called(component=component) if not isinstance(component, ast.Reference):
                yield from self._tree(component, {})
            case _:
                pass

    def _settings(
        self, called: str, settings: Sequence[ast.Setting] | None
    ) -> Iterator[NamedPlace]:
        """The configuration that a call gives by name, which the head of what is called binds."""
        head = self.heads.get(called)
        configuration = (head.configuration if head else None) or ()
        known = {each.name: each.span.begin(len(each.name)) for each in configuration}
        for each in settings or ():
            if each.name in known:
                span = each.span.begin(len(each.name))
                yield NamedPlace(each.name, "configuration", span, known[each.name])


def _binds(kind: Kind, span: Span) -> NamedPlace:
    return NamedPlace(span.text(), kind, span, span)


def _name_at(span: Span, name: str, past: int = 0) -> Span:
    """The place of the name that a span begins with, after so many characters and blanks."""
    start = span.source.text.index(name, span.start + past)
    return Span(span.source, start, start + len(name))


def named_at(names: Sequence[NamedPlace], source: Source, at: int) -> NamedPlace | None:
    """The name at a place of a text, also directly behind it."""
    for each in names:
        if each.span.source is source and each.span.start <= at <= each.span.end:
            return each
    return None
