"""Element types: every scalar gets its type, every conversion is made explicit (docs/language.md section 5).

A constant has no type of its own, with a sign or without: it takes that of what it meets, and f32 where it meets
nothing; in a program of tensors that begins with an f64, that. So does a value of constants, ``1 / 3``, and one of
constants and truth values, ``where(c, 1, -1)``: it is *open*, its ``dtype`` is None, until it meets a number. In an
expression that reads values and uses none, it is as exact as the float among these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, assert_never

from ilang.core.diagnostic import ElementTypeError
from ilang.core.dtype import FLOATS, INTEGER_ENDS, INTEGERS, LARGEST_FLOAT, arithmetic, join
from ilang.core.ir.graph import Assignment, Elementwise, Graph, Node, View
from ilang.core.ir.graph import operands as operands_of_node
from ilang.core.ir.operation import Operation
from ilang.core.ir.scalar import (
    Apply,
    Constant,
    Convert,
    Operand,
    Position,
    Scalar,
    constant_last,
    minus,
)
from ilang.core.ops import OPS, POWERS, PRIMITIVES
from ilang.core.source import Span

if TYPE_CHECKING:
    from ilang.core.infer.projections import Projection


def type_scalar(
    scalar: Scalar,
    operands: Sequence[Scalar],
    span: Span,
    least: str = "f32",
    meets: str | None = None,
    alone: str | None = None,
) -> Scalar:
    """The typed form of a scalar.

    Args:
        scalar: it, without types.
        operands: what its reads deliver: operands, whose type may be open, or constants.
        span: where it is written.
        least: the float that is a constant which meets nothing, and truth values in arithmetic.
        meets: the type that an open scalar meets in its readers, if any.
        alone: the float that an open part is which meets nothing; by default the greatest that the operands have.

    Raises:
        ElementTypeError: E0601 (integer beside float), E0602 (an operation that needs floats), E0603 (a constant that
            its type cannot hold).
    """
    return _ScalarTypes(operands, span, least, alone).whole(scalar, meets)


def is_open(scalar: Scalar, operands: Sequence[Scalar]) -> bool:
    """Whether a scalar has the type of what it meets: it is of constants, open operands and truth values."""
    return type_of(scalar, [each.dtype for each in operands]) is None


def type_of(scalar: Scalar, operands: Sequence[str | None], least: str = "f32") -> str | None:
    """The type of a scalar whose operands have these types; None if it is open.

    An integer beside a float, which ``type_scalar`` refuses, has the type of what is on the left.
    """
    match scalar:
        case Operand():
            return operands[scalar.number]
        case Constant() | Convert():
            return scalar.dtype
        case Apply():
            kind = PRIMITIVES[scalar.primitive].kind
            if kind in ("logic", "compare"):
                return "bool"
            parts = scalar.arguments[1:] if kind == "select" else scalar.arguments
            plain = [part for part in parts if not isinstance(part, Position)]
            dtype = _meeting([type_of(part, operands, least) for part in plain])
            if dtype in (None, "bool") and len(plain) < len(parts):
                return "i64"
            return (
                dtype if kind in ("move", "select") or dtype is None else arithmetic(dtype, least)
            )
        case _:
            return "i64"


def _meeting(dtypes: Sequence[str | None]) -> str | None:
    """The type in which some types meet, the first of two that do not; None where open ones meet no number."""
    numbers = [dtype for dtype in dtypes if dtype not in (None, "bool")]
    if not numbers:
        return None if None in dtypes or not dtypes else "bool"
    return reduce(lambda one, other: join(one or "", other or "") or one, numbers)


def widened_types(
    graph: Graph,
    projections: Mapping[int, Sequence[Projection]],
    inputs: Mapping[int, str | None],
    assigned: Mapping[int, int],
    least: str,
) -> dict[int, str | None]:
    """The types of open inputs: the lowest that hold the values assigned to them.

    Types of values follow from those of inputs, and those of open inputs rise to those of what is assigned to them,
    until none does. An input whose value nothing says, as one that is assigned to itself alone, stays None.

    Args:
        graph: operations, without einx notation.
        projections: those of each operation.
        inputs: the type of each input, None of one that is open.
        assigned: open inputs, each with the value that is assigned to it.
        least: the float that is a constant which meets nothing.
    """
    types = dict(inputs)
    while True:
        for value, node in enumerate(graph.nodes):
            if value not in inputs:
                types[value] = _type_of_node(node, projections.get(value, ()), types, least)
        rising = {n: types[value] for n, value in assigned.items() if types[value] != types[n]}
        rising = {n: _risen(types[n], dtype) for n, dtype in rising.items()}
        if all(types[n] == dtype for n, dtype in rising.items()):
            return {n: types[n] for n in assigned}
        types |= rising


def _risen(one: str | None, other: str | None) -> str | None:
    """The lowest type above two, where None is below all; the first where there is none above both."""
    return other if one is None else one if other is None else join(one, other) or one


def _type_of_node(
    node: Node, projections: Sequence[Projection], types: Mapping[int, str | None], least: str
) -> str | None:
    operands = [types.get(value) for value in operands_of_node(node)]
    match node:
        case View():
            return operands[0]
        case Elementwise():
            return type_of(node.scalar, operands, least)
        case Operation() if 1 < len(projections):  # parts, of one operand each
            return _meeting([operands[number] for each in projections for number, _ in each.reads])
        case Assignment() | Operation():
            dtype = type_of(node.scalar, operands, least)
            acc = node.acc
            if isinstance(node, Operation) and not any(each.reduces() for each in projections):
                acc = None
            primitive = OPS[acc].binary if acc else None
            if primitive is not None and PRIMITIVES[primitive].kind == "logic":
                return "bool"
            return dtype if acc is None or dtype is None else arithmetic(dtype, least)
        case _:
            return None


CALL = re.compile(r"([A-Za-z_]\w*)\s*\((?!.*\)\s*[^)\s])", re.DOTALL)
"""The beginning of a text that is one call of a function."""


class _ScalarTypes:
    """One scalar, whose parts are typed from the operands up, and brought to one type where they meet."""

    def __init__(
        self, operands: Sequence[Scalar], span: Span, least: str, alone: str | None = None
    ) -> None:
        self.operands = operands
        self.span = span
        self.least = least
        floats = tuple(each for each in operands if each.dtype in FLOATS)
        self.alone = alone or self._common(floats) or least

    def whole(self, scalar: Scalar, meets: str | None) -> Scalar:
        """The typed form of the scalar."""
        typed = self._typed(scalar)
        return self._brought(typed, typed.dtype or meets or self.alone)

    def _typed(self, scalar: Scalar) -> Scalar:
        match scalar:
            case Operand():
                return self.operands[scalar.number]
            case Constant():
                return scalar
            case Position():
                return Position(scalar.index, "i64")
            case Convert():
                assert scalar.dtype is not None
                return self._converted(self._typed(scalar.argument), scalar.dtype)
            case Apply():
                arguments = tuple(map(self._typed, scalar.arguments))
                if not isinstance(scalar.arguments[0], Constant):  # a constant is an operand's
                    arguments = constant_last(scalar.primitive, arguments)
                return self._applied(scalar.primitive, arguments)
            case _:
                raise AssertionError(scalar)

    def _applied(self, primitive: str, arguments: tuple[Scalar, ...]) -> Scalar:
        """A primitive of typed arguments, which are converted where it wants one type."""
        kind = PRIMITIVES[primitive].kind
        match kind:
            case "move":
                return arguments[0]
            case "arithmetic" if (
                primitive == "neg"
                and isinstance(constant := arguments[0], Constant)
                and constant.dtype is None
            ):
                return Constant(minus(constant.value))
            case "logic":
                return Apply(primitive, tuple(self._settled(a) for a in arguments), "bool")
            case "select":
                test, *others = arguments
                chosen = Apply(primitive, (self._settled(test), *others))
                dtype = self._common(tuple(others))
                return chosen if dtype is None else self._finished(chosen, dtype)
            case "compare":
                dtype = self._common(arguments) or self.alone
                return Apply(primitive, tuple(self._brought(a, dtype) for a in arguments), "bool")
            case "arithmetic" | "float":
                dtype = self._common(arguments)
                plain = Apply(primitive, arguments)
                if dtype is None:
                    return plain
                return self._finished(plain, arithmetic(dtype, self.least))
            case _:
                assert_never(kind)

    def _finished(self, scalar: Apply, dtype: str) -> Apply:
        """A primitive, not of a test, whose type is found: its arguments are brought to it."""
        primitive, arguments = scalar.primitive, scalar.arguments
        kind = PRIMITIVES[primitive].kind
        if kind == "float" and dtype not in FLOATS:
            raise _no_float(primitive, dtype, self.span)
        exponent = arguments[-1]
        if primitive == "pow" and isinstance(exponent, Constant) and exponent.value in POWERS:
            primitive, arguments = POWERS[exponent.value], arguments[:1]
        tests = 1 if kind == "select" else 0
        brought = (self._brought(argument, dtype) for argument in arguments[tests:])
        return Apply(primitive, (*arguments[:tests], *brought), dtype)

    def _brought(self, argument: Scalar, dtype: str) -> Scalar:
        match argument:
            case Constant(dtype=None):
                return _fitted(argument, dtype, self.span)
            case Operand(dtype=None):
                return Operand(argument.number, dtype)
            case Apply(dtype=None):
                return self._finished(argument, dtype)
            case _:
                return argument if argument.dtype == dtype else Convert(argument, dtype)

    def _settled(self, scalar: Scalar) -> Scalar:
        """A part that meets nothing: an open one is a float."""
        return self._brought(scalar, scalar.dtype or self.alone)

    def _converted(self, argument: Scalar, dtype: str) -> Scalar:
        """An argument in a type that the user named: the one conversion that may lose."""
        if not isinstance(argument, Constant):
            meets = dtype if argument.dtype is None and dtype in FLOATS else None
            settled = self._settled(argument) if meets is None else self._brought(argument, meets)
            return settled if settled.dtype == dtype else Convert(settled, dtype)
        value = _nearest(argument)
        if argument.dtype == dtype:
            return argument
        if dtype == "bool":
            return Constant(float(value != 0), "bool")
        return _fitted(Constant(int(value) if dtype in INTEGERS else value), dtype, self.span)

    def _common(self, arguments: tuple[Scalar, ...]) -> str | None:
        """The type in which arguments meet; None where that is open: none is a number, and not all are truth values.

        Positions, which are i64 alone, follow the others.
        """
        dtype: str | None = None
        for argument in arguments:
            if argument.dtype is None or isinstance(argument, Position):
                continue
            joined = argument.dtype if dtype is None else join(dtype, argument.dtype)
            if joined is None:
                raise _unjoined(dtype, argument.dtype, self.span)
            dtype = joined
        if dtype in (None, "bool") and any(isinstance(a, Position) for a in arguments):
            return "i64"
        return None if dtype == "bool" and any(a.dtype is None for a in arguments) else dtype


def _call(span: Span) -> str:
    """The name of the function that a part of a text calls; "" where it is written with signs."""
    call = CALL.match(span.text())
    return call[1] if call is not None else ""


def _unjoined(one: str | None, other: str, span: Span) -> ElementTypeError:
    """The error for an integer beside a float."""
    name = _call(span)
    message = f"the left operand is {one} and the right one is {other}: integer beside float"
    help_line = "convert one side with f32 f64 i32 i64: `f32(x)` where values have names, else `(f32 | I) >> ...`"
    if name:
        message = f"one argument of `{name}` is {one} and another is {other}: integer beside float"
        help_line = "convert one of them with f32, f64, i32 or i64: `f32(x)`"
    return ElementTypeError("E0601", message, span, help_line)


def _no_float(primitive: str, dtype: str, span: Span) -> ElementTypeError:
    """The error for an integer where a function is of floats."""
    name = _call(span)
    message = f"{PRIMITIVES[primitive].says} needs floats, but its operand is {dtype}"
    help_line = "convert first: `f32(x)` where values have names, else `f32 >>` before it"
    if name:
        message = f"`{name}` needs floats, and its argument is {dtype}"
        help_line = "convert it first: `f32(x)`"
    return ElementTypeError("E0602", message, span, help_line)


def _nearest(constant: Constant) -> float | int:
    """The value of a constant: of an f32, the nearest that the type has."""
    if constant.dtype != "f32":
        return constant.value
    from struct import pack, unpack

    return float(unpack("f", pack("f", constant.value))[0])


def _fitted(constant: Constant, dtype: str, span: Span) -> Constant:
    """A constant in a type, or a refusal where the type cannot hold it."""
    value = constant.value
    if dtype in INTEGERS:
        low, high = INTEGER_ENDS[dtype]
        if value != value // 1 or not low <= int(value) <= high:
            message = f"the constant {value!r} is no {dtype}, the type of what it meets"
            whole = value == value // 1 and dtype == "i32"
            help_line = "convert the other side with " + ("i64" if whole else "f32 or f64")
            raise ElementTypeError("E0603", message, span, help_line)
    elif dtype in FLOATS and abs(value) > LARGEST_FLOAT[dtype] and abs(value) != float("inf"):
        message = f"the constant {value!r} is larger than any {dtype}"
        raise ElementTypeError(
            "E0603", message, span, "write `f64` after the constant: `(1e300 >> f64)`"
        )
    elif isinstance(value, int) and dtype in FLOATS and not _is_exact(value, dtype):
        message = f"no {dtype} is exactly {value}"
        raise ElementTypeError(
            "E0603", message, span, "write it with a decimal point to have it rounded"
        )
    return Constant(value, dtype)


def _is_exact(value: int, dtype: str) -> bool:
    """Whether a whole number is a value of a float type: it has no more significant bits than the type."""
    significant = abs(value) // (value & -value) if value else 0
    return significant.bit_length() <= {"f32": 24, "f64": 53}[dtype]
