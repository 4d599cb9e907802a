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

from ilang.core.calculus.affine import axis_index, row_step, variables_of
from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Captured, Registers
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.rewriting import chain_of, strides, substituted
from ilang.core.ir.scalar import Apply, Constant, Load, Local, Scalar, scalars_within
from ilang.core.record import replace

SUPPORTED = frozenset({"add", "sub", "mul", "div", "neg", "recip", "square", "max", "min"})
"""Primitives that vectors compute."""


def tiles_in_registers(program: ir.Program, body: ir.Block) -> ir.Block:
    """The body of a kernel whose tiles say how registers hold them."""
    described = {
        tile.buffer: _described(program, tile, number)
        for number, tile in enumerate(ir.every(body, ir.Tile))
    }
    return with_tiles(body, described)


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
    return replace(tile, registers=registers, edge=edge)


def _left_a_loop(s: ir.Statement) -> ir.Statement:
    """An innermost loop of what stands beside registers, not written out.

    Where GCC 12 writes out the last lanes and all rows and makes vectors of the loop around, it reads a vector for one
    element of a row: past the end of the array.
    """
    if not isinstance(s, ir.For) or any(isinstance(inner, ir.For) for inner in s.body):
        return s
    return replace(s, manner=ir.Unrolled(1))


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
    pairs = zip(chain[-count:], edge[-count:], strict=True)
    nothing = Captured((), (), (), ())
    return Registers(
        number,
        extents,
        tuple(replace(loop, body=()) for loop in chain[:-count]),
        tuple(_ending_as(loop, last) for loop, last in pairs),
        inner,
        tuple(dict.fromkeys(lane_reads.along)),
        tuple(lane_reads.vectors),
        (),
        False,
        _is_summed_apart(program, tile),
        nothing,
        nothing,
    )


def _ending_as(loop: ir.For, other: ir.For) -> ir.For:
    """A loop without its body that ends where another one does."""
    within = substituted(other.within, {other.variable: axis_index(loop.variable)})
    return replace(loop, body=(), within=within)


def _is_summed_apart(program: ir.Program, tile: ir.Tile) -> bool:
    """Whether registers hold the sum of partial sums, too: the tile twice, and half of it for operands."""
    buffer = program.buffers[tile.buffer]
    elements = prod(program.sizes[n].fixed or 0 for n in buffer.dims)
    held = max(variant.held_bytes for variant in program.machine.variants)
    return tile.partial is not None and 3 * elements * BYTES[buffer.dtype] <= 2 * held


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


def reads_past(program: ir.Program, registers: Registers) -> bool:
    """Whether lanes of a tile are read past the ends of rows: where they end early, and all have room for more."""
    padded = all(program.buffers[load.buffer].padded for load in registers.along)
    return padded and bool(registers.loops[-1].within)


def guarded(program: ir.Program, tile: ir.Tile) -> ir.Tile:
    """A tile with what has to hold, given which buffers are padded; itself where registers do not hold it.

    There is a row, and no lane reads past the end of memory. The parts of an axis that is split once start inside it.
    """
    registers = tile.registers
    if registers is None:
        return tile
    padded = all(program.buffers[load.buffer].padded for load in registers.along)
    guards = []
    last = len(registers.extents) - 1
    for d, (loop, extent) in enumerate(zip(registers.loops, registers.extents, strict=True)):
        for end in loop.within:
            index, step = end.limit(loop.variable)
            if d == last and not padded:
                guards.append(end.at(loop.variable, extent - 1))
            elif [-c for c, _ in index.steps()] != [extent] or step != 1:
                guards.append(end.at(loop.variable, 0))
    past = reads_past(program, registers)
    return replace(tile, registers=replace(registers, guards=tuple(guards), past=past))


# -- what it is given --------------------------------------------------------------------------------------------------


def captured(program: ir.Program, tile: ir.Tile) -> ir.Tile:
    """A tile that knows what its functions use from around it; itself where registers do not hold it."""
    if tile.registers is None:
        return tile
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
    ending = loops if whole else (*registers.core, *registers.loops[:-1])
    ends = [end for loop in ending for end in loop.within]
    sizes |= {loop.size for loop in loops} | {n for end in ends for _, n in end.index.sizes}
    sizes |= {end.size for end in ends if end.size is not None}
    variables |= variables_of(end.index for end in ends)
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
