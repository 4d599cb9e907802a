"""Machines: what schedules, passes and targets may know of the processor that a program is for.

A machine is a value: schedules are chosen for one, kernels name theirs, and every number that belongs to a processor is
a field here. One machine may be a family of processors: its ``variants`` are the instruction sets, among which the text
of a target chooses where it is compiled; all that is chosen before holds for each of them.
"""

from __future__ import annotations

from typing import Literal

from ilang.core.dtype import BYTES
from ilang.core.record import record, replace

Kind = Literal["cpu", "gpu"]
"""The kind of a machine, which says what passes it has (``steps.PASSES``)."""


@record
class InstructionSet:
    """An instruction set: bytes of a vector, and bytes of a tile's elements that registers hold beside operands.

    ``macro`` is what C compilers define for it; "" for the one that is left when no other is there.
    """

    macro: str
    vector_bytes: int
    held_bytes: int


@record
class Tiles:
    """Sizes of parts of contractions, sums into rows and transposed work, which registers and the nearest cache hold.

    Fields:
        rows, lanes: of a register tile. A target's text computes some of the lanes at a time where they are too many.
        window_rows, window_lanes: of a tile whose rows move windows: vectors transpose its rows.
        window_block: windows along an axis before the rows of which rows are copied together: what they share is copied
            once, and threads have something to share.
        most_elements: of a tile that a written schedule asks for; on a GPU, of each thread.
        unrolled_terms: terms that are summed in one scalar variable before they meet an accumulator: as many loads at a
            time.
        strip_terms: terms that are summed before they meet an accumulator in memory, at most.
        many_lanes: results, those in lanes among them, for which a copy of what rows alone read is worth its time.
        tail: an axis whose last tile has idle lanes for more than one of so many elements is joined with the next.
        block: elements of a transposed block, along the operand and along the result.
        short_lanes: of vectors that are worth it in a row that they do not divide, whose last two overlap.
        gain: terms that a tile adds in the time of one element that a thread reads.
        threads, terms: of a GPU, threads along each side of a block's tile, and terms of a contraction that a block
            copies at a time.
    """

    rows: int
    lanes: int
    window_rows: int
    window_lanes: int
    window_block: int
    most_elements: int
    unrolled_terms: int
    many_lanes: int
    tail: int
    block: tuple[int, int]
    gain: int
    short_lanes: int = 4
    strip_terms: int = 12
    threads: int = 1
    terms: int = 1


@record
class Core:
    """The core of a processor, in cycles, for prices of loops (``schedule/choose/tile_cost.py``).

    Fields:
        multiply_adds, loads: of vectors that a cycle issues.
        latency: cycles after which a sum can be added to again.
        stored, merged: of a vector of sums that is stored, and added to what other terms have left in memory.
        ordered: of a vector of floats that an extreme compares, as integers, in loops and in a register tile.
        begun: of a tile, before its first term and after its last one.
        copied, transposed: of an element that is packed along memory, and that is packed or stored across it.
        cache_bytes: of each cache, the nearest first.
        way_bytes: of a way of each cache: lines so far apart stand at one place of all its ways; 0 where places are
            mixed.
        line_cycles: of a line that comes into each of them while a core does other things.
        filling: of a line that comes into the nearest one, in which it loads nothing.
        late: lines of a run of adjacent ones that come out of order: what fetches ahead sees where they lead.
        streams: runs of an operand, read in turn, that what fetches ahead follows at a time.
        scattered: cycles that a core waits for a line that comes into each of them out of order.
        written: the same of a line that is stored whole.
        parted: the same of a line of which a part is stored: stores are done one after the other.
        exposed: the share of lines into the second cache and further ones that is not hidden by what takes longest.
    """

    multiply_adds: float
    loads: float
    latency: float
    stored: float
    merged: float
    ordered: tuple[float, float]
    begun: float
    copied: float
    transposed: float
    cache_bytes: tuple[int, ...]
    way_bytes: tuple[int, ...]
    line_cycles: tuple[float, ...]
    filling: float
    late: int
    streams: int
    scattered: tuple[float, ...]
    written: tuple[float, ...]
    parted: tuple[float, ...]
    exposed: float

    def cycles_of_line(self, held: int) -> float:
        """The cycles in which a line comes, of arrays of so many bytes, from the cache that holds them."""
        levels = zip(self.cache_bytes, self.line_cycles, strict=True)
        return sum(cycles for cache, cycles in levels if cache < held)


@record
class Memory:
    """Bytes that memory moves at a time.

    Fields:
        line_bytes: what comes together.
        streamed_bytes: results from this size on are written past the caches.
        kept_bytes: matrices that take no more stay in the caches from where they are computed to where they are read.
        unit_stride: the cost of a step of a loop along the last dimension of an access that it moves, per element.
        wide_stride: that along another dimension: a cache line a step; each further dimension adds one.
        dependent_sum: an innermost reduced loop is a chain of dependent additions: between equals an output loop is
            innermost.
        strided_write: how much more a strided write costs than a strided read: the line is read first.
    """

    line_bytes: int
    streamed_bytes: int
    kept_bytes: int
    unit_stride: float = 1.0
    wide_stride: float = 8.0
    dependent_sum: float = 0.5
    strided_write: float = 1.25


@record
class Threads:
    """The worth of threads.

    Fields:
        most: threads of a parallel loop; each has its own part of the scratch storage.
        scratch_bytes: scratch storage beyond which there is room for one thread only.
        enough_work: work that is worth several threads, in elements that one thread reads: eight microseconds, twice
            what two threads take to begin and to end a loop together.
        levels: marked loops around each other at most.
        most_blocks: blocks of a reduction at most.
        block_work: iterations of such a block at least: enough for a thread to start for.
        block_terms: terms that each accumulator of such a block meets at least, where it has several.
    """

    most: int
    scratch_bytes: int
    enough_work: int
    levels: int
    most_blocks: int
    block_work: int
    block_terms: int


@record
class SumParts:
    """The terms that a part of a sum has on a GPU, where results alone would not fill it; one more kernel adds parts.

    Fields:
        of_thread: parts of an element that one thread adds at most where a block could.
        full: blocks by which a multiprocessor has all threads that it holds.
    """

    of_thread: int
    full: int


@record
class MatrixUnit:
    """An instruction by which the lanes of a warp multiply two matrices of few bits, and add the product to one of f32.

    Of lane n, n // ``across`` is the group, and n % ``across`` the place in it. A group has a row of the left matrix, a
    column of the right one and a row of the sums, and each number of groups further on. The lanes of a group have so
    many terms side by side in turn, and columns of the sums side by side: as many as there are for each.

    Fields:
        rounding: the primitive that rounds factors to what it multiplies.
        dtype: of the elements that it is given.
        rows, columns, terms: the left matrix has rows and terms, the right one terms and columns.
        across: lanes of a group.
        packed: terms side by side, which a lane has in one register.
        capability: of devices that have it, at least: 80 is 8.0.
    """

    rounding: str
    dtype: str
    rows: int
    columns: int
    terms: int
    across: int
    packed: int
    capability: int

    def terms_of(self, place: int) -> tuple[int, ...]:
        """The terms that a lane at a place of its group has of each row and column."""
        step = self.across * self.packed
        starts = range(self.packed * place, self.terms, step)
        return tuple(start + n for start in starts for n in range(self.packed))


@record
class DeviceLimits:
    """The limits of a launch of a GPU, and the memory that blocks of threads share.

    Fields:
        warp: threads that run in step.
        block_threads: threads of a block, where nothing says how many.
        most_block_threads: threads of a block at most.
        most_deep_threads: threads of a block at most, along its third dimension.
        most_blocks: blocks of a launch at most, along the first dimension of its grid.
        most_across: the same along the others.
        multiprocessors: how many run blocks at a time, on the largest device that schedules aim at.
        registers: 32-bit registers of a multiprocessor.
        register_bytes: of one of them.
        most_registers: of a thread at most.
        register_step: those of a thread are a multiple of this.
        shared_bytes: shared memory of a block that every device of the family has without being asked.
        sector_bytes: what global memory moves at least.
        banks, bank_bytes: of shared memory, what threads of a warp reach at a time: so many words of so many bytes.
        loads: of a loop that is shared out, a thread has so many iterations at a time, and waits for all they load.
        vector_elements: that one instruction moves at most, whatever their type.
        most_statements: of an iteration that is done for as many adjacent elements at a time: registers hold the values
            of all of them.
        narrow_elements: arrays with fewer elements may be indexed by 32 bits, also a little past their ends.
        local_bytes: arrays of a thread's own up to this size stand in its local memory, larger ones in the workspace:
            local memory is set aside for all resident threads of the device.
        parts: how sums with few results are cut.
        most_products: matrices that are computed again as products in one kernel: a block copies the factors of each,
            and has no room for more.
        units: what multiplies matrices, one for each rounding.
        multiply_adds: of f32 that a multiprocessor begins in a cycle.
        latency: cycles from a load of global memory until it is used.
        least_warps: of a multiprocessor that keep its units busy: one for each of its schedulers.
        copied_instructions: of a thread for each element that it copies: a load, a store, indices, conditions.
        other_registers: of a thread beside its sums: operands, indices, elements on their way.
        launched: cycles that one more kernel takes.
    """

    warp: int
    block_threads: int
    most_block_threads: int
    most_deep_threads: int
    most_blocks: int
    most_across: int
    multiprocessors: int
    registers: int
    register_bytes: int
    most_registers: int
    register_step: int
    shared_bytes: int
    sector_bytes: int
    banks: int
    bank_bytes: int
    loads: int
    vector_elements: int
    most_statements: int
    narrow_elements: int
    local_bytes: int
    parts: SumParts
    most_products: int
    units: tuple[MatrixUnit, ...]
    multiply_adds: int
    latency: int
    least_warps: int
    copied_instructions: int
    other_registers: int
    launched: int

    def unit(self, rounding: str) -> MatrixUnit:
        """The unit that multiplies what a primitive rounds."""
        return next(unit for unit in self.units if unit.rounding == rounding)


@record
class Multiprocessor:
    """The resources of a multiprocessor of a GPU for the blocks that it runs at a time.

    Fields:
        name, capability: of a device that has it, and of all that are programmed alike: 90 is 9.0.
        warps, blocks: at a time at most.
        registers: 32-bit ones; a warp takes a multiple of ``register_unit``.
        shared_bytes: for all blocks; each takes a multiple of ``shared_unit``, ``shared_reserved`` bytes included.
        warp_unit: warps that registers have room for come in multiples of this.
        schedulers: warps that begin an instruction in a cycle.
        latency: cycles until a load from memory is there; ``shuffled`` until a lane has what another one gives.
        cache_bytes: that it moves from and to the cache of all in a cycle; ``memory_bytes`` from and to memory.
        products: of f32 that it adds in a cycle, as far as tiles let it.
        memory: bytes of the device.
        around: registers of a thread beside the elements that it keeps.
        element: instructions for an element of a value; ``combined`` for a step of a combination of lanes, ``met`` that
            a warp could run while it waits for the other ones of its block.
    """

    name: str
    capability: int
    warps: int
    blocks: int
    registers: int
    register_unit: int
    warp_unit: int
    shared_bytes: int
    shared_unit: int
    shared_reserved: int
    schedulers: int = 4
    latency: int = 600
    shuffled: int = 30
    cache_bytes: int = 41
    memory_bytes: int = 14
    products: int = 64
    memory: int = 80 << 30
    around: int = 24
    element: int = 10
    combined: int = 6
    met: int = 60

    def has_room(self, blocks: int, warps: int) -> bool:
        """Whether there may be so many blocks at a time, of so many warps each."""
        return blocks <= self.blocks and blocks * warps <= self.warps


@record
class Machine:
    """A processor, or a family of them.

    Extents below ``small_extent`` are too small for tiles and blocks.
    ``sum_lanes`` are partial results of a reduction in lanes: enough to keep the adders busy. From
    ``divided_iterations`` on, a loop that divides by one number is faster where it multiplies instead. ``device`` is
    what a GPU has besides; ``core`` is what prices of loops rest on, of a CPU. Of what ranks sum, at least
    ``bucket_bytes`` are summed at once, while others are computed; None: all of it.
    """

    name: str
    kind: Kind
    variants: tuple[InstructionSet, ...]
    small_extent: int
    sum_lanes: int
    divided_iterations: int
    tiles: Tiles
    memory: Memory
    threads: Threads
    device: DeviceLimits | None = None
    core: Core | None = None
    bucket_bytes: int | None = None

    def gpu(self) -> DeviceLimits:
        """The limits of a GPU, which the machine is."""
        assert self.device is not None
        return self.device

    def vector_bytes(self) -> int:
        """Bytes of the widest vectors."""
        return max(variant.vector_bytes for variant in self.variants)

    def vector_lanes(self, dtype: str) -> int:
        """Elements of the widest vectors."""
        lanes = self.vector_bytes() // BYTES[dtype]
        return lanes if self.device is None else min(lanes, self.device.vector_elements)

    def least_vector_lanes(self, dtype: str) -> int:
        """Elements of the shortest vectors."""
        return min(variant.vector_bytes for variant in self.variants) // BYTES[dtype]

    def holds_sums(self, elements: int, dtype: str) -> bool:
        """Whether registers hold a tile and the sum of its partial sums: it twice, and half of it for operands."""
        held = max(variant.held_bytes for variant in self.variants)
        return 3 * elements * BYTES[dtype] <= 2 * held

    def accumulators(self, cache: int) -> int:
        """Accumulators in f64 that take half of a cache, by its number; what meets them has the other half.

        A machine without prices of loops, a GPU, has one.
        """
        return 1 if self.core is None else self.core.cache_bytes[cache] // (2 * BYTES["f64"])

    def most_sum_lanes(self) -> int:
        """Partial results of any reduction at most: twice as many where an operation takes longer than an addition."""
        return 2 * self.sum_lanes


CPU = Machine(
    name="cpu",
    kind="cpu",
    variants=(
        InstructionSet("__AVX512F__", 64, 1536),
        InstructionSet("__AVX__", 32, 384),
        InstructionSet("__aarch64__", 16, 384),
        InstructionSet("", 16, 192),
    ),
    small_extent=8,
    sum_lanes=16,  # keeps four 256-bit adders of doubles busy
    divided_iterations=64,
    tiles=Tiles(
        rows=6,  # 24 vectors of sixteen floats, three quarters of what AVX-512 has registers for
        lanes=64,
        window_rows=8,
        window_lanes=32,
        window_block=4,
        most_elements=1024,  # 64 vectors of sixteen floats, more than any processor has registers for
        unrolled_terms=16,
        many_lanes=256,
        tail=20,
        block=(32, 64),  # two lines of 64 bytes, and four, of f32
        gain=4,
    ),
    memory=Memory(line_bytes=64, streamed_bytes=32 << 20, kept_bytes=1 << 20),
    threads=Threads(
        most=64,
        scratch_bytes=64 << 20,
        enough_work=2**18,
        levels=3,
        most_blocks=64,
        block_work=131072,
        block_terms=16,
    ),
    core=Core(  # of the last years, at 4 GHz; lines as a core reads 24 KB to 256 MB, in order and column by column
        multiply_adds=2.0,
        loads=2.0,
        latency=4.0,
        stored=1.0,
        merged=3.0,
        ordered=(1.8, 4.1),
        begun=10.0,
        copied=0.08,
        transposed=0.3,
        cache_bytes=(32 << 10, 1 << 20, 16 << 20),
        way_bytes=(4 << 10, 64 << 10, 0),
        line_cycles=(1.0, 2.4, 6.0),
        filling=0.5,
        late=4,
        streams=16,
        scattered=(0.5, 0.5, 10.0),
        written=(0.0, 2.0, 10.0),
        parted=(2.0, 4.0, 20.0),
        exposed=0.1,
    ),
    bucket_bytes=25 << 20,  # as PyTorch has it: Li et al., PyTorch Distributed, VLDB 2020
)
"""Every processor that C compilers know, at its best with wide vectors: schedules are the same on all of them."""

GPU = Machine(
    name="gpu",
    kind="gpu",
    variants=(InstructionSet("__CUDACC__", 16, 0),),  # float4: what a thread loads at a time
    sum_lanes=16,  # chunks begin at a multiple of a warp
    divided_iterations=1 << 62,
    small_extent=8,
    tiles=Tiles(
        rows=4,  # of each thread, and as many lanes
        lanes=4,
        window_rows=4,
        window_lanes=4,
        window_block=4,
        most_elements=64,  # 64 registers of sums, and 128 of what they are added to in f64
        unrolled_terms=0,
        many_lanes=1 << 62,
        tail=1,
        block=(32, 32),
        gain=4,
        threads=16,
        terms=16,
    ),
    memory=Memory(
        line_bytes=256,  # what cudaMalloc aligns to
        streamed_bytes=1 << 62,
        kept_bytes=256 << 20,  # scores of 4096 for as many, four times
    ),
    threads=Threads(
        most=132 * 1024,
        scratch_bytes=64 << 20,
        enough_work=2**18,
        levels=3,
        most_blocks=264,  # two for each multiprocessor
        block_work=4096,
        block_terms=1,
    ),
    device=DeviceLimits(
        warp=32,
        block_threads=256,
        most_block_threads=1024,
        most_deep_threads=64,
        most_blocks=(1 << 31) - 1,
        most_across=65535,
        multiprocessors=132,  # H100 SXM; the limits below hold from sm_75 (CUDA C++ Programming Guide 13, table 30)
        registers=65536,
        register_bytes=4,
        most_registers=255,
        register_step=8,
        shared_bytes=48 << 10,
        sector_bytes=32,
        banks=32,
        bank_bytes=4,
        loads=4,
        vector_elements=4,
        most_statements=64,
        narrow_elements=1 << 29,
        local_bytes=1024,
        parts=SumParts(of_thread=64, full=8),
        most_products=3,
        units=(  # PTX ISA 9.0, mma.m16n8k8 with .tf32 and mma.m16n8k16 with .bf16: their fragments
            MatrixUnit("tf32", "f32", 16, 8, 8, across=4, packed=1, capability=80),
            MatrixUnit("bf16", "bf16", 16, 8, 16, across=4, packed=2, capability=80),
        ),
        multiply_adds=128,
        latency=800,
        least_warps=4,
        copied_instructions=8,
        other_registers=80,
        launched=4000,  # 2 µs: measured 0.5 in a graph, and 3.6 to 5.0 from the host
    ),
)
"""Every GPU that CUDA 13 compiles for, from sm_75 on: a program is compiled for one of them, and right on each."""

MULTIPROCESSORS = (
    Multiprocessor("T4", 75, 32, 16, 65536, 256, 4, 64 << 10, 256, 0),
    Multiprocessor("A100", 80, 64, 32, 65536, 256, 4, 164 << 10, 128, 1 << 10),
    Multiprocessor("H100", 90, 64, 32, 65536, 256, 4, 228 << 10, 128, 1 << 10),
)
"""CUDA C++ Programming Guide 13, technical specifications per compute capability; units as in the occupancy calculator
of Nsight Compute 2025.3. The last one is what ``GPU.device.multiprocessors`` counts, and what schedules aim at."""

SERIAL = replace(CPU, threads=replace(CPU.threads, most=1, levels=0))
"""The same for programs that run on one core: no loop is shared, and no sum is made of blocks for that."""

MACHINES = {"c": CPU, "cuda": GPU}
"""The machine of each target."""
