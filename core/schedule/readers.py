"""Who reads what: the readers of each value, the values that outputs need, and those that are stored whole."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.ir.schedule import Nest
from ilang.core.ir.shaped import Assignment, Read, Shaped


def all_reads(shaped: Shaped) -> tuple[list[list[tuple[int, Read]]], set[int]]:
    """Who reads each value, and by which indices; and the values that are stored whole in any case.

    Those that views are of are among these: a view has the elements of memory.
    """
    found: list[list[tuple[int, Read]]] = [[] for _ in shaped.nodes]
    kept = set(map(shaped.owner, shaped.outputs))
    for reader, node in enumerate(shaped.nodes):
        if not isinstance(node, Assignment):
            continue
        if node.base is not None:
            kept |= {reader, node.base}
        kept.update(shaped.owner(each.source) for each in node.lookups())
        for read in dict.fromkeys(node.reads):
            found[read.value].append((reader, read))
            if shaped.owner(read.value) != read.value:
                kept.add(shaped.owner(read.value))
    return found, kept


def whole_values(shaped: Shaped, nests: Sequence[Nest | None]) -> set[int]:
    """The assignments that have loops of their own: outputs, and what something reads that does not stage it."""
    found: set[int] = set(map(shaped.owner, shaped.outputs))
    seen: set[int] = set()
    todo = list(found)
    while todo:
        value = todo.pop()
        node, nest = shaped.nodes[value], nests[value]
        if value in seen or not isinstance(node, Assignment) or nest is None:
            continue
        seen.add(value)
        if node.base is not None:
            found.add(node.base)
            todo.append(node.base)
        looked = [shaped.owner(each.source) for each in node.lookups()]
        found.update(looked)
        todo += looked
        for number, read in enumerate(node.reads):
            owner = shaped.owner(read.value)
            todo.append(owner)
            if nest.staged(number) is None or owner != read.value:
                found.add(owner)
    return {v for v in found if isinstance(shaped.nodes[v], Assignment)}


def readers_of(shaped: Shaped) -> list[list[int]]:
    """Who reads each value, itself or a view of it, or takes its place in memory."""
    found: list[list[int]] = [[] for _ in shaped.nodes]
    for reader, node in enumerate(shaped.nodes):
        if isinstance(node, Assignment):
            below = set(map(shaped.owner, node.values()))
            if node.base is not None:
                below.add(node.base)
            for value in below:
                found[value].append(reader)
    return found


def live_values(shaped: Shaped) -> set[int]:
    """The assignments that an output needs."""
    found: set[int] = set()
    todo = list(map(shaped.owner, shaped.outputs))
    while todo:
        value = todo.pop()
        node = shaped.nodes[value]
        if value in found or not isinstance(node, Assignment):
            continue
        found.add(value)
        todo += map(shaped.owner, node.values())
        todo += [] if node.base is None else [node.base]
    return found
