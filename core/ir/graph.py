"""The graph: what every notation becomes. Accumulating assignments, wired by value numbers, nothing inferred yet.

    target[index] (acc)= scalar(operand[index], ...)     for axes in domain

Produced by ``passes/syntax_to_graph.py`` (and every later notation), consumed by the inference (``infer/solved.py``).

Invariants:
    - ``nodes`` is flat and ordered: a node reads only values of smaller number; the value of node n is n.
    - The inputs come first: the value of input n is n; a leaf of a tensor expression that holds an array is one.
      ``outputs`` lists values; a value may stand there twice and may be an input.
    - Each assignment owns its axes: axis numbers mean nothing outside it. ``axes`` holds every axis that any index
      names, and those that are measured, which no index and no position names.
    - A read whose index leaves the dimension gives 0, or skips the iteration: ``skips``. A fixed index never leaves it.
    - A guard of a read is a condition on axes alone, without a size.
    - A lookup is of an axis that no earlier lookup is of; what it reads has axes that are counted, or looked up by an
      earlier one. The axis of a lookup is no part of a position.
    - ``acc`` is None exactly when every axis with a loop appears in ``target`` and none that is looked up does;
      otherwise it is a reducible operator and the target starts from its identity.
    - A ``base`` is what the target starts from instead: then an axis of the target is looked up, and without an ``acc``
      the last iteration that meets an element stores it, in the order of the axes.
    - The factors of a view are its ``axes``, in order: those of its ``source``, dimension after dimension, and again
      those of its ``target``.
    - What stands for a gradient, or for what flows back to a value, is an input and feeds neither.
    - What is ``called`` a name is a value; names of the outermost definition come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar, assert_never

from ilang.core.calculus.affine import Affine, Within
from ilang.core.ir.operation import Operation, SizeConstraint, Terminal
from ilang.core.ir.scalar import Operand, Scalar
from ilang.core.ir.syntax import ElementKernel, Schedule
from ilang.core.names import Names
from ilang.core.record import once, record, replace
from ilang.core.source import Span

if TYPE_CHECKING:
    from ilang.core.ir.einx import Form

UNNAMED = "program"
"""The name of a program that has none."""


@record
class Axis:
    """An axis of an assignment: its letter, its extent where one is written, and where it stands first.

    A ``measured`` axis has an extent, which the scalar uses, and no loop.
    """

    name: str
    extent: int | None
    span: Span
    measured: bool = False


@record
class Read:
    """One operand: a value and an index per dimension of it; ``spans`` places each index in the text.

    Where an index with axes leaves its dimension, or one of the ``guards`` does not hold, the iteration is skipped if
    ``skips``, else the element is 0.
    """

    value: int
    index: tuple[Affine, ...]
    skips: bool
    spans: tuple[Span, ...]
    span: Span
    guards: tuple[Within, ...] = ()


@record
class Lookup:
    """An axis that no loop counts: in each iteration it is what read number ``read`` delivers.

    Every element of what is read must be an index of the axis. Where the read leaves its dimensions, or one of its
    guards does not hold, so do all reads that have the axis.
    """

    axis: int
    read: int


@record
class Input:
    """An input of the component; ``name`` is there where the definition names it."""

    name: str | None
    span: Span


@record
class Annotation:
    """The annotation of an input of a definition, here wired to ``value``: checked, and a source of names.

    ``dims`` holds a name or a number per dimension; equal names in one ``scope`` (one use of a definition) are one
    extent. ``of`` is the definition.
    """

    value: int
    name: str
    dtype: str | None
    dims: tuple[str | int, ...] | None
    scope: int
    span: Span
    of: str = ""


@record
class Assignment:
    """An accumulating assignment to a new tensor; ``text`` is how the user wrote it.

    ``operands`` numbers the reads as they are written; empty where that is their order. The axes in ``some`` must have
    an element. An ``associative`` one is a step of a product of several operands whose order nobody wrote.
    """

    __slots__ = ("__dict__", "_values")
    axes: tuple[Axis, ...]
    target: tuple[Affine, ...]
    reads: tuple[Read, ...]
    scalar: Scalar
    acc: str | None
    schedule: Schedule | None
    text: str
    span: Span
    operands: tuple[int, ...] = ()
    some: tuple[int, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    base: int | None = None
    associative: bool = False

    @once
    def values(self) -> tuple[int, ...]:
        """The values that are read, in order; that of a base is the last."""
        base = () if self.base is None else (self.base,)
        return (*[read.value for read in self.reads], *base)

    def operand(self, read: int) -> int:
        """The written operand that a read delivers: positions are operands, but no reads."""
        return self.operands[read] if self.operands else read

    def accesses(self) -> tuple[Read, ...]:
        """The reads, and that of a base, whose dimensions the target has."""
        if self.base is None:
            return self.reads
        spans = tuple(self.span for _ in self.target)
        return (*self.reads, Read(self.base, self.target, False, spans, self.span))

    def places(self) -> frozenset[int]:
        """The reads that are looked up, by number: they deliver indices."""
        return frozenset(lookup.read for lookup in self.lookups)

    def measured(self) -> frozenset[int]:
        """The axes that are measured."""
        return frozenset(number for number, axis in enumerate(self.axes) if axis.measured)

    def looked_up(self) -> frozenset[int]:
        """The axes that are looked up."""
        return frozenset(lookup.axis for lookup in self.lookups)


@record
class Elementwise:
    """A scalar function of one value of any rank (a type conversion); inference turns it into an assignment."""

    value: int
    scalar: Scalar
    text: str
    span: Span


Groups = tuple[tuple[int, ...], ...]
"""A group of axes per dimension, whose extent is the product of theirs; of no axis it is 1."""


@record
class View:
    """The elements of a value in the order in which they are stored, under other dimensions; none is moved.

    ``source`` has the axes of each dimension of the value, ``target`` those of each dimension of the result. Of the
    axes of one dimension one may be unknown: it is what is left of the extent, which the others must divide.

    Example, `(a b) c -> a (b c)`: axes a b c, source ((0, 1), (2,)), target ((0,), (1, 2)).
    """

    value: int
    axes: tuple[Axis, ...]
    source: Groups
    target: Groups
    text: str
    span: Span

    def groups(self) -> Groups:
        """Every group of several axes: those of the source first, each once."""
        return tuple(dict.fromkeys(g for g in (*self.source, *self.target) if len(g) > 1))

    def group_text(self, group: Sequence[int]) -> str:
        """A group as messages write it: ``(b c)``, or ``a`` of one axis."""
        names = " ".join(self.axes[axis].name for axis in group)
        return names if len(group) == 1 else f"({names})"


@record
class Einx:
    """One output of an operation in einx notation; it becomes assignments and views when ranks are known.

    ``body`` is a program that goes along the axes outside brackets.
    """

    operands: tuple[int, ...]
    form: Form
    output: int
    text: str
    span: Span
    schedule: Schedule | None = None
    body: EinxBody | None = None


@record
class OpenKernel:
    """One output of an elementwise kernel that leaves ranks open; it becomes assignments when they are known."""

    operands: tuple[int, ...]
    kernel: ElementKernel
    output: int
    span: Span

    @property
    def text(self) -> str:
        """The kernel as it is written."""
        return self.kernel.text


@record
class EinxBody:
    """The component that an operation in einx notation has as its ``op``, as a graph, and its text."""

    program: Graph
    text: str
    span: Span


@record
class ValueName:
    """The name of a value in a body over names."""

    value: int
    name: str
    span: Span


@record
class DefinitionCall:
    """A call that a program follows, or the run of its outermost definition, which is the first.

    ``parameters`` are those of the head as it writes them, ``arguments`` the texts of what is ``given`` for them, by
    value; ``nodes`` are the values computed in it, those of calls ``within`` it, by their numbers, aside. What heads
    write of rows has a scope of ``scopes``. The last two places are that of the call and that of the head.
    """

    name: str
    parameters: tuple[str, ...]
    arguments: tuple[str, ...]
    given: tuple[int, ...]
    nodes: tuple[int, ...]
    within: int
    scopes: range
    is_component: bool
    span: Span
    argument_span: tuple[Span, ...]
    head_span: Span


@record
class Backprop:
    """Gradients of the sum of all elements of value ``of``.

    A pair is an input, which stands for a gradient until what computes that is attached, and the value that the
    gradient is with respect to.
    """

    of: int
    gradients: tuple[tuple[int, int], ...]
    span: Span


@record
class Custom:
    """A value with a gradient of its own: where ``cotangent``, an input, is what flows back to ``value``.

    A pair is a value that ``value`` is computed from, and what flows back to that. Nothing flows back otherwise.
    """

    value: int
    cotangent: int
    gradients: tuple[tuple[int, int], ...]
    name: str
    span: Span


Valued = TypeVar("Valued", Annotation, ValueName)
Node = Input | Assignment | Elementwise | View | Einx | OpenKernel | Terminal | Operation
OPEN = (Einx, OpenKernel)
"""Nodes that become others when ranks are known."""


def operands(node: Node) -> tuple[int, ...]:
    """The values that a node reads, in order."""
    match node:  # the most frequent first
        case Assignment():
            return node.values()
        case Input() | Terminal():
            return ()
        case Elementwise() | View():
            return (node.value,)
        case Operation() | Einx() | OpenKernel():
            return node.operands
        case _:
            assert_never(node)


def rewired(node: Node, values: Sequence[int]) -> Node:
    """A node that reads other values, in order."""
    match node:
        case Assignment():
            reads = [replace(read, value=v) for read, v in zip(node.reads, values, strict=False)]
            base = None if node.base is None else values[-1]
            return replace(node, reads=tuple(reads), base=base)
        case Elementwise() | View():
            return replace(node, value=values[0])
        case Operation() | Einx() | OpenKernel():
            return replace(node, operands=tuple(values))
        case Input() | Terminal():
            return node


def renumbered(parts: Iterable[Valued], number: Callable[[int], int]) -> tuple[Valued, ...]:
    """Annotations, or names, of values that have other numbers."""
    return tuple(replace(each, value=number(each.value)) for each in parts)


@record
class Graph:
    """A component: its nodes, its inputs and outputs, and the name it is built under.

    ``called`` are values that names of a text are bound to, ``defined`` the results of definitions that it uses;
    ``parts`` has the one of these that each value is computed in: none at all where it uses none. ``calls`` are those
    of tensor functions and routines, in the order in which they are followed.
    """

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    annotations: tuple[Annotation, ...] = ()
    constraints: tuple[SizeConstraint, ...] = ()
    called: tuple[ValueName, ...] = ()
    backward: tuple[Backprop, ...] = ()
    custom: tuple[Custom, ...] = ()
    defined: tuple[ValueName, ...] = ()
    parts: tuple[str, ...] = ()
    calls: tuple[DefinitionCall, ...] = ()

    def value_names(self) -> dict[int, str]:
        """The names in the text of values that are no inputs, each by its first; two values may have one name."""
        names: dict[int, str] = {}
        for each in self.called:
            if len(self.inputs) <= each.value:
                names.setdefault(each.value, each.name)
        return names

    def output_names(self, outputs: Sequence[int]) -> list[str]:
        """The names of results in messages and loops: those of the text, or ``out``, or ``out0``, ``out1``, ..."""
        return self._distinct(outputs)[0]

    def inner_names(self, outputs: Sequence[int]) -> dict[int, str]:
        """The names there of values that have one and are no results."""
        return self._distinct(outputs)[1]

    def _distinct(self, outputs: Sequence[int]) -> tuple[list[str], dict[int, str]]:
        """The names of results, then those of other values; no two are one, and none is an input's."""
        names = self.value_names()
        unique = Names(frozenset(self.input_name(n) for n in range(len(self.inputs))))
        plain = ["out"] if len(outputs) == 1 else [f"out{n}" for n in range(len(outputs))]
        results = [
            unique.fresh(names.get(value, name)) for value, name in zip(outputs, plain, strict=True)
        ]
        others = {value: name for value, name in names.items() if value not in outputs}
        return results, {value: unique.fresh(name) for value, name in others.items()}

    def written_dtypes(self) -> list[str | None]:
        """The element type that the text writes for each input, or i64 for one that is looked up, or None."""
        written = {each.value: each.dtype for each in self.annotations if each.dtype}
        looked_up = dict.fromkeys(self.looked_up(), "i64")
        return [written.get(value) or looked_up.get(value) for value in self.inputs]

    def looked_up(self) -> frozenset[int]:
        """The values that are looked up as indices: inputs among them are integers where nothing else is said.

        The source of a view or of a copy that is looked up is one of them.
        """
        looked_up = {
            node.reads[lookup.read].value
            for node in self.nodes
            if isinstance(node, Assignment)
            for lookup in node.lookups
        }
        for value in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[value]
            copied = isinstance(node, Assignment) and node.scalar == Operand(0)
            if value in looked_up and (isinstance(node, View) or copied):
                looked_up.update(operands(node))
        return frozenset(looked_up)

    def input_name(self, number: int) -> str:
        """The name of input ``number`` in messages: its written name, or ``in0``, ``in1``, ..."""
        node = self.nodes[self.inputs[number]]
        return node.name if isinstance(node, Input | Terminal) and node.name else f"in{number}"

    def input_names(self) -> list[str]:
        """The names of all inputs, in order."""
        return [self.input_name(number) for number in range(len(self.inputs))]
