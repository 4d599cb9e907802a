"""Elementary functions in C, of our own: compilers turn loops over them into vector code, calls of libm they cannot.

A program's text holds the functions that it calls, and those that they call. They are plain C99 without a branch or a
table: a loop over one, short or long, becomes vector code of any width. ``lanes`` wraps one for the vector types of GCC
and Clang. Every element goes through the same operations in the same order, so the same number gives the same bits
wherever it stands in an array. ``tests/property/accuracy.py`` measures how exact they are.

``muladd`` is one instruction with one rounding where the compiler may use it (the macro FUSED), else a product and a
sum. It is written out, by the functions alone: programs are compiled without contraction, which GCC moreover decides by
the function that a text is inlined into, so that a function of ours could not have it to itself.

No sum there is meant to be reassociated: adding and taking away 1.5 * 2^23 rounds to a whole number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ilang.codegen.targets.cmath_text import FUNCTIONS, HEAD

CALL = re.compile(r"\b(\w+)\(")

NAMES = frozenset(FUNCTIONS)
"""Every function that ``definitions`` can define."""


def name_of(primitive: str, dtype: str) -> str | None:
    """The function here that computes a primitive, or None: then it is libm's, or no function at all."""
    name = f"{'ln' if primitive == 'log' else primitive}_{dtype}"
    return name if name in FUNCTIONS else None


def definitions(names: Iterable[str]) -> Iterator[str]:
    """The lines that define functions, and before them those that they call; none for no names."""
    wanted = set(names)
    pending = list(wanted)
    while pending:
        called = set(CALL.findall(FUNCTIONS[pending.pop()])) & FUNCTIONS.keys()
        pending += called - wanted
        wanted |= called
    if wanted:
        yield from HEAD.strip("\n").split("\n")
        yield ""
    for name, text in FUNCTIONS.items():
        if name in wanted:
            yield from text.strip("\n").split("\n")
            yield ""


def lanes(name: str, count: int) -> Iterator[str]:
    """The lines that define ``NAMExCOUNT``, a function of one argument for a vector type of ``count`` lanes.

    The type is called ``f32x16`` for 16 lanes of f32, and is the caller's to define. The loop goes over copies in
    arrays, which both GCC and Clang keep in registers; over the lanes themselves only GCC does.
    """
    dtype = name.rpartition("_")[2]
    c_type, vector = {"f32": "float", "f64": "double"}[dtype], f"{dtype}x{count}"
    yield f"static inline {vector} {name}x{count}({vector} x)"
    yield "{"
    yield f"    {c_type} values[{count}];"
    yield "    __builtin_memcpy(values, &x, sizeof x);"
    yield f"    for (int lane = 0; lane < {count}; ++lane) values[lane] = {name}(values[lane]);"
    yield "    __builtin_memcpy(&x, values, sizeof x);"
    yield "    return x;"
    yield "}"
    yield ""
