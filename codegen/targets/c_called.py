"""The functions that kernels call: which they are, and their definitions as C text."""

from __future__ import annotations

from collections.abc import Iterator

from ilang.codegen.targets import c_transpose, cmath
from ilang.codegen.targets.c_cut import CEILING, SCALAR
from ilang.codegen.targets.c_fetch import FETCH
from ilang.codegen.targets.cfamily import C_TYPES, HELPERS, INDENT
from ilang.core.dtype import FLOATS
from ilang.core.ir.scalar import Apply

WRITTEN = {
    "past": c_transpose.PAST,
    "fetch": FETCH,
    "scalar": SCALAR,
    "ceil_i64": CEILING,
}
"""The text of those that are one of their kind."""


def called(scalar: Apply) -> set[str]:
    """The function that a primitive is a call of, if its definition is ours to write."""
    assert scalar.dtype is not None
    name = cmath.name_of(scalar.primitive, scalar.dtype)
    if name is None and scalar.primitive in HELPERS:
        name = f"{scalar.primitive}_{scalar.dtype}"
    return {name} if name else set()


def helper_lines(name: str) -> Iterator[str]:
    """The definition of a helper function."""
    if name in WRITTEN:
        yield from WRITTEN[name]
        return
    kind, _, dtype = name.rpartition("_")
    c_type = C_TYPES[dtype]
    if kind in ("max", "min"):
        sign = ">" if kind == "max" else "<"
        nan = "; NaN if one is" if dtype in FLOATS else ""
        said = f"the {'larger' if kind == 'max' else 'smaller'} of two{nan}"
        body = f"(b {sign} a) ? b : a"
        yield from (f"/* {said} */", f"static inline {c_type} {name}({c_type} a, {c_type} b)")
    elif kind == "square":
        body = "a * a"
        yield f"static inline {c_type} {name}({c_type} a)"
    else:
        target = kind.removesuffix("_of")
        end, suffix = {
            "i32": ("2147483648.0", "INT32_MIN"),
            "i64": ("9223372036854775808.0", "INT64_MIN"),
        }[target]
        end += "f" if dtype == "f32" else ""
        body = f"(a >= -{end} && a < {end}) ? ({C_TYPES[target]})a : {suffix}"
        yield "/* towards zero; what does not fit gives the smallest value */"
        yield f"static inline {C_TYPES[target]} {name}({c_type} a)"
    yield "{"
    if kind in ("max", "min") and dtype in FLOATS:
        yield f"{INDENT}const {c_type} one = {body};"
        body = "b != b ? b : one"
    yield from (f"{INDENT}return {body};", "}", "")
