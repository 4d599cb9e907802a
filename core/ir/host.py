"""The host program: what runs around the kernels of a program, as data. A target prints it, and decides nothing.

Produced by ``lower/host.py`` from ``ir/kernel.py``, consumed by ``codegen/targets``. A target prints three functions:
the layout, which ``checks`` sizes and measures every array; the bytes of the workspace; and the program itself, which
checks its arguments against the layout, computes ``sizes``, and launches the kernels in order.

Invariants:
    - A step reads only sizes that are fixed or that steps before it give, and gives each size once. ``checks`` gives
      every size of what is measured, ``sizes`` every size that a launch takes.
    - Each input and output is one argument; it is ``inout`` exactly if it is both.
    - A temporary has a place in the workspace exactly if a launch takes it; a private buffer is scratch of the one
      kernel that it belongs to.
    - A launch writes no argument that is an ``input``. A temporary is written by a launch before another one reads it,
      and every ``output`` that has elements is written.
    - What is looked at before a launch is written before it, and no more until the last launch that is told has run.
    - A launch gives what the function of the kernel takes, where the kernel says that (``outline``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from ilang.core.ir.gpu import Over
from ilang.core.ir.ids import BufferId
from ilang.core.ir.kernel import Count, Program
from ilang.core.ir.shaped import Bound, Derivation, Reach
from ilang.core.record import record

Role = Literal["input", "output", "inout"]
"""The use of a caller's array: read, written, or read and written (updated in place)."""


@record
class Argument:
    """An array of the caller: a buffer, and what it is for."""

    buffer: BufferId
    role: Role


Step = int | Derivation | Count | Bound | Reach
"""A step: the number of a size that the caller gives, so small that what a ``Derivation`` among the same steps says of
it cannot overflow. A ``Count`` is of a size that follows from others, where that has been checked; bounds and reaches
hold."""


@record
class Layout:
    """The workspace: ``temporaries`` one after the other, then scratch storage, once for each thread.

    Each temporary stands at a multiple of ``alignment`` bytes. ``scratch`` has the private buffers of each kernel that
    has any; scratch storage has room for those of the kernel that needs most. As many threads have some as take
    ``most_scratch`` bytes together, ``most_threads`` at most and one at least.
    """

    alignment: int
    temporaries: tuple[BufferId, ...]
    scratch: tuple[tuple[BufferId, ...], ...]
    most_threads: int
    most_scratch: int

    def is_empty(self) -> bool:
        """Whether a call needs no workspace at all."""
        return not self.temporaries and not self.scratch


@record
class Grid:
    """The blocks of a launch, of ``threads`` each: as many as give each iteration of loops of some ``sizes`` a worker.

    ``over`` says who the workers are; there are ``most_blocks`` at most, and no more than have scratch storage. Where
    the loops have no iteration, nothing is launched. ``across`` are the sizes of the dimensions y and z of the grid,
    of ``most_across`` blocks at most, ``shape`` the dimensions of a block, where there are any. A worker has as many
    ``vector`` at a time.
    """

    threads: int
    sizes: tuple[int, ...]
    over: Over
    most_blocks: int
    across: tuple[int | None, int | None] = (None, None)
    most_across: int = 1
    shape: tuple[int, ...] = ()
    vector: int = 1

    def iterations(self, threads: int, warp: int) -> int:
        """The number of iterations that a block of so many threads has workers for, in warps of so many."""
        workers = {"grid": threads * self.vector, "warps": self.threads // warp}
        return workers.get(self.over, 1)


@record
class Ranges:
    """Every element of an array of integers is an index: at least 0, and below the extent of ``size``.

    The elements are checked before launch number ``launch``; of an array of the caller before the first one.
    """

    buffer: BufferId
    size: int
    launch: int


@record
class Finite:
    """Whether every element of some arrays of floats is finite: that is looked at before launch number ``launch``."""

    buffers: tuple[BufferId, ...]
    launch: int


@record
class Launch:
    """A call of a kernel: the run-time sizes and the buffers that it takes, in order, and which of these it writes.

    With ``scratch`` it takes scratch storage, with ``divided`` so that its threads have parts of their own. ``grid``
    says how many threads of a GPU run it. A launch that combines ``parts`` runs where that size is more than ``few``,
    at least 1, and no more than ``many``; none runs where one of the sizes that it ``needs`` is 0. The kernel is told
    whether the arrays of number ``finite`` are.
    """

    kernel: int
    sizes: tuple[int, ...]
    buffers: tuple[BufferId, ...]
    writes: frozenset[BufferId]
    scratch: bool
    divided: bool
    grid: Grid | None = None
    parts: int | None = None
    few: int = 1
    many: int | None = None
    finite: int | None = None
    needs: tuple[int, ...] = ()


Call = tuple[Sequence[Ranges], Sequence[tuple[int, Finite]], Launch]
"""The indices that are looked at, the arrays whose elements are, with their numbers, and then the launch."""


@record
class Host:
    """The host program of ``program``, whose kernels it launches.

    A host program that ``is_long`` has so many launches that compilers take long to optimise what is around kernels.
    """

    program: Program
    arguments: tuple[Argument, ...]
    checks: tuple[Step, ...]
    layout: Layout
    sizes: tuple[Step, ...]
    launches: tuple[Launch, ...]
    ranges: tuple[Ranges, ...] = ()
    finite: tuple[Finite, ...] = ()
    is_long: bool = False

    def groups(self) -> int:
        """The number of launches before which indices are looked at."""
        return len({each.launch for each in self.ranges})

    def calls(self) -> Iterator[Call]:
        """The launches in order, each after what is looked at before it."""
        for number, launch in enumerate(self.launches):
            yield (
                [each for each in self.ranges if each.launch == number],
                [(n, each) for n, each in enumerate(self.finite) if each.launch == number],
                launch,
            )

    def kernels(self) -> tuple[Launch, ...]:
        """The first launch of each kernel, in the order of the kernels."""
        first: dict[int, Launch] = {}
        for launch in self.launches:
            first.setdefault(launch.kernel, launch)
        return tuple(first.values())

    def in_table(self) -> tuple[Argument, ...]:
        """The arguments in the order in which they are checked: those first that are read alone."""
        written = tuple(a for a in self.arguments if a.role != "input")
        return (*(a for a in self.arguments if a.role == "input"), *written)
