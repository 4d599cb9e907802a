"""Kernels of a GPU in which several values are stored: those that a thread computes one after the other.

Example, a moment and what it updates, both stored:
    in:   m2 = 0.9 * m[i,j] + g[i,j]      w2 = w[i,j] - m2[i,j]
    out:  one kernel, a thread for each i and j:  m2[i,j] = ...;  w2[i,j] = w[i,j] - m2[i,j]

A value shares the kernel of pointwise values that read it where all have a thread for each element, over axes of equal
extents in equal order, and each thread reads the element alone that it has written. All else that reads it runs after
that kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.ir.ids import ValueId
from ilang.core.ir.schedule import Nest
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.schedule.groups import Kernels

Walk = tuple[int | None, ...]
"""Of each dimension of a value, the axis of a reader that walks it; None where it is walked otherwise."""


class TogetherKernels:
    """The kernels of a program for a GPU; the values that are stored are placed in them, the last one first."""

    def __init__(
        self, shaped: Shaped, nests: Sequence[Nest | None], whole: set[int], kernels: Kernels
    ) -> None:
        """None yet; ``whole`` are the values that are stored."""
        self.shaped = shaped
        self.nests = nests
        self.whole = whole
        self.kernels = kernels
        self.walks: dict[int, list[tuple[int, Walk]]] = {value: [] for value in whole}
        for root in whole:
            for value, walk in self._walks(root):
                self.walks[value].append((root, walk))
        self.by_element = {value for value in whole if self._is_by_element(value)}

    def add(self, value: int) -> None:
        """Place a value, all of whose readers are placed.

        The kernel is the first to run of those that need the value, if each thread there reads only the element that it
        has written itself; else the value gets a kernel of its own.
        """
        placed, walks = self.kernels.computed, self.walks[value]
        first = max((placed[root] for root, _ in walks), default=-1)  # of those to run, the first
        inside = [(root, walk) for root, walk in walks if placed[root] == first]
        beside = next((root for root, _ in inside), None)
        if value not in self.by_element or not all(self._is_same(value, *each) for each in inside):
            beside = None
        self.kernels.add(value, self._nest(value), (), whole=True, alone=True, beside=beside)

    def _is_same(self, value: int, root: int, walk: Walk) -> bool:
        """Whether each thread of a root reads the element alone of a value that it has written before."""
        if root not in self.by_element or self.shaped.assignment(root).acc is not None:
            return False
        node, reader = self.shaped.assignment(value), self.shaped.assignment(root)
        axes = {part.axis(): axis for part, axis in zip(node.target, walk, strict=True)}
        loops, others = self._loops(value), self._loops(root)
        return [axes[loop] for loop in loops] == others and all(
            node.sizes[one] == reader.sizes[other] for one, other in zip(loops, others, strict=True)
        )

    def _is_by_element(self, value: int) -> bool:
        """Whether a thread computes an element of a value, and that alone: no loop is split, or has another role."""
        node, nest, loops = self.shaped.assignment(value), self._nest(value), self._loops(value)
        outer = [loop.axis for loop in nest.order[: len(loops)]]
        roles = ["p"] * len(loops) + [""] * (len(nest.order) - len(loops))
        return (
            bool(loops)
            and outer == loops
            and [nest.role(n) for n in range(len(nest.order))] == roles
            and not any(nest.factors)
            and not any(nest.spaces)
            and node.base is None
            and sorted(loops)
            == sorted(axis for part in node.target if (axis := part.axis()) is not None)
            and len(loops) == len(node.target)
        )

    def _loops(self, value: int) -> list[int]:
        """The axes of a value's loops over its elements, in order."""
        axes = self.shaped.assignment(value).disjoint_axes()
        return [loop.axis for loop in self._nest(value).order if loop.axis in axes]

    def _walks(self, root: int) -> Iterator[tuple[int, Walk]]:
        """The stored values that a root reads, maybe by way of what it computes in its loops, and how."""
        todo: list[tuple[int, Walk]] = [
            (root, tuple(range(len(self.shaped.assignment(root).axes))))
        ]
        seen = set(todo)
        while todo:
            value, known = todo.pop()
            node, nest = self.shaped.assignment(value), self._nest(value)
            others = [ValueId(each.source) for each in node.lookups()]
            for other in others if node.base is None else [*others, node.base]:
                yield from self._read(other, ())
            for number, read in enumerate(node.reads):
                axes = [part.axis() for part in read.index]
                walk = tuple(None if axis is None else known[axis] for axis in axes)
                producer = self.shaped.nodes[read.value]
                if nest.staged(number) is None or not isinstance(producer, Assignment):
                    yield from self._read(read.value, walk)
                    continue
                inner: list[int | None] = [None] * len(producer.axes)
                for part, axis in zip(producer.target, walk, strict=True):
                    target = part.axis()
                    if target is not None:
                        inner[target] = axis
                step = (read.value, tuple(inner))
                if step not in seen:
                    seen.add(step)
                    todo.append(step)

    def _read(self, value: ValueId, walk: Walk) -> Iterator[tuple[int, Walk]]:
        """A read of a stored value, if it is one; that of a view walks its dimensions otherwise."""
        owner = self.shaped.owner(value)
        if owner in self.whole:
            rank = len(self.shaped.assignment(owner).target)
            yield owner, walk if owner == value and len(walk) == rank else (None,) * rank

    def _nest(self, value: int) -> Nest:
        nest = self.nests[value]
        assert nest is not None
        return nest
