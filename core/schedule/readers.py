"""Readers: those of each value, the values that outputs need, and those that are stored whole.

``compared`` are values that have to be computed once: an equality is between one and a reduction of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Apply, Operand, scalars_within
from ilang.core.ir.schedule import Nest
from ilang.core.ir.shaped import Assignment, Shaped

EQUALITIES = ("eq", "neq")


def whole_values(shaped: Shaped, nests: Sequence[Nest | None]) -> set[int]:
    """The assignments that have loops of their own: outputs, and what something reads that does not stage it."""
    whole: set[ValueId] = set(map(shaped.owner, shaped.outputs))
    seen: set[ValueId] = set()
    todo = list(whole)
    while todo:
        value = todo.pop()
        node, nest = shaped.nodes[value], nests[value]
        if value in seen or not isinstance(node, Assignment) or nest is None:
            continue
        seen.add(value)
        if node.base is not None:
            whole.add(node.base)
            todo.append(node.base)
        looked = [shaped.owner(ValueId(each.source)) for each in node.lookups()]
        whole.update(looked)
        todo += looked
        for number, read in enumerate(node.reads):
            owner = shaped.owner(read.value)
            todo.append(owner)
            if nest.staged(number) is None or owner != read.value:
                whole.add(owner)
    return {v for v in whole if isinstance(shaped.nodes[v], Assignment)}


def parted_values(shaped: Shaped, nests: Sequence[Nest | None]) -> set[int]:
    """The assignments whose reduced loops may have results of their own: stored whole, and nothing stages them."""
    return whole_values(shaped, nests) - staged_values(shaped, nests)


def staged_values(shaped: Shaped, nests: Sequence[Nest | None]) -> set[int]:
    """The values that some reader stages, whoever else reads them."""
    return {
        shaped.owner(read.value)
        for node, nest in zip(shaped.nodes, nests, strict=True)
        if isinstance(node, Assignment) and nest is not None
        for number, read in enumerate(node.reads)
        if nest.staged(number) is not None
    }


def readers_of(shaped: Shaped) -> list[list[int]]:
    """The readers of each value, of itself or of a view of it, or those that take its place in memory."""
    readers: list[list[int]] = [[] for _ in shaped.nodes]
    for reader, node in enumerate(shaped.nodes):
        if isinstance(node, Assignment):
            below = set(map(shaped.owner, node.values()))
            if node.base is not None:
                below.add(node.base)
            for value in below:
                readers[value].append(reader)
    return readers


def live_values(shaped: Shaped) -> set[int]:
    """The assignments that an output needs."""
    live: set[int] = set()
    todo = list(map(shaped.owner, shaped.outputs))
    while todo:
        value = todo.pop()
        node = shaped.nodes[value]
        if value in live or not isinstance(node, Assignment):
            continue
        live.add(value)
        todo += map(shaped.owner, node.values())
        todo += [] if node.base is None else [node.base]
    return live


def compared(shaped: Shaped) -> Iterator[tuple[Assignment, set[int]]]:
    """Equalities, and what both sides of each come from, one of them through a reduction."""
    for node in shaped.nodes:
        if not isinstance(node, Assignment) or len(node.reads) < 2:
            continue
        for part in scalars_within(node.scalar):
            if isinstance(part, Apply) and part.primitive in EQUALITIES:
                numbers = {
                    each.number for each in scalars_within(part) if isinstance(each, Operand)
                }
                sides = [sources(shaped, node.reads[number].value) for number in sorted(numbers)]
                for one, other in combinations(sides, 2):
                    yield node, {v for v in one if v in other and (one[v] or other[v])}


def sources(shaped: Shaped, value: int) -> dict[int, bool]:
    """Every value that an assignment comes from, itself included, and whether through a reduction."""
    reached: dict[int, bool] = {}
    todo = [(value, False)]
    while todo:
        at, reduced = todo.pop()
        node = shaped.nodes[at]
        if not isinstance(node, Assignment) or (at in reached and reached[at] >= reduced):
            continue
        reached[at] = reduced
        todo += [(v, reduced or node.acc is not None) for v in node.values()]
    return reached
