"""Flow between tensors of functions and routines: forward to results, back to parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ilang.core.build.values import Custom, Stored, Tensor, flowing, operands
from ilang.core.ir.graph import Assignment, Elementwise, Node, View
from ilang.core.ir.graph import operands as graph_operands
from ilang.core.ir.operation import Operation
from ilang.core.ir.scalar import Apply, Operand, Scalar
from ilang.core.walks import parts_first

V = TypeVar("V")


def feeding(
    values: Sequence[Tensor], every: bool = False, done: Mapping[Tensor, object] | None = None
) -> list[Tensor]:
    """The values that others are computed from, these included, in the order of evaluation.

    Args:
        values: where to begin.
        every: look at everything; else only at what something flows back to.
        done: values that are not looked below.
    """
    below: Callable[[Tensor], tuple[Tensor, ...]] = operands if every else flowing
    known = done or {}
    return list(parts_first(values, lambda value: () if value in known else below(value)))


def is_source(value: Tensor) -> bool:
    """Whether something that has a gradient begins here: a parameter, or a tensor that is tracked."""
    match value:
        case Stored():
            return value.kind == "parameter"
        case Custom():
            return value.tracked
        case _:
            return False


def read_back(
    scalar: Scalar, acc: str | None, operands: Sequence[V], active: Callable[[V], bool]
) -> tuple[V, ...]:
    """The operands of an operation whose values the way back through it reads; ``active``: something flows to one."""
    linear = isinstance(scalar, Operand) or (
        isinstance(scalar, Apply)
        and scalar.primitive in ("add", "sub", "neg")
        and all(isinstance(each, Operand) for each in scalar.arguments)
    )
    if linear and acc in ("+", None):
        return ()
    if isinstance(scalar, Apply) and scalar.primitive == "mul" and len(operands) == 2:
        one, other = operands
        return tuple(a for a, b in ((one, other), (other, one)) if active(b))
    return tuple(operands)


def read_back_by(
    nodes: Sequence[Node], added: range, given: Sequence[int], active: Sequence[bool]
) -> list[int]:
    """The inputs of a component, by place, whose values the way back through it reads.

    Args:
        nodes: of the graph that the component is part of.
        added: the numbers of its own.
        given: the nodes that are its inputs.
        active: whether something flows back to each of these.
    """
    flows = dict(zip(given, active, strict=True))
    memory = {value: value for value in given}
    read: set[int] = set()
    for value in added:
        node = nodes[value]
        below = graph_operands(node)
        flows[value] = any(flows.get(each, False) for each in below)
        if isinstance(node, View):
            memory[value] = memory.get(node.value, value)
        elif isinstance(node, Assignment):
            read.update(node.reads[n].value for n in node.places())
        if flows[value] and isinstance(node, Assignment | Elementwise | Operation):
            acc = None if isinstance(node, Elementwise) else node.acc
            read.update(read_back(node.scalar, acc, below, flows.__getitem__))
    kept = {memory.get(value, value) for value in read}
    return [n for n, value in enumerate(given) if value in kept]
