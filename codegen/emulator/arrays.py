"""Arrays in the memory of the emulated device, which other libraries read as arrays of CUDA."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from ilang.codegen.emulator.runtime import Runtime, emulated_device


class DeviceArray:
    """A contiguous array of the emulated device; its memory is given back with the last reference to it."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, device: Runtime | None = None) -> None:
        """New memory, which holds nothing of use. Raises DataError (E0713): there is no room."""
        device = device or emulated_device()
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.nbytes = math.prod(shape) * self.dtype.itemsize
        self.address = device.allocate(self.nbytes)
        self._device = device
        weakref.finalize(self, device.free, self.address)

    @classmethod
    def of(cls, array: Any, device: Runtime | None = None) -> DeviceArray:
        """A copy of a NumPy array on the device."""
        plain = np.ascontiguousarray(array)
        made = cls(np.shape(array), plain.dtype, device)
        made._device.write(made.address, plain)
        return made

    def get(self) -> Any:
        """A copy as a NumPy array, once all that was queued has run."""
        array = np.empty(self.shape, self.dtype)
        self._device.synchronize()
        self._device.read(self.address, array)
        return array

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """What CuPy, torch and others know an array of CUDA by."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
        }
