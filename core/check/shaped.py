"""Invariants of ``ir/shaped.py``."""

from __future__ import annotations

from math import prod

from ilang.core.calculus.affine import Within
from ilang.core.diagnostic import InternalError
from ilang.core.dtype import DTYPES, INTEGERS
from ilang.core.ir.scalar import Apply, Operand, Position, scalars_within
from ilang.core.ir.shaped import Assignment, Shaped, Tensor, View
from ilang.core.ops import PRIMITIVES


def verify(shaped: Shaped) -> None:
    """Raise an InternalError (E9903) naming the first invariant that does not hold."""
    names = [tensor.name for tensor in shaped.tensors]
    _demand(len(set(names)) == len(names), "tensor names are distinct", 0)
    owners = {shaped.owner(value) for value in shaped.outputs}
    _demand(len(owners) == len(shaped.outputs), "each output is memory of its own", 0)
    _demand(
        len({size.name for size in shaped.sizes}) == len(shaped.sizes), "size names are distinct", 0
    )
    _bases(shaped)
    computed = all(isinstance(shaped.nodes[value], Assignment) for value in owners)
    _demand(computed, "an input is no output", 0)
    verified: set[tuple[object, ...]] = set()
    for value, node in enumerate(shaped.nodes):
        tensor = shaped.tensors[value]
        _demand(all(0 <= s < len(shaped.sizes) for s in tensor.dims), "dims are sizes", value)
        ordered = not tensor.order or sorted(tensor.order) == list(range(len(tensor.dims)))
        _demand(ordered, "an order has every dimension", value)
        if isinstance(node, Assignment):
            ordered = all(read.value < value for read in node.reads)
            _demand(ordered, "a node reads smaller numbers", value)
            parts = _identity(shaped, tensor, node)
            if parts not in verified:
                _assignment(shaped, value, node)
                if not node.lookups():  # those are of values that others may not read
                    verified.add(parts)
        elif isinstance(node, View):
            _view(shaped, value, node)


def _bases(shaped: Shaped) -> None:
    """A value that another one takes the place of is used for nothing else."""
    nodes = [(v, node) for v, node in enumerate(shaped.nodes) if isinstance(node, Assignment)]
    bases = [node.base for _, node in nodes if node.base is not None]
    if not bases:
        return
    read = {read.value for _, node in nodes for read in node.reads} | set(shaped.outputs)
    read |= {node.value for node in shaped.nodes if isinstance(node, View)}
    _demand(len(set(bases)) == len(bases), "a base has one successor", 0)
    _demand(not read & set(bases), "a base is not read", 0)
    looked_up = {each.source for _, node in nodes for each in node.lookups()}
    _demand(not looked_up & set(bases), "what is looked up is no base", 0)
    for value, node in nodes:
        if node.base is not None:
            old, new = shaped.tensors[node.base], shaped.tensors[value]
            _demand(isinstance(shaped.nodes[node.base], Assignment), "a base is computed", value)
            _demand(node.base < value, "a base comes before", value)
            _demand((old.dtype, old.dims) == (new.dtype, new.dims), "a base has the type", value)


def _view(shaped: Shaped, value: int, node: View) -> None:
    """A view renames the dimensions of what it is of, and nothing else."""
    tensor, source = shaped.tensors[value], shaped.tensors[node.value]
    _demand(node.value < value, "a node reads smaller numbers", value)
    _demand(tensor.dtype == source.dtype, "a view has the type of what it is of", value)
    _demand(len(node.sizes) == len(node.axes), "every axis has a size", value)
    for groups, dims in ((node.source, source.dims), (node.target, tensor.dims)):
        axes = [axis for group in groups for axis in group]
        _demand(axes == list(range(len(node.axes))), "a view has its axes in order", value)
        _demand(len(groups) == len(dims), "a view has a group a dimension", value)
        for group, size in zip(groups, dims, strict=True):
            extents = [shaped.sizes[node.sizes[axis]].fixed for axis in group]
            whole = shaped.sizes[size].fixed
            known = None if None in extents else prod(extent or 0 for extent in extents)
            one = [node.sizes[axis] for axis in group] == [size]
            same = one or known == whole
            same |= len(group) > 1 and None in (known, whole)
            _demand(same, "a dimension has as many elements as its axes", value)


def _whole(shaped: Shaped, value: int, node: Assignment) -> None:
    """Without a base every element is written."""
    for index, size in zip(node.target, shaped.tensors[value].dims, strict=True):
        axis = index.axis()
        unit = not index.variables() and not index.offset and shaped.sizes[size].fixed == 1
        _demand(
            unit or (axis is not None and node.sizes[axis] == size), "the target is whole", value
        )
    kept = node.output_axes()
    _demand(len(set(kept)) == len(kept), "the target walks distinct axes", value)


def _identity(shaped: Shaped, tensor: Tensor, node: Assignment) -> tuple[object, ...]:
    """The very objects that an assignment is made of, and the types of what it reads and writes."""
    types = [
        (shaped.tensors[read.value].dtype, shaped.tensors[read.value].dims) for read in node.reads
    ]
    reads = [part for read in node.reads for part in (id(read.index), id(read.guards))]
    whole = (id(node.axes), node.sizes, id(node.target), id(node.scalar), node.acc, id(node.guards))
    return (*whole, node.base is None, tensor.dims, *types, *reads)


def _assignment(shaped: Shaped, value: int, node: Assignment) -> None:
    tensor = shaped.tensors[value]
    _demand(len(node.sizes) == len(node.axes), "every axis has a size", value)
    _demand(len(node.target) == len(tensor.dims), "the target has the tensor's rank", value)
    if node.base is None:
        _whole(shaped, value, node)
    _demand(
        not node.guards or node.acc is not None or node.base is not None,
        "what guards leave out is something already",
        value,
    )
    _guards(shaped, value, node, node.guards)
    for read in node.reads:
        _guards(shaped, value, node, read.guards)
        source = shaped.tensors[read.value]
        _demand(len(read.index) == len(source.dims), "a read has the rank of what it reads", value)
        for index, size in zip(read.index, source.dims, strict=True):
            axis = index.axis()
            _demand(
                axis is None or node.sizes[axis] == size, "an axis has the size it walks", value
            )
    _lookups(shaped, value, node)
    for part in scalars_within(node.scalar):
        _demand(part.dtype in DTYPES, "every scalar is typed", value)
        if isinstance(part, Position):
            axes = part.index.variables()
            _demand(axes <= set(range(len(node.axes))), "a position is one along axes", value)
            _demand(part.dtype == "i64", "a position is an i64", value)
        if isinstance(part, Operand):
            _demand(
                part.dtype == shaped.tensors[node.reads[part.number].value].dtype,
                "operands have their type",
                value,
            )
        if isinstance(part, Apply) and PRIMITIVES[part.primitive].kind not in ("logic", "move"):
            alike = part.arguments[PRIMITIVES[part.primitive].kind == "select" :]
            _demand(len({a.dtype for a in alike}) == 1, "arguments have one type", value)


def _lookups(shaped: Shaped, value: int, node: Assignment) -> None:
    """Verify that lookups are of integers that were computed before, at indices over axes."""
    for each in node.lookups():
        source = shaped.tensors[each.source]
        _demand(each.source < value, "what is looked up comes before", value)
        _demand(source.dtype in INTEGERS, "what is looked up is an integer", value)
        _demand(len(each.index) == len(source.dims), "a lookup has the rank of its source", value)
        _demand(0 <= each.size < len(shaped.sizes), "a lookup is an index of a size", value)
        axes = {axis for part in each.index for axis in part.axes()}
        _demand(axes <= set(range(len(node.axes))), "a lookup is over axes", value)


def _guards(shaped: Shaped, value: int, node: Assignment, guards: tuple[Within, ...]) -> None:
    """A guard is a condition on the axes of its assignment and on sizes."""
    for guard in guards:
        axes = guard.index.axes()
        sizes = {size for _, size in guard.index.sizes}
        sizes |= set() if guard.size is None else {guard.size}
        _demand(axes <= set(range(len(node.axes))), "a guard is over axes", value)
        _demand(sizes <= set(range(len(shaped.sizes))), "a guard is over sizes", value)


def _demand(holds: bool, invariant: str, value: int) -> None:
    if not holds:
        raise InternalError("E9903", f"shaped graph, node {value}: {invariant}")
