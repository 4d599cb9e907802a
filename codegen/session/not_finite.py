"""Elements that are no finite numbers: where they are in an array, and the expression that gave the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.core.ir.assignments import sources
from ilang.core.ir.shaped import Assignment, Input, Node
from ilang.core.reference import Array, operands_at
from ilang.core.walks import parts_first

if TYPE_CHECKING:
    from ilang.codegen.session.batches import Batches
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
        number = _first(nodes, order, [bool(is_wrong(value).any()) for value in values])
        if number is not None:
            return nodes[number], not_finite(values[number]) + _operands_there(
                shaped, values, number
            )
    return None


def cause_in_data(session: Session, given: Mapping[str, Any], batches: Batches) -> str:
    """The element of an input of which an expression of inputs alone gives no finite number; "" where none does.

    The question may come after the run, in which parameters become nan: no parameter flows into such expressions.

    Args:
        session: of the run.
        given: inputs by name.
        batches: all examples, of which the inputs have some.

    Example: ``x[2] is -1, and `log(x)` is nan there``
    """
    kept = {"input": given, "parameter": session.parameters, "declared": session.state}
    with np.errstate(all="ignore"):
        shaped, values = session._evaluated(kept)  # noqa: SLF001 - a part of sessions
    cells = session._solved.needed  # noqa: SLF001
    nodes: tuple[Node, ...] = shaped.nodes
    order = [*parts_first(shaped.outputs[:1], lambda value: sources(nodes[value]))]
    flows: dict[int, set[int]] = {}
    for n in order:
        node = nodes[n]
        flows[n] = set() if not isinstance(node, Input) else {node.number}
        flows[n].update(*(flows[each] for each in sources(node)))
    of_data = {n for n in order if all(cells[k].kind in ("input", "constant") for k in flows[n])}
    wrong = [n in of_data and bool(not_finite(values[n])) for n in range(len(nodes))]
    first = _first(nodes, order, wrong)
    if first is None:
        return ""
    at = int((~np.isfinite(values[first])).argmax())
    says = f"{_text_of(nodes[first], 'what is computed')} is {values[first].reshape(-1)[at]} there"
    for cell in (cells[k] for k in sorted(flows[first]) if cells[k].kind == "input"):
        array = np.asarray(given[cell.name])
        if array.size == values[first].size:
            position = tuple(map(int, np.unravel_index(at, array.shape)))
            place = batches.place(given, cell.name, position)
            return f"{place} is {array.reshape(-1)[at]}, and {says}"
    return ""


def _first(nodes: Sequence[Node], order: Sequence[int], wrong: Sequence[bool]) -> int | None:
    """The first node, in an order, that is wrong and reads nothing that is."""
    return next(
        (n for n in order if wrong[n] and not any(wrong[each] for each in sources(nodes[n]))), None
    )


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
