"""Functions, methods and modules of other systems, and what tensor functions have for them: ``x.reshape(2, 3)``."""

from __future__ import annotations

UPDATED = "each parameter is updated by a call: `for p in params(loss) { sgd(p; lr) }`"
TRANSPOSED = "`transpose(w)` exchanges input and output axes; `w * x` is `x @ w.T` in NumPy"
MULTIPLIED = "`w * x` sums over the input axes of w, as `x @ w.T` of NumPy does"
SIZED = '`dim(x, "n")` is the size of an axis that the head names: `op f(x[b|n]) = ...`'
FILLED = "`fill(0)` has the shape of what it meets, and so has a number: `x + 1`"
COUNTED = "`range()` counts from 0 along the output axis that it meets"
JOINED = '`x *+ "b|n; b|m => b|n^m" y` puts y behind x'
SHAPED = '`einx.id("b (h w) -> b h w", h=2)(x)` makes two axes of one'
CONVERTED = "types convert: `f32(x)`, `i64(x)`"
INSTEAD = {
    **dict.fromkeys(("T", "t", "mT"), TRANSPOSED),
    **dict.fromkeys(("dot", "matmul", "mm", "bmm", "inner"), MULTIPLIED),
    **dict.fromkeys(("shape", "size", "len", "ndim"), SIZED),
    **dict.fromkeys(
        ("zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "empty_like"), FILLED
    ),
    **dict.fromkeys(("arange", "linspace"), COUNTED),
    **dict.fromkeys(("cat", "concat", "concatenate", "hstack", "vstack"), JOINED),
    **dict.fromkeys(("reshape", "view"), SHAPED),
    **dict.fromkeys(("astype", "to", "float", "double", "int", "long"), CONVERTED),
    **dict.fromkeys(("step", "parameters"), UPDATED),
    **dict.fromkeys(("pow", "power"), "the pointwise power is `**.`: `x **. 2`"),
    **dict.fromkeys(
        ("clip", "clamp"), "`min(max(x, 0), 1)` has the elements of x, at least 0 and at most 1"
    ),
    **dict.fromkeys(
        ("mse", "mse_loss", "mean_squared_error", "MSELoss"), "`use nn` has `squared_error(y, t)`"
    ),
    **dict.fromkeys(
        ("CrossEntropyLoss", "nll_loss"),
        "`use nn` has `cross_entropy(z, t)`, and `cross_entropy_at(z, t)` for class numbers",
    ),
    **dict.fromkeys(("squares", "sq"), "the square of each element is `x *. x`"),
    "stack": '`einx.id("b n, b n -> b (1 + 1) n")(x, y)` puts x and y side by side',
    "flatten": '`einx.id("b h w -> b (h w)")(x)` makes one axis of two',
    "backward": "`backprop(loss)` computes the gradients of a loss, in a routine",
    "zero_grad": "`zero_grads(loss)` sets the gradients to 0",
    "detach": "`stop_gradient(x)` is x, and nothing flows back to it",
    "sum": "`sum(x)` is the sum of all elements, `sum(x; -1)` that along the last axis",
    "mean": "`use std` has `mean(x)`, the mean of all elements, and `mean(x; -1)`",
    "Linear": "`use nn` has `linear(x; 4)`, with 4 outputs",
}
"""The help by the name of a function, of a method or of a class."""


def instead(name: str) -> str | None:
    """The help for a name of another system."""
    return INSTEAD.get(name)
