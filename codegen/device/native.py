"""Functions of a loaded library, called with Python's and NumPy's values.

``load.py`` has a quicker way for the one function of a program in C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import _cffi_backend as backend
import numpy as np

from ilang.codegen.call.memory import argument
from ilang.core.record import record

_POINTER = backend.new_pointer_type(backend.new_void_type())
_TEXT = backend.new_pointer_type(backend.new_primitive_type("char"))
_INT = backend.new_primitive_type("int")
_SIZE = backend.new_primitive_type("size_t")
GIVES = {"int": _INT, "size": _SIZE, "text": _TEXT}

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


Address = np.uintp
"""A pointer by its number."""


@record
class Located:
    """An array that somebody has on a device: where, and the stream that it is ready on; 0 where it is on each.

    ``owner`` keeps the memory alive; ``strides`` are in bytes, None for row-major order.
    """

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stream: int
    owner: Any
    is_readonly: bool = False
    strides: Sequence[int] | None = None

    def stand_in(self) -> Any:
        """An array of NumPy with this shape and element type, and no elements of its own, for checks."""
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)

    def is_plain(self) -> bool:
        """Whether the elements are in row-major order, dimensions of one element aside."""
        if self.strides is None or 0 in self.shape:
            return True
        step = self.dtype.itemsize
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != step:
                return False
            step *= extent
        return True


class Native:
    """The functions of one library."""

    def __init__(self, path: str, *, alone: bool = False) -> None:
        """Load the library. Raises OSError where that fails.

        Where ``alone``, what it needs is looked for in itself and its own libraries first, not in those that somebody
        made known to the whole process, where the system can do that.
        """
        flags = backend.RTLD_NOW | backend.RTLD_LOCAL
        if alone:
            flags |= getattr(backend, "RTLD_DEEPBIND", 0)
        self._library = backend.load_library(path, flags)
        self._functions: dict[tuple[Any, ...], Any] = {}

    def has(self, name: str) -> bool:
        """Whether there is a function of this name."""
        try:
            self._library.load_function(backend.new_function_type((), GIVES["int"], False), name)
        except AttributeError:
            return False
        return True

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

    def text_at(self, address: int) -> str:
        """The text at an address, which some functions write."""
        return _text(backend.cast(_TEXT, address))


def _text(pointer: Any) -> str:
    text: str = backend.string(pointer).decode("utf-8", "replace")
    return text


def _argument(value: Any) -> tuple[Any, Any]:
    if value is None:
        return _POINTER, backend.cast(_POINTER, 0)
    if hasattr(value, "address"):
        return _POINTER, backend.cast(_POINTER, value.address)
    if isinstance(value, np.ndarray):
        return _POINTER, argument(value)
    kind = backend.new_primitive_type(_NUMBERS[type(value)])
    return kind, value.item() if isinstance(value, np.generic) else value
