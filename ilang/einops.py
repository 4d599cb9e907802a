"""The functions of einops, with its own patterns: ``rearrange(x, "b (h w) c -> b h w c", h=4)``.

The functions become operations in einx notation, ``ilang.einx``; what a pattern may say is what einops reads
(``core/notation/einx/einops.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

from ilang import einx
from ilang.codegen.components import einx as engine
from ilang.codegen.frameworks.dynamo import uncompiled
from ilang.core.diagnostic import DataError, DataTypeError, NotationError, ShapeError
from ilang.core.notation.einx.einops import packed_axes, read_pattern, read_shape
from ilang.core.source import Source, whole

TYPE_CHECKING = False  # see ilang/__init__.py
if TYPE_CHECKING:  # arrays give arrays, tensors of other libraries their like
    from typing import Literal, Protocol, TypeVar, overload

    from numpy.typing import NDArray

    T = TypeVar("T")
    Reduction = Literal["sum", "mean", "max", "min", "prod", "any", "all"]

    class _Moved(Protocol):
        @overload
        def __call__(
            self, tensor: NDArray[Any] | Sequence[NDArray[Any]], pattern: str, **sizes: int
        ) -> NDArray[Any]: ...
        @overload
        def __call__(self, tensor: T | Sequence[T], pattern: str, **sizes: int) -> T: ...

    class _Reduced(Protocol):
        @overload
        def __call__(
            self,
            tensor: NDArray[Any] | Sequence[NDArray[Any]],
            pattern: str,
            reduction: Reduction,
            **sizes: int,
        ) -> NDArray[Any]: ...
        @overload
        def __call__(
            self, tensor: T | Sequence[T], pattern: str, reduction: Reduction, **sizes: int
        ) -> T: ...

    class _Summed(Protocol):
        @overload
        def __call__(self, first: NDArray[Any], /, *rest: NDArray[Any] | str) -> NDArray[Any]: ...
        @overload
        def __call__(self, first: T, /, *rest: T | str) -> T: ...


def _moved(function: Callable[..., Any]) -> _Moved:
    return cast("_Moved", function)


def _reduced(function: Callable[..., Any]) -> _Reduced:
    return cast("_Reduced", function)


def _summed(function: Callable[..., Any]) -> _Summed:
    return cast("_Summed", function)


__all__ = ["einsum", "pack", "parse_shape", "rearrange", "reduce", "repeat", "unpack"]

REDUCTIONS = ("sum", "mean", "max", "min", "prod", "any", "all")

_patterns = lru_cache(maxsize=engine.MOST_KEPT)(read_pattern)
_read_shape = lru_cache(maxsize=engine.MOST_KEPT)(read_shape)


def _read(operation: str, pattern: str, sizes: frozenset[str]) -> str:
    text: str = uncompiled(_patterns)(operation, pattern, sizes)
    return text


@_moved
def rearrange(tensor: Any, pattern: str, **sizes: int) -> Any:
    """A tensor with its axes in another order, composed or divided; a list of tensors is stacked first."""
    return einx.id(_read("rearrange", _text(pattern), frozenset(sizes)), _stacked(tensor), **sizes)


@_moved
def repeat(tensor: Any, pattern: str, **sizes: int) -> Any:
    """The same, repeated along axes that the tensor does not have."""
    return einx.id(_read("repeat", _text(pattern), frozenset(sizes)), _stacked(tensor), **sizes)


@_reduced
def reduce(tensor: Any, pattern: str, reduction: str, **sizes: int) -> Any:
    """A tensor without the axes that the result does not have: of sum, mean, max, min, prod, any or all."""
    if reduction not in REDUCTIONS:
        name = str(getattr(reduction, "__name__", reduction))
        help_line = f"it is a text, one of {', '.join(map(repr, REDUCTIONS))}"
        message = f"there is no reduction {name}"
        raise NotationError("E0165", message, whole(Source("<reduction>", name)), help_line)
    text = _read("reduce", _text(pattern), frozenset(sizes))
    return getattr(einx, reduction)(text, _stacked(tensor), **sizes)


@_summed
def einsum(*operands: Any) -> Any:
    """The sum of products of tensors, whose axes the pattern behind them names: ``einsum(x, y, "a b, c b -> a c")``."""
    if not operands:
        raise DataError("E0701", "no tensors are given", help='einsum(x, y, "a b, c b -> a c")')
    *tensors, pattern = operands
    return (einx.dot if 1 < len(tensors) else einx.sum)(_text(pattern), *tensors)


def pack(tensors: Sequence[T], pattern: str) -> tuple[T, list[tuple[int, ...]]]:
    """Tensors one after the other along ``*``, which stands for any axes of each; and the shapes of these axes."""
    before, after = map(len, packed_axes(_text(pattern)))
    if not len(tensors):
        raise DataError("E0701", "no tensors are packed", help="pass one or more: pack([x], ...)")
    shapes = [engine.shape_of_array(tensor) for tensor in tensors]
    packed = [tuple(shape[before : len(shape) - after]) for shape in shapes]
    together: Any = einx.id(engine.packing(pattern, len(tensors)), *tensors)
    return together, packed


def unpack(tensor: T, packed: Sequence[Sequence[int]], pattern: str) -> list[T]:
    """The tensors that ``pack`` put together; one size of their shapes may be -1."""
    before, after = map(len, packed_axes(_text(pattern)))
    shape = engine.shape_of_array(tensor)
    if len(shape) != before + after + 1:
        message = f"the tensor has rank {len(shape)}, and `{pattern}` {before + after + 1} axes"
        raise ShapeError("E0503", message, help="`*` stands for one axis of a packed tensor")
    shapes = engine.completed(packed, shape[before])
    if not shapes:
        return []
    text = engine.packing(pattern, len(shapes), back=True)
    parts: Any = einx.id(
        text, tensor, **{f"packed{n}": tuple(each) for n, each in enumerate(shapes)}
    )
    return list(parts) if isinstance(parts, tuple) else [parts]


def parse_shape(tensor: Any, pattern: str) -> dict[str, int]:
    """The sizes of the named axes of a tensor; ``_`` is an axis without a name."""
    names = _read_shape(_text(pattern))
    words = ["..." if name is None else str(name) for name in names]
    text = " ".join(f"_{n}" if word == "_" else word for n, word in enumerate(words))
    sizes = einx.solve_axes(text, tensor)
    return {name: sizes[name] for name in names if isinstance(name, str) and name != "_"}


def _text(pattern: object) -> str:
    if not isinstance(pattern, str):
        message = f"a pattern of einops is a text, not {type(pattern).__name__}"
        raise DataTypeError("E0716", message, help='write it in quotes: rearrange(x, "a b -> b a")')
    return pattern


def _stacked(tensor: Any) -> Any:
    """A list of tensors as one, along a new first axis."""
    if not isinstance(tensor, (list, tuple)):
        return tensor
    import numpy as np

    return np.stack(tensor)
