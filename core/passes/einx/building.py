"""One einx operation to nodes of a graph: what has no ellipses any more, over values of known rank.

Example:
    in:   b (s_0 [r_0]) c -> b (s_0) c of n0, sum, r_0=4
    out:  n1 = n0 as b (s_0 r_0) c -> b s_0 r_0 c
          n2 = fold + over r_0: n1[b,s_0,r_0,c]

A composition is a view; a concatenation is parts of a tensor, read or written one by one; brackets are axes that the
operation sees. One name has one extent in all expressions: ``Sized`` constraints of one scope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ilang.core.calculus.affine import Affine, axis_index
from ilang.core.diagnostic import MeaningError, ShapeError
from ilang.core.ir import einx, graph
from ilang.core.ir.operation import Amount, Operation, Sized
from ilang.core.ir.scalar import Operand, Scalar, folded
from ilang.core.ir.spec import AxisLabel as SpecLabel
from ilang.core.ir.spec import Joined, ShapeSpec, Spec, SpecRow, output_shape
from ilang.core.names import Names
from ilang.core.record import record, replace
from ilang.core.source import Span


@record
class LeafDimension:
    """A dimension that is one axis: its key, which is that of no other axis of its tensor unless it is a diagonal.

    ``name`` is that of the expression, None of a number; ``size`` is that of a number. ``position`` is there where one
    position of the dimension is read.
    """

    key: str
    name: str | None
    size: int | None
    marked: bool
    span: Span
    position: int | None = None


@record
class LeafTensor:
    """A value whose dimensions are leaves."""

    value: int
    leaves: tuple[LeafDimension, ...]


Leaves = Sequence[LeafDimension]
Lookups = Sequence[tuple[LeafDimension, LeafTensor]]
"""Axes of a table that are looked up, each with the tensor that gives its positions."""


@record
class Fold:
    """A reduction with an operator over some leaves; those in ``some`` must have an element."""

    acc: str
    leaves: tuple[LeafDimension, ...]
    some: tuple[LeafDimension, ...] = ()


@record
class _Dim:
    item: einx.Item
    marked: bool


class EinxBuilder:
    """Nodes under construction; the values before them are those of ``nodes``."""

    def __init__(
        self,
        nodes: list[graph.Node],
        sized: list[Sized],
        scope: int,
        node: graph.Einx,
        expressions: Sequence[einx.Expression],
        sizes: Mapping[str, int],
    ) -> None:
        """Add to nodes and to constraints.

        Args:
            nodes: so far.
            sized: constraints so far.
            scope: a number that no other operation has.
            node: what is built.
            expressions: of its inputs and outputs, without ellipses.
            sizes: of its axes, as far as they are written.
        """
        self.nodes = nodes
        self.sized = sized
        self.scope = scope
        self.text = node.text
        self.span = node.span
        self.sizes = sizes
        self.keys = Names({name for each in expressions for name in einx.named(each)})
        self.marked: set[str] = set()
        self.numbers: dict[tuple[int, tuple[int, ...]], str] = {}

    def add(self, node: graph.Node) -> int:
        """A node; its value."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def size(self, leaf: LeafDimension) -> int | None:
        """The size that is written for an axis."""
        return leaf.size if leaf.name is None else self.sizes.get(leaf.name)

    # -- dimensions --------------------------------------------------------------------------------------------------

    def taken(self, value: int, expression: einx.Expression) -> LeafTensor:
        """An operand whose dimensions have become leaves; its compositions are views.

        Raises:
            MeaningError: E0227 (a concatenation).
        """
        return self.split(value, dimensions(expression))

    def split(self, value: int, dims: Sequence[_Dim]) -> LeafTensor:
        """A value whose dimensions are compositions, as leaves."""
        flat: list[_Dim] = []
        source: list[tuple[int, ...]] = []
        for dim in dims:
            inner = _members(dim)
            source.append(tuple(range(len(flat), len(flat) + len(inner))))
            flat += inner
        leaves = tuple(self.leaf(dim) for dim in flat)
        if any(len(group) != 1 for group in source):
            target = tuple((n,) for n in range(len(flat)))
            value = self.view(value, leaves, tuple(source), target, dims)
        self.note(value, leaves)
        return LeafTensor(value, leaves)

    def noted(self, value: int, expression: einx.Expression) -> None:
        """Add the constraints that an expression has on the dimensions of a value that is not read."""
        items = [dim.item for dim in dimensions(expression)]
        amounts = tuple(_amount(item, self.sizes) for item in items)
        spans = tuple(item.span for item in items)
        self.sized.append(Sized(value, "dims", amounts, self.scope, spans, self.span))

    def leaf(self, dim: _Dim) -> LeafDimension:
        """A dimension that is one axis: the key of a name in brackets is another one where it stands again.

        The key of a number is the same for one that is written once, wherever it stands.
        """
        item = dim.item
        match item:
            case einx.Axis():
                again = dim.marked and item.name in self.marked
                self.marked |= {item.name} if dim.marked else set()
                key = self.keys.fresh(item.name) if again else item.name
                return LeafDimension(key, item.name, None, dim.marked, item.span)
            case einx.UnnamedAxis():
                place = (item.place, item.at)
                if place not in self.numbers:
                    self.numbers[place] = self.keys.fresh(f"n{item.size}")
                return LeafDimension(self.numbers[place], None, item.size, dim.marked, item.span)
            case _:
                raise MeaningError(
                    "E0227",
                    "only einx.id has concatenations",
                    item.span,
                    "split the tensor with einx.id first, or join the results",
                )

    def view(
        self,
        value: int,
        leaves: Leaves,
        source: graph.Groups,
        target: graph.Groups,
        dims: Sequence[_Dim],
    ) -> int:
        """A view of a value, as text of ``dims``, over axes that are leaves."""
        axes = tuple(graph.Axis(leaf.key, self.size(leaf), leaf.span) for leaf in leaves)
        span = dims[0].item.span.to(dims[-1].item.span) if dims else self.span
        text = " ".join(einx.item_text(dim.item) for dim in dims)
        return self.add(graph.View(value, axes, source, target, text, span))

    def note(self, value: int, leaves: Leaves) -> None:
        """Add the constraints that leaves have on the dimensions of a value."""
        names = tuple(leaf.name if (size := self.size(leaf)) is None else size for leaf in leaves)
        spans = tuple(leaf.span for leaf in leaves)
        self.sized.append(Sized(value, "dims", names, self.scope, spans, self.span))

    def merged(self, tensor: LeafTensor, dims: Sequence[_Dim]) -> int:
        """A tensor whose leaves are those of some dimensions, in order, as these dimensions."""
        counts = [len(_members(dim)) for dim in dims]
        if all(count == 1 for count in counts):
            return tensor.value
        target: list[tuple[int, ...]] = []
        for count in counts:
            first = sum(map(len, target))
            target.append(tuple(range(first, first + count)))
        source = tuple((n,) for n in range(len(tensor.leaves)))
        return self.view(tensor.value, tensor.leaves, source, tuple(target), dims)

    def wanted(self, dims: Sequence[_Dim]) -> tuple[LeafDimension, ...]:
        """The leaves of dimensions that are to be made."""
        return tuple(self.leaf(inner) for dim in dims for inner in _members(dim))

    # -- assignments -------------------------------------------------------------------------------------------------

    def assign(
        self,
        target: Leaves,
        operands: Sequence[LeafTensor],
        scalar: Scalar | Callable[[Mapping[str, int]], Scalar],
        fold: Fold | None = None,
        measured: Leaves = (),
        associative: bool = False,
    ) -> LeafTensor:
        """An assignment over leaves; a dimension of an operand that is no axis of it is read at 0.

        Args:
            target: what the result has, in order.
            operands: what is read.
            scalar: of an element, or what gives it when axes have numbers.
            fold: how it is reduced.
            measured: leaves whose extents the scalar uses, and which are no axes of a loop.
            associative: it is a step of a product of several operands whose order nobody wrote.
        """
        axes = [*target, *(fold.leaves if fold is not None else ()), *measured]
        number = _numbered(axes)
        element = scalar(number) if callable(scalar) else scalar
        acc, leaves = (None, ()) if fold is None else (fold.acc, fold.some)
        node = self._assignment(axes, target, operands, element, acc, skips=bool(fold))
        uncounted = {leaf.key for leaf in measured}
        loops = (replace(axis, measured=axis.name in uncounted) for axis in node.axes)
        some = tuple(number[leaf.key] for leaf in leaves)
        value = self.add(replace(node, axes=tuple(loops), some=some, associative=associative))
        self._tie(value, axes, operands)
        return LeafTensor(value, tuple(target))

    def looked_up(self, target: Leaves, table: LeafTensor, pairs: Lookups) -> LeafTensor:
        """Elements of a table at positions that tensors give: of each pair an axis of the table, and its positions."""
        axes = [*target, *(axis for axis, _ in pairs)]
        operands = [*(place for _, place in pairs), table]
        node = self._assignment(axes, target, operands, Operand(len(pairs)))
        value = self.add(replace(node, lookups=_lookups(axes, pairs)))
        self._tie(value, axes, operands)
        return LeafTensor(value, tuple(target))

    def scattered(
        self, base: LeafTensor, pairs: Lookups, updates: LeafTensor, scalar: Scalar, acc: str | None
    ) -> LeafTensor:
        """A tensor with elements stored anew, or accumulated into, at positions that tensors give."""
        operands = [*(place for _, place in pairs), updates]
        keys = {leaf.key for leaf in base.leaves}
        axes = [*base.leaves]
        for each in operands:
            axes += [leaf for leaf in each.leaves if leaf.key not in keys and leaf.position is None]
        node = self._assignment(axes, base.leaves, operands, scalar, acc)
        value = self.add(replace(node, lookups=_lookups(axes, pairs), base=base.value))
        return LeafTensor(value, base.leaves)

    def _assignment(
        self,
        axes: Leaves,
        target: Leaves,
        operands: Sequence[LeafTensor],
        scalar: Scalar,
        acc: str | None = None,
        skips: bool = False,
    ) -> graph.Assignment:
        """An assignment over these leaves; axes are numbered in their order."""
        number = _numbered(axes)
        index = tuple(axis_index(number[leaf.key]) for leaf in target)
        reads = tuple(_read(each, number, skips, self.span) for each in operands)
        first = {leaf.key: leaf for leaf in reversed(axes)}
        loops = tuple(graph.Axis(key, self.size(first[key]), first[key].span) for key in number)
        return graph.Assignment(loops, index, reads, scalar, acc, None, self.text, self.span)

    def _tie(self, value: int, axes: Leaves, operands: Sequence[LeafTensor]) -> None:
        """Axes that no operand has are those of the operation of their name."""
        read = {leaf.key for each in operands for leaf in each.leaves}
        names = tuple(
            None if leaf.key in read or self.size(leaf) is not None else leaf.name for leaf in axes
        )
        if any(names):
            spans = tuple(leaf.span for leaf in axes)
            self.sized.append(Sized(value, "axes", names, self.scope, spans, self.span))

    def kept(self, tensor: LeafTensor, names: Sequence[str]) -> LeafTensor:
        """A tensor of which other axes have one element: such dimensions are read at 0.

        Raises:
            ShapeError: E0543 (a number that is not 1).
        """
        known = set(names)
        dropped = [leaf for leaf in tensor.leaves if leaf.key not in known]
        for leaf in dropped:
            self.unit(tensor, leaf)
        return tensor

    def unit(self, tensor: LeafTensor, leaf: LeafDimension) -> None:
        """A dimension that is dropped has one element."""
        size = self.size(leaf)
        if size is not None and size != 1:
            says = f"axis {leaf.name}" if leaf.name else "the axis"
            message = f"{says} of size {size} is in no output, and only axes of size 1 are dropped"
            help_line = "write it in the output, or reduce it: einx.sum, einx.mean, ..."
            if not leaf.name and len(tensor.leaves) == 1:
                help_line = f"`{size}` is an axis of {size} elements; for the number leave it out, and pass {size}"
            raise ShapeError("E0543", message, leaf.span, help_line)
        names = tuple(1 if each is leaf else None for each in tensor.leaves)
        spans = tuple(each.span for each in tensor.leaves)
        self.sized.append(Sized(tensor.value, "dims", names, self.scope, spans, leaf.span))

    def copied(self, tensor: LeafTensor, target: Leaves) -> LeafTensor:
        """A tensor with its leaves in another order, diagonals taken, broadcast along those that it lacks."""
        keys = [leaf.key for leaf in target]
        if [leaf.key for leaf in tensor.leaves] == keys:
            return LeafTensor(tensor.value, tuple(target))
        return self.assign(target, [self.kept(tensor, keys)], Operand(0))


def dimensions(expression: einx.Expression) -> list[_Dim]:
    """The dimensions of an expression, brackets noted."""
    return [dim for item in expression.items for dim in _marked(item, False)]


def parts(b: EinxBuilder, value: int, dims: list[_Dim]) -> list[LeafTensor]:
    """The parts of a tensor, in order, all of whose dimensions are leaves."""
    value, dims = _opened(b, value, dims)
    place = next(
        (n for n, dim in enumerate(dims) if isinstance(dim.item, einx.Concatenation)), None
    )
    if place is None:
        return [b.split(value, dims)]
    joined = dims[place].item
    assert isinstance(joined, einx.Concatenation)
    every: list[LeafTensor] = []
    for number, part in enumerate(joined.items):
        sliced = _slice(b, value, dims, place, number)
        every += parts(b, sliced, [*dims[:place], _Dim(part, False), *dims[place + 1 :]])
    return every


def _opened(b: EinxBuilder, value: int, dims: list[_Dim]) -> tuple[int, list[_Dim]]:
    """A value in which no concatenation stands inside a composition."""
    holding = [
        dim
        for dim in dims
        if len(members := _members(dim)) > 1
        and any(isinstance(each.item, einx.Concatenation) for each in members)
    ]
    if not holding:
        return value, dims
    flat: list[_Dim] = []
    source: list[tuple[int, ...]] = []
    for dim in dims:
        inner = _members(dim) if dim in holding else [dim]
        source.append(tuple(range(len(flat), len(flat) + len(inner))))
        flat += inner
    leaves = [_whole(b, dim) for dim in flat]
    target = tuple((n,) for n in range(len(flat)))
    return b.view(value, leaves, tuple(source), target, dims), flat


def _whole(b: EinxBuilder, dim: _Dim) -> LeafDimension:
    if isinstance(dim.item, einx.Axis | einx.UnnamedAxis):
        return b.leaf(dim)
    return LeafDimension(b.keys.fresh("joined"), None, None, dim.marked, dim.item.span)


def _slice(b: EinxBuilder, value: int, dims: Sequence[_Dim], place: int, part: int) -> int:
    """A value of which the dimension at a ``place``, a concatenation, is one of its parts."""
    joined = dims[place].item
    assert isinstance(joined, einx.Concatenation)
    labels, names = _labels(dims, joined)
    given: list[str | tuple[str, ...]] = [*labels]
    given[place] = tuple(names)
    kept = [*labels[:place], names[part], *labels[place + 1 :]]
    spec = _spec([given], kept, b.span, _spans(dims, joined, labels, names))
    sliced = b.add(Operation((value,), Operand(0), "+", spec, spec.text, b.span))
    amounts = tuple(_amount(each, b.sizes) for each in joined.items)
    spans = tuple(each.span for each in joined.items)
    b.sized.append(Sized(sliced, "labels", amounts, b.scope, spans, joined.span, tuple(names)))
    return sliced


def _labels(dims: Sequence[_Dim], joined: einx.Concatenation) -> tuple[list[str], list[str]]:
    """Names for dimensions, and for the parts of one that is a concatenation."""
    unique = Names()

    def label(item: einx.Item, other: str) -> str:
        return unique.fresh(item.name if isinstance(item, einx.Axis) else other)

    names = [label(part, "part") for part in joined.items]
    return [label(dim.item, "d") for dim in dims], names


def _amount(item: einx.Item, sizes: Mapping[str, int]) -> Amount:
    """The size that an item states: a number, a name, a product of these; None where that is more than one product."""
    match item:
        case einx.Axis():
            return sizes.get(item.name, item.name)
        case einx.UnnamedAxis():
            return item.size
        case einx.Composition():
            parts = tuple(_amount(each, sizes) for each in item.items)
            known = tuple(part for part in parts if isinstance(part, str | int))
            return known if len(known) == len(parts) else None
        case _:
            return None


def joined(b: EinxBuilder, dims: list[_Dim], piece: Callable[[list[_Dim]], int]) -> int:
    """A tensor of these dimensions, concatenations put together from pieces; ``piece`` gives the next."""
    flat = [each for dim in dims for each in _members(dim)] if _holds(dims) else dims
    place = next(
        (n for n, dim in enumerate(flat) if isinstance(dim.item, einx.Concatenation)), None
    )
    if place is None:
        return piece(dims)
    item = flat[place].item
    assert isinstance(item, einx.Concatenation)
    values = [
        joined(b, [*flat[:place], _Dim(part, False), *flat[place + 1 :]], piece)
        for part in item.items
    ]
    labels, names = _labels(flat, item)
    result: list[str | tuple[str, ...]] = [*labels]
    result[place] = tuple(names)
    given = [[*labels[:place], name, *labels[place + 1 :]] for name in names]
    spec = _spec(given, result, b.span, _spans(flat, item, labels, names))
    value = b.add(Operation(tuple(values), _first(len(values)), "+", spec, spec.text, b.span))
    if len(flat) == len(dims):
        return value
    leaves = tuple(_whole(b, dim) for dim in flat)
    return b.merged(LeafTensor(value, leaves), dims)


def _numbered(leaves: Leaves) -> dict[str, int]:
    keys = dict.fromkeys(leaf.key for leaf in leaves)
    return {key: n for n, key in enumerate(keys)}


def _read(tensor: LeafTensor, number: Mapping[str, int], skips: bool, span: Span) -> graph.Read:
    index = tuple(
        axis_index(number[leaf.key])
        if leaf.key in number and leaf.position is None
        else Affine((), leaf.position or 0)
        for leaf in tensor.leaves
    )
    return graph.Read(tensor.value, index, skips, tuple(leaf.span for leaf in tensor.leaves), span)


def _lookups(axes: Leaves, pairs: Lookups) -> tuple[graph.Lookup, ...]:
    number = _numbered(axes)
    return tuple(graph.Lookup(number[axis.key], n) for n, (axis, _) in enumerate(pairs))


def _first(count: int) -> Scalar:
    """The scalar of what is put together: each part has its own operand alone."""
    return folded("add", [Operand(number) for number in range(count)])


def _holds(dims: Sequence[_Dim]) -> bool:
    return any(
        isinstance(dim.item, einx.Composition)
        and any(isinstance(each.item, einx.Concatenation) for each in _members(dim))
        for dim in dims
    )


def _marked(item: einx.Item, marked: bool) -> list[_Dim]:
    if isinstance(item, einx.Bracket):
        return [dim for each in item.items for dim in _marked(each, True)]
    return [_Dim(item, marked)]


def _members(dim: _Dim) -> list[_Dim]:
    if not isinstance(dim.item, einx.Composition):
        return [dim]
    return [each for item in dim.item.items for each in _marked(item, dim.marked)]


def _spans(
    dims: Sequence[_Dim], joined: einx.Concatenation, labels: Sequence[str], names: Sequence[str]
) -> dict[str | tuple[str, ...], Span]:
    """The places in the text of what labels stand for."""
    spans: dict[str | tuple[str, ...], Span] = {tuple(names): joined.span}
    spans |= {label: dim.item.span for label, dim in zip(labels, dims, strict=True)}
    return spans | {name: part.span for name, part in zip(names, joined.items, strict=True)}


def _spec(
    operands: Sequence[Sequence[str | tuple[str, ...]]],
    result: Sequence[str | tuple[str, ...]],
    span: Span,
    spans: Mapping[str | tuple[str, ...], Span],
) -> Spec:
    """The einsum specification over labels; a tuple of labels is a concatenation."""

    def shape(axes: Sequence[str | tuple[str, ...]]) -> ShapeSpec:
        entries = tuple(
            SpecLabel(axis, spans[axis]) if isinstance(axis, str) else Joined(axis, spans[axis])
            for axis in axes
        )
        return output_shape(SpecRow(entries, None, ()), span)

    def text(axes: Sequence[str | tuple[str, ...]]) -> str:
        return ",".join(axis if isinstance(axis, str) else "^".join(axis) for axis in axes)

    written = f"{'; '.join(map(text, operands))} => {text(result)}"
    return Spec(tuple(map(shape, operands)), shape(result), True, written, span)
