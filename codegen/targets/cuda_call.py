"""A call of a host program at given sizes, as data: where arrays stand, and what is enqueued, in order.

The text of ``cuda_entry.py`` does the same when it runs. Where kernels alone are compiled, a runtime does what this
says by way of NVIDIA's driver; tests compare the two, launch by launch.

Example: `(+ij~i & I) >> i+ij~ij` with i = 3, j = 5
    bytes 512: 12 of t1, then 1 to align it; f_k0<int> in 1 block of 256 takes 3, 5, in0, t1; f_k1<int> ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import assert_never

from ilang.codegen.targets.identifiers import function_identifier
from ilang.codegen.targets.library import PREFIX
from ilang.core.dtype import BYTES
from ilang.core.ir.host import Finite, Grid, Host, Launch, Ranges, Step
from ilang.core.ir.ids import BufferId
from ilang.core.ir.kernel import Kernel
from ilang.core.ir.shaped import Bound, Derivation, Reach
from ilang.core.record import record

SIZE_MAX = (1 << 64) - 1
"""The largest ``size_t``."""
INT64_MAX = (1 << 63) - 1
"""The largest ``int64_t``."""
MARK = BYTES["i32"]
"""Of what tells that an index is out of range, or an element infinite."""
NARROW, WIDE = "int", "int64_t"
"""The types of indices."""


@record
class ArgumentAddress:
    """An address: ``offset`` from the start of argument number ``argument``, or from that of the workspace (None)."""

    argument: int | None
    offset: int = 0


@record
class NumberArgument:
    """A number of ``width`` bytes."""

    value: int
    width: int


Value = ArgumentAddress | NumberArgument
NULL = NumberArgument(0, BYTES["i64"])


@record
class Fill:
    """So many bytes of the workspace become 0."""

    place: ArgumentAddress
    count: int


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
        operations: what is enqueued.
        outside: where in the workspace it is told at last whether an index is out of range; None where none is read.
    """

    total: int
    alignment: int
    table: tuple[tuple[int, int], ...]
    read: int
    operations: tuple[Fill | KernelStart, ...]
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
    except _DoesNotFit:
        return None


def kernels_of(host: Host) -> Iterator[str]:
    """The kernels that calls start, as C++ names them."""
    for launch in host.kernels():
        kernel = host.program.kernels[launch.kernel]
        yield from (
            _name(host, kernel, index) for index in ((NARROW, WIDE) if kernel.spans else ("",))
        )
    yield from dict.fromkeys(_looker(host, each) for each in host.ranges)
    looked = (host.program.buffers[n].dtype for each in host.finite for n in each.buffers)
    yield from dict.fromkeys(f"{PREFIX}infinite_{dtype}" for dtype in looked)


def _name(host: Host, kernel: Kernel, index: str) -> str:
    """A kernel, with the type of its indices where it has two forms."""
    name = f"{function_identifier(host.program.name)}_{kernel.name}"
    return f"{name}<{index}>" if kernel.spans else name


def _looker(host: Host, ranges: Ranges) -> str:
    """The kernel that looks at indices."""
    return f"{PREFIX}outside_{host.program.buffers[ranges.buffer].dtype}"


class _DoesNotFit(Exception):
    """An extent, or what follows from extents, does not fit."""


def _demand(holds: bool) -> None:
    if not holds:
        raise _DoesNotFit


class _Caller:
    """The maker of a call, step by step."""

    def __init__(self, host: Host, given: Mapping[int, int]) -> None:
        self.host = host
        self.program = host.program
        self.given = given
        device = host.program.machine.device
        assert device is not None
        self.device = device
        self.arguments = {each.buffer: n for n, each in enumerate(host.arguments)}
        self.extents: dict[int, int] = {}
        self.total = 0
        self.at: dict[int, int] = {}
        self.groups = host.groups()
        self.looks = 0

    def call(self) -> DeviceCall:
        """The call. Raises _DoesNotFit."""
        host = self.host
        self._settle(host.checks)
        table = host.in_table()
        counts = tuple((self.arguments[a.buffer], self._measured(a.buffer)) for a in table)
        self._lay_out()
        self._settle(host.sizes)
        read = sum(argument.role == "input" for argument in table)
        last = self.outside + MARK * (self.groups - 1) if self.groups else None
        operations = tuple(self._operations())
        return DeviceCall(self.total, host.layout.alignment, counts, read, operations, last)

    def _settle(self, steps: Sequence[Step]) -> None:
        """Take every extent from some steps, and refuse what they refuse."""
        sizes = enumerate(self.program.sizes)
        self.extents = {n: size.fixed for n, size in sizes if size.fixed is not None}
        limited = any(isinstance(step, Derivation) for step in steps)
        for step in steps:
            match step:
                case int():
                    self.extents[step] = extent = self.given[step]
                    _demand(not limited or 0 <= extent <= INT64_MAX // 8)
                case Derivation():
                    derived = self._derived(step)
                    _demand(not step.known or derived == self.extents[step.size])
                    self.extents[step.size] = derived
                case Bound():
                    _demand(step.position < self.extents[step.size])
                case Reach():
                    least, most = step.ends(self.extents)
                    _demand(-step.limit <= least and most <= step.limit)
                case (size, value):
                    self.extents[size] = value.value(self.extents)
                case _:
                    assert_never(step)

    def _derived(self, rule: Derivation) -> int:
        """An extent that follows from others, where there is one."""
        if rule.is_composed():
            whole, part = (self._product(tuple(e.sizes())) for e in (rule.whole, rule.divisor))
            _demand(0 < part and whole % part == 0)
            return whole // part
        total, divisor = rule.whole.offset(), rule.divisor.number
        for factor, size in rule.whole.steps():
            _demand(self.extents[size] <= INT64_MAX // 8 // abs(factor))
            _demand(-(INT64_MAX // 2) <= total <= INT64_MAX // 2)
            total += factor * self.extents[size]
        spread = any(1 < self.extents[size] for size in rule.spread)
        least = int(spread) if rule.spread else rule.least
        _demand(least <= total // divisor <= INT64_MAX // 8)
        _demand(not rule.exact or total % divisor == 0)
        return total // divisor

    def _product(self, sizes: Sequence[int]) -> int:
        """The product of extents, which is an extent."""
        extents = [self.extents[size] for size in sizes]
        _demand(0 in extents or prod(extents) <= INT64_MAX // 8)
        return prod(extents)

    def _measured(self, number: int) -> int:
        """The bytes of a buffer."""
        buffer = self.program.buffers[number]
        extents = [self.extents[size] for size in buffer.dims]
        if buffer.instead is not None and extents[0] == 1:
            extents[0] = 0
        most = BYTES[buffer.dtype]
        for extent in extents:
            _demand(0 <= extent <= SIZE_MAX // 4 // most)
            most *= max(1, extent)
        return 0 if 0 in extents else most

    def _padded(self, count: int) -> int:
        return _parts(count, self.host.layout.alignment) * self.host.layout.alignment

    def _added(self, total: int, count: int, times: int = 1) -> int:
        """A number of bytes, and so many more, so many times."""
        _demand(count <= SIZE_MAX // 8)
        _demand(self._padded(count) <= (SIZE_MAX // 4 - total) // times)
        return total + self._padded(count) * times

    def _lay_out(self) -> None:
        """Place temporaries, marks and scratch storage in the workspace."""
        host, layout = self.host, self.host.layout
        for number in layout.temporaries:
            self.at[number] = self.total
            self.total = self._added(self.total, self._measured(number))
        self.outside = self.total
        if host.ranges:
            self.total = self._added(self.total, self.groups * MARK)
        self.infinite = self.total
        if host.finite:
            self.total = self._added(self.total, len(host.finite) * MARK)
        self.scratch, self.scratch_bytes, self.workers = self.total, 0, 0
        if layout.scratch:
            for private in layout.scratch:
                count = 0
                for number in private:
                    count = self._added(count, self._measured(number))
                self.scratch_bytes = max(self.scratch_bytes, count)
            self.workers = layout.most_threads
            if self.scratch_bytes:
                share = (layout.most_scratch >> 20 << 20) // self.scratch_bytes
                self.workers = max(1, min(share, layout.most_threads))
            self.total = self._added(self.total, self.scratch_bytes, self.workers)
        if not (layout.is_empty() and not host.ranges and not host.finite):
            self.total = self._added(self.total, 1)

    def _place(self, number: BufferId) -> ArgumentAddress:
        owner = self.program.owner(number)
        if owner in self.arguments:
            return ArgumentAddress(self.arguments[owner])
        buffer = self.program.buffers[owner]
        if buffer.instead is not None and self.extents[buffer.dims[0]] == 1:
            return self._place(buffer.instead)
        return ArgumentAddress(None, self.at[owner])

    def _operations(self) -> Iterator[Fill | KernelStart]:
        host = self.host
        if self.groups:
            yield Fill(ArgumentAddress(None, self.outside), self.groups * MARK)
        if host.finite:
            yield Fill(ArgumentAddress(None, self.infinite), len(host.finite) * MARK)
        for ranges, finite, launch in host.calls():
            yield from self._ranges(ranges) if ranges else ()
            for mark, each in finite:
                yield from self._looked(mark, each)
            yield from self._launch(launch)

    def _ranges(self, ranges: Sequence[Ranges]) -> Iterator[KernelStart]:
        """The launches that look at arrays of indices."""
        before: Value = self._outside() if self.looks else NULL
        self.looks += 1
        for each in ranges:
            count, extent = self._elements(each.buffer), self.extents[each.size]
            if count or before != NULL:
                numbers = (_wide(count), _wide(extent))
                values = (self._place(each.buffer), *numbers, before, self._outside())
                yield _looking(_looker(self.host, each), count, values)

    def _looked(self, mark: int, finite: Finite) -> Iterator[KernelStart]:
        """The launches that look for an element that is not finite."""
        before: Value = self._outside() if self.looks else NULL
        for number in finite.buffers:
            count = self._elements(number)
            if count:
                values = (self._place(number), _wide(count), before, self._infinite(mark))
                yield _looking(
                    f"{PREFIX}infinite_{self.program.buffers[number].dtype}", count, values
                )

    def _elements(self, number: int) -> int:
        return prod(self.extents[n] for n in self.program.buffers[number].dims)

    def _outside(self) -> ArgumentAddress:
        """The mark of an index out of range, set by the last kernel that has looked at indices so far."""
        return ArgumentAddress(None, self.outside + MARK * max(0, self.looks - 1))

    def _infinite(self, mark: int) -> ArgumentAddress:
        """The mark that tells a kernel that an element is not finite."""
        return ArgumentAddress(None, self.infinite + MARK * mark)

    def _launch(self, launch: Launch) -> Iterator[KernelStart]:
        """The launch of a kernel, unless it has nothing to do."""
        grid, kernel = launch.grid, self.program.kernels[launch.kernel]
        assert grid is not None
        across = (n for n in grid.across if n is not None)
        counts = [self.extents[n] for n in (*grid.sizes, *across, *launch.needs)]
        if min(counts, default=1) < 1:
            return
        parts = 0 if launch.parts is None else self.extents[launch.parts]
        if launch.parts is not None and not launch.few < parts <= (launch.many or parts):
            return
        index = NARROW if kernel.spans is not None and self._is_narrow(kernel.spans) else WIDE
        width = BYTES["i32" if index == NARROW else "i64"]
        values: list[Value] = [NumberArgument(self.extents[n], width) for n in launch.sizes]
        values += map(self._place, launch.buffers)
        if launch.scratch:
            values += [ArgumentAddress(None, self.scratch), _wide(self.scratch_bytes)]
        values += [self._outside()] if self.host.ranges else []
        values += [] if launch.finite is None else [self._infinite(launch.finite)]
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
            threads = min(self.workers, threads)
            most = self.workers // threads
        each = grid.iterations(threads if grid.vector == 1 else grid.threads, self.device.warp)
        iterations = prod(self.extents[n] for n in grid.sizes)
        first = min(_parts(iterations, each), most) if grid.sizes else 1
        y, z = (1 if n is None else min(self.extents[n], grid.most_across) for n in grid.across)
        shape = (*(grid.shape or (threads,)), 1, 1)
        return (first, y, z), (shape[0], shape[1], shape[2])


def _parts(count: int, each: int) -> int:
    """The number of parts of so many."""
    return -(-count // each)


def _wide(value: int) -> NumberArgument:
    return NumberArgument(value, BYTES["i64"])


def _looking(kernel: str, count: int, values: tuple[Value, ...]) -> KernelStart:
    """A kernel of ``headers/cuda.cuh`` that looks at elements, on as many blocks as are launched there."""
    blocks = max(1, min(_parts(count, 256), 1024))
    return KernelStart(kernel, (blocks, 1, 1), (256, 1, 1), values)
