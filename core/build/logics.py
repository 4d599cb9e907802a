"""How the axes of an assignment meet, and what its logic does with them (TENSORS.md section 3).

Example, ``c =:+ a ~logic:"...|i->o => ...|o"``: i is dropped, so the sum folds along it; every element of c is reached.
"""

from __future__ import annotations

from ilang.core.ir import functions as ast
from ilang.core.ir.operation import Compose, Einsum, Logic, Pointwise, Transpose
from ilang.core.ir.spec import Fixed, Joined, Window
from ilang.core.ir.spec import Label as AxisLabel


def logic_of(logic: ast.Logic | None) -> Logic:
    """How the axes of an assignment meet; element by element where nothing is written."""
    if logic is None or logic.kind == ".":
        return Pointwise()
    if logic.kind == "@":
        return Compose()
    if logic.kind == "T":
        return Transpose()
    assert logic.spec is not None
    return Einsum(logic.spec)


def drops(logic: Logic) -> bool:
    """Whether a logic has axes that its result lacks."""
    match logic:
        case Compose():
            return True
        case Einsum():
            kept = {n for axis in logic.spec.result.axes() for n in _names(axis)}
            kept |= {row.variable for row in logic.spec.result.rows if row.variable}
            used = {n for s in logic.spec.operands for axis in s.axes() for n in _names(axis)}
            used |= {r.variable for s in logic.spec.operands for r in s.rows if r.variable}
            return bool(used - kept)
        case _:
            return False


def _names(axis: object) -> tuple[str, ...]:
    match axis:
        case AxisLabel():
            return (axis.name,)
        case Window():
            return (axis.over,) if axis.kernel is None else (axis.over, axis.kernel)
        case Joined():
            return axis.parts
        case _:
            return ()


def has_places(logic: Logic) -> bool:
    """Whether a logic may leave elements of its result unwritten: a fixed position, a diagonal, a window."""
    if not isinstance(logic, Einsum):
        return False
    axes = logic.spec.result.axes()
    names = [n for axis in axes for n in _names(axis)]
    return len(set(names)) < len(names) or any(isinstance(a, Fixed | Window) for a in axes)
