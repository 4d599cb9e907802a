"""Elementary functions in C, of our own: compilers turn loops over them into vector code, calls of libm they cannot.

``headers/elementary.h`` has them: plain C99 without a branch or a table, so that a loop over one, short or long,
becomes vector code of any width. Every element goes through the same operations in the same order, so the same number
gives the same bits wherever it stands in an array. ``tests/property/accuracy.py`` measures how exact they are.

``muladd`` is one instruction with one rounding where the compiler may use it (the macro FUSED), else a product and a
sum. ``muladd`` is written out, by the functions alone: programs are compiled without contraction, which GCC
moreover decides by the function that a text is inlined into, so that a function of ours could not have it to itself.

No sum there is meant to be reassociated: adding and taking away 1.5 * 2^23 rounds to a whole number.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from ilang.codegen.targets.library import header, linked
from ilang.core.dtype import FLOATS

HEADER = "elementary.h"
FUNCTIONS = {
    name.rstrip("("): part.text
    for part in header(HEADER)
    for name in part.names
    if name.endswith("(")
}
"""The text of each function."""


def name_of(primitive: str, dtype: str) -> str:
    """The function that computes a primitive: one of our headers, or else of the C library."""
    name = f"{primitive}_{dtype}"
    if dtype not in FLOATS or name in FUNCTIONS or f"{name}(" in _numbers():
        return name
    return f"{primitive}f" if dtype == "f32" else primitive


@functools.cache
def _numbers() -> frozenset[str]:
    """The names of the functions of numbers that have no elementary function inside."""
    return frozenset(name for part in header("numbers.h") for name in part.names)


def definitions(names: Iterable[str]) -> Iterator[str]:
    """The lines that define functions, and before them what they name; none for no names."""
    return linked(" ".join(f"{name}()" for name in names), header(HEADER))
