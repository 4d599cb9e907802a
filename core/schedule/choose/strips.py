"""Strips of results that a reduction accumulates into side by side: rules 6 and 10 of the choice.

Where few terms meet each result, and are known, a strip stays in registers until all of them have met it. So do results
of windows: lanes go along a row of them, and read side by side for one place of the window after the other. A row
shorter than a vector, which lanes walk in steps, is a loop inside those of the window, or around few terms where it is
much shorter.

Examples, a sum of three rows and columns, and a sum of columns:
    in:   out = sum in0[i+u,j+v] over u, v, 3 each       out = sum in0[i,j] over i
    out:  out | j:64 | i j u v j'                        out | i:8,j:2048 | j i j' i'
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from ilang.core.dtype import FLOATS
from ilang.core.ir.schedule import Loop
from ilang.core.ir.shaped import Assignment
from ilang.core.ir.size_class import Extents
from ilang.core.machine import Machine
from ilang.core.record import replace
from ilang.core.schedule.choose.accesses import Access
from ilang.core.schedule.choose.terms import MOST_TERMS
from ilang.core.schedule.choose.tile import Factors, balanced, narrowed


def in_registers(
    node: Assignment,
    extents: Extents,
    order: Sequence[int],
    accesses: Collection[Access],
    machine: Machine,
    around: int = 0,
) -> tuple[Factors, tuple[Loop, ...]] | None:
    """Splits and loops of a reduction whose strips stay in registers while all terms meet them.

    The first loops of the order, as many as there are ``around``, stay outermost. None for a reduction of other kinds.
    """
    outputs, reduced = node.output_axes(), node.reduced_axes()
    lanes = node.target[-1].axis() if node.target else None
    terms = [extents.fixed(node.sizes[axis]) for axis in reduced]
    if lanes is None or lanes not in outputs or node.base is not None or node.scatters():
        return None
    if not all(terms) or not 1 < prod(n or 1 for n in terms) <= MOST_TERMS:
        return None
    if {lanes, *reduced} & {*order[:around]} or not _go_along(accesses, lanes):
        return None
    is_sum = node.acc == "+" and node.scalar.dtype in FLOATS
    count = extents.fixed(node.sizes[lanes])
    vector = machine.vector_lanes("f32")
    outer = [Loop(axis) for axis in order if axis not in (lanes, *reduced)]
    rows = _rows(node, extents, outer[around:])
    # An extreme of a short row waits for the terms before, unless there are others beside it.
    is_short = count is not None and count < vector and rows is not None
    is_column = order[-1] == lanes and order[-2] in reduced and (is_sum or is_short)
    if not _is_kept(node, is_sum) or not (is_column or _have_windows(accesses, outputs, reduced)):
        return None
    is_small = (
        extents.is_small(node.sizes[lanes]) if count is None else count < machine.tiles.short_lanes
    )
    if is_small:
        return None
    factors: list[tuple[int, ...]] = [()] * len(order)
    inner = [Loop(axis) for axis in order if axis in reduced]
    if count and count <= machine.tiles.lanes and _steps(accesses, lanes) <= {0, 1}:
        if rows is not None:
            factors[rows.axis] = (
                balanced(extents.fixed(node.sizes[rows.axis]), machine.tiles.rows),
            )
            inner.append(replace(rows, part=1))
        return tuple(factors), (*outer, *inner, Loop(lanes))
    if count and count < vector:
        is_outside = 4 * count < 3 * vector and prod(n or 1 for n in terms) <= vector
        loops = (Loop(lanes), *inner) if is_outside else (*inner, Loop(lanes))
        return None if is_sum else (tuple(factors), (*outer, *loops))
    factors[lanes] = (narrowed(count, machine.tiles.lanes, machine),)
    return tuple(factors), (*outer, Loop(lanes), *inner, Loop(lanes, 1))


def _rows(node: Assignment, extents: Extents, outer: Sequence[Loop]) -> Loop | None:
    """The innermost loop outside of a row, over rows that may fill registers beside it; None where there is none."""
    loop = outer[-1] if outer else None
    if loop is None or loop.axis not in node.output_axes():
        return None
    size = node.sizes[loop.axis]
    count = extents.fixed(size)
    is_several = not extents.is_small(size) if count is None else 1 < count
    return loop if is_several else None


def _is_kept(node: Assignment, is_sum: bool) -> bool:
    """Whether registers have vectors for what is accumulated."""
    return is_sum or (node.acc in (">", "<") and node.scalar.dtype in FLOATS)


def _go_along(accesses: Collection[Access], lanes: int) -> bool:
    """Whether all that is read is walked along memory by an axis, in steps of a few elements, or not at all."""
    for index in accesses:
        if any(part.looked for part in index) or any(
            lanes in part.variables() for part in index[:-1]
        ):
            return False
        steps = {axis: step for step, axis in index[-1].steps()} if index else {}
        if not 0 <= steps.get(lanes, 0) <= 3:
            return False
    return True


def _steps(accesses: Collection[Access], lanes: int) -> set[int]:
    """The steps in which what is read is walked along memory by an axis."""
    return {
        step for index in accesses if index for step, axis in index[-1].steps() if axis == lanes
    }


def _have_windows(
    accesses: Collection[Access], outputs: Collection[int], reduced: Collection[int]
) -> bool:
    """Whether a dimension is walked by an axis of the result and by one that is reduced."""
    walked = (set(part.variables()) for index in accesses for part in index)
    return any(axes & {*outputs} and axes & {*reduced} for axes in walked)


def in_cache(
    node: Assignment, extents: Extents, order: Sequence[int], machine: Machine, around: int = 0
) -> tuple[Factors, tuple[Loop, ...]] | None:
    """Splits and loops of a sum or an extreme whose innermost loop is over outputs, which are accumulated in memory.

    Several terms are summed before they meet it, and the accumulators are those of a strip, which stays in the cache.
    The first loops, as many as there are ``around``, stay outermost. None where the loops are of another kind, or where
    terms of an extreme are left over, of few.
    """
    outputs = set(node.output_axes())
    if node.acc not in ("+", ">", "<") or node.scalar.dtype not in FLOATS or node.base is not None:
        return None
    if len(order) < around + 2 or order[-1] not in outputs or order[-2] in outputs:
        return None
    factors: list[tuple[int, ...]] = [()] * len(order)
    last, term = (extents.fixed(node.sizes[axis]) for axis in (order[-1], order[-2]))
    loops = [Loop(axis) for axis in order]
    if last is None or last > machine.tiles.strip:
        factors[order[-1]] = (machine.tiles.strip,)
        loops = [*loops[:around], Loop(order[-1]), *loops[around:-1], Loop(order[-1], 1)]
    terms = machine.tiles.strip_terms
    if node.acc != "+" and (term is None or (term % terms and term < 64 * terms)):
        return None  # the terms that are left over would take as long
    if term is None or term > terms:
        factors[order[-2]] = (terms,)
        loops.append(Loop(order[-2], 1))
    return tuple(factors), tuple(loops)
