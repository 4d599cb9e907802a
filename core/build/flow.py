"""Flow between tensors of functions and routines: forward to results, back to parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ilang.core.build.values import Computed, Ruled, Stored, Tensor, flowing, operands
from ilang.core.ir.scalar import Apply, Operand


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
    known: dict[Tensor, None] = {}
    todo = [(value, False) for value in reversed(values)]
    while todo:
        value, ready = todo.pop()
        if value in known:
            continue
        if ready or (done is not None and value in done):
            known[value] = None
            continue
        todo.append((value, True))
        todo += [(each, False) for each in reversed(below(value))]
    return list(known)


def is_source(value: Tensor) -> bool:
    """Whether something that has a gradient begins here: a parameter, or a tensor that is tracked."""
    match value:
        case Stored():
            return value.kind == "parameter"
        case Ruled():
            return value.tracked
        case _:
            return False


def read_back(value: Computed, active: Callable[[Tensor], bool]) -> tuple[Tensor, ...]:
    """The operands whose values the way back through an operation reads."""
    scalar = value.scalar
    linear = isinstance(scalar, Operand) or (
        isinstance(scalar, Apply)
        and scalar.primitive in ("add", "sub", "neg")
        and all(isinstance(each, Operand) for each in scalar.arguments)
    )
    if linear and value.acc == "+":
        return ()
    if isinstance(scalar, Apply) and scalar.primitive == "mul" and len(value.operands) == 2:
        one, other = value.operands
        return tuple(a for a, b in ((one, other), (other, one)) if active(b))
    return value.operands
