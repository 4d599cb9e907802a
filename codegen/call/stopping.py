"""Stopping a call from another thread: each of its threads jumps out of what it computes.

A compiled program holds no lock and calls nothing that does, so it may be left at any instruction. The call of a
program therefore has a place to land, and so has each thread of a parallel loop; ``stop`` sends a signal to every
thread that is between such a place and its end, and the handler of that signal jumps. Loops pay nothing for it, however
they are written. Decision 0011 has the reasons.

The functions of ``stopping.c`` are a small library of its own, compiled at the first call that may take long, once per
number of arguments. SIGURG is ignored by default, so one that comes late does nothing.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _cffi_backend as backend

from ilang.codegen.call.native import Native
from ilang.codegen.compile import cache
from ilang.codegen.compile.toolchain import library_recipe
from ilang.core.diagnostic import ToolError
from ilang.core.machine import CPU

_UNIT = backend.new_primitive_type("long double")
_UNITS = backend.new_array_type(backend.new_pointer_type(_UNIT), None)


class Stopping:
    """The functions that run and stop calls with one number of arguments."""

    def __init__(self, path: str, pointers: int) -> None:
        """Load the library. Raises OSError where that fails."""
        library = Native(path)
        self.run = library.required("stop_run", "Pw" + "P" * pointers)
        self.stop = library.required("stop_now", "P", "nothing")
        self._prepare = library.required("stop_prepare", "P", "nothing")
        count = int(library.required("stop_bytes", "", "size")())
        self._units = count // backend.sizeof(_UNIT) + 1
        self._library = library
        self._idle: list[Any] = []

    def take(self) -> Any:
        """The handle of a call that has not begun.

        Handles are kept for ever: a signal that comes late finds one that is not being stopped.
        """
        try:
            handle = self._idle.pop()
        except IndexError:
            handle = backend.newp(_UNITS, self._units)
        self._prepare(handle)
        return handle

    def give_back(self, handle: Any) -> None:
        """Keep a handle for the next call."""
        self._idle.append(handle)


def text_for(pointers: int) -> str:
    """The library for functions that take so many pointers."""
    names = [f"a{n}" for n in range(pointers)]
    words = {
        "PARAMETERS": ", ".join("void *" for _ in names),
        "DECLARED": ", ".join(f"void *{name}" for name in names),
        "ARGUMENTS": ", ".join(names),
        "MOST_THREADS": str(CPU.threads.most),
    }
    text = Path(__file__).with_name("stopping.c").read_text("ascii")
    for word, value in words.items():
        text = text.replace(word, value)
    return text


@functools.cache
def stopping(pointers: int) -> Stopping | None:
    """The means to stop calls of functions that take so many pointers; None where there is none."""
    load: Callable[[str], Stopping] = functools.partial(Stopping, pointers=pointers)
    with contextlib.suppress(ToolError):  # a program that cannot be stopped runs all the same
        return cache.library(text_for(pointers), library_recipe(), load)
    return None
