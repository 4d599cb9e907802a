"""Scalar expressions: what one iteration of an assignment computes.

Shared by three IRs, which differ in their leaves and in what is known:
    - ``ir/graph.py``: leaves ``Operand``, ``Constant`` and ``Position``; ``dtype`` is None (not yet known) but in a
      ``Convert``.
    - ``ir/shaped.py``: the same leaves; every ``dtype`` known, conversions explicit: the arguments of an ``Apply`` have
      one type, except under logic.
    - ``ir/kernel.py``: operands have become ``Load`` and ``Local``; ``Select`` guards a load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TypeVar

from ilang.core.calculus.affine import Affine, Within
from ilang.core.dtype import INTEGER_ENDS, INTEGERS
from ilang.core.ir.ids import BufferId, LocalId
from ilang.core.ops import OPS, SLOW
from ilang.core.record import mapped, record, replace

INFINITY = float("inf")
GROUP = 16
"""Parts that are folded one after the other."""


@record
class Operand:
    """The element that read number ``number`` of the assignment delivers."""

    number: int
    dtype: str | None = None


@record
class Constant:
    """A number. Before inference its type is open: it takes the type of what it meets, f32 where it meets nothing."""

    value: float | int
    dtype: str | None = None


@record
class Position:
    """The place of an iteration: the value of an index, an i64. Sizes in it are extents: in a graph, of its axes."""

    index: Affine
    dtype: str | None = None


@record
class Convert:
    """The argument in another element type."""

    argument: Scalar
    dtype: str | None = None


@record
class Apply:
    """A primitive of ``ops.PRIMITIVES`` on its arguments; ``dtype`` is the type of the result."""

    primitive: str
    arguments: tuple[Scalar, ...]
    dtype: str | None = None


@record
class Load:
    """The element of buffer number ``buffer`` at an index over loop variables."""

    buffer: BufferId
    index: tuple[Affine, ...]
    dtype: str


@record
class Local:
    """The value of scalar variable number ``variable`` of the kernel."""

    variable: LocalId
    dtype: str


@record
class Select:
    """``then`` where every condition holds, else ``otherwise``; ``then`` is computed only where they do."""

    within: tuple[Within, ...]
    then: Scalar
    otherwise: Scalar
    dtype: str


S = TypeVar("S", bound="Scalar")
Scalar = Operand | Constant | Position | Convert | Apply | Load | Local | Select


def arguments_of(scalar: Scalar) -> tuple[Scalar, ...]:
    """The arguments of a primitive or of a conversion; none of anything else."""
    if type(scalar) is Apply:
        return scalar.arguments
    return (scalar.argument,) if type(scalar) is Convert else ()


def with_arguments(scalar: S, arguments: Sequence[Scalar]) -> S:
    """A primitive or a conversion of other arguments; itself where they are the same, as where it has none."""
    if all(a is b for a, b in zip(arguments_of(scalar), arguments, strict=True)):
        return scalar
    if isinstance(scalar, Apply):
        return replace(scalar, arguments=tuple(arguments))
    return replace(scalar, argument=arguments[0])


def scalars_within(scalar: Scalar) -> Iterator[Scalar]:
    """Every node of a scalar expression, parents first, left to right."""
    todo = [scalar]
    while todo:
        part = todo.pop()
        yield part
        if type(part) is Select:
            todo += (part.otherwise, part.then)
        else:
            todo += arguments_of(part)[::-1]


def reads_both(choice: Apply) -> bool:
    """Whether both sides of a choice are computed: one loads, or they are integers, and neither takes long."""
    parts = [part for side in choice.arguments[1:] for part in scalars_within(side)]
    slow = any(isinstance(part, Apply) and part.primitive in SLOW for part in parts)
    loads = any(isinstance(part, Load) for part in parts)
    return not slow and (loads or choice.dtype in INTEGERS)


def operands_of(scalar: Scalar) -> tuple[int, ...]:
    """The operands of a scalar expression, each once, in order of appearance."""
    return tuple(dict.fromkeys(p.number for p in scalars_within(scalar) if isinstance(p, Operand)))


def renumbered(scalar: Scalar, number: Mapping[int, int]) -> Scalar:
    """A scalar expression over operands, conversions and primitives whose operands have other numbers."""
    return mapped(scalar, Operand, lambda each: Operand(number[each.number], each.dtype))


def with_operands(
    scalar: Scalar, delivered: Sequence[Scalar], indexed: Callable[[Affine], Affine]
) -> Scalar:
    """A scalar with its operands replaced, and its positions over other variables."""

    def put(leaf: Operand | Position) -> Scalar:
        if isinstance(leaf, Operand):
            return delivered[leaf.number]
        return Position(indexed(leaf.index), leaf.dtype)

    return mapped(scalar, (Operand, Position), put)


def converted(scalar: Scalar, dtype: str) -> Scalar:
    """A scalar in an element type."""
    return scalar if scalar.dtype == dtype else Convert(scalar, dtype)


def neutral(acc: str, dtype: str) -> Constant:
    """The neutral element that a fold by an operator starts from: integers have ends where floats have infinities."""
    value = OPS[acc].identity
    assert value is not None
    if dtype == "bool":
        return Constant(float(value > 0), dtype)
    if dtype in INTEGER_ENDS and abs(value) == INFINITY:
        return Constant(INTEGER_ENDS[dtype][value > 0], dtype)
    return Constant(value, dtype)


def operations(scalar: Scalar) -> int:
    """The number of primitives in a scalar expression."""
    return sum(isinstance(part, Apply) for part in scalars_within(scalar))


def folded(primitive: str, parts: Sequence[Scalar], dtype: str | None = None) -> Scalar:
    """Parts with an associative primitive between them, ``a + b + c``: left to right in groups, and groups alike.

    Any number of parts gives an expression of little depth: what follows recurses over it, and C compilers limit the
    brackets in brackets.
    """
    while 1 < len(parts):
        groups = [parts[n : n + GROUP] for n in range(0, len(parts), GROUP)]
        parts = [reduce(lambda a, b: Apply(primitive, (a, b), dtype), group) for group in groups]
    return parts[0]


def finite(maximum: Scalar) -> Scalar:
    """A maximum to subtract: 0 where nothing but -inf has been seen, so that e^(x - m) is 0 and no NaN."""
    least, zero = Constant(-INFINITY, maximum.dtype), Constant(0, maximum.dtype)
    nothing = Apply("eq", (maximum, least), "bool")
    return Apply("where", (nothing, zero, maximum), maximum.dtype)


def minus(number: float | int) -> float | int:
    """Minus a number as a constant: of 0 it is -0.0, which an integer type holds as 0."""
    return -number or -float(number)


def constant_last(primitive: str, arguments: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """The arguments of a binary form; of a maximum or minimum a constant stands last.

    With a constant first ``max(0, x)`` is the unary form, through which nothing flows back at 0.
    """
    turned = primitive in ("max", "min") and isinstance(arguments[0], Constant)
    return tuple(reversed(arguments)) if turned else tuple(arguments)


def pointwise(symbol: str, leaves: Sequence[Scalar]) -> Scalar:
    """The scalar meaning of a pointwise form (docs/language.md section 2)."""
    op = OPS[symbol]
    if len(leaves) == 2:
        assert op.binary is not None
        return Apply(op.binary, constant_last(op.binary, leaves))
    (leaf,) = leaves
    if op.unary_left is not None:
        return Apply(op.unary, (Constant(op.unary_left), leaf))
    if op.unary_right is not None:
        return Apply(op.unary, (leaf, Constant(op.unary_right)))
    return leaf if op.unary == "copy" else Apply(op.unary, (leaf,))
