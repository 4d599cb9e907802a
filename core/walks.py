"""Walks along what is made of what, of any depth: without recursion."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def reached(starts: Iterable[K], below: Callable[[K], Iterable[K]]) -> set[K]:
    """Everything that some things are made of, themselves included."""
    every: set[K] = set()
    todo = list(starts)
    while todo:
        each = todo.pop()
        if each not in every:
            every.add(each)
            todo += below(each)
    return every


def parts_first(
    starts: Iterable[K], below: Callable[[K], Sequence[K]], done: Container[K] = ()
) -> Iterator[K]:
    """Everything that some things are made of, once: each after what it is made of, from left to right, then itself.

    What is ``done`` is left out, and what is so by the time that it is reached.
    """
    given: set[K] = set()
    todo = [(each, False) for each in reversed(list(starts))]
    while todo:
        each, ready = todo.pop()
        if each in given or each in done:
            continue
        if ready:
            given.add(each)
            yield each
            continue
        todo.append((each, True))
        todo += [(part, False) for part in reversed(below(each))]
