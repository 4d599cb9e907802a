"""Tensor expressions whose shapes infer themselves.

    from ilang import tensor

    x = tensor.data(array, batch=1)            # one batch axis; the other axes are output axes
    w, b = tensor.param("w"), tensor.param("b", output=(16,))
    y = tensor.relu(w @ x + b)
    p = tensor.solve(y)
    p.shape(w)                                 # Shape(batch=(), input=(2,), output=(16,))
    p.value(y, w=..., b=...)                   # a NumPy array, axes in memory order: batch, output, input

A tensor is an expression; no shape is fixed before ``solve`` sees everything that belongs together. A property of one
tensor alone (``y.shape``, ``y.value()``) is solved from what it is computed from.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any

import numpy as np

from ilang.codegen.call.arguments import check_is, read_array, shown
from ilang.codegen.components.contract import miscounted
from ilang.codegen.components.routine import Routine
from ilang.codegen.components.tensor import (
    Program,
    Tensor,
    matmul,
    operation,
    pointwise,
    solve,
    tensor_of,
)
from ilang.codegen.session.initial import literal_array
from ilang.core.build.tensor import Axis, Leaf, Rows, Shape
from ilang.core.diagnostic import DataError, NotationError
from ilang.core.ir.operation import SameSize, Scaled, SetSize, Slice, Stack
from ilang.core.ir.scalar import Apply, Constant, Operand, Scalar
from ilang.core.ir.spec import Joined
from ilang.core.notation.einsum.specification import parse_spec
from ilang.core.notation.functions.literal import parse_literal
from ilang.core.source import Source

__all__ = [
    "Program", "Routine", "SameSize", "Scaled", "SetSize", "Shape", "Tensor",
    "concat", "cos", "data", "einmax", "einsum", "eq", "exp", "fill", "fma", "interleave", "literal", "log", "lt",
    "matmul", "not_", "number", "outer_sum", "param", "recip", "recip_sqrt", "relu", "sin", "slice_", "solve",
    "sqrt", "stack", "tanh", "transpose", "tropical", "where",
]  # fmt: skip

Size = int | tuple[int, str | None]
"""An axis: its size, or its size and its label."""

# -- leaves ----------------------------------------------------------------------------------------------------------


def data(
    values: Any,
    batch: int | Sequence[Size] = 0,
    input: int | Sequence[Size] = 0,  # noqa: A002 - the word for this row
    output: Sequence[Size] | None = None,
    name: str | None = None,
) -> Tensor:
    """An array whose shape is known.

    Args:
        values: an array, its axes in memory order (batch, output, input); or None, if only shapes are asked.
        batch: how many of its first axes are batch axes; or the sizes of those, where ``output`` is given.
        input: the same for its last axes, the input axes.
        output: the sizes of the output axes; where given, all three rows are sizes and the values may be flat.
        name: what messages call it.
    """
    _check_name(name)
    if output is not None or not isinstance(batch, int) or not isinstance(input, int):
        rows = (_axes(batch), _axes(input), _axes(output))
        return Tensor(
            Leaf(name, "data", rows, None if values is None else read_array(name or "data", values))
        )
    array = read_array(name or "data", values)
    if batch < 0 or input < 0 or array.ndim < batch + input:
        message = f"{batch} batch and {input} input axes of an array with {array.ndim} axes"
        raise DataError("E0744", message, help="batch axes come first, input axes last")
    dims = array.shape
    last = array.ndim - input
    return Tensor(
        Leaf(
            name, "data", (_axes(dims[:batch]), _axes(dims[last:]), _axes(dims[batch:last])), array
        )
    )


def _axes(sizes: int | Sequence[Size] | None) -> tuple[Axis, ...]:
    """The axes of a row, of which 0 or None has none. Raises DataError E0744."""
    if sizes is None or (type(sizes) is int and sizes == 0):
        return ()
    help_line = 'give each row as sizes, some with units: output=(3, (4, "rgb"))'
    if isinstance(sizes, int):
        message = "rows are given as sizes, or as numbers of axes, not mixed"
        raise DataError("E0744", message, help=help_line)
    if not isinstance(sizes, tuple | list) or not all(map(_is_size, sizes)):
        raise DataError("E0744", f"{shown(sizes)} is no row of sizes", help=help_line)
    return tuple((axis, None) if isinstance(axis, int) else axis for axis in sizes)


def _is_size(size: object) -> bool:
    if not isinstance(size, tuple):
        return isinstance(size, int)
    return len(size) == 2 and isinstance(size[0], int) and isinstance(size[1], str | None)


def _check_name(name: object) -> None:
    check_is(name, (str, NoneType), "E0744", "a tensor has a text as its name", 'name="x"')


def _check_text(text: object, example: str) -> None:
    """Refuse what is no text where one is wanted. Raises DataError E0745."""
    check_is(text, str, "E0745", "a text is wanted here", example)


def _rows(batch: object, inner: object, output: object) -> Rows:
    rows = [None if row is None else _axes(row) for row in (batch, inner, output)]  # type: ignore[arg-type]
    return rows[0], rows[1], rows[2]


def param(
    name: str,
    input: Sequence[Size] | None = None,  # noqa: A002
    output: Sequence[Size] | None = None,
    value: Any = None,
) -> Tensor:
    """A parameter: no batch axes; a row that is not given is found from use. ``value``: a number, or flat values."""
    _check_name(name)
    values = value if value is None or isinstance(value, int | float) else read_array(name, value)
    return Tensor(Leaf(name, "parameter", _rows((), input, output), values))


def fill(
    values: Any,
    batch: Sequence[Size] | None = None,
    input: Sequence[Size] | None = None,  # noqa: A002
    output: Sequence[Size] | None = None,
    name: str | None = None,
) -> Tensor:
    """A constant with so many values, whose rows multiply to their number.

    Of rows that are not given it has the output axes that it meets, and is repeated along batch and input axes.
    """
    _check_name(name)
    return Tensor(
        Leaf(name, "constant", _rows(batch, input, output), read_array(name or "fill", values))
    )


def number(value: float) -> Tensor:
    """A number: one output axis of size 1, which stretches."""
    return tensor_of(value)


def literal(text: str, name: str | None = None) -> Tensor:
    """A literal: ``[1; 2]`` has an output axis, ``(1, 2)`` an input axis, ``[|1; 2|]`` a batch axis.

    Raises:
        NotationError: E0148, E0149.
    """
    _check_text(text, 'tensor.literal("[1; 2]")')
    tree = parse_literal(Source("<literal>", text))
    if not tree.levels:
        return number(tree.numbers[0])
    rows = [[extent for row, extent in tree.levels if row == kind] for kind in range(3)]
    return data(literal_array(tree, np.float32), rows[0], rows[1], rows[2], name)


# -- element by element ----------------------------------------------------------------------------------------------


def _unary(name: str, scalar: Scalar, x: object) -> Tensor:
    return operation((scalar, "+", "pointwise"), name, [x])


def relu(x: object) -> Tensor:
    """The larger of 0 and x."""
    return _unary("relu", Apply("max", (Constant(0), Operand(0))), x)


def exp(x: object) -> Tensor:
    """E to the x."""
    return pointwise("exp", x)


def log(x: object) -> Tensor:
    """The natural logarithm."""
    return pointwise("ln", x)


def sin(x: object) -> Tensor:
    """The sine."""
    return pointwise("sin", x)


def cos(x: object) -> Tensor:
    """The cosine."""
    return pointwise("cos", x)


def tanh(x: object) -> Tensor:
    """The hyperbolic tangent."""
    return pointwise("tanh", x)


def sqrt(x: object) -> Tensor:
    """The square root."""
    return pointwise("sqrt", x)


def recip(x: object) -> Tensor:
    """1/x."""
    return pointwise("recip", x)


def recip_sqrt(x: object) -> Tensor:
    """1 over the square root."""
    return _unary("recip_sqrt", Apply("recip", (Apply("sqrt", (Operand(0),)),)), x)


def not_(x: object) -> Tensor:
    """Whether x is 0."""
    return pointwise("not", x)


def lt(x: object, y: object) -> Tensor:
    """Whether x is less than y."""
    return pointwise("lt", x, y)


def eq(x: object, y: object) -> Tensor:
    """Whether x equals y."""
    return pointwise("eq", x, y)


def where(test: object, x: object, y: object, spec: str | None = None) -> Tensor:
    """X where the test is not 0, else y; with a specification, chosen in its iteration space and summed."""
    if spec is not None:
        return einsum(spec, test, x, y, scalar=Apply("where", (Operand(0), Operand(1), Operand(2))))
    return pointwise("where", test, x, y)


def fma(x: object, y: object, z: object) -> Tensor:
    """x*y + z."""
    product = Apply("mul", (Operand(0), Operand(1)))
    return operation((Apply("add", (product, Operand(2))), "+", "pointwise"), "fma", [x, y, z])


# -- over rows -------------------------------------------------------------------------------------------------------


def transpose(x: object) -> Tensor:
    """Input and output axes exchanged."""
    return operation((Operand(0), "+", "transpose"), "transpose", [x])


def slice_(x: object, position: int, extent: int | None = None) -> Tensor:
    """One position of the first batch axis; ``extent`` is its declared size."""
    help_line = "count from the start of the batch axis"
    check_is(position, int, "E0745", "the position of a slice is a whole number", help_line)
    if position < 0:
        message = f"the position of a slice is 0 or more, not {position}"
        raise DataError("E0745", message, help=help_line)
    return operation((Operand(0), "+", Slice(position, extent)), "slice", [x])


def stack(*tensors: object, row: str = "output") -> Tensor:
    """Tensors of one shape along a new first axis of a row (batch, input or output)."""
    check_is(row, str, "E0745", "a row has a name", 'row="output"')
    if not tensors or row not in ("batch", "input", "output"):
        message = f"stack takes tensors and row= batch, input or output, not {shown(row)}"
        raise DataError("E0745", message, help='tensor.stack(a, b, row="output")')
    kind = ("batch", "input", "output").index(row)
    return operation((_folded("add", len(tensors)), "+", Stack(kind)), "stack", tensors)


def interleave(x: object, y: object) -> Tensor:
    """X at even, y at odd positions of the last output axis."""
    return operation((_folded("add", 2), "+", "interleave"), "interleave", [x, y])


def _folded(primitive: str, count: int) -> Scalar:
    """A primitive of two between so many operands: their sum, their product."""
    scalar: Scalar = Operand(0)
    for number in range(1, count):
        scalar = Apply(primitive, (scalar, Operand(number)))
    return scalar


def einsum(spec: str, *tensors: object, scalar: Scalar | None = None, acc: str = "+") -> Tensor:
    """An extended einsum: the sum of products, or of another scalar function, over the axes the result lacks.

    Args:
        spec: ``"..v..|ij; jk => ..v..|ik"``; see docs/tensors.md.
        tensors: one per operand of the specification.
        scalar: of the operands; their product by default.
        acc: ``+`` or ``>`` (maximum).

    Raises:
        NotationError: E0140 to E0147; E0150: not one tensor per operand.
    """
    _check_text(spec, 'tensor.einsum("ij; jk => ik", a, b)')
    parsed = parse_spec(Source("<spec>", spec))
    if len(parsed.operands) != len(tensors):
        raise miscounted(len(parsed.operands), len(tensors), parsed.span)
    if scalar is None:
        scalar = _folded("mul", len(tensors))
    return operation((scalar, acc, parsed), f'einsum "{spec}" ', tensors)


def einmax(spec: str, x: object) -> Tensor:
    """The maximum over the axes that the result lacks."""
    return einsum(spec, x, acc=">")


def tropical(spec: str, x: object, y: object) -> Tensor:
    """The maximum of sums."""
    return einsum(spec, x, y, scalar=_folded("add", 2), acc=">")


def outer_sum(spec: str, x: object, y: object) -> Tensor:
    """The sum of sums."""
    return einsum(spec, x, y, scalar=_folded("add", 2))


def concat(spec: str, *tensors: object) -> Tensor:
    """Tensors one after the other along the axes that the result joins: ``"a; b => a^b"``.

    Raises:
        NotationError: those of ``einsum``; E0151: the result joins nothing.
    """
    _check_text(spec, 'tensor.concat("a; b => a^b", x, y)')
    parsed = parse_spec(Source("<spec>", spec))
    if not any(isinstance(axis, Joined) for axis in parsed.result.axes()):
        message = "the result of a concatenation has no axis joined by `^`"
        raise NotationError("E0151", message, parsed.result.span, "for example: `a; b => a^b`")
    return einsum(spec, *tensors, scalar=_folded("add", len(tensors)))
