"""Calls that give a program another number of arrays than it takes: what its author most likely meant instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ilang.core.diagnostic import Error
from ilang.core.ir import syntax
from ilang.core.notation.components.arity import wires_of, wires_of_all
from ilang.core.notation.components.misapplied import LARGEST, constant_help
from ilang.core.notation.components.printer import print_tree
from ilang.core.pipeline import graph_of, infer
from ilang.core.record import replace


def arity_help(
    tree: syntax.Tree, definitions: Mapping[str, syntax.Definition], given: int
) -> str | None:
    """Help for a program that was given so many arrays; None where nothing explains the number.

    A number in an expression is a position of an input, `ij*2~ij`, and no constant; `|` gives each side inputs of its
    own, where `&` shares them and `>>` hands results on.
    """
    while isinstance(tree, syntax.Name) and tree.name in definitions:
        tree = definitions[tree.name].body
    help_line = constant_help(tree)
    if help_line is not None or LARGEST < sum(1 for _ in syntax.postorder(tree)):
        return help_line
    if not isinstance(tree, syntax.Combine) or tree.symbol not in ("|", ">>"):
        return None
    known = wires_of_all(definitions)
    for other in _fed_again(tree):
        if wires_of(other, known).inputs == given and _holds(other, definitions):
            text = print_tree(other)
            return f"`>>` hands on results alone; for {_arrays(given)}, and what was computed of it, `{text}`"
    span = tree.span
    shared = syntax.Combine("&", syntax.Identity(span), tree.left, span)
    left, right = wires_of(tree.left, known), wires_of(tree.right, known)
    handed = [syntax.Combine(">>", shared, tree.right, span)] if left.outputs < right.inputs else []
    for other in (
        *handed,
        syntax.Combine("&", tree.left, tree.right, span),
        syntax.Combine(">>", tree.left, tree.right, span),
    ):
        if wires_of(other, known).inputs == given and _holds(other, definitions):
            text = print_tree(other)
            return f"`|` gives each side inputs of its own; for {_arrays(given)}, `{text}`"
    return None


def _fed_again(tree: syntax.Tree) -> Iterator[syntax.Tree]:
    """A chain with one link that hands its inputs on, before or after its results."""
    if not isinstance(tree, syntax.Combine) or tree.symbol != ">>":
        return
    identity = syntax.Identity(tree.span)
    for one, other in ((identity, tree.left), (tree.left, identity)):
        yield replace(tree, left=syntax.Combine("&", one, other, tree.span))
    yield from (replace(tree, left=left) for left in _fed_again(tree.left))


def _arrays(count: int) -> str:
    return "one array" if count == 1 else f"{count} arrays"


def _holds(tree: syntax.Tree, definitions: Mapping[str, syntax.Definition]) -> bool:
    """Whether a program has fitting ranks and types."""
    try:
        infer(graph_of(tree, "program", definitions))
    except Error:
        return False
    return True
