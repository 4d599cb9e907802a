"""The typed graph as text: a line per tensor, with element type, extents, and the expression that makes it.

Example, a sum over rows:
    in0  f32[i, j]  input
    out  f32[i]     +ij~i
"""

from __future__ import annotations

from typing import assert_never

from ilang.core.explain.expression import aligned, extents_of, stored_text, view_text
from ilang.core.ir.scalar import Scalar
from ilang.core.ir.shaped import Assignment, Input, Shaped, View
from ilang.core.matrix_unit import rounded_to


def of_unit(scalar: Scalar) -> str:
    """The effect of the role m or m16 of a schedule on a product, in words; none on anything else."""
    name = rounded_to(scalar)
    return "" if name is None else f", factors rounded to {name}"


def shapes_text(shaped: Shaped) -> str:
    """One line per tensor: name, element type, extents, and the expression that makes it."""
    rows = []
    for value, (node, tensor) in enumerate(zip(shaped.nodes, shaped.tensors, strict=True)):
        match node:
            case Assignment():
                text = f"{node.text}{of_unit(node.scalar)}"
            case View():
                view = view_text(node.axes, node.source, node.target)
                text = f"{shaped.tensors[node.value].name} as {view}"
            case Input():
                text = "input"
            case _:
                assert_never(node)
        if tensor.order:
            text += f", stored by {stored_text(tensor.order)}"
        rows.append((tensor.name, f"{tensor.dtype}[{', '.join(extents_of(shaped, value))}]", text))
    return "\n".join(aligned(rows))
