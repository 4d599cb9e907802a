"""Invariants of ``ir/cpu.Outline``: the functions of a kernel are given what their statements use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ilang.core.calculus.affine import variables_of
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Outline, Tile
from ilang.core.ir.rewriting import accesses, parts_of
from ilang.core.ir.scalar import Local

Demand = Callable[[bool, str], None]
"""A function that raises the error of an invariant that does not hold."""


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
