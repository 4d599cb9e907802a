"""Say where the private buffers of a kernel are: with one thread, shared by a block, or in the workspace.

Example, where threads share i1 and j1, and k1 and j1 of the copy:
    in:   memory acc f64[16,16] private; copy f32[8,16] private; row f32[n_j] private
    out:  memory acc f64[] local; copy f32[8,16] shared; row f32[n_j] private

A buffer that is touched inside one iteration that a thread has to itself is that thread's. So is one whose elements
each thread alone touches, because it is always indexed by the variables of the loops that threads share: these
dimensions are left out. Any other one is shared by the block. A thread has room for little, a block for more; what has
none, or no constant extents, stays in the workspace of a thread of the grid; of blocks, nothing does. Rows of shared
memory are one element longer where they would all begin in one bank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ilang.core.dtype import BYTES
from ilang.core.ir.affine import Affine
from ilang.core.ir.gpu import Spread
from ilang.core.ir.kernel import (
    Block,
    Buffer,
    Change,
    Define,
    Kernel,
    Program,
    Space,
    Statement,
    Store,
    map_statements,
    statements_within,
)
from ilang.core.ir.scalar import Apply, Convert, Load, Scalar, Select
from ilang.core.ir.shaped import Size
from ilang.core.passes.rewriting import Access, accesses
from ilang.core.record import record, replace


@record
class Place:
    """The space of a buffer, and the dimensions that it keeps there."""

    space: Space
    kept: tuple[int, ...]


@record
class Full:
    """What has no room in a space: ``buffers`` of so many ``bytes`` together, None where these are not known."""

    space: Space
    buffers: tuple[int, ...]
    bytes: int | None
    most: int


def kernel_to_spaces(program: Program) -> Program:
    """The program with a space for each private buffer that there is room for."""
    buffers, sizes, kernels = list(program.buffers), list(program.sizes), []
    for kernel in program.kernels:
        places = placed(program, kernel)
        assert not isinstance(places, Full), "a kernel is bound so that its buffers have places"
        for number, place in places.items():
            dims = tuple(buffers[number].dims[d] for d in place.kept)
            longer = _longer(program, buffers[number].dtype, dims)
            if place.space == "shared" and longer:
                sizes.append(Size(str(longer), longer, ()))
                dims = (*dims[:-1], len(sizes) - 1)
            buffers[number] = replace(buffers[number], space=place.space, dims=dims, padded=False)
        kernels.append(replace(kernel, body=_folded(kernel.body, places)))
    return replace(program, buffers=tuple(buffers), sizes=tuple(sizes), kernels=tuple(kernels))


def _longer(program: Program, dtype: str, dims: Sequence[int]) -> int:
    """The extent that the last dimension has in memory that a block shares, where that is longer than it is; else 0.

    Threads that step along another dimension would all meet in one bank, where rows are a multiple of all banks long.
    """
    device = program.machine.device
    assert device is not None
    words = [(program.sizes[size].fixed or 0) for size in dims]
    around = max(1, device.banks * device.bank_bytes // BYTES[dtype])
    steps = [prod(words[d + 1 :]) for d in range(len(words) - 1)]
    return words[-1] + 1 if any(step and step % around == 0 for step in steps) else 0


def placed(program: Program, kernel: Kernel) -> dict[int, Place] | Full:
    """The places of the private buffers of a bound kernel, or that blocks have no room for one."""
    (spread,) = kernel.body
    assert isinstance(spread, Spread)
    device = program.machine.device
    assert device is not None
    touched = {buffer for buffer, _ in accesses(kernel.body)}
    private = sorted(number for number in touched if program.buffers[number].private)
    found: dict[int, Place] = {}
    parts = spread.threads // device.warp if spread.over == "warps" else 1
    most: dict[Space, int] = {
        "local": device.local_bytes,
        "shared": device.shared_bytes // parts,
    }
    used: dict[Space, int] = {"local": 0, "shared": 0}
    kept: dict[Space, list[int]] = {"local": [], "shared": []}
    for number in private:
        place = _place(program, spread, number)
        size = _bytes(program, program.buffers[number], place)
        if size is None and spread.over != "grid":
            return Full(place.space, (number,), None, most[place.space])
        if size is None or (spread.over == "grid" and most[place.space] < used[place.space] + size):
            continue
        used[place.space] += size
        kept[place.space].append(number)
        found[number] = place
    for space, bytes_ in used.items():
        if most[space] < bytes_:
            return Full(space, tuple(kept[space]), bytes_, most[space])
    return found


def _place(program: Program, spread: Spread, number: int) -> Place:
    """Where a buffer would be, if there is room."""
    every = tuple(range(len(program.buffers[number].dims)))
    if spread.over == "grid":
        return Place("local", every)
    inside = [s for s in _shared_out(spread.body) if number in _buffers(s.body)]
    count = sum(buffer == number for buffer, _ in accesses(spread.body))
    if count != sum(buffer == number for s in inside for buffer, _ in accesses(s.body)):
        return Place("shared", every)
    owned = owned_dimensions(program, inside, number)
    if owned is not None:
        return Place("local", tuple(d for d in every if d not in owned))
    return Place(
        "local" if len(inside) == 1 and not _is_told_apart(inside[0], number) else "shared", every
    )


def _is_told_apart(spread: Spread, number: int) -> bool:
    """Whether a buffer is indexed by the variables of the loops of a spread: it is not one iteration's."""
    shared = {loop.variable for loop in spread.loops}
    return any(
        shared & {v for part in index for _, v in part.terms}
        for buffer, index in accesses(spread.body)
        if buffer == number
    )


def owned_dimensions(program: Program, spreads: Sequence[Spread], number: int) -> set[int] | None:
    """The dimensions of a buffer that are the loops of spreads, each thread's own; None where threads may meet.

    Each of the spreads has the same loops, along the same dimensions of the block, and each access the variable of
    every one of them as the index of one dimension, always the same one. There is a thread for each iteration.
    """
    loops = {tuple((loop.size, loop.role) for loop in s.loops) for s in spreads}
    if len(loops) != 1 or () in loops:
        return None
    extents = [program.sizes[size].fixed for size, _ in next(iter(loops))]
    if prod(extent or spreads[0].threads + 1 for extent in extents) > spreads[0].threads:
        return None
    found: set[tuple[int | None, ...]] = set()
    for s in spreads:
        found |= {
            tuple(_walking(index, loop.variable) for loop in s.loops)
            for buffer, index in accesses(s.body)
            if buffer == number
        }
    if len(found) != 1:
        return None
    (dims,) = found
    owned = {d for d in dims if d is not None}
    return owned if None not in dims and len(owned) == len(dims) else None


def _walking(index: Sequence[Affine], variable: int) -> int | None:
    """The one dimension that a variable is the index of; None where there is another, or none."""
    mentions = [d for d, part in enumerate(index) if any(v == variable for _, v in part.terms)]
    if len(mentions) != 1:
        return None
    part = index[mentions[0]]
    alone = part.terms == ((1, variable),) and part.offset == 0 and not part.sizes
    return mentions[0] if alone else None


def _shared_out(body: Block) -> Iterator[Spread]:
    """The spreads over threads."""
    yield from (s for s in statements_within(body) if isinstance(s, Spread))


def _buffers(body: Block) -> set[int]:
    return {buffer for buffer, _ in accesses(body)}


def _bytes(program: Program, buffer: Buffer, place: Place) -> int | None:
    """The bytes of what a buffer keeps; None where they are known at run time only."""
    dims = [buffer.dims[d] for d in place.kept]
    extents = [program.sizes[size].fixed for size in dims]
    if None in extents:
        return None
    known = [extent or 0 for extent in extents]
    if place.space == "shared" and (longer := _longer(program, buffer.dtype, dims)):
        known[-1] = longer
    return BYTES[buffer.dtype] * prod(known)


def _folded(body: Block, places: dict[int, Place]) -> Block:
    """A block in which buffers are indexed by the dimensions that they keep."""

    def scalar(value: Scalar) -> Scalar:
        match value:
            case Load() if value.buffer in places:
                return replace(value, index=_kept((value.buffer, value.index), places))
            case Convert():
                return replace(value, argument=scalar(value.argument))
            case Apply():
                return replace(value, arguments=tuple(scalar(a) for a in value.arguments))
            case Select():
                return replace(value, then=scalar(value.then), otherwise=scalar(value.otherwise))
            case _:
                return value

    def change(s: Statement) -> Statement:
        match s:
            case Store():
                index = _kept((s.buffer, s.index), places) if s.buffer in places else s.index
                return replace(s, index=index, value=scalar(s.value))
            case Define() | Change():
                return replace(s, value=scalar(s.value))
            case _:
                return s

    return map_statements(body, change)


def _kept(access: Access, places: dict[int, Place]) -> tuple[Affine, ...]:
    buffer, index = access
    return tuple(index[d] for d in places[buffer].kept)
