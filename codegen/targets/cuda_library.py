"""The library of CUDA programs: ``headers/cuda.cuh``, ``sessions.cuh``, ``ranks.cuh``, and of C what holds everywhere.

The parts of C are the elementary functions, random numbers, files, between which and the device elements are moved, and
ranks.
"""

from __future__ import annotations

import functools

from ilang.codegen.targets import mathlib
from ilang.codegen.targets.library import HeaderPart, header, parts_of

HEAD = """\
/*
 * Elementary functions without a branch. Subnormal numbers, infinities and NaN are what C says; an ulp is a unit in the
 * last place of the result.
 */
#define INLINED static __device__ __forceinline__
#define FUSED /* fma is an instruction */
"""


@functools.cache
def parts() -> tuple[HeaderPart, ...]:
    """The parts that the text of a program may name, each after those that it names itself."""
    cuda = header("cuda.cuh")
    replaced = {"INLINED", *(name for part in cuda for name in part.names)}
    elementary = (part for part in header(mathlib.HEADER) if replaced.isdisjoint(part.names))
    named = (*parts_of(HEAD), *elementary, *header("philox.h"), *cuda)
    sessions, ranks = header("sessions.cuh"), header("ranks.cuh")
    on_device = {name for part in (*sessions, *ranks) for name in part.names}
    files, processes = (
        [part for part in header(name) if on_device.isdisjoint(part.names)]
        for name in ("safetensors.h", "ranks.h")
    )
    first = [part for part in files if "stored_array" in part.names]
    rest = [part for part in files if part not in first]
    return (*named, *first, *sessions, *rest, *processes, *ranks)
