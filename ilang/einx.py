"""Operations in einx notation: axes by their names, as many as an array has.

    from ilang import einx

    einx.mean("b (s [r])... c", x, r=4)              # on arrays
    einx.softmax("b q [k]") >> einx.id("b q k -> q k b")   # components, without arrays

``( )`` composes axes into one dimension, ``[ ]`` marks the axes that the operation sees, ``a...`` repeats. Sizes that
the arrays do not give are parameters. See docs/einx.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ilang.codegen.call.tracebacks import ends_at_caller, hide
from ilang.codegen.components import einx as engine
from ilang.core.einx_ops import EINX_OPS
from ilang.core.suggestion import nearest

TYPE_CHECKING = False  # see ilang/__init__.py
if TYPE_CHECKING:  # the operations of `EINX_OPS`, for type checkers
    from typing import Protocol, overload

    from numpy.typing import NDArray

    from ilang.codegen.components.component import Component, TensorInput

    class _Operation(Protocol):
        __name__: str

        @overload
        def __call__(
            self, text: str, x: TensorInput, /, *arrays: TensorInput, **parameters: Any
        ) -> Any: ...
        @overload
        def __call__(
            self, text: str, x: Any, /, *arrays: Any, **parameters: Any
        ) -> NDArray[Any]: ...
        @overload
        def __call__(self, text: str, /, **parameters: Any) -> Component: ...

    class _General(Protocol):
        __name__: str

        @overload
        def __call__(
            self, text: str, x: TensorInput, /, *arrays: TensorInput, op: Any, **parameters: Any
        ) -> Any: ...
        @overload
        def __call__(
            self, text: str, x: Any, /, *arrays: Any, op: Any, **parameters: Any
        ) -> NDArray[Any]: ...
        @overload
        def __call__(self, text: str, /, *, op: Any, **parameters: Any) -> Component: ...

    id: _Operation
    rearrange: _Operation
    sum: _Operation
    prod: _Operation
    max: _Operation
    min: _Operation
    any: _Operation
    all: _Operation
    mean: _Operation
    var: _Operation
    std: _Operation
    count_nonzero: _Operation
    logsumexp: _Operation
    add: _Operation
    multiply: _Operation
    logical_and: _Operation
    logical_or: _Operation
    maximum: _Operation
    minimum: _Operation
    logaddexp: _Operation
    subtract: _Operation
    divide: _Operation
    floor_divide: _Operation
    true_divide: _Operation
    less: _Operation
    less_equal: _Operation
    greater: _Operation
    greater_equal: _Operation
    equal: _Operation
    not_equal: _Operation
    where: _Operation
    dot: _Operation
    softmax: _Operation
    log_softmax: _Operation
    flip: _Operation
    roll: _Operation
    sort: _Operation
    argsort: _Operation
    argmax: _Operation
    argmin: _Operation
    get_at: _Operation
    set_at: _Operation
    add_at: _Operation
    subtract_at: _Operation


def _general(function: Callable[..., Any]) -> _General:
    return cast("_General", ends_at_caller(function))


@ends_at_caller
def solve_axes(text: str, *tensors: Any, **sizes: Any) -> dict[str, Any]:
    """The size of every axis of expressions that some arrays have: a number, or an array for an ellipsis.

        einx.solve_axes("(a b) c", x, a=2)      # {"a": 2, "b": 3, "c": 5}

    Raises:
        Error: ShapeError (sizes that contradict each other, or that nothing gives), NotationError.
    """
    return engine.solve_axes(text, tensors, sizes)


solve = solve_axes


@ends_at_caller
def solve_shapes(text: str, *tensors: Any, **sizes: Any) -> tuple[tuple[int, ...], ...]:
    """The shapes of tensors, of which those that are None follow from the others."""
    return engine.solve_shapes(text, tensors, sizes)


@ends_at_caller
def matches(text: str, *tensors: Any, **sizes: Any) -> bool:
    """Whether tensors have the shapes that expressions say; what is wrong with the text itself is an error."""
    return engine.matches(text, tensors, sizes)


@_general
def reduce(text: str, *arrays: Any, op: Any, **parameters: Any) -> Any:
    """A reduction by its ``op``: ``einx.reduce("a [b]", x, op="sum")``, ``op=einx.sum``, or a component."""
    return engine.general("reduce", op, text, arrays, parameters)


@_general
def elementwise(text: str, *arrays: Any, op: Any, **parameters: Any) -> Any:
    """An operation element by element by its ``op``: ``einx.elementwise("a, b -> a b", x, y, op="add")``."""
    return engine.general("elementwise", op, text, arrays, parameters)


@_general
def vmap(text: str, *arrays: Any, op: Any, **parameters: Any) -> Any:
    """Any operation along the axes outside brackets: ``einx.vmap("a [b]", x, op="softmax")``.

    A component takes and gives the axes in brackets: ``einx.vmap("a [b], [b] c -> a c", x, y, op=i("i*i~i >> +i~."))``.
    """
    return engine.general("vmap", op, text, arrays, parameters)


def _function(op: str) -> Callable[..., Any]:
    def operation(text: str, *arrays: Any, **parameters: Any) -> Any:
        try:
            return engine.call(op, text, arrays, parameters)
        except Exception as error:
            hide(error)
            raise

    operation.__name__ = operation.__qualname__ = op
    operation.__doc__ = (
        f'einx.{op}("...", x, ...): the result on arrays, or without arrays a component.'
    )
    return operation


def _loaded(name: str) -> Callable[..., Any]:
    """An operation by its name, made when it is used for the first time."""
    if name not in EINX_OPS:
        close = nearest(name, [*EINX_OPS])
        hint = f"; did you mean {close}?" if close else ""
        raise AttributeError(f"einx has no operation {name!r}{hint}")
    function = globals()[name] = _function(name)
    return function


if not TYPE_CHECKING:  # which would take it for a declaration of every name
    __getattr__ = _loaded


def __dir__() -> list[str]:
    return [*globals(), *EINX_OPS]
