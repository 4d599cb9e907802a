"""Accumulation of each reduction of a kernel: in a tile, partial sums, chunks, or term by term.

Example, a matrix product, a sum of columns and a sum of all:
    in:   for k: for k': for i' in 0..6: for j' in 0..64: acc[i',j'] += ...
          for i: for j' in 0..2048: for i' in 0..8: acc[j'] += ...
          for i: acc += ...
    out:  a tile of 6 by 64 of i' j', core k', blocks of k
          partial sums over i'
          chunks of i

Output loops of constant extent inside the reduced loops are the tile; the reduced loops around them are its core. The
threads of a GPU add as many terms of f32 in registers as a tile of a CPU does before others are added to them: `RUN`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ilang.core.dtype import BYTES, FLOATS
from ilang.core.ir.extent import fixed, is_divided, part_extent
from ilang.core.ir.schedule import (
    THREAD_ROLES,
    UNIT_ROLES,
    Accumulation,
    Chunks,
    Instance,
    Loop,
    Nest,
    Opened,
    PartialSums,
    Parts,
    Plan,
    RegisterTile,
    Scheduled,
    ThreadTile,
    TilePartials,
    parted,
)
from ilang.core.ir.shaped import Assignment
from ilang.core.record import record, replace
from ilang.core.schedule.choose.terms import MOST_TERMS, PART, RUN, RUNS
from ilang.core.transform.scans import scan_of


@record
class _Reduction:
    """One reduction: its own loops from the outermost reduced one inside of parts on, how often each runs, or None.

    ``leading`` are its own loops around those.
    """

    program: Scheduled
    instance: Instance
    node: Assignment
    nest: Nest
    dtype: str
    leading: int
    loops: tuple[Loop, ...]
    counts: tuple[int | None, ...]
    reduced: frozenset[int]

    def inside(self, loops: Sequence[Loop]) -> set[int]:
        """The sites that stand right inside some loops."""
        return {self.nest.order.index(loop) + 1 for loop in loops} & set(self.nest.sites)

    def walks_interval(self, loops: Sequence[Loop]) -> bool:
        """Whether some loops walk an interval of a dimension."""
        return any(loop.axis in self.instance.intervals for loop in loops)


def accumulated(program: Scheduled, plan: Plan) -> Plan:
    """The plan of a kernel with the accumulation of each of its reductions."""
    lent = _lent(plan)
    scans = tuple(replace(each, along=_along(program, each)) for each in plan.instances)
    plan = replace(plan, instances=scans)
    instances = tuple(
        replace(
            instance,
            accumulation=_accumulation(program, plan, number, lent),
            parts=_parts(program, instance),
        )
        for number, instance in enumerate(plan.instances)
    )
    return replace(plan, instances=instances)


def _accumulation(
    program: Scheduled, plan: Plan, number: int, lent: frozenset[int]
) -> Accumulation | None:
    """The accumulation of one instance; of those ``lent``, loops are open around several."""
    reduction = _reduction(program, plan.instances[number])
    if reduction is None:
        return None
    if number in plan.online:
        return _corrected(reduction, plan, number)
    if program.machine.device is not None:
        return _chunks(reduction) or _thread_tile(reduction)
    if plan.instances[number].along is not None:
        return None
    if all(loop.axis in reduction.reduced for loop in reduction.loops):
        return _chunks(reduction)
    each = _tile(reduction) or _partial_sums(reduction)
    return each if number in lent else _in_chunks(reduction, each)


def _along(program: Scheduled, instance: Instance) -> Loop | None:
    """The loop along a scan, from one iteration of which to the next its accumulators are kept; None of others."""
    reduction = None if program.machine.device is not None else _reduction(program, instance)
    scan = None if reduction is None else scan_of(program.shaped, instance.value)
    if reduction is None or scan is None:
        return None
    _, along, over = scan
    at = reduction.nest.order.index(reduction.loops[0])
    is_outside = reduction.nest.order[max(0, at - 1) : at + 1] == (Loop(along), Loop(over))
    return Loop(along) if is_outside else None


def _lent(plan: Plan) -> frozenset[int]:
    """The instances of which other roots of the kernel share loops, which are then open around both."""
    staged = {source.instance for each in plan.instances for source in each.sources.values()}
    roots = (each for number, each in enumerate(plan.instances) if number not in staged)
    return frozenset(opened.instance for root in roots for opened in root.chain)


def _reduction(program: Scheduled, instance: Instance) -> _Reduction | None:
    """The reduction of an instance over loops of its own; None where it shares one of them, or reduces nothing."""
    node, nest = program.assigned(instance.value)
    reduced = frozenset(node.reduced_axes()) if node.base is None else frozenset()
    if not reduced or any(loop.axis in reduced for loop in instance.home):
        return None
    loops_inside = [loop for loop in nest.order if loop not in instance.home]
    parts, count = _alone(program, instance), len(loops_inside)
    folded = (
        n for n, loop in enumerate(loops_inside) if loop.axis in reduced and loop not in parts
    )
    leading = next(folded, count)
    if leading == count:
        return None
    loops, sizes = tuple(loops_inside[leading:]), program.shaped.sizes
    counts = tuple(
        fixed(sizes, part_extent(sizes, instance.extents[x.axis], nest.factors[x.axis], x.part))
        for x in loops
    )
    dtype = program.shaped.tensors[instance.value].dtype
    return _Reduction(program, instance, node, nest, dtype, leading, loops, counts, reduced)


def copies(program: Scheduled, plan: Plan) -> list[int]:
    """The number of times that each instance of a kernel stands in its text.

    Partial sums compute their edges apart.
    """
    times: list[int] = []
    for instance in plan.instances:
        if not instance.chain:
            times.append(1)
            continue
        around = instance.chain[-1]
        times.append(times[around.instance] * (1 + _is_apart(program, plan, around)))
    return times


def _is_apart(program: Scheduled, plan: Plan, around: Opened) -> bool:
    """Whether what is inside a loop stands twice, for where all of a partial sum is inside and for where not."""
    instance = plan.instances[around.instance]
    nest, held, sizes = program.nests[instance.value], instance.accumulation, program.shaped.sizes
    assert nest is not None
    if isinstance(held, Chunks):
        held = held.each
    if not isinstance(held, PartialSums) or around.loop not in (*held.outputs, *held.core):
        return False
    return not all(
        is_divided(sizes, instance.extents[loop.axis], nest.factors[loop.axis])
        or not nest.factors[loop.axis]
        for loop in held.core
    )


# -- parts -------------------------------------------------------------------------------------------------------------


def _parts(program: Scheduled, instance: Instance) -> Parts | None:
    """The parts of a reduction; the threads of a block share those of an element where elements are few, and parts not.

    One thread for each element would then leave most of a device idle, and wait for one part after the other.
    """
    node, nest, device = (*program.assigned(instance.value), program.machine.device)
    loops, sizes = parted(node, nest), program.shaped.sizes
    if not loops:
        return None
    parts = _counts(program, instance, loops)
    elements = [fixed(sizes, instance.extents[axis]) for axis in dict.fromkeys(node.output_axes())]
    least, most = _shared(program, instance)
    inside = nest.order[nest.order.index(loops[-1]) + 1 :]
    if least and {loop.axis for loop in inside}.isdisjoint(node.output_axes()):
        is_row = nest.role(len(nest.order) - 1) in THREAD_ROLES
        return Parts(
            loops, is_row, least, most, not is_row
        )  # a row has a block for each part: few elements have parts
    if device is None or None in elements or (None in parts and not least):
        return Parts(loops, False, least, most)
    are_few = prod(count or 0 for count in elements) <= program.machine.threads.most_blocks
    are_many = None in parts or device.warp <= prod(count or 0 for count in parts)
    return Parts(loops, are_few and are_many, least, most)


def _alone(program: Scheduled, instance: Instance) -> tuple[Loop, ...]:
    """The loops of a reduction each of whose iterations has a result of its own."""
    node, nest = program.assigned(instance.value)
    return () if _shared(program, instance)[0] else parted(node, nest)


def _counts(program: Scheduled, instance: Instance, loops: Sequence[Loop]) -> list[int | None]:
    sizes, factors = program.shaped.sizes, program.assigned(instance.value)[1].factors
    return [
        fixed(sizes, part_extent(sizes, instance.extents[x.axis], factors[x.axis], x.part))
        for x in loops
    ]


def _shared(program: Scheduled, instance: Instance) -> tuple[int, int]:
    """The least iterations of a loop over parts that share a result, and the most blocks of a device for them.

    Both numbers are 0 where it is known how many parts there are, and tiles, or parts are of anything but tiles of
    blocks, elements that their threads share, or elements of threads, which are as many as a device holds.
    """
    node, nest, device = (*program.assigned(instance.value), program.machine.device)
    loops = parted(node, nest)
    if device is None or len(loops) != 1 or instance.chain or instance.home:
        return 0, 0
    at, outputs = nest.order.index(loops[0]), set(node.output_axes())
    around, inside = nest.order[:at], nest.order[at + 1 :]
    tile = [x for x in inside if x.axis in outputs]
    elements = _counts(program, instance, tile)
    known = None not in _counts(program, instance, (*around, *loops))
    if known or None in elements or {x.axis for x in around} - outputs:
        return 0, 0
    threads = [x for x in inside if nest.role(nest.order.index(x)) in THREAD_ROLES]
    is_row = bool(threads) and inside == (Loop(loops[0].axis, 1),)
    is_column = not threads and inside and {x.axis for x in inside} == {loops[0].axis}
    if not tile and not (around and (is_row or is_column)):
        return 0, 0
    terms = [x for x in inside if x.axis not in outputs]
    each = prod(count or 1 for count in _counts(program, instance, terms))
    sums = prod(
        count or 1
        for loop, count in zip(tile, elements, strict=True)
        if nest.role(nest.order.index(loop)) not in THREAD_ROLES
    )
    blocks = 1 if 2 * program.machine.tiles.rows * program.machine.tiles.lanes <= sums else 2
    if is_column:
        return 1, device.parts.full * device.multiprocessors * device.block_threads
    least = program.machine.threads.block_work if is_row else PART
    return max(1, -(-least // each)), blocks * device.multiprocessors


# -- chunks ------------------------------------------------------------------------------------------------------------


def _chunks(reduction: _Reduction) -> Chunks | None:
    """The chunks that threads share of a reduction outside all loops; None where it is too short for that."""
    machine, counts = reduction.program.machine, reduction.counts
    if reduction.instance.chain or reduction.leading or machine.threads.most < 2:
        return None
    if any(loop.axis not in reduction.reduced for loop in reduction.loops):
        return None
    work = machine.threads.block_work
    if None not in counts and prod(count or 0 for count in counts) < work:
        return None
    multiple = machine.most_sum_lanes() if len(counts) == 1 else 1
    return Chunks(reduction.loops[0], machine.threads.most_blocks, work, multiple)


def _in_chunks(
    reduction: _Reduction, each: RegisterTile | PartialSums | None
) -> Accumulation | None:
    """Chunks of a reduction with output loops inside; where one is enough, what ``each`` of them would have."""
    machine, counts = reduction.program.machine, reduction.counts
    threads, around = machine.threads, reduction.nest.order[: reduction.leading]
    if reduction.instance.chain or any(reduction.nest.roles) or threads.most < 2:
        return each
    if around and not _are_blocks(reduction, around, each):
        return each
    named = list(zip(reduction.loops, counts, strict=True))
    elements = [count for loop, count in named if loop.axis not in reduction.reduced]
    strips = _counts(reduction.program, reduction.instance, around)
    least = prod(count or 1 for count in (*elements, *strips))
    work = max(threads.block_work, threads.block_terms * least)
    is_short = None not in counts and prod(count or 0 for count in counts) < work
    if is_short or machine.accumulators(-1) < 2 * least:
        return each
    if isinstance(each, RegisterTile):
        each = replace(each, outer=each.outer + each.blocks, blocks=(), kept=False)
    if each is not None and not each.outer:
        return each
    return Chunks(reduction.loops[0], threads.most_blocks, threads.block_work, 1, each, around)


def _are_blocks(
    reduction: _Reduction, around: Sequence[Loop], each: RegisterTile | PartialSums | None
) -> bool:
    """Whether loops around a reduction are over blocks of its accumulators, perhaps one alone: too few for threads.

    Strips of a known row are too few where there are more blocks of terms, long ones where a strip is in memory: the
    results of a block are written and read once more. What is computed inside of
    such loops would be computed again in each chunk.
    """
    inside = {loop.axis for loop in reduction.loops} - reduction.reduced
    if not {x.axis for x in around} <= inside or _stages_inside(reduction, around):
        return False
    if not isinstance(each, RegisterTile) and None in reduction.counts:
        return True
    strips = _counts(reduction.program, reduction.instance, around)
    fewer = None not in strips and prod(n or 0 for n in strips) < (reduction.counts[0] or 0)
    if not isinstance(each, RegisterTile):
        named = zip(reduction.loops, reduction.counts, strict=True)
        terms = prod(count or 1 for loop, count in named if loop.axis in reduction.reduced)
        return fewer and RUN * reduction.program.machine.threads.most_blocks <= terms
    return fewer and len(each.elements) == 1 and bool(each.outer + each.blocks)


# -- register tiles ----------------------------------------------------------------------------------------------------


def _tile(reduction: _Reduction) -> RegisterTile | None:
    loops, counts, reduced = reduction.loops, reduction.counts, reduction.reduced
    last = max(n for n, loop in enumerate(loops) if loop.axis in reduced)
    first = _core(reduction, last, MOST_TERMS)
    core, elements = loops[first : last + 1], loops[last + 1 :]
    most = reduction.program.machine.tiles.most_elements
    if reduction.walks_interval((*core, *elements)) or not elements:
        return None
    if most < prod(count or most + 1 for count in counts[last + 1 :]):
        return None
    if reduction.inside(elements[:-1]) or _ends_within(reduction, elements):
        return None
    if not _fills_registers(reduction, elements, counts[-1]):
        return None
    from ilang.core.schedule.registers import micro_tiles, vector_lanes

    terms = prod(count or MOST_TERMS + 1 for count in counts[first : last + 1])
    exact = terms > MOST_TERMS or reduction.dtype not in FLOATS
    dtype = reduction.node.acc_dtype() if exact else reduction.dtype
    outer = loops[:first]
    added = reduction.node.acc == "+" and not exact and _is_bare(reduction, outer)
    extents = tuple(count or 0 for count in counts[last + 1 :])
    partial = _partials(reduction, core, counts[first : last + 1], dtype)
    machine = reduction.program.machine
    may_overlap = partial is None or machine.holds_sums(prod(extents), dtype)
    vector = vector_lanes(machine, dtype, extents[-1], may_overlap)
    parts = tuple(micro_tiles(machine, extents, vector, BYTES[dtype])) if 1 < vector else ()
    head, blocks = ((), outer) if added else (outer, ())
    tile = RegisterTile(head, blocks, core, elements, extents, dtype, False, partial, vector, parts)
    return replace(tile, kept=not tile.outer and _is_kept(reduction, tile))


def _fills_registers(reduction: _Reduction, elements: Sequence[Loop], count: int | None) -> bool:
    """Whether a whole axis is worth a tile: one that registers hold, as splits are, of integers in whole vectors."""
    nest, machine = reduction.nest, reduction.program.machine
    if nest.written or len(elements) > 1 or nest.factors[elements[0].axis] or count is None:
        return True
    held = max(variant.held_bytes for variant in machine.variants)
    vector = machine.vector_lanes(reduction.dtype)
    is_whole = count <= vector or count % vector == 0 or reduction.dtype in FLOATS
    return is_whole and count * BYTES[reduction.dtype] <= held


def _core(reduction: _Reduction, last: int, most: int) -> int:
    """The first loop of the core: reduced loops up to ``last`` that sum ``most`` terms, or all if that is unknown."""
    start = last
    while start > 0 and reduction.loops[start - 1].axis in reduction.reduced:
        start -= 1
    first, terms = last + 1, 1
    while first > start:
        terms *= reduction.counts[first - 1] or most + 1
        if terms > most:
            break
        first -= 1
    return first if first <= last else start


def _ends_within(reduction: _Reduction, elements: Sequence[Loop]) -> bool:
    """Whether two loops of a tile are parts of one ragged axis: the outer one says where the inner one ends."""
    sizes = reduction.program.shaped.sizes
    ragged = [
        loop.axis
        for loop in elements
        if not is_divided(
            sizes, reduction.instance.extents[loop.axis], reduction.nest.factors[loop.axis]
        )
    ]
    return len(set(ragged)) < len(ragged)


def _is_bare(reduction: _Reduction, outer: Sequence[Loop]) -> bool:
    """Whether loops outside a tile are all reduced, of axes of their own, with nothing computed between them."""
    return (
        all(loop.axis in reduction.reduced for loop in outer)
        and len({loop.axis for loop in outer}) == len(outer)  # else one ends where the other says
        and not _stages_inside(reduction, outer)
    )


def _stages_inside(reduction: _Reduction, loops: Sequence[Loop]) -> bool:
    """Whether anything is staged right inside one of these loops: by the assignment, or by what it stages."""
    program = reduction.program
    todo = [(reduction.instance.value, frozenset(loops))]
    while todo:
        value, among = todo.pop()
        node, nest = program.assigned(value)
        for number, (read, site) in enumerate(zip(node.reads, nest.sites, strict=True)):
            if not among or not site:
                continue
            if nest.order[site - 1] in among:
                return True
            fusion = program.fusions[value][number]
            if fusion is not None:
                shared = frozenset(o for o, r in fusion.loops.items() if r in among)
                todo.append((read.value, shared))
    return False


def _partials(
    reduction: _Reduction, core: Sequence[Loop], counts: Sequence[int | None], dtype: str
) -> TilePartials | None:
    """The partial sums of a tile; None where its terms are few, or no sums of f32."""
    terms = prod(count or 1 for count in counts)
    if dtype != "f32" or reduction.node.acc != "+" or terms <= RUN:
        return None
    depth = -1
    for loop, count in zip(core, counts, strict=True):
        if terms <= RUN:
            break
        terms //= count or 1
        depth += 1
        if _stages_inside(reduction, (loop,)):
            break
    return TilePartials(depth, max(1, RUN // terms))


def _is_kept(reduction: _Reduction, tile: RegisterTile) -> bool:
    """Whether what is staged in a loop has the elements of its tile, and no others."""
    instance, node, nest = reduction.instance, reduction.node, reduction.nest
    sizes = reduction.program.shaped.sizes
    kept = []
    for entry in instance.kept:
        dim, part = (entry.axis, entry.part) if isinstance(entry, Loop) else (entry, 0)
        axis = node.target[dim].axis()
        if axis is None or (nest.factors[axis] and not isinstance(entry, Loop)):
            return False
        kept.append(Loop(axis, part))
    counts = tuple(fixed(sizes, extent) for extent in instance.kept.values())
    same = tuple(kept) == tile.elements and counts == tile.extents
    return bool(instance.chain) and same and tile.dtype == reduction.dtype


# -- tiles of threads --------------------------------------------------------------------------------------------------


def _thread_tile(reduction: _Reduction) -> ThreadTile | None:
    """The partial sums that each thread adds in f32; None where their length is not known, or threads share one."""
    loops, counts, reduced = reduction.loops, reduction.counts, reduction.reduced
    if reduction.dtype != "f32" or reduction.node.acc != "+":
        return None
    last = max(n for n, loop in enumerate(loops) if loop.axis in reduced)
    first = _core(reduction, last, RUN)
    core, elements = loops[first : last + 1], loops[last + 1 :]
    if prod(count or RUN + 1 for count in counts[first : last + 1]) > RUN:
        return None
    roles = dict(zip(reduction.nest.order, reduction.nest.roles, strict=False))
    threads = {loop for loop in loops if roles.get(loop) in THREAD_ROLES}
    if threads & set(core) or reduction.walks_interval(loops[first:]):
        return None
    most = reduction.program.machine.tiles.most_elements
    positions = [n for n, loop in enumerate(elements, last + 1) if loop not in threads]
    each = prod(counts[n] or 0 for n in positions)
    device = reduction.program.machine.device
    if device is not None and {*UNIT_ROLES} & {*roles.values()}:  # lanes of a warp share its sums
        each //= device.warp
    if None in counts[last + 1 :] or most < each:
        return None
    if reduction.inside(elements[:-1]):
        return None
    start, most = _runs(reduction, first) if elements else (first, 0)
    return ThreadTile(loops[:start], loops[start:first], core, elements, reduction.dtype, most)


def _runs(reduction: _Reduction, first: int) -> tuple[int, int]:
    """The first of the loops right around a run whose sums are added in f32, element by element: ``RUNS`` runs at most.

    A loop that has more iterations, or may have, is gone through in strips of the second number of them: the outermost
    one of its axis, so that nothing else ends it, and one in which no copy is filled, since strips begin anew.
    """
    left = RUNS
    while 0 < first:
        loop, count = reduction.loops[first - 1], reduction.counts[first - 1]
        if loop.axis not in reduction.reduced or reduction.walks_interval((loop,)):
            break
        if count is None or left < count:
            is_apart = loop.part == 0 and not _stages_inside(reduction, (loop,))
            return (first - 1, left) if is_apart and 1 < left else (first, 0)
        left //= max(1, count)
        first -= 1
    return first, 0


# -- partial sums ------------------------------------------------------------------------------------------------------


def _partial_sums(reduction: _Reduction) -> PartialSums | None:
    """Partial sums of the innermost terms where those are reduced; None where they are not.

    The terms are constant, and those of several loops few. Lanes take the terms of one innermost loop, as many as each
    of them adds in one variable; more terms of a sum are added in the accumulator's type.
    """
    loops, reduced = reduction.loops, reduction.reduced
    first, terms, count, is_sum = len(loops), 1, 1, reduction.node.acc == "+"
    while first > 0 and loops[first - 1].axis in reduced:
        extent = reduction.counts[first - 1]
        terms *= extent or MOST_TERMS + 1
        few = terms <= reduction.program.machine.tiles.unrolled_terms
        is_row = first == len(loops) and (terms <= MOST_TERMS or (is_sum and extent is not None))
        if not few and not is_row:
            break
        first, count = first - 1, terms
    start = first
    while start > 0 and loops[start - 1].axis not in reduced:
        start -= 1
    if first in (0, len(loops)) or start in (0, first) or reduction.inside(loops[start:-1]):
        return None
    if reduction.dtype not in FLOATS or reduction.walks_interval(loops[start:]):
        return None
    dtype = reduction.dtype if count <= MOST_TERMS else reduction.node.acc_dtype()
    return PartialSums(loops[:start], loops[start:first], loops[first:], dtype)


# -- reductions that are corrected -------------------------------------------------------------------------------------


def _corrected(reduction: _Reduction, plan: Plan, number: int) -> Accumulation | None:
    """The accumulation of a sum that an online reduction corrects while it runs, as softmax corrects its sums.

    Registers hold a part of the sum only inside of loops in which nothing corrects it: a correction changes what is
    stored. Loops in which something does are moved out, around that part.
    """
    if reduction.program.machine.device is not None:
        shared = _thread_tile(reduction)
        if shared is None or not _is_still(plan, number, (*shared.core, *shared.elements)):
            return None
        return replace(shared, outer=shared.outer + shared.runs, runs=(), most=0)
    tile = _tile(reduction)
    if tile is not None and _is_still(plan, number, (*tile.core, *tile.elements)):
        return replace(tile, outer=tile.outer + tile.blocks, blocks=(), kept=False)
    sums = _partial_sums(reduction)
    if sums is None or not _is_still(plan, number, sums.core):
        return None
    moved = next(
        n for n in range(len(sums.outputs) + 1) if _is_still(plan, number, sums.outputs[n:])
    )
    outer, outputs = sums.outer + sums.outputs[:moved], sums.outputs[moved:]
    return replace(sums, outer=outer, outputs=outputs)


def _is_still(plan: Plan, number: int, loops: tuple[Loop, ...]) -> bool:
    """Whether nothing corrects a sum inside some of its loops: a part of it may then be in registers there."""
    running = plan.online[number]
    inside = {Opened(number, loop) for loop in loops}
    links = (*running.shifts, *running.divisors)
    return running.exact and not any(
        inside & set(plan.instances[link.instance].chain) for link in links
    )
