"""An emulated program: a .cu text compiled for this process, and calls of its functions."""

from __future__ import annotations

from typing import Any

import _cffi_backend as backend
import numpy as np

from ilang.codegen.emulator.arrays import DeviceArray
from ilang.codegen.emulator.recipes import ProgramRecipe, identity
from ilang.codegen.emulator.runtime import emulated_device
from ilang.codegen.emulator.translate import translate
from ilang.codegen.runtime import cache
from ilang.codegen.runtime.memory import argument

_VOID_POINTER = backend.new_pointer_type(backend.new_void_type())
_INT = backend.new_primitive_type("int")
_NUMBERS = {
    bool: "int",
    int: "int",
    float: "double",
    np.float32: "float",
    np.float64: "double",
    np.int32: "int",
    np.int64: "long long",
}
"""C types of the numbers that a function may be called with."""


class Program:
    """The functions of one loaded program."""

    def __init__(self, path: str) -> None:
        """Load a compiled program, whose runtime is loaded. Raises OSError where that fails."""
        self._library = backend.load_library(path, backend.RTLD_NOW | backend.RTLD_LOCAL)
        self._functions: dict[tuple[str, tuple[Any, ...]], Any] = {}

    def call(self, name: str, *arguments: Any) -> int:
        """Call an ``extern "C"`` function that gives an int.

        Arrays of NumPy and of the device are passed as pointers, None as a null pointer, numbers as their C types: an
        ``int`` as int, a ``float`` as double, ``np.float32`` as float, ``np.int64`` as long long.
        """
        given = [_argument(value) for value in arguments]
        kinds = tuple(kind for kind, _ in given)
        function = self._functions.get((name, kinds))
        if function is None:
            kind = backend.new_function_type(kinds, _INT, False)
            function = self._functions[name, kinds] = self._library.load_function(kind, name)
        return int(function(*(value for _, value in given)))


def _argument(value: Any) -> tuple[Any, Any]:
    """The C type of an argument, and the argument."""
    if value is None:
        return _VOID_POINTER, backend.cast(_VOID_POINTER, 0)
    if isinstance(value, DeviceArray):
        return _VOID_POINTER, backend.cast(_VOID_POINTER, value.address)
    if isinstance(value, np.ndarray):
        return _VOID_POINTER, argument(value)
    kind = backend.new_primitive_type(_NUMBERS[type(value)])
    return kind, value.item() if isinstance(value, np.generic) else value


def load(text: str, name: str = "program.cu", *, checked: bool = False) -> Program:
    """A CUDA program, translated and compiled if the cache does not have it, and loaded.

    Args:
        text: the .cu file.
        name: of the file, for findings and messages.
        checked: look at every load and store.

    Raises:
        ToolError: E0901 to E0909 (the C++ compiler), E0920 (a construct that cannot be translated).
    """
    recipe = ProgramRecipe(emulated_device().content, checked)
    translated = f"// {identity()}\n{translate(text, name)}"
    return cache.library(translated, recipe, Program)
