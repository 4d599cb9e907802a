"""Components inside JAX: functions that `jax.jit`, `jax.grad` and `jax.vmap` take.

    import ilang.jax

    softmax = ilang.jax.function(i("softmax"))
    jax.jit(jax.grad(lambda x: softmax(x)[0, 0]))(x)

Outside of it, a component takes arrays of JAX as it is, and gives such arrays. Needs ``pip install 'ilang[jax]'``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from ilang.codegen.call.arguments import SUPPORTED, Output, check_is, wider
from ilang.codegen.components.component import Component
from ilang.codegen.frameworks.jax_arrays import call_pure
from ilang.codegen.session.function import Function

__all__ = ["function"]


def function(of: Component | Function, config: Any = None, **options: Any) -> Callable[..., Any]:
    """A function that JAX traces: it calls back to compiled C, and has a gradient, which has one, too.

    Args:
        of: what it computes: a component, or a tensor function or a routine without parameters and state.
        config: configuration values of a definition, by name.
        options: ``threads``, ``target`` of each call.

    Raises:
        DataError: E0716 (neither). Calls: E0758 (an element type), E0764 (a definition that keeps something).
    """
    says = "a function is made of a component or a definition"
    check_is(of, (Component, Function), "E0716", says, 'ilang.jax.function(i("softmax"))')
    if isinstance(of, Component):
        return _traced(of, options)
    functions: WeakKeyDictionary[Component, Callable[..., Any]] = WeakKeyDictionary()

    def call_of_shapes(*arrays: Any) -> Any:
        known = call_pure(of, arrays, config)
        if known.component not in functions:
            functions[known.component] = _traced(known.component, options)
        return functions[known.component](*known.arranged(arrays))

    return call_of_shapes


def _traced(component: Component, options: Mapping[str, Any]) -> Callable[..., Any]:
    def traced(*arrays: Any) -> Any:
        results = _results(component, arrays)
        kinds = tuple(jax.ShapeDtypeStruct(shape, _kept(dtype)) for shape, dtype in results)

        def compute(*given: Any) -> tuple[Any, ...]:
            plain = component(*map(np.asarray, given), **options)
            several = plain if isinstance(plain, tuple) else (plain,)
            return tuple(
                each.astype(kind.dtype, copy=False)
                for each, kind in zip(several, kinds, strict=True)
            )

        given = jax.pure_callback(compute, kinds, *arrays, vmap_method="sequential")
        return tuple(given) if 1 < len(kinds) else given[0]

    call = jax.custom_vjp(traced)

    def forward(*arrays: Any) -> Any:
        return call(*arrays), arrays

    def backward(arrays: tuple[Any, ...], cotangents: Any) -> Any:
        several = cotangents if isinstance(cotangents, tuple) else (cotangents,)
        floats = tuple(n for n, each in enumerate(arrays) if np.issubdtype(each.dtype, np.floating))
        gradient = _traced(component.gradient_for(floats), options)
        given = gradient(*arrays, *map(_as_float, several))
        left = iter(given if isinstance(given, tuple) else (given,))
        return tuple(
            next(left) if n in floats else np.zeros(each.shape, jax.dtypes.float0)
            for n, each in enumerate(arrays)
        )

    call.defvjp(forward, backward)

    def checked(*arrays: Any) -> Any:
        if len(arrays) != component.takes():
            component(*[0.0] * len(arrays))  # which refuses the number of them
        return call(*map(_widened, arrays, count()))

    return checked


def _widened(array: Any, number: int) -> Any:
    """An array of an element type of ours, the same one where it has it."""
    given = jax.numpy.asarray(array)
    return given.astype(wider(f"in{number}", given.dtype))


def _results(component: Component, arrays: Sequence[Any]) -> list[Output]:
    """The shapes and types of the results, as they are computed."""
    shapes = [np.shape(each) for each in arrays]
    return component.program.results(shapes, [SUPPORTED[each.dtype] for each in arrays])


def _kept(dtype: Any) -> Any:
    """The type that JAX has for a type: without x64, i32 for i64."""
    return jax.dtypes.canonicalize_dtype(dtype)


def _as_float(cotangent: Any) -> Any:
    """A cotangent; that of integers as zeros of float32, as ``f.grad()`` takes it."""
    is_none = cotangent.dtype == jax.dtypes.float0
    return jax.numpy.zeros(cotangent.shape, np.float32) if is_none else cotangent
