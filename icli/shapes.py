"""Shapes on the command line: ``32x64,64x16``, a scalar is ``.``."""

from __future__ import annotations

import re

from ilang.core.diagnostic import CommandError

EXTENT = r"[0-9]{1,19}"


def parse_shape(text: str) -> tuple[int, ...]:
    """One shape: ``32x64``, ``.`` for a scalar.

    Raises: CommandError E0810.
    """
    words = text.strip().replace("×", "x").split("x")
    if words == ["."]:
        return ()
    if not all(re.fullmatch(EXTENT, word) for word in words):
        named = re.fullmatch(r"\w+=([0-9x]+)", text.strip())
        hint = "a shape is numbers joined by x, like 32x64; a scalar is `.`"
        if named is not None:
            hint = f"shapes stand in the order of the inputs: {named[1]}"
        raise CommandError("E0810", f"{text or '(empty)'} is not a shape", help=hint)
    return tuple(int(word) for word in words)


def parse_shapes(text: str) -> tuple[tuple[int, ...], ...]:
    """Shapes separated by commas, one per input."""
    return tuple(parse_shape(part) for part in text.split(","))


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as messages and tables show it."""
    return "×".join(str(extent) for extent in shape) if shape else "."
