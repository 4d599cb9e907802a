"""Arrays that follow from few numbers: ``zeros(2, 3)``, ``full(2, 3, 0.5)``, ``eye(3)``, ``arange(10)``, ``linspace``.

A call means what it means in NumPy, with a shape in one pair of parentheses or two, and may name a module:
``np.zeros((2, 3))``. ``rand(2, 3)`` is ``rand:2x3``, uniform numbers; ``randn(2, 3)`` are normal ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from ilang.core.diagnostic import DataError

Number = int | float
Shape = tuple[int, ...]

MODULES = r"(?:(?:np|numpy|jnp|torch|tf)\.(?:random\.)?)?"
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
CALL = re.compile(rf"{MODULES}([a-z]\w*)\s*\(([-+.,eE\d\s()\[\]]*)\)")
RANGE = re.compile(rf"({NUMBER})(?::|\.\.+)({NUMBER})")
"""A range as slices, or Rust and Swift, write it."""


def _sizes(*numbers: Number) -> Shape:
    """Numbers as a shape. Raises: ValueError (they are none)."""
    if not numbers or any(isinstance(each, float) or each < 0 for each in numbers):
        raise ValueError
    return tuple(int(each) for each in numbers)


def _square(*numbers: Number) -> Shape:
    """The sizes of a matrix. Raises: ValueError (they are not one or two numbers)."""
    rows, columns = numbers * 2 if len(numbers) == 1 else numbers
    return _sizes(rows, columns)


def _steps(*numbers: Number) -> tuple[Number, Number, int]:
    """The first number, the step, and how many numbers there are. Raises: ValueError."""
    first, stop, step = numbers if len(numbers) == 3 else (0, *numbers, 1)[-3:]
    if len(numbers) not in (1, 2, 3) or not step:
        raise ValueError
    return first, step, max(0, math.ceil((stop - first) / step))


ARRAYS: dict[str, tuple[str, Callable[..., Shape], Callable[..., Any]]] = {
    "zeros": ("zeros(2, 3)", _sizes, lambda np, shape, *_: np.zeros(shape, int)),
    "ones": ("ones(2, 3)", _sizes, lambda np, shape, *_: np.ones(shape, int)),
    "full": ("full(2, 3, 0.5)", lambda *n: _sizes(*n[:-1]), lambda np, shape, *n: np.full(shape, n[-1])),
    "eye": ("eye(3)", _square, lambda np, shape, *_: np.eye(*shape, dtype=int)),
    "arange": ("arange(10), arange(2, 10) or arange(0, 1, 0.1)", lambda *n: (_steps(*n)[2],),
               lambda np, shape, *n: _steps(*n)[0] + np.arange(*shape) * _steps(*n)[1]),
    "linspace": ("linspace(0, 1, 5)", lambda *n: _sizes(n[2]), lambda np, shape, *n: np.linspace(*n[:2], *shape)),
    "rand": ("rand(2, 3)", _sizes, lambda *_: "uniform"),
    "randn": ("randn(2, 3)", _sizes, lambda *_: "normal"),
}  # fmt: skip
"""Functions by name: how a call is written, its shape by its numbers, its values by NumPy, shape and numbers.

Of random values the distribution is named.
"""

RANDOM = ("rand", "randn")
"""Functions that give random numbers."""
MAKERS = {
    **{name: name for name in ARRAYS},
    "identity": "eye", "range": "arange", "empty": "zeros", "random": "rand",
    "standard_normal": "randn",
}  # fmt: skip
"""Functions that make an array, by their names here and elsewhere."""
SPACED = re.compile(r"([a-z]\w*)(?:[\s:]([-+.,eEx\d\s]*))?")
"""A call without its parentheses: ``zeros 3 4``, ``zeros:3x4``, ``rand``."""


def is_filled(text: str) -> bool:
    """Whether a text calls one of these functions with numbers alone."""
    called = CALL.fullmatch(text)
    return called is not None and called[1] in ARRAYS


def is_random(text: str) -> bool:
    """Whether a text spells random numbers: ``rand:2x3``, ``randn(4)``."""
    called = CALL.fullmatch(text)
    return text.startswith("rand:") or (called is not None and called[1] in RANDOM)


def filled_shape(text: str) -> Shape:
    """The shape of an array that a text spells. Raises: DataError E0720 (its numbers give none)."""
    return _read(text)[1]


def filled_values(text: str) -> Any:
    """The values of an array that a text spells; of random ones their distribution. Raises: DataError E0720."""
    import numpy as np

    name, shape, numbers = _read(text)
    return ARRAYS[name][2](np, shape, *numbers)


def _read(text: str) -> tuple[str, Shape, list[Number]]:
    """The function that a text calls, the shape that it gives, and its numbers."""
    called = CALL.fullmatch(text)
    assert called is not None
    usage, shape, _ = ARRAYS[called[1]]
    words = [word.strip() for word in re.sub(r"[()\[\]]", "", called[2]).split(",")]
    try:
        is_closed = all(text.count(a) == text.count(b) for a, b in ("()", "[]"))
        given = words[: -1 if words[-1] == "" else None] if is_closed else []
        numbers = [number_of(word) for word in given]
        return called[1], shape(*numbers), numbers
    except (ValueError, IndexError, OverflowError):
        message = f"{text} is not an array"
        raise DataError("E0720", message, help=f"it is written {usage}") from None


def number_of(text: str) -> Number:
    """The number that a text spells. Raises: ValueError (it spells none)."""
    if not re.fullmatch(NUMBER, text):
        raise ValueError
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def call_of(text: str) -> str | None:
    """The call that ``zeros:2x3``, ``zeros 2 3`` or ``zeros`` stand for; None for another text."""
    match = SPACED.fullmatch(text)
    if match is None or match[1] not in MAKERS:
        return None
    numbers = re.findall(NUMBER, match[2] or "")
    name = MAKERS[match[1]]
    return f"{name}({', '.join(numbers)})" if numbers else ARRAYS[name][0].partition(")")[0] + ")"


def range_of(text: str) -> str | None:
    """The help for a range such as ``0:20``; None for another text."""
    match = RANGE.fullmatch(text.strip("[] "))
    return match and f"`arange({match[1]}, {match[2]})`, which ends before {match[2]}"
