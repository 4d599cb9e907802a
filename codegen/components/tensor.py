"""Tensor expressions: leaves and operations that a user combines, solved together and run.

An expression is immutable and knows its operands, nothing else: shapes belong to a ``Program``, which is what solving
some expressions together gives. There is no global state.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import NoneType
from typing import TYPE_CHECKING, Any

from ilang.codegen.call.arguments import check_is
from ilang.codegen.call.threads import THREADS
from ilang.codegen.components.described import DescribedProgram
from ilang.codegen.components.routine import LeafInput, Routine, TensorProgram
from ilang.core import pipeline
from ilang.core.build.tensor import Leaf, Shape, TensorExpression, graph_of, made_of, ordered
from ilang.core.diagnostic import DataError
from ilang.core.explain.story import Story
from ilang.core.infer.projections import Projection, project, sizes_of
from ilang.core.ir.operation import Logic, SameSize, Scaled, SetSize, SizeConstraint, Terminal
from ilang.core.ir.rows import extent_of, known_axes
from ilang.core.ir.scalar import Apply, Operand, Scalar

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array


def _operator(primitive: str) -> tuple[Callable[[Tensor, object], Tensor], ...]:
    """The method of an operator, and that for a tensor on its right side."""
    return (
        lambda self, other: pointwise(primitive, self, other),
        lambda self, other: pointwise(primitive, other, self),
    )


class Tensor(TensorExpression):
    """An expression: a leaf, or an operation on others. Made by the functions of ``ilang.tensor``.

    Operators: ``a + b``, ``a - b``, ``a * b``, ``a / b``, ``-a`` element by element with broadcasting, ``a ** 2`` with
    a number, ``a @ b`` the composition (every input axis of a against the output axes of b).
    """

    __array_ufunc__ = None  # NumPy arrays leave operators to us
    __slots__ = ()

    operands: tuple[Tensor, ...]

    @property
    def shape(self) -> Shape:
        """The shape of the tensor, solved with all it is computed from.

        Raises:
            ShapeError: the shapes do not fit.
        """
        return solve(self).shape(self)

    def value(self, target: str = "c") -> Array:
        """The elements of the tensor in memory order, solved with all it is computed from.

        Raises:
            Error: the shapes do not fit, or a leaf has no values.
        """
        return solve(self).value(self, target=target)

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("sub")
    __mul__, __rmul__ = _operator("mul")
    __truediv__, __rtruediv__ = _operator("div")

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


def operation(meaning: tuple[Scalar, str, Logic], text: str, operands: Sequence[object]) -> Tensor:
    """An operation on tensors and numbers; its text is ``text(operands)``, or as the user writes it."""
    tensors = tuple(map(tensor_of, operands))
    return Tensor(made_of(meaning, text, tensors), tensors)


def pointwise(primitive: str, *operands: object) -> Tensor:
    """A primitive element by element."""
    check_is(primitive, str, "E0745", "a primitive has a name", 'tensor.pointwise("exp", x)')
    scalar = Apply(primitive, tuple(Operand(n) for n in range(len(operands))))
    return operation((scalar, "+", "pointwise"), primitive, operands)


def matmul(x: object, y: object) -> Tensor:
    """The composition: every input axis of x is summed against the output axes of y."""
    return operation((Apply("mul", (Operand(0), Operand(1))), "+", "compose"), "matmul", [x, y])


def solve(
    *tensors: Tensor,
    constraints: Sequence[SizeConstraint] = (),
    fits: Sequence[tuple[Tensor, Tensor]] = (),
) -> Program:
    """Infer the shapes of tensors and of all they are computed from, together.

    Args:
        tensors: the expressions; leaves that several share are one.
        constraints: sizes of labels: ``SetSize``, ``SameSize``, ``Scaled``.
        fits: pairs of a tensor and an operand that must fit it, as if it were assigned from that.

    Raises:
        ShapeError: E0501 to E0532, E0574.
    """
    for each in tensors:
        _check_tensor(each)
    example = 'tensor.solve(x, constraints=[tensor.SetSize("k", 2)], fits=[(x, y)])'
    check_is(constraints, (tuple, list), "E0745", "constraints are a list", example)
    for constraint in constraints:
        check_is(
            constraint,
            (SetSize, SameSize, Scaled),
            "E0745",
            "a constraint is one of sizes",
            example,
        )
    check_is(fits, (tuple, list), "E0745", "what fits is a list of pairs", example)
    for pair in fits:
        check_is(pair, tuple, "E0745", "what fits is a pair of tensors", example)
        for each in pair:
            _check_tensor(each)
    return Program(tensors, tuple(constraints), fits)


def _check_tensor(value: object) -> None:
    """Refuse what is no tensor. Raises DataError E0741."""
    check_is(value, Tensor, "E0741", "a tensor is wanted here", "tensor.data(x) is one")


class Program(DescribedProgram):
    """Tensors solved together, and what computes them.

    ``program(x, y)`` computes the tensors that were given to ``solve``, from arrays for the leaves without values in
    the order of their first use. See ``Routine``, whose methods a program has for these tensors.
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        constraints: tuple[SizeConstraint, ...],
        fits: Sequence[tuple[Tensor, Tensor]],
    ) -> None:
        self._tensors = tuple(dict.fromkeys(tensors))
        self._routines: dict[tuple[Tensor, ...], Routine] = {}
        self._whole: Routine | None = None
        with _uncollected():
            self._graph, self._number = graph_of(tensors, constraints, fits)
            self._inferred = pipeline.infer_rows(self._graph)

    def _value(self, tensor: Tensor) -> int:
        _check_tensor(tensor)
        if tensor not in self._number:
            raise DataError(
                "E0741", f"{tensor.name} is not of this program", help="give it to solve as well"
            )
        return self._number[tensor]

    def shape(self, tensor: Tensor) -> Shape:
        """The rows of a tensor."""
        rows = self._inferred.shapes[self._value(tensor)]
        batch, inner, output = (tuple(map(extent_of, known_axes(row))) for row in rows)
        return Shape(batch, inner, output)

    def labels(self, tensor: Tensor) -> tuple[str | None, ...]:
        """The labels of the axes of a tensor, in memory order."""
        return self._inferred.units(self._value(tensor))

    def sizes(self) -> dict[str, int]:
        """The size of every label; of a row label the product of its axes."""
        return self._inferred.captured()

    def steps(self) -> int:
        """The number of constraints that were looked at: the work of the inference, the same on every machine."""
        return self._inferred.steps

    def projections(self, tensor: Tensor) -> list[Projection]:
        """The loops of the operation that computes a tensor, and its indices (``core/infer/projections.py``)."""
        return project(self._inferred, self._value(tensor), self._inferred.numbered())

    def story(self, limit: int | None = 200) -> Story:
        """The story of the inference: rows, what fixed them stage by stage, projections; ``str`` gives lines.

        Args:
            limit: how many tensors, events and projections to tell at most; None for all.
        """
        says = "a limit is a number of tensors, or None"
        check_is(limit, (int, NoneType), "E0745", says, "p.story(limit=200)")
        return pipeline.story(self._graph, limit)

    def routine(self, *tensors: Tensor) -> Routine:
        """The routine that computes some tensors of this program; the same one whenever it is asked for.

        Raises:
            DataError: E0741.
        """
        for tensor in tensors:
            _check_tensor(tensor)
        known = self._routines.get(tensors)
        if known is None:
            values = [self._value(tensor) for tensor in tensors]
            inputs = tuple(self._input(tensor) for tensor in self._leaves(tensors))
            program = TensorProgram(self._inferred, values, inputs)
            known = self._routines.setdefault(tensors, Routine(program))
        return known

    def grad(self, of: Tensor, wrt: Sequence[Tensor] | None = None) -> Routine:
        """The routine that computes the gradients of the sum of all elements of a tensor, in memory order.

        Args:
            of: a tensor of this program.
            wrt: leaves that it is computed from; by default all its parameters.

        Raises:
            DataError: E0741 (``of`` is not of this program, or not computed from one of ``wrt``).
        """
        value = self._value(of)
        leaves = self._leaves([of])
        wanted = [leaf for leaf in leaves if _is_parameter(leaf)] if wrt is None else list(wrt)
        for leaf in wanted:
            _check_tensor(leaf)
            if leaf not in leaves:
                message = f"{of.name} is not computed from the leaf {leaf.name}"
                names = ", ".join(each.name for each in leaves)
                raise DataError("E0741", message, help=f"it is computed from {names}")
        inputs = tuple(self._input(leaf) for leaf in leaves)
        places = tuple(leaves.index(leaf) for leaf in wanted)
        return Routine(TensorProgram(self._inferred, [value], inputs, places))

    def _leaves(self, tensors: Sequence[Tensor]) -> list[TensorExpression]:
        """The leaves that some tensors are computed from, in the order of the inputs of the graph."""
        needed = {e for e in ordered(tensors) if self._number[e] < len(self._graph.inputs)}
        return sorted(needed, key=self._number.__getitem__)

    def _input(self, leaf: TensorExpression) -> LeafInput:
        number = self._number[leaf]
        node = self._graph.nodes[number]
        assert isinstance(node, Terminal)
        assert isinstance(leaf.node, Leaf)
        dims = sizes_of(self._inferred.shapes[number])
        return LeafInput(number, node.name, tuple(dims), leaf.node.values)

    @property
    def program(self) -> TensorProgram:  # type: ignore[override]
        """The program that computes the tensors that were solved."""
        return self._solved().program

    def _solved(self) -> Routine:
        if self._whole is None:
            self._whole = self.routine(*self._tensors)
        return self._whole

    def __call__(
        self,
        *arrays: Any,
        out: Any = None,
        threads: int | str = THREADS,
        target: str = "c",
        **named: Any,
    ) -> Any:
        """The elements of the solved tensors, each in memory order; see ``Routine``."""
        routine = self._whole or self._solved()
        return routine(*arrays, out=out, threads=threads, target=target, **named)

    def value(self, tensor: Tensor, target: str = "c", **given: Any) -> Array:
        """The elements of a tensor in memory order; ``given`` are arrays for leaves, by name."""
        return self.values([tensor], target, given)[0]

    def values(
        self, tensors: Sequence[Tensor], target: str = "c", given: Mapping[str, Any] | None = None
    ) -> list[Array]:
        """The elements of several tensors, computed by one program.

        Raises:
            DataError: E0742 (a leaf without values), E0743 (values of another shape).
        """
        check_is(tensors, (tuple, list), "E0741", "tensors are a list", "p.values([x, y])")
        results = self.routine(*tensors).by_name(given or {}, target)
        return [results] if len(tensors) == 1 else list(results)


def _is_parameter(leaf: TensorExpression) -> bool:
    return isinstance(leaf.node, Leaf) and leaf.node.kind == "parameter"


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
