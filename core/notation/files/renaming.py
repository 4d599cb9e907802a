"""One set of definitions out of two, whose names may clash: linear in what is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from ilang.core.ir import syntax
from ilang.core.record import mapped_inside, replace
from ilang.core.walks import parts_first

TREES = get_args(syntax.Tree)


def merged(
    first: Mapping[str, syntax.Definition],
    second: Mapping[str, syntax.Definition],
    tree: syntax.Tree,
) -> tuple[Mapping[str, syntax.Definition], syntax.Tree]:
    """One set of definitions for two trees; ``tree`` is the one that uses ``second``.

    Where both define a name, that of ``second`` gets a new one: ``shift`` becomes ``shift_2``.
    """
    if first is second or not second:
        return first, tree
    if not first:
        return second, tree
    clashes = [name for name in second if name in first and first[name] is not second[name]]
    if not clashes:
        return {**first, **second}, tree
    taken = {*first, *second}
    names: dict[str, str] = {}
    for name in clashes:
        number = 2
        while f"{name}_{number}" in taken:
            number += 1
        names[name] = f"{name}_{number}"
        taken.add(names[name])
    renamed = {
        names.get(name, name): replace(
            definition, name=names.get(name, name), body=_renamed(definition.body, names)
        )
        for name, definition in second.items()
    }
    return {**first, **renamed}, _renamed(tree, names)


def _renamed(tree: syntax.Tree, names: Mapping[str, str]) -> syntax.Tree:
    """A tree with some names changed; subtrees that are shared stay shared."""
    done: dict[int, syntax.Tree] = {}
    for node in parts_first([tree], syntax.children, key=id):
        if isinstance(node, syntax.Name):
            done[id(node)] = replace(node, name=names.get(node.name, node.name))
        else:
            done[id(node)] = mapped_inside(node, TREES, lambda part: done.get(id(part), part))
    return done[id(tree)]
