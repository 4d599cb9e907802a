"""Random texts of one or two expressions whose operands have any indices and guards, of one array or of several.

Example: ``(I & I) >> i*(0)[i<2]~i``. Some are refused: their extents do not fit, or an index is outside.
"""

from __future__ import annotations

import random

LETTERS = "ijk"
OPERATORS = ("*", "*", "+", "-", "/", "<=", "==", "&&")
UNARY = ("", "-", "^", "!!")
REDUCTIONS = ("+", "+", ">", "<", "*", ">@")
RELATIONS = ("<", "<=", "==", ">=", ">")


def generate(seed: int) -> str:
    """The text of a seed."""
    rng = random.Random(seed)
    rank, alike = rng.choice((1, 1, 2, 2, 3)), rng.random() < 0.6
    ranks = [rank] if rng.random() < 0.3 else [rank, rank if alike else rng.choice((0, 1, 2))]
    operands = ["".join(_index(rng) for _ in range(each)) or "." for each in ranks]
    axes = sorted({letter for letter in "".join(operands) if letter in LETTERS})
    guarded = [operand + _guard(rng, axes) for operand in operands]
    op = rng.choice(OPERATORS if len(ranks) == 2 else UNARY)
    text = _reduced(rng, op.join(guarded) if len(ranks) == 2 else f"{op}{guarded[0]}", axes)
    return f"(I & I) >> {text}" if len(ranks) == 2 and alike else text


def _guard(rng: random.Random, axes: list[str]) -> str:
    """A comparison of axes of the expression behind an operand, or nothing."""
    if not axes or rng.random() < 0.6:
        return ""
    one, other = rng.choice(axes), rng.choice((*axes, str(rng.randint(0, 4))))
    return f"[{one}{rng.choice(RELATIONS)}{other}]"


def _index(rng: random.Random) -> str:
    """An index: mostly an axis, else a place, a shift, a stride, a reversal or a window."""
    one, other = rng.sample(LETTERS, 2)
    number = rng.randint(0, 3)
    kinds = (f"({number})", f"({one}+{number})", f"({one}-{number})", f"(2{one})", f"(-{one}:4+3)")
    return rng.choice((one, one, one, one, *kinds, f"({one}+{other}:3)"))


def _reduced(rng: random.Random, body: str, axes: list[str]) -> str:
    """An expression of a body; every other time with a reduction of what it gives."""
    order = rng.sample(axes, len(axes))
    text = f"{body}~{''.join(order) or '.'}"
    if not order or rng.random() < 0.5:
        return text
    kept = order[: rng.randrange(len(order))]
    return f"{text} >> {rng.choice(REDUCTIONS)}{''.join(order)}~{''.join(kept) or '.'}"
