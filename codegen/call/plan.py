"""Calls of one compiled program at one size: the shortest way, with several threads, or so that they can be stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.call.arguments import PLAIN, Output, check_threads, checked_outs, result_of
from ilang.codegen.call.memory import (
    LARGEST_SPACE,
    NO_SPACE,
    address,
    argument,
    bytes_of,
    too_large,
)
from ilang.codegen.system.concurrency import hears_signals, interruptible, is_forked
from ilang.core.diagnostic import DataError, Error, InternalError

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array
    from ilang.codegen.call.load import Compiled, LoadedLibrary
    from ilang.codegen.call.stopping import Stopping
Names = tuple[Sequence[str], Sequence[str]]

LONG = 2**24
"""The time of a call, in elements that a thread reads, from which somebody may want to stop it.

So many elements are over before somebody waits where each waits for memory, 50 ns or so; most take far less.
"""
BRIEF = 0.1
"""Seconds of a call of the same extents that a later one need not be stopped: it pays for nothing then.

Another thread costs a few hundredths of a millisecond, and where cores are scarce two waits for one.
"""
HELD = 2**12
"""The same from which a call in C gives up Python's lock: below, that takes longer than what others wait for."""
MOST_SPACE = 2**14
"""Bytes of workspace that a call in C has; ``dispatch.c`` has the same."""
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Threads that can run at once: the cores that this process may use."""
WRITABLE = PLAIN | 0x400
"""Flags of an array that C can write as it is."""


OUT_OF_RANGE = "E0746"
"""The code of an element that is looked up and is no index."""


def _is_written(array: Any, output: Output) -> bool:
    """Whether a compiled program can write an output into an array as it is."""
    shape, dtype = output
    return (
        type(array) is np.ndarray
        and array.shape == shape
        and array.dtype == dtype
        and array.flags.num & WRITABLE == WRITABLE
    )


class CallPlan:
    """One size of a program, prepared: its sizes as C reads them, its workspace, its outputs."""

    __slots__ = (
        "_brief_from",
        "_kept",
        "_library",
        "_most",
        "_sizes",
        "_threaded",
        "_time",
        "_work",
        "compiled",
        "fresh",
        "into",
        "names",
        "outputs",
    )

    def __init__(
        self, compiled: Compiled, extents: Sequence[int], outputs: Sequence[Output], names: Names
    ) -> None:
        run_time = [extents[n] for n in compiled.interface.arguments]
        self._library = compiled.library(threads=False)
        self._kept = np.array(run_time or [0], np.int64)
        self._sizes = argument(self._kept)
        self._work = int(self._library.work(self._sizes))
        if LARGEST_SPACE < self._work:
            raise too_large("the workspace", self._work)
        works = [*compiled.works(extents)]
        self._time = sum(works)
        is_serial = max(works, default=0) < compiled.interface.enough_work
        self._most = 1 if is_serial else min(compiled.interface.threads, CORES)
        self._brief_from = self._most + 1 if LONG <= self._time else 1
        self.outputs = tuple(outputs)
        self.names = names
        self.compiled = compiled
        self.fresh = self._quick()
        self.into = self._quick_into()
        self._threaded: dict[int, Callable[[Sequence[Array], Any], Any]] = {}

    def _quick(self) -> Callable[[Sequence[Array]], Any]:
        """``fresh``: run into new arrays; the one output, or a tuple of them.

        Every short call takes this path, so whatever can be looked up before is. A call of one output and no workspace
        is most calls, and has a function of its own.
        """
        function, sizes, empty = self._library.function, self._sizes, np.empty
        if self._is_long(1):
            return self._new
        if self._work or len(self.outputs) != 1:
            return self._general()
        ((shape, dtype),) = self.outputs

        def fresh(arrays: Sequence[Array]) -> Array:
            try:
                out = empty(shape, dtype)
            except (MemoryError, ValueError):
                raise too_large("the result", bytes_of(shape, dtype)) from None
            status = function(sizes, *map(argument, arrays), argument(out), NO_SPACE)
            if status:
                raise failure(status)
            return out

        return fresh

    def _general(self) -> Callable[[Sequence[Array]], Any]:
        """``fresh`` with workspace, or with several outputs."""
        function, sizes, one = self._library.function, self._sizes, len(self.outputs) == 1
        take_space, give_back, count = self.compiled.take_space, self.compiled.give_back, self._work

        def fresh(arrays: Sequence[Array]) -> Any:
            outs = self._new_outs()
            space = take_space(count)
            status = function(sizes, *map(argument, arrays), *map(argument, outs), space)
            give_back(space)
            if status:
                raise failure(status)
            return outs[0] if one else tuple(outs)

        return fresh

    def _quick_into(self) -> Callable[[Sequence[Array], Any], Any]:
        """``into``: run serially into the one output, or a tuple of all; whatever is wrong with them, ``call`` tells.

        The compiled program itself refuses arrays that overlap, before it writes.
        """
        if self._is_long(1):
            return self._into
        return self._into_of(self._library.function, self._work, 1)

    def threaded(self, threads: int) -> Callable[[Sequence[Array], Any], Any] | None:
        """``into`` with so many threads (2 or more, as far as there are any); None for a call that takes long.

        Raises:
            ToolError: the threaded library cannot be built.
        """
        known = self._threaded.get(threads)
        if known is not None or self._is_long(threads) or is_forked():
            return None if is_forked() else known
        library = self.compiled.library(threads=True)
        set_threads, get_threads = library.set_threads, library.get_threads
        if set_threads is None or get_threads is None:
            return None
        count, function = min(threads, self._most), library.function

        def run(*arguments: Any) -> int:
            before = get_threads()  # of the calling thread, which others may care about
            if before == count:
                return int(function(*arguments))
            set_threads(count)
            try:
                return int(function(*arguments))
            finally:
                set_threads(before)

        threaded = self._into_of(run, int(library.work(self._sizes)), threads)
        self._threaded[threads] = threaded
        return threaded

    def _into_of(
        self, function: Callable[..., int], count: int, threads: int
    ) -> Callable[[Sequence[Array], Any], Any]:
        """``into`` by a compiled function that needs ``count`` bytes of workspace.

        What it gives takes the shortest way for arrays that are as the program writes them; any others, and a call
        that fails, take the way that tells what is wrong.
        """
        sizes, outputs = self._sizes, self.outputs
        take_space, give_back = self.compiled.take_space, self.compiled.give_back

        def into(arrays: Sequence[Array], out: Any) -> Any:
            outs = out if type(out) is tuple else (out,)
            if len(outs) != len(outputs) or not all(map(_is_written, outs, outputs)):
                return self.call(arrays, arrays, out, threads)
            space = take_space(count) if count else NO_SPACE
            status = function(sizes, *map(argument, arrays), *map(argument, outs), space)
            if count:
                give_back(space)
            return self.call(arrays, arrays, out, threads) if status else out

        return into

    def _into(self, arrays: Sequence[Array], out: Any) -> Any:
        return self.call(arrays, arrays, out, 1)

    def _new(self, arrays: Sequence[Array]) -> Any:
        return self.call(arrays, arrays, None, 1)

    def answer(self, arrays: Sequence[Array], out: Any, threads: int | str) -> Any:
        """Run on arrays like those that the plan was made for, on the shortest way for what is asked."""
        if threads.__class__ is int and 0 < threads and 1 in (threads, self._most):
            return self.fresh(arrays) if out is None else self.into(arrays, out)
        if threads.__class__ is int and out is not None:
            call = self.threaded(threads) if 1 < threads else None
            if call is not None:
                return call(arrays, out)
        return self.call(arrays, arrays, out, threads)

    def enter(self, table: Any, arrays: Sequence[Array]) -> bool:
        """Have a table answer calls on arrays like these, if they are short and need little; whether it does."""
        if self._is_long(1) or MOST_SPACE < self._work:
            return False
        forms = [(array.dtype.num, array.shape) for array in arrays]
        forms += [(dtype.num, shape) for shape, dtype in self.outputs]
        flat = tuple(n for number, shape in forms for n in (number, len(shape), *shape))
        pointers = address(self._library.function), address(self._sizes)
        counts = len(arrays), len(self.outputs)
        kinds = self._time < HELD, self._most == 1
        return bool(table.add(self, *pointers, *counts, *kinds, flat))

    def call(
        self, given: Sequence[Array], plain: Sequence[Array], out: object, threads: int | str
    ) -> Any:
        """Run on ``plain``, the contiguous form of ``given``, as ``Component.__call__`` is asked to.

        Raises:
            DataError: the outputs or the number of threads, and those of ``run``.
        """
        check_threads(threads)
        outs = (
            self._new_outs() if out is None else checked_outs(out, self.names, self.outputs, given)
        )
        self.run(plain, outs, self.worth() if isinstance(threads, str) else threads)
        return result_of(outs, out)

    def worth(self) -> int:
        """The threads that are worth it: all cores where a call may take long, else one."""
        return self._most if LONG <= self._time else 1

    def _new_outs(self) -> list[Array]:
        try:
            return [np.empty(shape, dtype) for shape, dtype in self.outputs]
        except (MemoryError, ValueError):
            needed = sum(bytes_of(shape, dtype) for shape, dtype in self.outputs)
            raise too_large("the result", needed) from None

    def _is_long(self, threads: int) -> bool:
        """Whether a call with so many threads may take long: none with as many or fewer was brief."""
        return threads < self._brief_from

    def run(self, arrays: Sequence[Array], outs: Sequence[Array], threads: int = 1) -> None:
        """Run into given arrays, with so many threads.

        A call that may take long is stopped by a signal whose handler raises an exception: that is raised when no
        thread computes any more, and the outputs then hold anything.

        Raises:
            DataError: E0709, E0713. ToolError: the threaded library cannot be built.
        """
        threads = 1 if is_forked() else min(threads, self._most)
        library = self.compiled.library(threads=1 < threads)
        arguments = [argument(array) for array in (*arrays, *outs)]
        if self._is_long(threads) and hears_signals():
            status = self._run_long(library, arguments, threads)
        else:
            status = self._with_threads(library, arguments, threads)
        if status:
            raise failure(status)

    def run_bound(self, arrays: Sequence[Array], arguments: Sequence[Any], threads: int) -> None:
        """Run on arrays, inputs and then outputs, that are there as C arguments, too.

        Raises:
            DataError: E0709, E0713, E0746. ToolError: the threaded library cannot be built.
        """
        if 1 < threads or self._is_long(1):
            self.run(arrays, (), threads)
            return
        space = self.compiled.take_space(self._work)
        status = self._library.function(self._sizes, *arguments, space)
        self.compiled.give_back(space)
        if status:
            raise failure(status)

    def _run_long(self, library: LoadedLibrary, arguments: list[Any], threads: int) -> int:
        """Run so that it can be stopped, and see whether that was needed."""
        from ilang.codegen.call.stopping import stopping

        stopper = stopping(len(arguments) + 2)
        if stopper is None:
            return interruptible(
                lambda: self._with_threads(library, arguments, threads), lambda: None
            )
        handle = stopper.take()
        started = time.perf_counter()
        try:
            status = interruptible(
                lambda: self._with_threads(library, arguments, threads, (stopper, handle)),
                lambda: stopper.stop(handle),
            )
        finally:
            stopper.give_back(handle)
        if not status and time.perf_counter() - started < BRIEF:
            self._brief_from = min(threads, self._brief_from)
            self.fresh, self.into = self._quick(), self._quick_into()
        return status

    def _with_threads(
        self,
        library: LoadedLibrary,
        arguments: list[Any],
        threads: int,
        stop: tuple[Stopping, Any] | None = None,
    ) -> int:
        """Call with so many threads; with ``stop``, in a thread that is there for this call, by that handle."""
        if library.set_threads is None or library.get_threads is None:
            return self._call(library, arguments, stop)
        before = library.get_threads()  # of the calling thread, which others may care about
        library.set_threads(threads)
        if stop is not None:
            library.let_stop(stop[1])
        try:
            return self._call(library, arguments, stop)
        finally:
            library.set_threads(before)
            if stop is not None:
                library.let_stop(None)
                library.dismiss()

    def _call(
        self, library: LoadedLibrary, arguments: list[Any], stop: tuple[Stopping, Any] | None
    ) -> int:
        """Call with a workspace of the size that this library asks for."""
        count = self._work if library is self._library else int(library.work(self._sizes))
        space = self.compiled.take_space(count)
        try:
            if stop is None:
                return int(library.function(self._sizes, *arguments, space))
            stopper, handle = stop
            return int(
                stopper.run(handle, address(library.function), self._sizes, *arguments, space)
            )
        finally:
            self.compiled.give_back(space)


def failure(status: int) -> Error:
    """The error for what a generated function returned."""
    match status:
        case 2:
            return DataError(
                "E0709", "an output overlaps another array", help="pass an output of its own memory"
            )
        case 3:
            return too_large("an array of these extents")
        case 4:
            return DataError(
                OUT_OF_RANGE,
                "an element that is looked up is no index of its axis",
                help="an index is at least 0 and below the extent",
            )
        case _:
            return InternalError("E9910", f"a compiled program returned status {status}")
