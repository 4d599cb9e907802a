"""Named pieces as functions of arrays: ``lib.softmax(x, axis=-1)``, ``lib.mean(x)``, ``lib.matmul(x, y)``.

    from ilang import lib

    lib.softmax(x, axis=1)
    lib.var(x, axis=(0, 2), ddof=1)

A function is a component of the library ``std``, written in the language (docs/functions.md), along the axes of a call;
that of a call like an earlier one is compiled already. ``lib.softmax(x, out=y, threads=2)`` takes what components take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ilang.codegen.call.tracebacks import ends_at_caller, hide
from ilang.codegen.components.pieces import PIECES, called
from ilang.codegen.frameworks.dynamo import uncompiled

TYPE_CHECKING = False  # see ilang/__init__.py
if TYPE_CHECKING:  # the functions of `PIECES`, for type checkers
    from collections.abc import Sequence
    from typing import Protocol, Unpack, overload

    from numpy.typing import NDArray

    from ilang.codegen.components.component import CallOptions, TensorInput

    class _OfElements(Protocol):
        @overload
        def __call__(self, x: TensorInput, /, **options: Unpack[CallOptions]) -> Any: ...
        @overload
        def __call__(self, x: Any, /, **options: Unpack[CallOptions]) -> NDArray[Any]: ...

    class _OfTwo(Protocol):
        @overload
        def __call__(
            self, x: TensorInput, y: TensorInput, /, **options: Unpack[CallOptions]
        ) -> Any: ...
        @overload
        def __call__(self, x: Any, y: Any, /, **options: Unpack[CallOptions]) -> NDArray[Any]: ...

    class _AxisOptions(CallOptions, total=False):
        axis: int
        keepdims: bool

    class _AlongAxis(Protocol):
        @overload
        def __call__(self, x: TensorInput, /, **options: Unpack[_AxisOptions]) -> Any: ...
        @overload
        def __call__(self, x: Any, /, **options: Unpack[_AxisOptions]) -> NDArray[Any]: ...

    class _AxesOptions(CallOptions, total=False):
        axis: int | Sequence[int] | None
        keepdims: bool

    class _Reduction(Protocol):
        @overload
        def __call__(self, x: TensorInput, /, **options: Unpack[_AxesOptions]) -> Any: ...
        @overload
        def __call__(self, x: Any, /, **options: Unpack[_AxesOptions]) -> NDArray[Any]: ...

    class _SpreadOptions(_AxesOptions, total=False):
        ddof: int

    class _Spread(Protocol):
        @overload
        def __call__(self, x: TensorInput, /, **options: Unpack[_SpreadOptions]) -> Any: ...
        @overload
        def __call__(self, x: Any, /, **options: Unpack[_SpreadOptions]) -> NDArray[Any]: ...

    class _NormOptions(_AxisOptions, total=False):
        eps: float

    class _Norm(Protocol):
        @overload
        def __call__(self, x: TensorInput, /, **options: Unpack[_NormOptions]) -> Any: ...
        @overload
        def __call__(self, x: Any, /, **options: Unpack[_NormOptions]) -> NDArray[Any]: ...

    class _WindowOptions(CallOptions, total=False):
        size: int
        stride: int

    class _Pool(Protocol):
        @overload
        def __call__(self, x: TensorInput, /, **options: Unpack[_WindowOptions]) -> Any: ...
        @overload
        def __call__(self, x: Any, /, **options: Unpack[_WindowOptions]) -> NDArray[Any]: ...

    class _StrideOptions(CallOptions, total=False):
        stride: int
        dilation: int
        padding: int

    class _Convolution(Protocol):
        @overload
        def __call__(
            self, x: TensorInput, w: TensorInput, /, **options: Unpack[_StrideOptions]
        ) -> Any: ...
        @overload
        def __call__(
            self, x: Any, w: Any, /, **options: Unpack[_StrideOptions]
        ) -> NDArray[Any]: ...

    relu: _OfElements
    sigmoid: _OfElements
    silu: _OfElements
    gelu: _OfElements
    tanh: _OfElements
    sqrt: _OfElements
    erf: _OfElements
    softplus: _OfElements
    matmul: _OfTwo
    conv2d: _Convolution
    max_pool2d: _Pool
    mean_pool2d: _Pool
    sum: _Reduction
    prod: _Reduction
    max: _Reduction
    min: _Reduction
    mean: _Reduction
    var: _Spread
    std: _Spread
    logsumexp: _Reduction
    argmax: _AlongAxis
    argmin: _AlongAxis
    softmax: _AlongAxis
    log_softmax: _AlongAxis
    layer_norm: _Norm

if TYPE_CHECKING:

    @overload
    def one_hot(x: TensorInput, classes: int, **options: Unpack[CallOptions]) -> Any: ...
    @overload
    def one_hot(x: Any, classes: int, **options: Unpack[CallOptions]) -> NDArray[Any]: ...


@ends_at_caller
def one_hot(x: Any, classes: int, **options: Any) -> Any:
    """Rows of ``classes`` numbers, 1 at the number that x has and else 0, in f32; a new last axis.

    Raises:
        Error: DataError E0777 (no number of classes), and what a call refuses.
    """
    return uncompiled(called)("one_hot", (x,), classes, options)


def _function(name: str) -> Callable[..., Any]:
    default = PIECES[name]

    def piece(*arrays: Any, axis: Any = default, **options: Any) -> Any:
        try:
            return uncompiled(called)(name, arrays, axis, options)
        except Exception as error:
            hide(error)
            raise

    piece.__name__ = piece.__qualname__ = name
    piece.__doc__ = _page(name)
    return piece


def _page(name: str) -> str:
    """The docstring of a function: how it is called, and its line in the library."""
    import re

    from ilang.core.library.std import AXES, NUMBERS, TEXT

    arrays = "x, y" if name in ("matmul", "conv2d") else "x"
    axis = f", axis={PIECES[name]}, keepdims=False" if name in AXES else ""
    axis += "".join(f", {key}=..." for key in NUMBERS.get(name, ()))
    line = next(each for each in TEXT.splitlines() if re.match(rf"{name}(\(.*\))? = ", each))
    return f"lib.{name}({arrays}{axis}), a component of the library `std`:\n\n    {line}"


def _loaded(name: str) -> Callable[..., Any]:
    """A function by its name, made when it is used for the first time."""
    if name not in PIECES:
        from ilang.core.notation.guidance import named
        from ilang.core.suggestion import did_you_mean

        hint = did_you_mean(name, [*PIECES, "one_hot"], named(name))
        raise AttributeError(f"lib has no function {name!r}{f'; {hint}' if hint else ''}")
    function = globals()[name] = _function(name)
    return function


if not TYPE_CHECKING:  # which would take it for a declaration of every name
    __getattr__ = _loaded


def __dir__() -> list[str]:
    return ["one_hot", *PIECES]
