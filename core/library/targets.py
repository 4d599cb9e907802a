"""Help for shapes of losses: ``cross_entropy`` takes shares of classes, ``cross_entropy_at`` numbers; ``square``."""

from __future__ import annotations

import re

from ilang.core.diagnostic import Label, ShapeError
from ilang.core.ir.functions import Called, Reference, nodes_within
from ilang.core.ir.syntax import Module

OTHER = {
    "cross_entropy": "cross_entropy_at",
    "cross_entropy_sum": "cross_entropy_sum_at",
    "cross_entropy_at": "cross_entropy",
    "cross_entropy_sum_at": "cross_entropy_sum",
    "squared_error": "",
}
"""The loss that takes what the other one does not, if there is one."""
ROWS = re.compile(r"(\[[^]]*\]) has [^[]* and (\[[^]]*\]) has")
"""The two rows of a message on numbers of axes."""
MEETINGS = ("E0510", "E0512")
"""The codes of axes and of numbers of axes that do not fit each other."""


def advised(error: ShapeError, module: Module) -> ShapeError:
    """An error of shapes; where it is of the targets of such a loss, it points there and names the other loss.

    Where ``square`` says of a tensor what does not hold, the help has the power that is meant.
    """
    if error.span is not None and error.span.text().startswith("square("):
        error.help = "`square` says that both rows of a matrix are equal; a power is `x *. x`"
        return error
    if error.code not in MEETINGS or (
        error.code == "E0510" and not re.search(r"\bis 1\b", error.message)
    ):
        return error
    hidden = {each.head.name for each in module.functions if each.head.span.source == module.source}
    for call in nodes_within((*module.functions, *module.routines)):
        if not isinstance(call, Called) or call.span.source != module.source:
            continue
        name = call.component.name if isinstance(call.component, Reference) else ""
        targets = call.arguments[-1] if call.arguments else None
        if name not in OTHER or name in hidden or not isinstance(targets, Reference):
            continue
        if not OTHER[name] and error.code != "E0512":
            continue
        is_inside = any(each.span == call.span for each in error.labels)
        if re.search(rf"\b{targets.name}\b", error.message) or (
            is_inside
            and re.search(r"\bt\b", error.message)  # the targets by their name in the library
        ):
            written = OTHER[name] + call.span.text().removeprefix(name)
            error.help = _help(name, targets.name, written)
            error.message = _message(error, name, targets.name)
            places = tuple(each for each in error.labels if each.span != call.span)
            error.labels = (Label(call.span, f"takes {targets.name}"), *places)
            error.span = call.span
            return error
    return error


def _message(error: ShapeError, name: str, targets: str) -> str:
    """The message of an error of shapes, with what the loss takes where the number of axes is wrong."""
    rows = ROWS.search(error.message)
    if rows is None:
        return error.message
    is_at = name.endswith("_at")
    takes = "one class number" if is_at else "a share of each class"
    if not OTHER[name]:
        takes = "a row of numbers"
    given = next((row for row in rows.groups() if (row != "[]") == is_at), rows[2])
    axes = f"the output axes {given}" if given != "[]" else "no output axis"
    return f"`{name}` takes {takes} for each example, and {targets} has {axes}"


def _help(name: str, targets: str, written: str) -> str:
    if not OTHER[name]:
        column = f"{targets}.reshape(-1, 1)"
        return f"{targets} needs the axes of what it is compared with; for one number an example, {column}"
    if name.endswith("_at"):
        return f"{targets} has one class number for each example, a whole number; for shares of classes, `{written}`"
    return f"{targets} has a share for each class; for class numbers, `{written}`"
