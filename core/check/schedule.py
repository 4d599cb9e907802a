"""Invariants of ``ir/schedule.py``."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import assert_never

from ilang.core.diagnostic import InternalError
from ilang.core.ir import schedule
from ilang.core.ir.extent import fixed, part_extent
from ilang.core.ir.ids import ValueId
from ilang.core.ir.shaped import Assignment
from ilang.core.walks import reached


def verify(scheduled: schedule.Scheduled) -> None:
    """Raise an InternalError (E9904) naming the first invariant that does not hold."""
    nodes = scheduled.shaped.nodes
    _demand(len(scheduled.nests) == len(nodes), "a nest, or None, per node", -1)
    _demand(len(scheduled.fusions) == len(nodes), "fusions per node", -1)
    for value, node in enumerate(nodes):
        nest = scheduled.nests[value]
        _demand(
            (nest is None) != isinstance(node, Assignment),
            "assignments have nests, inputs none",
            value,
        )
        if isinstance(node, Assignment) and nest is not None:
            _nest(node, nest, value)
    live = _live(scheduled)
    for value, node in enumerate(nodes):
        if value in live and isinstance(node, Assignment):
            _fusions(scheduled, node, value)
        else:
            _demand(not scheduled.fusions[value], "only live assignments have fusions", value)
    _groups(scheduled, live)


def _nest(node: Assignment, nest: schedule.Nest, value: int) -> None:
    _demand(len(nest.factors) == len(node.axes), "factors, or none, per axis", value)
    loops = {
        schedule.Loop(axis, part)
        for axis, factors in enumerate(nest.factors)
        for part in range(len(factors) + 1)
    }
    once = len(nest.order) == len(loops) and set(nest.order) == loops
    _demand(once, "the order names every loop part once", value)
    _demand(len(nest.sites) == len(node.reads), "a site, or None, per read", value)
    inside = all(site is None or 0 <= site <= len(nest.order) for site in nest.sites)
    _demand(inside, "a site is inside some of the loops", value)
    _demand(
        not nest.roles or len(nest.roles) == len(nest.order), "a role, or none, per loop", value
    )
    _demand(not nest.spaces or len(nest.spaces) == len(node.reads), "a space per read", value)


def _live(scheduled: schedule.Scheduled) -> set[int]:
    """The values that the roots of all groups are made of."""
    shaped = scheduled.shaped

    def owners(value: int) -> Iterator[int]:
        node = shaped.nodes[value]
        yield from map(shaped.owner, node.values()) if isinstance(node, Assignment) else ()

    roots = [root.value for group in scheduled.groups for root in group.roots]
    return {n for n in reached(roots, owners) if isinstance(shaped.nodes[n], Assignment)}


def _fusions(scheduled: schedule.Scheduled, node: Assignment, value: int) -> None:
    """The fusions of one assignment fit its reads, its nest and the nests of its producers."""
    nest, fusions = scheduled.nests[value], scheduled.fusions[value]
    assert nest is not None
    _demand(len(fusions) == len(node.reads), "a fusion, or None, per read", value)
    for read, fusion, site in zip(node.reads, fusions, nest.sites, strict=True):
        producer = scheduled.nests[read.value]
        computed = site is not None and producer is not None
        plain = not any(index.looked for index in read.index)
        _demand(plain or site is None, "what is read at a looked up index is computed whole", value)
        if fusion is None:
            first = nest.staged(node.reads.index(read))
            _demand(not computed or first is None, "a staged producer has a fusion", value)
            continue
        _demand(computed, "what is fused is staged", value)
        if producer is not None:
            _fusion(fusion, producer, nest.order[:site], value)


def _fusion(
    fusion: schedule.Fusion, producer: schedule.Nest, outside: tuple[schedule.Loop, ...], value: int
) -> None:
    inner, outer = list(fusion.loops), list(fusion.loops.values())
    _demand(set(inner) <= set(producer.order), "fused loops are loops of the producer", value)
    _demand(set(outer) <= set(outside), "fused loops are outside the site", value)
    _demand(
        all(loop.part == other.part for loop, other in fusion.loops.items()),
        "loops fuse part to part",
        value,
    )


def _groups(scheduled: schedule.Scheduled, live: set[int]) -> None:
    """Every value that is stored whole is a root of one group; loops are shared within a group."""
    roots = [root.value for group in scheduled.groups for root in group.roots]
    _demand(len(set(roots)) == len(roots), "a value is a root of one group", -1)
    whole = set(map(scheduled.shaped.owner, scheduled.shaped.outputs))
    for value in live:
        node, nest = scheduled.assigned(value)
        owner = scheduled.shaped.owner
        sources = {owner(ValueId(each.source)) for each in node.lookups()}
        for number, read in enumerate(node.reads):
            if nest.staged(number) is None or owner(read.value) != read.value:
                sources.add(owner(read.value))
        whole |= {source for source in sources if scheduled.nests[source] is not None}
        if node.base is not None:
            whole.add(node.base)
    _demand(whole == set(roots), "the roots are what is stored whole", -1)
    for group in scheduled.groups:
        _group(scheduled, group)


def _group(scheduled: schedule.Scheduled, group: schedule.Group) -> None:
    values = {root.value for root in group.roots}
    _demand(bool(values), "a group has a root", -1)
    for root in group.roots:
        nest, owner = scheduled.nests[root.value], scheduled.nests[root.owner]
        _demand(root.owner in values, "an owner is a root of its group", root.value)
        assert nest is not None
        assert owner is not None
        most = min(len(nest.order), len(owner.order))
        _demand(0 <= root.shared <= most, "shared loops are loops of both", root.value)
    _plan(scheduled, group)


def _plan(scheduled: schedule.Scheduled, group: schedule.Group) -> None:
    """The instances of a group are its roots and what they stage."""
    plan, first = group.plan, group.roots[0].value
    roots = [root.value for root in group.roots]
    computed = [instance.value for instance in plan.instances]
    _demand(computed[: len(roots)] == roots, "the first instances are the roots", first)
    if plan.online:
        _demand(len(roots) == 1, "a kernel with an online reduction has one root", first)
    numbers = range(len(plan.instances))
    known = all(number in numbers for number in (*plan.online, *plan.scalars))
    _demand(known, "a plan tells of its instances", first)
    delivered = {source.instance for each in plan.instances for source in each.sources.values()}
    staged = set(numbers[len(roots) :])
    _demand(delivered == staged, "an instance is a root or the source of a read", first)
    for number in numbers:
        _instance(scheduled, plan, number)


def _instance(scheduled: schedule.Scheduled, plan: schedule.Plan, number: int) -> None:
    """An instance shares loops that are open at its place, and what it stages is delivered."""
    instance = plan.instances[number]
    value = instance.value
    node, nest = scheduled.assigned(value)
    _demand(set(instance.home) <= set(nest.order), "shared loops are loops of the value", value)
    chain = set(instance.chain)
    _demand(chain.issuperset(instance.home.values()), "shared loops are around the place", value)
    _demand(len(instance.extents) == len(node.axes), "an extent per axis", value)
    for opened in instance.chain:
        owner = plan.instances[opened.instance]
        owner_nest = scheduled.nests[owner.value]
        is_own = (
            owner_nest is not None
            and opened.loop in owner_nest.order
            and opened.loop not in owner.home
        )
        _demand(is_own, "an instance opens the loops of a chain", value)
    if instance.parts is not None:
        outermost = [loop for loop in nest.order if loop.axis in node.reduced_axes()]
        leading = tuple(outermost[: len(instance.parts.loops)]) == instance.parts.loops
        alone = not instance.home and not instance.chain
        _demand(leading and alone, "parts are of a root, by its outermost reduced loops", value)
        one = not instance.parts.least or len(instance.parts.loops) == 1
        _demand(one, "iterations of one loop share results", value)
    if instance.accumulation is not None:
        _accumulation(scheduled, instance, instance.accumulation)
    if instance.along is not None:
        reduced = [n for n, x in enumerate(nest.order) if x.axis in node.reduced_axes()]
        is_outside = nest.order[: reduced[0]][-1:] == (instance.along,)
        _demand(is_outside, "a scan goes along the loop right outside its terms", value)
    for start, _ in instance.intervals.values():
        known = all(opened in chain for _, opened in start)
        _demand(known, "an interval begins at loops around its place", value)
    for read, source in instance.sources.items():
        same = plan.instances[source.instance].value == read.value
        _demand(same, "the source of a read delivers its value", value)
    for n, (read, site) in enumerate(zip(node.reads, nest.sites, strict=True)):
        fusion = scheduled.fusions[value][n]
        if n in instance.copies:
            _demand(fusion is None and site is not None, "a copy is staged", value)
        elif fusion is not None:
            _demand(read in instance.sources, "a staged read has a source", value)


def _accumulation(
    scheduled: schedule.Scheduled, instance: schedule.Instance, held: schedule.Accumulation
) -> None:
    """The accumulation of an instance is of its own loops, from the outermost reduced one on."""
    value = instance.value
    node, nest = scheduled.assigned(value)
    reduced = set(node.reduced_axes()) if node.base is None else set()
    unshared = tuple(loop for loop in nest.order if loop not in instance.home)
    alone = instance.parts is not None and not instance.parts.least
    parts = instance.parts.loops if instance.parts is not None and alone else ()
    folded = (n for n, loop in enumerate(unshared) if loop.axis in reduced and loop not in parts)
    first = next(folded, len(unshared))
    partial = any(loop.axis in reduced for loop in instance.home)
    _demand(
        not partial and first < len(unshared), "what accumulates reduces loops of its own", value
    )
    sizes = scheduled.shaped.sizes

    def counts(loops: tuple[schedule.Loop, ...]) -> tuple[int | None, ...]:
        return tuple(
            fixed(sizes, part_extent(sizes, instance.extents[x.axis], nest.factors[x.axis], x.part))
            for x in loops
        )

    match held:
        case schedule.Chunks():
            outside = not instance.chain and unshared[: first + 1] == (*held.around, held.loop)
            _demand(outside, "chunks are of the outermost loop of all", value)
            if held.each is not None:
                within = held.each.outer[:1] == (held.loop,)
                _demand(within, "chunks are of a loop outside of what registers hold", value)
                _accumulation(scheduled, instance, held.each)
            return
        case schedule.RegisterTile():
            loops = (*held.outer, *held.blocks, *held.core, *held.elements)
            outputs, constant = held.elements, held.elements
            _tile(held, reduced, counts(held.elements), value)
        case schedule.PartialSums():
            loops = (*held.outer, *held.outputs, *held.core)
            outputs, constant = held.outputs, held.core
        case schedule.ThreadTile():
            loops = (*held.outer, *held.runs, *held.core, *held.elements)
            outputs = held.elements
            runs = held.runs[1:] if held.most else held.runs
            constant = (*runs, *held.core, *held.elements)
        case _:
            assert_never(held)
    _demand(loops == unshared[first:], "an accumulation has all reducing loops", value)
    _demand(all(loop.axis in reduced for loop in held.core), "a core is reduced", value)
    _demand(not any(loop.axis in reduced for loop in outputs), "elements are outputs", value)
    _demand(None not in counts(constant), "what registers hold is constant", value)


def _tile(
    tile: schedule.RegisterTile, reduced: set[int], counts: tuple[int | None, ...], value: int
) -> None:
    _demand(counts == tile.extents, "a tile has the extents of its loops", value)
    _demand(all(x.axis in reduced for x in tile.blocks), "blocks of a tile are reduced", value)
    _demand(not (tile.blocks and tile.outer), "blocks are all that is outside a tile", value)
    _demand(not (tile.kept and tile.outer), "a tile that is kept has its final values", value)
    is_vector = tile.vector.bit_count() == 1 and tile.vector <= max(1, tile.extents[-1])
    _demand(is_vector, "a row of a tile has a vector at least", value)
    fits = all(
        part.lanes < tile.extents[-1] + tile.vector and max(part.rows) <= prod(tile.extents[:-1])
        for part in tile.micro_tiles
    )
    _demand(fits, "what is computed at a time is a part of a tile", value)
    _demand(bool(tile.micro_tiles) == (1 < tile.vector), "vectors take a part at a time", value)
    partial = tile.partial
    inside = partial is None or (partial.depth < len(tile.core) and 0 < partial.step)
    _demand(inside, "partial sums are of loops of the core", value)


def _demand(holds: bool, invariant: str, value: int) -> None:
    if not holds:
        place = f", node {value}" if 0 <= value else ""
        raise InternalError("E9904", f"schedule{place}: {invariant}")
