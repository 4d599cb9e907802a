"""Invariants of ``ir/cpu.py``: that what a target is told agrees with the loops that say what it means."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from itertools import pairwise

from ilang.core.calculus.affine import variables_of
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Outline, Tile, TileTarget, Transpose
from ilang.core.ir.rewriting import accesses, chain_of, is_invariant, parts_of
from ilang.core.ir.scalar import Apply, Load, Local, scalars_within
from ilang.core.passes.independence import apart_inside
from ilang.core.record import replace

Demand = Callable[[bool, str], None]
"""A function that raises the error of an invariant that does not hold."""


def transpose(program: ir.Program, s: Transpose, demand: Demand) -> None:
    """A copy in squares: loops around a store of one element, each along one of the buffers."""
    loops: list[ir.For] = []
    store: ir.Statement = s.loops
    while isinstance(store, ir.For) and len(store.body) == 1:
        loops.append(store)
        (store,) = store.body
    demand(
        isinstance(store, ir.Store) and 1 < len(loops),
        "a transposing copy is two loops or more around a store",
    )
    assert isinstance(store, ir.Store)
    *columns, rows = loops
    load = store.value
    demand(isinstance(load, Load), "a transposing copy stores what it loads")
    assert isinstance(load, Load)
    other = store.buffer != load.buffer
    other = other or apart_inside(program, (*columns, rows), store.index, load.index)
    demand(other, "a transposing copy does not read what it writes")
    for index, along, across in ((store.index, rows, columns[-1]), (load.index, columns[-1], rows)):
        steps = [part.coefficient(along.variable) for part in index]
        inside = not index[-1].coefficient(across.variable)
        demand(
            inside and [*steps] == [0] * (len(index) - 1) + [1],
            "a transposing copy runs along both buffers",
        )
    for outer, inner in pairwise(columns):
        for buffer, index in ((store.buffer, store.index), (load.buffer, load.index)):
            steps = [part.coefficient(outer.variable) for part in index]
            after = [part.coefficient(inner.variable) for part in index]
            size = program.buffers[buffer].dims[after.index(1)]
            plain = sum(map(abs, steps)) == sum(map(abs, after)) == 1 and not inner.within
            one = plain and steps.index(1) + 1 == after.index(1) and size == inner.size
            demand(one, "the columns of a transposing copy lie side by side")


def tiles(
    program: ir.Program, kernel: ir.Kernel, inside: Sequence[ir.Statement], demand: Demand
) -> None:
    """The tiles of a kernel: each has a buffer and a number of its own, and a deferred loop where one fills a copy."""
    by_buffer: dict[int, Tile] = {}
    for s in inside:
        if isinstance(s, Tile):  # it may stand in several parts of a loop, which is cut
            same = replace(by_buffer.setdefault(s.buffer, s), body=s.body) == s
            demand(same, "a tile has a buffer of its own")
    if not by_buffer:
        return
    held = list(by_buffer.values())
    numbers = [s.number for s in held if s.number is not None]
    demand(len(set(numbers)) == len(numbers), "a tile in registers has a number of its own")
    filled = [s.fill.buffer for s in held if s.fill is not None]
    deferred = [s.deferred.copy for s in inside if isinstance(s, ir.For) and s.deferred is not None]
    demand(sorted(filled) == sorted(deferred), "a copy that a tile fills has a deferred loop")
    blocks: list[Sequence[ir.Statement]] = [kernel.body]
    for s in inside:
        if isinstance(s, Tile):
            _tile(program, s, demand)
        if isinstance(s, (ir.For, ir.If)):
            blocks += ir.blocks_of(s)
    for block in blocks:
        _block(block, demand)


def _block(block: Sequence[ir.Statement], demand: Demand) -> None:
    """Verify what statements of a block say of those after them."""
    deferred: set[int] = set()
    for n, s in enumerate(block):
        if deferred:
            deferred -= {x.fill.buffer for x in ir.every((s,), Tile) if x.fill is not None}
        if isinstance(s, ir.For) and s.deferred is not None:
            deferred.add(s.deferred.copy)
            stored = {x.buffer for x in ir.every((s,), ir.Store)}
            demand(stored == {s.deferred.copy}, "a deferred loop does nothing but fill its copy")
        if isinstance(s, Tile) and s.target is not None:
            demand(s.number is not None, "a tile that is stored at once is in registers")
            after = block[n + 1] if n + 1 < len(block) else None
            copies = (
                isinstance(after, ir.If) and after.stored == s.buffer and _copies(after, s.target)
            )
            demand(copies, "the statement after a tile stores it where the tile goes at once")
        if isinstance(s, ir.If) and s.stored is not None:
            tile = block[n - 1] if 0 < n else None
            goes = isinstance(tile, Tile) and tile.target is not None and tile.buffer == s.stored
            demand(goes, "what a stored tile leaves out stands after it")
    demand(not deferred, "a tile further down fills what a deferred loop leaves out")


def _copies(after: ir.If, into: TileTarget) -> bool:
    """Whether a statement does nothing but store in the buffer that a tile goes into."""
    stored = {s.buffer for s in ir.every(after.body, ir.Store)}
    return stored == {into.buffer} and not after.within and not after.otherwise


def _tile(program: ir.Program, tile: Tile, demand: Demand) -> None:
    if tile.number is None:
        demand(tile.fill is None, "a tile that fills a copy is in registers")
        return
    demand(not program.buffers[tile.buffer].wrapping, "registers hold no integers that wrap")
    chain, body = chain_of(tile.body)
    dims = program.buffers[tile.buffer].dims
    of_elements = tuple(loop.size for loop in chain[-len(dims) :])
    demand(of_elements == dims, "a tile in registers has a loop for each dimension")
    extent = program.sizes[dims[-1]].fixed or 0
    is_vector = tile.vector.bit_count() == 1 < tile.vector
    demand(is_vector and tile.vector <= extent, "a row of a tile has a vector at least")
    for block in tile.micro_tiles:
        fits = block.lanes < extent + tile.vector
        demand(fits, "the lanes at a time are those of a row of a tile and less than a vector more")
    _reads(program, tile, (chain[-1], extent), body, demand)
    if tile.fill is not None:
        demand(not tile.guards, "a tile that fills a copy is in registers wherever it is")
        load = tile.fill.value
        demand(isinstance(load, Load), "a tile fills a copy with what it loads")


def _reads(
    program: ir.Program, tile: Tile, lanes: tuple[ir.For, int], body: ir.Block, demand: Demand
) -> None:
    """Lanes read one element after the other, or all the same one; none past the end of memory."""
    (lane, extent), padded = lanes, True
    for s in body:
        demand(isinstance(s, (ir.Define, ir.Store)), "registers define and store")
        for part in parts_of(s):
            if isinstance(part, Load) and part.buffer != tile.buffer:
                steps = [index.coefficient(lane.variable) for index in part.index]
                along = steps[-1:] == [1]
                demand(not any(steps[:-1]) and (along or not any(steps)), "lanes read along a row")
                padded = padded and (not along or program.buffers[part.buffer].padded)
    inside = {*lane.reaches(extent - 1)} <= {*tile.guards}
    demand(padded or inside, "lanes end with their row")


def division(loop: ir.For, demand: Demand) -> None:
    """The division of a loop by one number: the body does it once, and nothing that runs in parts or by threads."""
    division = loop.version
    if not isinstance(division, Apply):
        return
    demand(loop.manner is None, "a loop that divides by one number runs as it stands")
    simple = all(isinstance(s, (ir.Define, ir.Store)) for s in loop.body)
    demand(simple, "a loop that divides by one number defines and stores")
    divisions = [
        part
        for s in loop.body
        if isinstance(s, (ir.Define, ir.Store))
        for part in scalars_within(s.value)
        if isinstance(part, Apply) and (part.primitive, part.dtype) == ("div", division.dtype)
    ]
    demand(divisions == [division], "a loop that divides by one number divides once")
    defined = {s.variable for s in loop.body if isinstance(s, ir.Define)}
    demand(
        is_invariant(division.arguments[1], loop.variable, defined),
        "all iterations share a divisor",
    )


def cut(loop: ir.For, opened: Container[int], demand: Demand) -> None:
    """The parts of a loop: their ends are known outside it, and together they store what the loop does."""
    parts = loop.version
    if not isinstance(parts, ir.If):
        return
    demand(loop.lanes == 1 and loop.role != "u", "a loop in lanes or copies is not cut")
    (middle,) = parts.body
    assert isinstance(middle, ir.For)
    used = middle.ends() | {v for each in parts.within for v in each.index.axes()}
    demand(all(v in opened for v in used), "an end of a part of a loop is known outside it")
    stored = [
        {s.buffer for s in ir.every(block, ir.Store)}
        for block in (loop.body, middle.body, parts.otherwise)
    ]
    demand(stored[1] == stored[0], "the middle part of a loop stores what the loop does")
    demand(stored[2] <= stored[0], "the other parts of a loop store nothing else")


def outlines(
    program: ir.Program, kernel: ir.Kernel, inside: Sequence[ir.Statement], demand: Demand
) -> None:
    """The functions of a kernel, from where it is outlined on: itself, and all of its parallel loops."""
    names = [s.outline.name for s in inside if isinstance(s, ir.For) and s.outline is not None]
    if kernel.outline is None:
        demand(not names, "the loops of a kernel are functions where the kernel is one")
        return
    demand(
        "" not in names and len(set(names)) == len(names),
        "functions of loops have names of their own",
    )
    parallel = sum(isinstance(s, ir.For) and s.parallel for s in inside)
    together = sum(
        s.outline.loops for s in inside if isinstance(s, ir.For) and s.outline is not None
    )
    demand(parallel == together, "a parallel loop belongs to one function")
    private = [n for outline in _all(kernel) for n in outline.private]
    demand(len(set(private)) == len(private), "a private buffer has one place")
    _function(program, kernel.outline, (), kernel.body, demand)


def _all(kernel: ir.Kernel) -> Iterator[Outline]:
    if kernel.outline is not None:
        yield kernel.outline
    yield from (s.outline for s in ir.every(kernel.body, ir.For) if s.outline is not None)


def _function(
    program: ir.Program,
    outline: Outline,
    nest: Sequence[ir.For],
    body: Sequence[ir.Statement],
    demand: Demand,
) -> None:
    """The function of a nest, in which ``body`` stands, or of a kernel, and those that it calls."""
    calls = [(loop.outline, loop) for loop in _calls(body)]
    demand(outline.calls == bool(calls), "a function calls the functions of loops inside it")
    divided = any(called is not None and called.scratch for called, _ in calls)
    demand(outline.divided == divided, "scratch storage is divided where what is called takes some")
    scratch = bool(outline.private) or divided
    demand(outline.scratch == scratch, "a function takes scratch storage where it keeps something")
    demand((outline.estimate is None) == (not nest), "threads share loops")
    _captured(program, outline, nest, body, demand)
    for called, loop in calls:
        assert called is not None
        inner = _nest(loop, called.loops, demand)
        _function(program, called, inner, inner[-1].body, demand)


def _calls(body: Sequence[ir.Statement]) -> Iterator[ir.For]:
    """The loops of a block that are functions, but for those inside them."""
    for s in body:
        if isinstance(s, ir.For) and s.outline is not None:
            yield s
            continue
        for block in ir.blocks_of(s):
            yield from _calls(block)


def _nest(loop: ir.For, depth: int, demand: Demand) -> list[ir.For]:
    """So many parallel loops with nothing between them, one at least."""
    nest = [loop]
    while len(nest) < depth:
        only = nest[-1].body[0] if len(nest[-1].body) == 1 else None
        demand(isinstance(only, ir.For), "loops of one function have nothing between them")
        assert isinstance(only, ir.For)
        nest.append(only)
    demand(all(each.parallel for each in nest), "loops of a function are parallel")
    demand(all(not each.within for each in nest[1:]), "loops inside another are whole")
    return nest


def _captured(
    program: ir.Program,
    outline: Outline,
    nest: Sequence[ir.For],
    body: Sequence[ir.Statement],
    demand: Demand,
) -> None:
    """A function is given all that its statements use, but for what is its own."""
    inside, given = list(ir.statements_within(body)), outline.captured
    touched = dict.fromkeys(accesses(body))
    loops = [s for s in inside if isinstance(s, ir.For)]
    homes = {n for loop in loops if loop.outline is not None for n in loop.outline.private}
    tiles = {s.buffer for s in inside if isinstance(s, Tile)}
    arrays = {buffer for buffer, _ in touched} - homes - tiles - {*outline.private}
    demand(arrays == {*given.buffers}, "a function is given the arrays that it touches")
    private = all(program.buffers[n].private for n in outline.private)
    demand(private, "what is in scratch storage is private")
    stored = {s.buffer for s in inside if isinstance(s, ir.Store)}
    demand(outline.written == stored & arrays, "a function says which arrays it writes")
    defined = {s.variable for s in inside if isinstance(s, ir.Define)}
    read = {part.variable for s in inside for part in parts_of(s) if isinstance(part, Local)}
    read |= {s.variable for s in inside if isinstance(s, (ir.Change, ir.HorizontalReduction))}
    scalars = {local.variable for local in given.locals}
    demand(read - defined == scalars, "a function is given the scalars that it reads")
    opened = {loop.variable for loop in (*loops, *nest)}
    indexed = variables_of(part for _, index in touched for part in index)
    known = indexed <= opened | {*given.variables}
    demand(known and not opened & {*given.variables}, "a function is given the loops around it")
    extents = {loop.size for loop in (*loops, *nest[1:])}
    unknown = {n for n in extents if program.sizes[n].fixed is None}
    demand(unknown <= {*given.sizes}, "a function is given the extents of its loops")
