"""Logics of assignments: how axes meet, and which are folded (docs/functions.md).

Example, ``c =:+ a ~logic:"...|i->o => ...|o"``: i is dropped, so the sum folds along it; every element of c is reached.
"""

from __future__ import annotations

from ilang.core.ir import functions as ast
from ilang.core.ir.operation import Logic
from ilang.core.ir.spec import Fixed, Spec, Window, names_of


def logic_of(logic: ast.Logic | None) -> Logic:
    """The logic of an assignment; element by element where nothing is written."""
    if logic is None or logic.kind == ".":
        return "pointwise"
    if logic.kind == "@":
        return "compose"
    if logic.kind == "T":
        return "transpose"
    assert logic.spec is not None
    return logic.spec


def drops(logic: Logic) -> bool:
    """Whether a logic has axes that its result lacks."""
    match logic:
        case "compose":
            return True
        case Spec():
            used = set[str]().union(*(shape.names() for shape in logic.operands))
            return bool(used - logic.result.names())
        case _:
            return False


def has_places(logic: Logic) -> bool:
    """Whether a logic may leave elements of its result unwritten: a fixed position, a diagonal, a window."""
    if not isinstance(logic, Spec):
        return False
    axes = logic.result.axes()
    names = [n for axis in axes for n in names_of(axis)]
    return len(set(names)) < len(names) or any(isinstance(a, Fixed | Window) for a in axes)
