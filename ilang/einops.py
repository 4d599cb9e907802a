"""The functions of einops, with its own patterns: ``rearrange(x, "b (h w) c -> b h w c", h=4)``.

They become operations in einx notation, ``ilang.einx``, which says what a pattern means and what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ilang import einx
from ilang.codegen.runtime import einx as engine
from ilang.core.diagnostic import NotationError
from ilang.core.source import Source, whole

__all__ = ["pack", "parse_shape", "rearrange", "reduce", "repeat", "unpack"]

_OPENED, _CLOSED = re.compile(r"(?<=[\w.)])\("), re.compile(r"\)(?=[\w.])")
REDUCTIONS = ("sum", "mean", "max", "min", "prod", "any", "all")


def rearrange(tensor: Any, pattern: str, **sizes: int) -> Any:
    """A tensor with its axes in another order, composed or divided; a list of tensors is stacked first."""
    return einx.id(_spaced(pattern), _stacked(tensor), **sizes)


def repeat(tensor: Any, pattern: str, **sizes: int) -> Any:
    """The same, repeated along axes that the tensor does not have."""
    return einx.id(_spaced(pattern), _stacked(tensor), **sizes)


def reduce(tensor: Any, pattern: str, reduction: str, **sizes: int) -> Any:
    """A tensor without the axes that the result does not have: of sum, mean, max, min, prod, any or all."""
    if reduction not in REDUCTIONS:
        source = Source("<reduction>", str(reduction))
        help_line = f"there are {', '.join(REDUCTIONS)}"
        raise NotationError(
            "E0165", f"there is no reduction {reduction!r}", whole(source), help_line
        )
    text = _with_brackets(pattern)
    return getattr(einx, reduction)(text, _stacked(tensor), **sizes)


@lru_cache(maxsize=engine.MOST_KEPT)
def _with_brackets(pattern: str) -> str:
    return engine.with_brackets(_spaced(pattern))


def _spaced(pattern: str) -> str:
    """A pattern with blanks around parentheses, which einops does without: ``(a b)(c d)``."""
    try:
        return _divided(pattern)
    except TypeError:  # no text, which the operation refuses
        return pattern


@lru_cache(maxsize=engine.MOST_KEPT)
def _divided(pattern: str) -> str:
    return _CLOSED.sub(") ", _OPENED.sub(" (", pattern))


def pack(tensors: Sequence[Any], pattern: str) -> tuple[Any, list[tuple[int, ...]]]:
    """Tensors one after the other along ``*``, which stands for any axes of each; and the shapes of these axes."""
    before, after = _around(pattern)
    shapes = [engine.shape_of_array(tensor) for tensor in tensors]
    packed = [tuple(shape[before : len(shape) - after]) for shape in shapes]
    text = engine.packing(pattern, len(tensors))
    return einx.id(text, *tensors), packed


def unpack(tensor: Any, packed: Sequence[Sequence[int]], pattern: str) -> list[Any]:
    """The tensors that ``pack`` put together; one size of their shapes may be -1."""
    text = engine.packing(pattern, len(packed), back=True)
    before, _ = _around(pattern)
    shape = engine.shape_of_array(tensor)
    total = shape[before] if before < len(shape) else 0
    sizes = {f"packed{n}": tuple(shape) for n, shape in enumerate(engine.completed(packed, total))}
    found = einx.id(text, tensor, **sizes)
    return list(found) if isinstance(found, tuple) else [found]


def parse_shape(tensor: Any, pattern: str) -> dict[str, int]:
    """The sizes of the named axes of a tensor; ``_`` is an axis without a name."""
    words = [f"_{n}" if word == "_" else word for n, word in enumerate(pattern.split())]
    found = einx.solve_axes(" ".join(words), tensor)
    return {name: size for name, size in found.items() if not name.startswith("_")}


def _around(pattern: str) -> tuple[int, int]:
    """How many axes stand before and after the ``*``."""
    words = pattern.split()
    if words.count("*") != 1:
        source = Source("<pattern>", pattern)
        message = f"there are {words.count('*')} `*` in the pattern"
        raise NotationError("E0161", message, whole(source), "write one: `b * c`")
    at = words.index("*")
    return at, len(words) - at - 1


def _stacked(tensor: Any) -> Any:
    """A list of tensors as one, along a new first axis."""
    if not isinstance(tensor, (list, tuple)):
        return tensor
    import numpy as np

    return np.stack(tensor)
