"""Functions of a loaded library, called with Python's and NumPy's values.

``_cffi_backend`` is what cffi itself stands on. Function types are made here by hand, since cffi's own reader of C
declarations costs more to import than a first call has. A compiled program, its device, the emulator and what stops
calls are such libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import _cffi_backend as backend
import numpy as np

from ilang.codegen.call.memory import argument

_POINTER = backend.new_pointer_type(backend.new_void_type())
_TEXT = backend.new_pointer_type(backend.new_primitive_type("char"))
_INT = backend.new_primitive_type("int")
_SIZE = backend.new_primitive_type("size_t")
GIVES = {"int": _INT, "size": _SIZE, "text": _TEXT, "nothing": backend.new_void_type()}

KINDS = {"i": _INT, "w": backend.new_primitive_type("uintptr_t"), "P": _POINTER}
"""Arguments by letters: an int, a word, which is an address or a size given as a number, and a pointer."""

_NUMBERS = {
    bool: "int",
    int: "int",
    float: "double",
    np.float32: "float",
    np.float64: "double",
    np.int32: "int",
    np.int64: "long long",
    np.uint64: "size_t",
}
"""C types of the numbers that a function may be called with."""


NO_POINTER: Final = backend.cast(_POINTER, 0)
Address = np.uintp
"""A pointer by its number."""


class Native:
    """The functions of one library."""

    def __init__(self, path: str, *, alone: bool = False, stays: bool = False) -> None:
        """Load the library. Raises OSError where that fails.

        Where ``alone``, what it needs is looked for in itself and its own libraries first, not in those that somebody
        made known to the whole process, where the system can do that. Where it ``stays``, it is never unloaded.
        """
        flags = backend.RTLD_NOW | backend.RTLD_LOCAL
        flags |= getattr(backend, "RTLD_DEEPBIND", 0) if alone else 0
        flags |= getattr(backend, "RTLD_NODELETE", 0) if stays else 0
        self._library = backend.load_library(path, flags)
        self._functions: dict[tuple[Any, ...], Any] = {}

    def has(self, name: str) -> bool:
        """Whether there is a function of this name."""
        return self.optional(name, "") is not None

    def call(self, name: str, *arguments: Any, gives: str = "int") -> Any:
        """The result of a function: an int, a size, or a text.

        Arrays, those of devices too, and addresses are passed as pointers, None as a null pointer, numbers as their C
        types: an ``int`` as int, a ``float`` as double, ``np.float32`` as float, ``np.int64`` as long long,
        ``np.uint64`` as size_t.
        """
        given = [_argument(value) for value in arguments]
        kinds = tuple(kind for kind, _ in given)
        function = self._functions.get((name, kinds))
        if function is None:
            kind = backend.new_function_type(kinds, GIVES[gives], False)
            function = self._functions[name, kinds] = self._library.load_function(kind, name)
        result = function(*(value for _, value in given))
        return _text(result) if gives == "text" else result

    def function(self, name: str, kinds: str, gives: str = "int") -> Callable[..., Any]:
        """A function whose arguments are of some kinds, each a letter of ``KINDS``: the quickest way to call one.

        An address and a pointer are passed alike, so a word may be given for either.
        """
        known = self._functions.get((name, kinds))
        if known is None:
            types = tuple(KINDS[letter] for letter in kinds)
            kind = backend.new_function_type(types, GIVES[gives], False)
            known = self._functions[name, kinds] = self._library.load_function(kind, name)
        function: Callable[..., Any] = known
        return function

    def required(self, name: str, kinds: str, gives: str = "int") -> Callable[..., Any]:
        """The same, of a library that is none of ours where it is missing. Raises OSError."""
        try:
            return self.function(name, kinds, gives)
        except AttributeError as error:
            raise OSError(str(error)) from None

    def optional(self, name: str, kinds: str, gives: str = "int") -> Callable[..., Any] | None:
        """The same; None where there is none."""
        try:
            return self.function(name, kinds, gives)
        except AttributeError:
            return None

    def text_at(self, address: int) -> str:
        """The text at an address, which some functions write."""
        return _text(backend.cast(_TEXT, address))


def _text(pointer: Any) -> str:
    text: str = backend.string(pointer).decode("utf-8", "replace")
    return text


def _argument(value: Any) -> tuple[Any, Any]:
    if value is None:
        return _POINTER, NO_POINTER
    if hasattr(value, "address"):
        return _POINTER, backend.cast(_POINTER, value.address)
    if isinstance(value, np.ndarray):
        return _POINTER, argument(value)
    kind = backend.new_primitive_type(_NUMBERS[type(value)])
    return kind, value.item() if isinstance(value, np.generic) else value
