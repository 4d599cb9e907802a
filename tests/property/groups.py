"""Random groups of axes that give one extent several times: what they mean is independent of the order of operands.

Each of two operands has one or two dimensions, each a group such as ``2i+u:3``, or ``2*i<+u`` in an einsum of a tensor
function, of a few shared axes. Both orders of the operands give the same array, or are refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilang import Error, i
from ilang.codegen.components.library import library
from ilang.core.notation.files.module import parse_module
from ilang.core.record import record
from ilang.core.source import Source

GROUPS = (
    *("i", "j", "(2i)", "(2i+1)", "(3i+1)", "(i+1)", "(i+2)", "(i+j)", "(i-j)", "(2j)", "(j+3)"),
    *("(i+u:2)", "(i+u:3)", "(2i+u:3)", "(i+u)", "(2i+u:2)", "(j+v:2)", "(2j+1)", "(2j+v:3)"),
)
SPECIFIED = (
    *("i", "j", "u", "2*i", "2*i+1", "3*i+1", "i+1", "i+2", "i+j", "2*j", "j+3", "u+1", "2*j+1"),
    *("i<+u", "i=+u", "2*i<+u", "2*i=+u", "i+u", "2*i+u", "i<+2*u", "i=+2*u", "i<+u+1", "j<+v"),
    *("i^j", "j^i", "u^i", "i^u", "j^u"),
)
ALONE = 40
"""Programs of a hundred whose operands have one dimension each: most conflicts that are not refused are there."""


@record
class Drawn:
    """Operands as they are written, with their arrays, and the axes of the result."""

    operands: tuple[str, ...]
    arrays: tuple[NDArray[np.float64], ...]
    axes: tuple[str, ...]
    run: Callable[[Drawn, tuple[int, ...]], Any]


def as_component(program: Drawn, order: tuple[int, ...]) -> Any:
    """What an index expression gives, its operands in an order."""
    text = "*".join(program.operands[n] for n in order)
    component: Any = i(f"{text}~{''.join(program.axes)}")
    return component(*[program.arrays[n] for n in order], target="numpy")


def as_function(program: Drawn, order: tuple[int, ...]) -> Any:
    """What an einsum of a tensor function gives, its operands in an order."""
    rows = [sizes[: array.ndim] for sizes, array in zip(("pq", "rs"), program.arrays, strict=True)]
    heads = [f"x{n}: f64[{rows[n]}]" for n in order]
    spec = f"{'; '.join(program.operands[n] for n in order)} => {','.join(program.axes)}"
    names = [f"x{n}" for n in order]
    text = f'op f({", ".join(heads)}) = {names[0]} *+ "{spec}" {names[1]}\n'
    function: Any = library(parse_module(Source("groups.i", text)))["f"]
    return function(*[program.arrays[n] for n in order], target="numpy")


def drawn(seed: int) -> Drawn:
    """The program of a seed: every other one is an einsum of a tensor function."""
    chance = random.Random(seed)
    alone = chance.randrange(100) < ALONE
    groups, comma = (SPECIFIED, ",") if seed % 2 else (GROUPS, "")
    dims = [[chance.choice(groups) for _ in range(1 if alone else 2)] for _ in range(2)]
    operands = tuple(comma.join(each) for each in dims)
    axes = sorted({c for text in operands for c in text if c.isalpha()})
    base = chance.randint(1, 9)
    shapes = [[max(0, base + chance.choice((-1, 0, 0, 1, 2))) for _ in each] for each in dims]
    rng = np.random.default_rng(seed)
    arrays = tuple(rng.integers(1, 9, shape).astype(float) for shape in shapes)
    return Drawn(operands, arrays, tuple(axes), as_function if seed % 2 else as_component)


def meaning(program: Drawn, left: int) -> NDArray[np.float64] | None:
    """The array that the operands give, one of them on the left; None where they are refused."""
    try:
        return np.asarray(program.run(program, (left, 1 - left)))
    except Error:
        return None


def checked(seed: int) -> bool:
    """Whether the program of a seed means something.

    Raises: AssertionError: the orders of its operands differ.
    """
    program = drawn(seed)
    one, other = (meaning(program, left) for left in (0, 1))
    shapes = [array.shape for array in program.arrays]
    says = f"{seed}: {program.operands} of {shapes}: {one} and, the other way round, {other}"
    assert (one is None) is (other is None), says
    assert one is None or other is None or np.array_equal(one, other), says
    return one is not None
