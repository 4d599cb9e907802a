"""Tensor expressions: leaves and operations that a user combines, solved together and run.

An expression is immutable and knows its operands, nothing else: shapes belong to a ``Program``, which is what solving
some expressions together gives. There is no global state.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang.codegen.runtime.arguments import SUPPORTED, contiguous, supported_array
from ilang.codegen.runtime.specialization import Specialization
from ilang.core import pipeline
from ilang.core.diagnostic import DataError
from ilang.core.infer.projections import Projection, project, sizes_of
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Compose, Demand, Fits, Logic, Operation, Pointwise, Terminal
from ilang.core.ir.rows import KINDS, Known, Origin
from ilang.core.ir.scalar import Apply, Operand, Scalar
from ilang.core.names import Names
from ilang.core.record import record
from ilang.core.row_story import TensorStory
from ilang.core.source import Source, Span, whole

Array = npt.NDArray[Any]
Axis = tuple[int, str | None]
"""A known axis: its size, and its label or None."""
Rows = tuple[tuple[Axis, ...] | None, tuple[Axis, ...] | None, tuple[Axis, ...] | None]


@record
class Shape:
    """The sizes of the rows of a tensor."""

    batch: tuple[int, ...]
    input: tuple[int, ...]
    output: tuple[int, ...]

    def memory(self) -> tuple[int, ...]:
        """The extents in the order of storage: batch, output, input."""
        return self.batch + self.output + self.input


@record
class Leaf:
    """What a leaf is made from: its kind, its rows, its values (an array, one number, or None)."""

    name: str | None
    kind: str
    rows: Rows
    values: Any


@record
class Made:
    """What an operation is made from, its operands aside."""

    scalar: Scalar
    acc: str
    logic: Logic
    text: str
    span: Span


class Tensor:
    """An expression: a leaf, or an operation on others. Made by the functions of ``ilang.tensor``.

    Operators: ``a + b``, ``a - b``, ``a * b``, ``a / b``, ``-a`` element by element with broadcasting, ``a ** 2`` with
    a number, ``a @ b`` the composition (every input axis of a against the output axes of b).
    """

    __array_ufunc__ = None  # NumPy arrays leave operators to us
    __slots__ = ("__weakref__", "made", "operands")

    def __init__(self, made: Leaf | Made, operands: tuple[Tensor, ...] = ()) -> None:
        """A leaf, or an operation with its operands."""
        self.made = made
        self.operands = operands

    @property
    def name(self) -> str:
        """What messages call it: the name of a leaf, or the text of an operation."""
        if isinstance(self.made, Made):
            return self.made.text
        if self.made.kind == "number":
            return str(self.made.values)
        return self.made.name or self.made.kind

    @property
    def shape(self) -> Shape:
        """Its shape, solved with all it is computed from.

        Raises:
            ShapeError: the shapes do not fit.
        """
        return solve(self).shape(self)

    def value(self, target: str = "c") -> Array:
        """Its elements in memory order, solved with all it is computed from.

        Raises:
            Error: the shapes do not fit, or a leaf has no values.
        """
        return solve(self).value(self, target=target)

    def __add__(self, other: object) -> Tensor:
        return pointwise("add", self, other)

    def __radd__(self, other: object) -> Tensor:
        return pointwise("add", other, self)

    def __sub__(self, other: object) -> Tensor:
        return pointwise("sub", self, other)

    def __rsub__(self, other: object) -> Tensor:
        return pointwise("sub", other, self)

    def __mul__(self, other: object) -> Tensor:
        return pointwise("mul", self, other)

    def __rmul__(self, other: object) -> Tensor:
        return pointwise("mul", other, self)

    def __truediv__(self, other: object) -> Tensor:
        return pointwise("div", self, other)

    def __rtruediv__(self, other: object) -> Tensor:
        return pointwise("div", other, self)

    def __pow__(self, other: object) -> Tensor:
        return pointwise("pow", self, other)

    def __neg__(self) -> Tensor:
        return pointwise("neg", self)

    def __matmul__(self, other: object) -> Tensor:
        return matmul(self, other)

    def __repr__(self) -> str:
        return f"<Tensor {self.name}>"


def tensor_of(value: object) -> Tensor:
    """A tensor, or a number as one that stretches.

    Raises:
        DataError: E0740.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Tensor(Leaf(None, "number", (None, None, None), value))
    raise DataError(
        "E0740",
        f"a tensor expression takes tensors and numbers, not {type(value).__name__}",
        help="wrap an array: tensor.data(array)",
    )


INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "matmul": "@"}
"""Operations that are written between their operands."""
_LONGEST = 24
"""The longest operand that is repeated in the text of an operation."""


def operation(made: tuple[Scalar, str, Logic], text: str, operands: Sequence[object]) -> Tensor:
    """An operation on tensors and numbers; its text is ``text(operands)``, or as the user writes it."""
    tensors = tuple(map(tensor_of, operands))
    sign = INFIX.get(text)
    words = [_word(t, sign is not None) for t in tensors]
    said = f"{words[0]} {sign} {words[1]}" if sign else f"{text}({', '.join(words)})"
    return Tensor(Made(*made, said, whole(Source("<tensor>", said))), tensors)


def _word(tensor: Tensor, inside: bool) -> str:
    """An operand in the text of an operation; ``inside`` others, what has a sign of its own stands in parentheses."""
    name = tensor.name
    if len(name) > _LONGEST:
        return "…"
    made = tensor.made
    if inside and isinstance(made, Made) and len(tensor.operands) == 2 and made.text[-1:] != ")":
        return f"({name})"
    return name


def pointwise(primitive: str, *operands: object) -> Tensor:
    """A primitive element by element."""
    scalar = Apply(primitive, tuple(Operand(n) for n in range(len(operands))))
    return operation((scalar, "+", Pointwise()), primitive, operands)


def matmul(x: object, y: object) -> Tensor:
    """The composition: every input axis of x is summed against the output axes of y."""
    return operation((Apply("mul", (Operand(0), Operand(1))), "+", Compose()), "matmul", [x, y])


def solve(
    *tensors: Tensor, demands: Sequence[Demand] = (), fits: Sequence[tuple[Tensor, Tensor]] = ()
) -> Program:
    """Infer the shapes of tensors and of all they are computed from, together.

    Args:
        tensors: the expressions; leaves that several share are one.
        demands: sizes of labels: ``SetSize``, ``SameSize``, ``Scaled``.
        fits: pairs of a tensor and an operand that must fit it, as if it were assigned from that.

    Raises:
        ShapeError: E0510 to E0532.
    """
    return Program(tensors, tuple(demands), fits)


class Program:
    """Tensors solved together."""

    def __init__(
        self,
        tensors: Sequence[Tensor],
        demands: tuple[Demand, ...],
        fits: Sequence[tuple[Tensor, Tensor]],
    ) -> None:
        """Solve; see ``solve``."""
        with _uncollected():
            self._solve(tensors, demands, fits)

    def _solve(
        self,
        tensors: Sequence[Tensor],
        demands: tuple[Demand, ...],
        fits: Sequence[tuple[Tensor, Tensor]],
    ) -> None:
        order = _ordered([*tensors, *(t for pair in fits for t in pair)])
        inputs = [t for t in order if isinstance(t.made, Leaf) and t.made.kind != "number"]
        taken = {id(t) for t in inputs}
        self._tensors = [*inputs, *(t for t in order if id(t) not in taken)]
        self._number = {id(t): n for n, t in enumerate(self._tensors)}
        names = Names()
        nodes = tuple(self._node(t, names) for t in self._tensors)
        pairs = [Fits(self._number[id(r)], self._number[id(o)]) for r, o in fits]
        graph = Graph("tensor", nodes, tuple(range(len(inputs))), (), demands=(*demands, *pairs))
        self._graph = graph
        self._inferred = pipeline.infer_rows(graph)

    def _node(self, tensor: Tensor, names: Names) -> Terminal | Operation:
        made = tensor.made
        if isinstance(made, Made):
            operands = tuple(self._number[id(t)] for t in tensor.operands)
            return Operation(operands, made.scalar, made.acc, made.logic, made.text, made.span)
        if made.kind == "number":
            span = whole(Source("<tensor>", tensor.name))
            return Terminal(tensor.name, "number", (None, None, None), None, made.values, span)
        name = names.fresh(tensor.name)
        span, (batch, inner, output) = _placed(name, made.rows)
        counted = made.kind != "data" and isinstance(made.values, np.ndarray)
        count = made.values.size if counted else None
        return Terminal(name, made.kind, (batch, inner, output), count, None, span)

    def _value(self, tensor: Tensor) -> int:
        if id(tensor) not in self._number:
            raise DataError(
                "E0741", f"{tensor.name} is not of this program", help="give it to solve as well"
            )
        return self._number[id(tensor)]

    def shape(self, tensor: Tensor) -> Shape:
        """The rows of a tensor."""
        rows = self._inferred.shapes[self._value(tensor)]
        batch, inner, output = (
            tuple(axis.size for axis in row.axes() if isinstance(axis, Known)) for row in rows
        )
        return Shape(batch, inner, output)

    def labels(self, tensor: Tensor) -> tuple[str | None, ...]:
        """The labels of the axes of a tensor, in memory order."""
        return self._inferred.units(self._value(tensor))

    def sizes(self) -> dict[str, int]:
        """The size of every label; of a row label the product of its axes."""
        return self._inferred.captured()

    def steps(self) -> int:
        """How many constraints were looked at: the work of the inference, the same on every machine."""
        return self._inferred.steps

    def projections(self, tensor: Tensor) -> list[Projection]:
        """The loops of the operation that computes a tensor, and its indices (``core/infer/projections.py``)."""
        return project(self._inferred, self._value(tensor))

    def story(self, limit: int | None = 200) -> TensorStory:
        """What the inference found and why: rows, what fixed them stage by stage, projections; ``str`` gives lines.

        Args:
            limit: how many tensors, events and projections to tell at most; None for all.
        """
        return pipeline.tensor_story(self._graph, limit)

    def value(self, tensor: Tensor, target: str = "c", **given: Any) -> Array:
        """The elements of a tensor in memory order; ``given`` are arrays for leaves, by name."""
        return self.values([tensor], target, given)[0]

    def values(
        self,
        tensors: Sequence[Tensor],
        target: str = "c",
        given: Mapping[str, Any] | None = None,
    ) -> list[Array]:
        """The elements of several tensors, computed by one program.

        Raises:
            DataError: E0742 (a leaf without values), E0743 (values of another shape).
        """
        values = [self._value(tensor) for tensor in tensors]
        needed = _ordered(tensors)
        arrays = {
            self._number[id(t)]: self._array(t, given or {})
            for t in needed
            if self._number[id(t)] < len(self._graph.inputs)
        }
        dtypes = ["f32"] * len(self._graph.inputs)
        for number, array in arrays.items():
            dtypes[number] = SUPPORTED[array.dtype]
        shaped = pipeline.tensors_shaped(self._inferred, dtypes, values)
        extents = tuple(size.fixed or 0 for size in shaped.sizes)
        specialization, inputs = (
            Specialization(shaped),
            [arrays[number] for number in sorted(arrays)],
        )
        found = (
            specialization.evaluate(inputs, extents, None)
            if target == "numpy"
            else specialization.plan(extents).fresh(inputs)
        )
        return [found] if len(values) == 1 else list(found)

    def _array(self, tensor: Tensor, given: Mapping[str, Any]) -> Array:
        """The values of a leaf as an array of its shape."""
        number = self._number[id(tensor)]
        node = self._graph.nodes[number]
        assert isinstance(node, Terminal)
        assert isinstance(tensor.made, Leaf)
        values = given.get(node.name, tensor.made.values)
        dims = sizes_of(self._inferred.shapes[number])
        if values is None:
            raise DataError(
                "E0742",
                f"{node.name} has no values",
                help=f"give them: value(t, {node.name}=array)",
            )
        array = supported_array(node.name, values)
        if isinstance(values, int | float):
            array = array.astype(np.float32)
        if array.ndim == 0:
            return np.full(dims, array)
        if array.size != int(np.prod(dims)):
            raise DataError(
                "E0743",
                f"{node.name} has shape {dims}, and the array given for it {array.shape}",
                help="axes are stored batch first, then output, then input",
            )
        return contiguous(array.reshape(dims))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the cyclic garbage collector: what the inference makes has no cycles and is kept.

    Looking through it again and again costs a third of the time of a large program. Threads may do this at once: the
    one that stopped the collector starts it again, and in between nothing worse happens than a collection.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _ordered(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors and all they are computed from, operands first, without recursion."""
    found: dict[int, Tensor] = {}
    todo = [(tensor, False) for tensor in reversed(tensors)]
    while todo:
        tensor, ready = todo.pop()
        if id(tensor) in found:
            continue
        if ready:
            found[id(tensor)] = tensor
            continue
        todo.append((tensor, True))
        todo.extend((operand, False) for operand in reversed(tensor.operands))
    return list(found.values())


def _placed(name: str, rows: Rows) -> tuple[Span, list[tuple[Known, ...] | None]]:
    """A leaf as messages show it, ``x: 20|4->2``: where it stands, and its known axes, each with its place."""
    text = f"{name}: "
    places: list[tuple[str, int, int, Axis, int]] = []
    for kind, after in ((0, "|"), (1, "->"), (2, "")):
        axes = rows[kind]
        if axes is None:
            text += "?"
        for number, axis in enumerate(axes or ()):
            text += "," if number else ""
            places.append((KINDS[kind], number, len(text), axis, kind))
            text += str(axis[0])
        text += after if axes is None or axes else ""
    source = Source("<tensor>", text if text[-2:] != ": " else f"{text}()")
    known: list[list[Known]] = [[], [], []]
    for kind_name, number, start, (size, label), kind in places:
        place = Span(source, start, start + len(str(size)))
        origin = Origin(f"{kind_name} axis {number} of {name}", place, "")
        known[kind].append(Known(size, False, label, origin))
    found = [None if rows[kind] is None else tuple(known[kind]) for kind in range(3)]
    return Span(source, 0, len(name)), found
