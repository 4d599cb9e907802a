"""Named pieces of array programs, as text of the language."""

TEXT = """\
# What array libraries have names for. A component goes along the axes in brackets; a tensor function along `axes`:
# numbers, letters of a head ("h, w"), or "...", all of them. In tensor functions `sum`, `max`, `min`, `relu` and
# `sigmoid` are primitives.

# -- elements --

relu = elementwise("f: x -> max(x)")
sigmoid = elementwise("f: x -> where(lt(x, 0), exp(x) / (1 + exp(x)), 1 / (1 + exp(0 - x)))")
silu = (I & sigmoid) >> elementwise("f: x, y -> x * y")
gelu = elementwise("f: x -> x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) / 2")
op silu(x) = x *. sigmoid(x)
op gelu(x) = 0.5 *. x *. (1 + tanh(0.7978845608028654 *. (x + 0.044715 *. x *. x *. x)))

# -- all elements --

sum = einx.sum("[...]")
prod = einx.prod("[...]")
max = einx.max("[...]")
min = einx.min("[...]")
mean = einx.mean("[...]")
var = einx.var("[...]")
logsumexp = einx.logsumexp("[...]")
op mean(x; axes = "...") = sum(x; axes) /. elements(x; axes)
op var(x; axes = "...") = mean(square_of(x - mean(x; axes)); axes)
op square_of(x) = x *. x
op logsumexp(x; axes = "...") {
  m = max(x; axes)
  m + log(sum(exp(x - m); axes))
}

# -- the last axis --

argmax = einx.argmax("... [c] -> ...")
argmin = einx.argmin("... [c] -> ...")
softmax = einx.softmax("... [c]")
log_softmax = einx.log_softmax("... [c]")
layer_norm = centered_last >> (I & deviation_last) >> einx.divide("... c, ...")
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

matmul = einsum("...ij,...jk->...ik")

# images n c h w, as many output channels as w has, weights o c u v inside the image
conv2d(x[n,c,h,w], w[o,c,u,v]) = nc(y+u)(x+v)*ocuv~noyxcuv >> +noyxcuv~noyx
"""

AXES = {
    **dict.fromkeys(("sum", "prod", "max", "min", "mean", "var", "logsumexp"), None),
    **dict.fromkeys(("argmax", "argmin", "softmax", "log_softmax", "layer_norm"), -1),
}
"""The axes along which components of one array go: None is all of them, and a call may name several; -1 is the last."""

PLAIN = ("relu", "sigmoid", "silu", "gelu", "matmul", "conv2d")
"""The other components."""
