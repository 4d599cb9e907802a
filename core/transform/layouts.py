"""Layouts: values whose dimensions stand in another order in memory than in the text.

Example, of an x that is stored column by column:
    in:   x[i,j]; y[j];  t1[i,j] = x[i,j] * y[j];  out[j] = sum x[i,j] over i
    out:  x[j,i]; y[j];  t1[j,i] = x[j,i] * y[j];  out[j] = sum x[j,i] over i

Only indices change, so loops are chosen for what is next to each other in memory, and nothing below knows of layouts.
The arrays of a caller say those of inputs. A computed value is laid out as the values of most dimensions that it reads
are, so that all are walked alike; where two of these differ, as it is written. ``Tensor.order`` remembers both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ilang.core.ir.shaped import Assignment, Input, Shaped, View
from ilang.core.record import replace

Order = tuple[int, ...]
"""The dimensions of a value, the outermost in memory first."""


def laid_out(shaped: Shaped, orders: Sequence[Order]) -> Shaped:
    """The program for inputs that are stored in these orders, one per input; arrays come with dimensions ordered so.

    Values that views are of, that are looked up in or taken the place of, stay as they are written.
    """
    fixed = frozenset(_fixed(shaped))
    chosen: dict[int, Order] = {}
    for value, node in enumerate(shaped.nodes):
        order = _plain(len(shaped.tensors[value].dims))
        if isinstance(node, Input):
            order = orders[node.number]
        elif isinstance(node, Assignment) and value not in fixed:
            order = _followed(node, chosen)
        chosen[value] = _plain(len(order)) if value in fixed else order
    return _permuted(shaped, chosen)


def with_long_rows(shaped: Shaped, lanes: int, unstored: Sequence[bool]) -> Shaped:
    """The program whose intermediate values have no short rows, of fewer than so many elements, where longer ones fit.

    Values that are ``unstored`` have no rows.

    Example, of windows of 3 along rows of 40:
        in:   t1[x,v] = exp(in0[x + v]);  out[x] = sum t1[x,v] over v
        out:  t1[v,x] = exp(in0[x + v]);  out[x] = sum t1[v,x] over v
    """
    fixed = frozenset((*_fixed(shaped), *shaped.outputs))
    chosen: dict[int, Order] = {}
    for value, node in enumerate(shaped.nodes):
        chosen[value] = _plain(len(shaped.tensors[value].dims))
        if isinstance(node, Assignment) and value not in fixed and not shaped.tensors[value].order:
            chosen[value] = _long_last(shaped, node, chosen, lanes)
    chosen |= {v: _plain(len(order)) for v, order in chosen.items() if unstored[v]}
    is_plain = all(order == _plain(len(order)) for order in chosen.values())
    return shaped if is_plain else _permuted(shaped, chosen)


def _long_last(shaped: Shaped, node: Assignment, chosen: Mapping[int, Order], lanes: int) -> Order:
    """The order of the dimensions of a pointwise result, the last long one innermost if all it reads walks along it."""
    rank, extents = len(node.target), [shaped.sizes[size].fixed for size in node.sizes]
    axes = [index.axis() for index in node.target]
    lengths = [0 if axis is None else extents[axis] or 0 for axis in axes]
    long = max((dim for dim in range(rank) if lanes <= lengths[dim]), default=None)
    if node.acc is not None or node.schedule is not None or long is None or not all(lengths):
        return _plain(rank)
    for read in node.reads:
        index = [read.index[dim] for dim in chosen[read.value]]
        walked = [
            (step, part is index[-1])
            for part in index
            for step, a in part.steps()
            if a == axes[long]
        ]
        if walked not in ([], [(1, True)]):
            return _plain(rank)
    return (*(dim for dim in range(rank) if dim != long), long)


def _plain(rank: int) -> Order:
    return tuple(range(rank))


def _fixed(shaped: Shaped) -> Iterator[int]:
    """The values whose dimensions something beside plain reads rests on."""
    for value, node in enumerate(shaped.nodes):
        if isinstance(node, View):
            yield from (value, node.value)
        elif isinstance(node, Assignment):
            if node.base is not None:
                yield from (value, node.base)
            if node.lookups():
                yield value
            yield from (each.source for each in node.lookups())


def _followed(node: Assignment, chosen: Mapping[int, Order]) -> Order:
    """The order of the dimensions of a result: that of the axes in what it reads."""
    rank = len(node.target)
    axes = [index.axis() for index in node.target]
    most = max((len(read.index) for read in node.reads), default=0)
    orders = {
        tuple(read.index[dim].axis() for dim in chosen[read.value])
        for read in node.reads
        if len(read.index) == most
    }
    if len(orders) != 1 or None in axes:
        return _plain(rank)
    (along,) = orders
    if any(axis not in along for axis in axes):
        return _plain(rank)
    return tuple(sorted(range(rank), key=lambda dim: along.index(axes[dim])))


def _permuted(shaped: Shaped, chosen: Mapping[int, Order]) -> Shaped:
    """The program with the dimensions of each value in its order."""
    nodes, tensors = list(shaped.nodes), list(shaped.tensors)
    for value, node in enumerate(shaped.nodes):
        order, tensor = chosen[value], tensors[value]
        if order != _plain(len(order)):
            dims = tuple(tensor.dims[dim] for dim in order)
            tensors[value] = replace(tensor, dims=dims, order=order)
        if isinstance(node, Assignment):
            reads = tuple(
                replace(read, index=tuple(read.index[dim] for dim in chosen[read.value]))
                for read in node.reads
            )
            target = tuple(node.target[dim] for dim in order)
            nodes[value] = replace(node, reads=reads, target=target)
    number = {
        node.number: chosen[value]
        for value, node in enumerate(shaped.nodes)
        if isinstance(node, Input)
    }
    sizes = tuple(
        replace(
            size, places=tuple(replace(p, dim=number[p.number].index(p.dim)) for p in size.places)
        )
        for size in shaped.sizes
    )
    return replace(shaped, nodes=tuple(nodes), tensors=tuple(tensors), sizes=sizes)
