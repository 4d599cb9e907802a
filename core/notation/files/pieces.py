"""Texts that name components of the library ``std`` without a line ``use``: ``softmax``, ``mean >> f32``.

In:  ``softmax >> +ij~i``, which is refused: there is no definition named `softmax`
Out: the definitions ``program = softmax >> +ij~i`` and that of softmax
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

from ilang.core.diagnostic import Error
from ilang.core.ir.graph import UNNAMED
from ilang.core.ir.syntax import Definition, Module, Name, Tree, names_in
from ilang.core.library import INNER, STD
from ilang.core.notation.components.combinator import parse_program
from ilang.core.notation.files.libraries import defined_in, text_of_kind, words_of
from ilang.core.notation.files.module import names_inputs, read_module
from ilang.core.source import Source


def named_pieces(text: str, hidden: Collection[str] = ()) -> dict[str, Definition]:
    """The components that a text without a line ``use`` may mean by its words, and what these need.

    Words that are ``hidden`` mean something else.
    """
    known = _pieces()
    words = words_of(text).difference(hidden, INNER)
    needed: dict[str, Definition] = {}
    todo = [name for name in known if name in words]
    while todo:
        name = todo.pop()
        if name not in needed:
            needed[name] = known[name]
            todo += [each.name for each in names_in(known[name].body) if each.name in known]
    return {name: each for name, each in known.items() if name in needed}


@cache
def _pieces() -> dict[str, Definition]:
    module = read_module(Source(f"{STD}.i", text_of_kind(STD, wired=True)), None)
    return {each.name: each for each in module.definitions}


def with_pieces(text: str, name: str, error: Error) -> Module:
    """The definitions that a refused text is, with components of the library.

    Raises:
        Error: the same one where the text names none of them; else what is wrong beside the names.
    """
    source = Source(name, text)
    if names_inputs(text):
        return _implied(source, error)
    tree, pieces = program_with_pieces(source, {}, error)
    named = pieces[tree.name].parameters if isinstance(tree, Name) else None
    program = Definition(UNNAMED, named, tree, tree.span)
    return Module(source, (program, *pieces.values()))


def parse_with_pieces(source: Source) -> Module:
    """The definitions of a text, which may name definitions of the library."""
    try:
        return read_module(source, None)
    except Error as error:
        return _implied(source, error)


def _implied(source: Source, error: Error) -> Module:
    """The definitions of a refused text that uses the library without saying so."""
    if words_of(source.text).isdisjoint(defined_in()):
        raise error
    try:
        return read_module(source, None, (STD,))
    except Error as other:
        raise other from None


def program_with_pieces(
    source: Source, names: Mapping[str, object], error: Error
) -> tuple[Tree, dict[str, Definition]]:
    """The tree of a refused program that names components of the library, and these; ``names`` mean something else.

    Raises:
        Error: the same one where it names none; else what is wrong beside the names.
    """
    pieces = named_pieces(source.text, names)
    unknown = error.code == "E0401" and error.span is not None and error.span.text() in pieces
    if not pieces:
        raise error
    try:
        tree = parse_program(source, {**names, **pieces})
    except Error as other:
        raise (other if unknown else error) from None
    if pieces.keys().isdisjoint(node.name for node in names_in(tree)):
        raise error
    return tree, pieces
