"""The configuration of a session: numbers and lists of numbers by name, some of which may change between runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.call.arguments import SUPPORTED, shown
from ilang.core.build.program import Given, plain_number
from ilang.core.build.routines import Built
from ilang.core.build.settings import require_within
from ilang.core.diagnostic import DataError

if TYPE_CHECKING:
    import _thread

    from ilang.codegen.call.arguments import Array


class Settings(MutableMapping[str, Given]):
    """The configuration of a session: what is used in arithmetic alone may change between runs."""

    def __init__(
        self, built: Built, values: Mapping[str, Given], dtype: Any, lock: _thread.RLock
    ) -> None:
        """The values that a session was made with; ``lock`` is held by whoever runs, and here by whoever sets one."""
        self._lock = lock
        self._built = built
        self._values = dict(values)
        self._dtype = dtype
        self.arrays = {
            name: _setting(name, cell.initial, dtype)
            for name, cell in built.settings.items()
            if isinstance(cell.initial, int | float)
        }

    def __repr__(self) -> str:
        return repr(self._values)

    def __getitem__(self, name: str) -> Given:
        return self._values[name]

    def __setitem__(self, name: str, value: Given) -> None:
        """Another value from the next run on.

        Raises: DataError E0750, E0755 (it is fixed), MeaningError E0272 (it is beyond the limits of a library).
        """
        if name not in self._values:
            listed = ", ".join(self._values) or "none"
            message = f"there is no configuration value {name}"
            raise DataError("E0750", message, help=f"there are {listed}")
        if name in self._built.fixed or name not in self.arrays:
            raise DataError(
                "E0755",
                f"{name} is fixed: the program was built with {self._values[name]}",
                self._built.fixed.get(name),
                "make another session, with another config",
            )
        number = plain_number(value)
        if number is None:
            message = f"the configuration value {name} is a number, not {shown(value)}"
            raise DataError("E0750", message, help="numbers are below 1.8e308")
        if name in self._built.limits:
            subject, interval = self._built.limits[name]
            require_within(subject, number, interval, None)
        array = _setting(name, number, self._dtype)
        with self._lock:
            self.arrays[name][:] = array
            self._values[name] = number

    def __delitem__(self, name: str) -> None:
        """Refuse: configuration is that of the head."""
        raise DataError(
            "E0755", f"{name} cannot be removed: the head has it", help="give it another value"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _setting(name: str, number: float, dtype: Any) -> Array:
    """The array of a configuration value. Raises: DataError E0758 (it would be infinite)."""
    with np.errstate(over="ignore"):
        array = np.full(1, number, dtype)
    if np.isinf(array[0]) and not np.isinf(number):
        type_name = SUPPORTED[array.dtype]
        message = (
            f"the configuration value {name} is {type_name} in this session, which has no {number}"
        )
        raise DataError(
            "E0758", message, help=f"the largest number of {type_name} is {np.finfo(dtype).max}"
        )
    return array
