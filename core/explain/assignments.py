"""The assignments of a typed graph as text, a line each: what a program is once everything is known of it.

Example, a sum over rows:
    out[i] = sum in0[i,j] over j
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ilang.core.calculus.affine import Affine, Within
from ilang.core.explain.expression import (
    affine_text,
    guards_text,
    scalar_text,
    size_text,
    subscript,
    view_text,
)
from ilang.core.ir.scalar import Operand, Position, Scalar
from ilang.core.ir.shaped import Assignment, Input, Shaped, View
from ilang.core.ops import OPS


def assignments_text(shaped: Shaped) -> str:
    """A line for each value that is computed."""
    lines = []
    for value, node in enumerate(shaped.nodes):
        match node:
            case Input():
                continue
            case View():
                view = view_text(node.axes, node.source, node.target)
                name = shaped.tensors[node.value].name
                lines.append(f"{shaped.tensors[value].name} = {name} as {view}")
            case Assignment():
                lines.append(assignment_text(shaped, value))
            case _:
                assert_never(node)
    return "\n".join(lines)


def assignment_text(shaped: Shaped, value: int) -> str:
    """The line of a value that is computed by an assignment."""
    return _Line(shaped, value, shaped.assignment(value)).text()


def gradient_text(shaped: Shaped) -> str:
    """A typed graph as a definition where the language has words for it, else as its assignments."""
    from ilang.core.explain.definition_text import definition_text
    from ilang.core.explain.page import signature

    return definition_text(shaped) or f"{signature(shaped)}\n\n{assignments_text(shaped)}"


class _Line:
    """One assignment; two axes of one name are told apart by their numbers."""

    def __init__(self, shaped: Shaped, value: int, node: Assignment) -> None:
        self.shaped = shaped
        self.value = value
        self.node = node
        names = [axis.name for axis in node.axes]
        self.names = [
            name if names.count(name) == 1 else f"{name}{n}" for n, name in enumerate(names)
        ]
        self.spelled = (
            self.names.__getitem__,
            lambda size: size_text(shaped.sizes[size]),
            lambda source: shaped.tensors[source].name,
        )
        """The names of axes, sizes and values in an index."""

    def text(self) -> str:
        """``out[i] = sum in0[i,j] over j where 0 <= i-j``."""
        node, name = self.node, self.shaped.tensors[self.value].name
        reduced = node.reduced_axes()
        chosen = bool(node.guards and reduced) and all(
            map(self.is_one, reduced)
        )  # one term, or none
        acc = None if node.acc is None or chosen else OPS[node.acc].reduction_says
        words = [f"{name}{self.subscript(node.target)}", "=" if acc is None else f"= {acc}"]
        if node.base is not None:
            old = self.shaped.tensors[node.base].name
            words[0] = f"{name} = {old}, with {name}{self.subscript(node.target)}"
        words.append(scalar_text(node.scalar, self.leaf))
        words += ["over", *(self.names[axis] for axis in reduced)] if acc and reduced else []
        words += ["where", self.conditions(node.guards)] if node.guards else []
        if chosen and node.acc is not None:
            words[-1] += f", else {OPS[node.acc].identity:g}"
        return " ".join(words)

    def is_one(self, axis: int) -> bool:
        """Whether an axis has extent 1."""
        return self.shaped.sizes[self.node.sizes[axis]].fixed == 1

    def leaf(self, part: Scalar) -> str:
        """An operand with its index, or a position."""
        if isinstance(part, Position):
            return f"@({self.index(part.index)})"
        assert isinstance(part, Operand)
        read = self.node.reads[part.number]
        text = self.shaped.tensors[read.value].name + self.subscript(read.index)
        return f"({text} where {self.conditions(read.guards)})" if read.guards else text

    def conditions(self, guards: Sequence[Within]) -> str:
        """``0 <= i-j < n``."""
        return guards_text(guards, *self.spelled)

    def subscript(self, index: Sequence[Affine]) -> str:
        """``[i,k]``; nothing for rank 0."""
        return subscript(index, *self.spelled)

    def index(self, part: Affine) -> str:
        """One index."""
        return affine_text(part, *self.spelled)
