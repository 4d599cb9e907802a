"""Help for the targets of losses: ``cross_entropy`` takes shares of classes, ``cross_entropy_at`` numbers of them."""

from __future__ import annotations

from ilang.core.diagnostic import ShapeError
from ilang.core.ir.graph import DefinitionCall

LOSSES = {
    "cross_entropy": ("a share of each class", "cross_entropy_at"),
    "cross_entropy_sum": ("a share of each class", "cross_entropy_sum_at"),
    "cross_entropy_at": ("one class number", "cross_entropy"),
    "cross_entropy_sum_at": ("one class number", "cross_entropy_sum"),
    "squared_error": ("a row of numbers", ""),
}
"""The targets that each loss takes of an example, and the loss that takes the other ones, if there is one."""


def target_error(
    call: DefinitionCall, parameter: int, output: str, is_one: bool
) -> ShapeError | None:
    """The refusal of the targets of a loss of the library that have other output axes; None of anything else.

    Args:
        call: the call.
        parameter: which argument does not fit.
        output: the output axes that it has, ``[3]``.
        is_one: it has an axis of size 1 where another size is wanted.
    """
    takes, other = LOSSES.get(call.name, ("", ""))
    if call.head_span.source.name != "nn.i" or not takes or parameter != 1:
        return None
    if not call.arguments or (is_one and not other):
        return None
    targets = " ".join(call.arguments[parameter].split())
    axes = f"the output axes {output}" if output else "no output axis"
    message = f"`{call.name}` takes {takes} for each example, and {targets} has {axes}"
    written = f"{other}({', '.join(call.arguments)})"
    help_line = f"{targets} has a share for each class; for class numbers, `{written}`"
    if takes == "one class number":
        number = f"{targets} has one class number for each example, a whole number"
        help_line = f"{number}; for shares of classes, `{written}`"
    elif not other:
        column = f"{targets}.reshape(-1, 1)"
        help_line = f"{targets} needs the axes of what it is compared with; for one number an example, {column}"
    return ShapeError("E0510" if is_one else "E0512", message, None, help_line)
