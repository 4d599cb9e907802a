"""DLPack: arrays of devices handed from one library to another without a copy, in a capsule.

A capsule holds a ``DLManagedTensor`` (https://dmlc.github.io/dlpack/latest/c_api.html); whoever takes the tensor
renames the capsule, and calls the tensor's deleter when it is done.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ilang.codegen.device.located import Located
from ilang.core.diagnostic import DataTypeError

CPU, CUDA = 1, 2
"""Kinds of memory, as DLPack counts them."""

NEW, TAKEN = b"dltensor", b"used_dltensor"

KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}
"""NumPy's kinds of element types, as DLPack counts them."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_kind", ctypes.c_int32),
        ("device_number", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("kind", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("owner", ctypes.c_void_p), ("deleter", _Deleter))


_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, _Destructor)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_is = ctypes.pythonapi.PyCapsule_IsValid
_is.restype, _is.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
# In a destructor the capsule has no references left: it is passed on by its address alone.
_is_at = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

_given: dict[int, tuple[Any, ...]] = {}
"""Objects that keep the memory of a tensor alive, and its own parts, by its address, until somebody deletes it."""


def _delete(address: int) -> None:
    _given.pop(address, None)


def _drop(capsule: int) -> None:
    """The end of a capsule that nobody took."""
    if _is_at(capsule, NEW):
        _given.pop(_pointer_at(capsule, NEW), None)


_deleter, _destructor = _Deleter(_delete), _Destructor(_drop)


def capsule_of(owner: Any, kind: int) -> Any:
    """A capsule with the memory of an array (``address``, ``shape``, ``dtype``), which it keeps alive."""
    rank = len(owner.shape)
    shape = (ctypes.c_int64 * max(1, rank))(*owner.shape)
    dtype = owner.dtype
    tensor = _Tensor(
        owner.address, kind, 0, rank, KINDS[dtype.kind], dtype.itemsize * 8, 1, shape, None, 0
    )
    managed = _Managed(tensor, None, _deleter)
    address = ctypes.addressof(managed)
    _given[address] = (managed, shape, owner)
    return _new(address, NEW, _destructor)


class Taken:
    """A tensor out of a capsule; its deleter is called with the last reference to it."""

    def __init__(self, capsule: Any) -> None:
        """Take it: the capsule has it no more."""
        self._address = _pointer(capsule, NEW)
        self.tensor = _Managed.from_address(self._address).tensor
        _rename(capsule, TAKEN)

    def __del__(self) -> None:
        """Let the owner have it back."""
        deleter = _Managed.from_address(self._address).deleter
        if deleter:
            deleter(self._address)


def taken(name: str, value: Any, kind: int, stream: int) -> Located | None:
    """The tensor of an object that gives capsules of this kind of memory; None for what gives none.

    ``stream`` is where it will be read: the library that gives it sees to it that it is written by then.

    Raises:
        DataError: E0703 (an element type that NumPy does not have).
    """
    device = getattr(value, "__dlpack_device__", None)
    if device is None or int(device()[0]) != kind:
        return None
    capsule = value.__dlpack__(stream=stream) if kind == CUDA else value.__dlpack__()
    if not _is(capsule, NEW):
        return None
    owner = Taken(capsule)
    tensor = owner.tensor
    letters = {code: letter for letter, code in KINDS.items()}
    if tensor.kind not in letters or tensor.lanes != 1:
        message = f"{name} has element type {tensor.kind} of DLPack, which is not supported"
        raise DataTypeError("E0703", message, help="convert it where it is")
    dtype = np.dtype(f"{letters[tensor.kind]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[n] for n in range(tensor.rank))
    strides = (
        tuple(tensor.strides[n] * dtype.itemsize for n in range(tensor.rank))
        if tensor.strides
        else None
    )
    address = int(tensor.data or 0) + tensor.offset
    return Located(address, shape, dtype, stream, owner, strides=strides)
