"""Programs that say one thing again and again, in every notation, with their values by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang import Component, einsum, einx, elementwise, i, load
from ilang.core.record import record

Array = npt.NDArray[Any]
Program = Callable[..., Any]


@record
class Deep:
    """A kind of deep program: what builds it, of a depth, in a folder, and its value for an array."""

    program: Callable[[int, Path], Program]
    value: Callable[[int, Array], Any]


def _module(text: Callable[[int], str]) -> Callable[[int, Path], Program]:
    """The definition ``f`` of a text of each depth."""

    def build(depth: int, folder: Path) -> Program:
        path = folder / "deep.i"
        path.write_text(text(depth))
        definition: Program = load(str(path))["f"]
        return definition

    return build


def _of_ones(component: Component) -> Program:
    """What flows back to the input where 1 flows back to each element of the result."""
    return lambda x, **how: component.grad()(x, np.ones_like(x), **how)


def _operands(depth: int) -> Program:
    form = ", ".join(["a"] * depth) + " -> a"
    return lambda x, **how: einx.add(form, *[x] * depth, **how)


def _functions(depth: int) -> str:
    others = "".join(f"op g{m}(x) = g{m - 1}(x) - x\n" for m in range(1, depth))
    return f"op g0(x) = x + x\n{others}op f(x) = g{depth - 1}(x)\n"


def _lines(depth: int) -> str:
    return "  s0 = x\n" + "".join(f"  s{m + 1} = s{m} + x\n" for m in range(depth))


def _doublings(depth: int) -> str:
    others = "".join(f"d{m} = d{m - 1} >> d{m - 1}\n" for m in range(1, depth.bit_length()))
    return f"d0 = i+@i~i\n{others}f = d{depth.bit_length() - 1}\n"


def _doubling_calls(depth: int) -> str:
    """Tensor functions, each of which calls the one before twice."""
    last = depth.bit_length() - 1
    others = "".join(f"op d{m}(x: f64[n]) = d{m - 1}(d{m - 1}(x))\n" for m in range(1, last + 1))
    return f"op d0(x: f64[n]) = x + 1\n{others}op f(x: f64[n]) = d{last}(x)\n"


def _tanhs(depth: int, x: Array) -> Array:
    return reduce(lambda y, _: np.tanh(y), range(depth), x)


def _einsum(depth: int) -> Program:
    component = einsum(",".join(["i"] * depth) + "->i")
    return lambda x, **how: component(*[np.sign(x)] * depth, **how)


def _trained(depth: int, folder: Path) -> Program:
    """The loss of a routine of many lines, all of which a gradient flows back through."""
    lines = "".join(f"  s{m + 1} = tanh(s{m})\n" for m in range(depth))
    text = f"""cd f(x) {{
  s0 = scaled(x)
{lines}  loss = s{depth} ++ "...|... => 0"
  backprop(loss)
  return s{depth}
}}
op scaled(x) = "w" 1.0 *. x
"""
    path = folder / "deep.i"
    path.write_text(text)
    routine: Any = load(str(path))["f"]
    return lambda x, **how: routine.session({"x": f"|{len(x)}"}, **how)(x)


def _within(before: str, inside: str, after: str) -> Callable[[int], str]:
    return lambda depth: before * depth + inside + after * depth


KINDS: dict[str, Deep] = {
    "a chain of index expressions": Deep(
        lambda n, _: i("-i~i" + " >> -i~i" * (n - 1)), lambda n, x: (-1) ** n * x
    ),
    "index expressions in brackets": Deep(
        lambda n, _: i(_within("-i~i >> (", "-i~i", ")")(n)), lambda n, x: (-1) ** (n + 1) * x
    ),
    "results side by side": Deep(
        lambda n, _: i("-i~i" + " & -i~i" * n), lambda n, x: [-x] * (n + 1)
    ),
    "einsums one after the other": Deep(
        lambda n, _: reduce(lambda f, g: f >> g, [einsum("i->i")] * n), lambda _, x: x
    ),
    "operands of an einsum": Deep(lambda n, _: _einsum(n), lambda n, x: np.sign(x) ** n),
    "operands in einx notation": Deep(lambda n, _: _operands(n), lambda n, x: n * x),
    "terms of a kernel": Deep(
        lambda n, _: elementwise("f", [" + ".join(["x0"] * n)]), lambda n, x: n * x
    ),
    "brackets of a kernel": Deep(
        lambda n, _: elementwise("f", [_within("x0 - (", "x0", ")")(n)]),
        lambda n, x: x * ((n + 1) % 2),
    ),
    "calls in a kernel": Deep(
        lambda n, _: elementwise("f", [_within("tanh(", "x0", ")")(n)]), _tanhs
    ),
    "gradients of a kernel": Deep(
        lambda n, _: _of_ones(elementwise("f", [" + ".join(["x0 * x0"] * n)]).ranked(1)),
        lambda n, x: 2 * n * x,
    ),
    "gradients of a chain": Deep(
        lambda n, _: _of_ones(i("^i~i" + " >> -i~i" * n)), lambda n, x: (-1) ** n * np.exp(x)
    ),
    "terms of a function": Deep(
        _module(lambda n: "op f(x) = x" + " + x" * n + "\n"), lambda n, x: (n + 1) * x
    ),
    "lines of a function": Deep(
        _module(lambda n: f"op f(x) {{\n{_lines(n)}  s{n}\n}}\n"), lambda n, x: (n + 1) * x
    ),
    "calls in a function": Deep(
        _module(lambda n: f"op f(x) = {_within('tanh(', 'x', ')')(n)}\n"), _tanhs
    ),
    "functions of functions": Deep(_module(_functions), lambda n, x: (3 - n) * x),
    "a repetition": Deep(
        _module(lambda n: f"op f(x) = repeat(y = x; k in {n}) {{ tanh(y) }}\n"), _tanhs
    ),
    "lines of a routine": Deep(
        _module(lambda n: f"cd f(x) {{\n{_lines(n)}  return s{n}\n}}\n"), lambda n, x: (n + 1) * x
    ),
    "gradients of a routine": Deep(_trained, _tanhs),
    "definitions that double": Deep(
        _module(_doublings), lambda n, x: x + 2 ** (n.bit_length() - 1) * np.arange(len(x))
    ),
    "functions that double": Deep(
        _module(_doubling_calls), lambda n, x: x + 2 ** (n.bit_length() - 1)
    ),
}
"""Every kind of deep program, by what is said again and again."""
