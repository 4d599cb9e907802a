"""The host program: what runs around the kernels of a program, as data. A target prints it, and decides nothing.

Produced by ``lower/host.py`` from ``ir/kernel.py``, consumed by ``codegen/targets``. A target prints three functions:
the layout, which ``checks`` sizes and measures every array; the bytes of the workspace; and the program itself, which
checks its arguments against the layout, computes ``sizes``, and launches the kernels in order.

Invariants:
    - A step reads only sizes that are fixed or that steps before it give, and gives each size once. ``checks`` gives
      every size of what is measured, ``sizes`` every size that a launch takes.
    - Each input and output is one argument, whose buffer is ``inout`` exactly if it is both.
    - A temporary has a place in the workspace exactly if a launch takes it; a private buffer is scratch of the one
      kernel that it belongs to.
    - A launch writes no argument that is an ``input``. A temporary is written by a launch before another one reads it,
      and every ``output`` that has elements is written.
    - What is looked at is written before, and no more until the last launch that is told has run. A mark is that of one
      look.
    - A launch gives what the function of the kernel takes, where the kernel says that (``outline``).
"""

from __future__ import annotations

from collections.abc import Iterator

from ilang.core.calculus.extent import Extent, product, size
from ilang.core.ir.gpu import Over
from ilang.core.ir.ids import BufferId
from ilang.core.ir.kernel import Count, Program
from ilang.core.ir.shaped import Derivation, Reach
from ilang.core.record import record

LONG = 64
"""Launches of a long host program."""

Step = int | Derivation | Count | Reach
"""A step: the number of a size that the caller gives, so small that what a ``Derivation`` among the same steps says of
it cannot overflow. A ``Count`` is of a size that follows from others, where that has been checked; reaches hold."""


Condition = tuple[Extent, int, int | None]
"""Holds where an extent is more than the first number, and no more than the second one, if there is one."""


@record
class Grid:
    """The blocks of a launch, of ``threads`` each: as many as give each iteration of loops of some ``sizes`` a worker.

    ``over`` says who the workers are; there are ``most_blocks`` at most, and no more than have scratch storage. A block
    has workers for so many iterations, ``each``; with None for as many as it has threads, which scratch storage limits.
    ``across`` are the sizes of the dimensions y and z of the grid, of ``most_across`` blocks at most, ``shape`` the
    dimensions of a block, where there are any. A worker has as many ``vector`` at a time.
    """

    threads: int
    sizes: tuple[int, ...]
    over: Over
    most_blocks: int
    each: int | None
    across: tuple[int | None, int | None] = (None, None)
    most_across: int = 1
    shape: tuple[int, ...] = ()
    vector: int = 1


@record
class Look:
    """The elements of some arrays are looked at: whether each is an index, at least 0 and below the extent of a size.

    Without sizes, of arrays of floats: whether each is finite. On a device mark number ``mark`` tells later kernels of
    one that is not. Kernels do nothing after an index out of range, of which the mark ``before`` has told so far.
    """

    arrays: tuple[tuple[BufferId, int | None], ...]
    mark: int
    before: int | None

    def is_of_indices(self) -> bool:
        """Whether indices are looked at, and not floats."""
        return all(size is not None for _, size in self.arrays)


@record
class Launch:
    """A call of a kernel: the run-time sizes and the buffers that it takes, in order, and which of these it writes.

    With ``scratch`` it takes scratch storage, with ``divided`` so that its threads have parts of their own. ``grid``
    says how many threads of a GPU run it. A launch is made where all its ``conditions`` hold. The kernel is told by the
    mark ``outside`` of indices out of range, by ``infinite`` of elements that are not finite.
    """

    kernel: int
    sizes: tuple[int, ...]
    buffers: tuple[BufferId, ...]
    writes: frozenset[BufferId]
    scratch: bool
    divided: bool
    grid: Grid | None = None
    conditions: tuple[Condition, ...] = ()
    outside: int | None = None
    infinite: int | None = None

    def every_condition(self) -> Iterator[Condition]:
        """The conditions under which there is a launch: every loop that the grid shares out has an iteration, too."""
        if self.grid is not None:
            across = (size(n) for n in self.grid.across if n is not None)
            yield from ((count, 0, None) for count in (product(self.grid.sizes), *across))
        yield from self.conditions


@record
class Host:
    """The host program of ``program``, whose kernels it launches.

    The workspace has ``temporaries`` one after the other, each at a multiple of the machine's lines, so many ``marks``,
    then scratch storage, once a thread. ``scratch`` has the private buffers of each kernel that has any; scratch
    storage has room for those of the kernel that needs most. As many threads have some as the machine allows, by their
    number and by what they take together, and one at least.
    """

    program: Program
    checks: tuple[Step, ...]
    temporaries: tuple[BufferId, ...]
    scratch: tuple[tuple[BufferId, ...], ...]
    marks: int
    sizes: tuple[Step, ...]
    operations: tuple[Look | Launch, ...]

    def has_workspace(self) -> bool:
        """Whether a call needs a workspace."""
        return bool(self.temporaries or self.scratch or self.marks)

    def is_long(self) -> bool:
        """Whether compilers would take long to optimise what is around so many launches."""
        return LONG <= len(self.launches())

    def launches(self) -> tuple[Launch, ...]:
        """The calls of kernels, in order."""
        return tuple(each for each in self.operations if isinstance(each, Launch))

    def looks(self) -> tuple[Look, ...]:
        """The looks at arrays, in order."""
        return tuple(each for each in self.operations if isinstance(each, Look))

    def outside(self) -> int | None:
        """The mark that tells at last whether an index is out of range; None where none is read."""
        return max((each.mark for each in self.looks() if each.is_of_indices()), default=None)

    def kernels(self) -> tuple[Launch, ...]:
        """The first launch of each kernel, in the order of the kernels."""
        first: dict[int, Launch] = {}
        for launch in self.launches():
            first.setdefault(launch.kernel, launch)
        return tuple(first.values())

    def in_table(self) -> tuple[BufferId, ...]:
        """The arguments in the order in which they are checked: those first that are read alone."""
        arguments, buffers = self.program.arguments(), self.program.buffers
        return tuple(sorted(arguments, key=lambda n: buffers[n].role != "input"))
