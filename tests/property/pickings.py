"""Random sorts and look-ups, and their derivatives twice: each is linear in what is moved, where the order is fixed.

So a gradient is the transpose of what NumPy moves, the gradient of a gradient moves again, and behind a square both
are compared with differences.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilang import einx, i
from ilang.core.record import record

Array = NDArray[Any]
Moved = Callable[[Array], Array]
SORTS: dict[str, tuple[str, int]] = {
    "[a]": ("a", 0),
    "a [b]": ("ab", 1),
    "[a] b": ("ab", 0),
    "a [b] c": ("abc", 1),
    "a b [c]": ("abc", 2),
}
"""Operations of einx, each with its axes and the one that is sorted."""
LOOKUPS: dict[str, Callable[[Array, Array], Array]] = {
    ".@v~.": lambda z, table: table[z],
    "b@v~b": lambda z, table: table[z],
    "b@vd~bd": lambda z, table: table[z],
    "bt@vd~btd": lambda z, table: table[z],
    "b@dv~db": lambda z, table: table[:, z],
    "bd@vd~bd": lambda z, table: np.take_along_axis(table, z, 0),
    "b@bv~b": lambda z, table: np.take_along_axis(table, z[:, None], 1)[:, 0],
}
"""Look-ups in a table, where ``v`` is looked up."""
STEP = 1e-6


def checked(seed: int, target: str) -> None:
    """Check the program of a seed.

    Raises: AssertionError: a value or a derivative differs.
    """
    chance, rng = random.Random(seed), np.random.default_rng(seed)
    extents = {axis: int(rng.integers(1, 6)) for axis in "abcdtv"}
    if chance.random() < 0.4:
        text = chance.choice(sorted(SORTS))
        axes, axis = SORTS[text]
        x = rng.integers(-3, 4, [extents[each] for each in axes]).astype(float)
        order = np.argsort(x, axis, kind="stable")
        moved = partial(np.take_along_axis, indices=order, axis=axis)
        Trial(einx.sort(text), (), x, moved, text, target).linear(rng)
        return
    text = chance.choice(sorted(LOOKUPS))
    left, rest = text.split("@")
    table, result = rest.split("~")
    x = rng.normal(size=[extents[axis] for axis in table])
    z = rng.integers(0, extents["v"], [extents[axis] for axis in left if axis != "."])
    moved = partial(LOOKUPS[text], z)
    Trial(i(text), (z,), x, moved, text, target).linear(rng)
    squared = f"({text}) >> (I & I) >> {result}*{result}~{result}"
    Trial(i(squared), (z,), x, moved, squared, target).squared(rng)


@record
class Trial:
    """A program that moves elements of its last input, ``x``, by numbers that come first, if any."""

    program: Any
    first: tuple[Array, ...]
    x: Array
    moved: Moved
    says: str
    target: str

    def linear(self, rng: np.random.Generator) -> None:
        """Check the program, which does nothing else, and its derivatives."""
        tangent, back = rng.normal(size=self.x.shape), rng.normal(size=np.shape(self.moved(self.x)))
        given, last = (*self.first, self.x), len(self.first)
        self._same(self.program(*given, target=self.target), self.moved(self.x))
        forward = self.program.jvp(wrt=[last])(*given, tangent, target=self.target)
        self._same(forward[1], self.moved(tangent))
        gradient = self.program.grad(wrt=[last])
        found = np.asarray(gradient(*given, back, target=self.target)).reshape(self.x.shape)
        self._same(np.sum(found * tangent), np.sum(back * self.moved(tangent)))
        twice = gradient.grad(wrt=[last, last + 1])(*given, back, tangent, target=self.target)
        self._same(twice[0], np.zeros(self.x.shape))
        self._same(twice[1], self.moved(tangent))

    def squared(self, rng: np.random.Generator) -> None:
        """Check gradients of the square of what is moved against differences."""
        tangent, other = rng.normal(size=(2, *self.x.shape))
        back = rng.normal(size=np.shape(self.moved(self.x)))
        gradient = self.program.grad(wrt=[1])
        x, (z,) = self.x, self.first
        found = np.asarray(gradient(z, x, back, target=self.target)).reshape(x.shape)
        near = [x + h * tangent for h in (STEP, -STEP)]
        high, low = (np.sum(back * self.moved(each) ** 2) for each in near)
        self._close(np.sum(found * tangent), (high - low) / (2 * STEP))
        twice = np.asarray(gradient.grad(wrt=[1])(z, x, back, other, target=self.target))
        high, low = (np.asarray(gradient(z, each, back, target="numpy")) for each in near)
        slope = ((high - low) / (2 * STEP)).reshape(x.shape)
        self._close(np.sum(twice.reshape(x.shape) * tangent), np.sum(slope * other))

    def _same(self, found: Any, wanted: Any) -> None:
        np.testing.assert_allclose(found, wanted, 1e-9, 1e-9, err_msg=self.says)

    def _close(self, found: Any, wanted: Any) -> None:
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5, err_msg=self.says)
