"""Parallel loops whose threads can be stopped: in the text that a call compiles, and not in that which users get.

    the calling thread leaves its landing
    #pragma omp parallel
        each thread takes a landing of its own, does its part, and leaves the landing
    the calling thread is back at its landing, or goes there at once if the call was stopped

A thread that is stopped jumps to its landing, within the parallel region, and ends the region like all others.
``codegen/stopping.py`` has the functions behind the pointers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

INCLUDES = ("#ifdef _OPENMP", "#include <setjmp.h>", "#endif")

HOOKS = """\
#ifdef _OPENMP
/* how the threads of a call can be stopped; NULL for a call that nobody stops */
typedef struct call_stop {
    void *(*place)(struct call_stop *, int);
    int (*enter)(struct call_stop *, int);
    void (*leave)(struct call_stop *, int);
    void (*landed)(struct call_stop *, int);
    void (*pause)(struct call_stop *);
    void (*resume)(struct call_stop *);
} call_stop;
static _Thread_local call_stop *running_stop;

/* part of a loop, by a function that is not compiled into what calls setjmp: that would be slower */
#define PART_STOP(here_stop, function, ...) \\
    do { \\
        __typeof__(&function) part_stop = &function; \\
        __asm__("" : "+r"(part_stop)); \\
        if (here_stop == NULL) { \\
            part_stop(__VA_ARGS__); \\
        } else if (_setjmp(*(jmp_buf *)here_stop->place(here_stop, thread())) != 0) { \\
            here_stop->landed(here_stop, thread()); \\
        } else if (here_stop->enter(here_stop, thread())) { \\
            part_stop(__VA_ARGS__); \\
            here_stop->leave(here_stop, thread()); \\
        } \\
    } while (0)
#endif
"""


def hooks(name: str) -> Iterator[str]:
    """What parallel loops of a program use, and ``NAME_stop``, which says how calls of this thread are stopped."""
    yield from HOOKS.rstrip("\n").split("\n")[:-1]
    yield ""
    yield f"void {name}_stop(void *call);"
    yield f"void {name}_stop(void *call)"
    yield from ("{", "    running_stop = call;", "}", "#endif", "")


def shared(function: str, arguments: Sequence[str], indent: str) -> Iterator[str]:
    """The threads of a parallel loop, each with its part."""
    yield "#ifdef _OPENMP"
    yield f"{indent}call_stop *const here_stop = running_stop;"
    yield f"{indent}if (here_stop != NULL) here_stop->pause(here_stop);"
    yield "#pragma omp parallel num_threads(sharing)"
    yield f"{indent}PART_STOP(here_stop, {function}, {', '.join(arguments)});"
    yield f"{indent}if (here_stop != NULL) here_stop->resume(here_stop);"
    yield "#endif"
