"""Elements that are no finite numbers: where they are in an array, and the expression that gave the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.core.ir.assignments import sources
from ilang.core.ir.shaped import Assignment, Node
from ilang.core.reference import Array, operands_at
from ilang.core.walks import parts_first

if TYPE_CHECKING:
    from ilang.codegen.session.session import Session


def not_finite(array: Array) -> str:
    """The first element of an array that is no finite number, and how many there are; "" where all are finite.

    Example: ``nan at [17,3], and 2 of its 320 elements are nan or inf``
    """
    if array.dtype.kind != "f":
        return ""
    wrong = ~np.isfinite(array)
    count = int(wrong.sum())
    if not count:
        return ""
    at = np.unravel_index(int(wrong.argmax()), array.shape)
    place = f" at [{','.join(map(str, at))}]" if at else ""
    count_text = (
        f"{count:,} of its {array.size:,} elements" if array.size > 1 else "its one element"
    )
    verb = "are" if count > 1 else "is"
    return f"{array[at]}{place}, and {count_text} {verb} nan or inf"


def first_not_finite(
    session: Session,
    given: Mapping[str, Any],
    parameters: Mapping[str, Any],
    state: Mapping[str, Any],
) -> tuple[Node, str] | None:
    """The first expression of a run that gives a NaN, or else an infinity, of operands that have none.

    Beside it stands which element is one, and what it was computed from.

    Args:
        session: of the run.
        given: inputs by name.
        parameters: their values when the run began.
        state: the same.
    """
    kept = {"input": given, "parameter": parameters, "declared": state}
    shaped, values = session._evaluated(kept)  # noqa: SLF001 - a part of sessions
    nodes: tuple[Node, ...] = shaped.nodes
    order = [*parts_first(shaped.outputs[:1], lambda value: sources(nodes[value]))]
    for is_wrong in (np.isnan, np.isinf):
        wrong = [bool(is_wrong(value).any()) for value in values]
        for number in order:
            if wrong[number] and not any(wrong[each] for each in sources(nodes[number])):
                return nodes[number], not_finite(values[number]) + _operands_there(
                    shaped, values, number
                )
    return None


def _operands_there(shaped: Any, values: Sequence[Array], number: int) -> str:
    """The operands of the first element of a value that is no finite number, as text.

    Example: ``; there `x - t` is -0.25``, and of a sum ``; there `x` is from -3 to 1e+30``
    """
    node, wrong = shaped.nodes[number], ~np.isfinite(values[number])
    if not isinstance(node, Assignment):
        return ""
    extents = [size.fixed or 0 for size in shaped.sizes]
    words = []
    for read, elements in zip(
        node.reads, operands_at(node, values, extents, int(wrong.argmax())), strict=False
    ):
        owner = shaped.owner(read.value)
        name = _text_of(shaped.nodes[owner], f"`{shaped.tensors[owner].name}`")
        low, high = f"{elements.min():.6g}", f"{elements.max():.6g}"
        words.append(f"{name} is {low}" if low == high else f"{name} is from {low} to {high}")
    return f"; there {', '.join(words)}" if words else ""


def _text_of(node: Node, name: str) -> str:
    """A value as messages call it: its text where that is an expression of a few words."""
    if isinstance(node, Assignment) and len(node.text) <= 40 and "\n" not in node.text:
        return f"`{node.text}`"
    return name
