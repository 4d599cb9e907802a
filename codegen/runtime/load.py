"""From C text to running code: build through the cache, load, call.

A call releases Python's lock. Programs run serially unless more threads are asked for; the library with OpenMP is
built then. In a forked child every call is serial (an OpenMP runtime does not survive a fork; results are the same).

``_cffi_backend`` is what cffi itself stands on. Its function types are made here by hand, since cffi's own reader of
C declarations costs more to import than all of this module.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import _cffi_backend as backend
import numpy as np

from ilang.codegen.runtime import cache
from ilang.codegen.runtime.arguments import PLAIN, Output, check_threads, checked_outs, result_of
from ilang.codegen.runtime.concurrency import Turn, hears_signals, interruptible, is_forked
from ilang.codegen.runtime.toolchain import Variant
from ilang.codegen.targets.identifiers import identifier
from ilang.core.diagnostic import DataError, Error, InternalError
from ilang.core.dtype import FLOATS
from ilang.core.ir.scalar import Apply, walk
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ops import COSTS, SLOW, TILED
from ilang.core.record import record

if TYPE_CHECKING:  # numpy.typing takes most of a millisecond, which a first call would pay
    import numpy.typing as npt

    from ilang.codegen.runtime.stopping import Stopping

    Array = npt.NDArray[Any]
Names = tuple[Sequence[str], Sequence[str]]

LONG = 2**22
"""Iterations from which a call may take so long that somebody wants to stop it.

That is as many as are over before somebody waits where each waits for memory, 50 ns or so; most take far less.
"""
BRIEF = 0.1
"""Seconds of a call of the same extents that a later one need not be stopped: it pays for nothing then.

Another thread costs a few hundredths of a millisecond, and where cores are scarce two waits for one.
"""
SLOWLY = float(max(COSTS[primitive] for primitive in SLOW))
"""What an iteration counts that computes an exponential or the like."""

MOST_THREADS = min(64, os.cpu_count() or 1)
MOST_SPACES = 4
LARGEST_KEPT = 64 * 1024 * 1024
"""Workspaces up to this many bytes are kept for the next call, a few per program."""

LARGEST_SPACE = 2**62
"""A program asks for more where its extents do not fit."""

ALIGNMENT = 64

WRITABLE = PLAIN | 0x400
"""Flags of an array that C can write as it is."""

_VOID_POINTER = backend.new_pointer_type(backend.new_void_type())
_INT = backend.new_primitive_type("int")
_SIZE_T = backend.new_primitive_type("size_t")
_WORK = backend.new_function_type((_VOID_POINTER,), _SIZE_T, False)
_SET_THREADS = backend.new_function_type((_INT,), backend.new_void_type(), False)
_GET_THREADS = backend.new_function_type((), _INT, False)
_PAUSE = backend.new_function_type((_INT,), _INT, False)
_PAUSE_SOFT = 1
_LET_STOP = backend.new_function_type((_VOID_POINTER,), backend.new_void_type(), False)
NO_HANDLE: Final = backend.cast(_VOID_POINTER, 0)

CHARS: Final = backend.new_array_type(
    backend.new_pointer_type(backend.new_primitive_type("char")), None
)
argument: Final = functools.partial(backend.from_buffer, CHARS)
"""What a function is called with for a contiguous array: points to its elements, and keeps it alive."""


class Library:
    """The functions of one loaded library."""

    def __init__(self, path: str, name: str, arrays: int, threads: bool) -> None:
        """Load ``path``, whose function ``name`` takes so many arrays. Raises OSError where that fails."""
        flags = backend.RTLD_NOW | backend.RTLD_LOCAL
        if threads:  # the threads of the OpenMP runtime outlive the program that woke them
            flags |= getattr(backend, "RTLD_NODELETE", 0)
        self._library = backend.load_library(path, flags)
        kind = backend.new_function_type((_VOID_POINTER,) * (arrays + 2), _INT, False)
        try:
            self.function = self._library.load_function(kind, name)
            self.work = self._library.load_function(_WORK, f"{name}_work")
        except AttributeError as error:
            raise OSError(str(error)) from None
        self.set_threads, self.get_threads, self._pause = None, None, None
        self._let_stop = None
        if threads:
            with contextlib.suppress(AttributeError):
                self._let_stop = self._library.load_function(_LET_STOP, f"{name}_stop")
            try:
                self.set_threads = self._library.load_function(_SET_THREADS, "omp_set_num_threads")
                self.get_threads = self._library.load_function(_GET_THREADS, "omp_get_max_threads")
            except AttributeError:  # compiled without OpenMP: the compiler has none
                pass
            with contextlib.suppress(AttributeError):  # an OpenMP before version 5
                self._pause = self._library.load_function(_PAUSE, "omp_pause_resource_all")

    def let_stop(self, handle: Any) -> None:
        """Say by what handle the parallel loops of the calling thread's calls can be stopped; None for by none."""
        if self._let_stop is not None:
            self._let_stop(NO_HANDLE if handle is None else handle)

    def dismiss(self) -> None:
        """End the threads that OpenMP keeps for the calling thread.

        Those of several threads are more than there are processors: then all of them go to sleep at once where they
        would wait for the next loop, and waking one takes as long as a short call.
        """
        if self._pause is not None:
            self._pause(_PAUSE_SOFT)


MOST_LIBRARIES = 256

_loaded: dict[tuple[str, Variant], Library] = {}
"""The libraries loaded last, by source and variant: a program that is written again is there at once."""

_loading = Turn()


@record
class Interface:
    """What a call has to know of a program, whatever its loops are.

    ``arrays`` counts inputs and outputs, ``arguments`` has the numbers of the sizes that a caller gives, ``nests``
    what an iteration of each expression counts, and the size numbers of its axes.
    """

    name: str
    arrays: int
    arguments: tuple[int, ...]
    nests: tuple[tuple[float, tuple[int, ...]], ...]


def interface_of(shaped: Shaped) -> Interface:
    """The interface of a program; nothing of it is decided by how the program is lowered."""
    return Interface(
        shaped.name,
        len(shaped.inputs) + len(shaped.outputs),
        tuple(n for n, size in enumerate(shaped.sizes) if size.is_argument()),
        _weights(shaped),
    )


def _weights(shaped: Shaped) -> tuple[tuple[float, tuple[int, ...]], ...]:
    """What an iteration of each expression counts, and the sizes of its axes.

    The products of a contraction count with its sum.
    """
    nodes = {v: node for v, node in enumerate(shaped.nodes) if isinstance(node, Assignment)}
    found: dict[int, float] = {}
    for value, node in nodes.items():
        parts = list(walk(node.scalar))
        slow = any(isinstance(p, Apply) and p.primitive in SLOW for p in parts)
        found[value] = SLOWLY if slow else 1.0
        below = node.reads[0].value if len(node.reads) == 1 else value
        made = nodes.get(below, node)
        if made is not node and (made.acc is not None or found[below] != 1.0):
            continue
        walked = [{axis for part in r.index for _, axis in part.terms} for r in made.reads]
        again = all(len(axes) < len(made.axes) for axes in walked)
        if again and node.acc == "+" and node.scalar.dtype in FLOATS:
            found[below] = 0.0
            found[value] = 1 / TILED
    return tuple((found[value], node.sizes) for value, node in nodes.items())


def open_library(
    interface: Interface, text: Callable[[], str], source: str, variant: Variant
) -> Library:
    """The library of a program's C text, compiled if it is not in the cache.

    ``source`` is what the text follows from, or the text itself.

    Raises:
        ToolError: whatever can go wrong with the compiler and its folders.
    """
    known = _loaded.get((source, variant))
    if known is not None:
        return known

    def load(path: str) -> Library:
        return Library(path, identifier(interface.name), interface.arrays, variant.threads)

    made = cache.library_of(source, text, variant, load)
    with _loading.taken():
        while MOST_LIBRARIES <= len(_loaded):
            del _loaded[next(iter(_loaded))]
        return _loaded.setdefault((source, variant), made)


class Compiled:
    """A program, its C text written, built and loaded when first needed; safe to use from several threads."""

    def __init__(
        self, interface: Interface, text: Callable[[], str], source: str, *, sanitize: bool = False
    ) -> None:
        """Nothing is compiled yet.

        Args:
            interface: how it is called.
            text: writes the C text; not called where the cache knows what that gave for ``source``.
            source: everything that the text follows from.
            sanitize: for tests: compiled with checks of every access.
        """
        self.interface = interface
        self.spaces: list[Any] = []
        self._text = text
        self._source = source
        self._sanitize = sanitize
        self._turn = Turn()
        self._libraries: dict[bool, Library] = {}

    def library(self, threads: bool) -> Library:
        """The serial or the threaded library.

        Raises:
            ToolError: it cannot be built or loaded.
        """
        known = self._libraries.get(threads)
        if known is None:
            with self._turn.taken():
                known = self._libraries.get(threads)
                if known is None:
                    variant = Variant(threads, self._sanitize)
                    known = open_library(self.interface, self._text, self._source, variant)
                    self._libraries[threads] = known
        return known

    def plan(
        self, extents: Sequence[int], outputs: Sequence[Output] = (), names: Names = ((), ())
    ) -> Plan:
        """Everything about a call that depends on the extents only (one per size of the program).

        ``outputs`` is for plans that make their own result arrays, ``names`` (of the inputs, of the outputs) for
        whoever checks arrays against a plan.
        """
        return Plan(self, extents, outputs, names)

    def call(
        self,
        arrays: Sequence[Array],
        outs: Sequence[Array],
        extents: Sequence[int],
        threads: int = 1,
    ) -> None:
        """Run on contiguous, aligned arrays of the right types and shapes, which the caller has checked.

        Raises:
            DataError: E0709 (overlap), E0713 (no memory). ToolError: it cannot be built.
        """
        self.plan(extents).run(arrays, outs, threads)

    def take_space(self, count: int) -> Any:
        """A workspace of at least ``count`` bytes, aligned to a cache line.

        Raises:
            DataError: E0713 (no memory).
        """
        if not count:
            return NO_SPACE
        try:
            space = self.spaces.pop()
        except IndexError:
            return new_space(count)
        return space if count <= len(space) else new_space(count)

    def give_back(self, space: Any) -> None:
        """Keep a workspace for the next call, unless there are many, or it is very large."""
        if space is not NO_SPACE and len(self.spaces) < MOST_SPACES and len(space) <= LARGEST_KEPT:
            self.spaces.append(space)

    def iterations(self, extents: Sequence[int]) -> int:
        """How many iterations of innermost loops a call makes, at most; slow ones count more, those of tiles less."""
        total = 0.0
        for weight, nest in self.interface.nests:
            product = weight
            for size in nest:
                product *= extents[size]
            total += product
        return int(total)


class Plan:
    """One size of a program, prepared: its sizes as C reads them, its workspace, its outputs."""

    __slots__ = (
        "_brief_from",
        "_crews",
        "_kept",
        "_library",
        "_sizes",
        "_work",
        "compiled",
        "fresh",
        "into",
        "names",
        "outputs",
    )

    def __init__(
        self,
        compiled: Compiled,
        extents: Sequence[int],
        outputs: Sequence[Output],
        names: Names,
    ) -> None:
        run_time = [extents[n] for n in compiled.interface.arguments]
        self._library = compiled.library(threads=False)
        self._kept = np.array(run_time or [0], np.int64)
        self._sizes = argument(self._kept)
        self._work = int(self._library.work(self._sizes))
        if LARGEST_SPACE < self._work:
            raise too_large("the workspace", self._work)
        self._brief_from = MOST_THREADS + 1 if LONG <= compiled.iterations(extents) else 1
        self.outputs = tuple(outputs)
        self.names = names
        self.compiled = compiled
        self.fresh = self._quick()
        self.into = self._quick_into()
        self._crews: dict[int, Callable[[Sequence[Array], Any], Any]] = {}

    def _quick(self) -> Callable[[Sequence[Array]], Any]:
        """``fresh``: run into new arrays; the one output, or a tuple of them.

        This is the path of every short call, so whatever can be looked up before is. A call of one output and no
        workspace is most calls, and has a function of its own.
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
        """``into``: run serially into a given array, the one output; whatever is wrong with it, ``call`` tells.

        The compiled program itself refuses arrays that overlap, before it writes.
        """
        if self._is_long(1) or len(self.outputs) != 1:
            return self._into
        return self._into_of(self._library.function, self._work, 1)

    def crew(self, threads: int) -> Callable[[Sequence[Array], Any], Any] | None:
        """``into`` with so many threads (2 or more, as far as there are any); None for a call that takes long.

        Raises:
            ToolError: the threaded library cannot be built.
        """
        known = self._crews.get(threads)
        if known is not None or self._is_long(threads) or len(self.outputs) != 1 or is_forked():
            return None if is_forked() else known
        library = self.compiled.library(threads=True)
        set_threads, get_threads = library.set_threads, library.get_threads
        if set_threads is None or get_threads is None:
            return None
        count, function = min(threads, MOST_THREADS), library.function

        def run(*arguments: Any) -> int:
            before = get_threads()  # of the calling thread, which others may care about
            if before == count:
                return int(function(*arguments))
            set_threads(count)
            try:
                return int(function(*arguments))
            finally:
                set_threads(before)

        made = self._into_of(run, int(library.work(self._sizes)), threads)
        self._crews[threads] = made
        return made

    def _into_of(
        self, function: Callable[..., int], count: int, threads: int
    ) -> Callable[[Sequence[Array], Any], Any]:
        """``into`` by a compiled function that needs ``count`` bytes of workspace."""
        sizes = self._sizes
        take_space, give_back = self.compiled.take_space, self.compiled.give_back
        ((shape, dtype),) = self.outputs

        def into(arrays: Sequence[Array], out: Any) -> Any:
            if (
                type(out) is not np.ndarray
                or out.shape != shape
                or out.dtype != dtype
                or out.flags.num & WRITABLE != WRITABLE
            ):
                return self.call(arrays, arrays, out, threads)
            space = take_space(count) if count else NO_SPACE
            status = function(sizes, *map(argument, arrays), argument(out), space)
            if count:
                give_back(space)
            return self.call(arrays, arrays, out, threads) if status else out

        return into

    def _into(self, arrays: Sequence[Array], out: Any) -> Any:
        return self.call(arrays, arrays, out, 1)

    def _new(self, arrays: Sequence[Array]) -> Any:
        return self.call(arrays, arrays, None, 1)

    def call(
        self, given: Sequence[Array], plain: Sequence[Array], out: object, threads: int
    ) -> Any:
        """Run on ``plain``, the contiguous form of ``given``, as ``Component.__call__`` is asked to.

        Raises:
            DataError: the outputs or the number of threads, and those of ``run``.
        """
        check_threads(threads)
        outs = (
            self._new_outs() if out is None else checked_outs(out, self.names, self.outputs, given)
        )
        self.run(plain, outs, threads)
        return result_of(outs, out)

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
        threads = 1 if is_forked() else min(threads, MOST_THREADS)
        library = self.compiled.library(threads=1 < threads)
        arguments = [argument(array) for array in (*arrays, *outs)]
        if self._is_long(threads) and hears_signals():
            status = self._run_long(library, arguments, threads)
        else:
            status = self._with_threads(library, arguments, threads)
        if status:
            raise failure(status)

    def _run_long(self, library: Library, arguments: list[Any], threads: int) -> int:
        """Run so that it can be stopped, and see whether that was needed."""
        from ilang.codegen.runtime.stopping import stopping

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
        library: Library,
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
        self, library: Library, arguments: list[Any], stop: tuple[Stopping, Any] | None
    ) -> int:
        """Call with a workspace of the size that this library asks for."""
        count = self._work if library is self._library else int(library.work(self._sizes))
        space = self.compiled.take_space(count)
        try:
            if stop is None:
                return int(library.function(self._sizes, *arguments, space))
            stopper, handle = stop
            return int(stopper.run(handle, library.function, self._sizes, *arguments, space))
        finally:
            self.compiled.give_back(space)


def new_space(count: int) -> Any:
    """``count`` bytes, aligned, as an argument of a call. Raises DataError (E0713) if there is no memory."""
    try:
        bytes_ = np.empty(count + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError):
        raise too_large("the workspace", count) from None
    start = -int(bytes_.ctypes.data) % ALIGNMENT
    return argument(bytes_[start : start + count])


NO_SPACE: Final = new_space(ALIGNMENT)
"""The workspace of programs that need none."""


def failure(status: int) -> Error:
    """The error for what a generated function returned."""
    match status:
        case 2:
            return DataError(
                "E0709", "an output overlaps another array", help="pass an output of its own memory"
            )
        case 3:
            return too_large("an array of these extents")
        case _:
            return InternalError("E9910", f"a compiled program returned status {status}")


def bytes_of(shape: Sequence[int], dtype: np.dtype[Any]) -> int:
    """The bytes of an array."""
    return math.prod(shape) * dtype.itemsize


def too_large(what: str, count: int | None = None) -> DataError:
    """The error for what does not fit into memory: so many bytes, where that is known."""
    if count is None:
        size = ""
    elif count <= LARGEST_SPACE:
        size = f": {count:,} bytes"
    else:
        size = ": more than 2^62 bytes"
    message = f"there is not enough memory for {what}{size}"
    return DataError("E0713", message, help="use smaller arrays, or more memory")
