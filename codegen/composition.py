"""What combining components needs: how many wires a tree has, and one set of definitions out of two.

Both are linear in what is given, and combining two components is not: the counts of a combination come from the
counts of its sides.
"""

from __future__ import annotations

from collections.abc import Mapping

from ilang.core.ir.syntax import (
    Combine,
    Conversion,
    Definition,
    Einsum,
    Expression,
    Identity,
    Name,
    Number,
    Swap,
    Tree,
    children,
    postorder,
)
from ilang.core.record import record, replace


@record
class Wires:
    """Inputs and outputs of a component, and the expressions it would have written out in full."""

    inputs: int
    outputs: int
    leaves: int


def combined(symbol: str, f: Wires, g: Wires) -> Wires:
    """The wires of ``f symbol g`` (LANGUAGE.md section 2)."""
    inputs, outputs = f.inputs + g.inputs, f.outputs + g.outputs
    match symbol:
        case ">>":
            pairs = min(f.outputs, g.inputs)
            inputs, outputs = inputs - pairs, outputs - pairs
        case "<<":
            pairs = min(f.inputs, g.outputs)
            inputs, outputs = inputs - pairs, outputs - pairs
        case "&":
            inputs -= min(f.inputs, g.inputs)
        case _:
            pass
    return Wires(inputs, outputs, f.leaves + g.leaves)


def wires_of(tree: Tree, known: Mapping[str, Wires]) -> Wires:
    """The wires of a tree; ``known`` has those of every name in it."""
    stack: list[Wires] = []
    for node in postorder(tree):
        match node:
            case Combine():
                right, left = stack.pop(), stack.pop()
                stack.append(combined(node.symbol, left, right))
            case Swap():
                pass
            case Name():
                stack.append(known[node.name])
            case Expression():
                stack.append(Wires(1 if node.right is None else 2, 1, 1))
            case Einsum():
                stack.append(Wires(len(node.spec.operands), 1, 1))
            case Number():
                stack.append(Wires(0, 1, 1))
            case Identity() | Conversion():
                stack.append(Wires(1, 1, 1))
    return stack[0]


def wires_of_all(definitions: Mapping[str, Definition]) -> dict[str, Wires]:
    """The wires of every definition; they have no cycles."""
    known: dict[str, Wires] = {}
    for start in definitions:
        todo = [start]
        while todo:
            name = todo[-1]
            body = definitions[name].body
            missing = {
                node.name
                for node in postorder(body)
                if isinstance(node, Name) and node.name not in known
            }
            if missing and name not in known:
                todo += sorted(missing)
                continue
            todo.pop()
            if name not in known:
                known[name] = wires_of(body, known)
    return known


def merged(
    ours: Mapping[str, Definition], theirs: Mapping[str, Definition], tree: Tree
) -> tuple[Mapping[str, Definition], Tree]:
    """One set of definitions for two trees; ``tree`` is the one that uses ``theirs``.

    Where both sides define a name, theirs gets a new one: ``shift`` becomes ``shift_2``.
    """
    if ours is theirs or not theirs:
        return ours, tree
    if not ours:
        return theirs, tree
    clashes = [name for name in theirs if name in ours and ours[name] is not theirs[name]]
    if not clashes:
        return {**ours, **theirs}, tree
    taken = {*ours, *theirs}
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
        for name, definition in theirs.items()
    }
    return {**ours, **renamed}, _renamed(tree, names)


def _renamed(tree: Tree, names: Mapping[str, str]) -> Tree:
    """A tree with some names changed; subtrees that are shared stay shared."""
    done: dict[int, Tree] = {}
    todo = [tree]
    while todo:
        node = todo[-1]
        below = children(node)
        missing = [child for child in below if id(child) not in done]
        if missing and id(node) not in done:
            todo += missing
            continue
        todo.pop()
        match node:
            case Name():
                done[id(node)] = replace(node, name=names.get(node.name, node.name))
            case Combine():
                done[id(node)] = replace(node, left=done[id(node.left)], right=done[id(node.right)])
            case Swap():
                done[id(node)] = replace(node, operand=done[id(node.operand)])
            case _:
                done[id(node)] = node
    return done[id(tree)]
