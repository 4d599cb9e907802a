"""Random programs that leave elements out, by a guard, a choice or an index, and what flows back to those.

An element that is left out changes no result, so the gradient of everything else is the same whatever it is, and what
flows back to it is exactly 0: also where the functions between are infinite there, or not numbers.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ilang import elementwise, i
from ilang.codegen.components.library import library
from ilang.core.notation.files.module import parse_module
from ilang.core.record import record
from ilang.core.source import Source

FUNCTIONS = ("^ij~ij", "$ij~ij", "/ij~ij", "-ij~ij", "(I & I) >> ij*ij~ij", "(I | 0.5) >> ij^.~ij")
CALLS = ("exp({})", "log({})", "1 / ({})", "-({})", "({0}) * ({0})", "sqrt({})", "sin({})")
HARMFUL = (0.0, -1.0, 200.0, np.inf, -np.inf)
"""Numbers at which some function is infinite or no number."""
ROWS = 3


@record
class LeftOut:
    """A program of one input, the notation it is written in, and which of its ``ROWS`` columns are left out."""

    notation: str
    text: str
    out: tuple[bool, ...]


def drawn(seed: int) -> LeftOut:
    """A program by its number."""
    rng = random.Random(seed)
    split = rng.randint(1, ROWS - 1)
    out = tuple(column >= split for column in range(ROWS))
    notation = rng.choice(("guard", "index", "kernel", "choice"))
    depth = rng.randint(1, 3)
    if notation in ("guard", "index"):
        chain = " >> ".join(rng.choice(FUNCTIONS) for _ in range(depth))
        if notation == "guard":
            guard = f"[j<{split}]"
            ends = (f"+ij{guard}~i", f">ij{guard}~i", f"*ij{guard}~i", f"ij{guard}~ij")
            mixed = f"(I | {chain}) >> ij*jd~ijd >> +ijd{guard}~id"
            text = mixed if rng.random() < 0.2 else f"{chain} >> {rng.choice(ends)}"
            return LeftOut("two" if text == mixed else notation, text, out)
        column = rng.randrange(ROWS)
        return LeftOut(notation, f"{chain} >> i{column}~i", tuple(column != c for c in range(ROWS)))
    call = "x"
    for _ in range(depth):
        call = rng.choice(CALLS).format(call)
    condition, then, otherwise = "x < 0.75", call, "x"
    if rng.random() < 0.5:
        condition, then, otherwise = "x >= 0.75", otherwise, call
    return LeftOut(notation, f"where({condition}, {then}, {otherwise})", ())


def checked(seed: int, target: str) -> str:
    """The program of a number, checked on a target.

    Raises: AssertionError: what flows back differs, or reaches what is left out.
    """
    program, rng = drawn(seed), np.random.default_rng(seed)
    x = rng.uniform(0.25, 0.7, (2, ROWS))
    harmful = rng.choice(HARMFUL, x.shape)
    if program.notation in ("kernel", "choice"):
        _check_choice(program, x, harmful, target)
        return program.text
    left_out = np.broadcast_to(program.out, x.shape)
    bad = np.where(left_out, harmful, x)
    f = i(program.text).grad()
    if (
        program.notation == "two"
    ):  # a sum of products: the second factor, of which rows are left out
        other = rng.uniform(0.25, 0.7, (2, ROWS))
        _same(f(other, x.T, target=target)[1].T, f(other, bad.T, target=target)[1].T, left_out)
    else:
        _same(f(x, target=target), f(bad, target=target), left_out)
    return program.text


def _check_choice(program: LeftOut, x: Any, harmful: Any, target: str) -> None:
    """Where the condition chooses x itself its gradient is 1, whatever the other side is there."""
    chosen = 0.75 <= harmful
    given = np.where(chosen, harmful, x)
    if program.notation == "kernel":
        text = program.text
        for sign, name in (("x < 0.75", "lt(x, 0.75)"), ("x >= 0.75", "gte(x, 0.75)")):
            text = text.replace(sign, name)
        kernel = elementwise("f", [text], inputs=["x"]).ranked(2)
        back, plain = (kernel.grad()(each, target=target) for each in (given, x))
    else:
        text = program.text.replace("1 / (", "recip(").replace(" * (", " *. (")
        routine = (
            'cd step(z[n|3]) {\n  x = z + "b"\n'
            f'  loss = {text} ++ "...|... => 0"\n  backprop(loss)\n  return b.grad\n}}\n'
        )
        back, plain = (_trained(routine, each, target) for each in (given, x))
    np.testing.assert_array_equal(back[chosen], 1, program.text)
    np.testing.assert_array_equal(back[~chosen], plain[~chosen], program.text)


def _trained(routine: str, x: Any, target: str) -> Any:
    """The gradient of a parameter that a routine adds to zeros."""
    rows = []
    for row in x:
        module = library(parse_module(Source("f.i", routine)))
        session = module.session("step", shapes={"z": "1|3"}, target=target)
        session.parameters["b"][...] = row
        rows.append(session(z=np.zeros((1, 3), np.float32)).ravel())
    return np.array(rows)


def _same(plain: Any, back: Any, left_out: Any) -> None:
    np.testing.assert_array_equal(back[left_out], 0)
    np.testing.assert_array_equal(back[~left_out], plain[~left_out])
