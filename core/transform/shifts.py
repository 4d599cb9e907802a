"""Maxima that only shift what cancels: no result depends on them, and nothing flows back to them.

Example, a softmax, which is the same for every m:
    in:   m[i] = max x[i,j] over j;  e[i,j] = exp(x[i,j] - m[i]);  s[i] = sum e[i,j] over j;  p[i,j] = e[i,j] / s[i]
    out:  m, where something flows back from p alone

What is added to m, or multiplied with a power of e^m, is followed through the program: x - m has m -1 times as a term,
its exponential e^m to the power -1 as a factor, and so has the sum of those that share one m. In the quotient of two
such values, and in m + ln s, nothing of it is left. A value that is followed no further is taken to depend on m.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from typing import Literal

from ilang.core.dtype import FLOATS
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Scalar, operands_of
from ilang.core.ir.shaped import Assignment, Input, Node, Read, View
from ilang.core.record import record

Axes = tuple[int | None, ...]
"""Per dimension of m the axis of an assignment, or the dimension of a value, that walks it; None beside an only one."""


@record
class Share:
    """The dependence of a value on m: ``power`` times m is a ``term`` of it, or e^m to that power a ``factor``.

    Of which element of m, ``axes`` say.
    """

    kind: Literal["term", "factor"]
    power: Fraction
    axes: Axes


UNKNOWN: Literal["unknown"] = "unknown"
"""A value that may depend on m in any way."""
State = Share | Literal["unknown"] | None
"""The dependence of a value on m; None where there is none."""


def cancelled(
    nodes: Sequence[Node], ends: Collection[int], is_opaque: Callable[[ValueId], bool]
) -> frozenset[int]:
    """The maxima and minima of a program on which none of some values depends, but for rounding.

    Args:
        nodes: of a typed program.
        ends: values.
        is_opaque: whether a value has a gradient that says nothing of how it is computed.
    """
    last = max(ends, default=-1) + 1
    return frozenset(
        value
        for value, node in enumerate(nodes[:last])
        if isinstance(node, Assignment)
        and node.acc in (">", "<")
        and node.base is None
        and value not in ends
        and _cancels(nodes[:last], value, ends, is_opaque)
    )


def _cancels(
    nodes: Sequence[Node], maximum: int, ends: Collection[int], is_opaque: Callable[[ValueId], bool]
) -> bool:
    """Whether no end depends on a maximum."""
    node = nodes[maximum]
    assert isinstance(node, Assignment)
    whole: Axes = tuple(
        None if index.axis() is None else dim for dim, index in enumerate(node.target)
    )
    states: dict[int, State] = {maximum: Share("term", Fraction(1), whole)}
    for value in range(maximum + 1, len(nodes)):
        state = _state(nodes[value], states)
        if state is None:
            continue
        states[value] = UNKNOWN if is_opaque(ValueId(value)) else state
        if value in ends:
            return False
    return 1 < len(states)


def _state(node: Node, states: dict[int, State]) -> State:
    """The dependence of a value on m, from those of the values that it is computed from."""
    match node:
        case Input():
            return None
        case View():
            return UNKNOWN if node.value in states else None
        case Assignment():
            pass
    reached = {*node.values()} | ({node.base} if node.base is not None else set())
    looked = {each.source for each in node.lookups()}
    if node.base is not None or node.scatters() or states.keys() & looked:
        return UNKNOWN if states.keys() & reached else None
    used = {node.reads[number].value for number in operands_of(node.scalar)}
    if not states.keys() & used:
        return None
    state = _scalar(node.scalar, [_read(read, states) for read in node.reads])
    if not isinstance(state, Share):
        return state
    folds = {None: ("term", "factor"), "+": ("factor",), ">": ("term", "factor")}
    folds["<"] = folds[">"]
    dims = {index.axis(): dim for dim, index in enumerate(node.target)}
    if state.kind not in folds.get(node.acc, ()):
        return UNKNOWN
    if any(axis is not None and axis not in dims for axis in state.axes):
        return UNKNOWN
    return Share(
        state.kind, state.power, tuple(None if axis is None else dims[axis] for axis in state.axes)
    )


def _read(read: Read, states: dict[int, State]) -> State:
    """The dependence on m of what a read delivers, in the reader's axes; 0, where a guard fails, has every factor."""
    state = states.get(read.value)
    if not isinstance(state, Share):
        return state
    if read.guards and state.kind == "term":
        return UNKNOWN
    axes: list[int | None] = []
    for dim in state.axes:
        axis = None if dim is None else read.index[dim].axis()
        if axis is None and dim is not None:
            return UNKNOWN
        axes.append(axis)
    return Share(state.kind, state.power, tuple(axes))


def _scalar(scalar: Scalar, reads: Sequence[State]) -> State:
    """The dependence on m of a scalar over reads that depend on m."""
    match scalar:
        case Operand():
            return reads[scalar.number]
        case Convert():
            state = _scalar(scalar.argument, reads)
            return state if state is None or scalar.dtype in FLOATS else UNKNOWN
        case Apply():
            states = [_scalar(part, reads) for part in scalar.arguments]
            if all(state is None for state in states):
                return None
            return _applied(scalar, states)
        case _:
            return None


def _applied(scalar: Apply, states: Sequence[State]) -> State:
    """The dependence on m of a primitive, of arguments of which one depends on m."""
    zeros = [isinstance(part, Constant) and part.value == 0 for part in scalar.arguments]
    match scalar.primitive, *states:
        case "copy", Share() as one:
            return one
        case "neg", Share() as one:
            return _times(one, -1) if one.kind == "term" else one
        case "exp", Share("term") as one:
            return Share("factor", one.power, one.axes)
        case "ln", Share("factor") as one:
            return Share("term", one.power, one.axes)
        case "recip", Share("factor") as one:
            return _times(one, -1)
        case "square", Share("factor") as one:
            return _times(one, 2)
        case "add" | "sub", None | Share("term"), None | Share("term"):
            return _joined(states[0], _signed(states[1], scalar.primitive == "sub"))
        case "mul" | "div", None | Share("factor"), None | Share("factor"):
            return _joined(states[0], _signed(states[1], scalar.primitive == "div"))
        case "add" | "sub" | "max" | "min", _, _:
            return _alike(states, zeros)
        case "where", None, _, _:
            return _alike(states[1:], zeros[1:])
        case "gt" | "gte" | "lt" | "lte" | "eq" | "neq", _, _:
            return None if isinstance(_alike(states, zeros), Share) else UNKNOWN
        case _:
            return UNKNOWN


def _signed(state: State, negative: bool) -> State:
    return _times(state, -1) if negative and isinstance(state, Share) else state


def _times(share: Share, times: int) -> Share:
    return Share(share.kind, share.power * times, share.axes)


def _joined(one: State, other: State) -> State:
    """Two terms, or two factors, together."""
    if not isinstance(one, Share) or not isinstance(other, Share):
        return one or other
    if one.axes != other.axes:
        return UNKNOWN
    power = one.power + other.power
    return Share(one.kind, power, one.axes) if power else None


def _alike(states: Sequence[State], zeros: Sequence[bool]) -> State:
    """The share of m that every argument has; 0 has every factor."""
    shares = [state for state, zero in zip(states, zeros, strict=True) if not zero]
    first = shares[0] if shares else None
    if not isinstance(first, Share) or any(state != first for state in shares):
        return UNKNOWN
    return first if first.kind == "factor" or not any(zeros) else UNKNOWN
