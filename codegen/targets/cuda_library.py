"""The library of CUDA programs: ``headers/cuda.cuh``, and of C the elementary functions and random numbers."""

from __future__ import annotations

import functools

from ilang.codegen.targets import mathlib
from ilang.codegen.targets.library import Part, header, parts_of

HEAD = """\
/*
 * Elementary functions without a branch. Subnormal numbers, infinities and NaN are what C says; an ulp is a unit in the
 * last place of the result.
 */
#define INLINED static __device__ __forceinline__
#define FUSED /* fma is an instruction */
"""


@functools.cache
def parts() -> tuple[Part, ...]:
    """The parts that the text of a program may name, each after those that it names itself."""
    elementary = (part for part in header(mathlib.HEADER) if "INLINED" not in part.names)
    return (*parts_of(HEAD), *elementary, *header("philox.h"), *header("cuda.cuh"))
