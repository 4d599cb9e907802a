"""Calls with arrays of JAX: arrays of JAX come back. What JAX traces is for ``ilang.jax.function``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ilang.codegen.call.arguments import SUPPORTED
from ilang.codegen.device.device_plans import leave
from ilang.core.diagnostic import DataTypeError

if TYPE_CHECKING:
    from ilang.codegen.components.component import Component
    from ilang.codegen.session.function import Function
    from ilang.codegen.session.pure_call import PureCall

leave(jax.Array)


def call(component: Component, arrays: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The results of a component for arrays, those of JAX among them.

    Raises:
        Error: DataError E0702 (an array is traced), and those of a call.
    """
    given = dict(options)
    if given["target"] == "c" and any(map(_is_on_gpu, arrays)):
        given["target"] = "cuda"
    results = component.program.run(tuple(map(plain, arrays)), **given)
    return results if options["out"] is not None else given_back(results)


def _is_on_gpu(array: Any) -> bool:
    is_traced = isinstance(array, jax.core.Tracer)
    devices = array.devices() if isinstance(array, jax.Array) and not is_traced else ()
    return any(device.platform in ("gpu", "cuda") for device in devices)


def plain(array: Any) -> Any:
    """The elements of an array as NumPy reads them, in the same memory; those on a GPU stay there."""
    if isinstance(array, jax.core.Tracer):
        message = "an array is traced by JAX, as under jax.jit or jax.grad, and has no elements yet"
        help_line = "g = ilang.jax.function(f) gives a function that JAX traces: jax.jit(g)(x)"
        raise DataTypeError("E0702", message, help=help_line)
    return np.asarray(array) if isinstance(array, jax.Array) and not _is_on_gpu(array) else array


def tracks(arrays: Sequence[Any]) -> bool:
    """No array is tracked: what JAX differentiates is traced, and has no elements."""
    del arrays
    return False


def call_pure(
    function: Function, arrays: Sequence[Any], config: Any = None, parameters: bool = False
) -> PureCall:
    """A definition for arrays like some; ``parameters`` come after the inputs. Raises: as that of PyTorch."""
    known = function.pure.of([np.shape(each) for each in arrays], config, parameters)
    dtypes = [np.dtype(jax.numpy.asarray(each).dtype) for each in arrays]
    return known.of_types([SUPPORTED.get(dtype) or str(dtype) for dtype in dtypes])


def given_back(results: Any) -> Any:
    """Results as arrays of JAX, of the same memory where it takes that."""
    if isinstance(results, tuple):
        return tuple(map(given_back, results))
    if (
        isinstance(results, np.ndarray)
        and jax.dtypes.canonicalize_dtype(results.dtype) != results.dtype
    ):
        return jax.numpy.asarray(results)
    return jax.numpy.from_dlpack(results)
