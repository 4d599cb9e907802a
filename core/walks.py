"""Traversals of graphs of any depth, without recursion: ``below`` gives the nodes that a node is made of."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def reached(starts: Iterable[K], below: Callable[[K], Iterable[K]]) -> set[K]:
    """The nodes that are reachable from some nodes, themselves included."""
    every: set[K] = set()
    todo = list(starts)
    while todo:
        each = todo.pop()
        if each not in every:
            every.add(each)
            todo += below(each)
    return every


def left_unsettled(items: Sequence[T], settle: Callable[[T], bool]) -> list[T]:
    """The items that ``settle`` does not settle, however many of the others are settled before."""
    before: Sequence[T] = ()
    while items and len(items) != len(before):
        before, items = items, [each for each in items if not settle(each)]
    return list(items)


def parts_first(
    starts: Iterable[T],
    below: Callable[[T], Sequence[T]],
    done: Container[T] = (),
    key: Callable[[T], Hashable] | None = None,
) -> Iterator[T]:
    """The nodes that are reachable from some nodes, each once and after those below it (postorder, left to right).

    Nodes in ``done`` are left out; the caller may add to it meanwhile. A node is told from others by itself, or by
    its ``key``.
    """
    given: set[Hashable] = set()
    todo = [(each, False) for each in reversed(list(starts))]
    while todo:
        each, ready = todo.pop()
        known = each if key is None else key(each)
        if known in given or each in done:
            continue
        if ready:
            given.add(known)
            yield each
            continue
        todo.append((each, True))
        todo += [(part, False) for part in reversed(below(each))]
