"""The functions that CUDA programs call: their definitions, from ``cuda.cuh`` beside this file and from ``cmath_text``.

A program's text holds those that it calls, and those that they call.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ilang.codegen.targets import cmath
from ilang.codegen.targets.cmath_text import FUNCTIONS

DEFINED = re.compile(r"^(?:static [\w *]*?(\w+)\(|struct (\w+) )", re.MULTILINE)
CALL = re.compile(r"\b(\w+)\(")

HEAD = """\
/*
 * Elementary functions without a branch. Subnormal numbers, infinities and NaN are what C says; an ulp is a unit in the
 * last place of the result.
 */
#define INLINED static __device__ __forceinline__
#define FUSED /* fma is an instruction */
"""


@functools.cache
def _written() -> dict[str, str]:
    """The functions of ``cuda.cuh`` by name."""
    text = Path(__file__).with_name("cuda.cuh").read_text("ascii")
    found = {}
    for part in text.strip("\n").split("\n\n"):
        name = DEFINED.search(part)
        assert name is not None, part
        found[name[1] or name[2]] = part
    return found


def definitions(names: Iterable[str]) -> Iterator[str]:
    """The lines that define functions, and before them those that they call."""
    every = {**FUNCTIONS, **_written()}
    wanted = set(names)
    pending = list(wanted)
    while pending:
        called = {word for word in CALL.findall(every[pending.pop()]) if word in every}
        pending += called - wanted
        wanted |= called
    if wanted & cmath.NAMES:
        yield from (*HEAD.split("\n"),)
    for name, text in every.items():
        if name in wanted:
            yield from (*text.strip("\n").split("\n"), "")
