"""Parallel loops whose threads can be stopped: in the text that a call compiles, and not in that which users get.

    the calling thread leaves its landing
    #pragma omp parallel
        each thread takes a landing of its own, does its part, and leaves the landing
    the calling thread is back at its landing, or goes there at once if the call was stopped

A thread that is stopped jumps to its landing, within the parallel region, and ends the region like all others.
``codegen/call/stopping.py`` has the functions behind the pointers.
"""

from __future__ import annotations

from collections.abc import Iterator

INCLUDES = ("#ifdef _OPENMP", "#include <setjmp.h>", "#endif")


def hooks(name: str) -> Iterator[str]:
    """``NAME_stop``, which says how calls of this thread are stopped."""
    yield "#ifdef _OPENMP"
    yield f"void {name}_stop(void *call);"
    yield f"void {name}_stop(void *call)"
    yield from ("{", "    running_stop = call;", "}", "#endif", "")
