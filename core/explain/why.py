"""The reasons of a schedule that was chosen: the page of ``i explain --why``.

A contraction whose tile a price chose has the best tilings beside each other, with what takes their cycles, and so has
another reduction its best loops, and a value with several readers its places; the rest of a program is said to be
chosen by rules.

Example, ``ik*kj~ijk >> +ijk~ij`` of 512 each:
    out  +ijk~ij  12 tiles compared
               cycles  most in        schedule
      1     8,558,016  multiply-adds  | i:6,j:64 | j i k i' j' 0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from textwrap import wrap

from ilang.core.explain.page import table
from ilang.core.ir.schedule import Scheduled
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import MULTIPROCESSORS
from ilang.core.record import record
from ilang.core.schedule.compared import Priced, PricedTile

COLUMNS, FIRST, WIDTH = 80, 32, 12
"""Columns of the page, of the names of parts, and of a number of cycles."""
UNIT = "Cycles are those of one core by a model of it: 3,000,000 take 1 ms at 3 GHz."
UNIT_OF_GPU = (
    f"Cycles are those of an {MULTIPROCESSORS[-1].name} by a model of it: 1,980,000 take 1 ms."
)


@record
class Why:
    """The reasons of the loops of a program: the reductions with prices, and a sentence on others, if there are any.

    ``collapsed`` are axes that run as one loop each and are several in the text, ``units`` axes over one element, which
    have no loop. The ``unit`` says what cycles are.
    """

    priced: tuple[Priced, ...]
    others: str
    collapsed: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    unit: str = UNIT

    def __str__(self) -> str:
        """The page, at most 80 columns wide where schedules are short."""
        pages = ["\n".join(_page(each)) for each in self.priced]
        if pages and self.collapsed:
            pages += [f"Axes that run as one loop are one axis here: {', '.join(self.collapsed)}."]
        if pages and self.units:
            pages += [f"Axes over one element have no loop: {', '.join(self.units)}."]
        pages += [self.unit] if pages else []
        lines = (wrap(each, COLUMNS, break_on_hyphens=False) for each in self.others.splitlines())
        pages += ["\n".join(chain(*lines))] if self.others else []
        return "\n\n".join(pages) + "\n"


def why(shaped: Shaped, scheduled: Scheduled, priced: tuple[Priced, ...], is_all: bool) -> Why:
    """The reasons of the schedule of a program.

    Args:
        shaped: the program.
        scheduled: what runs; it may have fewer axes.
        priced: the reductions whose tiles or loops prices chose.
        is_all: whether there is nothing else.
    """
    walked, written = _axes(scheduled.shaped), _axes(shaped)
    collapsed = tuple(sorted(walked.keys() - written.keys()))
    units = tuple(sorted(name for name in written.keys() - walked.keys() if written[name] == {1}))
    others = "" if is_all else _others(scheduled, bool(priced))
    unit = UNIT if scheduled.machine.device is None else UNIT_OF_GPU
    return Why(priced, others, collapsed, units, unit)


def _axes(shaped: Shaped) -> dict[str, set[int | None]]:
    """The extents of the axes of a program, by name; None where one is open."""
    extents: dict[str, set[int | None]] = {}
    for node in shaped.nodes:
        if isinstance(node, Assignment):
            for axis, size in zip(node.axes, node.sizes, strict=True):
                extents.setdefault(axis.name, set()).add(shaped.sizes[size].fixed)
    return extents


def _others(scheduled: Scheduled, is_priced: bool) -> str:
    """A sentence on what no price chose."""
    nodes = [node for node in scheduled.shaped.nodes if isinstance(node, Assignment)]
    is_written = any(node.schedule is not None for node in nodes)
    if is_priced:
        chose = "Rules, or what is written, say" if is_written else "Rules chose"
        return f"{chose} all other loops, not a price."
    if scheduled.machine.core is None:
        reason = "prices of GPUs are of contractions, convolutions and rows"
    elif any(size.fixed is None for size in scheduled.shaped.sizes):
        reason = f"extents are open; give them, as --shape {_example(scheduled.shaped)}"
    else:
        reason = (
            "prices are of sums, maxima, transposes and the like that share no loop with others"
        )
    if is_written:
        return (
            f"The schedule is written in the program, and has no price: {reason}.\n"
            "`i diff PROGRAM --unscheduled` shows the one that would be chosen."
        )
    return f"Rules chose the loops, and no prices were compared: {reason}."


def _example(shaped: Shaped) -> str:
    """Shapes of the inputs: 64 for the first size that is open, then 32, and so on."""
    extents: dict[int, int] = {}
    for value in shaped.inputs:
        for size in shaped.tensors[value].dims:
            fixed = shaped.sizes[size].fixed
            extents.setdefault(size, max(2, 64 >> len(extents)) if fixed is None else fixed)
    shapes = [
        "x".join(str(extents[size]) for size in shaped.tensors[value].dims) or "."
        for value in shaped.inputs
    ]
    return ",".join(shapes)


def _page(priced: Priced) -> Iterator[str]:
    """The lines on a reduction: the candidates, what takes their cycles, and why one was chosen."""
    yield f"{priced.name}  {priced.text}  {priced.compared} {priced.kind}s compared"
    numbers = [str(n) for n in range(1, len(priced.candidates) + 1)]
    if priced.written:
        numbers[-1] = "written"
    rows = [
        (f"  {n}", f"{each.cycles:,}".rjust(WIDTH), each.bound, each.schedule)
        for n, each in zip(numbers, priced.candidates, strict=True)
    ]
    head = "place" if priced.kind == "place" else "schedule"
    lines = table([("", "cycles".rjust(WIDTH), "most in", head), *rows])
    if any(COLUMNS < len(line) for line in lines.splitlines()):
        first, *others = table(
            [("", "cycles".rjust(WIDTH), "most in"), *(r[:3] for r in rows)]
        ).splitlines()
        lines = "\n".join(
            (first, *(f"{line}\n     {row[3]}" for line, row in zip(others, rows, strict=True)))
        )
    yield lines
    yield ""
    at_once = [each.at_once for each in priced.candidates]
    added = [each.added for each in priced.candidates]
    if any(at_once):
        yield from _cells("side by side: the longest", numbers)
        yield from _shares(priced.candidates, at_once)
    yield from _cells("and besides" if any(at_once) else "added", [] if any(at_once) else numbers)
    yield from _shares(priced.candidates, added)
    yield ""
    for text in (priced.reason, *priced.written):
        yield from wrap(text, COLUMNS, break_on_hyphens=False)


def _shares(candidates: Sequence[PricedTile], parts: Sequence[Mapping[str, int]]) -> Iterator[str]:
    """A line for each part that takes a thousandth of the cycles of some candidate, or more."""
    for name in dict.fromkeys(name for each in parts for name in each):
        cycles = [each.get(name) for each in parts]
        if any(n and c.cycles <= 1000 * n for c, n in zip(candidates, cycles, strict=True)):
            yield from _cells(f"  {name}", ["" if n is None else f"{n:,}" for n in cycles])


def _cells(name: str, numbers: Sequence[str]) -> Iterator[str]:
    yield "".join([f"  {name}".ljust(FIRST), *(each.rjust(WIDTH) for each in numbers)]).rstrip()
