"""Operations in einx notation: axes by their names, as many as an array has.

    from ilang import einx

    einx.mean("b (s [r])... c", x, r=4)              # on arrays
    einx.softmax("b q [k]") >> einx.id("b q k -> q k b")   # components, without arrays

``( )`` composes axes into one dimension, ``[ ]`` marks the axes that the operation sees, ``a...`` repeats. Sizes that
the arrays do not give are parameters. See docs/einx.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ilang.codegen.call.tracebacks import ends_at_caller, hide
from ilang.codegen.components import einx as engine
from ilang.core.einx_ops import EINX_OPS
from ilang.core.suggestion import nearest


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


@ends_at_caller
def reduce(text: str, *arrays: Any, op: Any, **parameters: Any) -> Any:
    """A reduction by its ``op``: ``einx.reduce("a [b]", x, op="sum")``, ``op=einx.sum``, or a component."""
    return engine.general("reduce", op, text, arrays, parameters)


@ends_at_caller
def elementwise(text: str, *arrays: Any, op: Any, **parameters: Any) -> Any:
    """An operation element by element by its ``op``: ``einx.elementwise("a, b -> a b", x, y, op="add")``."""
    return engine.general("elementwise", op, text, arrays, parameters)


@ends_at_caller
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


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in EINX_OPS:
        close = nearest(name, [*EINX_OPS])
        hint = f"; did you mean {close}?" if close else ""
        raise AttributeError(f"einx has no operation {name!r}{hint}")
    function = globals()[name] = _function(name)
    return function


def __dir__() -> list[str]:
    return [*globals(), *EINX_OPS]
