"""Arrays that last from run to run, by path: parameters, and state.

A run reads the arrays that there are and writes into others, which then take their place. Two arrays of each path are
enough: what was read is written the next time, but for arrays that a caller has got.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.call.arguments import MEMORY_ORDER, rounded, supported_array
from ilang.core.definition import LastingTensor
from ilang.core.diagnostic import DataError
from ilang.core.suggestion import did_you_mean

if TYPE_CHECKING:
    import _thread

    from ilang.codegen.call.arguments import Array
    from ilang.codegen.session.device_copies import DeviceCopies


class Arrays(MutableMapping[str, "Array"]):
    """Arrays by path, of fixed shapes and types: assigning replaces the values.

    ``written`` are the paths that a run gives other values, ``replaced`` those that were put there since they began.
    ``stamp`` is another one whenever an array has another place in memory than runs have given it. ``lends`` is whether
    another session shares some of them. ``copies`` are those of runs on a device, which may be newer. ``side`` is that
    of the arrays of now: a run writes into those of the other one, and changing it is all that makes them those of now.
    """

    def __init__(
        self,
        tensors: Sequence[LastingTensor],
        noun: str,
        written: Collection[str],
        lock: _thread.RLock,
    ) -> None:
        """No values yet; ``lock`` is held by whoever runs, and here by whoever reads or replaces."""
        self._lock = lock
        self.lends = False
        self.tensors = {each.path: each for each in tensors}
        self.written = [path for path in self.tensors if path in written]
        self.replaced: set[str] = set()
        self.side = 0
        self._sides: tuple[dict[str, Array], dict[str, Array]] = ({}, {})
        self._lent: set[tuple[int, str]] = set()
        self._changes = 0
        self._shared: dict[str, tuple[Arrays, str]] = {}
        self._noun = noun
        self.copies: DeviceCopies | None = None

    # -- by callers --------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        words = [f"{t.path}: {t.dtype}{[*t.shape.memory()]}" for t in self.tensors.values()]
        return f"<{', '.join(words) or 'no arrays'}>"

    def __getitem__(self, path: str) -> Array:
        """The values, those of now: no run writes into this array. Raises DataError (E0753): there is no such path."""
        self._check(path)
        owner, name = self._shared.get(path, (self, path))
        with self._lock:
            owner.lend(name)
            array = owner.now(name)
            if owner.copies is not None:
                owner.copies.fetch(array, for_caller=True)
            return array

    def __setitem__(self, path: str, values: Any) -> None:
        """Replace the values. Raises DataError: E0753, E0754 (another shape)."""
        self._check(path)
        array = fitted(path, values, self.tensors[path])
        with self._lock:
            self.put(path, array)

    def __delitem__(self, path: str) -> None:
        """Refuse: the tensors of a session are those of its text."""
        raise DataError(
            "E0753", f"{path} cannot be removed: the text has it", help="give it other values"
        )

    def __iter__(self) -> Iterator[str]:
        """The paths, in the order of evaluation."""
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def share(self, path: str, other: Arrays, place: str) -> None:
        """The array of a path is that of another session from now on.

        Raises:
            DataError: E0754 (they have other shapes).
        """
        one, another = self.tensors[path], other.tensors[place]
        shape, other_shape = one.shape.memory(), another.shape.memory()
        if shape != other_shape or one.dtype != another.dtype:
            message = (
                f"{path} has shape {shape} here and {other_shape} as {place} of the other session"
            )
            raise DataError("E0754", message, help="share tensors of one shape and type")
        self._shared[path] = other, place
        other.lends = True
        other._changes += 1  # what a device has of them is read back before the next run

    # -- by runs -----------------------------------------------------------------------------------------------------

    def now(self, path: str) -> Array:
        """The array of a path that there is."""
        other = self._shared.get(path)
        if other is not None:
            return other[0].now(other[1])
        array = self.side_of(self.side, path)  # what no stage reads may be on the other side alone
        if self.copies is not None:
            self.copies.fetch(array)
        return array

    def put(self, path: str, array: Array) -> None:
        """Another array of its shape and type takes the place of that of a path."""
        other = self._shared.get(path)
        if other is not None:
            other[0].put(other[1], array)
            return
        self._changes += 1  # first, so that no run has an array of before, wherever a signal comes
        self._sides[self.side][path] = array
        self._sides[1 - self.side].pop(path, None)
        self.replaced.add(path)

    def is_seen(self) -> bool:
        """Whether another session reads or writes some of the arrays."""
        return self.lends or bool(self._shared)

    def is_shared(self, path: str) -> bool:
        """Whether the array of a path is that of another session."""
        return path in self._shared

    def stamp(self) -> object:
        """Equal to an earlier one as long as arrays have the places that they had then."""
        if not self._shared:
            return self._changes
        others = {id(other): (other.side, other.stamp()) for other, _ in self._shared.values()}
        return self._changes, tuple(others.items())

    def side_of(self, side: int, path: str) -> Array:
        """The array of a path that every other run reads, and those between write."""
        if path in self._shared:
            return self.now(path)
        arrays = self._sides[side]
        if path not in arrays:
            array = self._sides[1 - side][path]
            arrays[path] = np.empty_like(array) if path in self.written else array
        return arrays[path]

    def spare_lent(self) -> None:
        """Have a run write into other arrays than those that a caller has got."""
        lent = [each for each in self._lent if each[0] != self.side]
        if lent:
            self._changes += 1
            for side, path in lent:
                self._sides[side].pop(path, None)
            self._lent.difference_update(lent)

    def lend(self, path: str) -> None:
        """The array of now has been given to a caller: when a run has taken its place, none writes into it."""
        if path in self.written:
            self._lent.add((self.side, path))

    def _check(self, path: str) -> None:
        if path not in self.tensors:
            listed = ", ".join(self.tensors) or "none"
            hint = did_you_mean(str(path), list(self.tensors), f"there are {listed}")
            raise DataError("E0753", f"there is no {self._noun} {path}", help=hint)


def fitted(path: str, values: Any, tensor: LastingTensor) -> Array:
    """A copy of values as an array of the shape and the type of a tensor.

    Raises:
        DataError: E0754, E0758 (a number that its type has not).
    """
    array = supported_array(path, values, np.float32)
    dims = tensor.shape.memory()
    if array.shape != dims:
        raise DataError(
            "E0754",
            f"{path} has shape {dims}, and the array given for it {array.shape}",
            help=MEMORY_ORDER,
        )
    return rounded(path, array, tensor.dtype)
