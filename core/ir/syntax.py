"""Syntax: a program as it was written, every node with its span.

Produced by ``notation/``, printed back by ``notation/components/printer.py``, consumed by
``passes/syntax_to_graph.py``.

Invariants:
    - ``parse(print(tree)) == tree`` for every tree a parser can make; spans take no part in equality.
    - A tree may be deep on its left (a chain of ten thousand expressions): traverse it with ``postorder``, compare it
      with ``same``, never by recursion.
    - ``i("...")`` and a bare expression are the same node.
    - An ``Application`` or a ``Block`` is the whole body of a definition, or an application is an argument or a
      statement of one; components hold neither. The name of a ``Value`` stands in the head or above it.
    - As many arguments as inputs and as many names as outputs: a definition that is read has both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from ilang.core.ir.scalar import Scalar
from ilang.core.ir.spec import Fixed, Spec
from ilang.core.record import record, replace
from ilang.core.source import Source, Span

if TYPE_CHECKING:
    from ilang.core.ir.einx import Form
    from ilang.core.ir.functions import Function, Routine


@record
class Axis:
    """One index of a pattern: a letter that walks one dimension."""

    letter: str
    span: Span


@record
class Term:
    """``2y`` or ``u:3`` in an affine index: a coefficient (not 0), an axis, and its extent where one is written."""

    coefficient: int
    axis: Axis
    extent: int | None


@record
class Linear:
    """``2y+u-1``: terms, in a guard perhaps none, and a number.

    In parentheses it is an index of one dimension; ``(i+0)`` reads like ``i`` but leaves the extent of i open.
    """

    terms: tuple[Term, ...]
    offset: int
    span: Span


Index = Axis | Linear | Fixed


Relation = Literal["<", "<=", ">", ">=", "=="]


@record
class Guard:
    """``j<=i``: what must hold for an element to count."""

    left: Linear
    relation: Relation
    right: Linear
    span: Span

    def axes(self) -> tuple[Axis, ...]:
        """The axes in the order in which they are written."""
        return tuple(term.axis for term in (*self.left.terms, *self.right.terms))


@record
class Pattern:
    """The indices of one input or output, one per dimension; none for rank 0 (written ``.``).

    An input may have ``guards``: ``ij[j<=i]``. All guards must hold.
    """

    indices: tuple[Index, ...]
    span: Span
    guards: tuple[Guard, ...] = ()

    def axes(self) -> tuple[Axis, ...]:
        """The axes in the order in which they are written, those of groups included."""
        axes: list[Axis] = []
        for index in self.indices:
            match index:
                case Axis():
                    axes.append(index)
                case Linear():
                    axes.extend(term.axis for term in index.terms)
                case Fixed():
                    pass
        return tuple(axes)

    def letters(self) -> str:
        """The letters of the axes in order; empty for rank 0."""
        return "".join(axis.letter for axis in self.axes())


@record
class Position:
    """``@i``, ``@(2i+j-1)``, ``@(c:10)``: where an iteration is, in place of an input.

    ``:j`` has no terms, but the ``extent`` of an axis: how many elements there are along it, the same everywhere.
    """

    terms: tuple[Term, ...]
    offset: int
    span: Span
    extent: Axis | None = None

    def axes(self) -> tuple[Axis, ...]:
        """The axes in the order in which they are written."""
        return tuple(term.axis for term in self.terms)

    def letters(self) -> str:
        """The letters of the axes in order."""
        return "".join(axis.letter for axis in self.axes())


Leaf = Pattern | Position


@record
class Lookup:
    """``bt@vd``: an element of ``table`` at a position that an element of ``place`` gives.

    Or one element of the result at that position, where the axis that is looked up is one of the output.
    """

    place: Pattern
    table: Leaf
    span: Span

    def axes(self) -> tuple[Axis, ...]:
        """The axes in the order in which they are written."""
        return (*self.place.axes(), *self.table.axes())

    def letters(self) -> str:
        """The letters of the axes in order."""
        return self.place.letters() + self.table.letters()


Operand = Leaf | Lookup


@record
class Split:
    """``i:2:4``: the factors of an axis, outermost first."""

    axis: str
    factors: tuple[int, ...]
    span: Span


@record
class LoopPart:
    """``i''``: part 2 of axis i; part 0 is the outermost."""

    axis: str
    part: int
    span: Span

    def text(self) -> str:
        """The loop as it is written."""
        return self.axis + "'" * self.part


@record
class Site:
    """A digit in an order: where the producer of that input is computed."""

    operand: int
    span: Span


@record
class Start:
    """``!`` in an order: where a reduction starts."""

    span: Span


@record
class WrittenRole:
    """``i':v``, the role of a loop (p t v u q), or ``0:s``, the storage of a staged input (s s2 r c), by its number."""

    of: LoopPart | int
    role: str
    span: Span


@record
class Schedule:
    """``| splits | order | roles``: as written; an empty order means the default order."""

    splits: tuple[Split, ...]
    order: tuple[LoopPart | Site | Start, ...]
    roles: tuple[WrittenRole, ...]
    span: Span

    def loops(self) -> Iterator[tuple[LoopPart, WrittenRole]]:
        """The loops that have roles, with these."""
        yield from ((each.of, each) for each in self.roles if isinstance(each.of, LoopPart))


@record
class Expression:
    """One index expression. ``op`` is None where none is written (then it means ``+``); ``right`` None if unary."""

    op: str | None
    left: Operand
    right: Operand | None
    output: Pattern
    schedule: Schedule | None
    span: Span

    def operands(self) -> tuple[Operand, ...]:
        """The operands on the sides of the operator."""
        return (self.left,) if self.right is None else (self.left, self.right)

    def leaves(self) -> tuple[Leaf, ...]:
        """The operands in order; those of a lookup are two. A schedule counts them so."""
        leaves: list[Leaf] = []
        for operand in self.operands():
            leaves += [operand.place, operand.table] if isinstance(operand, Lookup) else [operand]
        return tuple(leaves)

    def inputs(self) -> tuple[Pattern, ...]:
        """The operands that are inputs, in order."""
        return tuple(leaf for leaf in self.leaves() if isinstance(leaf, Pattern))

    def lookups(self) -> tuple[Lookup, ...]:
        """The operands that are looked up."""
        return tuple(operand for operand in self.operands() if isinstance(operand, Lookup))

    def lookup_axes(self, lookup: Lookup) -> tuple[str, ...]:
        """The axes that a lookup may mean, of which there must be one.

        Axes of the table that stand neither in the place nor in the output; else those of the output alone.
        """
        known = set(lookup.place.letters() + self.output.letters())
        read = [letter for letter in lookup.table.letters() if letter not in known]
        operands = {letter for operand in self.operands() for letter in operand.letters()}
        written = [letter for letter in self.output.letters() if letter not in operands]
        return tuple(dict.fromkeys(read or written))

    def looked_up(self) -> frozenset[str]:
        """Every axis that is looked up: no loop runs over it."""
        return frozenset(letter for lookup in self.lookups() for letter in self.lookup_axes(lookup))


@record
class Einsum:
    """``einsum("ij; jk => ik")``: an extended einsum specification as a component.

    ``path``: the order in which its operands are contracted, where it is not one nest
    (``notation/einsum/contraction.py``); None where nobody chose one.
    """

    spec: Spec
    schedule: Schedule | None
    span: Span
    path: tuple[tuple[int, ...], ...] | None = ()


KernelOrder = Literal["f", "c"]
"""The axes of inputs of several ranks that correspond: the last ones, or the first ones."""


@record
class KernelInput:
    """An input of an elementwise kernel: its name, and its rank, None where nothing says it yet."""

    name: str
    rank: int | None
    span: Span


@record
class KernelOutput:
    """An output of an elementwise kernel: a scalar function of an element of each input, in steps.

    Operands are the inputs and, numbered after them, the steps before; the last step is the output.
    ``acc`` is None where inputs of lesser rank are repeated, else the operator by which inputs of greater rank are
    folded first, to ``rank`` or, where that is None, to the least rank of the inputs.
    """

    steps: tuple[Scalar, ...]
    acc: str | None
    rank: int | None
    text: str
    span: Span


@record
class ElementKernel:
    """``elementwise("f: x[i,j], y[j] -> x * y; sum: x + y")``: outputs computed element by element.

    ``order`` says which axes correspond: the last ones (``f``) or the first ones (``c``) of each input.
    """

    order: KernelOrder
    inputs: tuple[KernelInput, ...]
    outputs: tuple[KernelOutput, ...]
    text: str
    span: Span

    def ranked(self, ranks: Sequence[int | None]) -> ElementKernel:
        """The kernel whose inputs have these ranks where they write none."""
        pairs = zip(self.inputs, ranks, strict=True)
        inputs = (replace(each, rank=n) if each.rank is None else each for each, n in pairs)
        return replace(self, inputs=tuple(inputs))

    def full_rank(self) -> int | None:
        """The greatest rank of the inputs, where all are known."""
        ranks = [each.rank for each in self.inputs]
        return None if None in ranks else max(rank for rank in ranks if rank is not None)

    def rank_of(self, output: KernelOutput) -> int | None:
        """The rank of an output, where those of all inputs are known."""
        if output.acc is None or output.rank is not None:
            return self.full_rank() if output.acc is None else output.rank
        ranks = [each.rank for each in self.inputs]
        return None if None in ranks else min(rank for rank in ranks if rank is not None)


@record
class Einx:
    """``einx.mean("a [b]")``: an operation in einx notation as a component.

    ``body`` is the component of its ``op``, ``einx.vmap("a [b]", op=f)``, and goes along the axes outside brackets.
    """

    form: Form
    span: Span
    schedule: Schedule | None = None
    body: Tree | None = None


@record
class Number:
    """A decimal literal as written: a component with no input and one rank-0 output."""

    text: str
    span: Span


@record
class Identity:
    """``I``."""

    span: Span


@record
class Conversion:
    """A type name used as a component of one input: ``f64``."""

    dtype: str
    span: Span


@record
class Name:
    """The name of a definition."""

    name: str
    span: Span


@record
class Combine:
    """``left symbol right``; symbol is one of ``>> << & |``."""

    symbol: str
    left: Tree
    right: Tree
    span: Span


@record
class Swap:
    """``~operand``."""

    operand: Tree
    span: Span


DISCARD = "_"
"""The word that a statement binds in place of a name where an output is not wanted."""


@record
class Value:
    """The name of an input or of a bound value, where it is read or bound."""

    name: str
    span: Span


@record
class Application:
    """``component(arguments)``: every output of a component whose inputs are given, as many as it has.

    An argument is a value, a number, the name of a definition without inputs, or an application: the last two stand
    for all of their outputs.
    """

    component: Tree
    arguments: tuple[Argument, ...]
    span: Span


@record
class Binding:
    """``big, _ = application``: a name for each output; ``DISCARD`` binds nothing."""

    targets: tuple[Value, ...]
    application: Application
    span: Span


@record
class Block:
    """``{ n = norm(x, g); y, n }``: named values, and last the outputs."""

    bindings: tuple[Binding, ...]
    outputs: tuple[Argument, ...]
    span: Span


Argument = Value | Number | Name | Application
Tree = (
    Expression
    | Einsum
    | ElementKernel
    | Einx
    | Number
    | Identity
    | Conversion
    | Name
    | Combine
    | Swap
    | Value
    | Application
    | Block
)


def over_names(body: Tree) -> bool:
    """Whether the body of a definition is written over the names of its inputs, and not wired."""
    return isinstance(body, Application | Block)


@record
class NamedInput:
    """One named input of a definition: ``q: f64[m, 64]``.

    ``dims`` is None where no bracket is written, else one name or number per dimension (``[]`` is rank 0).
    """

    name: str
    dtype: str | None
    dims: tuple[str | int, ...] | None
    span: Span


@record
class Definition:
    """``name(parameters) = body``; ``parameters`` is None where no parenthesis is written."""

    name: str
    parameters: tuple[NamedInput, ...] | None
    body: Tree
    span: Span


@record
class Module:
    """The definitions of a file, each kind in the order written: components, tensor functions and routines."""

    source: Source
    definitions: tuple[Definition, ...]
    functions: tuple[Function, ...] = ()
    routines: tuple[Routine, ...] = ()

    def functions_and_routines(self) -> tuple[Function | Routine, ...]:
        """The definitions that begin with `op` or `cd`."""
        return (*self.functions, *self.routines)

    def named(self) -> tuple[Definition | Function | Routine, ...]:
        """Every definition."""
        return (*self.definitions, *self.functions, *self.routines)


def children(tree: Tree) -> tuple[Tree, ...]:
    """The direct subtrees of a tree, left to right; of an application the arguments first, as they are computed."""
    match tree:
        case Combine():
            return (tree.left, tree.right)
        case Swap():
            return (tree.operand,)
        case Application():
            return (*tree.arguments, tree.component)
        case Block():
            return (*(binding.application for binding in tree.bindings), *tree.outputs)
        case Einx(body=body) if body is not None:
            return (body,)
        case _:
            return ()


def names_in(tree: Tree) -> Iterator[Name]:
    """The names of definitions in a tree, left to right."""
    return (node for node in postorder(tree) if isinstance(node, Name))


def postorder(tree: Tree) -> Iterator[Tree]:
    """Every node of a tree, children before parents, left to right, without recursion."""
    stack: list[tuple[Tree, bool]] = [(tree, False)]
    while stack:
        node, done = stack.pop()
        below = () if done else children(node)
        if not below:
            yield node
            continue
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(below))


def same(one: Tree, other: Tree) -> bool:
    """Equality of two trees of any depth, spans aside."""
    stack = [(one, other)]
    while stack:
        a, b = stack.pop()
        if not _alike(a, b):
            return False
        stack.extend(zip(children(a), children(b), strict=True))
    return True


def _alike(a: Tree, b: Tree) -> bool:
    """Equality of two nodes, what is below them aside, of which there is the same number."""
    if isinstance(a, Combine) and isinstance(b, Combine):
        return a.symbol == b.symbol
    if isinstance(a, Block) and isinstance(b, Block):
        one, other = ([binding.targets for binding in block.bindings] for block in (a, b))
        return one == other and len(a.outputs) == len(b.outputs)
    if isinstance(a, Einx) and isinstance(b, Einx):
        alike = (a.body is None) == (b.body is None)
        return alike and (a.form, a.schedule) == (b.form, b.schedule)
    below = len(children(a))
    if a.__class__ is not b.__class__ or below != len(children(b)):
        return False
    return below > 0 or a == b
