"""The public face of `i`, a compiler for tensor index expressions.

    from ilang import i, I, load, Error

    f = i("ik*kj~ijk") >> i("+ijk~ij")
    f(x, y)                         # NumPy in, NumPy out; compiled C
    load("model.i")["attention"]    # a component from a file

Nothing is loaded before it is used.
"""

from __future__ import annotations

import os

TYPE_CHECKING = (
    False  # what type checkers take for true; importing `typing` would double the start-up
)
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypedDict, Unpack, overload

    from numpy.typing import NDArray

    from ilang import einops as einops
    from ilang import einx, lib
    from ilang import tensor as tensor
    from ilang.codegen.components.component import Component, TensorInput
    from ilang.codegen.components.elementwise import ElementwiseKernel
    from ilang.codegen.components.library import Library
    from ilang.core.diagnostic import (
        CommandError,
        DataError,
        DataTypeError,
        ElementTypeError,
        Error,
        InternalError,
        LossWarning,
        MeaningError,
        ModuleError,
        NotationError,
        ScheduleError,
        ShapeError,
        ToolError,
        VersionsWarning,
    )

    I: Component  # noqa: E741 - the language's name for it
    load_ipython_extension: Callable[[Any], None]

    class _EinsumOptions(TypedDict, total=False):
        out: Any
        optimize: Any
        dtype: Any
        order: str
        casting: str
        target: str
        threads: int | str | None


__version__ = "0.2.0.dev0"

__all__ = [
    "CommandError",
    "Component",
    "DataError",
    "DataTypeError",
    "ElementTypeError",
    "Error",
    "I",
    "InternalError",
    "LossWarning",
    "MeaningError",
    "ModuleError",
    "NotationError",
    "ScheduleError",
    "ShapeError",
    "ToolError",
    "VersionsWarning",
    "einsum",
    "einx",
    "elementwise",
    "i",
    "lib",
    "load",
]


def i(text: str) -> Component:
    """The component that a text spells: one index expression, a program of several, or a definition.

        i("ik*kj~ijk >> +ijk~ij")
        i("f(x[n], y[n]) = { d = (i-i~i)(x, y); (+i~.)((i*i~i)(d, d)) }")

    A definition may have others before it that it uses; its inputs are given in order or by name.

    Raises:
        Error: NotationError, MeaningError, ModuleError: the text is wrong, and where.
    """
    from ilang.codegen.call.tracebacks import hide
    from ilang.codegen.components.component import from_text
    from ilang.codegen.frameworks.dynamo import uncompiled

    try:
        component: Component = uncompiled(from_text)(text)
    except Exception as error:
        hide(error)
        raise
    return component


def load(path: str | os.PathLike[str]) -> Library:
    """The components that a file of definitions defines, by name.

    Raises:
        Error: DataError (the file cannot be read), ModuleError, NotationError (it is wrong, and where).
    """
    from ilang.codegen.call.tracebacks import hide
    from ilang.codegen.components.library import library
    from ilang.codegen.system.files import path_text, read_module

    try:
        return library(read_module(path_text(path)))
    except Exception as error:
        hide(error)
        raise


_contract: Any = None
"""The function that runs an einsum of arrays, imported by the first one."""

if TYPE_CHECKING:  # a block of overloads alone is what mypy takes

    @overload
    def einsum(spec: str) -> Component: ...
    @overload
    def einsum(
        spec: str | TensorInput,
        array: TensorInput | Sequence[Any],
        /,
        *arrays: TensorInput | Sequence[Any],
        **options: Unpack[_EinsumOptions],
    ) -> Any: ...
    @overload
    def einsum(
        spec: Any, array: Any, /, *arrays: Any, **options: Unpack[_EinsumOptions]
    ) -> NDArray[Any]: ...


def einsum(  # noqa: PLR0913 - NumPy's keywords, and ours
    spec: Any,
    *arrays: Any,
    out: Any = None,
    optimize: Any = True,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    target: str = "c",
    threads: int | str | None = None,
) -> Any:
    """An einsum: ``einsum("ij; jk => ik")`` is a component, ``einsum("ij; jk => ik", x, y)`` its result.

    A specification without ``=>`` is NumPy's: ``einsum("ij,jk,kl", x, y, z)``, ``einsum("...ii->...i", x)``,
    ``einsum(x, [0, 1], y, [1, 2])``. In others shapes are ``batch|input->output``; the axes of an array stand in memory
    order: batch, output, input. For parameters and other tensors whose shapes are inferred, see ``ilang.tensor``.

    Args:
        spec: the specification.
        arrays: one per operand; none for the component.
        out: an array for the result.
        optimize: True: contract three and more arrays by pairs, in the order of fewest multiplications; False: all in
            one loop nest; a path as of ``numpy.einsum_path``: in its order.
        dtype: the element type to compute in; by default that which NumPy gives the arrays together.
        order: the layout of the result: "F"; "A": "F" where all arrays have it; else "C". With "K", the default, a
            transpose or a diagonal of one array is a view of it, as NumPy's is.
        casting: which casts may be made, to ``dtype`` and to ``out``: "no", "equiv", "safe", "same_kind", "unsafe".
            ``dtype``, ``order`` and ``casting`` are of NumPy's spelling.
        target: "c", "numpy", "cuda", "cuda-emulated".
        threads: how many cores to use at most, or "auto"; by default ``$I_THREADS``, else 1.

    Raises:
        Error: NotationError (the specification), ShapeError (it does not fit), DataError.
    """
    try:
        if arrays or not isinstance(spec, str):
            global _contract  # noqa: PLW0603 - an import in each call takes longer than the call
            if _contract is None:
                from ilang.codegen.components.contract import contract as _contract
            from ilang.codegen.frameworks.dynamo import uncompiled

            asked = optimize, dtype, order, casting
            return uncompiled(_contract)((spec, *arrays), asked, out, target, threads)
        from ilang.codegen.components.component import from_spec

        return from_spec(spec)
    except Exception as error:
        from ilang.codegen.call.tracebacks import hide

        hide(error)
        raise


def elementwise(
    order: str, outputs: Sequence[Any] = (), inputs: Sequence[str] | int | None = None
) -> ElementwiseKernel:
    """An elementwise kernel: outputs that are scalar functions of an element of each input.

        f = elementwise("f", ["x0 * x1", "sum: x0 + x1"])
        f(x, y)                 # x * y, and x.sum(0) + y, of x[i,j] and y[j]

    Args:
        order: which axes of inputs of several ranks correspond: "f": the last ones, as in NumPy; "c": the first ones.
        outputs: each a text, ``"x0 * x1"``, ``"sum: x0 + x1"``, ``"max 1: x0"``, or
            ``{"expr": ("add", "x0", "x1"), "mode": ("accumulate", "sum")}``. The mode "broadcast" repeats inputs of
            lesser rank; one that accumulates folds those of greater rank first, to the least rank, or to the one that
            is written.
        inputs: their names, or how many there are, called x0, x1, ...; by default as many as the outputs name.

    Returns:
        A component; its ranks follow from the arrays of a call, and ``f.ranked(2, 1)`` is the one for some ranks,
        which combines with others.

    Raises:
        Error: NotationError E0180 to E0183, DataError E0716.
    """
    from ilang.codegen.call.tracebacks import hide
    from ilang.codegen.components.elementwise import kernel

    try:
        return kernel(order, outputs, inputs)
    except Exception as error:
        hide(error)
        raise


def _loaded(name: str) -> Any:
    """The value of a name of the package, imported when it is used for the first time."""
    if name == "I":
        value: Any = i("I")
    elif name in ("einops", "einx", "jax", "lib", "tensor", "torch"):
        import importlib

        value = importlib.import_module(f"ilang.{name}")
    elif name == "load_ipython_extension":  # `%load_ext ilang` in a notebook
        import importlib

        value = importlib.import_module("ilang.icli.notebook").load
    elif name == "Component":
        from ilang.codegen.components.component import Component as value  # noqa: N813
    elif name.endswith(("Error", "Warning")) and name in __all__:
        from ilang.core import diagnostic

        value = getattr(diagnostic, name)
    else:
        from ilang.core.suggestion import did_you_mean

        hint = did_you_mean(name, __dir__(), "")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint and f'; {hint}'}")
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # which would take it for a declaration of every name
    __getattr__ = _loaded


def __dir__() -> list[str]:
    return sorted({"__version__", "einops", "tensor", *__all__})
