"""Tensors of PyTorch and arrays of JAX among the arrays of a call: results are of the same library.

The libraries are looked for where the process has imported them, and nothing here imports them. A call of NumPy's
arrays like an earlier one does not come here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Protocol

    from ilang.codegen.components.component import Component
    from ilang.codegen.session.function import Function
    from ilang.codegen.session.pure_call import PureCall

    class ArrayLibrary(Protocol):
        """Calls with arrays of one library: a module for each."""

        def call(
            self, component: Component, arrays: Sequence[Any], options: Mapping[str, Any]
        ) -> Any:
            """The results of a component for arrays, some of which are of the library."""

        def plain(self, array: Any) -> Any:
            """An array that NumPy reads, of the same memory where it may be; another value as it is."""

        def tracks(self, arrays: Sequence[Any]) -> bool:
            """Whether the library wants the gradient of one of the arrays."""

        def call_pure(
            self,
            function: Function,
            arrays: Sequence[Any],
            config: Any = None,
            parameters: bool = False,
        ) -> PureCall:
            """A definition for arrays like some; ``parameters`` come after the inputs."""

        def given_back(self, results: Any) -> Any:
            """Arrays of NumPy, one or a tuple, as those of the library."""


CLASSES = {"torch": ("Tensor",), "jax": ("Array", "core.Tracer")}
"""The classes of the arrays of each library."""


def library_of(arrays: Sequence[Any]) -> ArrayLibrary | None:
    """The library that some of the arrays are of; None where there is none."""
    for name, classes in CLASSES.items():
        module = sys.modules.get(name)
        for path in classes if module is not None else ():
            kind: Any = module
            for part in path.split("."):
                kind = getattr(kind, part, None)
            if isinstance(kind, type) and any(issubclass(type(each), kind) for each in arrays):
                library: ArrayLibrary = _module(name)
                return library
    return None


def _module(name: str) -> Any:
    """The module that calls with the arrays of a library, which is imported."""
    if name == "torch":
        from ilang.codegen.frameworks import torch_tensors

        return torch_tensors
    from ilang.codegen.frameworks import jax_arrays

    return jax_arrays
