"""Invariants of ``ir/shaped.py``."""

from __future__ import annotations

from ilang.core.diagnostic import InternalError
from ilang.core.dtype import DTYPES
from ilang.core.ir.scalar import Apply, Operand, walk
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ops import PRIMITIVES


def verify(shaped: Shaped) -> None:
    """Raise an InternalError (E9903) naming the first invariant that does not hold."""
    names = [tensor.name for tensor in shaped.tensors]
    _demand(len(set(names)) == len(names), "tensor names are distinct", 0)
    _demand(len(set(shaped.outputs)) == len(shaped.outputs), "each output is a value of its own", 0)
    _demand(
        len({size.name for size in shaped.sizes}) == len(shaped.sizes), "size names are distinct", 0
    )
    for value, node in enumerate(shaped.nodes):
        _demand(
            all(0 <= s < len(shaped.sizes) for s in shaped.tensors[value].dims),
            "dims are sizes",
            value,
        )
        if isinstance(node, Assignment):
            _assignment(shaped, value, node)
        else:
            _demand(value not in shaped.outputs, "an input is no output", value)


def _assignment(shaped: Shaped, value: int, node: Assignment) -> None:
    tensor = shaped.tensors[value]
    _demand(len(node.sizes) == len(node.axes), "every axis has a size", value)
    _demand(len(node.target) == len(tensor.dims), "the target has the tensor's rank", value)
    for read in node.reads:
        source = shaped.tensors[read.value]
        _demand(read.value < value, "a node reads smaller numbers", value)
        _demand(len(read.index) == len(source.dims), "a read has the rank of what it reads", value)
        for index, size in zip(read.index, source.dims, strict=True):
            axis = index.axis()
            _demand(
                axis is None or node.sizes[axis] == size, "an axis has the size it walks", value
            )
    for part in walk(node.scalar):
        _demand(part.dtype in DTYPES, "every scalar is typed", value)
        if isinstance(part, Operand):
            _demand(
                part.dtype == shaped.tensors[node.reads[part.number].value].dtype,
                "operands have their type",
                value,
            )
        if isinstance(part, Apply) and PRIMITIVES[part.primitive].kind not in ("logic", "move"):
            _demand(len({a.dtype for a in part.arguments}) == 1, "arguments have one type", value)


def _demand(holds: bool, invariant: str, value: int) -> None:
    if not holds:
        raise InternalError("E9903", f"shaped graph, node {value}: {invariant}")
