"""The memory of private buffers of a GPU: a thread's own, shared by a block, or in the workspace.

Example, where threads share i1 and j1, and k1 and j1 of the copy:
    in:   memory acc f64[16,16] private; copy f32[8,16] private; row f32[n_j] private
    out:  memory acc f64[] local; copy f32[8,16] shared; row f32[n_j] private

A buffer that only one iteration of a thread accesses belongs to that thread. So does a buffer that is always indexed by
the variables of thread-mapped loops: each thread accesses its own elements, and these dimensions are dropped. Any other
buffer is shared by the block. Threads have little memory and blocks more; a buffer that does not fit, or has no
constant extents, is in the workspace if the kernel runs over a grid of threads. Rows of shared memory are padded if
threads that step from row to row would have bank conflicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ilang.core.calculus.affine import Affine, outermost_first, variables_of
from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.rewriting import Access, accesses, parts_of, with_indices
from ilang.core.ir.scalar import Load
from ilang.core.ir.shaped import Size
from ilang.core.passes.gpu.banks import row_of, rows_of
from ilang.core.passes.gpu.blocks import Refusal
from ilang.core.passes.gpu.transposes import rows_for, sector_of
from ilang.core.record import record, replace

SMALLER = "split their axes into smaller parts, or stage it further inside"


@record
class Placement:
    """The space of a buffer, and the dimensions that it keeps there.

    Threads read ``wide`` elements of it at a time; ``sector`` threads along a row of memory write down a column of it.
    Neighbors among threads touch elements ``across`` its rows. A ``double`` one has room for two. ``rows`` are its
    extents where they have room for more than is kept. All dimensions but the ``leading`` ones are a row of a buffer
    that threads read so.
    """

    space: ir.Space
    kept: tuple[int, ...]
    wide: int = 1
    sector: int = 0
    across: bool = False
    double: bool = False
    rows: tuple[int, ...] = ()
    leading: int = 1

    def has_rows(self) -> bool:
        """Whether all dimensions but the ``leading`` ones are one row."""
        return self.space == "shared" and (self.wide > 1 or self.sector > 0)


Places = Mapping[int, Placement]
"""The places of private buffers that there is room for."""


def with_spaces(program: ir.Program, places_of: Sequence[Places]) -> ir.Program:
    """The program with a space for each private buffer of its kernels that has a place."""
    buffers, sizes, kernels = list(program.buffers), list(program.sizes), []
    double: set[int] = set()
    for kernel, places in zip(program.kernels, places_of, strict=True):
        for number, place in places.items():
            dims = tuple(buffers[number].dims[d] for d in place.kept)
            if place.space == "shared":
                extents = _extents(program, number, place)
                sizes += [Size(str(extent), extent, ()) for extent in extents or ()]
                dims = tuple(range(len(sizes) - len(extents or ()), len(sizes)))
            buffers[number] = replace(buffers[number], space=place.space, dims=dims, padded=False)
        kernels.append(replace(kernel, body=_folded(program, kernel.body, places)))
        double |= {number for number, place in places.items() if place.double}
    buffers = [replace(b, double=n in double) if b.double else b for n, b in enumerate(buffers)]
    return replace(program, buffers=tuple(buffers), sizes=tuple(sizes), kernels=tuple(kernels))


def _extents(program: ir.Program, number: int, place: Placement) -> list[int] | None:
    """The extents of what a buffer keeps; None where one is known at run time only.

    Rows of memory that a block shares are longer by as many elements as threads read at a time where threads that step
    from row to row would all meet in one bank. Where threads write down columns, ``transposes.py`` says how long rows
    are, and where a buffer has several dimensions ``banks.py``.
    """
    buffer, device = program.buffers[number], program.machine.gpu()
    known = _known(program, number, place.kept)
    if known is None or place.space != "shared" or len(known) < 2:
        return known
    around = max(1, device.banks * device.bank_bytes // BYTES[buffer.dtype])
    if place.has_rows():
        row = prod(known[1:])
        if 1 < place.leading:
            return list(place.rows)
        if place.sector:
            return [known[0], rows_for(program, number, place.sector, row)]
        return [known[0], row + place.wide * (place.across and row % around == 0)]
    return list(place.rows) or known


def _known(program: ir.Program, number: int, kept: Sequence[int]) -> list[int] | None:
    """The extents of some dimensions of a buffer; None where one is known at run time only."""
    extents = [program.sizes[program.buffers[number].dims[d]].fixed for d in kept]
    known = [extent for extent in extents if extent is not None]
    return known if len(known) == len(extents) else None


def _wide(program: ir.Program, body: ir.Block, number: int) -> int:
    """The number of elements next to each other that threads may read at a time of a buffer.

    Elements along an unrolled loop over the last dimension are read so.
    """
    vector = program.machine.vector_lanes(program.buffers[number].dtype)
    indices = [index for buffer, index in accesses(body) if buffer == number]
    if any(part.looked or part.sizes for index in indices for part in index):
        return 1
    for loop in ir.statements_within(body):
        if not isinstance(loop, ir.For) or loop.role != "u":
            continue
        whole = (program.sizes[loop.size].fixed or 1) % vector == 0
        for buffer, index in accesses(loop.body):
            if whole and buffer == number and index[-1].coefficient(loop.variable) == 1:
                return vector
    return 1


def placed(program: ir.Program, spread: ThreadLoop) -> Places | Refusal:
    """The places of the private buffers of a spread that is all of a kernel, or that blocks have no room for them."""
    device = program.machine.gpu()
    touched = {buffer for buffer, _ in accesses((spread,))}
    private = sorted(number for number in touched if program.buffers[number].private)
    places: dict[int, Placement] = {}
    most: dict[ir.Space, int] = {
        "local": device.local_bytes,
        "shared": device.shared_bytes // spread.parts(),
    }
    used: dict[ir.Space, int] = {"local": 0, "shared": 0}
    kept: dict[ir.Space, list[int]] = {"local": [], "shared": []}
    for number in private:
        place = _place(program, spread, number)
        size = _bytes(program, number, place)
        if size is None and spread.over != "grid":
            problem = f"the threads of a block share {program.buffers[number].name}, of a size known only at run time"
            return Refusal("E0333", problem, SMALLER)
        if size is None or (spread.over == "grid" and most[place.space] < used[place.space] + size):
            continue
        used[place.space] += size
        kept[place.space].append(number)
        places[number] = place
    for space, bytes_ in used.items():
        if most[space] < bytes_:
            named = ((program.buffers[n].name, places[n].double) for n in kept[space])
            names = ", ".join(f"{name} twice" if double else name for name, double in named)
            whose = "a block shares" if space == "shared" else "a thread keeps"
            problem = f"{whose} {bytes_:,} bytes ({names}), and has room for {most[space]:,}"
            return Refusal("E0333", problem, SMALLER, limit=space == "shared")
    return places


def _place(program: ir.Program, spread: ThreadLoop, number: int) -> Placement:
    """The place of a buffer, if there is room."""
    every = tuple(range(len(program.buffers[number].dims)))
    if spread.over == "grid":
        return Placement("local", every)
    inside = [s for s in ir.every(spread.body, ThreadLoop) if number in _buffers(s.body)]
    count = sum(buffer == number for buffer, _ in accesses(spread.body))
    if count == sum(buffer == number for s in inside for buffer, _ in accesses(s.body)):
        owned = owned_dimensions(program, inside, number)
        if owned is not None:
            return Placement("local", tuple(d for d in every if d not in owned))
        if len(inside) == 1 and not _is_told_apart(inside[0], number):
            return Placement("local", every)
    return _shared_place(program, spread.body, number, inside)


def _shared_place(
    program: ir.Program, body: ir.Block, number: int, inside: Sequence[ThreadLoop]
) -> Placement:
    """The place of a buffer in shared memory, its rows such that threads meet in few banks."""
    buffer = program.buffers[number]
    every = tuple(range(len(buffer.dims)))
    place = Placement(
        "shared",
        every,
        _wide(program, body, number),
        max((sector_of(program, s, number) for s in inside), default=0),
        any(_is_across(s, number) for s in inside),
        buffer.double and loop_around(program, body, number) is not None,
    )
    known = _known(program, number, every)
    if known is None or len(known) < 2:
        return place
    if not place.has_rows():
        return replace(place, rows=tuple(rows_of(program, inside, number, known)))
    leading = _leading(inside, number)
    if place.sector or leading <= 1:
        return place
    row = row_of(program, inside, number, known, leading, place.wide)
    return replace(place, rows=(*known[:leading], row), leading=leading)


def _leading(spreads: Sequence[ThreadLoop], number: int) -> int:
    """The dimensions of a copy before those that walk the same dimension of what is copied as its last one does."""
    for s in ir.every([s for spread in spreads for s in spread.body], ir.Store):
        loads = [part for part in parts_of(s) if isinstance(part, Load)]
        if s.buffer != number or len(loads) != 1 or loads[0].buffer == number:
            continue
        last = s.index[-1].variables()
        walked = next((p.variables() for p in loads[0].index if last <= p.variables()), None)
        if not last or walked is None:
            continue
        others = (
            d for d in range(len(s.index) - 1, -1, -1) if not s.index[d].variables() <= walked
        )
        return next(others, 0) + 1
    return 1


def loop_around(program: ir.Program, body: ir.Block, number: int) -> ir.For | None:
    """The innermost loop of all threads together that has all uses of a buffer inside; None where it runs once."""
    count, around, inside = sum(buffer == number for buffer, _ in accesses(body)), None, True
    while inside:
        inside = False
        for s in body:
            for part in ir.blocks_of(s) if isinstance(s, (ir.For, ir.If)) else ():
                if sum(buffer == number for buffer, _ in accesses(part)) == count:
                    around, body, inside = s if isinstance(s, ir.For) else around, part, True
    if around is None or (program.sizes[around.size].fixed or 2) < 2:
        return None
    return around


def _is_across(spread: ThreadLoop, number: int) -> bool:
    """Whether adjacent threads touch elements of a buffer in other rows, which its first dimension numbers."""
    every = [loop for loop in spread.loops if loop.role == "tx"] or [*spread.loops]
    return bool(every) and any(
        every[-1].variable in part.axes()
        for buffer, index in accesses(spread.body)
        if buffer == number
        for part in index[:1]
    )


def _is_told_apart(spread: ThreadLoop, number: int) -> bool:
    """Whether a buffer is indexed by the variables of the loops of a spread: it is not one iteration's."""
    shared = {loop.variable for loop in spread.loops}
    return any(
        shared & variables_of(index) for buffer, index in accesses(spread.body) if buffer == number
    )


def owned_dimensions(
    program: ir.Program, spreads: Sequence[ThreadLoop], number: int
) -> set[int] | None:
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
    dimensions: set[tuple[int | None, ...]] = set()
    for s in spreads:
        dimensions |= {
            tuple(_dimension_of(index, loop.variable) for loop in s.loops)
            for buffer, index in accesses(s.body)
            if buffer == number
        }
    if len(dimensions) != 1:
        return None
    (dims,) = dimensions
    owned = {d for d in dims if d is not None}
    return owned if None not in dims and len(owned) == len(dims) else None


def _dimension_of(index: Sequence[Affine], variable: int) -> int | None:
    """The one dimension that a variable is the index of; None where there is another, or none."""
    mentions = [d for d, part in enumerate(index) if variable in part.variables()]
    if len(mentions) != 1:
        return None
    part = index[mentions[0]]
    alone = part.axis() == variable
    return mentions[0] if alone else None


def _buffers(body: ir.Block) -> set[int]:
    return {buffer for buffer, _ in accesses(body)}


def _bytes(program: ir.Program, number: int, place: Placement) -> int | None:
    """The bytes of what a buffer keeps; None where they are known at run time only."""
    extents = _extents(program, number, place)
    if extents is None:
        return None
    return BYTES[program.buffers[number].dtype] * prod(extents) * (1 + place.double)


def _folded(program: ir.Program, body: ir.Block, places: Places) -> ir.Block:
    def index_of(access: Access) -> tuple[Affine, ...]:
        return _kept(program, access, places) if access[0] in places else access[1]

    return with_indices(body, index_of)


def _kept(program: ir.Program, access: Access, places: Places) -> tuple[Affine, ...]:
    """The index of an element by the dimensions that are kept, all but the first in one where these are one row."""
    buffer, index = access
    place = places[buffer]
    parts = tuple(index[d] for d in place.kept)
    leading = place.leading
    if not place.has_rows() or len(parts) <= leading + 1:
        return parts
    column, step = Affine(()), 1
    for d, part in reversed([*zip(place.kept, parts, strict=True)][leading:]):
        column = column + step * part
        step *= program.sizes[program.buffers[buffer].dims[d]].fixed or 1
    return (*parts[:leading], outermost_first(column))
