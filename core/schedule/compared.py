"""The prices that were compared where they chose a schedule: the best tiles of each contraction, and why one won.

Example, ``ik*kj~ijk >> +ijk~ij`` of 512 each:
    in:   tile of out among 12
    out:  | i:6,j:64 | j i k i' j' 0 of 8,558,016 cycles;  | i:24,j:16 | j i k i' j' 0 of 8,777,882;  ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice, permutations, product

from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.known_extents import USUAL, Extents, extents_of
from ilang.core.ir.schedule import Loop, Nest, Scheduled, schedule_text, unscheduled
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import Machine
from ilang.core.record import record, replace
from ilang.core.schedule.choose.choice import analysed
from ilang.core.schedule.choose.gpu import choose_for_gpu, tiles_by_price
from ilang.core.schedule.choose.gpu_price import FULL
from ilang.core.schedule.choose.known import Analysis
from ilang.core.schedule.choose.loops import Loops
from ilang.core.schedule.choose.nests import choose_nests
from ilang.core.schedule.choose.own_loops import loops_by_itself, transposed_loops
from ilang.core.schedule.choose.tile import BlockTile, Tiling
from ilang.core.schedule.choose.tile_cost import Price
from ilang.core.schedule.fuse import Provenance
from ilang.core.schedule.places import PricedPlace, places
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule
from ilang.core.schedule.written import without_schedules, written_nest
from ilang.core.schedule.written_price import written_price
from ilang.core.source import Span

ORDERS = 120
"""Orders of loops of a value that are tried at most: all of five loops."""
MOST = 3
"""Candidates that are shown."""
CYCLES_OF_MS = 3_000_000
"""Cycles of a core of 3 GHz in a millisecond."""
_Names = tuple[tuple[str, ...], tuple[str, ...]]
TILE: _Names = (
    ("multiply-adds", "loads", "chains of additions"),
    (
        "sums stored",
        "cache lines waited for",
        "sums added in memory",
        "tiles begun and ended",
        "elements packed",
    ),
)
"""The names of what takes the cycles of a tile, at once with lines, and added."""
LOOPS: _Names = (
    ("arithmetic in vectors", "loads that wait", "chains of operations"),
    (
        "results stored",
        "cache lines waited for",
        "terms left over or widened",
        "rows begun and ended",
        "elements packed",
    ),
)
"""The names of what takes the cycles of loops without a tile."""
BLOCKS: _Names = (
    ("multiply-adds", "reads of shared memory", "bytes from the cache of all"),
    (
        "results stored",
        "waiting for copies",
        "results of parts, added",
        "kernels and blocks begun",
        "copies, instructions",
    ),
)
"""The names of what takes the cycles of a block's tile on a GPU."""
SUMS: _Names = (
    ("instructions", "bytes from memory", "waiting for memory", "bytes from the cache of all"),
    (
        "what none of these hides",
        "cache lines waited for",
        "results of parts, added",
        "kernels begun",
        "elements packed",
    ),
)
"""The names of what takes the cycles of sums of rows on a GPU."""


@record
class PricedTile:
    """A tiling in the notation of schedules, its cycles, and what takes most of them.

    What takes cycles ``at_once`` with others counts where it takes ``longest``, which instruction sets may differ in;
    the rest is added.
    """

    schedule: str
    cycles: int
    bound: str
    at_once: Mapping[str, int]
    longest: Mapping[str, int]
    added: Mapping[str, int]

    def counted(self) -> dict[str, int]:
        """The parts that the cycles are the sum of."""
        return {**self.longest, **self.added}


@record
class Priced:
    """A reduction whose tile or loops a price chose, among so many: the best, the first of which it has, and why.

    Candidates of a ``kind``, "tile", "schedule" or "place", are compared: of tiles the best of each size. The last one
    is what the program says where it has schedules: ``written`` compares it with the cheapest other one, and says what
    its price lacks; empty where nothing is written. The others are those of the program without schedules.
    """

    name: str
    text: str
    kind: str
    compared: int
    candidates: tuple[PricedTile, ...]
    reason: str
    written: tuple[str, ...] = ()


def compared(scheduled: Scheduled) -> tuple[tuple[Priced, ...], bool]:
    """The reductions of a program whose tiles or loops prices choose, and whether they are all of it.

    A reduction that runs otherwise because of a written schedule has that as the last candidate.
    """
    nodes = scheduled.shaped.nodes
    is_free = all(not isinstance(n, Assignment) or n.schedule is None for n in nodes)
    if scheduled.machine.device is not None:
        pages, is_all = _pages_of_blocks(scheduled) if is_free else ({}, False)
        return tuple(page for _, page in sorted(pages.items())), is_all
    if is_free:
        pages, is_all = _pages(scheduled)
        return tuple(page for _, page in sorted(pages.items())), is_all
    free = shaped_to_schedule(without_schedules(scheduled.shaped), scheduled.machine)
    pages, is_all = _pages(free)
    extents = extents_of(scheduled.shaped, scheduled.machine)
    for value, page in [*pages.items()]:
        node, nest = scheduled.assigned(value)
        if node.schedule is None and nest == free.nests[value]:
            continue
        if node.reduced_axes():
            pages[value] = _with_written(page, scheduled, value, extents)
        else:  # what is written for transposed work has no price
            del pages[value]
            is_all = False
    return tuple(page for _, page in sorted(pages.items())), is_all


def compared_places(shaped: Shaped, machine: Machine) -> tuple[Priced, ...]:
    """The values that are computed once, or again for each reader, because that is cheaper."""
    nests = shaped_to_schedule(shaped, machine).nests
    values = reversed(places(shaped, extents_of(shaped, machine), machine, nests))
    return tuple(_priced_place(shaped, place) for place in values)


def _priced_place(shaped: Shaped, place: PricedPlace) -> Priced:
    both = (
        (f"computed again by each of {place.readers} readers", place.again),
        (place.kept, place.once),
    )
    candidates = tuple(
        PricedTile(
            text,
            round(sum(parts.values())),
            max(parts, key=parts.__getitem__),
            {},
            {},
            {name: round(cycles) for name, cycles in parts.items()},
        )
        for text, parts in (both if place.is_again else both[::-1])
    )
    winner, other = candidates
    reason = _reason(candidates, "Place")
    if other.cycles < winner.cycles:
        reason = "Computed again it takes less, and what it reads is kept inside loops of others."
    name, node = shaped.tensors[place.value].name, shaped.assignment(place.value)
    return Priced(name, unscheduled(node), "place", len(candidates), candidates, reason)


def _pages(scheduled: Scheduled) -> tuple[dict[int, Priced], bool]:
    """The reductions of a program without schedules that prices choose, by value, and whether they are all of it."""
    analysis = _analysis(scheduled)
    if analysis is None:
        return {}, False
    tilings, inlined = analysis.tilings, analysis.inlining.inlined
    tiled = _tiled(analysis)
    nodes = scheduled.shaped.nodes
    values = [v for v, n in enumerate(nodes) if isinstance(n, Assignment) and not inlined[v]]
    loops = {
        v: (nest, priced) for v, nest, priced in _with_loops(scheduled, analysis) if v in values
    }
    ends = ((value, tilings.ends[value]) for value in values)
    is_all = all(end[0] in tiled if end is not None else value in loops for value, end in ends)
    pages = {value: _priced(analysis, value, tile) for value, tile in tiled.items()}
    pages |= {value: _priced_loops(analysis, value, *each) for value, each in loops.items()}
    return pages, bool(pages) and is_all


def _pages_of_blocks(scheduled: Scheduled) -> tuple[dict[int, Priced], bool]:
    """The blocks and rows of the least price in a program for a GPU, and whether they are all of it."""
    shaped, machine, pages = scheduled.shaped, scheduled.machine, dict[int, Priced]()
    if scheduled.is_apart:
        return pages, False
    extents = extents_of(shaped, machine)
    for value, tiles in tiles_by_price(shaped, extents, machine):
        node, nest = scheduled.assigned(value)
        if not tiles or (nest.factors, nest.order) != (tiles[0][0].factors, tiles[0][0].order):
            continue
        best: dict[object, tuple[BlockTile, Price]] = {}
        for tile, price in tiles:
            sides = tuple(tile.factors[axis] for axis in node.output_axes())
            best.setdefault(sides if any(sides) else tile, (tile, price))
        names = SUMS if len(tiles[0][1].at_once[0]) == len(SUMS[0]) else BLOCKS
        candidates = tuple(
            _candidate(node, _nests_with_block(scheduled, value, tile)[value], price, names)
            for tile, price in [*best.values()][:MOST]
        )
        reason = _reason(candidates, instead="moves less")
        if any(extents.fixed(size) is None for size in node.sizes):
            reason += f" Of extents that are not known, {FULL:,} results have this price."
        name = shaped.tensors[value].name
        pages[value] = Priced(name, unscheduled(node), "tile", len(tiles), candidates, reason)
    return pages, len(pages) == len(scheduled.whole())


def _nests_with_block(scheduled: Scheduled, value: int, tile: BlockTile) -> tuple[Nest | None, ...]:
    """The nests of a program for a GPU in which a contraction has another tile."""
    shaped, machine = scheduled.shaped, scheduled.machine
    written = [written_nest(n) if isinstance(n, Assignment) else None for n in shaped.nodes]
    asked = [tile if n == value else nest for n, nest in enumerate(written)]
    extents = extents_of(shaped, machine)
    return choose_for_gpu(shaped, asked, Provenance(shaped), extents, machine).nests


def _with_written(page: Priced, scheduled: Scheduled, value: int, extents: Extents) -> Priced:
    """A page with the written schedule of its reduction as the last candidate."""
    price, is_tile, lacks = written_price(scheduled, value, extents, page.kind == "tile")
    node, nest = scheduled.assigned(value)
    written = _candidate(node, nest, price, TILE if is_tile else LOOPS)
    best = min(range(len(page.candidates)), key=lambda number: page.candidates[number].cycles)
    says = f"Written: {_beside(written, page.candidates[best], best + 1)}"
    would = f"Without it, {page.kind} 1 would be chosen."
    return replace(
        page, candidates=(*page.candidates, written), written=(f"{says} {would}", *lacks)
    )


def _beside(written: PricedTile, best: PricedTile, number: int) -> str:
    """The time of a written schedule, and how it compares with the cheapest other one."""
    time = f"{written.cycles / CYCLES_OF_MS:,.3g} ms by the model"
    if written.cycles == best.cycles:
        return f"{time}, the price of {number}, the cheapest."
    times = written.cycles / max(best.cycles, 1)
    share = f"{abs(times - 1):.1%}".replace("%", " %")
    if written.cycles < best.cycles:
        return f"{time}, {share} less than {number}, the cheapest of those compared."
    most, cycles = _most_saved(best, written)
    beside = f"{share} more than {number}" if times < 2 else f"{times:.1f} times {number}"
    return f"{time}, {beside}, the cheapest: {cycles:,} cycles more for {most}."


def other_schedules(scheduled: Scheduled) -> Iterator[list[tuple[Span, str]]]:
    """The schedules with another tile that prices compared, the cheapest first, then those with loops in other orders.

    A schedule is what is written after the expressions; one for which the program's text has no place is left out.
    """
    if scheduled.machine.device is not None:
        for nests in _with_other_blocks(scheduled):
            yield from _words(scheduled, nests)
    analysis = _analysis(scheduled)
    if analysis is None:
        return
    losses = [
        (price.cycles() - tile.among[0][1].cycles(), value, number)
        for value, tile in _tiled(analysis).items()
        for number, (_, price) in enumerate(tile.among)
    ]
    tilings = analysis.tilings.tiles
    others = (
        _nests_with(analysis, value, tile.among[number][0])
        for _, value, number in sorted(losses)
        if (tile := tilings[value]) is not None
    )
    for nests in chain(others, _reordered(scheduled, analysis)):
        yield from _words(scheduled, nests)


def _words(scheduled: Scheduled, nests: Sequence[Nest | None]) -> Iterator[list[tuple[Span, str]]]:
    """Schedules to write after the expressions whose nests are not the chosen ones; none where there is no place."""
    changed = [
        (node, nest)
        for node, nest, chosen in zip(scheduled.shaped.nodes, nests, scheduled.nests, strict=True)
        if isinstance(node, Assignment) and nest is not None and nest != chosen
    ]
    places = {(node.span.source.name, node.span.end) for node, _ in changed}
    is_free = all(node.schedule is None for node, _ in changed)
    if changed and is_free and len(places) == len(changed):
        yield [(node.span, schedule_text(node, nest)) for node, nest in changed]


def _with_other_blocks(scheduled: Scheduled) -> Iterator[tuple[Nest | None, ...]]:
    """The nests of a program for a GPU in which a contraction has other blocks, the cheapest first."""
    if scheduled.is_apart:
        return
    extents = extents_of(scheduled.shaped, scheduled.machine)
    for value, tiles in tiles_by_price(scheduled.shaped, extents, scheduled.machine):
        for tile, _ in tiles[1:]:
            with suppress(ScheduleError):
                yield _nests_with_block(scheduled, value, tile)


def _reordered(scheduled: Scheduled, analysis: Analysis) -> Iterator[tuple[Nest | None, ...]]:
    """The nests of a program in which the loops of a value without a tile, stored whole, stand in another order.

    Orders of whole axes come before those with a block of the last axis of the result, and of these the outer parts of
    an axis stand before the inner ones.
    """
    ends, blocks = analysis.tilings.ends, (None, analysis.machine.tiles.lanes)
    roots = [value for value in scheduled.whole() if ends[value] is None]
    for block, value in product(blocks, roots):
        node = analysis.shaped.assignment(value)
        last = node.target[-1].axis() if node.target else None
        factors: list[tuple[int, ...]] = [()] * len(node.axes)
        if block is not None and last is not None:
            factors[last] = (block,)
        nest = Nest(tuple(factors), (), (None,) * len(node.reads))
        loops = [loop for axis in range(len(node.axes)) for loop in nest.parts(axis)]
        for order in islice(permutations(loops), ORDERS):
            if last is None or order.index(Loop(last)) <= order.index(nest.parts(last)[-1]):
                with suppress(ScheduleError):
                    yield _nests_as(analysis, value, replace(nest, order=order))


def _nests_as(analysis: Analysis, value: int, nest: Nest) -> tuple[Nest | None, ...]:
    written = tuple(nest if n == value else each for n, each in enumerate(analysis.written))
    return choose_nests(replace(analysis, written=written)).nests


def _tiled(analysis: Analysis) -> dict[int, Tiling]:
    """The tiles that prices chose, by value."""
    tiles = enumerate(analysis.tilings.tiles)
    return {value: tile for value, tile in tiles if tile is not None and tile.among}


def _with_loops(
    scheduled: Scheduled, analysis: Analysis
) -> Iterator[tuple[int, Nest, list[tuple[Loops, Price]]]]:
    """The values without a tile, stored whole, whose loops a price chose, and all loops with their prices."""
    for value in scheduled.whole():
        node, nest = scheduled.assigned(value)
        is_free = analysis.tilings.ends[value] is None and analysis.row_lanes[value] is None
        if is_free and node.schedule is None and node.base is None:
            by_itself = loops_by_itself if node.reduced_axes() else transposed_loops
            priced = by_itself(analysis, value, node)
            if priced and (nest.factors, nest.order) == priced[0][0]:
                yield value, nest, priced


def _nests_with(analysis: Analysis, value: int, tile: Tiling) -> tuple[Nest | None, ...]:
    """The nests of a program in which a contraction has another tile."""
    tiles = tuple(tile if n == value else t for n, t in enumerate(analysis.tilings.tiles))
    tilings = replace(analysis.tilings, tiles=tiles)
    return choose_nests(replace(analysis, tilings=tilings)).nests


def _analysis(scheduled: Scheduled) -> Analysis | None:
    """The analysis that the nests of a program were chosen from; None where no prices take part."""
    shaped, machine = scheduled.shaped, scheduled.machine
    if machine.core is None or scheduled.is_apart:
        return None
    written = [written_nest(n) if isinstance(n, Assignment) else None for n in shaped.nodes]
    extents = extents_of(shaped, machine)
    return analysed(shaped, written, Provenance(shaped), extents, machine)


def _priced(analysis: Analysis, value: int, tile: Tiling) -> Priced:
    node = analysis.shaped.assignment(value)
    best: dict[object, tuple[Tiling, Price]] = {}
    for each, price in tile.among:
        best.setdefault((each.rows, each.lanes, each.factors), (each, price))
    shown = [*best.values()][:MOST]
    candidates = tuple(
        _candidate(node, _nests_with(analysis, value, each)[value], price, TILE)
        for each, price in shown
    )
    name = analysis.shaped.tensors[value].name
    text, reason = unscheduled(node), _reason(candidates)
    return Priced(name, text, "tile", len(tile.among), candidates, reason)


def _priced_loops(
    analysis: Analysis, value: int, nest: Nest, priced: Sequence[tuple[Loops, Price]]
) -> Priced:
    node = analysis.shaped.assignment(value)
    nests = [replace(nest, factors=factors, order=order) for (factors, order), _ in priced[:MOST]]
    if node.reduced_axes():  # of transposed work, the same loops stand around what is copied
        nests[1:] = [_nests_as(analysis, value, each)[value] or each for each in nests[1:]]
    candidates = tuple(
        _candidate(node, each, price, LOOPS)
        for each, (_, price) in zip(nests, priced, strict=False)
    )
    reason = _reason(candidates, "Schedule")
    if any(analysis.extents.fixed(size) is None for size in node.sizes):
        reason += f" Extents that are not known count as {USUAL}."
    name = analysis.shaped.tensors[value].name
    return Priced(name, unscheduled(node), "schedule", len(priced), candidates, reason)


def _candidate(node: Assignment, nest: Nest | None, price: Price, parts: _Names) -> PricedTile:
    assert nest is not None
    names = [*parts[0]]
    names += [f"cache lines into L{n}" for n in range(1, len(price.at_once[0]) - len(names) + 1)]
    weights, longest = price.weights(), dict[str, float]()
    for weight, cycles in zip(weights, price.at_once, strict=True):
        name = names[cycles.index(max(cycles))]
        longest[name] = longest.get(name, 0) + weight * max(cycles)
    at_once = {
        name: sum(weight * n for weight, n in zip(weights, each, strict=True))
        for name, each in zip(names, zip(*price.at_once, strict=True), strict=True)
    }
    at_once["multiply-adds past an edge"] = price.idle
    others = (price.stored, price.waited, price.merged, price.begun, price.copied)
    added = {name: sum(weights) * n for name, n in zip(parts[1], others, strict=True)}
    if price.exposed:
        pairs = zip(weights, price.unhidden(), strict=True)
        added["cache lines not hidden"] = sum(weight * n for weight, n in pairs)
    rounded = [{name: round(n) for name, n in each.items()} for each in (at_once, longest, added)]
    candidate = PricedTile(schedule_text(node, nest), round(price.cycles()), "", *rounded)
    counted = candidate.counted()
    return replace(candidate, bound=max(counted, key=counted.__getitem__))


def _reason(
    candidates: Sequence[PricedTile], kind: str = "Tile", instead: str = "was tried first"
) -> str:
    """The reason why the first of some candidates was chosen: it is the cheapest, or almost as cheap."""
    if len(candidates) < 2:
        return f"No other {kind.lower()} fits."
    winner, other = candidates[:2]
    share = f"{abs(other.cycles - winner.cycles) / max(other.cycles, 1):.1%}".replace("%", " %")
    if winner.cycles == other.cycles:
        return f"{kind}s 1 and 2 have one price; 1 {instead}."
    if other.cycles < winner.cycles:
        return f"{kind} 2 takes {share} less than {kind.lower()} 1, which {instead}: no reason to change."
    most, cycles = _most_saved(winner, other)
    return f"{kind} 1 takes {share} less than {kind.lower()} 2: {cycles:,} cycles less for {most}."


def _most_saved(winner: PricedTile, other: PricedTile) -> tuple[str, int]:
    """The part of its cycles of which another candidate takes most more than the winner, and how many more."""
    costs, others = winner.counted(), other.counted()
    gains = {name: n - costs.get(name, winner.at_once.get(name, 0)) for name, n in others.items()}
    most = max(gains, key=gains.__getitem__)
    return most, gains[most]
