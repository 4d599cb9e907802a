"""Say how vector registers hold a tile: which loops are rows and lanes, what an iteration does, how much at a time.

Example:
    in:   tile t[6,64] = 0; for k: for i': for j': t[i',j'] += in0[6i+i',k] * c[k,j']
    out:  the same, with registers: 16 lanes or fewer along c[k,j'], core k, loops i' and j', guarded by nothing where c
          is padded; 6 rows of 64 lanes where registers hold 1536 bytes of them, fewer where they hold less

If a tile computes something that has no vector instruction, it gets no registers, and is computed element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ilang.core.calculus.affine import Ceiling, row_step, variables_of
from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Captured, Registers
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.rewriting import strides, with_bodies
from ilang.core.ir.scalar import Apply, Constant, Load, Local, Scalar, scalars_within
from ilang.core.record import replace

SUPPORTED = frozenset({"add", "sub", "mul", "div", "neg", "recip", "square", "max", "min"})
"""Primitives that vectors compute."""


def kernel_to_tiles(program: ir.Program) -> ir.Program:
    """The program whose tiles say how registers hold them."""
    return with_bodies(program, lambda kernel: _described_tiles(program, kernel))


def _described_tiles(program: ir.Program, kernel: ir.Kernel) -> ir.Block:
    described = {
        tile.buffer: _described(program, tile, number)
        for number, tile in enumerate(ir.every(kernel.body, ir.Tile))
    }
    return with_tiles(kernel.body, described)


def with_tiles(body: ir.Block, tiles: dict[BufferId, ir.Tile]) -> ir.Block:
    """A block with other tiles in place of those for the same buffers."""
    if not tiles:
        return body
    return ir.map_statements(
        body, lambda s: tiles.get(s.buffer, s) if isinstance(s, ir.Tile) else s
    )


def _described(program: ir.Program, tile: ir.Tile, number: int) -> ir.Tile:
    registers = _registers(program, tile, number)
    if registers is None:
        return tile
    edge = ir.map_statements(tile.edge, _left_a_loop)
    return captured(program, replace(tile, registers=registers, edge=edge))


def _left_a_loop(s: ir.Statement) -> ir.Statement:
    """An innermost loop of what stands beside registers, not written out.

    Where GCC 12 writes out the last lanes and all rows and makes vectors of the loop around, it reads a vector for one
    element of a row: past the end of the array.
    """
    if not isinstance(s, ir.For) or any(isinstance(inner, ir.For) for inner in s.body):
        return s
    return replace(s, copies=1)


def _registers(program: ir.Program, tile: ir.Tile, number: int) -> Registers | None:
    """A tile in vector registers; None where they cannot hold it."""
    buffer = program.buffers[tile.buffer]
    extents = tuple(program.sizes[n].fixed or 0 for n in buffer.dims)
    count = len(extents)
    chain, body = chain_of(tile.body)
    if tile.vector < 2 or len(chain) < count or any(x.lanes > 1 or x.parallel for x in chain):
        return None
    lane_reads = _LaneReads(tile.buffer, buffer.dtype, chain[-1].variable)
    inner = tuple(s for s in body if isinstance(s, (ir.Define, ir.Store)) and lane_reads.takes(s))
    if len(inner) < len(body):
        return None
    edge, _ = chain_of(tile.edge)
    loops = tuple(replace(loop, body=()) for loop in chain[-count:])
    ends = tuple(loop.end for loop in edge[-count:])
    nothing = Captured((), (), (), ())
    registers = Registers(
        number,
        extents,
        tile.vector,
        tuple(replace(loop, body=()) for loop in chain[:-count]),
        loops,
        inner,
        tuple(dict.fromkeys(lane_reads.along)),
        tuple(lane_reads.vectors),
        ends,
        (),
        False,
        tile.micro_tiles,
        _is_summed_apart(program, tile),
        _counted(loops, ends),
        _contracts(inner),
        nothing,
        nothing,
    )
    return guarded(program, registers)


def _is_summed_apart(program: ir.Program, tile: ir.Tile) -> bool:
    """Whether registers hold the sum of partial sums, too: the tile twice, and half of it for operands."""
    buffer = program.buffers[tile.buffer]
    elements = prod(program.sizes[n].fixed or 0 for n in buffer.dims)
    held = max(variant.held_bytes for variant in program.machine.variants)
    return tile.partial is not None and 3 * elements * BYTES[buffer.dtype] <= 2 * held


def _counted(loops: Sequence[ir.For], ends: Sequence[tuple[Ceiling, ...]]) -> frozenset[int]:
    """The variables that count within a part: of lanes, of all rows of a matrix, and of rows that end earlier."""
    *rows, lanes = loops
    in_parts = (x for x, end in zip(rows, ends, strict=False) if end or len(rows) == 1)
    return frozenset({lanes.variable}.union(loop.variable for loop in in_parts))


def chain_of(body: Sequence[ir.Statement]) -> tuple[list[ir.For], Sequence[ir.Statement]]:
    """Loops with nothing else between them, outermost first, and what is inside."""
    chain: list[ir.For] = []
    while len(body) == 1 and isinstance(body[0], ir.For):
        chain.append(body[0])
        body = body[0].body
    return chain, body


class _LaneReads:
    """The statements of an iteration of a tile: what they read lane by lane, and which variables have lanes."""

    def __init__(self, tile: int, dtype: str, lane: int) -> None:
        self.tile = tile
        self.dtype = dtype
        self.lane = lane
        self.along: list[Load] = []
        self.vectors: list[int] = []

    def takes(self, s: ir.Define | ir.Store) -> bool:
        """Whether vectors can do what the next statement does."""
        if (isinstance(s, ir.Define) and s.mutable) or (
            isinstance(s, ir.Store) and s.buffer != self.tile
        ):
            return False
        has_lanes = False
        for part in scalars_within(s.value):
            if not isinstance(part, (Apply, Load, Local, Constant)) or part.dtype != self.dtype:
                return False
            if isinstance(part, Apply) and part.primitive not in SUPPORTED:
                return False
            if isinstance(part, Load) and any(index.looked for index in part.index):
                return False
            if isinstance(part, Load) and part.buffer != self.tile:
                step = row_step(part.index, self.lane)
                if step not in (0, 1):
                    return False
                self.along += [part] if step else []
                has_lanes = has_lanes or step == 1
            has_lanes = has_lanes or self._has_lanes(part)
        if isinstance(s, ir.Define) and has_lanes:
            self.vectors.append(s.variable)
        return True

    def _has_lanes(self, part: Scalar) -> bool:
        """Whether a leaf that is not read from memory has a value per lane."""
        if isinstance(part, Load):
            return part.buffer == self.tile
        return isinstance(part, Local) and part.variable in self.vectors


def _contracts(body: Sequence[ir.Define | ir.Store]) -> bool:
    """Whether the only sums are those into the tile, so that a product can feed nothing else."""
    sums = [
        part
        for s in body
        for part in scalars_within(s.value)
        if isinstance(part, Apply) and part.primitive in ("add", "sub")
    ]
    stores = [s.value for s in body if isinstance(s, ir.Store)]
    return sums == stores and all(s.primitive == "add" for s in sums)


def guarded(program: ir.Program, registers: Registers) -> Registers:
    """The registers with what has to hold, given which buffers are padded.

    There is a row, and no lane reads past the end of memory. The parts of an axis that is split once start inside it.
    """
    padded = all(program.buffers[load.buffer].padded for load in registers.along)
    guards = []
    last = len(registers.extents) - 1
    for d, (ends, extent) in enumerate(zip(registers.ends, registers.extents, strict=True)):
        for end in ends:
            if d == last and not padded:
                guards.append(end.after(extent - 1))
            elif [-c for c, _ in end.index.steps()] != [extent] or end.step != 1:
                guards.append(end.after(0))
    past = padded and bool(registers.ends[-1])
    return replace(registers, guards=tuple(guards), past=past)


# -- what it is given --------------------------------------------------------------------------------------------------


def captured(program: ir.Program, tile: ir.Tile) -> ir.Tile:
    """A tile that knows what its functions use from around it."""
    assert tile.registers is not None
    part, whole = _captured(program, tile, False), _captured(program, tile, True)
    return replace(tile, registers=replace(tile.registers, part=part, whole=whole))


def _captured(program: ir.Program, tile: ir.Tile, whole: bool) -> Captured:
    """The values that the function of some rows and lanes uses, or that of the ``whole`` tile, blocks and all."""
    registers = tile.registers
    assert registers is not None
    sizes: set[int] = set()
    buffers: set[BufferId] = set()
    variables: set[int] = set()
    fill = () if tile.fill is None else (tile.fill,)
    loads = {
        part
        for s in (*registers.body, *fill)
        for part in scalars_within(s.value)
        if isinstance(part, Load) and part.buffer != tile.buffer
    }
    for load in loads:
        buffers.add(load.buffer)
        sizes |= strides(program.buffers[load.buffer].dims, load.index)
        variables |= variables_of(load.index)
        sizes |= {n for part in load.index for _, n in part.sizes}
    blocks = tile.blocks if whole else ()
    loops = (*registers.core, *registers.loops, *blocks)
    every = (*(x.end for x in loops), *registers.ends[: None if whole else -1])
    ends = [end.index for each in every for end in each]
    sizes |= {loop.size for loop in loops} | {n for end in ends for _, n in end.sizes}
    variables |= variables_of(ends)
    variables -= {loop.variable for loop in loops}
    return Captured(
        tuple(sorted(n for n in sizes if program.sizes[n].fixed is None)),
        tuple(sorted(buffers)),
        tuple(map(VariableId, sorted(variables))),
        tuple(_locals(registers.body)),
    )


def _locals(body: Sequence[ir.Define | ir.Store]) -> list[Local]:
    """The scalar variables that are computed outside a tile and used in it."""
    defined = {s.variable for s in body if isinstance(s, ir.Define)}
    used = {part for s in body for part in scalars_within(s.value) if isinstance(part, Local)}
    return sorted(
        (part for part in used if part.variable not in defined), key=lambda p: (p.variable, p.dtype)
    )
