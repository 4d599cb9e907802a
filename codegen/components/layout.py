"""Programs for arrays that are stored in other orders than C's: column by column, transposed.

The compiled program walks arrays as they lie in memory; results lie as what they are computed from, so that a result
of arrays stored column by column is stored so, too, as NumPy has it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.call.arguments import shown
from ilang.codegen.components.program import WrittenProgram
from ilang.core.diagnostic import DataError
from ilang.core.transform.layouts import laid_out

if TYPE_CHECKING:
    from ilang.codegen.call.versions import Version
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


class StoredProgram(WrittenProgram):
    """The program of arrays as they are stored: their dimensions, and those of results, in the order of memory."""

    __slots__ = ("_orders",)

    def __init__(self, tree: Tree, orders: tuple[Order, ...]) -> None:
        """A tree without names, and an order per input."""
        super().__init__(tree)
        self._orders = orders

    def infer(self, dtypes: tuple[str | None, ...] | None, ranks: tuple[int, ...]) -> Shaped:
        """The program for these element types and ranks, laid out."""
        return laid_out(super().infer(dtypes, ranks), self._orders)

    def shaped(
        self, shapes: Sequence[tuple[int, ...]] = (), dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """The program with these types and shapes, laid out."""
        return laid_out(super().shaped(shapes, dtypes), self._orders)

    def orders_back(self) -> list[Order | None]:
        """For each output the order that gives its dimensions as the text has them; None where they stand so."""
        shaped = next(iter(self._inferred.values()))
        orders = (shaped.tensors[value].order for value in shaped.outputs)
        return [tuple(np.argsort(order)) if order else None for order in orders]


class LaidOutProgram(WrittenProgram):
    """A program whose arrays stand in memory in orders that are known when it is compiled.

    A call transposes views of its arrays, runs the stored program on them, and transposes the results back. Where there
    is an array for the result, its order is another matter, and arrays are read as they are written.
    """

    __slots__ = ("_back", "_orders", "_stored")

    def __init__(self, tree: Tree, orders: tuple[Order, ...]) -> None:
        """A tree without names, and an order per input."""
        super().__init__(tree)
        self._orders = orders
        self._stored = StoredProgram(tree, orders)
        self._back: list[Order | None] | None = None

    def call(
        self, given: Sequence[Any], out: Any, threads: int | str, target: str, stream: Any
    ) -> Any:
        """Run on arrays, as every program does; the fastest on arrays in these orders."""
        if out is not None:
            return super().call(given, out, threads, target, stream)
        arrays = [array.transpose(order) for array, order in zip(given, self._orders, strict=True)]
        results = self._stored.run(arrays, None, threads, target, stream)
        if self._back is None:
            self._back = self._stored.orders_back()
        several = results if isinstance(results, tuple) else (results,)
        transposed = tuple(
            result if order is None else result.transpose(order)
            for result, order in zip(several, self._back, strict=True)
        )
        return transposed if isinstance(results, tuple) else transposed[0]

    def keep_open(self, names: Collection[str] | None) -> None:
        """Take note, before the first call, of which extents stay open."""
        super().keep_open(names)
        self._stored.keep_open(names)

    def versions(self) -> tuple[Version, ...]:
        """The programs compiled for calls; those that are given an output are compiled as arrays are written."""
        return (*self._stored.versions(), *super().versions())

    def shaped(
        self, shapes: Sequence[tuple[int, ...]] = (), dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """The program with these types and shapes, laid out."""
        return self._stored.shaped(shapes, dtypes)

    def __reduce__(self) -> tuple[Any, ...]:
        return LaidOutProgram, (self._tree, self._orders), self._kept()
