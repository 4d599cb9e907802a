"""From C text to running code: build through the cache, load, call.

A call releases Python's lock. Programs run serially unless more threads are asked for; the library with OpenMP is
built then. In a forked child every call is serial (an OpenMP runtime does not survive a fork; results are the same).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ilang.codegen.call.arguments import Output
from ilang.codegen.call.memory import NO_SPACE, new_space
from ilang.codegen.call.native import NO_POINTER, Native
from ilang.codegen.call.plan import CallPlan, Names
from ilang.codegen.compile import cache
from ilang.codegen.compile.toolchain import OPENMP, Recipe, library_recipe
from ilang.codegen.system.concurrency import ForkSafeLock, kept
from ilang.codegen.targets.identifiers import function_identifier
from ilang.core.cost import of_assignments
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import Machine
from ilang.core.record import record

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array

MOST_SPACES = 4
LARGEST_KEPT = 64 * 1024 * 1024
"""Workspaces up to this many bytes are kept for the next call, a few per program."""

PAUSE_SOFT = 1
"""The extent of a pause of OpenMP: its threads are given up, nothing else."""


class LoadedLibrary:
    """The functions of one loaded library."""

    def __init__(self, path: str, name: str, arrays: int, threads: bool) -> None:
        """Load ``path``, whose function ``name`` takes so many arrays. Raises OSError where that fails."""
        # The threads of the OpenMP runtime outlive the program that woke them.
        self._library = library = Native(path, stays=threads)
        self.function = library.required(name, "P" * (arrays + 2))
        self.work = library.required(f"{name}_work", "P", "size")
        self.set_threads, self.get_threads, self._pause, self._let_stop = None, None, None, None
        if (
            threads
        ):  # a compiler may be without OpenMP, or have it before version 5, which cannot pause
            self.set_threads = library.optional("omp_set_num_threads", "i", "nothing")
            self.get_threads = library.optional("omp_get_max_threads", "")
            self._pause = library.optional("omp_pause_resource_all", "i")
            self._let_stop = library.optional(f"{name}_stop", "P", "nothing")

    def let_stop(self, handle: Any) -> None:
        """Say by what handle the parallel loops of the calling thread's calls can be stopped; None for by none."""
        if self._let_stop is not None:
            self._let_stop(NO_POINTER if handle is None else handle)

    def dismiss(self) -> None:
        """End the threads that OpenMP keeps for the calling thread.

        The kept threads of several callers are more than there are processors: then all of them go to sleep at once
        where they would wait for the next loop, and waking one takes as long as a short call.
        """
        if self._pause is not None:
            self._pause(PAUSE_SOFT)


MOST_LIBRARIES = 256

_loaded: dict[tuple[str, Recipe], LoadedLibrary] = {}
"""The libraries loaded last, by source and recipe: a program that is written again is there at once."""


@record
class Interface:
    """The interface of a program to its calls, whatever its loops are.

    ``arrays`` counts inputs and outputs, ``arguments`` has the numbers of the sizes that a caller gives, ``nests``
    what an iteration of each expression counts, and the size numbers of its axes. No more than ``threads`` share a
    loop, and none that counts less than ``enough_work``.
    """

    name: str
    arrays: int
    arguments: tuple[int, ...]
    nests: tuple[tuple[float, tuple[int, ...]], ...]
    threads: int
    enough_work: int


def interface_of(shaped: Shaped, machine: Machine) -> Interface:
    """The interface of a program for a machine; nothing of it is decided by how the program is lowered."""
    return Interface(
        shaped.name,
        len(shaped.inputs) + len(shaped.outputs),
        tuple(n for n, size in enumerate(shaped.sizes) if size.is_argument()),
        tuple((work.time, work.sizes) for work in of_assignments(shaped, machine).values()),
        machine.threads.most,
        machine.threads.enough_work,
    )


def open_library(
    interface: Interface, text: Callable[[], str], source: str, recipe: Recipe
) -> LoadedLibrary:
    """The library of a program's C text, compiled if it is not in the cache.

    ``source`` is what the text follows from, or the text itself.

    Raises:
        ToolError: whatever can go wrong with the compiler and its folders.
    """

    def load(path: str) -> LoadedLibrary:
        return LoadedLibrary(
            path, function_identifier(interface.name), interface.arrays, OPENMP in recipe.flags
        )

    def library() -> LoadedLibrary:
        return cache.library_of(source, text, recipe, load)

    return kept(_loaded, (source, recipe), library, MOST_LIBRARIES)


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
        self._lock = ForkSafeLock()
        self._libraries: dict[bool, LoadedLibrary] = {}

    def library(self, threads: bool) -> LoadedLibrary:
        """The serial or the threaded library.

        Raises:
            ToolError: it cannot be built or loaded.
        """

        def opened() -> LoadedLibrary:
            recipe = library_recipe(threads, self._sanitize)
            return open_library(self.interface, self._text, self._source, recipe)

        return self._lock.kept(self._libraries, threads, opened)

    def plan(
        self, extents: Sequence[int], outputs: Sequence[Output] = (), names: Names = ((), ())
    ) -> CallPlan:
        """Everything about a call that depends on the extents only (one per size of the program).

        ``outputs`` is for plans that make their own result arrays, ``names`` (of the inputs, of the outputs) for
        whoever checks arrays against a plan.
        """
        return CallPlan(self, extents, outputs, names)

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

    def works(self, extents: Sequence[int]) -> Iterator[float]:
        """The time of each expression of a call, in elements that a thread reads; ``core/cost.py`` counts it."""
        for weight, nest in self.interface.nests:
            yield weight * prod(extents[size] for size in nest)
