"""Element types: every scalar gets its type, every conversion is made explicit (LANGUAGE.md section 1, "Types").

A constant has no type of its own: it takes that of what it meets, and f32 where it meets nothing. What is made of
constants alone, ``1 / 3``, is as exact as the float that it meets; in an expression that reads values and uses none,
as these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ilang.core.diagnostic import ElementTypeError
from ilang.core.dtype import FLOATS, INTEGER_ENDS, INTEGERS, LARGEST_FLOAT, arithmetic, join
from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Position, Scalar, walk
from ilang.core.ops import PRIMITIVES
from ilang.core.source import Span

POWERS = {0.5: "sqrt", 2.0: "square", -1.0: "recip"}
"""A power by one of these literals is another primitive (LANGUAGE.md section 1, "Constants")."""


def type_scalar(scalar: Scalar, operands: Sequence[Scalar], span: Span) -> Scalar:
    """The typed form of a scalar. ``operands`` are what its reads deliver: typed operands, or constants.

    Raises:
        ElementTypeError: E0601 (integer beside float), E0602 (an operation that needs floats), E0603 (a constant that
            its type cannot hold).
    """
    if not _is_alone(scalar):
        return _settle(_typed(scalar, operands, span), span)
    meets = _float_of(operands, span)
    found = _typed(scalar, operands, span, meets)
    return _brought(found, meets, span) if isinstance(found, Constant) else found


def _is_alone(scalar: Scalar) -> bool:
    """Whether a scalar is made of constants alone."""
    leaves = [part for part in walk(scalar) if not isinstance(part, Apply)]
    return all(isinstance(leaf, Constant) and leaf.dtype is None for leaf in leaves)


def _float_of(arguments: Sequence[Scalar], span: Span) -> str:
    """The float type in which values meet; f32 where they have none."""
    typed = tuple(each for each in arguments if each.dtype in FLOATS)
    return _common(typed, span)


def _typed(
    scalar: Scalar, operands: Sequence[Scalar], span: Span, meets: str | None = None
) -> Scalar:
    """The same without a type for a constant that met nothing; ``meets`` is what a scalar of constants will meet."""
    match scalar:
        case Operand():
            return operands[scalar.number]
        case Constant():
            return scalar
        case Position():
            return Position(scalar.index, "i64")
        case Convert():
            assert scalar.dtype is not None
            return _converted(_typed(scalar.argument, operands, span), scalar.dtype, span)
        case Apply():
            alone = [isinstance(a, Apply) and _is_alone(a) for a in scalar.arguments]
            pairs = list(zip(scalar.arguments, alone, strict=True))
            others = [_typed(a, operands, span, meets) for a, constant in pairs if not constant]
            inner = meets or _float_of(others, span)
            rest = iter(others)
            arguments = tuple(
                _typed(a, operands, span, inner) if constant else next(rest)
                for a, constant in pairs
            )
            return _applied(scalar.primitive, arguments, span, meets)
        case _:
            raise AssertionError(scalar)


def _settle(scalar: Scalar, span: Span) -> Scalar:
    """A constant that met nothing is f32."""
    return (
        _fitted(scalar, "f32", span)
        if isinstance(scalar, Constant) and scalar.dtype is None
        else scalar
    )


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


def _applied(
    primitive: str, arguments: tuple[Scalar, ...], span: Span, meets: str | None = None
) -> Scalar:
    kind = PRIMITIVES[primitive].kind
    match kind:
        case "move":
            return arguments[0]
        case "logic":
            return Apply(primitive, tuple(_settle(a, span) for a in arguments), "bool")
        case "select":
            test, *others = arguments
            dtype = _common(tuple(others), span, meets)
            chosen = tuple(_brought(a, dtype, span) for a in others)
            return Apply(primitive, (_settle(test, span), *chosen), dtype)
        case "compare":
            dtype = _common(arguments, span, meets)
        case "arithmetic" | "float":
            dtype = arithmetic(_common(arguments, span, meets))
        case _:
            assert_never(kind)
    if kind == "float" and dtype not in FLOATS:
        message = f"{PRIMITIVES[primitive].says} needs floats, but its operand is {dtype}"
        raise ElementTypeError(
            "E0602", message, span, "convert first, for example with `f32 >>` before it"
        )
    if primitive == "pow" and isinstance(arguments[1], Constant) and arguments[1].value in POWERS:
        primitive, arguments = POWERS[arguments[1].value], arguments[:1]
    brought = tuple(_brought(a, dtype, span) for a in arguments)
    return Apply(primitive, brought, "bool" if kind == "compare" else dtype)


def _common(arguments: tuple[Scalar, ...], span: Span, meets: str | None = None) -> str:
    """The type in which arguments meet; constants follow the others, and so do positions, which are i64 alone.

    Constants among themselves have the type that they ``meet`` later, or f32.
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
                span,
                "convert one side with the components f32 f64 i32 i64, for example `(f32 | I) >> ...`",
            )
        dtype = joined
    if dtype in (None, "bool") and any(isinstance(a, Position) for a in arguments):
        return "i64"
    if dtype is None:
        return meets or "f32"
    # A bool takes the type of the number beside it; a constant beside a bool is an f32 number.
    return "f32" if dtype == "bool" and any(a.dtype is None for a in arguments) else dtype


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
