"""Views that move out of the way of fusion, which ``views.py`` describes: one after the other, until none can."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence

from ilang.core.calculus.affine import Affine, axis_index
from ilang.core.infer.unionfind import UnionFind
from ilang.core.ir.assignments import ordered, sources
from ilang.core.ir.graph import Axis, Groups
from ilang.core.ir.ids import ValueId
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.scalar import Apply, Operand, Position, scalars_within, with_operands
from ilang.core.ir.shaped import Assignment, Input, Node, Read, Shaped, Tensor, View
from ilang.core.names import Names
from ilang.core.ops import SLOW
from ilang.core.record import replace

Parts = tuple[tuple[Axis, int], ...]
"""The axes that an axis is split into, each with its size number."""


class ViewMotion:
    """One program: its values keep their numbers until all views have moved, and new ones have the numbers after.

    ``splittable`` are assignments whose axes can be split, for one behind them has been.
    """

    def __init__(self, shaped: Shaped, extents: Extents) -> None:
        self.shaped = shaped
        self.extents = extents
        self.nodes: list[Node] = list(shaped.nodes)
        self.tensors: list[Tensor] = list(shaped.tensors)
        self.outputs = frozenset(shaped.outputs)
        self.sizes = UnionFind(len(shaped.sizes))
        self.splittable: set[tuple[int, frozenset[int]]] = set()
        self.names = Names(frozenset(tensor.name for tensor in shaped.tensors))
        self.users: list[set[int]] = [set() for _ in self.nodes]
        for value in range(len(self.nodes)):
            self._used(value)
        self.views: dict[tuple[ValueId, Groups, tuple[int, ...]], ValueId] = {}
        self.todo: deque[int] = deque()

    def run(self) -> Shaped:
        """Move each view as far as it goes, the ones that come up after the others."""
        self.todo.extend(v for v, node in enumerate(self.nodes) if isinstance(node, View))
        while self.todo:
            value = self.todo.popleft()
            node = self.nodes[value]
            if not isinstance(node, View) or not (self.users[value] or value in self.outputs):
                continue
            view = self._composed(value, node)
            if view is not None and not self._split_before(value, view):
                self._split_behind(value, view)
        return self._finished()

    # -- the graph ---------------------------------------------------------------------------------------------------

    def _used(self, value: int) -> None:
        """Note whom a node reads."""
        for source in sources(self.nodes[value]):
            self.users[source].add(value)

    def _put(self, value: int, node: Node) -> None:
        for source in sources(self.nodes[value]):
            self.users[source].discard(value)
        self.nodes[value] = node
        self._used(value)

    def _add(self, node: Node, tensor: Tensor) -> ValueId:
        self.nodes.append(node)
        self.tensors.append(tensor)
        self.users.append(set())
        number = ValueId(len(self.nodes) - 1)
        self._used(number)
        return number

    def _is_sole(self, value: int, user: int) -> bool:
        """Whether a value is needed by one other alone."""
        return self.users[value] == {user} and value not in self.outputs

    def _reads(self, value: int, user: int) -> list[Read] | None:
        """The reads of a value by an assignment; None where it is used in another way, too."""
        node = self.nodes[user]
        if not isinstance(node, Assignment) or node.base == value:
            return None
        if any(each.source == value for each in node.lookups()):
            return None
        return [read for read in node.reads if read.value == value]

    # -- views of views ----------------------------------------------------------------------------------------------

    def _composed(self, value: int, node: View) -> View | None:
        """A view as one of what its own source is a view of; None where it is of no use any more."""
        inner = self.nodes[node.value]
        while isinstance(inner, View):
            both = _one_view(node, inner, self._is_same)
            if both is None:
                break
            node = both
            self._put(value, node)
            inner = self.nodes[node.value]
        pairs = list(zip(self.tensors[value].dims, self.tensors[node.value].dims, strict=False))
        same = node.source == node.target and all(self._is_same(*pair) for pair in pairs)
        if not same or value in self.outputs:
            return node
        reads = [self._reads(value, user) for user in self.users[value]]
        viewed = [isinstance(self.nodes[user], View) for user in self.users[value]]
        if any(r is None and not v for r, v in zip(reads, viewed, strict=True)):
            return node
        for user in sorted(self.users[value]):
            self._redirect(user, value, node.value)
        for one, other in pairs:  # two numbers that are equal, and now one dimension
            self.sizes.union(one, other)
        return None

    def _redirect(self, user: int, old: int, new: int) -> None:
        """Let a node read another value."""
        node = self.nodes[user]
        if isinstance(node, View):
            self._put(user, replace(node, value=new))
            self.todo.append(user)
        elif isinstance(node, Assignment):
            reads = tuple(replace(r, value=new) if r.value == old else r for r in node.reads)
            self._put(user, replace(node, reads=reads))
        self.todo.extend(v for v in self.users[new] if isinstance(self.nodes[v], View))

    def _is_same(self, one: int, other: int) -> bool:
        """Whether two sizes are known to be one."""
        fixed = self.shaped.sizes[one].fixed
        return one == other or (fixed is not None and fixed == self.shaped.sizes[other].fixed)

    # -- axes that are split -----------------------------------------------------------------------------------------

    def _split_before(self, value: int, view: View) -> bool:
        """Split what a view is of as the view does, if one expression reads the view and nothing else reads that."""
        source = self.nodes[view.value]
        readers = self.users[value]
        if not isinstance(source, Assignment) or len(readers) != 1 or value in self.outputs:
            return False
        if source.acc is not None or not self._is_sole(view.value, value):
            return False
        splits = _splits(view, view.source, source.target)
        if not splits or not self._can_split(view.value, splits):
            return False
        self._split(view.value, splits, view)
        self.todo.append(value)
        return True

    def _split_behind(self, value: int, view: View) -> bool:
        """Split the one expression that reads a view as what the view is of, if it does nothing but that."""
        source, readers = self.nodes[view.value], self.users[value]
        if not isinstance(source, Assignment) or len(readers) != 1 or value in self.outputs:
            return False
        (reader,) = readers
        node, reads = self.nodes[reader], self._reads(value, reader)
        if not reads or not isinstance(node, Assignment):
            return False
        if node.acc is not None and source.acc is not None:
            return False  # what is stored is read in one long loop
        alone = source.schedule is None and self._is_sole(view.value, value)
        whole = all(_axes(read.index) == set(range(len(node.axes))) for read in reads)
        if not alone or not whole:
            return False
        splits: dict[int, Parts] = {}
        for read in reads:
            behind = _splits(view, view.target, read.index)
            if not behind or any(
                splits.setdefault(a, parts) != parts for a, parts in behind.items()
            ):
                return False
        if not self._can_split(reader, splits, value):
            return False
        self._split(reader, splits, view)
        return True

    def _can_split(self, value: int, splits: Mapping[int, Parts], beside: int = -1) -> bool:
        """Whether the axes of an assignment can be split, and no value but ``beside`` is stored for it.

        Operands along these axes are arrays, views, stored in any case, or can be split themselves.
        """
        short = any(parts and self.extents.is_small(parts[-1][1]) for parts in splits.values())
        todo = [(value, frozenset(splits))]
        seen: set[tuple[int, frozenset[int]]] = set()
        while todo:
            moved, axes = todo.pop()
            if (moved, axes) in self.splittable:
                continue
            seen.add((moved, axes))
            node = self.nodes[moved]
            if not isinstance(node, Assignment) or not _is_plain(node, axes):
                return False
            if short and _is_slow(node):
                return False
            if any(
                x.base == moved
                for x in map(self.nodes.__getitem__, self.users[moved])
                if isinstance(x, Assignment)
            ):
                return False
            for read in node.reads:
                dims = [d for d, index in enumerate(read.index) if index.axis() in axes]
                producer = self.nodes[read.value]
                if not dims or read.value == beside or not isinstance(producer, Assignment):
                    continue
                if not self._is_sole(read.value, moved):
                    continue
                inner = [producer.target[d].axis() for d in dims]
                if producer.acc is not None or None in inner:
                    return False
                todo.append((read.value, frozenset(axis for axis in inner if axis is not None)))
        self.splittable |= seen
        return True

    def _split(self, value: int, splits: Mapping[int, Parts], view: View) -> None:
        """Compute a value under more dimensions; the value becomes a view of that."""
        node, tensor = self.nodes[value], self.tensors[value]
        assert isinstance(node, Assignment)
        number: dict[int, tuple[int, ...]] = {}
        axes: list[tuple[Axis, int]] = []
        for axis, known in enumerate(zip(node.axes, node.sizes, strict=True)):
            parts = splits.get(axis, (known,))
            number[axis] = tuple(range(len(axes), len(axes) + len(parts)))
            axes += parts
        reads = tuple(self._split_read(read, splits, number, view) for read in node.reads)
        target = _split_index(node.target, splits, number)
        plain = {axis: parts[0] for axis, parts in number.items() if axis not in splits}
        operands = [Operand(n, self.tensors[r.value].dtype) for n, r in enumerate(node.reads)]
        split = replace(
            node,
            axes=tuple(axis for axis, _ in axes),
            sizes=tuple(size for _, size in axes),
            target=target,
            reads=reads,
            scalar=with_operands(node.scalar, operands, lambda part: part.renamed(plain)),
            guards=tuple(replace(g, index=g.index.renamed(plain)) for g in node.guards),
        )
        if not any(index.axis() in splits for index in node.target):
            self._put(value, split)
            return
        whole = self._view_of(ValueId(-1), self._dims(tensor, node.target, splits, view), view)
        is_output = value in self.outputs
        other = self.names.fresh(f"{tensor.name}_{'parts' if is_output else 'view'}")
        name, of = other if is_output else tensor.name, tensor.origin()
        held = self._add(split, Tensor(name, tensor.dtype, whole.sizes, of=of))
        self.tensors[value] = tensor if is_output else replace(tensor, name=other, of=of)
        self._put(value, replace(whole, value=held, source=whole.target, target=whole.source))
        self.todo += [value, *(v for v in self.users[value] if isinstance(self.nodes[v], View))]

    def _split_read(
        self,
        read: Read,
        splits: Mapping[int, Parts],
        number: Mapping[int, tuple[int, ...]],
        view: View,
    ) -> Read:
        """A read of a view that splits what is read along split axes."""
        plain = {axis: parts[0] for axis, parts in number.items() if axis not in splits}
        guards = tuple(replace(g, index=g.index.renamed(plain)) for g in read.guards)
        index = _split_index(read.index, splits, number)
        if not any(part.axis() in splits for part in read.index):
            return replace(read, index=index, guards=guards)
        tensor = self.tensors[read.value]
        node = self._view_of(read.value, self._dims(tensor, read.index, splits, view), view)
        key = (read.value, node.source, node.sizes)
        if key not in self.views:
            name = self.names.fresh(f"{tensor.name.removesuffix('_view')}_view")
            seen = Tensor(name, tensor.dtype, node.sizes, of=tensor.origin())
            self.views[key] = self._add(node, seen)
        self.todo.append(self.views[key])
        return Read(self.views[key], index, guards)

    def _dims(
        self, tensor: Tensor, index: Sequence[Affine], splits: Mapping[int, Parts], view: View
    ) -> list[Parts]:
        """The parts of each dimension of a tensor that an index walks: one, called after its size, if not split."""
        dims = []
        for part, size in zip(index, tensor.dims, strict=True):
            axis = part.axis()
            alone = Axis(self.shaped.sizes[size].name, None, view.span)
            dims.append(((alone, size),) if axis is None else splits.get(axis, ((alone, size),)))
        return dims

    def _view_of(self, value: ValueId, dims: Sequence[Parts], view: View) -> View:
        """The view that has an axis for each part of each dimension of a value."""
        axes = [part for parts in dims for part in parts]
        source, first = [], 0
        for parts in dims:
            source.append(tuple(range(first, first + len(parts))))
            first += len(parts)
        return View(
            value,
            tuple(axis for axis, _ in axes),
            tuple(size for _, size in axes),
            tuple(source),
            tuple((axis,) for axis in range(len(axes))),
            view.text,
            view.span,
        )

    # -- the result --------------------------------------------------------------------------------------------------

    def _finished(self) -> Shaped:
        """The program without what nothing reads, each value after those that it reads."""
        nodes = tuple(_resized(node, self.sizes.find) for node in self.nodes)
        tensors = tuple(
            replace(tensor, dims=tuple(map(self.sizes.find, tensor.dims)))
            for tensor in self.tensors
        )
        return ordered(replace(self.shaped, nodes=nodes, tensors=tensors))


def _axes(index: Sequence[Affine]) -> set[int | None]:
    """The axes that walk whole dimensions; None among them where an index is anything else."""
    return {part.axis() for part in index}


def _splits(view: View, groups: Groups, index: Sequence[Affine]) -> dict[int, Parts]:
    """The axes that walk dimensions which a view has as products, and what each is split into.

    No axis where one of these dimensions is walked otherwise, or an axis would be split in two ways.
    """
    splits: dict[int, Parts] = {}
    for group, part in zip(groups, index, strict=True):
        if len(group) == 1:
            continue
        axis = part.axis()
        parts = tuple((view.axes[x], view.sizes[x]) for x in group)
        if axis is None or splits.setdefault(axis, parts) != parts:
            return {}
    return splits


def _is_plain(node: Assignment, axes: Collection[int]) -> bool:
    """Whether some axes of an assignment are nothing but whole indices, and nobody has written its loops."""
    if node.schedule is not None or node.base is not None:
        return False
    indices = [*node.target, *(index for read in node.reads for index in read.index)]
    guards = [*node.guards, *(guard for read in node.reads for guard in read.guards)]
    others = [index for index in indices if index.axis() is None]
    others += [guard.index for guard in guards]
    others += [part.index for part in scalars_within(node.scalar) if isinstance(part, Position)]
    return not any(index.axes() & set(axes) for index in others)


def _is_slow(node: Assignment) -> bool:
    """Whether an assignment computes an exponential or the like, which short loops do without lanes."""
    applied = (part.primitive for part in scalars_within(node.scalar) if isinstance(part, Apply))
    return any(primitive in SLOW for primitive in applied)


def _split_index(
    index: Sequence[Affine], splits: Mapping[int, Parts], number: Mapping[int, tuple[int, ...]]
) -> tuple[Affine, ...]:
    """An index over split axes: one for each part of an axis that is split."""
    plain = {axis: parts[0] for axis, parts in number.items() if axis not in splits}
    index_parts: list[Affine] = []
    for part in index:
        axis = part.axis()
        if axis is not None and axis in splits:
            index_parts += map(axis_index, number[axis])
        else:
            index_parts.append(part.renamed(plain))
    return tuple(index_parts)


def _one_view(outer: View, inner: View, is_same: Callable[[int, int], bool]) -> View | None:
    """A view of a view as one; None where they divide a dimension between them in two ways.

    Example: in: x as a b -> (a b), seen as (c:2 d) -> c d: None; seen as (a b) -> a b: x as a b -> a b
    """
    axes: list[tuple[Axis, int]] = []
    within: dict[int, tuple[int, ...]] = {}
    without: dict[int, tuple[int, ...]] = {}
    for one, other in zip(inner.target, outer.source, strict=True):
        sizes = [inner.sizes[x] for x in one], [outer.sizes[x] for x in other]
        alike = len(one) == len(other) and all(map(is_same, *sizes))
        if not alike and 1 not in (len(one), len(other)):
            return None
        by_inner = alike or len(other) == 1
        view, group = (inner, one) if by_inner else (outer, other)
        numbers = tuple(range(len(axes), len(axes) + len(group)))
        axes += ((view.axes[x], view.sizes[x]) for x in group)
        within |= (
            {x: (n,) for x, n in zip(one, numbers, strict=True)} if by_inner else {one[0]: numbers}
        )
        same = alike or not by_inner
        without |= (
            {x: (n,) for x, n in zip(other, numbers, strict=True)} if same else {other[0]: numbers}
        )

    def groups(sides: Groups, parts: Mapping[int, tuple[int, ...]]) -> Groups:
        return tuple(tuple(n for axis in group for n in parts[axis]) for group in sides)

    return replace(
        outer,
        value=inner.value,
        axes=tuple(axis for axis, _ in axes),
        sizes=tuple(size for _, size in axes),
        source=groups(inner.source, within),
        target=groups(outer.target, without),
    )


def _resized(node: Node, size: Callable[[int], int]) -> Node:
    """A node whose axes have other size numbers, of the same extents."""
    return node if isinstance(node, Input) else replace(node, sizes=tuple(map(size, node.sizes)))
