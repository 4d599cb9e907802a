"""Split reductions (split-K) on a GPU: parts of the terms where it has too few results.

Example, sums of 16 columns of 65,536 elements:
    in:   a thread for each column
    out:  512 parts of each column, a thread for each; a second kernel adds their results, in their order

A block, or a thread, reduces a part, and costs a write and a read of its result. If extents are known only at run time,
the number of parts is computed from them (`accumulation.py`); it is 1 if the results fill the device. Parts of
contractions are found by price (`gpu_blocks.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.schedule.choose.gpu_blocks import BlockShape, multiple
from ilang.core.schedule.choose.terms import PART, RUN

COLUMN = 2 * RUN
"""Terms of a chunk of a column of unknown length: its partial result costs 1/256 of the terms."""
MOST_OTHERS = 1
"""Reduced axes beside the last one of a reduction that is split at run time: more take too many indices."""


def loops_of(
    node: Assignment, extents: Extents, block: BlockShape, factors: list[tuple[int, ...]]
) -> tuple[list[Loop], list[Loop]]:
    """The loops over the reduced axes of a contraction: those that number its parts, and all others, the copies' last.

    Axes are used up from the outermost one on, until parts are as many as are wanted; the factors of all are set.
    """
    *others, last = node.reduced_axes()
    known = [extents.fixed(node.sizes[axis]) or 0 for axis in (*others, last)]
    wanted = 1 if block.part is None else -(-prod(known) // block.part)
    parts, rest = list[Loop](), list[Loop]()
    for axis, extent in zip(others, known, strict=False):
        if wanted == 1:
            rest.append(Loop(axis))
        elif extent <= wanted:
            parts.append(Loop(axis))
            wanted //= extent
        else:
            factors[axis] = (-(-extent // wanted),)
            parts.append(Loop(axis))
            rest.append(Loop(axis, 1))
            wanted = 1
    count = extents.fixed(node.sizes[last])
    each, unit = 0, block.terms
    if 1 < wanted:
        each = -(-known[-1] // wanted)
        each = multiple(each, unit if each <= RUN else RUN)
    if each and each < known[-1]:
        factors[last] = _factors(each, unit)
        parts.append(Loop(last))
    else:
        factors[last] = (unit,) if count is not None and count <= RUN else (RUN // unit, unit)
    steps = [Loop(last, part) for part in range(len(factors[last]) + 1)]
    inside = [*rest, *(step for step in steps if step not in parts)]
    is_long = 2 < len(inside) and (0 in known or PART < prod(known))
    if block.shares and is_long and len(others) <= MOST_OTHERS:
        parts, inside = inside[:1], inside[1:]
    return parts, inside


def _factors(part: int, unit: int) -> tuple[int, ...]:
    """The factors of an axis whose parts have so many terms, a run of them and a unit at a time."""
    if part == unit:
        return (unit,)
    return (part // unit, unit) if part <= RUN else (part // RUN, RUN // unit, unit)


def part_of_rows(node: Assignment, extents: Extents, machine: Machine) -> int | None:
    """The iterations of its outermost reduced axis in a part of a reduction whose blocks share rows, if several.

    A part has at least what a block should have to do.
    """
    rows, counts = _known(node, extents)
    if rows is None or counts is None or not node.output_axes():
        return None
    device = machine.gpu()
    if not 0 < rows < device.multiprocessors:
        return None
    unit = device.block_threads * device.vector_elements
    wanted = -(-prod(counts) // (machine.threads.most_blocks // rows))
    return _outermost(counts, multiple(max(machine.threads.block_work, wanted), unit))


def shared_part_of_rows(node: Assignment, extents: Extents, machine: Machine) -> int | None:
    """The terms that a block adds at a time of a row that has as many parts as follow from extents; None for one part.

    Rows of several axes have one, and those that are known to be short, or enough for the device.
    """
    rows, counts = _known(node, extents)
    device = machine.gpu()
    if len(node.reduced_axes()) > 1 or not node.output_axes():
        return None
    if rows is not None and (counts is not None or device.multiprocessors <= rows):
        return None
    if counts is not None and prod(counts) <= machine.threads.block_work:
        return None
    return device.block_threads * device.vector_elements


def part_of_elements(
    node: Assignment, extents: Extents, columns: bool, machine: Machine
) -> int | None:
    """The terms of a part where each thread has an element; of columns also where it is not known how many."""
    elements, counts = _known(node, extents)
    if elements is None or counts is None:
        is_one = len(node.reduced_axes()) == 1
        return COLUMN if columns and is_one else None
    if not has_few_results(node, extents, machine):
        return None
    device = machine.gpu()
    threads = machine.threads.most_blocks * device.block_threads
    wanted = max(device.parts.unshared, -(-prod(counts) // (threads // elements)))
    return _outermost(counts, wanted if wanted <= RUN else multiple(wanted, RUN))


def has_few_results(node: Assignment, extents: Extents, machine: Machine) -> bool:
    """Whether a result is known to have so few elements that threads with one each do not fill half of a device."""
    elements, _ = _known(node, extents)
    threads = machine.threads.most_blocks * machine.gpu().block_threads
    return elements is not None and 0 < elements < threads // 2


def _known(node: Assignment, extents: Extents) -> tuple[int | None, list[int] | None]:
    """The elements of a result, and the extents of the reduced axes, where they are known."""
    outputs = [extents.fixed(node.sizes[axis]) for axis in dict.fromkeys(node.output_axes())]
    reduced = [extents.fixed(node.sizes[axis]) for axis in node.reduced_axes()]
    return (
        None if None in outputs else prod(count or 0 for count in outputs),
        None if None in reduced else [count or 0 for count in reduced],
    )


def _outermost(counts: Sequence[int], terms: int) -> int | None:
    """The iterations of the outermost of some loops that have so many terms; None where that is all of them."""
    each = max(1, -(-terms // max(1, prod(counts[1:]))))
    return each if each < counts[0] else None
