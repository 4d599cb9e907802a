"""The shaped graph: every rank, extent and element type known.

Produced by ``passes/solved_to_shaped.py``, consumed by the evaluator, the schedule and ``explain``.

Invariants:
    - An extent is a ``Size``: a number, or a name that a run-time argument fills. Dimensions of one size number have
      equal extents.
    - Constants are folded into the scalars that use them; every scalar is typed, its conversions explicit.
    - ``derived`` is in the order in which extents can be computed; a derived size that an argument also gives must
      agree.
    - Each output is memory of its own: an assignment or a view of one, never of an input, never listed twice.
    - Size terms of an index are size numbers.
    - Without a ``base``, every element of the tensor is written: each index of the target is an axis of its own, over
      the whole dimension, or 0 where the dimension has size 1.
    - What is looked up is an i32 or an i64, and no base. A look-up happens only where guards that stand before let it.
    - A view has as many elements as what it is of, in the same order. No view is of a base.
    - An assignment without an ``acc`` that looks up elements of its target stores them in the order of its axes.
    - A ``base`` is an assignment of the same dimensions and type, the base of nothing else, read by nothing, and no
      output: the new value takes its place in memory.
    - An assignment with ``guards`` has an ``acc`` or a ``base``: what an iteration leaves out keeps what was there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ilang.core.calculus.affine import Affine, Looked, Within, lookups
from ilang.core.calculus.extent import Extent, quotient
from ilang.core.dtype import accumulator
from ilang.core.ir.graph import Axis, Backprop, Custom, Groups
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Position, Scalar, scalars_within
from ilang.core.ir.syntax import Schedule
from ilang.core.record import once, record
from ilang.core.source import Span


@record
class InputDimension:
    """Dimension ``dim`` of input ``number``, and where the text gives it a letter or a name."""

    number: int
    dim: int
    span: Span


@record
class Size:
    """An extent: ``fixed`` is its number, or None for a run-time size.

    ``places`` are the input dimensions that have it, in order. The extent of a collapsed axis is the product of those
    ``of`` these names. A ``guessed`` extent, which nothing gives, is
    the least that it can be.
    """

    name: str
    fixed: int | None
    places: tuple[InputDimension, ...]
    of: tuple[str, ...] = ()
    guessed: bool = False

    def is_argument(self) -> bool:
        """Whether a caller gives this extent: it is not fixed, and arrays have it."""
        return self.fixed is None and bool(self.places)


@record
class Derivation:
    """An extent that follows from others: ``size`` is ``whole`` divided by ``divisor``, rounded down.

    The whole is a sum of coefficients times sizes, divided by a number. Where the extent is composed, of dimensions of
    a view, it is a product of sizes, divided by another one that is not 0. The extent is at least ``least``; where
    ``exact``, nothing is left over. A composed one that is not exact is that of dimensions of an array: there is
    nothing to check. ``padding`` is there for the positions of an index of an index expression, the first term then
    being the dimension that it walks: the elements that are added to it, on both ends together. There is one position
    at least where a window spreads over several elements: where one of the sizes ``spread`` is more than 1, which a
    host program has. Where the size is ``known`` already, it must be the same there.
    """

    size: int
    whole: Extent
    divisor: Extent
    exact: bool
    least: int
    padding: int | None
    span: Span
    known: bool = False
    spread: tuple[int, ...] = ()

    def sources(self) -> tuple[int, ...]:
        """The sizes that it follows from."""
        return (*self.whole.sizes(), *self.divisor.sizes())

    def divided(self, extents: Mapping[int, int] | Sequence[int]) -> tuple[int, int]:
        """The extent that follows from others, and what is left over; the divisor is not 0."""
        return divmod(self.whole.value(extents), self.divisor.value(extents))

    def value(self) -> Extent:
        """The extent that follows, whatever is left over."""
        return quotient(self.whole, self.divisor)

    def is_composed(self) -> bool:
        """Whether it is a product of others, divided by others."""
        return self.whole.operation != "+"

    def is_collapsed(self) -> bool:
        """Whether it is that of several dimensions of an array together."""
        return self.is_composed() and not self.exact


@record
class Reach:
    """The positions reached: an ``index`` over loops, each named by its size.

    Every position is inside the dimension of ``size``; a fixed index then is a number, and ``part`` names the axis that
    must not be empty, where it is that of a window of an einsum specification. Without a size every position must stay
    within ``limit`` on both sides of 0, for a ``dtype`` holds it exactly.
    """

    index: Affine
    span: Span
    size: int | None = None
    part: str | None = None
    limit: int = 0
    dtype: str = ""

    def ends(self, extents: Mapping[int, int | None] | Sequence[int | None]) -> tuple[int, int]:
        """The least and the greatest position where sizes have these extents."""
        known = {size: extents[size] for size in self.index.variables()}
        least, most = self.index.minimum(known), self.index.maximum(known)
        assert least is not None
        assert most is not None
        return least.offset, most.offset


@record
class Tensor:
    """A value: its name in loops and messages, its element type, a size number per dimension.

    Dimensions stand as they do in memory. ``order`` has, for each, the one of the text that it is; empty where all
    stand as they are written. ``definition`` is the definition whose result the value is, where another uses that;
    ``part`` the one that it is computed in. The text of a ``named`` one has its name. A tensor that a transform adds
    may have the elements ``of`` another one, by its name.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    order: tuple[int, ...] = ()
    definition: str = ""
    part: str = ""
    named: bool = False
    of: str = ""

    def origin(self) -> str:
        """The name of the tensor of the program that it has the elements of."""
        return self.of or self.name


@record
class Read:
    """One operand: a value and an index per dimension; the element is 0 where one of the ``guards`` does not hold.

    Wherever the guards of the read and of its assignment hold, the index is inside the dimensions.
    """

    __slots__ = ("__dict__", "_hash")

    value: ValueId
    index: tuple[Affine, ...]
    guards: tuple[Within, ...] = ()

    def is_padded(self) -> bool:
        """Whether the guards, if any, say no more than that the index is inside the dimensions."""
        return all(guard.index in self.index for guard in self.guards)


START = "start of "
"""The beginning of the text of an assignment that fills a tensor which several others write."""


@record
class Input:
    """An input of the component, by its position."""

    number: int
    span: Span


@record
class Assignment:
    """An accumulating assignment; ``sizes`` gives the size number of each axis.

    With a ``base``, the tensor is that value with the elements at ``target`` stored anew, or accumulated into where
    there is an ``acc``: what one assignment cannot write alone (diagonals, parts of a concatenation).
    An iteration in which one of the ``guards`` does not hold is left out: it stores and accumulates nothing.
    ``operands`` numbers the reads as they are written; empty where that is their order.
    An ``associative`` one is a step of a product of several operands whose order nobody wrote, or of a gradient of one.
    """

    __slots__ = ("__dict__", "_lookups", "_output_axes", "_reduced_axes", "_values")

    axes: tuple[Axis, ...]
    sizes: tuple[int, ...]
    target: tuple[Affine, ...]
    reads: tuple[Read, ...]
    scalar: Scalar
    acc: str | None
    schedule: Schedule | None
    text: str
    span: Span
    base: ValueId | None = None
    operands: tuple[int, ...] = ()
    guards: tuple[Within, ...] = ()
    associative: bool = False

    def acc_dtype(self) -> str:
        """The type that a reduction accumulates in; the tensor's own type, the scalar's, is what it is rounded to."""
        assert self.scalar.dtype is not None
        return accumulator(self.acc or "", self.scalar.dtype)

    def schedule_span(self) -> Span:
        """The place of the schedule that is written, else of the assignment."""
        return self.span if self.schedule is None else self.schedule.span

    def operand(self, read: int) -> int:
        """The written operand that a read delivers: constants are operands, but no reads."""
        return self.operands[read] if self.operands else read

    def indices(self) -> Iterator[Affine]:
        """Every index: of the target, of what is read, of guards, of positions."""
        yield from self.target
        for read in self.reads:
            yield from read.index
            for guard in read.guards:
                yield guard.index
        for guard in self.guards:
            yield guard.index
        for part in scalars_within(self.scalar):
            if isinstance(part, Position):
                yield part.index

    @once
    def lookups(self) -> tuple[Looked, ...]:
        """The elements that are looked up, each once, in order."""
        looking = [index for index in self.indices() if index.looked]
        return tuple(dict.fromkeys(lookups(looking)))

    @once
    def values(self) -> tuple[ValueId, ...]:
        """The values that are read, in order: operands, then what is looked up."""
        values = [read.value for read in self.reads] + [
            ValueId(each.source) for each in self.lookups()
        ]
        return tuple(dict.fromkeys(values))

    def scatters(self) -> bool:
        """Whether elements of the target are looked up."""
        return any(index.looked for index in self.target)

    def overwrites(self) -> bool:
        """Whether several iterations may store one element: a place that is looked up is all that some axis moves."""
        return self.scatters() and len(self.disjoint_axes()) < len(self.axes)

    @once
    def output_axes(self) -> tuple[int, ...]:
        """The axes of the target, in its order."""
        return tuple(axis for index in self.target for axis in index.variables())

    @once
    def reduced_axes(self) -> tuple[int, ...]:
        """The axes that the target does not have, in order."""
        kept = set(self.output_axes())
        return tuple(axis for axis in range(len(self.axes)) if axis not in kept)

    def disjoint_axes(self) -> frozenset[int]:
        """The axes whose iterations write disjoint elements: each alone walks a dimension of the target."""
        walked = (index.variables() for index in self.target if not index.looked)
        return frozenset(axis for axes in walked if len(axes) == 1 for axis in axes)


@record
class View:
    """The elements of ``value`` in the order in which they are stored, under other dimensions: no memory of its own.

    ``sizes`` are those of the ``axes``; ``source`` has those that each dimension of the value is the product of,
    ``target`` those of each dimension of the view.
    """

    value: ValueId
    axes: tuple[Axis, ...]
    sizes: tuple[int, ...]
    source: Groups
    target: Groups
    text: str
    span: Span


Node = Input | Assignment | View


@record
class Rows:
    """A value as a specification sees it: its axes in memory order, ``batch`` of them first and ``inner`` last."""

    value: int
    axes: tuple[str, ...]
    batch: int
    inner: int


@record
class Counted:
    """A row variable as written, how many axes it stands for, and what says so; ``assumed`` where nothing does."""

    variable: str
    length: int
    because: str
    assumed: bool
    span: Span


@record
class Shaped:
    """A component with everything inferred; ``tensors[n]`` describes the value of ``nodes[n]``.

    ``rows`` and ``counted`` tell what einsum specifications found.
    ``backward`` and ``custom`` are those of the graph; once gradients are attached there are none.
    """

    name: str
    nodes: tuple[Node, ...]
    tensors: tuple[Tensor, ...]
    sizes: tuple[Size, ...]
    derived: tuple[Derivation, ...]
    inputs: tuple[ValueId, ...]
    outputs: tuple[ValueId, ...]
    rows: tuple[Rows, ...] = ()
    counted: tuple[Counted, ...] = ()
    reaches: tuple[Reach, ...] = ()
    backward: tuple[Backprop, ...] = ()
    custom: tuple[Custom, ...] = ()

    def numbered(self) -> Iterator[tuple[ValueId, Node]]:
        """Every value with its node, in order."""
        return ((ValueId(number), node) for number, node in enumerate(self.nodes))

    def assignment(self, value: int) -> Assignment:
        """The assignment that computes a value."""
        node = self.nodes[value]
        assert isinstance(node, Assignment)
        return node

    def last(self) -> list[ValueId]:
        """The last value in the memory of each: an assignment with a base takes the place of that one."""
        last = [value for value, _ in self.numbered()]
        for value, node in reversed([*self.numbered()]):
            if isinstance(node, Assignment) and node.base is not None:
                last[node.base] = last[value]
        return last

    def owner(self, value: ValueId) -> ValueId:
        """The value whose memory has the elements of a value: what a view is of, else the value itself."""
        while isinstance(node := self.nodes[value], View):
            value = node.value
        return value
