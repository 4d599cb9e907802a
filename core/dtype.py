"""Element types and the rules that join them (docs/language.md section 5).

i32 widens to i64 and f32 to f64; bool beside a number takes its type; two bools in arithmetic become f32; an integer
beside a float is refused. Nothing else converts by itself.
"""

from __future__ import annotations

DTYPES = ("f32", "f64", "i32", "i64", "bool")
FLOATS = ("f32", "f64")
HELD_FLOATS = (*FLOATS, "bf16")
"""Types of floats in memory: bf16, the upper half of an f32, only in what a matrix unit is given."""
INTEGERS = ("i32", "i64")
NUMPY_NAMES = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "bool": "bool"}
"""The names of the types in NumPy."""
BYTES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "bool": 1, "bf16": 2}

INTEGER_ENDS = {"i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1)}
"""Smallest and largest value of each integer type."""

LARGEST_FLOAT = {"f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308}


LARGEST_WHOLE = {"f32": 2**24, "f64": 2**53, "i32": 2**31 - 1, "i64": 2**63 - 1}
"""A type holds all whole numbers up to this one, on both sides of 0."""


def join(left: str, right: str) -> str | None:
    """The type in which two operands meet, or None where they must not (integer beside float)."""
    if left == right:
        return left
    if left == "bool":
        return right
    if right == "bool":
        return left
    if left in FLOATS and right in FLOATS:
        return "f64"
    if left in INTEGERS and right in INTEGERS:
        return "i64"
    return None


def arithmetic(dtype: str, least: str = "f32") -> str:
    """The type in which arithmetic on ``dtype`` is done: bools become the ``least`` float of a program."""
    return least if dtype == "bool" else dtype


def accumulator(op: str, dtype: str) -> str:
    """The type in which a reduction by ``op`` accumulates values of ``dtype``.

    A float32 sum accumulates in float64, so that 2**24 terms stay within 1e-5 of the sum of magnitudes in any loop
    order (docs/language.md section 5). Lanes and tiles add few terms in float32 before.
    """
    return "f64" if op == "+" and dtype == "f32" else dtype
