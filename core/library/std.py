"""Named pieces of array programs, as text of the language."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ilang.core.library import INNER

TEXT = """\
# What array libraries have names for. A component goes along the axes in brackets; a tensor function along `axes`:
# numbers, letters of a head ("h, w"), or "...", all of them. In tensor functions `sum`, `max`, `min`, `relu`,
# `sigmoid`, `tanh`, `sqrt` and `erf` are primitives.

# -- elements --

relu(x) = elementwise("f: x -> max(x)")
sigmoid(x) = elementwise("f: x -> where(lt(x, 0), exp(x) / (1 + exp(x)), 1 / (1 + exp(0 - x)))")
silu(x) = (I & sigmoid) >> elementwise("f: x, y -> x * y")
gelu(x) = elementwise("f: x -> x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) / 2")
tanh(x) = elementwise("f: x -> tanh(x)")
sqrt(x) = elementwise("f: x -> sqrt(x)")
erf(x) = elementwise("f: x -> erf(x)")
softplus(x) = elementwise("f: x -> max(x) + log(1 + exp(0 - max(x, 0 - x)))")
op softplus(x) = relu(x) + log(1 + exp(-(abs(x))))
op silu(x) = x *. sigmoid(x)
op gelu(x) = 0.5 *. x *. (1 + tanh(0.7978845608028654 *. (x + 0.044715 *. x *. x *. x)))

# -- all elements --

sum(x) = einx.sum("[...]")
prod(x) = einx.prod("[...]")
max(x) = einx.max("[...]")
min(x) = einx.min("[...]")
mean(x) = einx.mean("[...]")
var(x) = einx.var("[...]", ddof=0)
std(x) = einx.std("[...]", ddof=0)
logsumexp(x) = einx.logsumexp("[...]")
op mean(x; axes = "...") = sum(x; axes) /. elements(x; axes)
op var(x; axes = "...") = mean(square_of(x - mean(x; axes)); axes)
op square_of(x) = x *. x
op logsumexp(x; axes = "...") {
  m = max(x; axes)
  m + log(sum(exp(x - m); axes))
}

# -- the last axis --

argmax(x) = einx.argmax("... [c] -> ...")
argmin(x) = einx.argmin("... [c] -> ...")
softmax(x) = einx.softmax("... [c]")
log_softmax(x) = einx.log_softmax("... [c]")
layer_norm(x) = centered_last >> (I & deviation_last) >> einx.divide("... c, ...")
centered_last = (I & einx.mean("... [c]")) >> einx.subtract("... c, ...")
deviation_last = elementwise("f: x -> x * x") >> einx.mean("... [c]") >> elementwise("f: x -> sqrt(x + 0.00001)")
op softmax(x; axes = -1) {
  e = exp(x - max(x; axes))
  e /. sum(e; axes)
}
op log_softmax(x; axes = -1) {
  y = x - max(x; axes)
  y - log(sum(exp(y); axes))
}
op layer_norm(x; axes = -1, eps = 0.00001) {
  y = x - mean(x; axes)
  y /. sqrt(mean(y *. y; axes) + eps)
}

# -- two arrays --

matmul(x, y) = einsum("...ij,...jk->...ik")

# images n c h w, as many output channels as w has, weights o c u v inside the image
conv2d(x[n,c,h,w], w[o,c,u,v]) = nc(y+u)(x+v)*ocuv~noyxcuv >> +noyxcuv~noyx
max_pool2d(x[n,c,h,w]) = >nc(2y+u:2)(2x+v:2)~ncyx
mean_pool2d(x[n,c,h,w]) = nc(2y+u:2)(2x+v:2)~ncyxuv >> einx.mean("n c y x [u v]")
"""

AXES = {
    **dict.fromkeys(("sum", "prod", "max", "min", "mean", "var", "std", "logsumexp"), None),
    **dict.fromkeys(("argmax", "argmin", "softmax", "log_softmax", "layer_norm"), -1),
}
"""The axes along which components of one array go: None is all of them, and a call may name several; -1 is the last."""

PLAIN = (
    "relu",
    "sigmoid",
    "silu",
    "gelu",
    "tanh",
    "sqrt",
    "erf",
    "softplus",
    "matmul",
    "conv2d",
    "max_pool2d",
    "mean_pool2d",
)
"""The other components."""

_WINDOWS = {"size": r"(?<=:)2", "stride": r"2(?=[yx])"}
NUMBERS = {
    "var": {"ddof": r"(?<=ddof=)0"},
    "std": {"ddof": r"(?<=ddof=)0"},
    "layer_norm": {"eps": r"0\.00001"},
    "conv2d": {
        "stride": r"(?<=\()(?=[yx])",
        "dilation": r"(?<=\+)(?=[uv])",
        "padding": r"(?<=[uv])(?=\))",
    },
    **dict.fromkeys(("max_pool2d", "mean_pool2d"), _WINDOWS),
}
"""Numbers that a call may give: a pattern for each, which finds it in the text of the component."""


def text_of(name: str, numbers: Mapping[str, float]) -> str:
    """The definition of a component, whose inputs have names, with other numbers."""
    head = next(each for each in TEXT.splitlines() if each.startswith(f"{name}("))
    return f"{head.partition(' = ')[0]} = {_program_of(name, numbers)}"


def _program_of(name: str, numbers: Mapping[str, float]) -> str:
    """The program of a component with other numbers, and with the definitions that no one else has a use for."""
    line = next(each for each in TEXT.splitlines() if re.match(rf"{name}(\(.*\))? = ", each))
    program = line.partition(" = ")[2]
    for inner in INNER:
        if re.search(rf"\b{inner}\b", program):
            program = re.sub(rf"\b{inner}\b", f"({_program_of(inner, {})})", program)
    for key, number in numbers.items():
        sign = "-" if key == "padding" else ""
        program = re.sub(NUMBERS[name][key], f"{sign}{number:.17g}", program)
    return program
