"""A call of a host program at given sizes, as data: where arrays stand, and what is enqueued, in order.

The text of ``cuda_entry.py`` does the same when it runs. Where kernels alone are compiled, a runtime does what this
says by way of NVIDIA's driver; tests compare the two, launch by launch.

Example: `(+ij~i & I) >> i+ij~ij` with i = 3, j = 5
    bytes 512: 12 of t1, then 1 to align it; f_k0<int> in 1 block of 256 takes 3, 5, in0, t1; f_k1<int> ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from ilang.codegen.targets.identifiers import function_identifier
from ilang.codegen.targets.library import PREFIX
from ilang.codegen.targets.workspace import MARK, DoesNotFit, extents_after, workspace_of
from ilang.core.ir.host import Grid, Host, Launch, Look
from ilang.core.ir.ids import BufferId
from ilang.core.ir.kernel import Kernel
from ilang.core.record import record

NARROW, WIDE = "int", "int64_t"
"""The types of indices."""


WORKSPACE, NUMBER = -1, -2
"""The bases of addresses in the workspace, and of numbers, which are no addresses."""

Value = tuple[int, int]
"""An argument of a kernel: from where on, the number of an argument of the call or one of those, and how many bytes."""

NULL: Value = NUMBER, 0


@record
class KernelStart:
    """A kernel starts on a grid of blocks."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    values: tuple[Value, ...]


@record
class DeviceCall:
    """A call at some sizes.

    Fields:
        total: bytes of the workspace, which begins at the first multiple of ``alignment`` in them.
        alignment: of what stands in it.
        table: the arguments in the order in which they are checked, each with its bytes.
        read: how many of these are read alone.
        marks: where the marks are in the workspace, and their bytes, which become 0 first.
        starts: what is enqueued then.
        outside: where in the workspace it is told at last whether an index is out of range; None where none is read.
    """

    total: int
    alignment: int
    table: tuple[tuple[int, int], ...]
    read: int
    marks: tuple[int, int]
    starts: tuple[KernelStart, ...]
    outside: int | None

    def status(self, addresses: Sequence[int], work: int) -> int:
        """The status of C for arguments that stand there: 1 where one is missing, 2 where what is written overlaps."""
        if not work and self.total:
            return 1
        stretches: list[tuple[int, int]] = []
        for number, (argument, count) in enumerate(self.table):
            start = addresses[argument]
            if not start and count:
                return 1
            others = stretches if self.read <= number else []
            if any(_overlap((start, count), each) for each in [(work, self.total), *others]):
                return 2
            stretches.append((start, count))
        return 0

    def base(self, work: int) -> int:
        """The beginning of what is in a workspace."""
        return work + (self.alignment - work % self.alignment) % self.alignment


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two stretches of memory, each a start and so many bytes, share a byte."""
    return 0 < a[1] and 0 < b[1] and a[0] < b[0] + b[1] and b[0] < a[0] + a[1]


def call_of(host: Host, sizes: Sequence[int]) -> DeviceCall | None:
    """A call with the sizes that a caller gives, in order; None where an extent does not fit."""
    numbers = [n for n, size in enumerate(host.program.sizes) if size.is_argument()]
    given = dict(zip(numbers, sizes, strict=True))
    try:
        return _Caller(host, given).call()
    except DoesNotFit:
        return None


def kernels_of(host: Host) -> Iterator[str]:
    """The kernels that calls start, as C++ names them."""
    for launch in host.kernels():
        kernel = host.program.kernels[launch.kernel]
        yield from (
            _name(host, kernel, index) for index in ((NARROW, WIDE) if kernel.spans else ("",))
        )
    arrays = (each for look in host.looks() for each in look.arrays)
    yield from dict.fromkeys(_looker(host, *each) for each in arrays)


def _name(host: Host, kernel: Kernel, index: str) -> str:
    """A kernel, with the type of its indices where it has two forms."""
    name = f"{function_identifier(host.program.name)}_{kernel.name}"
    return f"{name}<{index}>" if kernel.spans else name


def _looker(host: Host, array: BufferId, size: int | None) -> str:
    """The kernel that looks at the elements of an array."""
    looked = "infinite" if size is None else "outside"
    return f"{PREFIX}{looked}_{host.program.buffers[array].dtype}"


class _Caller:
    """The maker of a call, step by step."""

    def __init__(self, host: Host, given: Mapping[int, int]) -> None:
        self.host = host
        self.program = host.program
        self.given = given
        device = host.program.machine.gpu()
        self.device = device
        self.arguments = {each: n for n, each in enumerate(host.program.arguments())}
        self.extents: dict[int, int] = {}
        self.layout = workspace_of(host, extents_after(host.checks, host.program, given))

    def call(self) -> DeviceCall:
        """The call. Raises DoesNotFit."""
        host, layout, table = self.host, self.layout, self.host.in_table()
        counts = tuple((self.arguments[n], c) for n, c in zip(table, layout.counts, strict=True))
        self.extents = extents_after(host.sizes, host.program, self.given)
        read = sum(self.program.buffers[n].role == "input" for n in table)
        last = host.outside()
        return DeviceCall(
            layout.total,
            self.program.machine.memory.line_bytes,
            counts,
            read,
            (layout.marks, host.marks * MARK),
            tuple(self._starts()),
            None if last is None else self._mark(last)[1],
        )

    def _place(self, number: BufferId) -> Value:
        owner = self.program.owner(number)
        if owner in self.arguments:
            return self.arguments[owner], 0
        buffer = self.program.buffers[owner]
        whole = buffer.whole()
        if whole is not None and self.extents[buffer.dims[0]] == 1:
            return self._place(whole)
        return WORKSPACE, self.layout.at[owner]

    def _mark(self, number: int) -> Value:
        return WORKSPACE, self.layout.marks + MARK * number

    def _starts(self) -> Iterator[KernelStart]:
        for each in self.host.operations:
            yield from self._look(each) if isinstance(each, Look) else self._launch(each)

    def _look(self, look: Look) -> Iterator[KernelStart]:
        before = NULL if look.before is None else self._mark(look.before)
        for number, size in look.arrays:
            count = prod(self.extents[n] for n in self.program.buffers[number].dims)
            if count or (size is not None and before != NULL):
                extent = [] if size is None else [(NUMBER, self.extents[size])]
                marks = (before, self._mark(look.mark))
                values = (self._place(number), (NUMBER, count), *extent, *marks)
                blocks = max(1, min(_parts(count, 256), 1024))  # as many as in headers/cuda.cuh
                name = _looker(self.host, number, size)
                yield KernelStart(name, (blocks, 1, 1), (256, 1, 1), values)

    def _launch(self, launch: Launch) -> Iterator[KernelStart]:
        """The launch of a kernel, unless it has nothing to do."""
        grid, kernel = launch.grid, self.program.kernels[launch.kernel]
        assert grid is not None
        for extent, few, many in launch.every_condition():
            count = extent.value(self.extents)
            if not few < count <= (count if many is None else many):
                return
        values: list[Value] = [(NUMBER, self.extents[n]) for n in launch.sizes]
        values += map(self._place, launch.buffers)
        if launch.scratch:
            values += [(WORKSPACE, self.layout.scratch), (NUMBER, self.layout.scratch_bytes)]
        values += [self._mark(n) for n in (launch.outside, launch.infinite) if n is not None]
        index = NARROW if kernel.spans is not None and self._is_narrow(kernel.spans) else WIDE
        blocks, block = self._shape(grid, launch.scratch)
        yield KernelStart(_name(self.host, kernel, index), blocks, block, tuple(values))

    def _is_narrow(self, spans: Sequence[Sequence[int]]) -> bool:
        """Whether products of extents are all so small that indices need no more than 32 bits."""
        most = self.device.narrow_elements
        extents = [[max(1, self.extents[n]) for n in span] for span in spans]
        return all(prod(each) < most for each in extents)

    def _shape(
        self, grid: Grid, scratch: bool
    ) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """The blocks of a launch, and the threads of each."""
        threads, most = grid.threads, grid.most_blocks
        if scratch and grid.sizes:
            threads = min(self.layout.workers, threads)
            most = self.layout.workers // threads
        iterations = prod(self.extents[n] for n in grid.sizes)
        first = min(_parts(iterations, grid.each or threads), most) if grid.sizes else 1
        y, z = (1 if n is None else min(self.extents[n], grid.most_across) for n in grid.across)
        shape = (*(grid.shape or (threads,)), 1, 1)
        return (first, y, z), (shape[0], shape[1], shape[2])


def _parts(count: int, each: int) -> int:
    return -(-count // each)
