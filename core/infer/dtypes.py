"""Element types: every scalar gets its type, every conversion is made explicit (LANGUAGE.md section 1, "Types").

A constant has no type of its own, with a sign or without: it takes that of what it meets, and f32 where it meets
nothing; in a program of tensors that begins with an f64, that. A value of constants alone, ``1 / 3``, has the type of
the number that it meets; in an expression that reads values and uses none, it is as exact as the float among these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ilang.core.diagnostic import ElementTypeError
from ilang.core.dtype import FLOATS, INTEGER_ENDS, INTEGERS, LARGEST_FLOAT, arithmetic, join
from ilang.core.ir.scalar import (
    Apply,
    Constant,
    Convert,
    Operand,
    Position,
    Scalar,
    constant_last,
    scalars_within,
)
from ilang.core.ops import PRIMITIVES
from ilang.core.source import Span

POWERS = {0.5: "sqrt", 2.0: "square", -1.0: "recip"}
"""A power by one of these literals is another primitive (LANGUAGE.md section 1, "Constants")."""


def type_scalar(
    scalar: Scalar, operands: Sequence[Scalar], span: Span, least: str = "f32"
) -> Scalar:
    """The typed form of a scalar.

    Args:
        scalar: it, without types.
        operands: what its reads deliver: typed operands, or constants.
        span: where it is written.
        least: the float that is a constant which meets nothing.

    Raises:
        ElementTypeError: E0601 (integer beside float), E0602 (an operation that needs floats), E0603 (a constant that
            its type cannot hold).
    """
    return _Typing(operands, span, least).whole(scalar)


def _is_alone(scalar: Scalar) -> bool:
    """Whether a scalar is made of constants alone."""
    leaves = [part for part in scalars_within(scalar) if not isinstance(part, Apply)]
    return all(isinstance(leaf, Constant) and leaf.dtype is None for leaf in leaves)


class _Typing:
    """The types of one scalar."""

    def __init__(self, operands: Sequence[Scalar], span: Span, least: str) -> None:
        self.operands = operands
        self.span = span
        self.least = least

    def whole(self, scalar: Scalar) -> Scalar:
        """The typed form of the scalar."""
        if not _is_alone(scalar):
            return self._settle(self._typed(scalar))
        meets = self._float_of(self.operands)
        typed = self._typed(scalar, meets)
        return _brought(typed, meets, self.span) if isinstance(typed, Constant) else typed

    def _float_of(self, arguments: Sequence[Scalar]) -> str:
        """The float type in which values meet."""
        return self._common(tuple(each for each in arguments if each.dtype in FLOATS))

    def _number_of(self, arguments: Sequence[Scalar]) -> str:
        """The type in which numbers meet; bools and positions are none, as these follow the others."""
        return self._common(
            tuple(each for each in arguments if each.dtype != "bool" and type(each) is not Position)
        )

    def _typed(self, scalar: Scalar, meets: str | None = None) -> Scalar:
        """A typed part; a constant that met nothing has no type. ``meets``: what a scalar of constants will meet."""
        match scalar:
            case Operand():
                return self.operands[scalar.number]
            case Constant():
                return scalar
            case Position():
                return Position(scalar.index, "i64")
            case Convert():
                assert scalar.dtype is not None
                return _converted(self._typed(scalar.argument), scalar.dtype, self.span)
            case Apply():
                kind = PRIMITIVES[scalar.primitive].kind
                apart = {"select": 1, "logic": len(scalar.arguments)}.get(kind, 0)
                tests = [self._typed(a) for a in scalar.arguments[:apart]]
                beside = scalar.arguments[apart:]
                alone = [isinstance(a, Apply) and _is_alone(a) for a in beside]
                pairs = list(zip(beside, alone, strict=True))
                others = [self._typed(a, meets) for a, constant in pairs if not constant]
                inner = meets or self._number_of(others)
                rest = iter(others)
                values = [
                    self._typed(a, inner) if constant else next(rest) for a, constant in pairs
                ]
                arguments: tuple[Scalar, ...] = (*tests, *values)
                if not isinstance(scalar.arguments[0], Constant):  # a constant is an operand's
                    arguments = constant_last(scalar.primitive, arguments)
                return self._applied(scalar.primitive, arguments, meets)
            case _:
                raise AssertionError(scalar)

    def _settle(self, scalar: Scalar) -> Scalar:
        """A constant that met nothing is a float."""
        return (
            _fitted(scalar, self.least, self.span)
            if isinstance(scalar, Constant) and scalar.dtype is None
            else scalar
        )

    def _applied(
        self, primitive: str, arguments: tuple[Scalar, ...], meets: str | None = None
    ) -> Scalar:
        kind = PRIMITIVES[primitive].kind
        match kind:
            case "move":
                return arguments[0]
            case "arithmetic" if (
                primitive == "neg"
                and isinstance(constant := arguments[0], Constant)
                and constant.dtype is None
            ):
                return Constant(-constant.value if constant.value else -0.0)
            case "logic":
                return Apply(primitive, tuple(self._settle(a) for a in arguments), "bool")
            case "select":
                test, *others = arguments
                dtype = self._common(tuple(others), meets)
                chosen = tuple(_brought(a, dtype, self.span) for a in others)
                return Apply(primitive, (self._settle(test), *chosen), dtype)
            case "compare":
                dtype = self._common(arguments, meets)
            case "arithmetic" | "float":
                dtype = arithmetic(self._common(arguments, meets), self.least)
            case _:
                assert_never(kind)
        if kind == "float" and dtype not in FLOATS:
            message = f"{PRIMITIVES[primitive].says} needs floats, but its operand is {dtype}"
            raise ElementTypeError(
                "E0602",
                message,
                self.span,
                "convert first: `f32(x)` where values have names, else `f32 >>` before it",
            )
        exponent = arguments[-1]
        if primitive == "pow" and isinstance(exponent, Constant) and exponent.value in POWERS:
            primitive, arguments = POWERS[exponent.value], arguments[:1]
        brought = tuple(_brought(a, dtype, self.span) for a in arguments)
        return Apply(primitive, brought, "bool" if kind == "compare" else dtype)

    def _common(self, arguments: tuple[Scalar, ...], meets: str | None = None) -> str:
        """The type in which arguments meet; constants follow the others, and so do positions, which are i64 alone.

        Constants among themselves have the type that they ``meet`` later, or the least.
        """
        dtype: str | None = None
        for argument in arguments:
            if argument.dtype is None or isinstance(argument, Position):
                continue
            joined = argument.dtype if dtype is None else join(dtype, argument.dtype)
            if joined is None:
                raise ElementTypeError(
                    "E0601",
                    f"the left operand is {dtype} and the right one is {argument.dtype}: integer beside float",
                    self.span,
                    "convert one side with f32 f64 i32 i64: `f32(x)` where values have names, else `(f32 | I) >> ...`",
                )
            dtype = joined
        if dtype in (None, "bool") and any(isinstance(a, Position) for a in arguments):
            return "i64"
        if dtype is None:
            return meets or self.least
        # A bool takes the type of the number beside it; a constant beside a bool is a float.
        return self.least if dtype == "bool" and any(a.dtype is None for a in arguments) else dtype


def _converted(argument: Scalar, dtype: str, span: Span) -> Scalar:
    """An argument in a type that the user named: the one conversion that may lose."""
    if argument.dtype == dtype:
        return argument
    if not isinstance(argument, Constant):
        return Convert(argument, dtype)
    value = _nearest(argument)
    if dtype == "bool":
        return Constant(float(value != 0), "bool")
    return _fitted(Constant(int(value) if dtype in INTEGERS else value), dtype, span)


def _nearest(constant: Constant) -> float | int:
    """The value of a constant: of an f32, the nearest that the type has."""
    if constant.dtype != "f32":
        return constant.value
    from struct import pack, unpack

    return float(unpack("f", pack("f", constant.value))[0])


def _brought(argument: Scalar, dtype: str, span: Span) -> Scalar:
    if isinstance(argument, Constant) and argument.dtype is None:
        return _fitted(argument, dtype, span)
    return argument if argument.dtype == dtype else Convert(argument, dtype)


def _fitted(constant: Constant, dtype: str, span: Span) -> Constant:
    """A constant in a type, or a refusal where the type cannot hold it."""
    value = constant.value
    if dtype in INTEGERS:
        low, high = INTEGER_ENDS[dtype]
        if value != value // 1 or not low <= int(value) <= high:
            message = f"the constant {_spelled(value)} is no {dtype}, the type of what it meets"
            whole = value == value // 1 and dtype == "i32"
            help_line = "convert the other side with " + ("i64" if whole else "f32 or f64")
            raise ElementTypeError("E0603", message, span, help_line)
    elif dtype in FLOATS and abs(value) > LARGEST_FLOAT[dtype] and abs(value) != float("inf"):
        message = f"the constant {_spelled(value)} is larger than any {dtype}"
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


def _spelled(value: float | int) -> str:
    return repr(value)
