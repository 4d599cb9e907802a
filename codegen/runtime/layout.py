"""Components for arrays that are stored in other orders than C's: column by column, transposed.

The compiled program walks arrays as they lie in memory; results lie as what they are computed from, so that a result
of arrays stored column by column is stored so, too, as NumPy has it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.runtime.arguments import shown
from ilang.codegen.runtime.component import Component
from ilang.core.diagnostic import DataError
from ilang.core.notation.components.arity import wires_of
from ilang.core.transform.layouts import laid_out

if TYPE_CHECKING:
    from typing import Self

    from ilang.codegen.runtime.versions import Version
    from ilang.core.ir.graph import Graph
    from ilang.core.ir.shaped import Shaped
    from ilang.core.ir.syntax import Tree
    from ilang.core.transform.layouts import Order

CONTIGUOUS = 1
"""The flag of an array whose elements stand in C's order without gaps."""


def orders_of(arrays: Sequence[Any]) -> tuple[Order, ...] | None:
    """In which orders the dimensions of arrays stand in memory; None where all stand in C's.

    An array that repeats elements, or has none of its own, counts as one in C's order: it is copied in any case.
    """
    if all(type(a) is not np.ndarray or a.flags.num & CONTIGUOUS for a in arrays):
        return None
    orders = tuple(map(_order_of, arrays))
    return orders if any(order != tuple(range(len(order))) for order in orders) else None


def _order_of(array: Any) -> Order:
    plain = tuple(range(np.ndim(array)))
    if type(array) is not np.ndarray or array.flags.num & CONTIGUOUS:
        return plain
    strides = [abs(stride) for stride in array.strides]
    if any(not stride and extent > 1 for stride, extent in zip(strides, array.shape, strict=True)):
        return plain
    return tuple(sorted(plain, key=lambda dim: -strides[dim]))


def checked_orders(layouts: Sequence[object], ranks: Sequence[int]) -> tuple[Order, ...]:
    """Orders as a user says them: "C", "F", or the dimensions, the outermost first. Raises DataError E0716."""
    checked = []
    for layout, rank in zip(layouts, ranks, strict=True):
        plain = tuple(range(rank))
        known = {"C": plain, "F": plain[::-1]}
        order = known.get(layout) if isinstance(layout, str) else None
        if isinstance(layout, tuple | list) and all(type(each) is int for each in layout):
            order = tuple(layout)
        if order is None or sorted(order) != list(plain):
            message = f"{shown(layout)} is no order of {rank} dimensions"
            help_line = 'an order is "C", "F", or every dimension, the outermost first: (1, 0)'
            raise DataError("E0716", message, help=help_line)
        checked.append(order)
    return tuple(checked)


class LaidOut(Component):
    """A component whose arrays stand in memory in orders that are known when it is compiled."""

    __slots__ = ("_back", "_orders", "_plain")

    def __init__(self, tree: Tree, orders: tuple[Order, ...]) -> None:
        """A tree without names, and an order per input."""
        wires = wires_of(tree, {})
        super().__init__(tree, wires)
        self._plain = Component(tree, wires)
        self._orders = orders
        self._back: tuple[Order | None, ...] | None = None

    def __call__(
        self,
        *arrays: Any,
        out: Any = None,
        threads: int | str = 1,
        target: str = "c",
        stream: Any = None,
        **named: Any,
    ) -> Any:
        """Run on arrays, as every component does; the fastest on arrays in these orders."""
        if out is not None or named:
            options = {"threads": threads, "target": target, "stream": stream}
            return self._plain(*arrays, out=out, **options, **named)
        given = [array.transpose(order) for array, order in zip(arrays, self._orders, strict=True)]
        results = super().__call__(*given, threads=threads, target=target, stream=stream)
        back = self._returning()
        if not isinstance(results, tuple):
            return results if back[0] is None else results.transpose(back[0])
        return tuple(
            result if order is None else result.transpose(order)
            for result, order in zip(results, back, strict=True)
        )

    def keep_open(self, names: Collection[str] | None) -> Self:
        """This component, told before its first call which extents stay open; None: all of them."""
        self._plain.keep_open(names)
        return super().keep_open(names)

    def versions(self) -> tuple[Version, ...]:
        """The programs compiled for calls; those that are given an output are compiled as arrays are written."""
        return (*super().versions(), *self._plain.versions())

    def _returning(self) -> tuple[Order | None, ...]:
        """For each output the order that gives its dimensions as the text has them; None where they stand so."""
        if self._back is None:
            shaped = next(iter(self._shapes.values()))
            orders = (shaped.tensors[value].order for value in shaped.outputs)
            self._back = tuple(tuple(np.argsort(order)) if order else None for order in orders)
        return self._back

    def _infer(
        self, graph: Graph, dtypes: tuple[str | None, ...] | None, ranks: tuple[int, ...]
    ) -> Shaped:
        return laid_out(super()._infer(graph, dtypes, ranks), self._orders)

    def shaped(
        self, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """Inferred with these types and shapes, laid out."""
        return laid_out(super().shaped(shapes, dtypes), self._orders)

    def shapes(
        self, *shapes: tuple[int, ...], dtypes: Sequence[object] | None = None
    ) -> tuple[tuple[int, ...], ...]:
        """The shapes of the outputs for inputs of these shapes, whatever their order."""
        return self._plain.shapes(*shapes, dtypes=dtypes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it is made of."""
        return LaidOut, (self._tree, self._orders), self._kept()
