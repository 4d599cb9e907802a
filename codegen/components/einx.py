"""Operations in einx notation as components, and their calls on arrays; see ``ilang/einx.py`` for the functions.

A component is kept for each operation, text and parameters that were called, so that a call like an earlier one is a
look-up and the call of a component.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from ilang.codegen.call.named_arrays import OPTIONS
from ilang.codegen.components.batched import along_axes
from ilang.codegen.components.component import Component
from ilang.codegen.components.program import WrittenProgram
from ilang.codegen.system.concurrency import kept
from ilang.core.diagnostic import (
    DataTypeError,
    Error,
    Label,
    ModuleError,
    NotationError,
    ShapeError,
    visible,
)
from ilang.core.ir.einx import Form, Parameter, Sizes, named
from ilang.core.ir.syntax import Einx
from ilang.core.notation.einx.forms import check_parameters, complete
from ilang.core.notation.einx.op_argument import op_name
from ilang.core.notation.einx.operation import read_einx
from ilang.core.passes.einx.fusing import FusedOperation
from ilang.core.passes.einx.solving import OPEN, form_of, shape_of, solve_sizes
from ilang.core.source import Source, Span, whole

MOST_KEPT = 1024
"""Components that are kept."""
INDEXING = frozenset(("get_at", "set_at", "add_at", "subtract_at"))

_kept: dict[Any, Component] = {}


Op = str | tuple[str, Component]
"""An operation by its name, or a component that goes along the axes outside brackets."""


def call(op: Op, text: str, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """The result of an operation on arrays; without arrays, its component.

    Raises:
        Error: whatever is wrong with the text, the parameters or the arrays.
    """
    try:
        operation = _kept.get((op, text, *named.items()) if named else (op, text))
    except TypeError:  # a list, an array is no key
        operation = None
    if operation is None:
        return _call_first(op, text, arrays, named)
    if not arrays:
        return operation
    try:
        return operation(*arrays)
    except Error as error:
        return _call_for_arrays(error, op, text, arrays, named, {})


def _call_first(op: Op, text: str, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """Call an operation that is not kept yet; calls that are given more than parameters never are."""
    options = {name: value for name, value in named.items() if name in OPTIONS}
    parameters = {name: value for name, value in named.items() if name not in OPTIONS}
    key = (op, text, *parameters.items())
    try:
        hash(key)
    except TypeError:
        operation = component(op, text, parameters)
    else:
        operation = kept(_kept, key, lambda: component(op, text, parameters), MOST_KEPT)
    if not arrays:
        return operation
    try:
        return operation(*arrays, **options)
    except Error as error:
        return _call_for_arrays(error, op, text, arrays, parameters, options)


def _call_for_arrays(
    error: Error,
    op: Op,
    text: str,
    arrays: Sequence[Any],
    parameters: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Any:
    """The result of a call that only arrays allow: functions, narrow coordinates, sizes of one shape."""
    form = form_of_call(op, text, parameters)
    arrays_made = _functions_called(form, arrays) if any(map(callable, arrays)) else arrays
    arrays_made = (
        _with_coordinates(op, arrays_made)
        if isinstance(op, str) and op in INDEXING
        else arrays_made
    )
    try:
        sizes = _sizes_for(form, arrays_made) if error.code in OPEN else {}
    except ShapeError as other:
        raise (error if other.code in OPEN else other) from None
    if not sizes and all(one is other for one, other in zip(arrays_made, arrays, strict=True)):
        raise error
    return component(op, text, {**parameters, **sizes})(*arrays_made, **options)


def _functions_called(form: Form, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Arrays, those that are functions called with the shape that the others leave them. Raises ShapeError E05."""
    solved = _solved_for(form, [None if callable(array) else array for array in arrays])
    return tuple(
        array(shape_of(expression, solved.sizes)) if callable(array) else array
        for array, expression in zip(arrays, solved.expressions, strict=False)
    )


def _sizes_for(form: Form, arrays: Sequence[Any]) -> dict[str, Sizes]:
    """The sizes of all axes of an operation, where the shapes of its arrays allow one solution. Raises ShapeError E05.

    A component leaves extents open, and refuses what has a solution for some of them alone: `(a a)` of 9.
    """
    return _sizes_by_name(_solved_for(form, arrays))


def _sizes_by_name(solved: FusedOperation) -> dict[str, Sizes]:
    """The sizes of all axes that are known, those of repetitions as tuples."""
    return {
        name: _sizes_of_repetitions(solved.sizes, axes, depth, ())
        for name, (axes, depth) in solved.repeated.names.items()
        if all(axis in solved.sizes for axis in axes.values())
    }


def _sizes_of_repetitions(
    sizes: Mapping[str, int], axes: Mapping[tuple[int, ...], str], depth: int, at: tuple[int, ...]
) -> Sizes:
    if len(at) == depth:
        return sizes[axes[at]]
    count = max((place[len(at)] for place in axes if place[: len(at)] == at), default=-1) + 1
    return tuple(_sizes_of_repetitions(sizes, axes, depth, (*at, n)) for n in range(count))


def _solved_for(
    form: Form, tensors: Sequence[Any], fused: bool = True, any_will_do: bool = False
) -> FusedOperation:
    shapes = [None if tensor is None else shape_of_array(tensor) for tensor in tensors]
    names = [f"in{n}" for n in range(len(shapes))]
    return solve_sizes(form, shapes, names, fused, any_will_do)


def solve_axes(
    text: object, tensors: Sequence[Any], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """The size of every axis: a number, or an array of those of its repetitions."""
    import numpy as np

    sizes = _sizes_by_name(_solved(text, tensors, parameters, fused=False))
    return {
        name: np.array(value, np.int64) if isinstance(value, tuple) else value
        for name, value in sizes.items()
    }


def solve_shapes(
    text: object, tensors: Sequence[Any], parameters: Mapping[str, Any]
) -> tuple[tuple[int, ...], ...]:
    """The shape of every tensor; None stands for one that is not known."""
    every = all(tensor is not None for tensor in tensors)
    solved = _solved(text, tensors, parameters, fused=True, any_will_do=every)
    return tuple(shape_of(each, solved.sizes) for each in solved.expressions)


def matches(text: object, tensors: Sequence[Any], parameters: Mapping[str, Any]) -> bool:
    """Whether tensors have shapes that expressions allow. Mistakes in the text itself are errors."""
    try:
        _solved(text, tensors, parameters, fused=True, any_will_do=True)
    except ShapeError:
        return False
    return True


def _solved(
    text: object,
    tensors: Sequence[Any],
    parameters: Mapping[str, Any],
    *,
    fused: bool,
    any_will_do: bool = False,
) -> FusedOperation:
    source = _source("solve_axes", text)
    written = read_einx(source)
    if len(written.sides) > 1:
        message = "shapes have no `->`: expressions are divided by `,`"
        raise NotationError("E0164", message, written.span, "leave the outputs out")
    form = form_of(written.sides[0], given_parameters(parameters), written.span)
    check_parameters(form)
    return _solved_for(form, tensors, fused, any_will_do)


def shape_of_array(tensor: Any) -> tuple[int, ...]:
    """The shape of an array or a number."""
    shape = getattr(tensor, "shape", None)
    if shape is None:
        from ilang.codegen.call.arguments import read_array

        shape = read_array("a tensor", tensor).shape
    return tuple(shape)


def _source(op: str, text: object) -> Source:
    if not isinstance(text, str):
        message = f"an einx operation is a text, not {type(text).__name__}"
        raise DataTypeError("E0716", message, help=f'write it in quotes: einx.{op}("a b -> b a")')
    return Source("<einx>", text)


def general(
    form: str, op: object, text: str, arrays: tuple[Any, ...], named: Mapping[str, Any]
) -> Any:
    """The result of an operation that is given by its name, or as the function of ``ilang.einx``.

    Raises:
        NotationError: E0165 (no such operation, or one of another kind).
        ModuleError: E0441 (a tensor function or a routine).
    """
    if isinstance(op, Component):
        return call((form, op), text, arrays, named)
    name = op if isinstance(op, str) else getattr(op, "__name__", None)
    if name is None:
        _refuse_function(form, op)
        name = type(op).__name__
    return call(op_name(form, visible(str(name)), None), text, arrays, named)


def _refuse_function(form: str, op: object) -> None:
    """Refuse a tensor function or a routine: those have rows of their own. Raises ModuleError E0441."""
    from ilang.codegen.session.function import Function

    if isinstance(op, Function):
        message = (
            f"{op.name} is a definition with `op` or `cd`, and einx.{form} is told a component"
        )
        help_line = (
            "a tensor function is repeated along batch axes: run it on arrays with more of them"
        )
        raise ModuleError("E0441", message, help=help_line)


def component(op: Op, text: object, parameters: Mapping[str, Any]) -> Component:
    """The component of an operation. Raises NotationError E016, MeaningError E022, DataError E0716."""
    form = form_of_call(op, text, parameters)
    if not isinstance(op, str):
        return Component(along_axes(op[1].program, form))
    return Component(WrittenProgram(Einx(form, form.span)))


def form_of_call(op: Op, text: object, parameters: Mapping[str, Any]) -> Form:
    """An operation, complete."""
    name, has_op = (op, False) if isinstance(op, str) else (op[0], True)
    source = _source(name, text)
    written = read_einx(source)
    try:
        given = given_parameters(parameters)
    except NotationError as error:
        word = error.span.text().partition("=")[0] if error.span is not None else ""
        lengths = [named(each).get(word) for side in written.sides for each in side]
        labels = [Label(axis.span, "this axis") for axis in lengths if axis is not None]
        raise NotationError(error.code, error.message, error.span, error.help, labels) from None
    return complete(name, written, given, whole(source), has_op)


def given_parameters(given: Mapping[str, Any]) -> list[Parameter]:
    """Parameters of Python, each with its place in a text that shows them. Raises NotationError E0166."""
    sizes = {name: _sizes(name, value) for name, value in given.items()}
    words = [f"{name}={value!r}" for name, value in sizes.items()]
    source = Source("<parameters>", ", ".join(words))
    parameters, start = [], 0
    for (name, value), word in zip(sizes.items(), words, strict=True):
        parameters.append(Parameter(name, value, Span(source, start, start + len(word))))
        start += len(word) + 2
    return parameters


def _sizes(name: str, value: Any) -> Sizes:
    """A size, or nested sequences of them, as tuples of Python."""
    tolist = getattr(value, "tolist", None)
    value = tolist() if tolist is not None else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, (tuple, list)):
        return tuple(_sizes(name, each) for each in value)
    message = f"{name} is given as {value!r}, and a size is a whole number"
    source = Source("<parameters>", f"{name}={value!r}")
    help_line = f"write `{name}=4`, or `{name}=(4, 2)` for the repetitions of an ellipsis"
    raise NotationError("E0166", message, whole(source), help_line)


def _with_coordinates(op: str, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Arrays, those that hold coordinates as integers that programs have: nothing is lost where they are widened."""
    last = len(arrays) if op == "get_at" else len(arrays) - 1
    return tuple(_widened(each) if 0 < n < last else each for n, each in enumerate(arrays))


def _widened(value: Any) -> Any:
    import numpy as np

    if isinstance(value, int) and not isinstance(value, bool):
        return np.array(value, np.int64)
    dtype = getattr(value, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "") in "iu" and dtype.itemsize < 4:
        return np.asarray(value).astype(np.int64)
    return np.asarray(value).astype(np.int64) if dtype == np.uint32 else value


def packing(pattern: str, count: int, back: bool = False) -> str:
    """The operation that packs tensors along the `*` of a pattern, or unpacks them."""
    parts = [f"(packed{n}...)" for n in range(count)]
    whole_one = pattern.replace("*", f"({' + '.join(parts)})" if count > 1 else parts[0])
    apart = ", ".join(pattern.replace("*", f"packed{n}...") for n in range(count))
    return f"{whole_one} -> {apart}" if back else f"{apart} -> {whole_one}"


def completed(shapes: Sequence[Sequence[int]], total: int) -> list[list[int]]:
    """Shapes of which one size may be -1, what is left of a number of elements.

    Raises:
        ShapeError: E0518 (several sizes are -1, or the sizes are not those of so many elements).
    """
    sizes = [[int(size) for size in shape] for shape in shapes]
    opened = [size for shape in sizes for size in shape if size < 0]
    if len(opened) > 1 or any(size != -1 for size in opened):
        message = f"{' and '.join(map(str, opened))} are sizes of what is unpacked"
        raise ShapeError("E0518", message, help="give all sizes but one, which may be -1")
    rest = total - sum(prod(shape) for shape in sizes if -1 not in shape)
    whole = [
        [rest // max(1, -prod(shape)) if size == -1 else size for size in shape] for shape in sizes
    ]
    count = sum(map(prod, whole))
    if count != total or any(size < 0 for shape in whole for size in shape):
        message = f"{total} elements along `*` are not those of the shapes {visible(str(shapes))}"
        raise ShapeError("E0518", message, help="the sizes of the parts add up to that of the axis")
    return whole
