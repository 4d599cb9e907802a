"""The names of primitives of tensor functions, and how many arguments each takes (TENSORS.md section 2).

A definition of the file hides the primitive of its name.
"""

from __future__ import annotations

from collections.abc import Container

ELEMENTWISE = {
    **dict.fromkeys(("exp", "log", "exp2", "log2", "sin", "cos", "tanh", "sqrt", "recip"), 1),
    **dict.fromkeys(("recip_sqrt", "relu", "sat01", "neg", "abs", "sigmoid"), 1),
    **dict.fromkeys(("max", "min"), 2),
    **dict.fromkeys(("where", "fma"), 3),
}
"""Functions of elements, which stand for operators in assignments too, and how many operands each has."""

OTHERS: dict[str, int | None] = {
    **dict.fromkeys(("transpose", "stop_gradient", "track", "square", "fill", "file"), 1),
    **dict.fromkeys(("interleave", "einmax", "dim"), 2),
    **dict.fromkeys(("sum", "elements"), 1),
    "range": 0,
    "values": None,
}
"""Primitives that are no functions of elements, and their numbers of arguments; None stands for any number."""

PRIMITIVES: dict[str, int | None] = {**ELEMENTWISE, **OTHERS}

ALONG = {"sum": "+", "elements": "+", "max": ">", "min": "<"}
"""Reductions along the axes that their configuration names, and their operators; ``max`` and ``min`` of one tensor."""
ALL_AXES = "..."
"""The configuration value that stands for all axes."""

TEXTS = {"einmax": 0, "dim": 1, "file": 0}
"""The argument that is a text: a specification, the letter of an axis, a path."""


def hides(name: str, functions: Container[str]) -> bool:
    """Whether a tensor function or a primitive hides a component of a library that has its name."""
    return name in functions or name in PRIMITIVES
