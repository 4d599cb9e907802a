"""Coalesce stores through shared memory where each thread has several adjacent elements, and no vector moves them.

Example, at the end of rows, or where these are no whole number of vectors:
    in:   spread i2 in 0..16 and j1 in 0..16         out:  spread i2 in 0..16 and j1 in 0..16
            for i unrolled                                   for i unrolled
              for j2 in 0..4 unrolled                          for j2 in 0..4 unrolled
                if 4j1+j2 < n                                    if 4j1+j2 < n
                  out[i,i2,4j1+j2] = f32(acc[i,j2])                out_stored[i,j2,16i2+j1] = f32(acc[i,j2])
                                                           spread i2 in 0..16 and j1 in 0..16 and j2 in 0..4
                                                             for i unrolled
                                                               if 4j1+j2 < n
                                                                 out[i,i2,4j1+j2] = out_stored[i,j2,16i2+j1]

Without this pass one store of a warp would access a sector for each thread, and the next three stores the same sectors
again. Threads store the results of their unrolled iterations to shared memory, as many as fit, and read them back in
the order of the result, from rows whose length avoids bank conflicts.

Results that fit vectors, in rows of known length without conditions, are stored directly, and through shared memory
only if the array is not aligned. If registers leave room for two blocks, and extents are known, the pass leaves room
for them: it limits registers, and the shared memory that it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from ilang.core.calculus.affine import Affine, axis_index
from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import ThreadLoop, threads_of
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import named, nested, parts_of, unless_same
from ilang.core.ir.scalar import Load
from ilang.core.ir.schedule import Role
from ilang.core.machine import MULTIPROCESSORS
from ilang.core.occupancy import resources_of
from ilang.core.passes.gpu.numbering import Numbering
from ilang.core.record import record, replace


@record
class _Results:
    """The results of a spread: its unrolled loops but the last, that one, and the store in them, under a test."""

    outer: tuple[ir.For, ...]
    last: ir.For
    test: ir.If | None
    store: ir.Store

    def with_store(self, store: ir.Store) -> ir.Block:
        """The statements of an iteration, with another store."""
        return (store,) if self.test is None else (replace(self.test, body=(store,)),)


def with_coalesced_stores(numbering: Numbering, kernel: ir.Kernel) -> ir.Kernel:
    """A kernel with results that go through shared memory, where any do and a block has room for them."""
    spread = threads_of(kernel)
    if spread.over != "blocks":
        return kernel
    coalescer, first = _StoreCoalescer(numbering, kernel, spread), len(numbering.buffers)
    body = coalescer.block(spread.body)
    if len(numbering.buffers) == first:
        return kernel
    return replace(kernel, body=(replace(spread, body=body, blocks=coalescer.blocks),))


class _StoreCoalescer:
    """A kernel, and the bytes that a block of it shares, of so many at a time at least."""

    def __init__(self, numbering: Numbering, kernel: ir.Kernel, spread: ThreadLoop) -> None:
        self.program = numbering.program()
        self.numbering = numbering
        self.buffers = numbering.buffers
        self.shared = sum(map(self._bytes, named(kernel.body)))
        self.blocks = self._at_a_time(kernel, spread)
        self.first = len(self.buffers)

    def _at_a_time(self, kernel: ir.Kernel, spread: ThreadLoop) -> int:
        """Two blocks where registers have room for them now, but need not have it for what more a thread takes.

        Rows whose length is not known take some thirty registers more, with which that would spill.
        """
        device = self.program.machine.gpu()
        sizes = {size for number in named(kernel.body) for size in self.buffers[number].dims}
        if any(self.numbering.sizes[size].fixed is None for size in sizes):
            return 1
        most = device.registers // (2 * spread.threads)
        if device.most_registers <= most:
            return 1
        return 2 if resources_of(self.program, kernel).registers <= most else 1

    def _bytes(self, number: BufferId) -> int:
        buffer = self.buffers[number]
        dims = [self.numbering.sizes[size].fixed or 0 for size in buffer.dims]
        each = BYTES[buffer.dtype] * (2 if buffer.double else 1)
        return prod(dims) * each if buffer.space == "shared" else 0

    def block(self, body: ir.Block) -> ir.Block:
        """A block whose threads store side by side."""
        out: list[ir.Statement] = []
        for s in body:
            if isinstance(s, ThreadLoop):
                out += self._stored(s)
            else:
                out.append(ir.map_blocks(s, self.block) if isinstance(s, ir.For | ir.If) else s)
        return unless_same(body, out)

    def _stored(self, spread: ThreadLoop) -> ir.Block:
        """A spread that stores, with an element for each thread, in two steps where threads hold them; or as it is."""
        results = _results(spread)
        if results is None or not self._is_across(spread, results):
            return (spread,)
        role: Role = "t"
        loops = tuple(replace(loop, role=role) if loop.role else loop for loop in spread.loops)
        across = replace(spread, loops=(*loops, replace(results.last, body=(), role=role)))
        store = results.store
        values = [part.buffer for part in parts_of(store) if isinstance(part, Load)]
        if all(self.buffers[number].space != "local" for number in values):
            return (replace(across, body=nested(results.outer, results.with_store(store))),)
        for room, count in product(self._rooms(), range(len(results.outer) + 1)):
            around, inside = results.outer[:count], results.outer[count:]
            place = self._place(spread, results, inside, room)
            if place is not None:
                filled = results.with_store(replace(place, value=store.value))
                alone = replace(results.last, body=filled, manner=None)
                taken = results.with_store(replace(store, value=place.value))
                first = replace(spread, body=nested(inside, (alone,)))
                return nested(around, (first, replace(across, body=nested(inside, taken))))
        return (spread,)

    def _rooms(self) -> list[int]:
        """Shared bytes of a block, from the best on: so many that there are several, or what any block has."""
        device = self.program.machine.gpu()
        least = min(each.shared_bytes for each in MULTIPROCESSORS)
        return sorted({device.shared_bytes, min(device.shared_bytes, least // self.blocks)})

    def _place(
        self, spread: ThreadLoop, results: _Results, inside: Sequence[ir.For], room: int
    ) -> ir.Store | None:
        """The element that holds a result of a thread, inside some of its loops, and its value; None without room."""
        store, last = results.store, results.last
        device, dtype = self.program.machine.gpu(), self.buffers[store.buffer].dtype
        counts = [self.numbering.sizes[loop.size].fixed or 1 for loop in (*spread.loops, last)]
        unit = max(1, device.banks * device.bank_bytes // BYTES[dtype] // counts.pop())
        row = self.numbering.size((-(-prod(counts) // unit) | 1) * unit)
        dims = (*(loop.size for loop in inside), last.size, row)
        number = self._held(f"{self.buffers[store.buffer].name}_stored", dtype, dims, room)
        if number is None:
            return None
        weights = [prod(counts[n + 1 :]) for n in range(len(counts))]
        thread = zip(weights, (loop.variable for loop in spread.loops), strict=True)
        numbers = map(axis_index, (loop.variable for loop in (*inside, last)))
        at = (*numbers, Affine(tuple(thread)))
        return ir.Store(number, at, Load(number, at, dtype))

    def _held(self, name: str, dtype: str, dims: tuple[int, ...], room: int) -> BufferId | None:
        """The buffer that holds results of some extents, one for all places of a kernel; None without room."""
        for earlier, buffer in enumerate(self.buffers[self.first :], self.first):
            if (buffer.dtype, buffer.dims) == (dtype, dims):
                return BufferId(earlier)
        number = self.numbering.private(name, dtype, dims, "shared")
        if room < self.shared + self._bytes(number):
            self.buffers.pop()
            return None
        self.shared += self._bytes(number)
        return number

    def _is_across(self, spread: ThreadLoop, results: _Results) -> bool:
        """Whether each thread has adjacent elements, in the order of threads, and nobody else stores there."""
        store, last, along = results.store, results.last, spread.loops[-1]
        if self.buffers[store.buffer].private or self.buffers[store.buffer].space:
            return False
        values = [part.buffer for part in parts_of(store) if isinstance(part, Load)]
        known = all(self.numbering.sizes[loop.size].fixed for loop in (*spread.loops, last))
        if not known or store.buffer in values:
            return False
        each = self.numbering.sizes[last.size].fixed or 1
        row = self.numbering.sizes[self.buffers[store.buffer].dims[-1]].fixed
        lanes = self.program.machine.vector_lanes(self.buffers[store.buffer].dtype)
        if row is not None and each == lanes and row % lanes == 0 and results.test is None:
            return False
        *_, end = store.index
        steps = end.coefficient(last.variable), end.coefficient(along.variable)
        return 1 < each and steps == (1, each)


def _results(spread: ThreadLoop) -> _Results | None:
    """The results of a spread over threads in unrolled loops, under a condition or not; None of any other."""
    if spread.over != "threads" or not spread.loops or spread.vectors or len(spread.body) != 1:
        return None
    loops: list[ir.For] = []
    (inside,) = spread.body
    while isinstance(inside, ir.For) and inside.role == "u" and not inside.within:
        loops.append(inside)
        if len(inside.body) != 1:
            return None
        (inside,) = inside.body
    test = inside if isinstance(inside, ir.If) and not inside.otherwise else None
    store = test.body[0] if test is not None and len(test.body) == 1 else inside
    if not loops or not isinstance(store, ir.Store):
        return None
    vectors = loops[-1].manner
    if isinstance(vectors, ir.Vectors) and store.buffer in vectors.buffers:
        return None
    return _Results(tuple(loops[:-1]), loops[-1], test, store)
