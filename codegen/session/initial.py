"""The values that parameters begin with (docs/functions.md)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.call.arguments import NUMPY_TYPES
from ilang.codegen.session.philox import uniform
from ilang.core.build.values import Measured, Stored
from ilang.core.calculus.affine import variables_of
from ilang.core.infer.projections import project
from ilang.core.ir.functions import Nested
from ilang.core.ir.graph import Assignment
from ilang.core.ir.operation import Operation
from ilang.core.ir.scalar import Apply, Operand

if TYPE_CHECKING:
    from ilang.codegen.session.solved import SolvedDefinition
    from ilang.core.definition import LastingTensor


def initial_values(solved: SolvedDefinition, cell: Stored, tensor: LastingTensor, seed: int) -> Any:
    """The values that a parameter begins with."""
    dims, dtype = tensor.shape.memory(), NUMPY_TYPES[tensor.dtype]
    first = initial(solved, cell, dims, dtype)
    if isinstance(first, float):
        return uniform(seed, tensor.path, prod(dims), first).astype(dtype).reshape(dims)
    return np.zeros(dims, dtype) if first is None else np.asarray(first, order="C")


def initial(solved: SolvedDefinition, cell: Stored, dims: Sequence[int], dtype: Any) -> Any:
    """The values of a parameter in the text; None where every use only adds it: it begins with zeros.

    Of any other one the bound of its random numbers, in f32: 1/sqrt(n), n the product of the extents of the parameter
    that its first use reduces.
    """
    given = stored_values(cell, dims, dtype)
    number = solved.number[cell]
    if given is not None or _only_added(solved, number):
        return given
    return float(np.float32(1 / sqrt(max(1, reduced(solved, number)))))


def _uses(solved: SolvedDefinition, number: int) -> list[tuple[int, int]]:
    """The nodes that read a value and the places of their operands, in the order of evaluation."""
    from ilang.core.ir.graph import operands

    return [
        (value, place)
        for value, node in enumerate(solved.built.graph.nodes)
        if value in solved.built.forward
        for place, operand in enumerate(operands(node))
        if operand == number
    ]


def _only_added(solved: SolvedDefinition, number: int) -> bool:
    """Whether every use of a value adds it, element by element."""
    nodes = [solved.built.graph.nodes[value] for value, _ in _uses(solved, number)]
    both = Apply("add", (Operand(0), Operand(1)))
    return bool(nodes) and all(
        isinstance(node, Operation) and node.logic == "pointwise" and node.scalar == both
        for node in nodes
    )


def reduced(solved: SolvedDefinition, number: int) -> int:
    """The product of the extents of a value that its first use reduces."""
    uses = _uses(solved, number)
    if not uses:
        return 1
    value, place = uses[0]
    node = solved.built.graph.nodes[value]
    if isinstance(node, Operation):
        projection = project(solved.inferred, value, solved.inferred.numbered())[0]
        kept = variables_of(projection.target)
        index = next((each for n, each in projection.reads if n == place), ())
        axes = variables_of(index) - kept
        return prod(projection.loops[axis].extent or 1 for axis in axes)
    if isinstance(node, Assignment):
        kept = variables_of(node.target)
        axes = variables_of(node.reads[place].index) - kept
        sizes = solved.inferred.node_axes(value)
        return prod(_extent(sizes[axis]) for axis in axes)
    return 1


def _extent(known: Any) -> int:
    return known.size if isinstance(known.size, int) else 1


def stored_values(value: Stored, dims: Sequence[int], dtype: Any) -> Any:
    """The numbers that a constant holds, for an array of these dimensions; None where it has none of its own."""
    match value.initial:
        case str():  # range
            return np.arange(prod(dims)).reshape(dims).astype(dtype)
        case int() | float():
            return np.full(dims, value.initial, dtype)
        case Nested():
            return literal_array(value.initial).astype(dtype).reshape(dims)
        case None | Measured():
            return None
        case _:
            return np.asarray(value.initial).astype(dtype).reshape(dims)


def literal_array(term: Nested, dtype: Any = np.float64) -> Any:
    """The numbers of a literal as an array in memory order."""
    array = np.array(term.numbers, dtype).reshape([extent for _, extent in term.levels])
    stored = sorted(range(array.ndim), key=lambda n: (0, 2, 1)[term.levels[n][0]])
    return array.transpose(stored)
