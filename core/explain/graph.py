"""The graph as text: a line per node, each with its reads and its axes.

Example, a sum over rows:
    n0 = input in0
    n1 = fold + over j: n0[i,j]   for i
    outputs n1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ilang.core.calculus.affine import Within, variables_of
from ilang.core.explain.expression import (
    affine_text,
    guards_text,
    scalar_text,
    subscript,
    view_text,
)
from ilang.core.ir.graph import Assignment, Einx, Elementwise, Graph, Input, Node, OpenKernel, View
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.ir.scalar import Operand, Position, Scalar


def graph_text(graph: Graph) -> str:
    """One line per node: ``n2 = n0[i,k] * n1[k,j]   for i j k   called products``."""
    lines, names = [], graph.value_names()
    for value in range(len(graph.nodes)):
        called = f"   called {names[value]}" if value in names else ""
        lines.append(f"n{value} = {node_text(graph, value)}{called}")
    lines.append("outputs " + " ".join(f"n{value}" for value in graph.outputs))
    return "\n".join(lines)


def node_text(graph: Graph, value: int) -> str:
    """A node with its reads and its axes: ``n0[i,k] * n1[k,j]   for i j k``."""
    node: Node = graph.nodes[value]
    match node:
        case Input():
            return f"input {graph.input_name(value)}"
        case Elementwise():
            return scalar_text(node.scalar, lambda _: f"n{node.value}")
        case View():
            return f"n{node.value} as {view_text(node.axes, node.source, node.target)}"
        case Assignment():
            letters = [axis.name for axis in node.axes]
            reads = [
                _guarded(f"n{r.value}{subscript(r.index, letters.__getitem__)}", r.guards, letters)
                for r in node.reads
            ]
            text = scalar_text(
                node.scalar,
                lambda part: (
                    reads[part.number]
                    if isinstance(part, Operand)
                    else _position_text(part, letters)
                ),
            )
            known = variables_of(node.target) | node.looked_up()
            places = "".join(
                f", {letters[each.axis]} = {reads[each.read]}" for each in node.lookups
            )
            fold = "" if node.acc is None else f"fold {node.acc} over "
            known |= node.measured()
            reduced = " ".join(name for axis, name in enumerate(letters) if axis not in known)
            over = " ".join(letters[axis] for index in node.target for axis in index.variables())
            fold = f"{fold}{reduced}" if reduced else fold.removesuffix(" over ")
            start = "" if node.base is None else f" from n{node.base}"
            return f"{fold}{': ' if fold else ''}{text}   for {over or '.'}{places}{start}"
        case Terminal():
            kinds = {"alike": "stands for", "data": "input", "fill": "leaf"}
            return f"{kinds.get(node.kind, node.kind)} {node.name}"
        case Operation() | Einx() | OpenKernel():
            given = " ".join(f"n{operand}" for operand in node.operands)
            which = 0 if isinstance(node, Operation) else node.output
            return f"{node.text}   of {given}{f', output {which}' if which else ''}"
        case _:
            assert_never(node)


def _position_text(part: Scalar, letters: Sequence[str]) -> str:
    """``@i`` or ``@(i+1)``; ``:i`` of an extent."""
    assert isinstance(part, Position)
    for _, axis in part.index.sizes:
        return f":{letters[axis]}"
    text = affine_text(part.index, letters.__getitem__)
    return f"@{text}" if text.isalpha() else f"@({text})"


def _guarded(read: str, guards: Sequence[Within], letters: Sequence[str]) -> str:
    """``(n0[i,j] where 0 <= i-j)``."""
    conditions = guards_text(guards, letters.__getitem__)
    return f"({read} where {conditions})" if conditions else read
