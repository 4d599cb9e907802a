"""From C text to running code: build through the cache, load, call.

A call releases Python's lock. Programs run serially unless more threads are asked for; the library with OpenMP is
built then. In a forked child every call is serial (an OpenMP runtime does not survive a fork; results are the same).

``_cffi_backend`` is what cffi itself stands on. Its function types are made here by hand, since cffi's own reader of
C declarations costs more to import than all of this module.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import _cffi_backend as backend
import numpy as np
import numpy.typing as npt

from ilang.codegen import cache
from ilang.codegen.arguments import Output, check_threads, checked_outs, result_of
from ilang.codegen.targets.cfamily import identifier
from ilang.codegen.toolchain import Variant
from ilang.core.diagnostic import DataError, Error, InternalError
from ilang.core.ir.kernel import For, If, Program, Statement

Array = npt.NDArray[Any]
Names = tuple[Sequence[str], Sequence[str]]
T = TypeVar("T")

LONG = 2**26
"""Iterations from which a call runs in a thread of its own, so that the main thread sees Ctrl-C at once."""

MOST_THREADS = min(64, os.cpu_count() or 1)
MOST_SPACES = 4
LARGEST_KEPT = 64 * 1024 * 1024
"""Workspaces up to this many bytes are kept for the next call, a few per program."""

ALIGNMENT = 64

_VOID_POINTER = backend.new_pointer_type(backend.new_void_type())
_INT = backend.new_primitive_type("int")
_SIZE_T = backend.new_primitive_type("size_t")
_WORK = backend.new_function_type((_VOID_POINTER,), _SIZE_T, False)
_SET_THREADS = backend.new_function_type((_INT,), backend.new_void_type(), False)
_GET_THREADS = backend.new_function_type((), _INT, False)

CHARS: Final = backend.new_array_type(
    backend.new_pointer_type(backend.new_primitive_type("char")), None
)
argument: Final = functools.partial(backend.from_buffer, CHARS)
"""What a function is called with for a contiguous array: points to its elements, and keeps it alive."""

_HOME = os.getpid()


def is_forked() -> bool:
    """Whether this process was forked from the one that loaded this module."""
    return os.getpid() != _HOME


class Turn:
    """A lock that a forked child finds open, whoever held it in the parent."""

    def __init__(self) -> None:
        self._owner, self._lock = os.getpid(), threading.RLock()

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the lock."""
        if self._owner != os.getpid():
            self._owner, self._lock = os.getpid(), threading.RLock()
        with self._lock:
            yield


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
        self.set_threads, self.get_threads = None, None
        if threads:
            try:
                self.set_threads = self._library.load_function(_SET_THREADS, "omp_set_num_threads")
                self.get_threads = self._library.load_function(_GET_THREADS, "omp_get_max_threads")
            except AttributeError:  # compiled without OpenMP: the compiler has none
                pass


_loaded: weakref.WeakValueDictionary[tuple[str, Variant], Library] = weakref.WeakValueDictionary()
"""Libraries in use, by text and variant: the same program written twice is loaded once."""


def open_library(program: Program, text: str, variant: Variant) -> Library:
    """The library of a program's C text, compiled if it is not in the cache.

    Raises:
        ToolError: whatever can go wrong with the compiler and its folders.
    """
    known = _loaded.get((text, variant))
    if known is None:
        name, count = identifier(program.name), len(program.inputs) + len(program.outputs)
        known = cache.library(
            text, variant, lambda path: Library(path, name, count, variant.threads)
        )
        _loaded[text, variant] = known
    return known


class Compiled:
    """A program with its C text, built and loaded when first needed; safe to use from several threads."""

    def __init__(self, program: Program, text: str, *, sanitize: bool = False) -> None:
        """Nothing is compiled yet. ``sanitize`` (for tests) compiles with checks of every access."""
        self.program = program
        self.text = text
        self.spaces: list[Any] = []
        self._sanitize = sanitize
        self._turn = Turn()
        self._libraries: dict[bool, Library] = {}
        self._nests = _nests(program)

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
                    known = open_library(self.program, self.text, variant)
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

    def iterations(self, extents: Sequence[int]) -> int:
        """How many iterations of innermost loops a call makes, about."""
        total = 0
        for nest in self._nests:
            product = 1
            for size in nest:
                product *= extents[size]
            total += product
        return total


class Plan:
    """One size of a program, prepared: its sizes as C reads them, its workspace, its outputs."""

    __slots__ = (
        "_function",
        "_kept",
        "_long",
        "_sizes",
        "_spaces",
        "_work",
        "compiled",
        "fresh",
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
        sizes = compiled.program.sizes
        run_time = [extents[n] for n, size in enumerate(sizes) if size.is_argument()]
        library = compiled.library(threads=False)
        self._kept = np.array(run_time or [0], np.int64)
        self._sizes = argument(self._kept)
        self._work = int(library.work(self._sizes))
        if self._work >= 2 * (2**62 - 1):  # SIZE_MAX, or close to it
            raise too_large("the workspace")
        self._function = library.function
        self._long = LONG <= compiled.iterations(extents)
        self.outputs = tuple(outputs)
        self.names = names
        self._spaces = compiled.spaces
        self.compiled = compiled
        self.fresh = self._quick()

    def _quick(self) -> Callable[[Sequence[Array]], Any]:
        """``fresh``: run into new arrays; the one output, or a tuple of them.

        This is the path of every short call, so whatever can be looked up before is. A call of one output and no
        workspace is most calls, and has a function of its own.
        """
        function, sizes, empty = self._function, self._sizes, np.empty
        if self._long:
            return self._new
        if self._work or len(self.outputs) != 1:
            return self._general()
        ((shape, dtype),) = self.outputs

        def fresh(arrays: Sequence[Array]) -> Array:
            try:
                out = empty(shape, dtype)
            except (MemoryError, ValueError):
                raise too_large("the result") from None
            status = function(sizes, *map(argument, arrays), argument(out), NO_SPACE)
            if status:
                raise failure(status)
            return out

        return fresh

    def _general(self) -> Callable[[Sequence[Array]], Any]:
        """``fresh`` with workspace, or with several outputs."""
        function, sizes, one = self._function, self._sizes, len(self.outputs) == 1

        def fresh(arrays: Sequence[Array]) -> Any:
            outs = self._new_outs()
            space = self._space()
            status = function(sizes, *map(argument, arrays), *map(argument, outs), space)
            self._give_back(space)
            if status:
                raise failure(status)
            return outs[0] if one else tuple(outs)

        return fresh

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
            raise too_large("the result") from None

    def run(self, arrays: Sequence[Array], outs: Sequence[Array], threads: int = 1) -> None:
        """Run into given arrays, with so many threads; Ctrl-C ends the wait at once.

        Raises:
            DataError: E0709, E0713. ToolError: the threaded library cannot be built.
        """
        threads = 1 if is_forked() else min(threads, MOST_THREADS)
        library = self.compiled.library(threads=1 < threads)
        arguments = [argument(array) for array in (*arrays, *outs)]

        def work() -> int:
            space = self._space()
            try:
                return _call(library, threads, [self._sizes, *arguments, space])
            finally:
                self._give_back(space)

        status = interruptible(work) if self._long else work()
        if status:
            raise failure(status)

    def _space(self) -> Any:
        """A workspace of at least the bytes needed, aligned to a cache line."""
        if not self._work:
            return NO_SPACE
        try:
            space = self._spaces.pop()
            if self._work <= len(space):
                return space
        except IndexError:
            pass
        return new_space(self._work)

    def _give_back(self, space: Any) -> None:
        if self._work and len(self._spaces) < MOST_SPACES and len(space) <= LARGEST_KEPT:
            self._spaces.append(space)


def new_space(count: int) -> Any:
    """``count`` bytes, aligned, as an argument of a call. Raises DataError (E0713) if there is no memory."""
    try:
        bytes_ = np.empty(count + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError):
        raise too_large("the workspace") from None
    start = -int(bytes_.ctypes.data) % ALIGNMENT
    return argument(bytes_[start : start + count])


NO_SPACE: Final = new_space(ALIGNMENT)
"""The workspace of programs that need none."""


def _call(library: Library, threads: int, arguments: list[Any]) -> int:
    """Call with a number of threads; the calling thread's own setting is as before afterwards."""
    if library.set_threads is None or library.get_threads is None:
        return int(library.function(*arguments))
    before = library.get_threads()
    library.set_threads(threads)
    try:
        return int(library.function(*arguments))
    finally:
        library.set_threads(before)


def interruptible(work: Callable[[], T]) -> T:
    """The result of ``work``, done by another thread where this is the main one, so that a signal ends the wait.

    Interrupted work goes on unseen until it is done; what it writes to is not to be used before.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def carry() -> None:
        try:
            results.append(work())
        except BaseException as error:  # handed to the thread that waits
            errors.append(error)
        finally:
            done.set()

    try:
        threading.Thread(target=carry, name="ilang", daemon=True).start()
    except RuntimeError:  # no more threads: do without
        return work()
    done.wait()
    if errors:
        raise errors[0]
    return results[0]


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


def too_large(what: str) -> DataError:
    """The error for what does not fit into memory."""
    return DataError(
        "E0713", f"there is not enough memory for {what}", help="use smaller arrays, or more memory"
    )


def _nests(program: Program) -> list[tuple[int, ...]]:
    """The size numbers around each innermost loop of a program."""
    found: list[tuple[int, ...]] = []
    stack: list[tuple[Statement, tuple[int, ...]]] = [
        (statement, ()) for kernel in program.kernels for statement in kernel.body
    ]
    while stack:
        statement, around = stack.pop()
        if isinstance(statement, For | If):
            here = (*around, statement.size) if isinstance(statement, For) else around
            inner = [s for s in statement.body if isinstance(s, For | If)]
            if not inner:
                found.append(here)
            stack.extend((s, here) for s in inner)
    return found
